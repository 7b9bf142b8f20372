"""`[guard]`: its mistakes, what it makes of a space, and when it allows changes."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest

from ascar.errors import ExpressionError, SpaceError, StudyError
from ascar.prepared_study import PreparedStudy
from ascar.space import ChangeCost, Space, categorical, integer
from ascar.study import GuardSection, Study

SPACE = Space(
    (
        integer("depth", (1, 64), default=8, cost=ChangeCost.DYN_KERNEL),
        categorical("mode", ("safe", "fast"), default="safe", cost=ChangeCost.DYN_KERNEL),
        integer("burst", (1, 9), default=1, cost=ChangeCost.DYN_KERNEL, when='mode == "fast"'),
    )
)
SUNDAY = datetime(2026, 11, 22, 12, 0).astimezone()


def guard(**tables) -> GuardSection:
    found = msgspec.convert(tables, GuardSection)
    found.check()
    return found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flour = 3", "guard.*flour"),
        ("floor = 3", "guard.floor"),
        ("[[guard.floor]]\nmetric = 'm'", r"guard.floor\[0\]: missing field `minimum`"),
        ("[[guard.ceiling]]\nmetric = 'm'\nmaximum = nan", r"guard.ceiling\[0\].maximum"),
        ("[[guard.ceiling]]\nmetric = 'm'\nmaximum = inf", r"guard.ceiling\[0\].maximum"),
        ("[[guard.floor]]\nmetric = 'a b'\nminimum = 1", "guard: 'a b >= 1'"),
        (
            "[[guard.floor]]\nmetric = 'm'\nminimum = 'half'",
            r"guard.floor\[0\].minimum = 'half': must be a number, or a share",
        ),
        (
            "[[guard.floor]]\nmetric = 'm'\nminimum = '120%'",
            r"guard.floor\[0\].minimum = '120%': must be from 0% to 100%",
        ),
        (
            "[[guard.ceiling]]\nmetric = 'm'\nmaximum = '80%'",
            r"guard.ceiling\[0\].maximum = '80%': must be from 100% to 10000%",
        ),
        (
            "[[guard.floor]]\nmetric = 'm'\nminimum = '80%'\nwindow_ticks = 0",
            r"guard.floor\[0\].window_ticks",
        ),
        ("[[guard.floor]]\nmetric = 'm'\nminimum = 1\nwindow_ticks = -1", r"guard.floor\[0\].window_ticks"),
        ("[[guard.rule]]\nforbid = 'a <'\nwhy = ''", r"guard.rule\[0\].forbid: formula 'a <', position 4"),
        ("[[guard.rule]]\nforbid = 'a < 1'", r"guard.rule\[0\]: missing field `why`"),
        (
            "[[guard.window]]\nfrom = '24:00'\nto = '06:00'",
            r"guard.window\[0\].from = \"24:00\": must be HH:MM",
        ),
        (
            "[[guard.window]]\nfrom = 07:00:00\nto = '06:00'",
            r"guard.window\[0\].from = 07:00:00: must be a text",
        ),
        ("[guard.pace.depth]\nchange_max = -1", "guard.pace.depth.change_max = -1: must be above 0"),
    ],
)
def test_mistakes_are_named_by_their_keys(text, message):
    text = text if text.startswith("[") else f"[guard]\n{text}"
    study = '[study]\nname = "s"\nobjective = "maximize x"\nbudget = "1 min"\n[target]\nkind = "sqlite"\n'
    with pytest.raises(StudyError, match=message) as caught:
        Study.parse(study + text)
    assert "\n" not in caught.value.message


def test_floors_and_ceilings_are_constraints_of_a_study():
    study = Study.parse(
        '[study]\nname = "s"\nobjective = "maximize x"\nbudget = "1 min"\nconstraints = ["z < 3"]\n'
        '[target]\nkind = "sqlite"\n[[guard.floor]]\nmetric = "x"\nminimum = 1e3\n'
        '[[guard.ceiling]]\nmetric = "y"\nmaximum = 5\n'
    )
    assert [str(one) for one in study.constraints] == ["z < 3", "x >= 1000", "y <= 5"]


def test_rules_over_parameters_alone_are_constraints_of_the_space():
    one = guard(rule=[{"forbid": 'mode == "fast" and depth > 32', "why": "it stalls"}])
    space = one.constrained(SPACE)
    assert space.is_valid({"depth": 40, "mode": "safe"})
    assert space.is_valid({"depth": 32, "mode": "fast", "burst": 1})
    assert not space.is_valid({"depth": 33, "mode": "fast", "burst": 1})
    assert one.broken(SPACE, {"depth": 40, "mode": "fast", "burst": 1}) == (), "the space has excluded it"
    with pytest.raises(SpaceError, match="default"):
        guard(rule=[{"forbid": "depth == 8", "why": ""}]).constrained(SPACE)


def test_rules_over_metrics_judge_results():
    one = guard(rule=[{"forbid": "burst > 3 and latency_ms > 9", "why": "it stalls"}])
    assert one.constrained(SPACE) is SPACE
    fast = {"depth": 8, "mode": "fast", "burst": 5}
    assert one.broken(SPACE, {**fast, "latency_ms": 10.0}) == (
        "not (burst > 3 and latency_ms > 9): it stalls",
    )
    assert one.broken(SPACE, {**fast, "latency_ms": 8.0}) == ()
    assert one.broken(SPACE, {"depth": 8, "mode": "safe", "latency_ms": 10.0}) == (), "burst does not apply"
    with pytest.raises(ExpressionError, match="needs 'latency_ms', which is neither"):
        one.broken(SPACE, fast)


def test_windows_say_how_long_they_are_closed():
    nights = guard(window=[{"days": ["sat"], "from": "22:00", "to": "06:00"}])
    assert nights.closed_s(SUNDAY.replace(hour=5, minute=59)) == 0, "the night belongs to Saturday"
    assert nights.closed_s(SUNDAY.replace(hour=6)) == timedelta(days=6, hours=16).total_seconds()
    assert nights.closed_s(SUNDAY - timedelta(hours=14, seconds=30)) == 30
    assert guard().closed_s(SUNDAY) == 0
    assert guard(window=[{"from": "07:00", "to": "07:00"}]).closed_s(SUNDAY) == 0, "the whole day"


def test_other_windows_are_the_same_study_and_other_limits_are_not():
    text = '[study]\nname = "s"\nobjective = "maximize x"\nbudget = "1 min"\n[target]\nkind = "sqlite"\n'
    window = '[[guard.window]]\nfrom = "22:00"\nto = "06:00"\n'
    floor = '[[guard.floor]]\nmetric = "x"\nminimum = 1\n'
    assert Study.parse(text).digest == Study.parse(text + window).digest
    assert Study.parse(text).digest != Study.parse(text + floor).digest


def test_a_share_is_a_limit_of_its_own_and_no_formula():
    found = guard(
        floor=[{"metric": "rate", "minimum": "82.5 %", "window_ticks": 5}, {"metric": "rate", "minimum": 3}],
        ceiling=[{"metric": "wait", "maximum": "150%"}],
    )
    assert [str(one) for one in found.limits] == ["rate >= 3"]
    levels = [(one.metric, one.is_floor, one.value, one.is_share, one.window_ticks) for one in found.levels]
    assert levels == [
        ("rate", True, 0.825, True, 5),
        ("rate", True, 3.0, False, None),
        ("wait", False, 1.5, True, None),
    ]


def test_a_share_of_a_system_that_nobody_uses_is_refused():
    text = '[study]\nname = "s"\nobjective = "maximize operations"\nbudget = "1 min"\n'
    text += '[target]\nkind = "sqlite"\n'
    study = Study.parse(f"{text}[[guard.floor]]\nmetric = 'throughput_ops_per_s'\nminimum = '80%'\n")
    with pytest.raises(
        StudyError, match=r"guard.floor\[0\].minimum = '80%': must be a number; a share is kept"
    ):
        PreparedStudy.open(study)
