"""The parameters as SMAC and MLOS have them."""

from __future__ import annotations

from typing import Any

import ConfigSpace
from asking import Values, plain


def config_space(parameters: list[dict[str, Any]], seed: int) -> ConfigSpace.ConfigurationSpace:
    """The space of these parameters."""
    space = ConfigSpace.ConfigurationSpace(seed=seed)
    space.add([_hyperparameter(one) for one in parameters])
    return space


def values_of(configuration: Any) -> Values:
    """The values of a configuration."""
    return {name: plain(value) for name, value in dict(configuration).items()}


def _hyperparameter(one: dict[str, Any]) -> Any:
    if one["kind"] == "category":
        return ConfigSpace.CategoricalHyperparameter(one["name"], list(range(one["high"] + 1)))
    make = (
        ConfigSpace.UniformIntegerHyperparameter
        if one["kind"] == "integer"
        else ConfigSpace.UniformFloatHyperparameter
    )
    return make(one["name"], one["low"], one["high"], log=one["log"])
