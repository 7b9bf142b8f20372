"""Readings of several nodes as one series (Li's thesis, section 6.3.1: a distributed mode)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ascar.errors import InputError
from ascar.results.measurement import Series

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

How = Literal["sum", "mean"]

# A node that tells nothing for so many of its usual steps was not heard, rather than late.
_STEPS_SILENT = 3.0
_INSTANTS_MAX = 20_000_000


@dataclass(frozen=True, slots=True)
class Combined:
    """One series made of several.

    Attributes:
        series: the combined series, with a reading for each instant at which every node reported.
        nodes: the number of nodes.
        left_out: instants of the common time at which some node was silent.
    """

    series: Series
    nodes: int
    left_out: int


def combine(nodes: Mapping[str, Series], how: How = "sum", step_s: float | None = None) -> Combined:
    """Bring readings of several nodes to common instants and add them up, or average them.

    A reading stands for the time since the one before it, so the value of an instant is the time-weighted
    mean over its step: exact for rates, however the nodes' readings lie in time. Only the time during which
    every node was measured counts.

    Args:
        nodes: the readings of at least one node, by name; the clocks must agree.
        how: "sum" for what adds up (throughput), "mean" for what does not (latency).
        step_s: seconds between instants; None: the longest usual step of any node.

    Raises:
        InputError: a node has fewer than two readings, or the nodes have no time in common.
    """
    if not nodes:
        raise InputError("no nodes to combine: give the readings of at least one")
    for name, series in nodes.items():
        if len(series) < 2:
            raise InputError(f"node {name!r} has {len(series)} readings: at least 2 are needed to combine it")
    usual_s = {name: float(np.median(np.diff(series.seconds))) for name, series in nodes.items()}
    width_s = max(usual_s.values()) if step_s is None else step_s
    start_s = max(float(series.seconds[0]) - usual_s[name] for name, series in nodes.items())
    end_s = min(float(series.seconds[-1]) for series in nodes.values())
    steps = int((end_s - start_s) / width_s + 1e-9) if width_s > 0 else 0
    if not 1 <= steps <= _INSTANTS_MAX:
        raise InputError(
            f"{len(nodes)} nodes have {max(0.0, end_s - start_s):g} s in common, in steps of {width_s:g} s: "
            f"must be 1 to {_INSTANTS_MAX} steps; check that their clocks agree"
        )
    edges = np.asarray(start_s + width_s * np.arange(steps + 1), np.float64)
    total = np.zeros(steps)
    heard = np.ones(steps, np.bool_)
    for name, series in nodes.items():
        values, known = _resampled(series, usual_s[name], edges)
        total += values
        heard &= known
    if not heard.any():
        raise InputError(f"at no instant do all {len(nodes)} nodes have readings; leave out the silent one")
    values = total[heard] / (len(nodes) if how == "mean" else 1)
    return Combined(Series(edges[1:][heard], values), len(nodes), int(steps - heard.sum()))


def _resampled(
    series: Series, usual_s: float, edges: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Time-weighted means between neighbouring edges, and where they rest on readings."""
    at_s = np.concatenate([[series.seconds[0] - usual_s], series.seconds])
    lengths = np.diff(at_s)
    integral = np.concatenate([[0.0], np.cumsum(series.values * lengths)])
    means = np.diff(np.interp(edges, at_s, integral)) / np.diff(edges)
    silent = np.concatenate([[0.0], np.cumsum(np.where(lengths > _STEPS_SILENT * usual_s, lengths, 0.0))])
    return means, np.diff(np.interp(edges, at_s, silent)) <= 0
