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


class TestTreesSearch(OptimizerContract):
    make = TreesSearch


class TestAuto(OptimizerContract):
    make = Auto
    options = MappingProxyType({"remeasure": False})


class TestDeepQNetwork(OptimizerContract):
    make = DeepQNetwork
