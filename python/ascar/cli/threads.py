"""Tuning shares the machine with the load that it measures."""

from __future__ import annotations

import importlib
import os
import sys

_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def compute_on_one_thread() -> None:
    """Load the numeric libraries so that they use one thread, unless the environment says otherwise.

    They would take every core, and wait for each other by spinning: for matrices of our size that is slower,
    and beside a load hundreds of times so. They read the environment once, when they are loaded; it is put
    back at once, since a program that is the load inherits it.
    """
    if "numpy" in sys.modules:
        return
    ours = [name for name in _VARIABLES if name not in os.environ]
    os.environ.update(dict.fromkeys(ours, "1"))
    try:
        for name in ("numpy", "scipy.linalg"):  # each brings a library of its own
            importlib.import_module(name)
    finally:
        for name in ours:
            del os.environ[name]
