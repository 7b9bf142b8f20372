"""What is said about this machine."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import pytest

from ascar.program.found import find_program
from ascar.results.machine_difference import machine_difference
from ascar.systems import machine
from ascar.systems.machine import (
    backing_of,
    block_device,
    describe_machine,
    file_system_of,
    missing_program,
    program_version,
)


def test_the_machine_is_described_in_json():
    described = json.loads(json.dumps(describe_machine(), allow_nan=False))
    assert described["kernel"] == platform.release()
    assert described["cpus"] == len(os.sched_getaffinity(0))
    assert described["machine_memory_bytes"] > 2**26
    assert described["cpu"]


def test_the_root_directory_has_a_file_system():
    assert file_system_of(Path("/")) in Path("/proc/self/mountinfo").read_text()
    assert file_system_of(Path("/proc")) == "proc"


def test_a_directory_without_a_device_has_none():
    assert backing_of(Path("/proc")) is None
    assert block_device(0, 0) is None


def test_a_device_that_a_container_hides_is_none(monkeypatch):
    def hidden(*_, **__):
        raise PermissionError(13, "Permission denied", "/sys/dev/block/254:0")

    monkeypatch.setattr(Path, "resolve", hidden)
    assert backing_of(Path("/")) is None


def test_programs_are_found_where_administrators_have_them(monkeypatch):
    monkeypatch.setenv("PATH", "/proc/absent")
    assert find_program("mke2fs") is None or "/sbin/" in str(find_program("mke2fs"))
    assert find_program("no-such-program") is None


def test_a_missing_program_is_named_with_its_packages():
    said = missing_program("mkfs.xfs")
    assert (
        said
        == "the program mkfs.xfs is missing: Debian `apt install xfsprogs`, Fedora `dnf install xfsprogs`"
    )


def test_versions_are_one_line():
    assert program_version("no-such-program") == ""
    assert "\n" not in program_version("sh", "--version")


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A disk `sdx` with a partition `sdx1`, of a kernel that the test makes up."""
    disk = tmp_path / "devices/sdx"
    (disk / "sdx1").mkdir(parents=True)
    (disk / "sdx1/partition").write_text("1\n")
    names = tmp_path / "block"
    names.mkdir()
    for path in (disk, disk / "sdx1"):
        (names / path.name).symlink_to(path)
    monkeypatch.setattr(machine, "_BLOCK_DEVICES", names)
    return disk


def test_a_disk_and_its_partitions_tell_its_world_wide_name_or_its_serial_number(disk: Path) -> None:
    assert machine.disk_identity("sdx") == ""
    (disk / "serial").write_text("S1\n")
    assert machine.disk_identity("sdx") == machine.disk_identity("sdx1") == "S1"
    (disk / "device").mkdir()
    (disk / "device/wwid").write_text("naa.5000\n")
    assert machine.disk_identity("sdx1") == "naa.5000"
    (disk / "device/wwid").write_text(" \n")
    assert machine.disk_identity("sdx1") == "S1"
    (disk / "serial").write_bytes(b"\xff" * 5000)
    assert len(machine.disk_identity("sdx1")) <= 200
    before, now = {"disk_identity": "S1"}, {"disk_identity": "S2"}
    assert machine_difference(before, now) == "disk_identity: was S1, is now S2"
    assert machine_difference({}, now) is None, "a run of an older version"


def test_an_upgrade_of_what_is_tuned_is_a_difference() -> None:
    before, now = {"mariadb": "10.11.6"}, {"mariadb": "10.11.19"}
    assert machine_difference(before, now) == "mariadb: was 10.11.6, is now 10.11.19"
    assert machine_difference(before, before) is None


def test_a_setting_of_the_server_that_somebody_else_has_changed_is_a_difference() -> None:
    before, now = ({"other_settings": {"a": "1", "max_connections": text}} for text in ("151", "500"))
    assert machine_difference(before, now) == "max_connections: was 151, is now 500"
    assert machine_difference(before, before) is None
    assert machine_difference({}, now) is None, "a run of an older version"
    assert machine_difference(before, {"other_settings": {"a": "1"}}) is None, "nobody tells"
