"""`lctl get_param` and `lctl set_param`, never with `-P`: parameters, states of imports, statistics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.catalogues.lustre import is_of, lustre, parameter_pattern
from ascar.errors import StageFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ascar.nodes import Node

LIMIT_S = 10.0
"""How long one call of `lctl` may take."""
_AT_ONCE = 100  # parameters of one call: each is a connection of its own to a node
_PASSES = 4  # what Lustre changes with a parameter is set in the next pass at the latest
_SERVING = frozenset({"FULL", "IDLE"})
_HEAD = re.compile(r"(osc|mdc|llite|obdfilter|mdt)\.([A-Za-z0-9_-]{1,128})\.([a-z_]{1,64})=(.*)")
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_STATE = re.compile(r"\s*state:\s*(\S+)\s*")
_ALLOWED = re.compile(r"\s*(max_brw_size|grant_block_size|max_mod_rpcs):\s*([0-9]{1,15})\s*")
_MEMORY = re.compile(r"MemTotal:\s*([0-9]{1,15}) kB")
_FLAGS = re.compile(r"\s*import_flags:\s*\[(.*)\]\s*")
_DISTURBED = re.compile(r"\s*-\s*\[\s*([0-9]+),\s*(EVICTED|DISCONN|REPLAY\w*|RECOVER)\s*\]")
_TARGET = re.compile(r"-(OST[0-9A-Fa-f]{4})")
_STATISTIC = re.compile(
    r"(\w+)\s+([0-9]+) samples \[(usecs?|bytes|reqs|regs)\](?: [0-9]+ [0-9]+ ([0-9]+)(?: [0-9]+)?)?"
)
_VERSION = re.compile(r"(?<![0-9.])([0-9]{1,3})\.([0-9]{1,3})(?![0-9])")
_JOB = re.compile(r"\s*- job_id:\s+(.{1,256})")
_COUNTED = re.compile(
    r"\s*(\w+):\s*\{ samples:\s*([0-9]{1,20}), unit:\s*\w+"
    r"(?:, min:\s*[0-9]+, max:\s*[0-9]+, sum:\s*([0-9]{1,20}))?.*"
)


@dataclass(frozen=True, slots=True)
class LctlParameter:
    """A parameter of a device, as `lctl` tells it.

    Attributes:
        full: its whole name.
        setting: the kind of device and the parameter.
        text: its value, of a line or of several.
    """

    full: str
    setting: str
    text: str

    @property
    def device(self) -> str:
        """The kind and the name of the device."""
        return self.full.rpartition(".")[0]


class Lctl:
    """The `lctl` of a client.

    Args:
        node: the machine.
        program: the path of `lctl` there.
        file_system: the name of the file system.
    """

    def __init__(self, node: Node, program: str, file_system: str) -> None:
        self._node, self._program, self._file_system = node, program, file_system

    def known(self, settings: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the settings that the client has.

        Raises:
            StageFailed: it has none.
        """
        done = self._node.run([self._program, "get_param", *self._patterns(settings)], LIMIT_S)
        found = {one.setting for one in self._mine(done.out)}
        if not found:
            raise StageFailed(
                "lctl", f"get_param: no setting is known; is {self._file_system!r} mounted?", done.err
            )
        return tuple(name for name in settings if name in found)

    def allowed(self) -> dict[str, int]:
        """What the client's memory and all its targets allow, by the names of formulas in `lustre.toml`."""
        told_by_targets = (
            (match[1], int(match[2]))
            for one in self._imports("import")
            if not _is_deactivated(one)
            for line in one.text.splitlines()
            # Settings of bulk data are those of OSCs, and metadata have limits of their own.
            if (match := _ALLOWED.fullmatch(line)) is not None
            and (match[1] != "max_mod_rpcs") == one.full.startswith("osc.")
        )
        found = allowed_by_all(told_by_targets)
        done = self._node.run(["cat", "/proc/meminfo"], LIMIT_S)
        if (match := _MEMORY.search(done.out.decode("utf-8", errors="replace"))) is not None:
            found["memory_mb"] = int(match[1]) // 1024
        return found

    def values(self, settings: tuple[str, ...]) -> dict[str, float]:
        """The values in force by full name, of all devices; not whole where Lustre has counted in pages.

        Raises:
            StageFailed: `lctl` fails, or what it says cannot be read.
        """
        found = {one.full: (one.setting, _number(one)) for one in self._told(*self._patterns(settings))}
        missing = [name for name in settings if name not in {setting for setting, _ in found.values()}]
        if missing:
            raise StageFailed("lctl", f"{missing[0]}: no device of {self._file_system!r} has it")
        return {full: value for full, (_, value) in found.items()}

    def put(self, wanted: Mapping[str, int]) -> None:
        """Set parameters by full name until all are in force, whatever Lustre changes with each.

        Raises:
            StageFailed: one is not in force in the end, in Lustre's own words.
        """
        order = list(lustre())
        names = sorted(wanted, key=lambda full: (order.index(setting_of(full)), full))
        settings = tuple({setting_of(full): None for full in names})
        refusal, different = "", names
        for _ in range(_PASSES):
            present = self.values(settings)
            different = [full for full in names if present.get(full) != wanted[full]]
            if not different:
                return
            for first in range(0, len(different), _AT_ONCE):
                words = [f"{full}={wanted[full]}" for full in different[first : first + _AT_ONCE]]
                done = self._node.run([self._program, "set_param", *words], LIMIT_S)
                refusal = done.err if done.status != 0 else refusal
        present = self.values(settings)
        for full in different:
            if present.get(full) != wanted[full]:
                shown = present.get(full, "gone")
                raise StageFailed("lctl", f"{full} = {wanted[full]}: is {shown} after set_param", refusal)

    def check_serving(self) -> frozenset[str]:
        """See that every target is connected, but for those that an administrator has deactivated.

        Returns:
            The devices of these.

        Raises:
            StageFailed: one is not, by its state: recovery, eviction, a connection that broke.
        """
        idle: list[str] = []
        for one in self._imports("import"):
            if _is_deactivated(one):
                idle.append(one.device)
                continue
            found = [match[1] for line in one.text.splitlines() if (match := _STATE.fullmatch(line))]
            if len(found) != 1:
                raise StageFailed("lctl", f"{one.full}: must have one line with its state, has {len(found)}")
            if found[0] not in _SERVING:
                raise StageFailed("lctl", f"{one.full}: the state is {found[0]:.40}; must be FULL or IDLE")
        return frozenset(idle)

    def osts(self) -> int:
        """The OSTs that the client knows and uses, however often it has the file system mounted."""
        used = (one.full for one in self._imports("import") if not _is_deactivated(one))
        return len({match[1] for full in used if (match := _TARGET.search(full)) is not None})

    def disturbances(self) -> frozenset[tuple[str, int, str]]:
        """What imports remember of evictions, lost connections and recoveries: device, second and state."""
        return frozenset(
            (one.full, int(match[1]), match[2])
            for one in self._imports("state")
            for line in one.text.splitlines()
            if (match := _DISTURBED.match(line))
        )

    def counters(self) -> dict[str, float]:
        """Requests, seconds of waiting and bytes, of all devices of a kind together."""
        totals: dict[str, float] = {}
        for kind in ("osc", "mdc"):
            totals |= {f"{kind}_requests": 0.0, f"{kind}_wait_s": 0.0}
        totals |= {"osc_read_bytes": 0.0, "osc_write_bytes": 0.0}
        for one in self._imports("stats"):
            kind = one.full.split(".", 1)[0]
            if f"{kind}_requests" not in totals:
                continue  # nobody asked for it
            for line in one.text.splitlines():
                match = _STATISTIC.fullmatch(line.rstrip())
                if match is None:
                    continue
                name, count, _, total = match.groups()
                if name == "req_waittime":
                    totals[f"{kind}_requests"] += int(count)
                    totals[f"{kind}_wait_s"] += int(total or 0) / 1e6
                elif f"{kind}_{name}" in totals:
                    totals[f"{kind}_{name}"] += int(total or 0)
        return totals

    def job_variable(self) -> str:
        """Where the client finds the ID of a job: `jobid_var`."""
        done = self._node.run([self._program, "get_param", "-n", "jobid_var"], LIMIT_S)
        if done.status != 0:
            raise StageFailed("lctl", f"get_param jobid_var: exit status {done.status}", done.err)
        return done.out.decode("utf-8", errors="replace").strip()

    def version(self) -> tuple[int, int]:
        """The version of Lustre; where the client does not tell it, one that is newer than all."""
        done = self._node.run([self._program, "get_param", "-n", "version"], LIMIT_S)
        match = _VERSION.search(done.out.decode("utf-8", errors="replace"))
        return (99, 0) if match is None else (int(match[1]), int(match[2]))

    def jobs(self) -> dict[tuple[str, str], dict[str, float]]:
        """What a server counts, by device and job: bytes read and written, and operations on metadata.

        Raises:
            StageFailed: it is no server of this file system.
        """
        patterns = [parameter_pattern(kind, self._file_system, "job_stats") for kind in ("obdfilter", "mdt")]
        done = self._node.run([self._program, "get_param", *patterns], LIMIT_S)
        found = self._mine(done.out)
        if not found:  # most servers have one of the two
            raise StageFailed("lctl", f"{patterns[0]}: no device; is it a server of it?", done.err)
        jobs: dict[tuple[str, str], dict[str, float]] = {}
        for one in found:
            counted: dict[str, float] = {}
            for line in one.text.splitlines():
                if line.lstrip().startswith("- job_id:"):
                    job = _JOB.fullmatch(line)
                    # What is counted of a job that cannot be told is nobody's.
                    counted = {} if job is None else jobs.setdefault(_device_and_job(one, job[1]), {})
                elif (match := _COUNTED.fullmatch(line)) is not None:
                    name, samples, total = match.groups()
                    if name in ("read_bytes", "write_bytes"):
                        counted[name] = counted.get(name, 0.0) + int(total or 0)
                    elif one.full.startswith("mdt.") and name not in ("read", "write"):
                        counted["metadata_operations"] = counted.get("metadata_operations", 0.0) + int(
                            samples
                        )
        return jobs

    def _patterns(self, settings: tuple[str, ...]) -> list[str]:
        return [lustre()[name].pattern(self._file_system) for name in settings]

    def _imports(self, parameter: str) -> list[LctlParameter]:
        patterns = [parameter_pattern(kind, self._file_system, parameter) for kind in ("osc", "mdc")]
        found = self._told(*patterns)
        if not found:
            raise StageFailed("lctl", f"{patterns[0]}: no device; is {self._file_system!r} mounted?")
        return found

    def _told(self, *patterns: str) -> list[LctlParameter]:
        done = self._node.run([self._program, "get_param", *patterns], LIMIT_S)
        if done.status != 0:
            raise StageFailed("lctl", f"get_param: exit status {done.status}", done.err)
        return self._mine(done.out)

    def _mine(self, out: bytes) -> list[LctlParameter]:
        """The parameters of this file system's devices in what `lctl` has written."""
        found = told(out.decode("utf-8", errors="replace"))
        return [one for one in found if is_of(one.device.partition(".")[2], self._file_system)]


def _is_deactivated(one: LctlParameter) -> bool:
    """Whether an administrator has deactivated the target of an import (`lctl set_param osc.*.active=0`)."""
    flags = (match[1] for line in one.text.splitlines() if (match := _FLAGS.fullmatch(line)))
    return any("deactive" in told.replace(",", " ").split() for told in flags)


def allowed_by_all(told_by_each: Iterable[tuple[str, int]]) -> dict[str, int]:
    """What is allowed by whoever said so: the least that each allows, and the largest grant block."""
    found: dict[str, int] = {}
    for name, value in told_by_each:
        choose = max if name == "grant_block_size" else min
        found[name] = choose(found.get(name, value), value)
    return found


def _device_and_job(one: LctlParameter, job: str) -> tuple[str, str]:
    return one.full, job.strip().strip('"')


def told(text: str) -> Iterator[LctlParameter]:
    """The parameters in what `lctl get_param` writes; lines before the first are none."""
    head: re.Match[str] | None = None
    lines: list[str] = []
    for line in [*text.split("\n"), None]:
        match = None if line is None else _HEAD.fullmatch(line)
        if head is not None and (line is None or match is not None):
            yield LctlParameter(
                f"{head[1]}.{head[2]}.{head[3]}", f"{head[1]}.{head[3]}", "\n".join(lines).strip("\n")
            )
        if match is not None:
            head, lines = match, [match[4]]
        elif line is not None:
            lines.append(line)


def setting_of(full: str) -> str:
    """The kind of device and the parameter of a full name."""
    kind, _, rest = full.partition(".")
    return f"{kind}.{rest.rpartition('.')[2]}"


def _number(one: LctlParameter) -> float:
    """The number of a parameter; of several lines, that of the line with the parameter's own name."""
    text, name = one.text.strip(), one.setting.partition(".")[2]
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() == name:
            text = value.strip()
    if _NUMBER.fullmatch(text) is None:
        raise StageFailed("lctl", f"{one.full} = {text!r:.80}: must be a number")
    number = float(text)
    return int(number) if number.is_integer() else number
