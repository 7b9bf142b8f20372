"""The genetic algorithm beyond the contract: operators, generations, replay, convergence."""

from __future__ import annotations

import numpy as np
import pytest
from ask_and_tell import run

from ascar.errors import StudyError
from ascar.optimizers import Evaluation
from ascar.optimizers.genes import Genes, free_parameters, other_value, random_value, step
from ascar.optimizers.genetic import GeneticAlgorithm
from ascar.optimizers.stopping import Diversity, progress_of
from ascar.results.trial import TrialState
from ascar.testing import branching, continuous, grid
from ascar.testing.optimizers import sloped


def made(space, seed=1, **options):
    return GeneticAlgorithm(space, seed=seed, options=options)


def test_the_first_generation_is_the_design_and_holds_all_of_it():
    space = grid()
    optimizer = made(space, population=8)
    told = run(optimizer, sloped(space), 8)
    assert len(optimizer.generations) == 1
    (first,) = optimizer.generations
    assert first.size == 8
    for name, counts in first.alleles.items():
        assert sum(counts.values()) == 8
        assert counts == {value: sum(one.configuration[name] == value for one in told) for value in counts}


def test_pruned_children_are_members_with_their_loss_so_far_and_failed_ones_are_none():
    space = grid()
    optimizer = made(space, population=8)
    for number in range(8):
        one = optimizer.ask()
        state = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.PRUNED, TrialState.FAILED)[number % 4]
        loss = None if state is TrialState.FAILED else 1.0 + number
        optimizer.tell(Evaluation(one, state, loss))
    (first,) = optimizer.generations
    assert first.size == 6
    best = optimizer.ledger.best()
    assert best is not None
    assert best[1].loss == 1.0
    estimates = sorted(record.estimate for record in optimizer.ledger.records.values() if record.estimate)
    assert estimates == [1.0, 2.0, 3.0, 5.0, 6.0, 7.0]


def test_start_configurations_are_members_of_the_first_generation():
    space = branching()
    start = tuple(dict.fromkeys(space.sample(np.random.default_rng(5), 3)))
    optimizer = GeneticAlgorithm(space, seed=1, start=start, options={"population": 4})
    run(optimizer, sloped(space), 4)
    assert sum(optimizer.generations[0].alleles["fs"].values()) == 4
    assert all(optimizer.ledger.records[one].seen for one in start)


def test_crossover_takes_genes_from_both_sides_of_the_cut():
    space = grid()
    genes, rng = Genes.of(space), np.random.default_rng(1)
    one, two = space.sample(rng, 2)
    for cut in range(1, len(space)):
        child = genes.cross(one, two, cut, rng)
        assert all(child[name] == (one if at < cut else two)[name] for at, name in enumerate(space.names))


def test_crossover_and_mutation_of_conditional_genes_are_valid():
    space = branching()
    genes, rng = Genes.of(space), np.random.default_rng(2)
    for _ in range(300):
        one, two = space.sample(rng, 2)
        child = genes.cross(one, two, int(rng.integers(1, len(space))), rng)
        assert space.is_valid(child)
        for name in genes.mutable(child):
            other = genes.mutate(child, name, rng)
            assert space.is_valid(other)


def test_a_mutated_gene_keeps_its_new_value_and_free_genes_stay():
    space = branching()
    genes, rng = Genes.of(space), np.random.default_rng(3)
    kept = 0
    for _ in range(300):
        (one,) = space.sample(rng, 1)
        for name in genes.mutable(one):
            drawn = []

            def draw(domain, value, rng, drawn=drawn):
                drawn.append(other_value(domain, value, rng))
                return drawn[-1]

            child = genes.mutate(one, name, rng, draw)
            assert child[name] == drawn[0], name
            assert child["ahead_kb"] == one["ahead_kb"] or name == "ahead_kb"
            kept += 1
    assert kept > 500


def test_a_gene_that_becomes_active_takes_other_values_than_its_default():
    space = branching()
    genes, rng = Genes.of(space), np.random.default_rng(4)
    ext = space.default()
    blocks = set()
    for _ in range(60):
        btrfs = genes.mutate(ext, "fs", rng, lambda domain, value, rng: "btrfs")
        blocks.add(btrfs["compress"])
    assert blocks == {False, True}


def test_free_parameters_are_those_that_nothing_mentions():
    assert free_parameters(grid()) == set(grid().names)
    assert free_parameters(branching()) == {"level", "ahead_kb"}


def test_random_values_cover_the_domain_and_steps_stay_in_it():
    rng = np.random.default_rng(6)
    for space in (branching(), continuous(), grid()):
        for name in space.names:
            domain = space.domain(name)
            value = random_value(domain, rng)
            seen = set()
            for _ in range(200):
                stepped = step(domain, value, rng)
                assert domain.canonical(stepped) == stepped
                assert stepped != value
                seen.add(stepped)
                value = stepped
            if domain.size is not None and domain.size <= 5:
                assert len(seen) == domain.size


def test_a_population_converges_and_the_search_goes_on():
    space = grid()
    optimizer = made(space, mutation=0.02)
    told = run(optimizer, sloped(space), 150)
    assert len({one.configuration for one in told}) == 150
    late = optimizer.generations[-1]
    assert late.converged_share(80) >= 60
    reason = Diversity(80, 60, mutations=0)(progress_of(told, 1.0, generations=optimizer.generations))
    assert reason is not None


def test_without_mutation_and_crossover_there_is_still_something_new():
    space = grid()
    told = run(made(space, mutation=0.0, crossover=0.0), sloped(space), 60)
    assert len({one.configuration for one in told}) == 60


@pytest.mark.parametrize("selection", ["tournament", "rank", "roulette"])
def test_every_selection_prefers_the_better(selection):
    space, loss = grid(), sloped(grid())
    found = [
        min(one.loss for one in run(made(space, seed, selection=selection, mutation=0.1), loss, 80))
        for seed in range(6)
    ]
    chance = [min(loss(one) for one in space.sample(np.random.default_rng(seed), 80)) for seed in range(6)]
    assert np.mean(found) < np.mean(chance)


def test_mutation_towards_the_unvisited_tries_more_values():
    space = continuous()
    loss = lambda one: one["ratio"]  # noqa: E731

    def spread(towards):
        told = run(made(space, mutation_towards=towards, mutation=0.3), loss, 60)
        return len({one.configuration["mode"] for one in told}), len(told)

    assert spread("unvisited")[1] == spread("any")[1] == 60


def test_replay_goes_on_exactly_after_every_prefix():
    space = branching()
    whole = run(made(space, mutation=0.1), sloped(space), 40)
    for stop in (1, 7, 8, 9, 23):
        rebuilt = made(space, mutation=0.1)
        for evaluation in whole[:stop]:
            rebuilt.tell(evaluation)
        assert [one.configuration for one in run(rebuilt, sloped(space), 10)] == [
            one.configuration for one in whole[stop : stop + 10]
        ]


def test_failed_children_end_a_generation_and_are_no_members():
    space = grid()
    optimizer = made(space)
    run(optimizer, sloped(space), 8)
    for _ in range(8):
        optimizer.tell(Evaluation(optimizer.ask(), TrialState.FAILED, None))
    members = optimizer.generations[-1]
    assert members.size == 8
    assert len(optimizer.generations) >= 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"population": 1}, "optimizer.population = 1: must be from 2"),
        ({"mutation": 1.5}, "optimizer.mutation = 1.5: must be from 0 to 1"),
        ({"crossover": -0.1}, "optimizer.crossover"),
        ({"elite": 8}, "optimizer.elite = 8: must be from 0 to 7"),
        ({"selection": "best"}, "optimizer.selection"),
        ({"mutations": 0.1}, "did you mean 'mutation'"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(StudyError, match=message):
        made(grid(), **options)
