"""Every error the tool raises on purpose, with the exit code the command ends with.

A message says what was expected, what was found, where, and what to do next. Codes 10 to 15 are
the verification levels V0 to V5; they belong to :mod:`bundle.stages.verify`.
"""

from __future__ import annotations


class SpecbundleError(Exception):
    """Base of all errors meant for the user.

    Args:
        message: what was expected and what was found.
        where: the file, line, key or address it is about.
        next_step: what the user can do about it.
    """

    exit_code = 1

    def __init__(self, message: str, *, where: str = "", next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.next_step = next_step

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        step = f"\n  next: {self.next_step}" if self.next_step else ""
        return f"{place}{self.message}{step}"


class UsageError(SpecbundleError):
    """The command line asks for something that does not exist or does not go together."""

    exit_code = 2


class RecipeError(SpecbundleError):
    """A recipe is not valid: unknown key, bad value, contradiction."""

    exit_code = 3


class InputError(SpecbundleError):
    """A workload, quality set or other input is missing, broken or not the one that was pinned."""

    exit_code = 4


class ModelError(SpecbundleError):
    """A model is missing, gated, tampered with, or does not belong to its target."""

    exit_code = 5


class EngineError(SpecbundleError):
    """An engine environment cannot be built or used."""

    exit_code = 6


class ServerError(SpecbundleError):
    """A server did not start, died, hung or answered with errors."""

    exit_code = 7


class HostError(SpecbundleError):
    """The machine lacks something: space, a library, a free port, a writable folder, a GPU."""

    exit_code = 8


class BundleError(SpecbundleError):
    """A bundle or archive cannot be read or written."""

    exit_code = 9


class NothingMeasured(SpecbundleError):
    """A run ended without one usable measurement."""

    exit_code = 20


class Interrupted(SpecbundleError):
    """The user stopped the tool; finished runs stay and the next start resumes."""

    exit_code = 130
