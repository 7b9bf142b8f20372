"""Settings of an application's control group: written, read back, put back, whoever else is there."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from ascar.capes.session.parameters import session_parameters
from ascar.catalogues.cgroup import UNLIMITED, group_settings
from ascar.errors import EnvironmentLacks, InputError, Refused, StageFailed, StudyError, WorkError
from ascar.systems import mount_table
from ascar.systems.adapter import Adapter
from ascar.systems.control_group import ControlGroup, GroupRestoration
from ascar.systems.holders import holder_of
from ascar.systems.linux import Linux
from ascar.testing import TargetContract
from control_groups import SETTINGS, real_group, recorded_group
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from control_groups import Group

DISK = min(path.name for path in Path("/sys/class/block").iterdir())
NUMBER = "8:0"
MIB = 1 << 20
KILLED = """
import sys, time
from ascar.systems.holders import holder_of
from ascar.systems.linux import Linux
with Linux({"cgroup": sys.argv[1], "settings": sys.argv[2].split()}) as one:
    print("entered", flush=True)
    for number in range(1, 10**6):
        values = {"cgroup_cpu_shares": 2 + number % 1000, "cgroup_memory_swappiness": number % 50 + 1}
        one.apply(one.space.default().replaced(**values))
"""


@pytest.fixture
def group() -> Iterator[Group]:
    with real_group() as made:
        yield made


@pytest.fixture
def unified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which recorded groups are those of the machine."""
    table = tmp_path / "mountinfo"
    table.write_text(f"35 24 0:30 / {tmp_path}/unified rw,nosuid - cgroup2 cgroup2 rw\n")
    monkeypatch.setattr(mount_table, "MOUNTINFO", str(table))
    return tmp_path


def study(group: Group, *names: str) -> Linux:
    return Linux({"cgroup": group.name, "settings": list(names or SETTINGS)})


@pytest.mark.root
@pytest.mark.machine
class TestGroupContract(TargetContract):
    # The dirty pages are the machine's, and the contract of the kernel's settings drains them.
    test_deferred_work_is_counted_in_amounts_and_can_be_drained = None

    @pytest.fixture(autouse=True)
    def _group(self, group: Group) -> None:
        self._name = group.name

    def make(self) -> Linux:
        return Linux(self.options())

    def options(self) -> Mapping[str, Any]:
        return {"cgroup": self._name, "settings": SETTINGS}


def test_every_setting_can_be_a_parameter_and_is_read_as_it_is_said() -> None:
    for name, one in group_settings().items():
        parameter = one.parameter()
        assert parameter.native == name
        assert name.startswith(f"cgroup.{one.file}"), name
        assert one.what.endswith("."), name
        assert not one.of_device or one.none, name
        assert one.hierarchy[0] == 2 or not one.systemd, name
        for value in (*map(int, one.search), *((UNLIMITED,) if one.none else ())):
            said = one.said(value, NUMBER)
            before = "7:0 1\n" if one.of_device else ""
            assert one.value_in(f"{before}{said}\n", NUMBER) == value, name


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("cgroup.io.weight", "default 100\n8:0 200\n", 100),
        (
            "cgroup.io.max.wbps",
            "7:0 rbps=1 wbps=2 riops=3 wiops=4\n8:0 rbps=max wbps=9 riops=max wiops=max\n",
            9,
        ),
        ("cgroup.io.max.rbps", "8:0 rbps=max wbps=9 riops=max wiops=max\n", UNLIMITED),
        ("cgroup.io.max.rbps", "", UNLIMITED),
        ("cgroup.io.latency", "8:0 target=75000\n", 75000),
        ("cgroup.io.latency", "", UNLIMITED),
        ("cgroup.cpu.max", "max 100000\n", UNLIMITED),
        ("cgroup.cpu.max", "50000 100000\n", 50000),
        ("cgroup.memory.high", "max\n", UNLIMITED),
        ("cgroup.memory.soft_limit_in_bytes", "9223372036854771712\n", UNLIMITED),
        ("cgroup.blkio.throttle.read_bps_device", "8:0 1048576\n7:0 5\n", 1048576),
        ("cgroup.blkio.throttle.read_bps_device", "", UNLIMITED),
    ],
)
def test_what_the_kernel_shows_is_understood(name: str, text: str, value: int) -> None:
    assert group_settings()[name].value_in(text, NUMBER) == value


@pytest.mark.root
@pytest.mark.machine
def test_configurations_drawn_at_random_are_in_force_and_all_is_put_back(group: Group, seed: int) -> None:
    before = group.state()
    with study(group) as target:
        for wanted in target.space.sample(np.random.default_rng(seed), 20):
            change = target.apply(wanted)
            assert target.read(target.space.names) == dict(wanted)
            assert "cgroup" in change.step_s
            target.sample()
        assert group.state() != before
    assert group.state() == before


@pytest.mark.root
@pytest.mark.machine
def test_a_limit_of_one_disk_is_set_and_taken_away(group: Group) -> None:
    file, other = group.file("blkio/blkio.throttle.read_bps_device"), "cgroup.blkio.bfq.weight"
    settings = ["cgroup.blkio.throttle.read_bps_device"]
    settings += [other] if group.file("blkio/blkio.bfq.weight").exists() else []
    with Linux({"cgroup": group.name, "device": DISK, "settings": settings}) as target:
        for value in (50 * MIB, UNLIMITED, 70 * MIB):
            wanted = target.space.default().replaced(cgroup_blkio_throttle_read_bps_device=value)
            target.apply(wanted)
            assert target.read(target.space.names) == dict(wanted)
        number = Path("/sys/class/block", DISK, "dev").read_text().strip()
        assert file.read_text() == f"{number} {70 * MIB}\n"
    assert file.read_text() == ""


@pytest.mark.root
@pytest.mark.machine
def test_killed_at_any_moment_the_group_is_as_before(group: Group, seed: int) -> None:
    draw, before, locks = random.Random(seed), group.state(), ControlGroup(group.name, None).locks
    words = [sys.executable, "-c", KILLED, group.name, " ".join(SETTINGS)]
    for _ in range(3):
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "entered\n"
            time.sleep(draw.uniform(0, 0.3))
            process.send_signal(signal.SIGKILL)
        until(lambda: group.state() == before and not holder_of(locks), 30)


@pytest.mark.root
@pytest.mark.machine
def test_a_group_that_is_removed_ends_the_study(group: Group, caplog: pytest.LogCaptureFixture) -> None:
    with study(group) as target:
        target.apply(target.space.default().replaced(cgroup_cpu_shares=2000))
        group.remove()
        with pytest.raises(WorkError, match=f"{group.name}: is gone in mid-study; the study ends"):
            target.apply(target.space.default())
        group.make()
        group.start()
        group.file("cpu/cpu.shares").write_text("2000")
        with pytest.raises(WorkError, match="was removed and made anew in mid-study"):
            target.read(target.space.names)
    assert group.file("cpu/cpu.shares").read_text() == "2000\n", "it is another group's own value"
    assert f"left alone: {group.name}: was removed and made anew; nothing of it is put back" in caplog.text


@pytest.mark.root
@pytest.mark.machine
def test_an_application_that_ends_fails_its_trial(group: Group) -> None:
    before = group.state()
    with study(group) as target:
        target.apply(target.space.default().replaced(cgroup_cpu_shares=2000))
        target.sample()
        group.end()
        with pytest.raises(StageFailed, match="no process is left in it: the application has ended"):
            target.sample()
        group.start()
        target.apply(target.space.default())
        target.sample()
    assert group.state() == before


@pytest.mark.root
@pytest.mark.machine
def test_what_somebody_else_changed_ends_the_study_and_stays(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    with study(group) as target:
        target.apply(target.space.default().replaced(cgroup_cpu_shares=2000, cgroup_memory_swappiness=7))
        group.file("cpu/cpu.shares").write_text("3000")
        with pytest.raises(
            StageFailed, match=r"cgroup.cpu.shares = 2000: is 3000 on .* somebody else changed it"
        ):
            target.sample()
        with pytest.raises(WorkError, match=r"cgroup.cpu.shares: is '3000' on .*: somebody else changed it"):
            target.apply(target.space.default())
    assert group.file("cpu/cpu.shares").read_text() == "3000\n"
    assert group.file("memory/memory.swappiness").read_text() == "60\n", "the others are put back"
    assert "left alone: cgroup.cpu.shares: is '3000'" in caplog.text


@pytest.mark.root
@pytest.mark.machine
def test_a_value_that_was_written_back_under_the_load_fails_the_trial(group: Group) -> None:
    """As systemd does when it reloads."""
    with study(group) as target:
        target.apply(target.space.default().replaced(cgroup_cpu_shares=2000))
        group.file("cpu/cpu.shares").write_text("1024")
        with pytest.raises(StageFailed, match="is 1024"):
            target.sample()
        target.apply(target.space.default().replaced(cgroup_cpu_shares=2000))
        target.sample()


@pytest.mark.root
@pytest.mark.machine
def test_a_value_that_the_kernel_refuses_fails_its_trial_alone(group: Group) -> None:
    (group.file("cpu/child")).mkdir()
    try:
        with study(group) as target:
            default = target.space.default()
            target.apply(default)
            group.file("cpu/child/cpu.cfs_quota_us").write_text("200000")  # more than its parent may have
            with pytest.raises(StageFailed, match=r"cgroup.cpu.cfs_quota_us = 50000: .*: Invalid argument"):
                target.apply(default.replaced(cgroup_cpu_cfs_quota_us=50000))
            target.apply(default.replaced(cgroup_cpu_shares=7))
            target.sample()
    finally:
        group.file("cpu/child").rmdir()


@pytest.mark.root
@pytest.mark.machine
def test_one_study_at_a_time_tunes_a_group(group: Group) -> None:
    with study(group) as target:
        with pytest.raises(Refused, match="cgroup:"), study(group):
            pass
        wanted = target.space.default().replaced(cgroup_cpu_shares=7)
        with pytest.raises(Refused, match="is tuned by 'linux'"):
            Linux.placement({"cgroup": group.name, "settings": SETTINGS}, target.space, wanted, None)  # type: ignore[arg-type]


@pytest.mark.root
@pytest.mark.machine
def test_a_session_sets_them_while_the_application_works(group: Group) -> None:
    before = group.state()
    with study(group) as target:
        of_session = session_parameters(target, target.space, None)
        assert {one.key for one in of_session} == set(target.space.names)
        assert not any(one.of_kernel for one in of_session)
        adapter = Adapter(target, target.space, target.space.default())
        request = {"set": {"cgroup_cpu_shares": 512, "cgroup_memory_swappiness": 10}}
        assert adapter.answer(json.dumps(request).encode()) == {"ok": request["set"]}
        assert group.file("cpu/cpu.shares").read_text() == "512\n"
        adapter.restore()
        assert group.state() == before


@pytest.mark.root
@pytest.mark.machine
def test_what_others_lose_is_told(group: Group, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), study(group, "cgroup.cpu.shares", "cgroup.memory.swappiness"):
        pass
    assert f"what {group.name} gets by cgroup.cpu.shares, others on this machine may lack" in caplog.text


def test_a_whole_study_of_a_group_has_an_experts_settings_and_names_no_limits(unified: Path) -> None:
    recorded_group(unified)
    expert = ControlGroup("/system.slice/my.service", DISK)
    assert expert.chosen(None, "expert") == [
        "cgroup.io.weight",
        "cgroup.io.bfq.weight",
        "cgroup.memory.high",
        "cgroup.cpu.weight",
    ]
    wide = set(expert.chosen(None, "wide"))
    assert {"cgroup.memory.low", "cgroup.io.latency"} < wide
    assert not {"cgroup.io.max.rbps", "cgroup.cpu.max"} & wide
    assert expert.chosen(["vm.swappiness", "cgroup.cpu.max"], "expert") == ["cgroup.cpu.max"]


def test_no_range_goes_below_the_memory_that_is_used(unified: Path) -> None:
    recorded_group(unified, memory_max=str(400 * MIB))
    group = ControlGroup("system.slice/my.service", None)
    low, high = group.settings["cgroup.memory.high"].search
    assert low == 101 * MIB  # 100 MiB without the 20 that can be dropped, and a quarter more
    assert high == 400 * MIB
    assert group.parameters(["cgroup.memory.high"])[0].default == UNLIMITED


@pytest.mark.parametrize("limit", [60 * MIB, 101 * MIB])
def test_a_group_that_uses_all_it_may_has_no_such_setting(unified: Path, limit: int) -> None:
    recorded_group(unified, memory_max=str(limit))
    group = ControlGroup("system.slice/my.service", None)
    assert "cgroup.memory.high" not in group.settings
    with pytest.raises(StudyError, match=r"needs more memory than the group may use, or leave it out"):
        group.chosen(["cgroup.memory.high"], "expert")


def test_a_value_that_no_search_would_try_is_the_default_all_the_same(unified: Path) -> None:
    recorded_group(unified, memory_high=str(5 * MIB + 4096), io_weight="default 100\n8:0 7")
    group = ControlGroup("system.slice/my.service", None)
    high, weight = group.parameters(["cgroup.memory.high", "cgroup.io.weight"])[::-1]
    assert {high.default, weight.default} == {5 * MIB + 4096, 100}


def test_a_process_killed_for_memory_fails_the_trial(unified: Path) -> None:
    directory = recorded_group(unified)
    group = ControlGroup("system.slice/my.service", None)
    group.check()
    (directory / "memory.events").write_text("oom 1\noom_kill 1\n")
    with pytest.raises(StageFailed, match="the kernel has killed a process of it for want of memory"):
        group.check()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "..",
        "../..",
        "a/../../etc",
        "a//b",
        "./a",
        "a/.",
        "a\nb",
        "a b",
        "a/\0",
        "x" * 300,
        "a/%s",
        "$(id)",
    ],
)
def test_a_path_that_is_none_is_refused(unified: Path, name: str) -> None:
    recorded_group(unified)
    with pytest.raises(StudyError, match=r"target\.cgroup = .*: must be a path as /proc/PID/cgroup has it"):
        ControlGroup(name, None)


def test_a_path_that_leads_elsewhere_is_refused(unified: Path) -> None:
    directory = recorded_group(unified)
    (directory.parent / "other.service").symlink_to(directory)
    with pytest.raises(StudyError, match="must not lead through a symbolic link"):
        ControlGroup("system.slice/other.service", None)


def test_what_cannot_be_tuned_says_what_would_help(unified: Path) -> None:
    with pytest.raises(
        StudyError, match=r"'a': is not there \(.*/unified\); must be the group of an application"
    ):
        ControlGroup("a", None)
    recorded_group(unified, "empty.slice", cgroup_events="populated 0", cgroup_procs="")
    with pytest.raises(StudyError, match="is empty; must be that of an application that runs"):
        ControlGroup("empty.slice", None)
    lacks = dict.fromkeys(("io_weight", "io_bfq_weight", "io_latency", "io_max"))
    recorded_group(unified, "a.slice/b", cgroup_controllers="memory", **lacks)
    group = ControlGroup("a.slice/b", DISK)
    with pytest.raises(
        StudyError,
        match=r"needs the controller io: write \+io to cgroup\.subtree_control in .*/a\.slice and below, "
        r"or set IOAccounting=yes",
    ):
        group.chosen(["cgroup.io.weight"], "expert")
    with pytest.raises(
        StudyError, match=r"cgroup\.cpu\.shares needs the group in a hierarchy of cpu, version 1"
    ):
        group.chosen(["cgroup.cpu.shares"], "expert")
    with pytest.raises(StudyError, match=r"did you mean 'cgroup\.memory\.high'"):
        group.chosen(["cgroup.memory.hihg"], "expert")
    recorded_group(unified, "old", io_latency=None)
    with pytest.raises(StudyError, match=r"cgroup\.io\.latency needs io of version 2 in this kernel"):
        ControlGroup("old", DISK).chosen(["cgroup.io.latency"], "expert")
    with pytest.raises(
        StudyError, match=r"cgroup\.io\.max\.rbps needs a disk: name target\.path or target\.device"
    ):
        ControlGroup("old", None).chosen(["cgroup.io.max.rbps"], "expert")


def test_a_group_without_a_setting_is_refused(unified: Path) -> None:
    directory = recorded_group(unified)
    for file in directory.iterdir():
        if not file.name.startswith("cgroup."):
            file.unlink()
    (directory / "cgroup.controllers").write_text("")
    with pytest.raises(
        StudyError, match=r"has no settings; cgroup\.memory\.high needs the controller memory"
    ):
        ControlGroup("system.slice/my.service", None)


def test_a_machine_without_control_groups_says_so(unified: Path) -> None:
    (unified / "mountinfo").write_text("")
    with pytest.raises(StudyError, match="is not there .no hierarchy is mounted."):
        ControlGroup("a", None)


def test_a_unit_of_systemd_is_found_by_its_name(unified: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded_group(unified)
    program = unified / "bin/systemctl"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ntest "$5" = my.service && echo /system.slice/my.service\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    assert ControlGroup("my.service", None).place == "system.slice/my.service"
    program.write_text("#!/bin/sh\necho /../../etc\n")
    with pytest.raises(StudyError, match="is not there"):
        ControlGroup("my.service", None)
    program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(StudyError, match="is not there"):
        ControlGroup("my.service", None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"settings": ["cgroup.cpu.weight"]}, "must be left out, or target.cgroup name the group"),
        ({"cgroup": 7}, "target.cgroup"),
        ({"cgroup": "system.slice/no such"}, "target.cgroup = 'system.slice/no such': must be a path"),
        (
            {"cgroup": "a", "node": {"host": "nowhere"}},
            "target.cgroup = 'a': must be of this machine",
        ),
    ],
)
def test_mistakes_are_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        Linux(given)
    assert words in caught.value.message, caught.value.message


@pytest.mark.root
@pytest.mark.machine
def test_a_hierarchy_that_may_not_be_written_is_refused(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: group.name not in str(path) and access(path, mode))
    with (
        pytest.raises(EnvironmentLacks, match=r"may not be written: needs root; run ascar through sudo"),
        study(group),
    ):
        pass


def test_a_record_that_names_something_else_is_refused(unified: Path) -> None:
    with pytest.raises(InputError, match="'release_agent': must be a setting of a control group"):
        GroupRestoration("a", "", {}, {"release_agent": "1"}, {}).carry_out()
    name = "cgroup.cpu.weight"
    for places, old in (({}, {name: "7"}), ({name: ("/", 1)}, {}), ({name: ("/", 1)}, {name: "x"})):
        with pytest.raises(InputError, match="with a place and a number"):
            GroupRestoration("a", "", places, old, {name: ("1",)}).carry_out()
    words = [sys.executable, "-m", "ascar.systems.control_group"]
    for record in ("{}", "x", msgspec.json.encode(GroupRestoration("a", "", {}, {}, {"a": ()})).decode()):
        done = subprocess.run([*words, record], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    directory = recorded_group(unified)
    for number, told in ((directory.stat().st_ino + 1, "was removed and made anew"), (1, "made anew")):
        record = GroupRestoration("a", "", {name: (str(directory), number)}, {name: "7"}, {name: ("100",)})
        (line,) = record.carry_out()
        assert told in line
        assert (directory / "cpu.weight").read_text() == "100\n"
    gone = GroupRestoration("a", "", {name: (str(directory / "b"), 1)}, {name: "7"}, {name: ("100",)})
    assert gone.carry_out() == ("a: is gone; nothing of it is put back",)


def test_the_result_is_a_drop_in_of_systemd(unified: Path) -> None:
    recorded_group(unified)
    wanted = {
        "cgroup.io.weight": 500,
        "cgroup.io.bfq.weight": 50,
        "cgroup.io.latency": 75000,
        "cgroup.io.max.rbps": 10 * MIB,
        "cgroup.memory.high": 256 * MIB,
        "cgroup.cpu.weight": 300,
        "cgroup.cpu.max": 25000,
    }
    lines = ControlGroup("system.slice/my.service", DISK).unit_lines(wanted)
    assert lines == [
        "# /etc/systemd/system/my.service.d/90-ascar.conf; then: systemctl daemon-reload",
        "[Service]",
        "IOWeight=500",
        f"IODeviceLatencyTargetSec=/dev/{DISK} 75000us",
        f"IOReadBandwidthMax=/dev/{DISK} {10 * MIB}",
        f"MemoryHigh={256 * MIB}",
        "CPUWeight=300",
        "CPUQuota=25%",
        "# not kept, for systemd has no such setting: cgroup.io.bfq.weight",
    ]
    unlimited = {
        "cgroup.memory.high": UNLIMITED,
        "cgroup.cpu.max": UNLIMITED,
        "cgroup.io.max.riops": UNLIMITED,
    }
    lines = ControlGroup("system.slice/my.service", DISK).unit_lines(unlimited)
    assert lines[2:] == ["MemoryHigh=infinity", "CPUQuota=", f"IOReadIOPSMax=/dev/{DISK} infinity"]
    recorded_group(unified, "other.service", cpu_max="max 50000")
    assert ControlGroup("other.service", None).unit_lines({"cgroup.cpu.max": 25000})[2:] == ["CPUQuota=50%"]
    recorded_group(unified, "my.slice")
    assert ControlGroup("my.slice", None).unit_lines({"cgroup.cpu.weight": 7})[1:] == [
        "[Slice]",
        "CPUWeight=7",
    ]
    recorded_group(unified, "docker/0123")
    assert ControlGroup("docker/0123", None).unit_lines({"cgroup.cpu.weight": 7}) == []


def test_systemd_takes_every_line_of_a_drop_in(unified: Path) -> None:
    recorded_group(unified)
    group = ControlGroup("system.slice/my.service", DISK)
    wanted = {name: int(one.search[1]) for name, one in group.settings.items() if one.systemd}
    nothing = {name: UNLIMITED for name, one in group.settings.items() if one.systemd and one.none}
    folder = unified / "units"
    (folder / "my.service.d").mkdir(parents=True)
    (folder / "my.service").write_text("[Service]\nExecStart=/bin/true\n")
    for values in (wanted, nothing):
        lines = group.unit_lines(values)
        assert len(lines) == len(values) + 2
        (folder / "my.service.d/90-ascar.conf").write_text("\n".join(lines) + "\n")
        done = verified(folder / "my.service")
        assert "90-ascar.conf" not in done, done
    (folder / "my.service.d/90-ascar.conf").write_text("[Service]\nMemoryHigh=much\nCPUWeight=0\n")
    assert verified(folder / "my.service").count("90-ascar.conf") == 2, "it would tell"


def verified(unit: Path) -> str:
    """What systemd says of a unit and its drop-ins."""
    try:
        words = ["systemd-analyze", "verify", "--man=no", "--generators=no", unit]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60).stderr
    except FileNotFoundError:
        pytest.skip("systemd is not installed")
