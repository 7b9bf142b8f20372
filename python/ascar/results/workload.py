"""Results of `ascar workload`."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotations
from typing import Literal

import msgspec

from ascar.results.measurement import Count, MaybeNan


class RecordSource(msgspec.Struct, frozen=True, kw_only=True):
    """The source of a recorded workload.

    Attributes:
        kind: the kind of the source.
        pid: the number of the process; null for other sources.
        command: the command; empty for other sources.
        trace: the file of the trace; null for other sources.
        form: the format of the trace or record: strace, blkparse, ...
        slowdown: the factor by which recording slowed the process down; null if it is not known. Temporal
            gaps are corrected for it.
    """

    kind: Literal["process", "command", "trace"]
    pid: Count | None
    command: tuple[str, ...]
    trace: str | None
    form: str
    slowdown: float | None


class ReplayCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of a replayed signature with its original.

    Attributes:
        directory: the directory in which the signature was replayed.
        differences: the relative difference of each feature, |other - original| / |original|, and |other -
            original| for shares; null if only one of them has the feature.
        far: the features that differ by more than 0.1; never the deviations of temporal gaps, which a
            signature does not reproduce.
        distance: the distance of the two workloads: 0 is equal, 1 has nothing in common.
    """

    directory: str
    differences: Mapping[str, MaybeNan]
    far: tuple[str, ...]
    distance: float


class TraceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a trace.

    Attributes:
        operations: the number of operations.
        seconds: the time from the start of the first operation to the start of the last.
        threads: the number of threads.
        files: the number of files, or of devices in a block trace.
    """

    operations: Count
    seconds: float
    threads: Count
    files: Count


class WorkloadRecordResult(
    TraceFacts, frozen=True, kw_only=True, tag_field="schema", tag="ascar/workload-record/1"
):
    """A recorded workload and its signature.

    Attributes:
        source: the source of the record.
        features: the features of the workload; null if a feature has no meaning, such as the size of reads in
            a workload without reads.
        file: the file of the signature; null if it was only printed.
        wml: the signature in Filebench's language.
        replay: the result of --replay-in; null without it.
    """

    source: RecordSource
    features: Mapping[str, MaybeNan]
    file: str | None
    wml: str
    replay: ReplayCheck | None


class WorkloadFeatures(TraceFacts, frozen=True, kw_only=True):
    """The features of one workload.

    Attributes:
        file: the file of the trace.
        form: the format of the trace.
        features: the features of the workload; null if a feature has no meaning, such as the size of reads in
            a workload without reads.
        cao_features: the eighteen features of Cao, section 9.3.
    """

    file: str
    form: str
    features: Mapping[str, MaybeNan]
    cao_features: Mapping[str, MaybeNan]


class WorkloadFeaturesResult(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="ascar/workload-features/1"
):
    """The features of workloads, and the distances between them.

    Attributes:
        workloads: the workloads.
        distances: the distances of all pairs, in the order of the workloads: 0 is equal, 1 has nothing in
            common.
        differences: the difference of each feature of two workloads from the first one; null unless there are
            exactly two workloads.
    """

    workloads: tuple[WorkloadFeatures, ...]
    distances: tuple[tuple[float, ...], ...]
    differences: Mapping[str, MaybeNan] | None
