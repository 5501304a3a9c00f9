"""The six levels of verification as records: what was looked at, how it came out, what follows."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["HOLDS", "FAILS", "NOT CHECKED"]

TITLES = {
    "V0": "archive",
    "V1": "bag",
    "V2": "signer",
    "V3": "numbers",
    "V4": "models",
    "V5": "environment",
}
#: Levels without which nothing passes: one that was not checked has fallen short.
_NEEDED = ("V0", "V1", "V3")
_FIRST_CODE = 10


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """One level: its state, the reason in a sentence, and what was found beyond the first."""

    state: State
    reason: str
    details: tuple[str, ...] = ()


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """All levels of one bundle, in order.

    ``bundle`` is the bundle's id and ``name`` its full name where V1 holds, else None.
    ``signed_by`` lists the trusted signers. ``require_signed`` makes a missing trusted signature
    a fall-short.
    """

    bundle: str | None
    name: str | None
    levels: dict[str, Level]
    signed_by: tuple[str, ...]
    require_signed: bool

    @property
    def fell_short(self) -> str | None:
        """The first level that fell short, or None."""
        for name, level in self.levels.items():
            needed = name in _NEEDED or (name == "V2" and self.require_signed)
            if level.state == "FAILS" or (needed and level.state != "HOLDS"):
                return name
        return None

    @property
    def exit_code(self) -> int:
        """0, or 10 to 15 for the first of V0 to V5 that fell short."""
        name = self.fell_short
        return 0 if name is None else _FIRST_CODE + list(TITLES).index(name)


def render_json(found: Verification) -> str:
    """One line of JSON: the bundle's id, every level, the trusted signers (a list, or null)."""
    document = {
        "bundle": found.bundle,
        "levels": {
            name: {"state": level.state, "reason": level.reason, "details": list(level.details)}
            for name, level in found.levels.items()
        },
        "signed_by": list(found.signed_by) or None,
    }
    return msgspec.json.encode(document).decode()


def render_text(found: Verification) -> str:
    """One line a level, details below it, and the outcome last."""
    lines = [f"bundle {found.name or 'not identified'}"]
    for name, level in found.levels.items():
        lines.append(f"{name} {TITLES[name]:<12} {level.state:<12} {level.reason}")
        lines += [f"   {detail}" for detail in level.details]
    signed = f"SIGNED BY {', '.join(found.signed_by)}" if found.signed_by else "UNSIGNED"
    if found.levels["V2"].state == "FAILS":
        signed = "BAD SIGNATURE"
    short = found.fell_short
    outcome = "the bundle holds" if short is None else f"fell short at {short} ({TITLES[short]})"
    return "\n".join([*lines, f"{signed}: {outcome}", ""])
