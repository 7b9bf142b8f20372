"""Numbers in rules as parameters, and back."""

from __future__ import annotations

import pytest

from ascar.errors import InputError
from ascar.optimizers import Evaluation, open_optimizer
from ascar.results.trial import TrialState
from ascar.sharp import Action, RuleSet, split
from ascar.sharp.ranges import FIELDS
from ascar.sharp.rule_knobs import knobs, space_of, with_values
from ascar.sharp.running import SimulatedRunning
from ascar.simulation import preset

RULES = split(RuleSet.uniform(Action(-1, -30, 20_000)), axes=(0,))


def test_every_field_of_every_rule_is_a_parameter() -> None:
    found = knobs(RULES)
    assert [one.name for one in found] == [
        f"rule{number}_{field}" for number in (1, 2) for field in ("m100", "b100", "tau_us")
    ]
    defaults = {one.name: one.default for one in found}
    assert defaults["rule2_m100"] == 100  # "do not multiply"
    assert (defaults["rule1_b100"], defaults["rule1_tau_us"]) == (-30, 20_000)
    assert [one.name for one in knobs(RULES, ("tau_us",), (1,))] == ["rule2_tau_us"]


def test_values_come_back_as_rules() -> None:
    turned = with_values(RULES, {"rule2_m100": 50, "rule2_b100": 200, "rule1_tau_us": 0})
    assert [one.action for one in turned.rules] == [Action(100, -30, 0), Action(50, 200, 20_000)]
    assert [one.region for one in turned.rules] == [one.region for one in RULES.rules]
    assert RuleSet.parse(turned.text()) == turned
    assert with_values(RULES, {}) == RULES


def test_any_configuration_of_the_space_is_a_rule_set() -> None:
    space = space_of(RULES)
    default = space.default()
    assert with_values(RULES, dict(default)) == RULES
    low = {one.name: int(FIELDS[one.name.partition("_")[2]].lower) for one in space.parameters}
    assert {one.action for one in with_values(RULES, low).rules} == {Action(30, -234, 0)}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rule3_m100": 100}, "is not a knob"),
        ({"rule0_m100": 100}, "is not a knob"),
        ({"rule01_m100": 100}, "is not a knob"),
        ({"rule1_window": 100}, "is not a knob"),
        ({"x" * 500: 1}, "is not a knob"),
        ({"rule1_tau_us": 70_001}, "rule1_tau_us"),
        ({"rule1_m100": 99.5}, "rule1_m100"),
        ({"rule1_m100": "many"}, "rule1_m100"),
    ],
)
def test_refused_values(values: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        with_values(RULES, values)


def test_refused_knobs() -> None:
    for arguments in (((),), (("window",),), (("m100",), (2,)), (("m100",), (-1,))):
        with pytest.raises(InputError):
            knobs(RULES, *arguments)


def test_numbers_outside_of_the_table_widen_their_range() -> None:
    (_, _, tau) = knobs(RuleSet.uniform(Action(100, 0, 90_000)))
    assert (tau.default, tau.canonical(0), tau.canonical(90_000)) == (90_000, 0, 90_000)
    with pytest.raises(InputError):
        tau.canonical(90_001)


@pytest.mark.parametrize("action", [Action(0, 300, 0), Action(0, 3_200, 50_000), Action(20, 100, 0)])
def test_the_window_of_a_rule_that_sets_one_goes_from_1_to_64(action: Action) -> None:
    """What most searches end with: m = 0, b the window."""
    rules = RuleSet.uniform(action)
    for window in (1, 7, 64):
        (rule,) = with_values(rules, {"rule1_b100": 100 * window}).rules
        assert rule.action == Action(action.m100, 100 * window, action.tau_us)
    assert with_values(rules, {"rule1_m100": 0}).rules[0].action.m100 == 0
    assert with_values(rules, dict(space_of(rules).default())) == rules


def test_a_rule_that_closes_the_window_can_be_turned() -> None:
    rules = RuleSet.uniform(Action(0, -50, 0))
    assert with_values(rules, {"rule1_b100": -234}).rules[0].action.b100 == -234
    assert with_values(rules, dict(space_of(rules).default())) == rules


def test_an_optimizer_turns_them_while_the_cluster_runs() -> None:
    """Two rules, six knobs, forty settings of ten seconds each, on a running cluster."""
    start = split(RuleSet.uniform(Action(100, 0, 20_000)), axes=(2,))
    running = SimulatedRunning(preset("random-write"), start)

    def measured(rules: RuleSet, seconds: float) -> float:
        running.try_out(rules)
        return running.measure(rules, 4.0, seconds)["throughput_mb_per_s"]

    space = space_of(start)
    optimizer = open_optimizer({"kind": "trees"}, space, seed=1, start=(space.default(),))
    seen: list[tuple[float, RuleSet]] = []
    for _ in range(40):
        asked = optimizer.ask()
        rules = with_values(start, dict(asked))
        seen.append((measured(rules, 10.0), rules))
        optimizer.tell(Evaluation(asked, TrialState.COMPLETE, -seen[-1][0]))
    best = max(seen, key=lambda one: one[0])[1]
    assert measured(best, 60.0) > 1.05 * measured(start, 60.0)
