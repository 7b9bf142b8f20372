"""Features of a workload from what its clients do, and from what reaches the servers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.features import features_of, pressure_of

if TYPE_CHECKING:
    from ascar.features import Trace


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
