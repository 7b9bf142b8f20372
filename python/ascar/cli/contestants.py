"""What is compared: commands to be run, or readings that were recorded.

A command is one quoted argument, as hyperfine takes it: it can be pasted from where it was tried out, and its
end is seen at a glance. It is split into words the way a shell would, and by no shell. Where quoting gets in
the way, `---` between commands that are given word by word does the same.
"""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.cli.outputs import named, round_limit_s
from ascar.errors import AscarError, EnvironmentLacks, InputError
from ascar.pilot import CommandRunner
from ascar.pilot.command import DURATION, WORK_AMOUNT
from ascar.pilot.sources import ENDINGS, read_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.pilot.round import Round, Runner
    from ascar.pilot.saved import SavedResult
    from ascar.pilot.sources import RecordedSeries

BETWEEN = "---"
_CONTESTANTS_MAX = 100
_SHOWN_MAX = 400


@dataclass(frozen=True, slots=True)
class Contestants:
    """Commands that are run.

    Attributes:
        labels: the label of each command.
        commands: each in words.
        runners: each carries out a round.
        metric: the reading that is compared.
    """

    labels: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]
    runners: tuple[Runner, ...]
    metric: str


@dataclass(frozen=True, slots=True)
class Recordings:
    """Readings that were recorded.

    Attributes:
        labels: the label of each series.
        files: the file of each series.
        series: the readings, or a result that was saved.
        metric: the metric of the readings.
    """

    labels: tuple[str, ...]
    files: tuple[str, ...]
    series: tuple[RecordedSeries | SavedResult, ...]
    metric: str


def contestants_of(
    what: Sequence[str],
    names: Sequence[str],
    metric: str | None,
    column: str | None,
    round_limit: str | None,
) -> Contestants | Recordings:
    """What the arguments name.

    Raises:
        InputError: they name nothing that can be compared.
        EnvironmentLacks: a program is not there.
    """
    files = [text for text in what if _is_file(text)]
    if files and len(files) < len(what) and BETWEEN not in what:
        other = next(text for text in what if text not in files)
        raise InputError(
            f"{files[0]!r} is a file of readings and {other!r} is none: compare commands with commands, and "
            f"files with files; readings are in files that end in {', '.join(ENDINGS)}"
        )
    if files and BETWEEN not in what:
        if metric is not None:
            raise InputError(
                f"--metric = {metric!r} applies only to commands; name a file's column with --column"
            )
        return _recordings(files, names, column)
    if column is not None:
        raise InputError(
            f"--column = {column!r} applies only to files; name a command's number with --metric"
        )
    return _contestants(_commands(what), names, metric, round_limit)


def _is_file(text: str) -> bool:
    """Whether a word names a file of readings: one that is there, or that nobody could run."""
    path = Path(text)
    if path.suffix.lower() not in ENDINGS or any(space in text for space in " \t\n"):
        return False
    return not shutil.which(text)


def _commands(what: Sequence[str]) -> list[tuple[str, ...]]:
    """Commands in words.

    Raises:
        InputError: one is empty, or its quotes do not close.
    """
    commands: list[tuple[str, ...]] = []
    if BETWEEN in what:
        commands.append(())
        for word in what:
            if word == BETWEEN:
                commands.append(())
            else:
                commands[-1] = (*commands[-1], word)
    else:
        for text in what:
            try:
                commands.append(tuple(shlex.split(text)))
            except ValueError as error:
                raise InputError(f"COMMAND {text!r}: {str(error).lower()}; close the quotes") from error
    for number, words in enumerate(commands, start=1):
        if not words:
            raise InputError(
                f"command {number} of {len(commands)} is empty: give a program and its arguments"
            )
    if not 2 <= len(commands) <= _CONTESTANTS_MAX:
        raise InputError(
            f"{len(commands)} command to compare: give 2 to {_CONTESTANTS_MAX}, each quoted as one argument, "
            f"or with {BETWEEN} between them"
        )
    return commands


def _contestants(
    commands: Sequence[tuple[str, ...]], names: Sequence[str], metric: str | None, round_limit: str | None
) -> Contestants:
    metrics: dict[str, str] = {}
    if metric is not None:
        metrics = dict([named("--metric", metric)])
    limit_s = round_limit_s(round_limit)
    labels = _labels([shlex.join(words) for words in commands], names)
    runners: list[Runner] = []
    for label, words in zip(labels, commands, strict=True):
        try:
            runner = CommandRunner(words, metrics, limit_s)
        except EnvironmentLacks as error:
            if all(len(each) == 1 for each in commands):
                error.message += f"; quote each command as one argument, or put {BETWEEN} between commands"
            raise
        if runner.adjustable:
            raise InputError(
                f"COMMAND {label!r} has {WORK_AMOUNT}: commands are compared at one amount of work each; "
                "put the amount in its place, or compare what `ascar measure` says of each"
            )
        runners.append(_Named(label, runner))
    return Contestants(labels, tuple(commands), tuple(runners), next(iter(metrics), DURATION))


@dataclass(frozen=True, slots=True)
class _Named:
    """A command whose failures say which it was."""

    label: str
    runner: CommandRunner

    def __call__(self, work_amount: float | None, left_s: float) -> Round | None:
        try:
            return self.runner(work_amount, left_s)
        except AscarError as error:
            error.message = f"{self.label}: {error.message}"
            raise


def _recordings(files: Sequence[str], names: Sequence[str], column: str | None) -> Recordings:
    from ascar.pilot.saved import is_saved, read_saved

    series: list[tuple[str, RecordedSeries | SavedResult]] = []
    for path in files:
        file = Path(path)
        found = read_saved(file, column) if is_saved(file) else read_all(file, column)
        series += [(path, one) for one in found]
    if not 2 <= len(series) <= _CONTESTANTS_MAX:
        raise InputError(
            f"{', '.join(files)[:400]}: {len(series)} series of readings; give 2 to {_CONTESTANTS_MAX}"
        )
    several = len({path for path, _ in series}) < len(series)
    labels = [(recorded.name or path) if several else path for path, recorded in series]
    metrics = sorted({recorded.metric or recorded.name for _, recorded in series})
    if len(metrics) > 1 and any(hasattr(recorded, "measurement") for _, recorded in series):
        told = {recorded.metric or recorded.name: path for path, recorded in series}
        shown = ", ".join(f"{metric!r} ({path})" for metric, path in told.items())
        raise InputError(f"metrics differ: {shown[:_SHOWN_MAX]}; name one that all have with --column")
    return Recordings(
        _labels(labels, names),
        tuple(path for path, _ in series),
        tuple(replace(recorded, name=recorded.metric or recorded.name) for _, recorded in series),
        metrics[0] if len(metrics) == 1 else " or ".join(metrics),
    )


def _labels(plain: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Labels that tell all apart.

    Raises:
        InputError: names are given, and not one for each, or one twice.
    """
    if names and len(names) != len(plain):
        raise InputError(
            f"--label is given {len(names)} times for {len(plain)} to compare: once for each, or never"
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"--label = {twice[0]!r} is given twice: each needs its own")
    labels: list[str] = []
    for label in names or plain:
        again = sum(label == other for other in plain[: len(labels)])
        labels.append(f"{label} ({again + 1})" if again and not names else label)
    return tuple(labels)
