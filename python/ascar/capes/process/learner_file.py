"""A learner's file: which session it tunes, for what, by which algorithm, and where its state is kept."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from ascar.capes.classic.hyperparameters import PRESETS, DeepQHyperparameters, hyperparameters
from ascar.capes.modern.modern_options import ModernOptions
from ascar.errors import ExpressionError, InputError, StudyError
from ascar.messaging import token
from ascar.objective import Objective
from ascar.small_file import SmallFile
from ascar.study import convert, within

if TYPE_CHECKING:
    from collections.abc import Mapping

_BYTES_MAX: Final = 1 << 20
_OBJECTIVES_MAX: Final = 8


class LearnerFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The keys of the file, in TOML.

    Attributes:
        session: the session to tune.
        connection: a connection file, relative to this file's folder; left out: as the environment says, or
            the server that runs here, as user `learner`.
        algorithm: "modern" or "classic".
        objective: "maximize FORMULA" or "minimize FORMULA" over the metrics of `P.ticks`; or several of them.
        weights: the weights of several objectives, see `Objective.compromise`; equal by default.
        knobs: names of those to turn, with `*` and `?`; of those that the interface has.
        ratios: names of those of which ratios matter and not differences, with `*` and `?`.
        nodes: the nodes whose indicators are observed; `*` and `?` are wildcards.
        indicators: the indicators that are observed; `*` and `?` are wildcards.
        missing_tolerance: share of an observation that may be missing; of the classic learner.
        state: the file in which it keeps what it has learnt, relative to this file's folder.
        state_per_workload: whether each workload that is announced has a state of its own, NAME-WORKLOAD.npz:
            another model, and another memory.
        checkpoint_s: between two writings of it.
        warm: whether it first learns from the ticks that the interface has stored.
        seed: the seed of all random choices.
        classic: `preset` (paper, thesis, game), and any hyperparameter with another value than there.
        modern: `ModernOptions`.
    """

    session: str = "default"
    connection: str | None = None
    algorithm: Literal["modern", "classic"] = "modern"
    objective: str | tuple[str, ...]
    weights: tuple[float, ...] = ()
    knobs: tuple[str, ...] = ("*",)
    ratios: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ("*",)
    indicators: tuple[str, ...] = ("*",)
    missing_tolerance: float = 0.2
    state: str = "learner.npz"
    state_per_workload: bool = False
    checkpoint_s: float = 60.0
    warm: bool = True
    seed: int = 1
    classic: dict[str, Any] = {}
    modern: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Plan:
    """A learner's file, read and checked.

    Attributes:
        file: the keys of the file.
        folder: the folder that the file's paths are relative to.
        objective: the objective, or the compromise between several.
        hyper: the hyperparameters of the classic learner.
        options: the options of the modern learner.
    """

    file: LearnerFile
    folder: Path
    objective: Objective
    hyper: DeepQHyperparameters
    options: ModernOptions

    @property
    def state(self) -> Path:
        """Where it keeps what it has learnt."""
        return self.folder / self.file.state

    def of_workload(self, workload: str) -> Plan:
        """The same with the state of a workload; of none it is the file's."""
        if not self.file.state_per_workload or not workload:
            return self
        path = Path(self.file.state)
        own = path.with_name(f"{path.stem}-{token('workload', workload)}{path.suffix}")
        return dataclasses.replace(self, file=msgspec.structs.replace(self.file, state=str(own)))

    @property
    def connection(self) -> Path | None:
        """The connection file; None where none is named."""
        return None if self.file.connection is None else self.folder / self.file.connection


def read_plan(path: Path) -> Plan:
    """Read a learner's file.

    Raises:
        InputError: it cannot be read, or a key is wrong: one line with the key, its value, what is allowed.
    """
    where = f"learner file {str(path)!r}"
    table = SmallFile(path, where, _BYTES_MAX).toml()
    try:
        return _planned(table, path.parent)
    except InputError as error:
        words = error.message.removesuffix(" (`ascar init` writes a complete study file)")
        raise InputError(f"{where}: {words}") from None


def _planned(table: Mapping[str, Any], folder: Path) -> Plan:
    file = convert(table, LearnerFile)
    token("session", file.session)
    within("missing_tolerance", file.missing_tolerance, 0, 1)
    within("checkpoint_s", file.checkpoint_s, 1, 86_400)
    within("seed", file.seed, 0, 2**63 - 1)
    for key in ("knobs", "nodes", "indicators"):
        patterns: tuple[str, ...] = getattr(file, key)
        if not patterns or not all(patterns):
            raise InputError(f"{key} = {list(patterns)!r}: must be a list of names, such as ['*']")
    if not file.state or Path(file.state).name in ("", ".", ".."):
        raise InputError(f"state = {file.state!r}: must be a file's name, such as 'learner.npz'")
    return Plan(file, folder, _objective(file), _hyper(file), _options(file))


def _objective(file: LearnerFile) -> Objective:
    texts = (file.objective,) if isinstance(file.objective, str) else file.objective
    if not 1 <= len(texts) <= _OBJECTIVES_MAX:
        raise InputError(f"objective: has {len(texts)} of them; must have 1 to {_OBJECTIVES_MAX}")
    if file.weights and len(file.weights) != len(texts):
        raise InputError(f"weights = {list(file.weights)}: must have one weight an objective, {len(texts)}")
    for at, weight in enumerate(file.weights):
        within(f"weights[{at}]", weight, 1e-3, 1e3)
    keys = (
        ["objective"] if isinstance(file.objective, str) else [f"objective[{at}]" for at in range(len(texts))]
    )
    objectives = [Objective.parse(text, key) for text, key in zip(texts, keys, strict=True)]
    return Objective.compromise(objectives, file.weights)


def _hyper(file: LearnerFile) -> DeepQHyperparameters:
    """The preset, with what differs from it."""
    given = dict(file.classic)
    preset = given.pop("preset", "paper")
    if preset not in PRESETS:
        raise InputError(f"classic.preset = {preset!r}: must be one of {', '.join(PRESETS)}")
    given.setdefault("missing_tolerance", file.missing_tolerance)
    whole = {**msgspec.to_builtins(hyperparameters(preset)), **given}
    try:
        return convert(whole, DeepQHyperparameters, "classic")
    except (StudyError, ExpressionError):
        raise
    except InputError as error:
        raise InputError(f"classic.{error.message}") from None


def _options(file: LearnerFile) -> ModernOptions:
    options = convert(file.modern, ModernOptions, "modern")
    for key in ModernOptions.__struct_fields__:
        within(f"modern.{key}", getattr(options, key), 0, 1e6)
    return options
