"""The library's file: lines of JSON, of which none is ever changed; entries are found by name or id.

The first line names format and version, each other one is an entry. A last line without its end was being
written when the process died: readers leave it out, the next writer cuts it off. One process writes at a
time, any number reads meanwhile.
"""

from __future__ import annotations

import fcntl
import math
import os
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from ascar import typed
from ascar.errors import InputError, Refused, WorkError
from ascar.library.entries import (
    Entry,
    GainEntry,
    GainEntry1,
    RulesEntry1,
    SolutionEntry,
    WorkloadEntry,
    solution_id,
    upgraded,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from ascar.library.entries import Kind
    from ascar.rules import RuleSet
    from ascar.space import Value

VERSION = 2
_FORMAT = "ascar-library"
_FORMAT_1 = "ascar-rule-library"
_LINE_BYTES_MAX = 1 << 22
_LOOK_S = 0.1


class _Head(msgspec.Struct, frozen=True):
    format: str = ""
    version: int = 0


def default_path() -> Path:
    """Where the library is: $ASCAR_LIBRARY, or the user's state directory.

    Raises:
        InputError: the library is named as earlier versions wanted it.
    """
    if named := os.environ.get("ASCAR_LIBRARY"):
        return Path(named)
    if named := os.environ.get("ASCAR_RULE_LIBRARY"):
        raise InputError(f"ASCAR_RULE_LIBRARY = {named[:200]!r}: this variable's name is ASCAR_LIBRARY now")
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ascar"
    path, earlier = folder / "library.jsonl", folder / "rule-library.jsonl"
    return earlier if earlier.exists() and not path.exists() else path


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Library:
    """Solutions, the workloads that they were made for and tried on, and their gains.

    Args:
        path: the path of its file, for messages.
        clock: gives the date of entries.

    Attributes:
        workloads: the workloads by name.
        solutions: the solutions by id; of one that was made for several workloads the first counts.
        made_for: ids by workload and objective that they were made for.
        gains: the gains by solution, workload and objective; the last measured counts.
    """

    def __init__(self, path: Path, clock: Callable[[], str] = _now) -> None:
        self.path = path
        self.workloads: dict[str, WorkloadEntry] = {}
        self.solutions: dict[str, SolutionEntry] = {}
        self.made_for: dict[tuple[str, str], list[str]] = {}
        self.gains: dict[tuple[str, str, str], GainEntry] = {}
        self._clock = clock
        self._file: BinaryIO | None = None

    @property
    def rules(self) -> dict[str, SolutionEntry]:
        """The rule sets by id."""
        return self.of_kind("rules")

    def of_kind(self, kind: Kind) -> dict[str, SolutionEntry]:
        """The solutions of a kind by id."""
        return {key: one for key, one in self.solutions.items() if one.kind == kind}

    @classmethod
    def read(cls, path: Path) -> Library:
        """The library as it is now.

        Raises:
            InputError: there is none, it is of a newer ascar, or it is damaged: the line.
        """
        library = cls(path)
        try:
            with path.open("rb") as file:
                library.take_up(file)
        except FileNotFoundError:
            raise InputError(
                f"library {str(path)!r}: does not exist; make one with `ascar library bootstrap` or "
                "`ascar library add`, or name another with --library"
            ) from None
        except OSError as error:
            raise InputError(f"library {str(path)!r}: {error.strerror}") from error
        return library

    @classmethod
    @contextmanager
    def writing(cls, path: Path, clock: Callable[[], str] = _now, wait_s: float = 0.0) -> Generator[Library]:
        """The library, made where there is none, held by this process alone while the context lasts.

        Args:
            path: the file; one of version 1 is rewritten as it is written now.
            clock: gives the date of entries.
            wait_s: how long to wait for another process that writes.

        Raises:
            InputError: as `read`, but for a library that is not there yet.
            Refused: another process writes.
            WorkError: it cannot be written.
        """
        _upgrade(path, wait_s)
        with _locked(path, wait_s) as file:
            library = cls(path, clock)
            whole = library.take_up(file)
            file.truncate(whole)
            file.seek(whole)
            library._file = file
            if whole == 0:
                library._write(_Head(_FORMAT, VERSION))
            try:
                yield library
            finally:
                library._file = None

    def add_workload(self, name: str, features: Mapping[str, float], source: str = "") -> WorkloadEntry:
        """Add a workload; one that is there with the same features stays.

        Raises:
            InputError: its name or a number cannot be kept, or the name is another workload's.
        """
        known = {key: None if math.isnan(value) else float(value) for key, value in features.items()}
        entry = WorkloadEntry(name, known, source, self._clock())
        entry.check()
        there = self.workloads.get(name)
        if there is not None:
            if there.features == known:
                return there
            raise InputError(
                f"workload {name!r}: is in the library with different features; give this one another name"
            )
        self._add(entry)
        return entry

    def add_rules(self, rules: RuleSet, workload: str, objective: str, how: str = "") -> SolutionEntry:
        """Add a rule set that was made for a workload of the library; one that is there stays.

        Raises:
            InputError: there is no such workload, or the rules cannot be written.
        """
        return self._add_solution("rules", rules.text(), (workload, objective), "", how)

    def add_configuration(
        self, values: Mapping[str, Value], workload: str, objective: str, system: str, how: str = ""
    ) -> SolutionEntry:
        """Add a configuration of a kind of system that was found for a workload; one that is there stays.

        Raises:
            InputError: there is no such workload, or a value cannot be written.
        """
        return self._add_solution("configuration", dict(values), (workload, objective), system, how)

    def add_gain(self, gain: GainEntry) -> GainEntry:
        """Add what a solution of the library gained on a workload of the library.

        Raises:
            InputError: one of them is not there, or a number is wrong.
        """
        self._check_workload(gain.workload)
        if gain.solution not in self.solutions:
            raise InputError(f"solution {gain.solution[:100]!r}: is not in the library")
        entry = msgspec.structs.replace(gain, at=self._clock())
        entry.check()
        self._add(entry)
        return entry

    def solution_named(self, start: str) -> SolutionEntry:
        """The solution whose id begins so.

        Raises:
            InputError: no solution has it, or several have.
        """
        found = [key for key in self.solutions if key.startswith(start)] if start else []
        if len(found) != 1:
            raise InputError(
                f"{start[:100]!r}: {len(found) or 'no'} solutions of the library have an id that begins so, "
                "and no workload has that name; see `ascar library ls`"
            )
        return self.solutions[found[0]]

    def gain(self, solution: str, workload: str, objective: str) -> GainEntry | None:
        """What was measured last; None: nothing was."""
        return self.gains.get((solution, workload, objective))

    def _add_solution(
        self, kind: Kind, content: str | dict[str, Value], made_for: tuple[str, str], system: str, how: str
    ) -> SolutionEntry:
        workload, objective = made_for
        self._check_workload(workload)
        key = solution_id(content, system)
        if key in self.made_for.get(made_for, ()):
            return self.solutions[key]
        entry = SolutionEntry(key, kind, content, workload, objective, system, how, self._clock())
        entry.check()
        self._add(entry)
        return entry

    def _check_workload(self, name: str) -> None:
        if name not in self.workloads:
            raise InputError(f"workload {name[:100]!r}: is not in the library; add it first")

    def _add(self, entry: Entry) -> None:
        self._write(entry)
        self._keep(entry)

    def _keep(self, entry: Entry) -> None:
        if isinstance(entry, WorkloadEntry):
            self.workloads.setdefault(entry.name, entry)
        elif isinstance(entry, SolutionEntry):
            self.solutions.setdefault(entry.id, entry)
            self.made_for.setdefault((entry.workload, entry.objective), []).append(entry.id)
        else:
            self.gains[entry.solution, entry.workload, entry.objective] = entry

    def take_up(self, file: BinaryIO, entries: list[Entry] | None = None) -> int:
        """Read all entries, also into a list where one is given; the bytes of whole lines."""
        whole, version = 0, VERSION
        for number, line in enumerate(_lines(file), start=1):
            if not line.endswith(b"\n"):
                if len(line) >= _LINE_BYTES_MAX:
                    raise self._damaged(number, "is too long")
                break
            if number == 1:
                version = self._version(line)
            else:
                entry = self._entry(line, number, version)
                self._keep(entry)
                if entries is not None:
                    entries.append(entry)
            whole += len(line)
        return whole

    def _version(self, line: bytes) -> int:
        """The version of the format, from the first line."""
        try:
            head = typed.decode(line, _Head)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._damaged(1, str(error)) from None
        if head.format not in (_FORMAT, _FORMAT_1) or head.version < 1:
            raise self._damaged(1, f"is not a head of {_FORMAT}")
        if head.version > VERSION:
            raise InputError(
                f"library {str(self.path)!r}: has version {head.version}; this ascar reads up to "
                f"{VERSION}: use the one that wrote it, or name another with --library"
            )
        return head.version

    def _entry(self, line: bytes, number: int, version: int) -> Entry:
        try:
            if version == 1:
                entry = upgraded(typed.decode(line, WorkloadEntry | RulesEntry1 | GainEntry1))
            else:
                entry = typed.decode(line, Entry)
            entry.check()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._damaged(number, str(error)) from None
        except InputError as error:
            raise self._damaged(number, error.message) from None
        if isinstance(entry, GainEntry) and not (
            entry.solution in self.solutions and entry.workload in self.workloads
        ):
            raise self._damaged(number, "its solution or its workload is not above it")
        return entry

    def _write(self, entry: msgspec.Struct) -> None:
        assert self._file is not None, "only a library that is being written is added to"
        try:
            self._file.write(msgspec.json.encode(entry) + b"\n")
            self._file.flush()
            os.fdatasync(self._file.fileno())
        except OSError as error:
            raise WorkError(f"library {str(self.path)!r}: {error.strerror}; make room") from error

    def _damaged(self, line: int, what: str) -> InputError:
        return InputError(
            f"library {str(self.path)!r}, line {line}: {what}; put back a copy, or name another with "
            "--library"
        )


@contextmanager
def _locked(path: Path, wait_s: float) -> Generator[BinaryIO]:
    """The file, made where there is none, and this process its only writer."""
    until_s = time.monotonic() + wait_s
    while True:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644), "r+b")
        except OSError as error:
            raise InputError(f"library {str(path)!r}: {error.strerror}; name another") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # While this process waited, another may have put a new file in the place of this one.
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    yield file
                    return
            except BlockingIOError:
                if time.monotonic() >= until_s:
                    raise Refused(
                        f"library {str(path)!r}: another process writes it; wait for it, or stop it"
                    ) from None
                time.sleep(_LOOK_S)
            except FileNotFoundError:
                pass


def _upgrade(path: Path, wait_s: float) -> None:
    """Rewrite a library of version 1 as it is written now: a new file takes the place of the old one."""
    try:
        with path.open("rb") as file:
            if _FORMAT_1.encode() not in file.readline(_LINE_BYTES_MAX):
                return
    except OSError:
        return  # who opens it next says why
    with _locked(path, wait_s) as file:
        entries: list[Entry] = []
        Library(path).take_up(file, entries)
        beside = path.with_name(f"{path.name}.new")
        try:
            with beside.open("wb") as new:
                new.writelines(
                    msgspec.json.encode(one) + b"\n" for one in (_Head(_FORMAT, VERSION), *entries)
                )
                new.flush()
                os.fsync(new.fileno())
            beside.replace(path)
        except OSError as error:
            raise WorkError(f"library {str(path)!r}: {error.strerror}; make room") from error


def _lines(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.readline(_LINE_BYTES_MAX), b"")
