"""Every optimizer keeps the contract."""

from __future__ import annotations

from types import MappingProxyType

from ascar.optimizers.annealing import SimulatedAnnealing
from ascar.optimizers.auto import Auto
from ascar.optimizers.genetic import GeneticAlgorithm
from ascar.optimizers.random import RandomSearch
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


class TestAuto(OptimizerContract):
    make = Auto
