"""Benchmarks of servers: each case is a study that starts from a wrong setting and can say the right one."""

from __future__ import annotations

import pytest

from ascar.errors import EnvironmentLacks
from ascar.space import study_space
from ascar.systems import open_target
from ascar.workloads import open_workload
from benchmarks import deferred_work, mis_set


@pytest.mark.parametrize("name", sorted(mis_set.CASES))
def test_a_mis_set_server_is_a_study_from_the_wrong_setting(name, tmp_path):
    case = mis_set.CASES[name]
    study = case.study(str(tmp_path))
    try:
        target = open_target(study.target)
        open_workload(study.workload)
    except EnvironmentLacks as lack:
        pytest.skip(lack.message)
    if case.place == "path" and not {case.parameter, *case.tuned} <= set(target.space.names):
        pytest.skip("the tests lie on no disk with an ext4 file system")
    space = study_space(study, target.space)
    assert space.default()[case.parameter] == case.wrong
    right = space.nearest({**space.default(), case.parameter: case.right})
    assert right[case.parameter] == case.right
    assert {name for name in space.names if name not in space.pinned} == {case.parameter, *case.tuned}


def test_a_row_says_what_was_won_back_of_what_was_lost():
    scores = {"wrong": [100.0, 110.0], "right": [200.0, 210.0], "recommended": [190.0, 202.0]}
    study = {"recommended": {"work_mem": 5000}, "verdict": "improved", "seconds": 240.0, "trials": 30}
    line = mis_set.row("sorts", mis_set.CASES["sorts"], study, scores)
    assert line[1] == "`work_mem` 256, 65536, 5000"
    assert line[5].startswith("91%")
    assert line[6] == "improved, 4.0 min, 30 trials"


def test_the_trap_of_checkpoints_is_at_the_ends_of_what_is_searched(tmp_path):
    trap = deferred_work.TRAPS["checkpoints"]
    study = trap.study({"kind": "postgresql", "directory": str(tmp_path)})
    try:
        target = open_target(study.target)
    except EnvironmentLacks as lack:
        pytest.skip(lack.message)
    space = study_space(study, target.space)
    default = space.default()
    assert {name: default[name] for name in trap.default} == trap.default
    other = space.validate({**default, **trap.other})
    assert all(other[name] == target.space[name].domain.high for name in trap.other)


def test_the_trap_of_a_log_that_is_never_rewritten_changes_that_alone(tmp_path):
    trap = deferred_work.TRAPS["append-only log"]
    study = trap.study({"kind": "redis", "directory": str(tmp_path), **trap.keys})
    try:
        target = open_target(study.target)
        open_workload(study.workload)
    except EnvironmentLacks as lack:
        pytest.skip(lack.message)
    space = study_space(study, target.space)
    default = space.default()
    assert (default["appendonly"], default["save"], default["rdbcompression"]) == (True, "", False)
    assert default["auto_aof_rewrite_percentage"] == 100
    other = space.validate({**default, **trap.other})
    assert dict(other) == {**default, "auto_aof_rewrite_percentage": 0}
