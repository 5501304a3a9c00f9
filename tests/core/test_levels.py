import json

import pytest

from bundle.core.levels import TITLES, Level, Verification, render_json, render_text


def found(*, signed_by=(), require_signed=False, **states):
    default = {"V0": "HOLDS", "V1": "HOLDS", "V2": "NOT CHECKED", "V3": "HOLDS"}
    states = {**default, **states}
    levels = {
        name: Level(state=states.get(name, "NOT CHECKED"), reason=f"why {name}", details=("more",))
        for name in TITLES
    }
    return Verification(
        bundle="0123456789ab",
        name="tiny-0123456789ab",
        levels=levels,
        signed_by=signed_by,
        require_signed=require_signed,
    )


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ({}, 0),
        ({"V0": "FAILS"}, 10),
        ({"V0": "NOT CHECKED"}, 10),
        ({"V1": "FAILS", "V3": "FAILS"}, 11),
        ({"V2": "FAILS"}, 12),
        ({"V2": "HOLDS"}, 0),
        ({"V3": "FAILS"}, 13),
        ({"V3": "NOT CHECKED"}, 13),
        ({"V4": "FAILS"}, 14),
        ({"V5": "FAILS", "V4": "HOLDS"}, 15),
    ],
)
def test_the_first_level_that_fell_short_gives_the_exit_code(states, code):
    assert found(**states).exit_code == code


def test_a_gate_does_not_let_unsigned_bundles_through():
    assert found(require_signed=True).exit_code == 12
    assert found(require_signed=True, V2="HOLDS").exit_code == 0


def test_json_has_every_level_with_state_and_reason():
    document = json.loads(render_json(found()))
    assert document["bundle"] == "0123456789ab"
    assert document["signed_by"] is None
    assert list(document["levels"]) == ["V0", "V1", "V2", "V3", "V4", "V5"]
    assert document["levels"]["V2"] == {
        "state": "NOT CHECKED",
        "reason": "why V2",
        "details": ["more"],
    }
    assert json.loads(render_json(found(signed_by=("alice",))))["signed_by"] == ["alice"]


def test_text_never_lets_unsigned_pass_for_signed():
    assert "UNSIGNED: the bundle holds" in render_text(found())
    assert "SIGNED BY alice, bob: the bundle holds" in render_text(
        found(V2="HOLDS", signed_by=("alice", "bob"))
    )
    assert "BAD SIGNATURE: fell short at V2 (signer)" in render_text(found(V2="FAILS"))


def test_a_bundle_that_cannot_be_identified_has_no_name():
    nameless = Verification(
        bundle=None, name=None, levels=found(V0="FAILS").levels, signed_by=(), require_signed=False
    )
    text = render_text(nameless)
    assert text.startswith("bundle not identified\nV0 archive      FAILS        why V0\n   more\n")
    assert text.endswith("UNSIGNED: fell short at V0 (archive)\n")
