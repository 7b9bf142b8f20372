"""Tuning shares the machine with the load that it measures."""

from __future__ import annotations

import importlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def loading_for_one_thread() -> Generator[None]:
    """Numeric libraries that are loaded meanwhile use one thread, unless the environment says otherwise.

    They would take every core, and wait for each other by spinning: for matrices of our size that is slower,
    and beside a load hundreds of times so. They read the environment once, when they are loaded; it is put
    back at once, since a program that is the load inherits it.
    """
    ours = [name for name in _VARIABLES if name not in os.environ]
    os.environ.update(dict.fromkeys(ours, "1"))
    try:
        yield
    finally:
        for name in ours:
            del os.environ[name]


def compute_on_one_thread() -> None:
    """Load NumPy so that its numeric library uses one thread; what is loaded already stays as it is."""
    with loading_for_one_thread():
        importlib.import_module("numpy")
