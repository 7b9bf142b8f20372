"""Results of `ascar workload`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.measurement import Count


class RecordSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where a workload was recorded.

    Attributes:
        trace: its file.
        form: of the trace or record: strace, blkparse, ...
        slowdown: how much slower a process went while it was recorded; gaps in time are without
            that. null: not known.
    """

    kind: Literal["process", "command", "trace"]
    pid: Count | None
    command: tuple[str, ...]
    trace: str | None
    form: str
    slowdown: float | None


class ReplayCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What --replay-in found.

    Attributes:
        differences: by feature, |other - original| / |original|, of shares |other - original|;
            null: only one has it.
        far: features off by more than 0.1; never the deviations of temporal gaps, which a signature
            does not reproduce.
    """

    directory: str
    differences: dict[str, float | None]
    far: tuple[str, ...]
    distance: float


class WorkloadRecordResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/workload-record/1",
):
    """A workload, and the short one that stands for it.

    Attributes:
        seconds: from the first operation's begin to the last one's.
        files: files, or devices of a block trace.
        features: null: has no meaning here, e.g. the size of reads where there are none.
        file: where the workload was written; null: only told here.
        wml: the workload, in Filebench's language.
        replay: what --replay-in found.
    """

    source: RecordSource
    operations: Count
    seconds: float
    threads: Count
    files: Count
    features: dict[str, float | None]
    file: str | None
    wml: str
    replay: ReplayCheck | None


class WorkloadFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """The features of one workload.

    Attributes:
        seconds: from the first operation's begin to the last one's.
        files: files, or devices of a block trace.
        features: null: has no meaning here, e.g. the size of reads where there are none.
        cao_features: the eighteen of Cao, section 9.3.
    """

    file: str
    form: str
    operations: Count
    seconds: float
    threads: Count
    files: Count
    features: dict[str, float | None]
    cao_features: dict[str, float | None]


class WorkloadFeaturesResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/workload-features/1",
):
    """The features of workloads, and how alike they are.

    Attributes:
        distances: between all pairs, in the order of the workloads: 0 alike, 1 nothing in common.
        differences: of exactly two workloads, the first being the original.
    """

    workloads: tuple[WorkloadFeatures, ...]
    distances: tuple[tuple[float, ...], ...]
    differences: dict[str, float | None] | None
