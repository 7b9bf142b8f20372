"""What `ascar library` prints."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # the structs' types are read at run time
from typing import Any

import msgspec

from ascar.results.measurement import Count, MaybeNan


class LibraryAddResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/library-add/1",
):
    """A workload added to a library, with the rules made for it.

    Attributes:
        workload: the name of the workload in the library.
        source: the source of its features.
        rules: the id of the rules; null without rules.
        objective: the objective of the rules.
        gain: the relative gain of these rules on this workload; null if it is not known.
        gain_low: the lower end of the gain's 95% interval.
        gain_high: the upper end of that interval.
    """

    workload: str
    source: str
    rules: str | None
    objective: str
    gain: float | None
    gain_low: float | None
    gain_high: float | None


class LibraryBootstrapResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/library-bootstrap/1",
):
    """What a library holds after a bootstrap.

    Attributes:
        library: the file of the library.
        complete: whether the bootstrap is complete; if not, the same command continues it.
        workloads: the number of workloads.
        rules: the number of different rule sets.
        gains: the number of gains of rule sets on workloads.
    """

    library: str
    complete: bool
    workloads: Count
    rules: Count
    gains: Count


class LibraryChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Null where no gain is to be expected.

    Attributes:
        rules: the id of the rules.
        made_for: the workload that the rules were made for.
        gain: the expected relative gain.
        gain_low: the lower bound of the expected gain.
        nearest: the most similar workload of the library.
        distance: the distance to that workload.
    """

    rules: str
    made_for: str
    gain: float
    gain_low: float
    nearest: str
    distance: float


class NearWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload in the library and its distance.

    Attributes:
        workload: the name of the workload.
        distance: the distance: 0 is equal, 1 has nothing in common.
    """

    workload: str
    distance: float


class LibraryFindResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/library-find/1",
):
    """The rules of which the most gain is to be expected on a workload.

    Attributes:
        workload: the name of the workload.
        objective: the objective of the rules.
        choice: the recommended rules; null if no gain is expected.
        nearest: the most similar workloads of the library.
        out: the file of the rules; null without --out or without rules.
    """

    workload: str
    objective: str
    choice: LibraryChoice | None
    nearest: tuple[NearWorkload, ...]
    out: str | None


class LibraryWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload in the library.

    Attributes:
        name: the name of the workload.
        source: the source of its features.
    """

    name: str
    source: str


class LibrarySolution(msgspec.Struct, frozen=True, kw_only=True):
    """A rule set, a configuration or a setting in the library.

    Attributes:
        id: the id of the solution.
        kind: "rules", "configuration" or "setting".
        system: the kind of the system that it is valid for; "" for rules.
        workload: the workload that it was made for.
        objective: the objective of the solution.
        gain: the gain on that workload; null if it is not known.
        tried_on: the number of workloads on which it was tried.
    """

    id: str
    kind: str
    system: str
    workload: str
    objective: str
    gain: float | None
    tried_on: Count


class LibraryLsResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/library-ls/1",
):
    """What a library holds.

    Attributes:
        workloads: the workloads.
        solutions: the rule sets, configurations and settings.
        gains: the number of gains.
    """

    workloads: tuple[LibraryWorkload, ...]
    solutions: tuple[LibrarySolution, ...]
    gains: Count


class PredictedGain(msgspec.Struct, frozen=True, kw_only=True):
    """The gain that a rule set is expected to bring.

    Attributes:
        rules: the id of the rules.
        made_for: the workload that they were made for.
        gain: the expected relative gain; above zero is better.
        sd: the standard deviation of the expected gain.
    """

    rules: str
    made_for: str
    gain: float
    sd: float


class LibraryPredictResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/library-predict/1",
):
    """What the rule sets of a library are expected to gain on a workload, the most first.

    Attributes:
        workload: the name of the workload.
        objective: the objective of the rules.
        learned_from: the number of gains that the prediction is learned from.
        predicted: the predictions, the largest gain first.
    """

    workload: str
    objective: str
    learned_from: Count
    predicted: tuple[PredictedGain, ...]


class WorkloadGain(msgspec.Struct, frozen=True, kw_only=True):
    """What a solution gained on a workload.

    Attributes:
        solution: the id of the solution.
        gain: the relative gain.
        gain_low: the lower end of its interval; null if it is not known.
        gain_high: the upper end of that interval.
        pairs: the number of pairs of runs; 0 for a gain that was given.
    """

    solution: str
    gain: float
    gain_low: float | None
    gain_high: float | None
    pairs: Count


class WorkloadDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A workload in the library, with its gains.

    Attributes:
        name: the name of the workload.
        source: the source of its features.
        at: the time at which it was added.
        features: the features of the workload.
        gains: the gains of solutions on it, the largest first.
    """

    name: str
    source: str
    at: str
    features: Mapping[str, MaybeNan]
    gains: tuple[WorkloadGain, ...]


class SolutionDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A rule set, a configuration or a setting in the library, with its content.

    Attributes:
        id: the id of the solution.
        kind: "rules", "configuration" or "setting".
        content: the text of the rule file, or the values by name.
        system: the kind of the system that it is valid for; "" for rules.
        workload: the workload that it was made for.
        objective: the objective of the solution.
        how: the way in which it was made.
        at: the time at which it was added.
    """

    id: str
    kind: str
    content: str | dict[str, Any]
    system: str
    workload: str
    objective: str
    how: str
    at: str


class FeatureShare(msgspec.Struct, frozen=True, kw_only=True):
    """A feature and its weight.

    Attributes:
        feature: the name of the feature.
        bits: the information that a change of the feature gives about a gain.
        share: the share of all information.
    """

    feature: str
    bits: float
    share: float


class LearnedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """What was learned of the features.

    Attributes:
        pairs: the number of pairs of workloads that the information comes from.
        gains: the number of gains that the tree comes from.
        features: the features with their weights.
        tree: the lines of a regression tree of gains.
    """

    pairs: Count
    gains: Count
    features: tuple[FeatureShare, ...]
    tree: tuple[str, ...]


class LibraryShowResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/library-show/1",
):
    """A workload or solution of a library, or what it has learned; the other two are null.

    Attributes:
        objective: the objective of the gains.
        workload: the workload; null unless one was named.
        solution: the solution; null unless one was named.
        learned: the weights of features and a tree of gains; null if an entry was named.
    """

    objective: str
    workload: WorkloadDetail | None
    solution: SolutionDetail | None
    learned: LearnedMetric | None
