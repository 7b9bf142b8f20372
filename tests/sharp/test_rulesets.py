"""Rule sets that come with the program."""

from __future__ import annotations

import msgspec
import pytest

from ascar.errors import InputError
from ascar.sharp import objective_of
from ascar.sharp.rulesets import RULESETS, ruleset
from ascar.sharp.trials.bench import metrics_of
from ascar.simulation import PRESETS, preset, with_rule_text, with_settings
from ascar.simulation.batch import run_many

SEEDS = 3


@pytest.mark.parametrize("name", RULESETS)
def test_each_is_better_than_the_scenario_that_it_was_made_for(name):
    load = name.removesuffix("-even").removesuffix("-sizes")
    assert load in PRESETS
    objective = objective_of("tp-stdev:1" if name.endswith("-even") else "throughput")
    clients = ["clients[0].count=20"] if name.endswith("-sizes") else []
    own = with_settings(preset(load), ["duration_s=20", *clients])
    sides = [with_rule_text(own, ruleset(name).text()), own]
    seeded = [msgspec.structs.replace(side, seed=900_000 + seed) for side in sides for seed in range(SEEDS)]
    scores = [objective.score(metrics_of(one)) for one in run_many(seeded)]
    assert sum(scores[:SEEDS]) > sum(scores[SEEDS:])


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="did you mean 'random-write'"):
        ruleset("random-writes")
    with pytest.raises(InputError, match="must be one of"):
        ruleset("../rules")
