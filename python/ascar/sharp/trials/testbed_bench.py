"""A testbed as a bench: the clients of a scenario on real disks, real proxies and real time.

For each run all of it is started, and all of it is gone at its end. Rules go to proxies, or to the agents of
nodes that are kernels, by the messages of the rule manager, as `ascar sharp deploy` sends them.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import msgspec

from ascar.errors import EnvironmentLacks, InputError, StudyError, WorkError
from ascar.messaging import Background, find_settings
from ascar.rules import Action, RuleSet
from ascar.sharp.deployment.controller_socket import open_link
from ascar.sharp.deployment.manager import Manager
from ascar.sharp.deployment.naming import rules_id
from ascar.sharp.trials.bench import SHARES, RuleRun, merged
from ascar.sharp.trials.block_clients import DiskReach, block_clients
from ascar.sharp.trials.block_report import METRICS, ClientReport, run_metrics
from ascar.sharp.trials.testbed_places import places_on
from ascar.systems.dirty_pages import drop_caches
from ascar.testbed.folder import TestbedFolder, testbeds_folder
from ascar.testbed.running import RunningTestbed
from ascar.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from ascar.objective import Objective
    from ascar.sharp.metric_bounds import MetricBound
    from ascar.sharp.trials.bench import RuleTrial
    from ascar.sharp.trials.block_clients import BlockClient
    from ascar.sharp.trials.testbed_places import ClientPlace
    from ascar.simulation import Scenario
    from ascar.testbed.file import DiskTable, TestbedFile

_LOOK_S = 0.1
_OVERRUN_S, _SLOW_BYTES_PER_S = 30.0, 4 << 20
_CALL_S = 60.0
_LOG_S = 20.0
_FILL_S = 300.0
_PLACES_APART = 1_000  # seeds of the clients of a run


def fixed(window: int, tau_us: int = 0) -> RuleSet:
    """A static window and gap as a rule set, which goes where rules go."""
    return RuleSet.uniform(Action(0, 100 * window, tau_us))


def check_fio() -> None:
    """See that fio is there, with its engine for network block devices.

    Raises:
        EnvironmentLacks: it is not.
    """
    found = shutil.which("fio")
    engines = ""
    if found is not None:
        words = [found, "--enghelp"]
        engines = subprocess.run(words, capture_output=True, text=True, timeout=_LOG_S, check=False).stdout
    if "nbd" not in engines.split():
        what = "is not in PATH" if found is None else "has no engine 'nbd'"
        raise EnvironmentLacks(f"fio: {what}; install it (Debian: apt-get install fio)")


@dataclass(frozen=True, slots=True)
class _Running:
    """A client that runs.

    Attributes:
        client: the client.
        node: the node that it runs on.
        process: fio.
        said: what it writes to standard error.
        log: the beginning of the names of its log files, on the node.
    """

    client: BlockClient
    node: str
    process: subprocess.Popen[bytes]
    said: IO[bytes]
    log: str


class _Controllers(NamedTuple):
    """Who follows rules, and the file of the connection by which they are reached."""

    connection: Path
    names: tuple[str, ...]


class TestbedBench:
    """A testbed as a bench; a repeat is a seed of random places.

    A run that fails is one without metrics, and says why; the next begins with everything started anew.

    Args:
        wanted: the testbed; its clients are spread over its proxies in turn, or where it has none over the
            nodes that attach or mount its disks: there rules act by the windows of agents, if there are such.
        scenario: what its clients do, see `ascar.sharp.trials.testbed_places.scenario_on`.
        objective: the objective over the metrics of a run.
        bounds: the bounds that rules must keep; those of shares are checked by the last comparison alone.
        tell: hears in a few words what is done now.

    Raises:
        InputError: the objective or a bound names what no run tells.
        ScenarioError: clients do what cannot be done on block devices.
        StudyError: a disk has no size, or one that is too small.
        EnvironmentLacks: fio is not there.
        Refused: the testbed is up already.
    """

    def __init__(
        self,
        wanted: TestbedFile,
        scenario: Scenario,
        objective: Objective,
        *,
        bounds: Sequence[MetricBound] = (),
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        told = {*METRICS, *(name for name in SHARES if name.endswith("_share_min"))}
        named = {"--objective": objective.formula.names, "--constraint": [one.metric for one in bounds]}
        for option, names in named.items():
            allowed = METRICS if option == "--objective" else told
            for name in names:
                if name not in allowed:
                    raise InputError(
                        f"{option} names {name[:80]!r}; a testbed tells {', '.join(sorted(allowed))}"
                    )
        self._wanted, self._scenario, self._tell = wanted, scenario, tell
        self._places = places_on(wanted)
        self.clients = block_clients(
            scenario, lambda number: self._place_of(number).disk, _sizes(wanted.disk)
        )
        check_fio()
        self._folder.check_down()
        self._was_up = False

    @property
    def identity(self) -> str:
        """Digest of the testbed and of what its clients do."""
        known = msgspec.json.encode(self._wanted) + self._scenario.to_json().encode()
        return hashlib.sha256(known).hexdigest()

    @property
    def groups(self) -> tuple[str, ...]:
        """Each client is one."""
        return tuple(one.name for one in self.clients)

    @property
    def run_s(self) -> float:
        """The seconds of load in a run; starting and ending all of it comes on top."""
        return self._scenario.warmup_s + self._scenario.duration_s

    def run(self, trials: Iterable[RuleTrial]) -> Generator[RuleRun]:
        """Run trials one after the other, each on a testbed that is started for it.

        Raises:
            EnvironmentLacks: what the nodes need is not there.
            Refused: the testbed is up already.
        """
        for trial in trials:
            try:
                found = self._one(trial)
            except (WorkError, EnvironmentLacks, OSError) as error:
                if isinstance(error, EnvironmentLacks) and not self._was_up:
                    raise
                why = error.strerror if isinstance(error, OSError) else error.message
                found = RuleRun({}, (), None, failed=why or "failed without a word")
            yield found

    @property
    def _folder(self) -> TestbedFolder:
        """Of one run."""
        return TestbedFolder(testbeds_folder() / self._wanted.name)

    def _one(self, trial: RuleTrial) -> RuleRun:
        with self._folder as place, RunningTestbed(self._wanted, place, self._tell) as testbed:
            self._was_up = True
            rules = None if trial.rules is None else trial.rules.bare()
            named = None if rules is None else rules_id(rules)
            controllers = self._controllers(testbed)
            if rules is not None and not controllers:
                raise InputError("rules: act on proxies or windows of agents, and this testbed has none")
            self._prepare(testbed)
            with Background() as background:
                if rules is not None:
                    self._tell("rules are deployed")
                    for at in controllers:
                        background.call(_deploy(at, rules), _CALL_S)
                self._tell("the load runs")
                reports = self._load(testbed, trial.repeat)
                used: dict[str, RuleSet | None] = {}
                for at in controllers:
                    used |= background.call(_used(at), _CALL_S)
        for name, one in used.items():
            if (None if one is None else rules_id(one.bare())) != named:
                raise WorkError(f"{name}: follows other rules than those deployed; was it restarted?")
        metrics, totals = run_metrics(reports)
        seen = [one for one in used.values() if one is not None]
        return RuleRun(
            metrics, totals, merged(seen) if seen else None, tuple(one.mb_per_s for one in reports)
        )

    def _controllers(self, testbed: RunningTestbed) -> list[_Controllers]:
        """Proxies, each behind a socket; where there are none, agents behind the message server."""
        proxies = [_Controllers(Path(one.connection), (one.node,)) for one in testbed.proxies()]
        agents = tuple(one.node for one in self._wanted.agent if one.windows is not None)
        if proxies or not agents:
            return proxies
        return [_Controllers(Path(testbed.connections()["manager"]), agents)]

    def _load(self, testbed: RunningTestbed, repeat: int) -> list[ClientReport]:
        """Run all clients at once.

        Raises:
            WorkError: one fails, or a part of the testbed ends meanwhile.
        """
        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(len(self.clients)))
            running = [self._start(stack, testbed, client, repeat) for client in self.clients]
            ended = [pool.submit(one.process.communicate) for one in running]
            in_flight = sum(job.depth * job.request_bytes for one in self.clients for job in one.jobs)
            overrun_s = _OVERRUN_S + in_flight / _SLOW_BYTES_PER_S  # clients wait for their last answers
            end_s = time.monotonic() + self.run_s + overrun_s
            while not all(one.done() for one in ended):
                _check_on(testbed)
                if time.monotonic() > end_s:
                    late = next(one for one, done in zip(running, ended, strict=True) if not done.done())
                    raise WorkError(
                        f"{late.client.name}: does not end within {overrun_s:.0f} s after its time was over"
                    )
                time.sleep(_LOOK_S)
            _check_on(testbed)
            said = [one.result()[0].decode("utf-8", "replace") for one in ended]
            return [_report(testbed, one, text) for one, text in zip(running, said, strict=True)]

    def _start(self, stack: ExitStack, testbed: RunningTestbed, client: BlockClient, repeat: int) -> _Running:
        place = self._place_of(client.number)
        reach = place.reach
        if reach is None:
            disk = testbed.disks()[client.disk]
            (proxy,) = (one for one in testbed.proxies() if one.node == place.node)
            reach = DiskReach("export", f"nbd+unix:///{disk.exports[0]}?socket={proxy.sockets[disk.name]}")
        log = str(testbed.folder_of(place.node) / f"client-{client.number + 1}")
        times_s = (self._scenario.warmup_s, self._scenario.duration_s)
        words = client.words(reach, times_s, _PLACES_APART * (repeat + 1), log)
        said = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  # the stack closes it
        process = testbed.machine(place.node).open(words, said)
        stack.callback(process.kill)
        return _Running(client, place.node, process, said, log)

    def _prepare(self, testbed: RunningTestbed) -> None:
        """Make the files of clients that work on files, and empty the cache of the server that has them now.

        Raises:
            WorkError: they cannot be made.
        """
        for client in self.clients:
            place = self._place_of(client.number)
            if place.reach is None or place.reach.kind != "folder":
                continue
            self._tell(f"{client.name}: its files are made")
            done = testbed.machine(place.node).run(client.preparation(place.reach), _FILL_S)
            if done.status != 0:
                raise WorkError(f"{client.name}: its files cannot be made: {done.err.strip()[-300:]}")
            server = testbed.machine(self._wanted.disk[place.disk].node)
            drop_caches(server, _FILL_S)

    def _place_of(self, client: int) -> ClientPlace:
        return self._places[client % len(self._places)]


def _sizes(disks: Sequence[DiskTable]) -> list[int]:
    for at, disk in enumerate(disks):
        if disk.size is None:
            raise StudyError(f"disk[{at}].size: must be given for clients to share it out, e.g. '4GiB'")
    return [parse_size(disk.size) for disk in disks if disk.size is not None]


def _check_on(testbed: RunningTestbed) -> None:
    """See that all of it is on.

    Raises:
        WorkError: a node, a disk, a proxy or an agent has ended; it is named.
    """
    testbed.look()
    for node in testbed.nodes():
        if not node.alive:
            raise WorkError(f"node {node.name}: ended in the run")
    for disk in testbed.disks():
        if not disk.alive:
            raise WorkError(f"disk {disk.name}: ended in the run")
    for proxy in testbed.proxies():
        if not proxy.alive:
            raise WorkError(f"proxy of {proxy.node}: ended in the run")
    for agent in testbed.agents():
        if not agent.alive:
            raise WorkError(f"agent of {agent.node}: ended in the run")


def _report(testbed: RunningTestbed, running: _Running, said: str) -> ClientReport:
    name = running.client.name
    if running.process.returncode != 0:
        running.said.seek(0)
        words = running.said.read(1 << 16).decode("utf-8", "replace").strip().splitlines() or ["no message"]
        raise WorkError(f"{name}: fio ends with {running.process.returncode}: {words[-1][:300]}")
    shell = ["sh", "-c", 'cat "$1"_bw.*.log', "sh", running.log]
    log = testbed.machine(running.node).run(shell, _LOG_S)
    return ClientReport.of(name, said, log.out.decode("utf-8", "replace"))


async def _deploy(at: _Controllers, rules: RuleSet) -> None:
    async with await open_link(find_settings("manager", at.connection), name="ascar testbed") as link:
        await Manager(link).deploy(rules, None, at.names)


async def _used(at: _Controllers) -> dict[str, RuleSet | None]:
    """What controllers follow, with its use; None: no rules."""
    async with await open_link(find_settings("manager", at.connection), name="ascar testbed") as link:
        shown, problems = await Manager(link).shown(at.names)
    if problems:
        raise WorkError("; ".join(map(str, problems)))
    return {one.controller: None if one.text is None else RuleSet.parse(one.text) for one in shown}
