"""From what the user names to studies and runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.errors import InputError, StudyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.capes.session.study import OnlineStudy
    from ascar.catalogues import KernelSetting
    from ascar.history import History, Run
    from ascar.results.trial import Trial
    from ascar.space import Configuration, Space
    from ascar.study import GuardSection, Study

_DIGITS_MAX = 10


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What the command line confirms of a study.

    Attributes:
        devices: the block devices that may be formatted.
        server: the server, which people use, that may be tuned.
    """

    devices: Sequence[str] | None = None
    server: str | None = None

    def target(self, target: Mapping[str, Any]) -> dict[str, Any]:
        """A `[target]` table that knows of it.

        A server is confirmed for each use, whatever a file or an earlier command says.

        Raises:
            InputError: the study has no server to confirm.
        """
        if self.server is not None and "server" not in target:
            raise InputError(
                f"--allow-live {self.server!r:.200}: the study tunes no server that people use; leave it out"
            )
        devices = list(self.devices or ())
        given = {
            "confirmed_device": (devices if len(devices) > 1 else devices[0]) if devices else None,
            "confirmed_server": self.server,
        }
        asked = {key: value for key, value in target.items() if key != "confirmed_server"}
        return {**asked, **{key: name for key, name in given.items() if name is not None}}


def is_study_file(named: str) -> bool:
    """Whether the user means a file; a study's name has neither a slash nor this ending."""
    return named.endswith(".toml") or "/" in named


def read_study(path: Path, budget: str | None = None, confirmed: Confirmed | None = None) -> Study:
    """A study file, with what the command line adds to it.

    What the study names is opened once, which touches nothing: a mistake is found before the history is, a
    lock is taken or a device is looked at.

    Args:
        path: the study file.
        budget: time for all of it, instead of the study's.
        confirmed: what the user confirms.

    Raises:
        InputError: a key is wrong, or the machine lacks what the study needs.
    """
    from ascar.study import Study
    from ascar.threads import compute_on_one_thread, loading_for_one_thread

    study = _with_options(Study.read(path), budget, confirmed)
    # Mistakes are told as soon as they can be: loading the numeric libraries takes longer than all else.
    from ascar.extension import find

    for group, table, key in (
        ("ascar.systems", study.target, "target.kind"),
        ("ascar.workloads", study.workload, "workload.kind"),
        ("ascar.optimizers", study.optimizer, "optimizer.kind"),
    ):
        if table.get("kind", "function") != "function":  # a Python function is not an entry point
            find(group, str(table["kind"]), key)
    with loading_for_one_thread():
        from ascar.prepared_study import PreparedStudy

        prepared = PreparedStudy.open(study)
    compute_on_one_thread()
    from ascar.search import search_optimizer

    search_optimizer(study, prepared.space)
    return study


def _with_options(study: Study, budget: str | None, confirmed: Confirmed | None) -> Study:
    from ascar.study import duration

    if budget is not None:
        study = msgspec.structs.replace(study, budget_s=duration("--budget", budget))
    if confirmed is not None:
        study = msgspec.structs.replace(study, target=confirmed.target(study.target))
    return study


def is_online(path: Path) -> bool:
    """Whether a study file has an [online] table.

    Raises:
        StudyError: the file cannot be read.
    """
    from ascar.study import table_of_file

    return "online" in table_of_file(path)


def read_online_study(path: Path, confirmed: Confirmed) -> OnlineStudy:
    """A study of the online loop.

    Args:
        path: the study file.
        confirmed: what the user confirms.

    Raises:
        InputError: a key is wrong.
    """
    from ascar.capes.session.study import OnlineStudy

    study = OnlineStudy.read(path)
    return msgspec.structs.replace(study, target=confirmed.target(study.target))


def find_space(named: str) -> Space:
    """The whole space of a preset or of a kind of target, or what a study file leaves of its target's space.

    Raises:
        InputError: no such preset or kind, or the file is not a study.
    """
    from ascar.extension import kinds
    from ascar.space import Guarantee, preset, space_from_table
    from ascar.study import tuned_tables
    from ascar.systems import open_target

    if not is_study_file(named):
        if named in kinds("ascar.systems"):
            return open_target({"kind": named}).space
        return preset(named).permit_weaker(Guarantee)
    target, space, guard = tuned_tables(Path(named))
    return guard.constrained(space_from_table(space, open_target(target).space))


def offered_settings(named: str) -> Sequence[KernelSetting]:
    """The settings that the `[target]` table of a kind of target may name; none where it names none."""
    from ascar.extension import kinds
    from ascar.systems import system_of

    if is_study_file(named) or named not in kinds("ascar.systems"):
        return ()
    return tuple(system_of({"kind": named}).offers().values())


def find_run(history: History, named: str, *, of_any_kind: bool = False) -> Run:
    """The run that a number, a study's name or a study file means; the latest of a study.

    Args:
        history: the history.
        named: the number, the name or the file.
        of_any_kind: whether it may be a session or a search for rules.

    Raises:
        InputError: there is none of that kind, or the file is not a study.
    """
    from ascar.history import RunKind
    from ascar.study import Study

    kind = None if of_any_kind else RunKind.STUDY
    return history.run(Study.read(Path(named)).name if is_study_file(named) else named, kind)


def study_of_run(run: Run, budget: str | None, confirmed: Confirmed) -> Study:
    """The study of a run, with what the command line adds to it.

    Raises:
        InputError: this version of ascar reads study files differently, or a duration is wrong.
        Refused: the run was imported, and what its study runs is its author's.
    """
    run.check_made_here("name a study file of yours instead of the run")
    return _with_options(run.study, budget, confirmed)


def target_tables(
    run: Run, file: Path | None, allow_live: str | None
) -> tuple[Mapping[str, Any], GuardSection]:
    """`[target]` and `[guard]` of what takes a run's configuration: those of a study file, or the run's own.

    Raises:
        InputError: the file has a target of another kind, or there is no server to confirm.
        Refused: the run was imported, and its server is its author's.
    """
    from ascar.study import tuned_tables

    if file is None:
        table, guard = run.study.target, run.study.guard
        if "server" in table:
            run.check_made_here("name the server with --server and a study file of yours")
    else:
        try:
            table, _, guard = tuned_tables(file)
        except StudyError as error:
            raise StudyError(f"--server {str(file)!r:.200}: {error.message}") from error
        kind, wanted = table.get("kind"), run.study.target.get("kind")
        if kind != wanted:
            raise InputError(
                f"--server {str(file)!r:.200}: has a target of the kind {kind!r:.80}; run {run.id} is one of "
                f"the kind {wanted!r}"
            )
        if table.get("server") != "existing":
            raise InputError(
                f"--server {str(file)!r:.200}: its [target] is no server that people use; write "
                "server = 'existing' and how to reach it"
            )
    return Confirmed(None, allow_live).target(table), guard


def compared_configuration(run: Run, trial: int | None, file: Path | None) -> Configuration:
    """What `ascar verify` compares: a trial's configuration, that in a file, or the best found.

    Raises:
        InputError: no such trial, no such configuration, or nothing was found.
    """
    if trial is None and file is None:
        best = run.outcome().best
        if best is None:
            raise InputError(
                f"run {run.id}: has found no configuration to compare with the default; "
                "name one with --trial or --configuration"
            )
        return best.configuration
    return configuration_of(run, trial, file)


def reference_trial(run: Run, against: str) -> Trial | None:
    """The trial that --against names; None for the default.

    Raises:
        InputError: it is neither a trial of the run nor "default".
    """
    if against == "default":
        return None
    found = run.trial(int(against)) if against.isdecimal() and len(against) < _DIGITS_MAX else None
    if found is None:
        known = len(run.trials(readings=False))
        raise InputError(
            f"--against = {against!r}: must be default, or the number of a trial of run {run.id}, "
            f"1 to {known}"
        )
    return found


def configuration_of(run: Run, trial: int | None = None, file: Path | None = None) -> Configuration:
    """A trial's configuration, or that in a file, or the one that the run recommends.

    Raises:
        InputError: no such trial, or no such configuration.
    """
    if file is not None:
        from ascar.cli.configuration_file import read_configuration

        if trial is not None:
            raise InputError(f"--trial = {trial}: leave out either it or --configuration")
        return read_configuration(file, run.space)
    if trial is None:
        return run.outcome().recommended
    found = run.trial(trial)
    if found is None:
        known = len(run.trials(readings=False))
        raise InputError(f"--trial = {trial}: run {run.id} has no such trial; it has {known}")
    return found.configuration
