"""Optimizers of others, each a process in an environment of its own, on the space that ascar has.

Lists of ordered values are integers (their index), unordered ones categories, ranges numbers on their scale.
A range with special values has a category beside it, which says whether one of them is meant. Ranges end
where no valid configuration is any more. What breaks a constraint inside them costs no trial: the optimizer
is told, and asked again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.errors import SpaceError
from ascar.space import Choices

from .harness import called
from .server_rivals_reach import reach

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import IO

    from ascar.space import Configuration, Range, Space, Value

    from .server_rivals_testbed import Bench

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / "build" / "rivals"
_ASKED_MAX = 200
_SAMPLES = 30
_SPECIAL = "__special"
_WORST_COST = 10.0


@dataclass(frozen=True, slots=True)
class Peer:
    """An optimizer of others.

    Attributes:
        script: its process, in `peers/`.
        requirements: what pip installs for it.
    """

    script: str
    requirements: tuple[str, ...]

    def python(self, name: str) -> Path:
        """The Python of its environment, which is made where it is not there.

        Raises:
            RuntimeError: it cannot be installed here.
        """
        place = ENVIRONMENTS / name
        done, python = place / "requirements.txt", place / "bin" / "python"
        wanted = "".join(f"{one}\n" for one in self.requirements)
        if not done.exists() or done.read_text() != wanted:
            called(sys.executable, "-m", "venv", "--clear", place)
            called(
                python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *self.requirements
            )
            done.write_text(wanted)
        return python


PEERS = {
    "optuna": Peer("optuna_process.py", ("optuna==5.0.0",)),
    "smac": Peer("smac_process.py", ("smac==2.4.1",)),
    "mlos": Peer("mlos_process.py", ("mlos-core[smac]==0.6.2",)),
}


@dataclass(frozen=True)
class Codes:
    """A space as numbers and categories.

    Attributes:
        space: the space.
    """

    space: Space
    _high: dict[str, float] = field(default_factory=dict[str, float])
    _low: dict[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        """Find where the ranges end."""
        samples = [self.space.default(), *self.space.sample(np.random.default_rng(1), _SAMPLES)]
        bound = {name for constraint in self.space.constraints for name in constraint.names}
        for name in self.space.names:
            domain = self.space.domain(name)
            if isinstance(domain, Choices):
                continue
            self._low[name], self._high[name] = domain.low, domain.high
            if name in bound:
                self._low[name] = min(float(reach(self.space, one, name, 0.0)) for one in samples)
                self._high[name] = max(float(reach(self.space, one, name, 1.0)) for one in samples)
                if domain.integer:
                    self._low[name], self._high[name] = int(self._low[name]), int(self._high[name])

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """The parameters, as `peers/asking.py` has them."""
        found: list[dict[str, Any]] = []
        for name in self.space.names:
            domain = self.space.domain(name)
            if isinstance(domain, Choices):
                if len(domain.values) > 1:
                    kind = "integer" if domain.ordered else "category"
                    found.append(_coded(name, kind, 0, len(domain.values) - 1))
                continue
            kind = "integer" if domain.integer else "real"
            if self._low[name] < self._high[name]:
                found.append(_coded(name, kind, self._low[name], self._high[name], log=domain.log))
            if domain.special:
                found.append(_coded(name + _SPECIAL, "category", 0, len(domain.special)))
        return found

    def encoded(self, configuration: Mapping[str, Value]) -> dict[str, Any]:
        """A configuration as numbers."""
        values: dict[str, Any] = {}
        for one in self.parameters:
            name = one["name"].removesuffix(_SPECIAL)
            domain, value = self.space.domain(name), configuration.get(name, self.space[name].default)
            if isinstance(domain, Choices):
                values[name] = domain.values.index(value)
            elif one["name"] != name:
                values[one["name"]] = domain.special.index(value) + 1 if value in domain.special else 0
            elif value in domain.special:
                values[name] = _middle(domain, self._low[name], self._high[name])
            else:
                values[name] = value
        return values

    def decoded(self, values: Mapping[str, Any]) -> Configuration | None:
        """The configuration that numbers stand for; None where it is not valid."""
        found: dict[str, Value] = {}
        for name in self.space.names:
            domain = self.space.domain(name)
            if isinstance(domain, Choices):
                found[name] = domain.values[int(values.get(name, 0))]
            elif special := int(values.get(name + _SPECIAL, 0)):
                found[name] = domain.special[special - 1]
            else:
                number = values.get(name, self._low[name])
                found[name] = domain.nearest(domain.position(min(max(number, domain.low), domain.high)))
        known: dict[str, Value | None] = {}
        for level in self.space._solver.order:
            known[level.name] = found[level.name] if self.space._active(level.name, known) else None
        try:
            return self.space.validate({name: value for name, value in known.items() if value is not None})
        except SpaceError:
            return None


def _coded(name: str, kind: str, low: float, high: float, *, log: bool = False) -> dict[str, Any]:
    return {"name": name, "kind": kind, "low": low, "high": high, "log": log}


def _middle(domain: Range, low: float, high: float) -> float:
    return domain.nearest((domain.position(low) + domain.position(high)) / 2)


@dataclass(slots=True)
class AskedPeer:
    """A peer's process.

    Attributes:
        codes: the space.
        reference: the score whose cost is 1: a cost is this over a score.
        rejected: the configurations asked for that were not valid.
        worst: the worst cost so far.
    """

    codes: Codes
    reference: float
    requests: IO[str]
    answers: IO[str]
    rejected: int = 0
    worst: float = 1.0

    def known(self, configuration: Configuration, score: float) -> None:
        """Tell it a measurement that it did not ask for."""
        self._say({"do": "known", "values": self.codes.encoded(configuration), "cost": self._cost(score)})

    def ask(self) -> Configuration:
        """The next valid configuration that it asks for.

        Raises:
            RuntimeError: it finds none, or ends.
        """
        for _ in range(_ASKED_MAX):
            found = self.codes.decoded(self._answer("ask"))
            if found is not None:
                return found
            self.rejected += 1
            self._say({"do": "tell", "how": "invalid", "cost": self.worst})
        raise RuntimeError(f"it asked for {_ASKED_MAX} configurations in a row that are not valid")

    def tell(self, score: float | None) -> None:
        """Tell it what became of the last one; None: it failed."""
        how = "failed" if score is None else "measured"
        self._say({"do": "tell", "how": how, "cost": self._cost(score)})

    def best(self) -> Configuration:
        """What it recommends.

        Raises:
            RuntimeError: that is not valid, or it ended.
        """
        found = self.codes.decoded(self._answer("best"))
        if found is None:
            raise RuntimeError("it recommends what is not valid")
        return found

    def _cost(self, score: float | None) -> float:
        if score is None:
            return self.worst
        cost = min(self.reference / score, _WORST_COST) if score > 0 else _WORST_COST
        self.worst = max(self.worst, cost)
        return cost

    def _answer(self, do: str) -> dict[str, Any]:
        self._say({"do": do})
        line = self.answers.readline()
        if not line:
            raise RuntimeError("its process ended")
        return json.loads(line)["values"]

    def _say(self, message: Mapping[str, Any]) -> None:
        try:
            self.requests.write(json.dumps(message) + "\n")
            self.requests.flush()
        except BrokenPipeError as error:
            raise RuntimeError("its process ended") from error


@contextmanager
def asking(name: str, codes: Codes, reference: float, trials: int, seed: int) -> Generator[AskedPeer]:
    """Start a peer's process.

    Args:
        name: the peer.
        codes: the space.
        reference: the default's score.
        trials: the trials that it has.
        seed: its seed.

    Raises:
        RuntimeError: it cannot be installed, or it fails; with its last words.
    """
    peer = PEERS[name]
    words = [str(peer.python(name)), str(HERE / "peers" / peer.script)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        one = AskedPeer(codes, reference, process.stdin, process.stdout)
        try:
            one._say({"parameters": codes.parameters, "trials": trials, "seed": seed})
            yield one
        except RuntimeError as error:
            process.kill()
            raise RuntimeError(f"{name}: {error}: {process.stderr.read().strip()[-300:]}") from error
        finally:
            process.kill()


def searched(bench: Bench, name: str, trials: int, seed: int) -> dict[str, Any]:
    """A peer's search: so many trials, of which the default is the first.

    Args:
        bench: carries out the trials.
        name: the peer.
        trials: the number of trials.
        seed: the peer's seed.

    Returns:
        What it recommends, the gain that it reports for that, all scores, and what it took.

    Raises:
        RuntimeError: the peer cannot be run, or the default fails.
    """
    PEERS[name].python(name)  # installing it is not part of its time
    start_s, asked_s = time.monotonic(), 0.0
    space = bench.prepared.space
    default = bench.attempt(space.default())
    if default.score is None:
        raise RuntimeError(f"the default fails: {default.failure}")
    scores: dict[Configuration, float] = {space.default(): default.score}
    told: list[float | None] = [default.score]
    with asking(name, Codes(space), default.score, trials, seed) as peer:
        peer.known(space.default(), default.score)
        for _ in range(trials - 1):
            before_s = time.monotonic()
            configuration = peer.ask()
            asked_s += time.monotonic() - before_s
            trial = bench.attempt(configuration)
            peer.tell(trial.score)
            told.append(trial.score)
            if trial.score is not None:
                scores[configuration] = trial.score
        best = peer.best()
        rejected = peer.rejected
    return {
        "recommended": dict(best),
        "reported": scores[best] / default.score - 1,
        "scores": told,
        "failed": sum(one is None for one in told),
        "rejected": rejected,
        "seconds": time.monotonic() - start_s,
        "asked_s": asked_s,
    }
