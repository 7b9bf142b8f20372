"""Every optimizer keeps the contract."""

from __future__ import annotations

from types import MappingProxyType

from ascar.optimizers.annealing import SimulatedAnnealing
from ascar.optimizers.auto import Auto
from ascar.optimizers.dqn import DeepQNetwork
from ascar.optimizers.genetic import GeneticAlgorithm
from ascar.optimizers.gp import GaussianSearch
from ascar.optimizers.random import RandomSearch
from ascar.optimizers.trees import TreesSearch
from ascar.testing.optimizers import OptimizerContract
from ascar.testing.spaces import tiny


class TestRandomSearch(OptimizerContract):
    make = RandomSearch


class TestLinearAnnealing(OptimizerContract):
    make = SimulatedAnnealing


class TestGeometricAnnealing(OptimizerContract):
    make = SimulatedAnnealing
    options = MappingProxyType({"cooling": "geometric"})


class TestGeneticAlgorithm(OptimizerContract):
    make = GeneticAlgorithm


class TestGaussianSearch(OptimizerContract):
    make = GaussianSearch


def test_what_a_gaussian_search_chooses_by_decides_what_it_tries_after_its_design():
    space, tried = tiny(), set[tuple[str, ...]]()
    for name in ("expected-improvement", "probability-of-improvement", "confidence-bound"):
        optimizer = GaussianSearch(space, seed=1, options={"acquisition": name, "design": 3})
        asked = [str(one.configuration) for one in OptimizerContract().run(optimizer, space, 100)]
        assert sorted(asked) == sorted(map(str, space.enumerate()))
        tried.add(tuple(asked))
    assert len({asked[:3] for asked in tried}) == 1
    assert len(tried) > 1


class TestTreesSearch(OptimizerContract):
    make = TreesSearch


class TestAuto(OptimizerContract):
    make = Auto
    options = MappingProxyType({"remeasure": False})


class Remeasuring(OptimizerContract):
    """`auto` as it is by default: what the contract says of proposals that are made once does not hold."""

    make = Auto


def test_auto_says_so_where_it_proposes_a_configuration_again():
    Remeasuring().test_whatever_becomes_of_batches_only_valid_and_new_ones_are_proposed()


def test_auto_measures_again_where_noise_hides_the_best():
    space, contract = tiny(), Remeasuring()
    optimizer = contract.built(space)
    told = contract.run(optimizer, space, 30)
    assert len({one.configuration for one in told}) < len(told), "else the test above shows nothing"


class TestDeepQNetwork(OptimizerContract):
    make = DeepQNetwork
