"""What a scenario's clients do, as jobs of fio on a testbed: the same load on real sockets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ascar.errors import ScenarioError, StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ascar.simulation.scenario import ClientGroup, Flowop, Scenario, ThreadGroup, Workload

CLIENTS_MAX, DEPTH_MAX = 64, 256
"""Clients on a testbed, and requests that each of them keeps in flight, at most."""
_KIB = 1024
_MIB = 1 << 20
_REPORT: Final = (
    "--thread=1",  # a proxy takes a process for a client, and all its connections for one stream
    "--output-format=json+",
    "--group_reporting=1",
    "--unified_rw_reporting=1",
    "--lat_percentiles=1",
    "--clat_percentiles=0",
    "--log_avg_msec=1000",
)


class Part(NamedTuple):
    """A part of a disk, in bytes."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class DiskReach:
    """How a client reaches a disk.

    Attributes:
        kind: "export": as a network block device, by its URI. "device": as a block device of its kernel.
            "folder": as files of a file system that its kernel has mounted.
        where: the URI, the device or the folder.
    """

    kind: Literal["export", "device", "folder"]
    where: str


@dataclass(frozen=True, slots=True)
class BlockJob:
    """What one process of fio does.

    Attributes:
        pattern: as fio's `rw` names it.
        write_percent: the share of writes, where the pattern has both.
        request_bytes: the size of a request.
        depth: the number of requests that it keeps in flight.
        part: the part of the disk that it works on.
        direct: whether it passes a client's cache, where the client has one.
    """

    pattern: str
    write_percent: int
    request_bytes: int
    depth: int
    part: Part
    direct: bool

    def words(self, name: str, reach: DiskReach) -> list[str]:
        """Options of fio."""
        mixed = [f"--rwmixwrite={self.write_percent}"] if self.pattern in ("rw", "randrw") else []
        offset, place = self.part.offset, [f"--filename={reach.where}"]
        if reach.kind == "export":
            place = ["--ioengine=nbd", f"--uri={reach.where}"]
        elif reach.kind == "folder":
            offset, place = 0, [f"--filename={reach.where}/part-{self.part.offset}"]
        waiting = [f"--iodepth={self.depth}"]
        if reach.kind != "export" and self.direct:
            waiting += ["--ioengine=libaio", "--direct=1"]
        elif reach.kind != "export":  # the kernel reads ahead and writes behind
            waiting = ["--ioengine=psync", f"--numjobs={self.depth if 'rand' in self.pattern else 1}"]
        return [
            f"--name={name}", *place, f"--rw={self.pattern}", *mixed, f"--bs={self.request_bytes}", *waiting,
            f"--offset={offset}", f"--size={self.part.size}",
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class BlockClient:
    """One client of a testbed.

    Attributes:
        number: its number, from 0.
        disk: the number of the disk that it works on.
        jobs: what it does, all at once.
    """

    number: int
    disk: int
    jobs: tuple[BlockJob, ...]

    @property
    def name(self) -> str:
        """What people call it."""
        return f"client {self.number + 1}"

    def words(self, reach: DiskReach, times_s: tuple[float, float], seed: int, log: str) -> list[str]:
        """The command that does it, and reports as JSON.

        Args:
            reach: how it reaches the disk.
            times_s: the seconds that are not counted, and those that are.
            seed: of random places.
            log: the beginning of the names of files for the throughput of each second.
        """
        ramp_s, run_s = times_s
        words = ["fio", *_REPORT, f"--write_bw_log={log}", f"--randseed={seed + self.number + 1}"]
        words += ["--norandommap", "--time_based=1", f"--ramp_time={round(1000 * ramp_s)}ms"]
        words += [f"--runtime={round(1000 * run_s)}ms"]
        return [*words, *self._jobs(reach)]

    def preparation(self, reach: DiskReach) -> list[str]:
        """The command that makes the files which it works on, and has them written."""
        return ["fio", "--thread=1", "--create_only=1", "--create_fsync=1", *self._jobs(reach)]

    def _jobs(self, reach: DiskReach) -> list[str]:
        return [word for at, job in enumerate(self.jobs) for word in job.words(f"job{at}", reach)]


def block_clients(
    scenario: Scenario, disk_of: Callable[[int], int], disks_bytes: Sequence[int]
) -> tuple[BlockClient, ...]:
    """The clients of a scenario, each with a part of a disk; with the same one where files are shared.

    A file is a part of the disk. What a client's cache keeps in flight (read-ahead, dirty data) is the depth
    of its jobs instead. Parts are as large as the files, or smaller where the disks are.

    Args:
        scenario: the scenario.
        disk_of: the number of the disk that a client works on.
        disks_bytes: the sizes of the disks.

    Raises:
        ScenarioError: its clients do what fio cannot do on a block device: the key.
        StudyError: a disk is too small.
    """
    _check(scenario)
    loads = {load.name: (at, load) for at, load in enumerate(scenario.workloads)}
    disks = [disk_of(number) for number in range(scenario.client_count)]
    clients: list[BlockClient] = []
    for group in scenario.clients:
        at, load = loads[group.workload]
        for _ in range(group.count):
            number = len(clients)
            disk = disks[number]
            sharing = 1 if all(one.shared for one in load.filesets) else disks.count(disk)
            size = disks_bytes[disk] // sharing // _MIB * _MIB
            before = disks[:number].count(disk) % sharing
            files = _files(load, Part(size * before, size))
            jobs = tuple(
                job
                for position, threads in enumerate(load.threads)
                for job in _jobs(f"workloads[{at}].threads[{position}]", threads, group, files)
            )
            clients.append(BlockClient(number, disk, jobs))
    return tuple(clients)


def _check(scenario: Scenario) -> None:
    if scenario.client_count > CLIENTS_MAX:
        raise ScenarioError(
            f"clients.count: {scenario.client_count} in all; a testbed takes at most {CLIENTS_MAX}"
        )
    if scenario.failures:
        raise ScenarioError("failures: must be left out on a testbed, where `ascar testbed cut` makes some")
    for at, group in enumerate(scenario.clients):
        for key, value in (("start_s", group.start_s), ("stop_s", group.stop_s), ("rogue", group.rogue)):
            if value:
                raise ScenarioError(
                    f"clients[{at}].{key} = {value!r}: must be left out on a testbed, whose clients "
                    "all begin at once and are all controlled"
                )
    for at, load in enumerate(scenario.workloads):
        for position, threads in enumerate(load.threads):
            for number, step in enumerate(threads.flowops):
                if step.op not in ("read", "write"):
                    raise ScenarioError(
                        f"workloads[{at}].threads[{position}].flowops[{number}].op = {step.op!r}: must be "
                        "'read' or 'write' on a testbed"
                    )
        for number, files in enumerate(load.filesets):
            if files.size_mib < 1:
                raise ScenarioError(
                    f"workloads[{at}].filesets[{number}].size_mib = {files.size_mib:g}: must be at least 1 "
                    "on a testbed"
                )


def _files(load: Workload, whole: Part) -> Mapping[str, tuple[Part, ...]]:
    """The parts that stand for the files of each set, one after the other, scaled down to what there is."""
    wanted = [(one, one.entries * one.size_mib * _MIB) for one in load.filesets]
    scale = min(1.0, whole.size / sum(size for _, size in wanted))
    found: dict[str, tuple[Part, ...]] = {}
    at = whole.offset
    for one, size in wanted:
        own = math.floor(size * scale / one.entries) // _MIB * _MIB
        if own < _MIB:
            raise StudyError(
                f"disk.size: leaves {whole.size} bytes to a client, less than 1 MiB for each file of "
                f"{one.name!r:.80}; give the disk more"
            )
        found[one.name] = tuple(Part(at + own * file, own) for file in range(one.entries))
        at += own * one.entries
    return found


def _jobs(
    key: str, threads: ThreadGroup, group: ClientGroup, files: Mapping[str, tuple[Part, ...]]
) -> list[BlockJob]:
    """The jobs of threads that are alike."""
    if threads.rate_per_s is not None:
        raise ScenarioError(
            f"{key}.rate_per_s = {threads.rate_per_s:g}: must be left out on a testbed, whose clients ask "
            "again when they were answered"
        )
    first = threads.flowops[0]
    for at, step in enumerate(threads.flowops):
        for name in ("fileset", "iosize_kib", "random", "directio", "file_per_thread"):
            if getattr(step, name) != getattr(first, name):
                raise ScenarioError(
                    f"{key}.flowops[{at}].{name} = {getattr(step, name)!r}: must be as in flowops[0] "
                    "on a testbed"
                )
    weights = {
        kind: sum(one.iters * one.probability_percent for one in threads.flowops if one.op == kind)
        for kind in ("read", "write")
    }
    if not sum(weights.values()):
        raise ScenarioError(f"{key}.flowops: all have probability_percent = 0; leave these threads out")
    own = files[first.fileset if first.fileset is not None else next(iter(files))]
    request = round(min(first.iosize_kib, group.request_kib) * _KIB)
    share = weights["write"] / sum(weights.values())
    each = max(_in_flight(step, group, request, threads.instances) for step in threads.flowops)
    _check_depth(key, threads.instances * each)
    pattern = {0.0: "read", 1.0: "write"}.get(share, "rw")
    if first.random:
        whole = Part(own[0].offset, sum(one.size for one in own))
        depth = threads.instances * each
        return [BlockJob(f"rand{pattern}", round(100 * share), request, depth, whole, direct=first.directio)]
    return [
        BlockJob(
            pattern,
            round(100 * share),
            request,
            each,
            _of_thread(number, threads, first, own),
            direct=first.directio,
        )
        for number in range(threads.instances)
    ]


def _of_thread(number: int, threads: ThreadGroup, step: Flowop, files: Sequence[Part]) -> Part:
    """What a thread goes through in sequence: a file, or its share of one that several work on."""
    sharing = max(1, math.ceil(threads.instances / len(files)))
    file = files[number % len(files)]
    if step.file_per_thread or sharing == 1:
        return file
    size = max(_MIB, file.size // sharing // _MIB * _MIB)
    return Part(file.offset + min(size * (number // len(files)), file.size - size), size)


def _in_flight(step: Flowop, group: ClientGroup, request: int, instances: int) -> int:
    """The requests that one thread keeps in flight: of an operation, or what its cache sends by itself."""
    operation = math.ceil(step.iosize_kib * _KIB / request)
    if step.directio:
        return operation
    if step.op == "write":
        return max(operation, min(64, math.floor(group.cache.dirty_limit_mib * _MIB / request / instances)))
    ahead = 0 if step.random else min(64, math.ceil(group.cache.read_ahead_mib * _MIB / request))
    return max(operation, ahead)


def _check_depth(key: str, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise ScenarioError(
            f"{key}.instances: its threads keep {depth} requests in flight a client; a testbed takes at most "
            f"{DEPTH_MAX}"
        )
