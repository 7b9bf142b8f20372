"""The eighteen features of storage workloads that Cao lists (section 9.3), in his order.

Positions are those of a block trace, in bytes here instead of blocks; "delta offset" is the difference
between the positions of consecutive requests, "inter-arrival" the time between them, "relative" means over
the mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar.features.trace import DATA, TraceOperation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.features.trace import Trace

CAO_FEATURES = (
    "data_position_range_bytes",
    "data_position_sd_bytes",
    "data_position_delta_sd_bytes",
    "read_interarrival_s_mean",
    "read_position_range_bytes",
    "read_position_sd_bytes",
    "read_position_delta_sd_bytes",
    "read_size_bytes_mean",
    "write_interarrival_s_mean",
    "write_position_range_bytes",
    "write_position_sd_bytes",
    "write_position_delta_sd_bytes",
    "write_size_bytes_mean",
    "read_to_write_ratio",
    "read_interarrival_relative_sd",
    "read_size_relative_sd",
    "write_interarrival_relative_sd",
    "write_size_relative_sd",
)


def cao_features(trace: Trace) -> NDArray[np.float64]:
    """The features of a trace's reads and writes.

    Returns:
        float64 (18,), in the order of `CAO_FEATURES`; nan where too few requests leave one without meaning.
    """
    both = _positions(trace.only(*DATA))
    read, write = trace.only(TraceOperation.READ), trace.only(TraceOperation.WRITE)
    read_gaps, write_gaps = np.diff(read.seconds), np.diff(write.seconds)
    ratio = len(read) / len(write) if len(write) else np.nan
    return np.array(
        [
            *both,
            *(_mean(read_gaps), *_positions(read), _mean(read.size_bytes)),
            *(_mean(write_gaps), *_positions(write), _mean(write.size_bytes)),
            ratio,
            *(_relative_sd(read_gaps), _relative_sd(read.size_bytes)),
            *(_relative_sd(write_gaps), _relative_sd(write.size_bytes)),
        ]
    )


def cao_windows(trace: Trace, window_s: float) -> NDArray[np.float64]:
    """The features of each window of so many seconds; the last, incomplete one is left out.

    Returns:
        float64 (windows, 18); nan as in `cao_features`, throughout in a window without requests.
    """
    assert window_s > 0, "a window takes time"
    data = trace.only(*DATA)
    if len(data) == 0:
        return np.empty((0, len(CAO_FEATURES)))
    start_s = data.seconds[0]
    count = int(data.duration_s / window_s)
    numbers = np.floor((data.seconds - start_s) / window_s).astype(np.int64)
    rows = [cao_features(data.where(numbers == number)) for number in range(count)]
    return np.array(rows).reshape(len(rows), len(CAO_FEATURES))


def _positions(part: Trace) -> tuple[float, float, float]:
    """Range, standard deviation, and standard deviation of the differences of positions."""
    position = part.offset_bytes.astype(np.float64)
    if len(position) == 0:
        return np.nan, np.nan, np.nan
    delta = np.diff(position)
    return float(np.ptp(position)), float(np.std(position)), float(np.std(delta)) if len(delta) else np.nan


def _mean(values: NDArray[np.float64] | NDArray[np.int64]) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def _relative_sd(values: NDArray[np.float64] | NDArray[np.int64]) -> float:
    mean = _mean(values)
    return float(np.std(values)) / mean if len(values) and mean > 0 else np.nan
