"""What every target must do: the suite that its tests subclass."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.results.export_form import EXPORT_FORMS
from ascar.systems import Target
from ascar.systems.asking import apply_checked, cycle_checked, drain_checked, sample_checked
from ascar.systems.place import Place

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager


class TargetContract:
    """Subclass it, and say in `make` how the target is made."""

    def make(self) -> Target:
        """A target, not yet entered; called anew for each test."""
        raise NotImplementedError("a subclass of TargetContract says how its target is made")

    def entered(self) -> AbstractContextManager[Target]:
        """A target in its context; where that takes long, a subclass lends the same one to each test."""
        return self.make()

    def options(self) -> Mapping[str, Any]:
        """The `[target]` table that `make` uses, without its kind."""
        return {}

    def test_it_is_a_target(self) -> None:
        with self.entered() as target:
            target.apply(target.space.default())
            assert isinstance(target, Target)

    def test_its_default_is_a_valid_configuration(self) -> None:
        space = self.make().space
        assert space.validate(space.default()) == space.default()

    def test_it_describes_itself_in_json(self) -> None:
        with self.entered() as target:
            assert json.loads(json.dumps(dict(target.describe()), allow_nan=False))

    def test_it_applies_configurations_one_after_the_other(self) -> None:
        with self.entered() as target:
            for configuration in [target.space.default(), *target.space.sample(np.random.default_rng(1), 3)]:
                change = target.apply(configuration)
                assert _seconds(change.step_s)
                assert change.category in (-1, 0, 1, 2, 3)
                assert set(change.parameters) <= set(target.space.names)
                assert _seconds(target.settle())
                place = target.workspace
                assert place.node is not None or place.directory.is_dir()

    def test_a_change_names_what_changed_and_its_category(self) -> None:
        with self.entered() as target:
            default = target.space.default()
            for neighbour in target.space.neighbours(default)[:3]:
                target.apply(default)
                change = target.apply(neighbour)
                difference = target.space.change(default, neighbour)
                assert set(difference.parameters) <= set(change.parameters)
                assert difference.category is not None
                assert change.category >= difference.category

    def test_applying_the_same_again_changes_no_parameter(self) -> None:
        with self.entered() as target:
            target.apply(target.space.default())
            assert target.apply(target.space.default()).parameters == ()

    def test_what_is_read_back_is_what_was_applied(self) -> None:
        with self.entered() as target:
            for configuration in [target.space.default(), *target.space.sample(np.random.default_rng(2), 3)]:
                apply_checked(target, configuration)
                found = target.read(tuple(configuration))
                assert {name: configuration[name] for name in found} == dict(found)

    def test_its_needs_are_said_without_touching_anything(self) -> None:
        needs = type(self.make()).needs()
        assert len({need.name for need in needs}) == len(needs)
        assert all(need.purpose for need in needs)

    def test_applying_it_speaks_of_every_chosen_parameter(self) -> None:
        target = self.make()
        configuration = next(iter(target.space.neighbours(target.space.default())), None)
        if configuration is None:
            return  # the study brings the parameters
        found = type(target).placement(self.options(), target.space, configuration, Place())
        told = {one.parameter for one in found.settings} | {
            name for one in found.left for name in one.parameters
        }
        assert set(target.space.departures(configuration)) <= told

    def test_counters_only_grow(self) -> None:
        with self.entered() as target:
            target.apply(target.space.default())
            before = dict(target.sample().counters)
            after = dict(target.sample().counters)
            assert set(before) == set(after)
            assert all(after[name] >= before[name] for name in before)

    def test_what_it_samples_is_what_it_declares(self) -> None:
        declared = self.make().sampled
        with self.entered() as target:
            target.apply(target.space.default())
            sample = target.sample()
            assert declared is None or {*sample.counters, *sample.gauges} <= declared

    def test_deferred_work_is_counted_in_amounts_and_can_be_drained(self) -> None:
        with self.entered() as target:
            configuration = target.space.default()
            target.apply(configuration)
            target.settle()
            drain_checked(target, 600)
            assert all(amount >= 0 for amount in sample_checked(target).deferred.values())
            assert cycle_checked(target, configuration, {}) >= 0

    def test_commands_are_lines_by_form(self) -> None:
        target = self.make()
        default = target.space.default()
        for form, lines in target.commands(default, target.space.names).items():
            assert form in EXPORT_FORMS
            assert not any("\n" in line for line in lines)
        assert not any(target.commands(default, ()).values())

    def test_it_can_be_left_and_made_again(self) -> None:
        for _ in range(2):
            with self.make() as target:
                json.dumps(dict(target.describe()))
                target.apply(target.space.default())

    def test_an_error_inside_is_not_swallowed(self) -> None:
        class Unexpected(Exception):
            pass

        try:
            with self.make() as target:
                target.apply(target.space.default())
                raise Unexpected
        except Unexpected:
            return
        raise AssertionError("leaving a target must not hide what went wrong inside")


def _seconds(steps: Mapping[str, float]) -> bool:
    return all(name and math.isfinite(s) and s >= 0 for name, s in steps.items())
