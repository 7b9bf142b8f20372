"""The parts of deep Q-learning in JAX by their names, imported when a test uses one: that takes a second."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

HOMES = (
    "ascar.capes.classic.checkpoint",
    "ascar.capes.classic.descent",
    "ascar.capes.classic.learner",
    "ascar.capes.classic.steps",
    "ascar.capes.process.classic_policy",
)
needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="the extra 'drl' is not installed")


def __getattr__(name: str) -> Any:
    for home in HOMES:
        module = import_module(home)
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(name)
