"""The library's file: lines of JSON, of which none is ever changed.

The first line names format and version, each other one is an entry. A last line without its end was being
written when the process died: readers leave it out, the next writer cuts it off. One process writes at a
time, any number reads meanwhile.
"""

from __future__ import annotations

import fcntl
import math
import os
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from ascar.errors import InputError, Refused, WorkError
from ascar.sharp.library.entries import Entry, GainEntry, RulesEntry, WorkloadEntry, rules_id
from ascar.sharp.rules import RuleSet

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

VERSION = 1
_FORMAT = "ascar-rule-library"
_LINE_BYTES_MAX = 1 << 22


class _Head(msgspec.Struct, frozen=True):
    format: str = ""
    version: int = 0


def default_path() -> Path:
    """Where the library is: $ASCAR_RULE_LIBRARY, or the user's state directory."""
    if named := os.environ.get("ASCAR_RULE_LIBRARY"):
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "ascar" / "rule-library.jsonl"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class Library:
    """Rule sets, the workloads that they were made for and tried on, and their gains.

    Args:
        path: the path of its file, for messages.
        clock: gives the date of entries.

    Attributes:
        workloads: the workloads by name.
        rules: the rule sets by id; of a text that was made for several workloads the first counts.
        made_for: ids by workload and objective that they were made for.
        gains: the gains by rules, workload and objective; the last measured counts.
    """

    def __init__(self, path: Path, clock: Callable[[], str] = _now) -> None:
        self.path = path
        self.workloads: dict[str, WorkloadEntry] = {}
        self.rules: dict[str, RulesEntry] = {}
        self.made_for: dict[tuple[str, str], list[str]] = {}
        self.gains: dict[tuple[str, str, str], GainEntry] = {}
        self._clock = clock
        self._file: BinaryIO | None = None

    @classmethod
    def read(cls, path: Path) -> Library:
        """The library as it is now.

        Raises:
            InputError: there is none, it is of a newer ascar, or it is damaged: the line.
        """
        library = cls(path)
        try:
            with path.open("rb") as file:
                library._take_up(file)
        except FileNotFoundError:
            raise InputError(
                f"rule library {str(path)!r}: does not exist; make one with "
                "`ascar sharp library bootstrap` or `ascar sharp library add`, or name another with --library"
            ) from None
        except OSError as error:
            raise InputError(f"rule library {str(path)!r}: {error.strerror}") from error
        return library

    @classmethod
    @contextmanager
    def writing(cls, path: Path, clock: Callable[[], str] = _now) -> Generator[Library]:
        """The library, made where there is none, held by this process alone while the context lasts.

        Raises:
            InputError: as `read`, but for a library that is not there yet.
            Refused: another process writes.
            WorkError: it cannot be written.
        """
        library = cls(path, clock)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644), "r+b")
        except OSError as error:
            raise InputError(f"rule library {str(path)!r}: {error.strerror}; name another") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Refused(
                    f"rule library {str(path)!r}: another process writes it; wait for it, or stop it"
                ) from None
            whole = library._take_up(file)
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

    def add_rules(self, rules: RuleSet, workload: str, objective: str, how: str = "") -> RulesEntry:
        """Add a rule set that was made for a workload of the library; one that is there stays.

        Raises:
            InputError: there is no such workload, or the rules cannot be written.
        """
        self._check_workload(workload)
        key = rules_id(rules.bare().text())
        if key in self.made_for.get((workload, objective), ()):
            return self.rules[key]
        entry = RulesEntry(key, rules.text(), workload, objective, how, self._clock())
        entry.check()
        self._add(entry)
        return entry

    def add_gain(self, gain: GainEntry) -> GainEntry:
        """Add what a rule set of the library gained on a workload of the library.

        Raises:
            InputError: one of them is not there, or a number is wrong.
        """
        self._check_workload(gain.workload)
        if gain.rules not in self.rules:
            raise InputError(f"rules {gain.rules[:100]!r}: are not in the library")
        entry = msgspec.structs.replace(gain, at=self._clock())
        entry.check()
        self._add(entry)
        return entry

    def rules_named(self, start: str) -> str:
        """The id that begins so.

        Raises:
            InputError: no rule set has it, or several have.
        """
        found = [key for key in self.rules if key.startswith(start)] if start else []
        if len(found) != 1:
            raise InputError(
                f"{start[:100]!r}: {len(found) or 'no'} rule sets of the library have an id that begins so, "
                "and no workload has that name; see `ascar sharp library ls`"
            )
        return found[0]

    def gain(self, rules: str, workload: str, objective: str) -> GainEntry | None:
        """What was measured last; None: nothing was."""
        return self.gains.get((rules, workload, objective))

    def _check_workload(self, name: str) -> None:
        if name not in self.workloads:
            raise InputError(f"workload {name[:100]!r}: is not in the library; add it first")

    def _add(self, entry: Entry) -> None:
        self._write(entry)
        self._keep(entry)

    def _keep(self, entry: Entry) -> None:
        if isinstance(entry, WorkloadEntry):
            self.workloads.setdefault(entry.name, entry)
        elif isinstance(entry, RulesEntry):
            self.rules.setdefault(entry.id, entry)
            self.made_for.setdefault((entry.workload, entry.objective), []).append(entry.id)
        else:
            self.gains[entry.rules, entry.workload, entry.objective] = entry

    def _take_up(self, file: BinaryIO) -> int:
        """Read all entries; the bytes of whole lines."""
        whole = 0
        for number, line in enumerate(_lines(file), start=1):
            if not line.endswith(b"\n"):
                if len(line) >= _LINE_BYTES_MAX:
                    raise self._damaged(number, "is too long")
                break
            if number == 1:
                self._check_head(line)
            else:
                self._take(line, number)
            whole += len(line)
        return whole

    def _check_head(self, line: bytes) -> None:
        try:
            head = msgspec.json.decode(line, type=_Head)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._damaged(1, str(error)) from None
        if head.format != _FORMAT or head.version < 1:
            raise self._damaged(1, f"is not a head of {_FORMAT}")
        if head.version > VERSION:
            raise InputError(
                f"rule library {str(self.path)!r}: has version {head.version}; this ascar reads up to "
                f"{VERSION}: use the one that wrote it, or name another with --library"
            )

    def _take(self, line: bytes, number: int) -> None:
        try:
            entry = msgspec.json.decode(line, type=Entry)
            entry.check()
            if isinstance(entry, RulesEntry):
                bare = RuleSet.parse(entry.text).bare().text()
                if rules_id(bare) != entry.id:
                    raise self._damaged(number, f"id = {entry.id!r} is not that of the text")
            elif isinstance(entry, GainEntry) and not (
                entry.rules in self.rules and entry.workload in self.workloads
            ):
                raise self._damaged(number, "its rules or its workload are not above it")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._damaged(number, str(error)) from None
        except InputError as error:
            if error.message.startswith("rule library"):
                raise
            raise self._damaged(number, error.message) from None
        self._keep(entry)

    def _write(self, entry: msgspec.Struct) -> None:
        assert self._file is not None, "only a library that is being written is added to"
        try:
            self._file.write(msgspec.json.encode(entry) + b"\n")
            self._file.flush()
            os.fdatasync(self._file.fileno())
        except OSError as error:
            raise WorkError(f"rule library {str(self.path)!r}: {error.strerror}; make room") from error

    def _damaged(self, line: int, what: str) -> InputError:
        return InputError(
            f"rule library {str(self.path)!r}, line {line}: {what}; put back a copy, or name another with "
            "--library"
        )


def _lines(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.readline(_LINE_BYTES_MAX), b"")
