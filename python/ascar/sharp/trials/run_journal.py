"""Every run of a search, written down when it has ended: a search that was killed goes on from here.

Lines of JSON. The first says which search it is, each other one is a run. A last line without its end was
being written when the process died, and is cut off; the run is made again.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Literal, Self

import msgspec

from ascar import __version__, typed
from ascar.errors import InputError, Refused, WorkError
from ascar.rules import RuleSet
from ascar.sharp.trials.bench import RuleRun, RuleTrial

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from ascar.objective import Objective
    from ascar.sharp.metric_bounds import MetricBound
    from ascar.sharp.plan import SearchPlan
    from ascar.sharp.trials.bench import Bench

VERSION = 1
_FORMAT = "ascar-sharp-search"
_LINE_BYTES_MAX = 1 << 24
Begin = Literal["new", "resume", "anew"]
_FLAGS: Mapping[Begin, int] = {"new": os.O_CREAT | os.O_EXCL, "resume": 0, "anew": os.O_CREAT}


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What results of a search depend on.

    Attributes:
        ascar: version of the program.
        system: identity of the bench.
        objective: the objective in full, with the bounds that rules must keep.
        schedule: the schedule of the search, with the parts that it does without.
        start: text of the rule sets that it begins with.
    """

    ascar: str
    system: str
    objective: str
    schedule: str
    start: str

    @classmethod
    def of(
        cls, bench: Bench, objective: Objective, plan: SearchPlan, bounds: Sequence[MetricBound] = ()
    ) -> About:
        """Of this search."""
        wanted = ", ".join((objective.text, *map(str, bounds)))
        return cls(__version__, bench.identity, wanted, plan.name, _texts(plan))


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    version: int
    about: About


class _Version(msgspec.Struct, frozen=True):
    format: str = ""
    version: int = 0


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: str | None
    repeat: int
    metrics: dict[str, float]
    readings: tuple[float, ...]
    observed: str | None
    elapsed_s: float
    groups: tuple[float, ...] = ()
    failed: str = ""


class Journal:
    """The journal of one search, held by one process.

    Args:
        path: the path of its file.
        about: the search.
        begin: "resume": the file is there and holds a part of this very search; "new": it must not be there;
            "anew": what is there is thrown away.

    Attributes:
        elapsed_s: the time that the search had taken when the last run was written down.

    Raises:
        InputError: the file is there, or is not, against `begin`; is of another search, or of a newer ascar;
            or is damaged: the file and the line.
        Refused: another process is at this search.
        WorkError: it cannot be written.
    """

    def __init__(self, path: Path, about: About, begin: Begin = "new") -> None:
        self._path = path
        self._known: dict[tuple[str | None, int], RuleRun] = {}
        self.elapsed_s = 0.0
        try:
            self._file = os.fdopen(os.open(path, _FLAGS[begin] | os.O_RDWR | os.O_CLOEXEC, 0o644), "r+b")
        except FileNotFoundError:
            raise InputError(
                f"journal {str(path)!r}: does not exist; leave --resume out to begin, and check "
                "that the directory is there"
            ) from None
        except FileExistsError:
            raise InputError(
                f"journal {str(path)!r}: already exists; go on with --resume, begin anew with --force, or "
                "name another --out"
            ) from None
        except OSError as error:
            raise InputError(f"journal {str(path)!r}: {error.strerror}; name another --out") from error
        try:
            self._lock()
            if begin == "anew":
                self._file.truncate(0)
            self._take_up(about)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        """Use it in a `with` block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let it go."""
        self._file.close()

    def __len__(self) -> int:
        """How many runs it holds."""
        return len(self._known)

    def known(self, trial: RuleTrial) -> RuleRun | None:
        """The result of a run, where it was made already."""
        return self._known.get(_key(trial))

    def add(self, trial: RuleTrial, result: RuleRun, elapsed_s: float) -> None:
        """Write a run down; it is on the disk when this returns.

        Raises:
            WorkError: the disk is full or gone.
        """
        rules, repeat = _key(trial)
        observed = None if result.rules is None else result.rules.text()
        found = (result.metrics, result.readings, observed, elapsed_s, result.groups, result.failed)
        self._write(_Entry(rules, repeat, *found))
        self._known[rules, repeat] = result
        self.elapsed_s = elapsed_s

    def forget(self, trial: RuleTrial) -> None:
        """Have a run made again; what is then added takes its place, also for who reads the file."""
        del self._known[_key(trial)]

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                f"journal {str(self._path)!r}: another process is at this search; wait for it, or stop it"
            ) from None

    def _take_up(self, about: About) -> None:
        whole = 0
        for number, line in enumerate(iter(lambda: self._file.readline(_LINE_BYTES_MAX), b""), start=1):
            if not line.endswith(b"\n"):
                if len(line) == _LINE_BYTES_MAX:
                    raise self._damaged(number, "is too long")
                break
            if number == 1:
                self._check(line, about)
            else:
                self._recall(line, number)
            whole += len(line)
        self._file.truncate(whole)
        self._file.seek(whole)
        if whole == 0:
            self._write(_Head(_FORMAT, VERSION, about))

    def _check(self, line: bytes, about: About) -> None:
        try:
            version = typed.decode(line, _Version)
            if version.format == _FORMAT and version.version > VERSION:
                raise InputError(
                    f"journal {str(self._path)!r}: has version {version.version}; this ascar reads up to "
                    f"{VERSION}: use the one that wrote it, or begin anew with another --out"
                )
            head = typed.decode(line, _Head)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._damaged(1, str(error)) from None
        if head.format != _FORMAT or head.version != VERSION:
            raise self._damaged(1, f"is not a head of version {VERSION}")
        for name in About.__struct_fields__:
            was, now = getattr(head.about, name), getattr(about, name)
            if was != now:
                raise InputError(
                    f"journal {str(self._path)!r}: its search had {name} = {was[:120]!r}, this one has "
                    f"{now[:120]!r}; put that back, or begin anew with --force or another --out"
                )

    def _recall(self, line: bytes, number: int) -> None:
        try:
            entry = typed.decode(line, _Entry)
            rules = None if entry.observed is None else RuleSet.parse(entry.observed)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._damaged(number, str(error)) from None
        except InputError as error:
            raise self._damaged(number, error.message) from None
        self._known[entry.rules, entry.repeat] = RuleRun(
            entry.metrics, entry.readings, rules, entry.groups, entry.failed
        )
        self.elapsed_s = max(self.elapsed_s, entry.elapsed_s)

    def _write(self, record: msgspec.Struct) -> None:
        try:
            self._file.write(msgspec.json.encode(record) + b"\n")
            self._file.flush()
            os.fdatasync(self._file.fileno())
        except OSError as error:
            raise WorkError(
                f"journal {str(self._path)!r}: {error.strerror}; make room and go on with --resume"
            ) from error

    def _damaged(self, line: int, what: str) -> InputError:
        return InputError(
            f"journal {str(self._path)!r}, line {line}: {what}; it is damaged: begin anew with --force or "
            "another --out"
        )


def _texts(plan: SearchPlan) -> str:
    return "".join(rules.bare().text() for rules in (plan.start, *plan.others))


def _key(trial: RuleTrial) -> tuple[str | None, int]:
    return (None if trial.rules is None else trial.rules.bare().text()), trial.repeat
