"""What `ascar apply` has in force is known: a study would take it for the machine's own default."""

from __future__ import annotations

import pytest
from localfs_support import ROOT

from ascar.systems.applied import applied_knobs
from ascar.systems.keeper import Keeper, restore_all

pytestmark = [*ROOT, pytest.mark.machine]
KNOB = "vm.laptop_mode"  # no study and no other test sets it


def test_what_is_held_is_known_until_it_is_restored(tmp_path):
    assert applied_knobs(tmp_path) == {}
    with Keeper("apply x", state_dir=tmp_path, hold=True) as keeper:
        before = keeper.knob_read(KNOB).value
        keeper.knob_write(KNOB, 7)
        held_meanwhile = applied_knobs(tmp_path)
    held = applied_knobs(tmp_path)
    restore_all(state_dir=tmp_path, everything=True)
    assert held_meanwhile == {}, "what a running session sets is not there to stay"
    assert held == {KNOB: "7"}
    assert applied_knobs(tmp_path) == {}
    assert str(before) != "7"


@pytest.mark.parametrize(
    "text", ["", "{", "[]\n", '{"schema": 99}\n"held"\n', '{"boot_id": "x", "schema": 1}\n"held"\n']
)
def test_journals_that_are_none_are_passed_over(tmp_path, text):
    (tmp_path / "1-1.jsonl").write_text(text)
    assert applied_knobs(tmp_path) == {}
