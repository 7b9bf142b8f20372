"""Features of workloads as the library compares them: on scales on which a difference means a change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.features import features_of, pressure_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.features import Trace

ABSENT = -64.0
"""Stands for a feature without meaning, below all values that one can have on its scale."""

_RELATIVE = ("_share", "_relative_sd")
"""Ends of names of features that are compared as they are; the others are compared by their logarithm."""


@dataclass(frozen=True, slots=True)
class WorkloadObservation:
    """What was seen of a workload besides its operations; nothing has to be.

    Attributes:
        requests: the requests to servers, the level of which section 3.1.7 speaks; a thread is a stream.
        clients: nodes.
        waiting_mean: requests of a stream that waited for its window, over time.
        dirty_share: the dirty share of a stream's cache, over time.
    """

    requests: Trace | None = None
    clients: int | None = None
    waiting_mean: float = math.nan
    dirty_share: float = math.nan


_NOTHING_ELSE = WorkloadObservation()


def workload_features(trace: Trace, seen: WorkloadObservation = _NOTHING_ELSE) -> dict[str, float]:
    """The features of a workload: those of its operations, those of its requests, and how it waits.

    Those of requests have the same names and definitions (`features_of`, `pressure_of`) after "request_".

    Args:
        trace: operations of all clients together.
        seen: everything else that is known about the workload.
    """
    found = {**features_of(trace), **pressure_of(trace)}
    if seen.requests is not None:
        of_requests = {**features_of(seen.requests), **pressure_of(seen.requests)}
        found |= {f"request_{name}": value for name, value in of_requests.items() if _of_data(name)}
    found["clients"] = math.nan if seen.clients is None else float(seen.clients)
    found["waiting_mean"] = seen.waiting_mean
    found["dirty_share"] = seen.dirty_share
    return found


def _of_data(name: str) -> bool:
    """Whether requests can have it: they read or write."""
    return not name.startswith(("create_", "delete_", "stat_", "sync_", "data_to_metadata", "busy_"))


def scaled(name: str, value: float) -> float:
    """A feature on its scale: shares and relative deviations as they are, all else as binary logarithm.

    Zero of a quantity is `ABSENT`, as is a value that is not known.
    """
    if math.isnan(value):
        return ABSENT
    if name.endswith(_RELATIVE):
        return value
    return math.log2(value) if value > 0 else ABSENT


def row_of(features: Mapping[str, float], names: Sequence[str]) -> NDArray[np.float64]:
    """The named features on their scales; `ABSENT` for those that are not there."""
    return np.array([scaled(name, features.get(name, math.nan)) for name in names], np.float64)


def difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each feature of two rows lies apart: b minus a; where one alone has it, +-`ABSENT`."""
    lacks_a, lacks_b = a == ABSENT, b == ABSENT
    apart = np.where(lacks_a & ~lacks_b, -ABSENT, np.where(lacks_b & ~lacks_a, ABSENT, b - a))
    return np.where(lacks_a & lacks_b, 0.0, apart)
