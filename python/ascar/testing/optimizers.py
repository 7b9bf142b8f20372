"""What every optimizer must do: the suite that its tests subclass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ascar.errors import Exhausted, SpaceError, StudyError
from ascar.optimizers import Evaluation, Optimizer
from ascar.results.trial import TrialState
from ascar.space import Choices, Configuration
from ascar.testing.spaces import branching, continuous, grid, tiny

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ascar.space import Domain, Space, Value


def sloped(space: Space) -> Callable[[Configuration], float]:
    """A loss with structure: each parameter has a best place of its own; absent ones cost."""

    def loss(configuration: Configuration) -> float:
        total = 0.0
        for index, name in enumerate(space.names):
            best = (0.2, 0.8, 0.5)[index % 3]
            present = name in configuration
            total += (_place(space.domain(name), configuration[name]) - best) ** 2 if present else 0.5
        return total

    return loss


def _place(domain: Domain, value: Value) -> float:
    """Where a value lies among those of its domain, 0 to 1."""
    if isinstance(domain, Choices):
        return domain.values.index(value) / max(1, len(domain.values) - 1)
    assert isinstance(value, (int, float)), "a range holds numbers"
    return 1.0 if value in domain.special else domain.position(value)


class OptimizerContract:
    """Subclass it, and say what makes the optimizer: `make = Mine`.

    `make(space, seed=..., start=..., options=...)` is how the study's loop makes it.

    Attributes:
        make: the optimizer's class, or a function with its arguments.
        options: the `[optimizer]` table's other keys.
        trials: the number of evaluations in the longer tests.
    """

    make: ClassVar[Any]
    options: ClassVar[Mapping[str, Any]] = {}
    trials: ClassVar[int] = 40

    # Tools of the tests.

    def built(self, space: Space, seed: int = 1, start: tuple[Configuration, ...] = ()) -> Optimizer:
        """The optimizer under test."""
        return type(self).make(space, seed=seed, start=start, options=dict(self.options))

    @staticmethod
    def told(
        optimizer: Optimizer,
        configuration: Configuration,
        loss: float | None,
        state: TrialState = TrialState.COMPLETE,
        error: float | None = None,
    ) -> Evaluation:
        """Tell it one evaluation."""
        evaluation = Evaluation(configuration, state, loss, error, 1.0)
        optimizer.tell(evaluation)
        return evaluation

    def run(self, optimizer: Optimizer, space: Space, trials: int) -> list[Evaluation]:
        """Ask and tell a loss with structure and some noise, one after the other, until told or exhausted."""
        loss, rng = sloped(space), np.random.default_rng(7)
        history: list[Evaluation] = []
        for _ in range(trials):
            try:
                asked = optimizer.ask()
            except Exhausted:
                break
            history.append(self.told(optimizer, asked, loss(asked) + 0.01 * rng.normal()))
        return history

    # The contract.

    def test_it_is_an_optimizer(self) -> None:
        assert isinstance(self.built(tiny()), Optimizer)

    def test_proposals_are_valid_and_no_two_are_alike(self) -> None:
        for space in (branching(), grid(), continuous()):
            asked = [one.configuration for one in self.run(self.built(space), space, self.trials)]
            assert len(asked) == self.trials, space.name
            assert all(space.validate(one) == one for one in asked), space.name
            assert len(set(asked)) == len(asked), space.name

    def test_a_small_space_is_exhausted_without_a_duplicate(self) -> None:
        space = tiny()
        optimizer = self.built(space)
        asked = [one.configuration for one in self.run(optimizer, space, 100)]
        assert sorted(map(str, asked)) == sorted(map(str, space.enumerate()))
        for _ in range(2):
            assert _exhausted(optimizer)

    def test_a_space_of_one_configuration_is_exhausted_after_it(self) -> None:
        space = grid().pin({name: grid()[name].default for name in grid().names})
        optimizer = self.built(space)
        assert optimizer.ask() == space.default()
        assert _exhausted(optimizer)

    def test_start_configurations_come_first(self) -> None:
        space = branching()
        start = (space.default(), *space.sample(np.random.default_rng(3), 2))
        optimizer = self.built(space, start=start)
        assert [one.configuration for one in self.run(optimizer, space, 3)] == list(start)

    def test_a_start_configuration_that_is_known_is_not_proposed_again(self) -> None:
        space = branching()
        optimizer = self.built(space, start=(space.default(),))
        self.told(optimizer, space.default(), 1.0)
        self.told(optimizer, space.default(), 1.1)
        assert space.default() not in [one.configuration for one in self.run(optimizer, space, 10)]

    def test_the_same_seed_proposes_the_same_and_another_does_not(self) -> None:
        space = branching()
        same, again, other = (
            [one.configuration for one in self.run(self.built(space, seed), space, 20)] for seed in (5, 5, 6)
        )
        assert same == again
        assert same != other

    def test_several_asks_may_be_outstanding_and_told_in_any_order(self) -> None:
        space = grid()
        optimizer, loss = self.built(space), sloped(space)
        asked: list[Configuration] = []
        for _ in range(4):
            out = [optimizer.ask() for _ in range(7)]
            asked += out
            for one in reversed(out):
                self.told(optimizer, one, loss(one))
        assert len(set(asked)) == len(asked)

    def test_all_configurations_may_be_outstanding_at_once(self) -> None:
        space = tiny()
        optimizer = self.built(space)
        out = [optimizer.ask() for _ in space.enumerate()]
        assert len(set(out)) == len(out)
        assert _exhausted(optimizer)
        self.told(optimizer, out[3], None, TrialState.INTERRUPTED)
        assert optimizer.ask() == out[3]

    def test_an_interrupted_configuration_may_be_proposed_again(self) -> None:
        space = tiny()
        optimizer = self.built(space)
        lost = optimizer.ask()
        self.told(optimizer, lost, None, TrialState.INTERRUPTED)
        asked = [one.configuration for one in self.run(optimizer, space, 100)]
        assert asked.count(lost) == 1

    def test_configurations_never_asked_for_are_learned_and_not_proposed(self) -> None:
        space = tiny()
        optimizer = self.built(space)
        known = list(space.enumerate())[:6]
        for index, one in enumerate(known):
            self.told(optimizer, one, float(index))
        asked = [one.configuration for one in self.run(optimizer, space, 100)]
        assert not set(asked) & set(known)
        assert len(asked) + len(known) == 11

    def test_failed_pruned_and_quarantined_configurations_are_not_proposed_again(self) -> None:
        space = tiny()
        optimizer = self.built(space)
        states = (TrialState.FAILED, TrialState.PRUNED, TrialState.QUARANTINED, TrialState.COMPLETE)
        asked: list[Configuration] = []
        for number in range(11):
            one = optimizer.ask()
            state = states[number % 4]
            self.told(optimizer, one, 1.0 if state in ("pruned", "complete") else None, state)
            asked.append(one)
        assert len(set(asked)) == 11
        assert _exhausted(optimizer)

    def test_a_quarantined_configuration_is_never_proposed(self) -> None:
        space = tiny()
        optimizer = self.built(space, start=(space.default(),))
        self.told(optimizer, space.default(), None, TrialState.QUARANTINED)
        assert space.default() not in [one.configuration for one in self.run(optimizer, space, 100)]

    def test_a_search_in_which_everything_fails_goes_on(self) -> None:
        space = grid()
        optimizer = self.built(space)
        asked: set[Configuration] = set()
        for _ in range(self.trials):
            one = optimizer.ask()
            asked.add(one)
            self.told(optimizer, one, None, TrialState.FAILED)
        assert len(asked) == self.trials

    def test_losses_of_any_size_are_taken(self) -> None:
        space = grid()
        for losses in (
            [3.0] * self.trials,
            [(-1.0) ** n * 1e300 for n in range(self.trials)],
            [1e-300 * n for n in range(self.trials)],
            [float("inf") if n % 2 else float("nan") for n in range(self.trials)],
        ):
            optimizer = self.built(space)
            asked: set[Configuration] = set()
            for loss in losses:
                one = optimizer.ask()
                asked.add(one)
                self.told(optimizer, one, loss)
            assert len(asked) == self.trials

    def test_standard_errors_of_any_size_are_taken(self) -> None:
        space = grid()
        optimizer, loss = self.built(space), sloped(space)
        for number in range(self.trials):
            one = optimizer.ask()
            self.told(
                optimizer, one, loss(one), error=(None, 0.0, 0.1, 1e6, float("inf"), float("nan"))[number % 6]
            )

    def test_the_same_configuration_may_be_told_again(self) -> None:
        space = grid()
        optimizer = self.built(space)
        one = optimizer.ask()
        for loss in (1.0, 2.0, 3.0):
            self.told(optimizer, one, loss)
        self.told(optimizer, one, None, TrialState.FAILED)
        assert one not in [other.configuration for other in self.run(optimizer, space, 20)]

    def test_told_its_history_it_goes_on_as_if_never_stopped(self) -> None:
        for space in (branching(), grid()):
            optimizer, rebuilt = self.built(space), self.built(space)
            for evaluation in self.run(optimizer, space, 25):
                rebuilt.tell(evaluation)
            onward, resumed = (
                [one.configuration for one in self.run(each, space, 10)] for each in (optimizer, rebuilt)
            )
            assert onward == resumed, space.name

    def test_whatever_becomes_of_batches_only_valid_and_new_ones_are_proposed(self) -> None:
        """Batches of any size, told in any order, whole or in part, failed and pruned; restarts in between.

        A configuration that is known is proposed again only as a re-measurement, which `reason` says.
        """
        states = (TrialState.COMPLETE, TrialState.FAILED, TrialState.PRUNED, TrialState.INTERRUPTED)
        for space, seed in ((branching(), 1), (branching(), 2), (continuous(), 3)):
            loss, rng = sloped(space), np.random.default_rng(seed)
            optimizer, history = self.built(space, seed), list[Evaluation]()
            out: list[Configuration] = []
            known: set[Configuration] = set()
            while len(history) < self.trials:
                for _ in range(int(rng.integers(1, 5))):
                    one = optimizer.ask()
                    assert space.validate(one) == one, space.name
                    labelled = getattr(optimizer, "reason", "") == "re-measurement"
                    assert labelled or (one not in known and one not in out), f"{one} a second time"
                    out.append(one)
                for at in sorted(rng.permutation(len(out))[: int(rng.integers(1, 5))].tolist(), reverse=True):
                    one, state = out.pop(at), states[int(rng.choice(4, p=(0.6, 0.15, 0.15, 0.1)))]
                    measured = state in (TrialState.COMPLETE, TrialState.PRUNED)
                    value = loss(one) + 0.05 * rng.normal() if measured else None
                    history.append(self.told(optimizer, one, value, state))
                    if state is not TrialState.INTERRUPTED:
                        known.add(one)
                if rng.random() < 0.1:  # what was out is lost, and may be proposed anew
                    optimizer, out = self.built(space, seed), []
                    for evaluation in history:
                        optimizer.tell(evaluation)

    def test_it_finds_better_than_the_middling(self) -> None:
        space = grid()
        loss = sloped(space)
        middle = float(np.median([loss(one) for one in space.enumerate()]))
        found = [loss(one.configuration) for one in self.run(self.built(space), space, 60)]
        assert min(found) < 0.6 * middle

    def test_an_unknown_option_is_named(self) -> None:
        try:
            type(self).make(tiny(), seed=1, start=(), options={**self.options, "no_such_key": 1})
        except StudyError as error:
            assert "no_such_key" in error.message
        else:
            raise AssertionError("an unknown option must be refused with a StudyError")

    def test_an_invalid_start_configuration_is_refused(self) -> None:
        wrong = Configuration({"kind": "a", "size": 3})
        try:
            self.built(tiny(), start=(wrong,)).ask()
        except SpaceError as error:
            assert "size" in error.message
        else:
            raise AssertionError("a start configuration that is not valid must be refused with a SpaceError")


def _exhausted(optimizer: Optimizer) -> bool:
    try:
        optimizer.ask()
    except Exhausted:
        return True
    return False
