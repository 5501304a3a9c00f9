"""Servers that did not run."""

from __future__ import annotations

from bundle.core.findings.rule import Outcome, Rule, clear, rule, triggered, unknown
from bundle.core.findings.subject import Subject


def _kind(s: Subject, name: str) -> Outcome:
    for found, text in s.log_causes:
        if found == name:
            return triggered(text)
    if s.started is None:
        return unknown("no server log and no numbers of this server")
    return clear("the server ran" if s.started else "the log names another cause")


@rule(
    "server-did-not-start",
    "voids",
    "group",
    first="whether the archived help of the server lists every flag, and the method's name",
    then="whether the helper's weights belong to the target, and whether the memory suffices",
)
def server_did_not_start(s: Subject) -> Outcome:
    """No planned server of the group became ready; the cause comes from its log.

    Where some did, the others drop out as failed starts do, and are named.
    """
    if s.started is None:
        return unknown("no server log and no numbers of this server")
    if s.started:
        return clear("; ".join(["the server ran", *(f"dropped out: {text}" for text in s.dropped)]))
    return triggered("; ".join(text for _, text in s.log_causes) or "the log names no cause")


@rule(
    "unsupported-method",
    "voids",
    "group",
    first="whether this engine version knows the method, for this target, on this device",
    then="the method's own requirements: k, vocabulary, layers, model runner",
)
def unsupported_method(s: Subject) -> Outcome:
    """The engine refused the method, one of its settings, or its helper."""
    return _kind(s, "unsupported-method")


@rule(
    "out-of-memory",
    "voids",
    "group",
    first="weights of target and helper together against the device's memory",
    then="the memory share, the context length and the largest batch the server plans for",
)
def out_of_memory(s: Subject) -> Outcome:
    """The server or one of its requests ran out of memory."""
    return _kind(s, "out-of-memory")


@rule(
    "dependency-conflict",
    "voids",
    "group",
    first="what is installed against the lock, and the package the log names",
    then="a combination that the helper package's notes call compatible, with its own baseline",
)
def dependency_conflict(s: Subject) -> Outcome:
    """A package is missing, or two packages do not fit together."""
    return _kind(s, "dependency-conflict")


RULES: tuple[Rule, ...] = (
    server_did_not_start,
    unsupported_method,
    out_of_memory,
    dependency_conflict,
)
