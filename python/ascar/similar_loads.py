"""What helped loads like this one: taken from the library into a study, and kept there by it (Cao 9.5)."""

from __future__ import annotations

import hashlib
from statistics import fmean
from typing import TYPE_CHECKING

import msgspec

from ascar.errors import AscarError
from ascar.events import Event
from ascar.library import GainEntry, Library, Similarity, nearest
from ascar.optimizers.proposals import Proposal
from ascar.results.trial import Origin, Purpose
from ascar.systems.asking import sample_checked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ascar.campaign import Campaign
    from ascar.results.outcome import Outcome
    from ascar.study import Study

_CHANGE_METRICS = ("change_s", "change_cost_s", "load_s")
"""Of the change of configuration and the study's durations, not of the load."""

_NAME_MAX = 80
_WAIT_S = 10.0


def library_of(study: Study, path: Path | None) -> Library | None:
    """The library that a study starts from; None where it does not ask for one, or there is none yet.

    Raises:
        InputError: the library is damaged, or is of a newer version.
    """
    if not study.start.library_trials or path is None or not path.exists():
        return None
    return Library.read(path)


def load_signature(campaign: Campaign) -> dict[str, float]:
    """What the load is like under the default: means of its metrics, totals of the system a second.

    Only loads on one kind of system have the same metrics, so that only those are compared.
    """
    totals = sample_checked(campaign.prepared.target).counters
    found: dict[str, list[float]] = {}
    for trial in campaign.of(Purpose.DEFAULT):
        load_s = sum(trial.stage_s.get(stage, 0.0) for stage in ("load", "drain"))
        for name, value in trial.metrics.items():
            if name.startswith("deferred_"):
                continue  # as long as the load is
            if name not in _CHANGE_METRICS and (name not in totals or load_s > 0):
                found.setdefault(name, []).append(value / load_s if name in totals else value)
    return {name: fmean(values) for name, values in sorted(found.items())}


def proposals(campaign: Campaign, library: Library | None) -> list[Proposal]:
    """The configurations that improved the loads most like this one, the most similar load first.

    Only of the same kind of system and for the same objective; a configuration that is not valid here gives
    way to the nearest one that is, and those that were tried already are left out.

    Args:
        campaign: its default has been measured.
        library: the library; None: there are no proposals.
    """
    if library is None:
        return []
    study, space = campaign.prepared.study, campaign.prepared.space
    gained = {
        (workload, key): gain
        for (key, workload, objective), gain in library.gains.items()
        if objective == study.objective.text
        and library.solutions[key].kind == "configuration"
        and library.solutions[key].system == study.target["kind"]
        and any(name in space for name in library.solutions[key].values)
        and (gain.low or 0.0) > 0
    }
    known = {workload: library.workloads[workload].values for workload, _ in gained}
    signature = load_signature(campaign)
    names = sorted(signature.keys() | {name for one in known.values() for name in one})
    alike = nearest(signature, known, Similarity({name: 1 / len(names) for name in names}).distance)
    tried = {trial.configuration for trial in campaign.trials}
    found: dict[object, Proposal] = {}
    for neighbour in alike:
        best_first = sorted(
            (-gain.gain, key) for (workload, key), gain in gained.items() if workload == neighbour.name
        )
        for loss, key in best_first:
            configuration = space.nearest(library.solutions[key].values)
            reason = f"gained {-loss:.1%} on {neighbour.name}, at a distance of {neighbour.distance:.2f}"
            if configuration not in tried:
                found.setdefault(configuration, Proposal(configuration, Origin.LIBRARY, reason))
    return list(found.values())[: study.start.library_trials]


def remember(campaign: Campaign, outcome: Outcome, path: Path | None) -> None:
    """Keep a proven gain in the library, with the load that it was proven on and what it is valid for.

    Gains on systems of virtual time are not kept: they hold for no machine. A study does not fail because its
    library cannot be written; the listener is told why.
    """
    verdict, is_virtual = outcome.verdict, campaign.prepared.day is None
    if path is None or is_virtual or verdict.kind != "improved" or verdict.gain_relative is None:
        return
    study = campaign.prepared.study
    signature = load_signature(campaign)
    try:
        with Library.writing(path, wait_s=_WAIT_S) as library:
            workload = library.add_workload(
                _workload_name(study.name, signature), signature, f"run {outcome.run_id}, study {study.name}"
            )
            found = library.add_configuration(
                outcome.recommended,
                workload.name,
                study.objective.text,
                study.target["kind"],
                f"ascar tune, run {outcome.run_id}",
            )
            library.add_gain(
                GainEntry(
                    found.id,
                    workload.name,
                    study.objective.text,
                    verdict.gain_relative,
                    verdict.gain_low,
                    verdict.gain_high,
                    verdict.runs_per_side,
                )
            )
    except AscarError as problem:
        campaign.listener(Event("not-remembered", {"reason": problem.message}))


def _workload_name(study: str, signature: Mapping[str, float]) -> str:
    """One load, one name: what the study calls it, and the digest of what was seen of it."""
    text = msgspec.json.encode(signature, order="deterministic")
    return f"{study[:_NAME_MAX]}-{hashlib.sha256(text).hexdigest()[:8]}"
