"""The numbers of rules as a target: a study turns them, and what was there is in force again after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import StudyError
from ascar.sharp import Action, RuleSet, split
from ascar.sharp.target import RuleParameters
from ascar.systems import open_target
from ascar.testing.systems import TargetContract
from ascar.workloads import Workload
from ascar.workspace import LoadTiming

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.systems import Target

ONE = RuleSet.uniform(Action(100, 0, 20_000))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.txt"
    path.write_text(ONE.text())
    return path


class TestContract(TargetContract):
    @pytest.fixture(autouse=True)
    def rules(self, file: Path) -> None:
        self.file = file

    def options(self) -> dict[str, Any]:
        return {"rules": str(self.file), "scenario": "random-write"}

    def make(self) -> Target:
        return RuleParameters(self.options())


def test_readings_are_of_the_rules_in_force(file: Path) -> None:
    target = open_target({"kind": "rules", "rules": str(file), "scenario": "random-write", "settle": "1 s"})
    assert isinstance(target, Workload)
    pace = LoadTiming(load_min_s=2, load_max_s=4, reading_s=1, may_end=lambda _: False)
    with target:
        default = target.space.default()
        target.apply(default)
        fast = target.run(target.workspace, pace)
        slow_rules = target.space.validate({**default, "rule1_tau_us": 70_000, "rule1_m100": 30})
        change = target.apply(slow_rules)
        slow = target.run(target.workspace, pace)
    assert set(change.parameters) == {"rule1_tau_us", "rule1_m100"}
    assert fast.load_s == 4
    assert len(fast.series["throughput_mb_per_s"]) == 4
    # 20 streams with a gap of 70 ms between requests of 1 MiB.
    assert slow.metrics["throughput_mb_per_s"] == pytest.approx(20 / 0.07 * 1.048576, rel=0.3)
    assert fast.metrics["throughput_mb_per_s"] != slow.metrics["throughput_mb_per_s"]
    assert fast.metrics["tp"] == pytest.approx(fast.metrics["throughput_mb_per_s"] / 5)


def test_only_the_numbers_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "two.txt"
    path.write_text(split(ONE).text())
    made = RuleParameters({"rules": str(path), "fields": ["tau_us"], "at": [1, 3], "workload": "writers"})
    assert list(made.space.names) == ["rule1_tau_us", "rule3_tau_us"]
    configuration = made.space.validate({"rule1_tau_us": 500, "rule3_tau_us": 20_000})
    assert made.commands(configuration, ["rule1_tau_us"]) == {
        "shell": ["ascar sharp set --workload writers rule1_tau_us=500"]
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rules": "none.txt"}, "target.rules = 'none.txt': No such file or directory; give a rule file"),
        ({"fields": ["window"]}, "fields: window; allowed: m100, b100, tau_us"),
        ({"at": [2]}, "rule 2: there are rules 1 to 1"),
        ({"at": [0]}, "rule 0: there are rules 1 to 1"),
        ({"trial": "2 h"}, "target.trial = '2 h': must be at most an hour"),
        ({"settle": "soon"}, "target.settle = 'soon'"),
        ({"scenario": "nothing"}, "must be a file or one of"),
        (
            {"scenario": "random-write", "workload": "w"},
            "target.scenario: cannot be given together with workload",
        ),
        ({"workload": "a b"}, "target.workload"),
        ({"speed": 1}, "speed"),
    ],
)
def test_refused_options(file: Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(StudyError, match="^target") as caught:
        RuleParameters({"rules": str(file), **options})
    assert words in caught.value.message


def test_a_file_that_is_no_rule_set(tmp_path: Path) -> None:
    for data in (b"\xff\xfe", b"1,2\n", b"rm -rf /\n"):
        path = tmp_path / "x"
        path.write_bytes(data)
        with pytest.raises(StudyError, match="target.rules"):
            RuleParameters({"rules": str(path)})
