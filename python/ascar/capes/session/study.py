"""A study of the online loop: the file's tables as one frozen value, every mistake named by its key."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from ascar.catalogues import DEVICE_MARK, kernel_setting, linux
from ascar.errors import StudyError
from ascar.messaging import token
from ascar.objective import Objective
from ascar.study import convert, duration, study_table, study_text, within

if TYPE_CHECKING:
    from pathlib import Path

DEVICE = "DEV"
"""In names of knobs and indicators: the kernel's name of the target's device."""

PHASE_TICKS_MAX = 600
"""Of a phase of the proof; so many ticks are kept."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_KNOBS_MAX, _TABLES_MAX = 100, 1000
_EVERY_KEYS = {"session", "connection", "messaging"}
_OWN_KEYS = {
    "agent": {*_EVERY_KEYS, "node", "interval_s", "contact_s", "collector", "average", "knob", "program"},
    "interface": {
        *(*_EVERY_KEYS, "interval_s", "database", "mode", "prometheus", "retention"),
        *("knob", "metric", "floor", "rule", "window"),
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


class KnobSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[capes.knob]]`: what may be turned.

    Attributes:
        name: the name of a knob of `ascard keeper` or of a program; DEV stands for the target's device.
        minimum: least number.
        maximum: greatest number.
        choices: allowed words, instead of numbers.
        step: the smallest step of the learner.
        ratio: whether ratios matter to the learner, and not differences.
        change_max: largest change of a number at once.
        interval_ticks: fewest ticks between two changes.
    """

    name: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    step: float | None = None
    ratio: bool = False
    change_max: float | None = None
    interval_ticks: int = 0


class ProgramSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[capes.program]]`: a program that turns knobs of its own, by lines of JSON.

    Attributes:
        command: the program and its arguments; a word that begins with ./ is in the study's folder.
        knobs: names of those of `[[capes.knob]]` that it turns.
    """

    command: tuple[str, ...]
    knobs: tuple[str, ...]


class ProofSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[capes.proof]`: the comparison of tuned and untuned phases in turns.

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


class CapesSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[capes]`: how the processes of the session work.

    Attributes:
        session: the name of the session; the default is the study's name.
        node: the name of this machine in the session.
        interval_s: length of a tick.
        mode: observe (actions are recorded, nothing is turned), approve (each waits for somebody) or
            automatic.
        algorithm: modern or classic.
        contact_s: the time without a message from the interface after which the agent puts every knob back.
        load: the load is run for so long at a time, and begun anew.
        knob: the knobs that may be set.
        program: programs that turn knobs of their own.
        collector: the indicators that the agent reads; the default is the target's device, vm, memory, cpu
            and pressure.
        average: moving averages, as in the agent's file.
        metric: the inputs of objective, floors and rules, as in the interface's file; another name in the
            objective is the load's metric of that name.
        floor: service levels, as in the interface's file.
        rule: the settings that are forbidden, as in the interface's file.
        window: the times at which changes are allowed, as in the interface's file.
        retention: the limits of the replay database, as in the interface's file.
        prometheus: HOST:PORT for the interface's own metrics.
        agent: other keys of the agent's file.
        interface: other keys of the interface's file.
        learner: other keys of the learner's file.
        proof: the comparison with the baseline.
    """

    knob: tuple[KnobSection, ...]
    session: str | None = None
    node: str = "node"
    interval_s: float = 1.0
    mode: Literal["observe", "approve", "automatic"] = "automatic"
    algorithm: Literal["modern", "classic"] = "modern"
    contact_s: float = 30.0
    load: str = "5 min"
    program: tuple[ProgramSection, ...] = ()
    collector: tuple[dict[str, Any], ...] = ()
    average: tuple[dict[str, Any], ...] = ()
    metric: tuple[dict[str, Any], ...] = ()
    floor: tuple[dict[str, Any], ...] = ()
    rule: tuple[dict[str, Any], ...] = ()
    window: tuple[dict[str, Any], ...] = ()
    retention: dict[str, Any] = {}
    prometheus: str | None = None
    agent: dict[str, Any] = {}
    interface: dict[str, Any] = {}
    learner: dict[str, Any] = {}
    proof: ProofSection = ProofSection()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    study: OnlineStudySection
    capes: CapesSection
    target: dict[str, Any] | None = None
    workload: dict[str, Any] | None = None


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
        target: the `[target]` table; None: this machine as it is.
        workload: the `[workload]` table; None: whatever runs.
        capes: the `[capes]` table.
        load_s: length of one run of the load.
        after_s: the time before the first phase of the proof.
        phase_s: the length of a phase.
        settle_s: the warm-up of a phase.
    """

    name: str
    session: str
    objective: Objective
    objectives: tuple[str, ...]
    weights: tuple[float, ...]
    duration_s: float | None
    seed: int
    target: dict[str, Any] | None
    workload: dict[str, Any] | None
    capes: CapesSection
    load_s: float
    after_s: float
    phase_s: float
    settle_s: float

    @property
    def program_knobs(self) -> frozenset[str]:
        """Names of the knobs that programs turn."""
        return frozenset(name for one in self.capes.program for name in one.knobs)

    @classmethod
    def read(cls, path: Path) -> OnlineStudy:
        """Read a study file; paths of a workload file and in commands are relative to its folder.

        Raises:
            StudyError: the file cannot be read, or a key is wrong.
        """
        study = cls.parse(study_text(path, "name a file that can be read"))
        study = msgspec.structs.replace(study, capes=_commands_here(study.capes, path.parent.absolute()))
        wml = (study.workload or {}).get("wml")
        if isinstance(wml, str):
            workload = {**(study.workload or {}), "wml": str(path.parent / wml)}
            study = msgspec.structs.replace(study, workload=workload)
        return study

    @classmethod
    def parse(cls, text: str) -> OnlineStudy:
        """Read a study from TOML text.

        Raises:
            StudyError: a key is unknown, missing, of the wrong type or out of range.
        """
        table = study_table(text)
        if "capes" not in table:
            raise StudyError(
                "capes: missing; a study of the online loop has a [capes] table with [[capes.knob]]; "
                "a study without is for `ascar tune`"
            )
        file = convert(table, _File)
        _check_study(file.study)
        _check_capes(file.capes)
        if file.workload is not None and file.target is None:
            raise StudyError("workload: needs a [target] to run on; leave it out where your own load runs")
        given = file.study.objective
        texts = (given,) if isinstance(given, str) else given
        objectives = [Objective.parse(one, f"study.objective[{at}]") for at, one in enumerate(texts)]
        proof = file.capes.proof
        phase_s, settle_s = duration("capes.proof.phase", proof.phase), _seconds(proof.settle)
        ticks = (phase_s - settle_s) / file.capes.interval_s
        if not 3 <= ticks <= PHASE_TICKS_MAX:
            raise StudyError(
                f"capes.proof.phase = {proof.phase!r}: must be longer than settle, {proof.settle!r}, "
                f"by 3 to {PHASE_TICKS_MAX} ticks"
            )
        return cls(
            name=file.study.name,
            session=token(
                "capes.session", file.capes.session or re.sub(r"[^A-Za-z0-9_-]", "-", file.study.name)
            ),
            objective=Objective.compromise(objectives, file.study.weights),
            objectives=tuple(texts),
            weights=file.study.weights,
            duration_s=None if file.study.budget is None else duration("study.budget", file.study.budget),
            seed=file.study.seed,
            target=file.target,
            workload=file.workload,
            capes=file.capes,
            load_s=duration("capes.load", file.capes.load),
            after_s=duration("capes.proof.after", proof.after),
            phase_s=phase_s,
            settle_s=settle_s,
        )


def _commands_here(capes: CapesSection, folder: Path) -> CapesSection:
    """Words of commands that begin with ./ as paths from the study's folder."""

    def here(words: Any) -> Any:
        if not isinstance(words, list | tuple):
            return words
        known = cast("list[Any]", words)
        return [str(folder / one) if isinstance(one, str) and one.startswith("./") else one for one in known]

    collectors = tuple(
        {**one, "command": here(one["command"])} if "command" in one else one for one in capes.collector
    )
    programs = tuple(msgspec.structs.replace(one, command=tuple(here(one.command))) for one in capes.program)
    return msgspec.structs.replace(capes, collector=collectors, program=programs)


def _seconds(text: str) -> float:
    return 0.0 if text.strip().split(" ")[0].rstrip("s") == "0" else duration("capes.proof.settle", text)


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


def _check_capes(capes: CapesSection) -> None:
    if not 1 <= len(capes.knob) <= _KNOBS_MAX:
        raise StudyError(f"capes.knob: has {len(capes.knob)} tables; must have 1 to {_KNOBS_MAX}")
    token("capes.node", capes.node)
    within("capes.interval_s", capes.interval_s, 0.05, 3600)
    within("capes.contact_s", capes.contact_s, 3, 86_400)
    within("capes.proof.p_value", capes.proof.p_value, 1e-6, 0.5)
    names = [one.name for one in capes.knob]
    for knob in capes.knob:
        numbers = knob.minimum is not None and knob.maximum is not None
        either = numbers if not knob.choices else knob.minimum is None and knob.maximum is None
        if not either:
            raise StudyError(f"capes.knob {knob.name!r}: give minimum and maximum, or choices")
        if numbers and not (knob.minimum or 0) < (knob.maximum or 0):
            raise StudyError(
                f"capes.knob {knob.name!r}: minimum = {knob.minimum!r} must be below "
                f"maximum = {knob.maximum!r}"
            )
        if "*" in knob.name or names.count(knob.name) > 1:
            raise StudyError(f"capes.knob {knob.name!r}: each knob of this machine is named once, without *")
    _check_parts(capes)
    for knob in capes.knob:
        if not any(knob.name in program.knobs for program in capes.program):
            _check_kernel_knob(knob)
    for key in ("program", "collector", "average", "metric", "floor", "rule", "window"):
        if len(getattr(capes, key)) > _TABLES_MAX:
            raise StudyError(f"capes.{key}: has more than {_TABLES_MAX} tables")


def _check_kernel_knob(knob: KnobSection) -> None:
    """Refuse what the keeper would: an unknown knob, or numbers beyond its range."""
    setting = kernel_setting(knob.name)
    if setting is None:
        near = get_close_matches(knob.name.replace(f".{DEVICE}.", f".{DEVICE_MARK}."), linux(), n=1)
        hint = f"; did you mean {near[0].replace(DEVICE_MARK, DEVICE)!r}?" if near else ""
        raise StudyError(
            f"capes.knob {knob.name!r}: is not a setting that the keeper may change; `ascar space linux` "
            f"lists them, and a program's knobs are named in [[capes.program]]{hint}"
        )
    if setting.bounds is None or knob.minimum is None or knob.maximum is None:
        return
    low, high = setting.bounds
    for key, value in (("minimum", knob.minimum), ("maximum", knob.maximum)):
        if not low <= value <= high:
            raise StudyError(
                f"capes.knob {knob.name!r}: {key} = {value:g}: the keeper allows {setting.values}"
            )


def _check_parts(capes: CapesSection) -> None:
    """Programs, and keys that are handed on."""
    names = [one.name for one in capes.knob]
    for part in ("agent", "interface", "learner", "retention"):
        for key, value in getattr(capes, part).items():
            _check_value(f"capes.{part}.{key}", value)
    for part in ("collector", "average", "metric", "floor", "rule", "window"):
        for at, one in enumerate(getattr(capes, part)):
            _check_value(f"capes.{part}[{at}]", one)
    for part, own in _OWN_KEYS.items():
        if taken := sorted(own & set(getattr(capes, part))):
            raise StudyError(
                f"capes.{part}.{taken[0]}: is made from the other keys of [capes]; leave it out here"
            )
    turned = [name for one in capes.program for name in one.knobs]
    for name in turned:
        if name not in names or turned.count(name) > 1:
            raise StudyError(
                f"capes.program.knobs: {name!r} must be the name of a [[capes.knob]], and of one program; "
                f"there are {', '.join(names[:10])}"
            )
    for one in capes.program:
        if not one.command or not one.knobs:
            raise StudyError("capes.program: command and knobs must both name something")


def _check_value(key: str, value: object) -> None:
    """Only what the other files can hold: TOML's dates and times are none."""
    if isinstance(value, dict):
        for name, inner in cast("dict[str, object]", value).items():
            _check_value(f"{key}.{name}", inner)
    elif isinstance(value, list):
        for inner in cast("list[object]", value):
            _check_value(key, inner)
    elif not isinstance(value, str | int | float):
        raise StudyError(f"{key} = {value}: must be a text, a number, true or false; put a date in quotes")
