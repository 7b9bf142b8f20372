"""Replies, ticks and stored settings that come in parts."""

from ascar.capes.messages.folding import fold
from ascar.capes.messages.parts import add_settings, joined
from ascar.capes.messages.state import SessionState
from ascar.capes.messages.ticks import Assembler


def part(tick, at=0, parts=1, **keys):
    return {"tick": tick, "part": at, "parts": parts, "metrics": {"ops": 1.0}, "setting": {}, **keys}


def test_parts_of_a_reply_make_one_object():
    parts = [{"tick": 3, "setting": {"a": 1}, "nodes": [1]}, {"setting": {"b": 2}, "nodes": [2]}]
    assert joined(parts) == {"tick": 3, "setting": {"a": 1, "b": 2}, "nodes": [1, 2]}
    assert joined(parts[:1]) == parts[0]


def test_a_long_setting_is_put_together_and_lasts_until_the_next():
    assembler = Assembler()
    assert assembler.take(part(5, 0, 2, setting={"a": 1})) == []
    (whole,) = assembler.take(part(5, 1, 2, setting={"b": 2}))
    assert whole.setting == {"a": 1, "b": 2}
    (as_before,) = assembler.take(part(6, setting=None))
    assert as_before.setting == {"a": 1, "b": 2}
    # Of a part that was lost the values are as they were; of a whole one nothing is.
    assembler.take(part(7, 1, 2, setting={"b": 3}))
    (cut, other) = assembler.take(part(8, setting={"c": 4}))
    assert cut.setting == {"a": 1, "b": 3}
    assert other.setting == {"c": 4}


def test_a_view_of_a_session_knows_all_parts_and_who_is_cut_off():
    state = SessionState("test")
    state = fold(state, "ticks", part(5, 0, 2, setting={"a": 1}, cut_off={"bad": "names: too long"}))
    state = fold(state, "ticks", part(5, 1, 2, setting={"b": 2}))
    for tick in (6, 7):
        assert {one.key: one.value for one in state.knobs} == {"a": 1, "b": 2}
        state = fold(state, "ticks", part(tick, setting=None))
    assert {one.name: (one.is_here, one.cut_off) for one in state.nodes} == {"bad": (False, None)}
    state = fold(state, "ticks", part(8, cut_off={"bad": "names: too long"}, setting={"a": 3}))
    assert [one.cut_off for one in state.nodes] == ["names: too long"]
    assert {one.key: one.value for one in state.knobs} == {"a": 3, "b": None}


def test_stored_settings_are_whole_or_what_has_changed():
    settings = []
    add_settings(
        settings, [{"tick": 1, "setting": {"a": 1}}, {"tick": 3, "whole": True, "setting": {"a": 2}}]
    )
    add_settings(settings, [{"tick": 3, "whole": False, "setting": {"b": 2}}])
    add_settings(
        settings, [{"tick": 4, "whole": False, "setting": {"a": None, "c": 1}}, "nonsense", {"tick": "x"}]
    )
    assert settings == [(1, {"a": 1}), (3, {"a": 2, "b": 2}), (4, {"b": 2, "c": 1})]
    add_settings(settings, None)
    only_changes = []
    add_settings(only_changes, [{"tick": 9, "whole": False, "setting": {"a": 1}}])
    assert only_changes == [(9, {"a": 1})]
