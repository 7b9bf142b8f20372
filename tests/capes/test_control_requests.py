"""What people may ask of a session, in words."""

from __future__ import annotations

import pytest

from ascar.capes.messages.control_requests import control_request_of
from ascar.errors import InputError


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("kill", {}),
        ("mode approve", {"mode": "approve"}),
        ("reject a-1", {"id": "a-1"}),
        (
            "set vm.dirty_ratio=30 a@n/s=0.5 b=bfq c=true",
            {"set": {"vm.dirty_ratio": 30, "a@n/s": 0.5, "b": "bfq", "c": True}},
        ),
        ("floor ops_per_s 2e8", {"metric": "ops_per_s", "minimum": 2e8}),
        ("floor ops_per_s none", {"metric": "ops_per_s", "minimum": None}),
        ("workload end web-1", {"phase": "end", "name": "web-1", "job": ""}),
        ("audit", {"limit": 20}),
        ("audit 7", {"limit": 7}),
    ],
)
def test_words_make_a_request(words, keys):
    op, *rest = words.split()
    order = control_request_of(op, rest)
    assert (order.op, order.keys) == (op, keys)
    if "set" in keys:
        assert isinstance(order.keys["set"]["vm.dirty_ratio"], int)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("explode", "must be one of kill, revive"),
        ("kill now", "write `ascar capes control kill`"),
        ("mode", "control mode observe|approve|automatic"),
        ("mode auto", "'auto': must be one of observe, approve, automatic"),
        ("approve", "control approve ID"),
        ("set", "control set KNOB=VALUE..."),
        ("set vm.dirty_ratio", "must be KNOB=VALUE"),
        ("set a=1 a=2", "each knob once"),
        ("floor x low", "'low': must be a number, or none"),
        ("floor x nan", "'nan': must be a number, or none"),
        ("workload begin x", "'begin': must be one of start, end"),
        ("workload start ../x", "workload"),
        ("audit 0", "1 to 1000"),
    ],
)
def test_what_makes_none_is_named(words, named):
    op, *rest = words.split()
    with pytest.raises(InputError) as caught:
        control_request_of(op, rest)
    assert named in caught.value.message, caught.value.message


def test_a_job_belongs_to_a_workload():
    assert control_request_of("workload", ["start", "web"], job="17").keys["job"] == "17"
    with pytest.raises(InputError, match="applies only to `workload`"):
        control_request_of("kill", [], job="17")
