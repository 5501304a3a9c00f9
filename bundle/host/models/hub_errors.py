"""What the Hub's client raises, told apart and said in one sentence each."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from bundle.errors import ModelError, SpecbundleError
from bundle.host.cache import no_space
from bundle.host.secrets import scrub_text


@contextmanager
def hub_errors(repo: str, revision: str) -> Iterator[None]:
    """Turn every failure of the client into an error of this tool; nothing is swallowed.

    Raises:
        ModelError: gone, gated, private, forbidden, offline, unreachable, or cut off.
        HostError: no space left.
    """
    try:
        yield
    except SpecbundleError:
        raise
    except Exception as error:
        raise _told_apart(error, repo, revision) from error


def _told_apart(error: Exception, repo: str, revision: str) -> SpecbundleError:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return no_space(Path(constants.HF_HUB_CACHE), f"while fetching {repo}")
    message, step = _sentence(error, repo, revision)
    return ModelError(message, where=f"{constants.ENDPOINT} {repo}@{revision}", next_step=step)


def _sentence(error: Exception, repo: str, revision: str) -> tuple[str, str]:
    if isinstance(error, GatedRepoError):
        return (
            f"{repo} is gated and this token has no access ({_status(error)})",
            f"ask for access on the model's page {constants.ENDPOINT}/{repo}, then set HF_TOKEN",
        )
    if isinstance(error, RevisionNotFoundError):
        return (
            f"the repository has no revision {revision} (404)",
            "it may have been removed or rewritten: specbundle pin --update RECIPE",
        )
    if isinstance(error, RepositoryNotFoundError):
        return (
            f"no such repository, or a private one ({_status(error)})",
            "check the name; for a private repository set HF_TOKEN",
        )
    if isinstance(error, OfflineModeIsEnabled):
        return ("offline (HF_HUB_OFFLINE), but the Hub is needed", "run once with network")
    if isinstance(error, HfHubHTTPError):
        status = _status(error)
        access = status in ("401", "403")
        return (
            f"the Hub refuses access ({status})" if access else f"the Hub answered {status}",
            "set HF_TOKEN to a token with access" if access else "try again later",
        )
    detail = scrub_text(str(error).strip().splitlines()[-1] if str(error).strip() else "")
    if isinstance(error, LocalEntryNotFoundError):
        return (f"the Hub cannot be reached: {detail}", "check the network and HF_ENDPOINT")
    return (
        f"fetching failed: {type(error).__name__}: {detail}",
        "check the network and HF_ENDPOINT; the same command resumes the download",
    )


def _status(error: HfHubHTTPError) -> str:
    return str(error.response.status_code) if error.response is not None else "no status"
