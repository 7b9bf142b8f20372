"""Every optimizer keeps the contract."""

from __future__ import annotations

from ascar.optimizers.auto import Auto
from ascar.optimizers.genetic import GeneticAlgorithm
from ascar.optimizers.random import RandomSearch
from ascar.testing.optimizers import OptimizerContract


class TestRandomSearch(OptimizerContract):
    make = RandomSearch


class TestGeneticAlgorithm(OptimizerContract):
    make = GeneticAlgorithm


class TestAuto(OptimizerContract):
    make = Auto
