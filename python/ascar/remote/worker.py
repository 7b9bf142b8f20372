"""The process in a node in which a study's trials run: it has target and load, and does as it is asked.

    python -m ascar.remote.worker

Requests and answers are `ascar.systems.trial_messages`, on standard input and output. At the end of the input
everything is put back, and it ends.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ascar.errors import AscarError, StageFailed
from ascar.space import ChangeCost, Configuration
from ascar.systems import open_target
from ascar.systems.localfs import LocalFileSystem
from ascar.systems.trial_messages import (
    ToldReadings,
    ToldSample,
    TrialAnswer,
    TrialFault,
    TrialHello,
    TrialRequest,
    after,
    decode_request,
    encode,
    kept_of,
    series_told,
)
from ascar.workloads import open_workload
from ascar.workspace import LoadTiming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ascar.results.measurement import Series
    from ascar.workloads import Workload


class TrialWorker:
    """Answers the requests of one study.

    Args:
        lines: what it is asked.
        say: sends a line.
    """

    def __init__(self, lines: Iterator[bytes], say: Callable[[bytes], None]) -> None:
        self._lines, self._say = lines, say
        self._held = ExitStack()
        self._target: LocalFileSystem | None = None
        self._load: tuple[dict[str, Any], Workload] | None = None
        self._looked: dict[str, Series] = {}

    def serve(self) -> None:
        """Answer until nobody asks any more; everything is put back then."""
        with self._held:
            for line in self._lines:
                self._say(encode(self._answer(decode_request(line))))

    def _answer(self, request: TrialRequest) -> TrialAnswer:
        try:
            return TrialAnswer.of(self._do(request.ask, request.given))
        except StageFailed as error:
            said = error.message.removeprefix(f"{error.stage}: ")
            return TrialAnswer(fault=TrialFault("StageFailed", said, error.stage, error.stderr))
        except AscarError as error:
            return TrialAnswer(fault=TrialFault(type(error).__name__, error.message))
        except Exception as error:  # noqa: BLE001 - whatever it is fails the trial, and is told
            said = " ".join(str(error).split())[:300]
            return TrialAnswer(fault=TrialFault("other", f"{type(error).__name__}: {said}"))

    def _do(self, ask: str, given: Mapping[str, Any]) -> Any:
        """What is asked of the load, or of the target."""
        match ask:
            case "open":
                return self._open(given["target"])
            case "leave":
                self._held.close()
                return self._entered().restored
            case "prepare":
                return self._opened(given["workload"]).prepare(self._entered().workspace)
            case "run":
                return self._run(given["workload"], given["timing"])
            case "apply":
                if given["afresh"]:
                    self._entered().start_afresh()
                return self._entered().apply(Configuration(given["configuration"]))
            case _:
                return self._told(ask, given)

    def _told(self, ask: str, given: Mapping[str, Any]) -> Any:
        """What the target tells, and what it does with what a load left."""
        target = self._entered()
        match ask:
            case "read":
                return dict(target.read(given["names"]))
            case "settle":
                return dict(target.settle())
            case "sample":
                return ToldSample.of(target.sample())
            case "drain":
                return target.drain(given["limit_s"])
            case "cycle_s":
                return target.cycle_s(Configuration(given["configuration"]), {})
            case _:
                assert ask == "describe", ask
                return dict(target.describe())

    def _open(self, options: Mapping[str, Any]) -> TrialHello:
        target = open_target(options)
        assert isinstance(target, LocalFileSystem), "the study's side is of this kind"
        self._target = self._held.enter_context(target)
        defaults = {
            one.name: one.default
            for one in target.space.parameters
            if one.cost is ChangeCost.DYN_KERNEL and isinstance(one.default, int | str)
        }
        return TrialHello(target.mountable, defaults)

    def _run(self, options: dict[str, Any], timing: Mapping[str, Any]) -> ToldReadings:
        self._looked = {}
        pace = LoadTiming(**timing, may_end=self._may_end)
        return ToldReadings.of(self._opened(options).run(self._entered().workspace, pace))

    def _may_end(self, series: Mapping[str, Series]) -> bool:
        """Ask the study; nobody there ends the load."""
        kept = kept_of(self._looked, series)
        self._looked = dict(series)
        self._say(encode(TrialAnswer(look=series_told(after(series, kept)), kept=kept)))
        line = next(self._lines, None)
        return line is None or bool(decode_request(line).given["ends"])

    def _opened(self, options: dict[str, Any]) -> Workload:
        if self._load is None or self._load[0] != options:
            self._load = options, open_workload(options, self._entered().default_workload)
        return self._load[1]

    def _entered(self) -> LocalFileSystem:
        assert self._target is not None, "a target is opened before it is asked"
        return self._target


def main() -> None:
    """Serve standard input and output, which programs of the load do not see."""
    asked, answered = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    with os.fdopen(asked, "rb") as lines, os.fdopen(answered, "wb", buffering=0) as out:

        def say(line: bytes) -> None:
            left = memoryview(line + b"\n")
            while left:
                left = left[out.write(left) :]

        TrialWorker(iter(lines), say).serve()


if __name__ == "__main__":
    main()
