"""How a workload presses on a storage system (Li, section 3.1.7; ASCAR at MSST'15, slides).

The slides' set is: the types of operation and the ratios between them; for each type the average size of
sequential operations, whether the location between them is random or sequential, and the average temporal
gap. The thesis's is: type (read, write, create, delete), request size, positional gap, temporal gap. Both
are here, under one name each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar.features.gaps import positional_gaps, temporal_gaps
from ascar.features.trace import DATA, MIX, TraceOperation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ascar.features.trace import Trace

_RATIOS = {"read_to_write_ratio": ("read",), "data_to_metadata_ratio": ("read", "write")}
"""Types above in each ratio."""


def features_of(trace: Trace) -> dict[str, float]:
    """The features of a trace; nan where one has no meaning (the size of reads where there is none).

    For each TYPE of read, write, create, delete, stat, sync:

    - TYPE_share: of all operations of these types;
    - TYPE_gap_s_mean, TYPE_gap_s_relative_sd: temporal gap.

    For read and write also:

    - TYPE_size_bytes_mean, TYPE_size_bytes_relative_sd: request size;
    - TYPE_sequential_share: share of positional gaps that are zero;
    - TYPE_switch_share: share of operations that go on in another file;
    - TYPE_run_bytes_mean: bytes of a run without a gap (the slides' size of sequential operations);
    - TYPE_jump_bytes_mean: mean size of positional gaps inside a file that are not zero.

    And read_to_write_ratio, data_to_metadata_ratio (counts).
    """
    parts = {operation: trace.only(operation) for operation in MIX}
    total = sum(len(part) for part in parts.values())
    features = {f"{_name(o)}_share": len(part) / total if total else np.nan for o, part in parts.items()}
    data = sum(len(parts[operation]) for operation in DATA)
    features["read_to_write_ratio"] = _ratio(
        len(parts[TraceOperation.READ]), len(parts[TraceOperation.WRITE])
    )
    features["data_to_metadata_ratio"] = _ratio(data, total - data)
    for operation, part in parts.items():
        gaps = temporal_gaps(part)
        features[f"{_name(operation)}_gap_s_mean"] = _mean(gaps)
        features[f"{_name(operation)}_gap_s_relative_sd"] = _relative_sd(gaps)
    for operation in DATA:
        features |= {f"{_name(operation)}_{key}": value for key, value in _position(parts[operation]).items()}
    return features


def relative_differences(
    original: Mapping[str, float], other: Mapping[str, float], share_min: float = 0.0
) -> dict[str, float]:
    """How far each feature of a workload lies from that of an original: |other - original| / |original|.

    Shares are compared as they are, as differences. Left out are features that both lack, those of types that
    make up less than `share_min` of the original, ratios to or of such types, and the size of jumps where
    fewer than that jump. A feature that only one of them has is infinitely far.
    """
    differences: dict[str, float] = {}
    for name, value in original.items():
        kind = name.split("_", 1)[0]
        if original.get(f"{kind}_share", 1.0) < share_min:
            continue
        if name.endswith("_jump_bytes_mean") and _jump_share(original, kind) < share_min:
            continue
        if name in _RATIOS and _rarer(original, _RATIOS[name]) < share_min:
            continue
        given = other.get(name, np.nan)
        if np.isnan(value) and np.isnan(given):
            continue
        if np.isnan(value) or np.isnan(given):
            differences[name] = np.inf
        elif name.endswith("_share"):
            differences[name] = abs(given - value)
        else:
            differences[name] = abs(given - value) / abs(value) if value else (0.0 if given == 0 else np.inf)
    return differences


def _rarer(features: Mapping[str, float], above: tuple[str, ...]) -> float:
    """Share of what is above in a ratio, or of what is below, whichever is less."""
    share = sum(features[f"{kind}_share"] for kind in above)
    below = features["write_share"] if above == ("read",) else 1 - share
    return min(share, below)


def _jump_share(features: Mapping[str, float], kind: str) -> float:
    """Share of operations of a type that jump inside their file."""
    return 1 - features[f"{kind}_sequential_share"] - features[f"{kind}_switch_share"]


def _position(part: Trace) -> dict[str, float]:
    gaps = positional_gaps(part)
    return {
        "size_bytes_mean": _mean(part.size_bytes),
        "size_bytes_relative_sd": _relative_sd(part.size_bytes),
        "sequential_share": gaps.sequential_share,
        "switch_share": gaps.switch_share,
        "run_bytes_mean": _mean(gaps.run_bytes),
        "jump_bytes_mean": _mean(gaps.jump_bytes),
    }


def _name(operation: TraceOperation) -> str:
    return operation.name.lower()


def _ratio(above: int, below: int) -> float:
    return above / below if below else np.nan


def _mean(values: NDArray[np.float64] | NDArray[np.int64]) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def _relative_sd(values: NDArray[np.float64] | NDArray[np.int64]) -> float:
    """Standard deviation over the mean; nan without a mean to compare with."""
    mean = _mean(values)
    return float(np.std(values)) / mean if len(values) and mean > 0 else np.nan
