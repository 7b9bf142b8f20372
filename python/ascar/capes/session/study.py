"""A study of the online loop: the file's tables as one frozen value, every mistake named by its key."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar.errors import StudyError
from ascar.messaging import token
from ascar.objective import Objective
from ascar.study import (
    GuardSection,
    called,
    check_value,
    convert,
    duration,
    on_node,
    study_table,
    study_text,
    within,
    words_in,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PHASE_TICKS_MAX = 600
"""Of a phase of the proof; so many ticks are kept."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_TABLES_MAX = 1000
_EVERY_KEYS = {"session", "connection", "messaging"}
_OWN_KEYS = {
    "agent": {*_EVERY_KEYS, "node", "interval_s", "contact_s", "collector", "average", "knob", "program"},
    "interface": {
        *(*_EVERY_KEYS, "interval_s", "database", "mode", "prometheus", "retention"),
        *("knob", "metric", "floor", "ceiling", "rule", "window"),
    },
    "learner": {*_EVERY_KEYS, "algorithm", "objective", "weights"},
}


class OnlineStudySection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[study]` of the online loop.

    Attributes:
        name: letters, digits, ".", "_" and "-", at most 80.
        objective: "maximize FORMULA" or "minimize FORMULA" over metrics of a tick; or a list of several.
        budget: the duration of the session; without it the session lasts until `down`.
        weights: the weights of several objectives, in their order; equal by default.
        seed: the seed of all random choices.
    """

    name: str
    objective: str | tuple[str, ...]
    budget: str | None = None
    weights: tuple[float, ...] = ()
    seed: int = 1


class ProofSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[online.proof]`: the comparison of tuned and untuned phases in turns.

    Attributes:
        after: the learner is left alone for so long before the first phase.
        phase: length of a phase.
        settle: the warm-up of each phase, which does not count.
        p_value: probability of an interval that does not hold the gain.
    """

    after: str = "10 min"
    phase: str = "45 s"
    settle: str = "6 s"
    p_value: float = 0.05


class OnlineSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[online]`: how the processes of the session work.

    Attributes:
        session: the name of the session; the default is the study's name.
        node: the name of this machine in the session.
        interval_s: length of a tick.
        mode: observe (actions are recorded, nothing is changed), approve (each waits for somebody) or
            automatic.
        algorithm: modern or classic.
        contact_s: the time without a message from the interface after which the agent puts every value back.
        load: the load is run for so long at a time, and begun anew.
        collector: the indicators that the agent reads; the default is the target's device, vm, memory, cpu
            and pressure, and what the target tells of itself.
        average: moving averages, as in the agent's file.
        metric: the inputs of objective, floors and rules, as in the interface's file; another name in the
            objective is the load's metric of that name.
        retention: the limits of the replay database, as in the interface's file.
        prometheus: HOST:PORT for the interface's own metrics.
        agent: other keys of the agent's file.
        interface: other keys of the interface's file.
        learner: other keys of the learner's file.
        proof: the comparison with the baseline.
    """

    session: str | None = None
    node: str = "node"
    interval_s: float = 1.0
    mode: Literal["observe", "approve", "automatic"] = "automatic"
    algorithm: Literal["modern", "classic"] = "modern"
    contact_s: float = 30.0
    load: str = "5 min"
    collector: tuple[dict[str, Any], ...] = ()
    average: tuple[dict[str, Any], ...] = ()
    metric: tuple[dict[str, Any], ...] = ()
    retention: dict[str, Any] = {}
    prometheus: str | None = None
    agent: dict[str, Any] = {}
    interface: dict[str, Any] = {}
    learner: dict[str, Any] = {}
    proof: ProofSection = ProofSection()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    study: OnlineStudySection
    online: OnlineSection
    target: dict[str, Any]
    space: dict[str, Any] = {}
    workload: dict[str, Any] | None = None
    guard: GuardSection = GuardSection()
    node: tuple[dict[str, Any], ...] = ()
    # Those of `ascar tune`, which a session leaves alone: one file serves both loops.
    measurement: dict[str, Any] = {}
    optimizer: dict[str, Any] = {}
    start: dict[str, Any] = {}
    stop: dict[str, Any] = {}
    verify: dict[str, Any] = {}
    recommend: dict[str, Any] = {}


class OnlineStudy(msgspec.Struct, frozen=True):
    """What is tuned while it works.

    Attributes:
        name: the name of the study.
        session: the name of the session.
        objective: the objective, or the compromise between several.
        objectives: the texts of the objectives for the learner.
        weights: the weights of several objectives.
        duration_s: the duration of the session; None means until `down`.
        seed: the seed of all random choices.
        target: the `[target]` table.
        space: the `[space]` table.
        workload: the `[workload]` table; None: whatever runs.
        online: the `[online]` table.
        guard: the `[guard]` table.
        load_s: length of one run of the load.
        after_s: the time before the first phase of the proof.
        phase_s: the length of a phase.
        settle_s: the warm-up of a phase.
        text: the study file.
    """

    name: str
    session: str
    objective: Objective
    objectives: tuple[str, ...]
    weights: tuple[float, ...]
    duration_s: float | None
    seed: int
    target: dict[str, Any]
    space: dict[str, Any]
    workload: dict[str, Any] | None
    online: OnlineSection
    guard: GuardSection
    load_s: float
    after_s: float
    phase_s: float
    settle_s: float
    text: str = ""

    @classmethod
    def read(cls, path: Path) -> OnlineStudy:
        """Read a study file; paths of a workload file and in commands are relative to its folder.

        Raises:
            StudyError: the file cannot be read, or a key is wrong.
        """
        study = cls.parse(study_text(path, "name a file that can be read"), called(path))
        folder = path.parent.absolute()
        collectors = tuple(words_in(one, folder) for one in study.online.collector)
        online = msgspec.structs.replace(study.online, collector=collectors)
        study = msgspec.structs.replace(study, online=online, target=words_in(study.target, folder))
        if study.workload is not None:
            workload = words_in(study.workload, folder)
            if isinstance(wml := workload.get("wml"), str):
                workload["wml"] = str(path.parent / wml)
            study = msgspec.structs.replace(study, workload=workload)
        return study

    @classmethod
    def parse(cls, text: str, what: str = "study file") -> OnlineStudy:
        """Read a study from TOML text.

        Args:
            text: the text.
            what: the file in the user's words, for errors.

        Raises:
            StudyError: a key is unknown, missing, of the wrong type or out of range.
        """
        table = study_table(text, what)
        if "capes" in table:
            raise StudyError(
                "capes: is now [online], with [guard] and [space.parameters]; docs/howto/capes.md says which "
                "key went where"
            )
        if "online" not in table:
            raise StudyError(
                "online: missing; a study of the online loop has an [online] table, which may be empty; "
                "a study without is for `ascar tune`"
            )
        if "target" not in table:
            raise StudyError(
                "target: missing; write the kind of a system that `ascar doctor` lists; "
                "`ascar init KIND --online` writes its table"
            )
        file = convert(table, _File)
        _check_study(file.study)
        _check_online(file.online)
        file.guard.check()
        file.guard.check_no_share("a session keeps no share; `ascar tune` does, on a server that people use")
        given = file.study.objective
        texts = (given,) if isinstance(given, str) else given
        objectives = [Objective.parse(one, f"study.objective[{at}]") for at, one in enumerate(texts)]
        proof = file.online.proof
        phase_s, settle_s = duration("online.proof.phase", proof.phase), _seconds(proof.settle)
        ticks = (phase_s - settle_s) / file.online.interval_s
        if not 3 <= ticks <= PHASE_TICKS_MAX:
            raise StudyError(
                f"online.proof.phase = {proof.phase!r}: must be longer than settle, {proof.settle!r}, "
                f"by 3 to {PHASE_TICKS_MAX} ticks"
            )
        return cls(
            name=file.study.name,
            session=token(
                "online.session", file.online.session or re.sub(r"[^A-Za-z0-9_-]", "-", file.study.name)
            ),
            objective=Objective.compromise(objectives, file.study.weights),
            objectives=tuple(texts),
            weights=file.study.weights,
            duration_s=None if file.study.budget is None else duration("study.budget", file.study.budget),
            seed=file.study.seed,
            target=on_node(file.target, file.node),
            space=file.space,
            workload=file.workload,
            online=file.online,
            guard=file.guard,
            load_s=duration("online.load", file.online.load),
            after_s=duration("online.proof.after", proof.after),
            phase_s=phase_s,
            settle_s=settle_s,
            text=text,
        )


def _seconds(text: str) -> float:
    return 0.0 if text.strip().split(" ")[0].rstrip("s") == "0" else duration("online.proof.settle", text)


def _check_study(study: OnlineStudySection) -> None:
    if not _NAME.fullmatch(study.name):
        raise StudyError(
            f"study.name = {study.name[:80]!r}: must be at most 80 letters, digits, '.', '_' and '-'"
        )
    texts = (study.objective,) if isinstance(study.objective, str) else study.objective
    if not texts or (study.weights and len(study.weights) != len(texts)):
        raise StudyError(
            f"study.objective: has {len(texts)}, study.weights {len(study.weights)}; give at least one "
            "objective, and as many weights or none"
        )
    for at, weight in enumerate(study.weights):
        within(f"study.weights[{at}]", weight, 1e-3, 1e3)


def _check_online(online: OnlineSection) -> None:
    token("online.node", online.node)
    within("online.interval_s", online.interval_s, 0.05, 3600)
    within("online.contact_s", online.contact_s, 3, 86_400)
    within("online.proof.p_value", online.proof.p_value, 1e-6, 0.5)
    for part in ("agent", "interface", "learner", "retention"):
        for key, value in getattr(online, part).items():
            check_value(f"online.{part}.{key}", value)
    for part, own in _OWN_KEYS.items():
        if taken := sorted(own & set(getattr(online, part))):
            raise StudyError(
                f"online.{part}.{taken[0]}: is made from the other keys of the study; leave it out here"
            )
    _check_tables("online", {part: getattr(online, part) for part in ("collector", "average", "metric")})


def _check_tables(section: str, parts: Mapping[str, tuple[dict[str, Any], ...]]) -> None:
    for part, tables in parts.items():
        if len(tables) > _TABLES_MAX:
            raise StudyError(f"{section}.{part}: has more than {_TABLES_MAX} tables")
        for at, one in enumerate(tables):
            check_value(f"{section}.{part}[{at}]", one)
