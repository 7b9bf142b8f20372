"""Stopping criteria against progress written down by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ascar.optimizers.stopping import (
    AllOf,
    AnyOf,
    Diversity,
    Generation,
    SearchState,
    TargetReached,
    TimeLimit,
    TrialLimit,
    WindowWithoutGain,
    progress_of,
)


def progress(**changes):
    return SearchState(
        **({"elapsed_s": 0.0, "trials": 0, "trials_without_gain": 0, "loss_best": None} | changes)
    )


@pytest.mark.parametrize(
    ("criterion", "going", "ended"),
    [
        (TimeLimit(10), {"elapsed_s": 9.9}, {"elapsed_s": 10.0}),
        (TrialLimit(5), {"trials": 4}, {"trials": 5}),
        (
            WindowWithoutGain(8),
            {"trials_without_gain": 7, "loss_best": 1.0},
            {"trials_without_gain": 8, "loss_best": 1.0},
        ),
        (
            TargetReached(formula="x > 1"),
            {"loss_best": -5.0, "targets_met": frozenset({"x > 2"})},
            {"targets_met": frozenset({"x > 1"})},
        ),
        (TargetReached(2.0), {"loss_best": 2.1}, {"loss_best": 2.0}),
    ],
)
def test_each_criterion_ends_at_its_limit_and_not_before(criterion, going, ended):
    assert criterion(progress(**going)) is None
    assert criterion(progress(**ended))


def test_a_window_does_not_end_a_search_in_which_everything_failed():
    assert WindowWithoutGain(3)(progress(trials=50, trials_without_gain=50)) is None


def test_progress_counts_gains_of_complete_trials_only():
    told = [
        ("complete", 5.0),
        ("failed", None),
        ("complete", 3.0),
        ("pruned", 1.0),  # a lower bound is no gain
        ("interrupted", None),  # not counted at all
        ("complete", 4.0),
    ]
    at = progress_of([SimpleNamespace(state=state, loss=loss) for state, loss in told], 7.0)
    assert (at.trials, at.trials_without_gain, at.loss_best, at.elapsed_s) == (5, 2, 3.0, 7.0)


def generation(mutations, *genes, size=10):
    return Generation({f"gene{i}": dict(counts) for i, counts in enumerate(genes)}, size, mutations)


ALIKE = {"a": 8, "b": 2}
MIXED = {"a": 7, "b": 3}


def test_a_gene_converges_at_m_percent_and_the_population_at_n_percent():
    assert generation(0, ALIKE, ALIKE, ALIKE, ALIKE, MIXED).converged_share(80) == 80.0
    assert generation(0, ALIKE, MIXED).converged_share(80) == 50.0
    assert generation(0, ALIKE, MIXED).converged_share(70) == 100.0


def test_diversity_waits_for_the_mutations_after_convergence():
    before = generation(50, MIXED, MIXED)
    after = generation(4, ALIKE, ALIKE)
    assert Diversity(mutations=0)(progress(generations=(before,))) is None
    assert Diversity(mutations=0)(progress(generations=(before, after)))
    assert Diversity(mutations=9)(progress(generations=(before, after, after))) is None
    assert Diversity(mutations=9)(progress(generations=(before, after, after, after)))


def test_a_population_that_diversifies_again_is_not_converged():
    converged, mixed = generation(20, ALIKE, ALIKE), generation(0, MIXED, MIXED)
    assert Diversity()(progress(generations=(converged, mixed))) is None
    assert Diversity()(progress()) is None


def test_any_and_all_compose():
    both = progress(elapsed_s=10.0, trials=5)
    one = progress(elapsed_s=10.0, trials=4)
    pair = (TimeLimit(10), TrialLimit(5))
    assert AnyOf(pair)(one)
    assert AllOf(pair)(one) is None
    assert "time" in AllOf(pair)(both)
    assert "trials" in AllOf(pair)(both)
    assert AnyOf((AllOf(pair), TrialLimit(4)))(one)
    assert AnyOf(())(both) is None
    assert AllOf(())(both) is None
