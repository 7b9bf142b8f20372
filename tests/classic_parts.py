"""The parts of deep Q-learning in JAX by their names, imported when a test uses one: that takes a second."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

HOMES = {
    "Classic": "ascar.capes.classic.learner",
    "ClassicBatch": "ascar.capes.classic.learner",
    "ClassicPolicy": "ascar.capes.process.classic_policy",
    "action_between": "ascar.capes.process.classic_policy",
    "descend": "ascar.capes.classic.descent",
    "first_moments": "ascar.capes.classic.descent",
    "first_state": "ascar.capes.classic.steps",
    "make_step": "ascar.capes.classic.steps",
    "read_header": "ascar.capes.classic.checkpoint",
    "restore": "ascar.capes.classic.checkpoint",
    "save": "ascar.capes.classic.checkpoint",
    "sizes_of": "ascar.capes.classic.steps",
    "values_of": "ascar.capes.classic.steps",
}
needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="the extra 'drl' is not installed")


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(name)
    return getattr(import_module(HOMES[name]), name)
