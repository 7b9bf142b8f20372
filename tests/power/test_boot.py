"""The unit of `make install-keeper` on a machine that boots: a user-mode Linux guest with systemd."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ascar.program.node_binary import find_ascard
from ascar.testing import Guest

pytestmark = pytest.mark.slow  # each boots a guest

ROOT = Path(__file__).parents[2]
SYSTEMD = Path("/lib/systemd/systemd")
UNIT = "ascar-restore.service"
HEADER = {"schema": 2, "boot_id": "before", "owner": "mail", "pid": 999999, "uid": 0, "started_unix_s": 1}
# Of a keeper that went down with the machine: a directory, and a file system on it that is everybody's.
CHANGES = (
    {"kind": "directory", "target": "/mnt/left"},
    {"kind": "mount", "target": "/mnt/left", "expected": "left", "scratch": False},
)
# What a shell sees that systemd starts after the unit.
REPORT = """[Unit]
After=ascar-restore.service
[Service]
Type=oneshot
ExecStart=/bin/sh /run/report
StandardOutput=file:/dev/console
StandardError=file:/dev/console
"""
REPORT_SCRIPT = """
systemctl show ascar-restore -p Result,ExecMainStatus,ExecMainCode,ConditionResult
echo "left: "$(ls /mnt) $(grep -c /mnt/left /proc/self/mounts) mounts
echo "## reported"
"""
# The manager that a login starts, by hand: a guest has no bus, which the login itself needs.
USERS_REPORT = """
export HOME=/mnt/home XDG_RUNTIME_DIR=/run/user-of-the-test
mkdir -m 700 $XDG_RUNTIME_DIR
/lib/systemd/systemd --user --log-target=null &
for look in $(seq 600); do
    [ "$(systemctl --user show ascar-restore -p ExecMainExitTimestampMonotonic --value)" -gt 0 ] && break
    sleep 0.1
done
systemctl --user show ascar-restore -p Result,ExecMainStatus,ConditionResult
echo "left: $(cat /mnt/program.conf) $(ls $HOME/.local/state/ascar/journal | grep -c jsonl) journals"
echo "## reported"
"""


@pytest.fixture(autouse=True)
def guests() -> None:
    lack = Guest.missing()
    if lack is not None:
        pytest.skip(lack)
    if not SYSTEMD.exists():
        pytest.skip("needs the Debian package systemd; install it")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Files of a machine, to be put below a guest's root."""
    keeper = find_ascard()
    if keeper is None:
        pytest.skip("needs ascard; `make setup` builds it")
    units, libexec, journal = (tmp_path / name for name in ("units", "libexec/ascar", "journal"))
    for folder in (units / "multi-user.target.wants", libexec, journal):
        folder.mkdir(parents=True)
    shutil.copy(keeper, libexec / "ascard")
    shutil.copy(ROOT / "packaging/systemd" / UNIT, units)
    (units / "report.service").write_text(REPORT)
    for unit in (UNIT, "report.service"):
        (units / "multi-user.target.wants" / unit).symlink_to(f"../{unit}")
    (tmp_path / "report").write_text(REPORT_SCRIPT)
    lines = [HEADER, *({"change": {"n": n, "change": change}} for n, change in enumerate(CHANGES))]
    write(journal / "00000000000000000001-999999.jsonl", lines)
    return tmp_path


def write(journal: Path, lines: list[object]) -> None:
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))


def boot(guest: Guest, installed: Path) -> str:
    """What the console says when systemd has started everything on a machine with these files."""
    for command in (
        *(
            f"mount -t tmpfs own {place}"
            for place in ("/etc/systemd/system", "/usr/libexec", "/var/lib", "/var/log")
        ),
        f"cp -a {installed}/units/* /etc/systemd/system",
        f"cp -r {installed}/libexec/* /usr/libexec && chown -R 0:0 /usr/libexec",
        f"cp {installed}/report /run/report",
        "mkdir -p -m 700 /var/lib/ascar/journal",
        f"for one in {installed}/journal/*; do "
        "test ! -f $one || install -m 600 -o 0 -g 0 $one /var/lib/ascar/journal; done",
    ):
        done = guest.run(command)
        assert done.status == 0, done.output
    guest.become(f"{SYSTEMD} --system --unit=multi-user.target --log-target=null --show-status=0")
    guest.wait(lambda: "## reported" in guest.console, "systemd has started everything", 300)
    return guest.console


def test_what_a_stop_of_the_machine_has_left_is_removed_at_boot(installed: Path) -> None:
    with Guest(visible=[installed]) as guest:
        guest.run("mkdir /mnt/left /mnt/other")
        said = boot(guest, installed)
    assert "ConditionResult=yes" in said and "Result=success" in said, said
    assert "ExecMainStatus=0" in said and "ExecMainCode=1" in said, said
    assert "left: other 0 mounts" in said, said


def test_what_nobody_has_confirmed_goes_back_at_boot_and_what_is_kept_stays(installed: Path) -> None:
    """However long there was to confirm it; the clock of the day says nothing."""
    (first,) = (installed / "journal").iterdir()
    lines = [json.loads(line) for line in first.read_text().splitlines()]
    header = {**HEADER, "schema": 3}
    far = {"until": {"unix_s": 1 << 40, "boot_ms": 1 << 50}, "locks": []}
    write(first, [header, *lines[1:], {"unconfirmed": far}])
    kept = {"change": {"n": 0, "change": {"kind": "directory", "target": "/mnt/other"}}}
    write(first.with_name("00000000000000000002-999999.jsonl"), [header, kept, {"unconfirmed": far}, "held"])
    with Guest(visible=[installed]) as guest:
        guest.run("mkdir /mnt/left /mnt/other")
        said = boot(guest, installed)
    assert "ConditionResult=yes" in said and "ExecMainStatus=0" in said, said
    assert "left: other 0 mounts" in said, said


def test_the_unit_may_undo_mounts_which_are_everybodys(installed: Path) -> None:
    with Guest(visible=[installed]) as guest:
        # As if the keeper had died just before: mounts do not outlive a machine.
        boot_id = guest.run("cat /proc/sys/kernel/random/boot_id").output.split()[-1]
        journal = next((installed / "journal").iterdir())
        journal.write_text(journal.read_text().replace('"before"', f'"{boot_id}"'))
        guest.run("mkdir /mnt/left /mnt/other; mount -t tmpfs left /mnt/left")
        said = boot(guest, installed)
    assert "ConditionResult=yes" in said and "ExecMainStatus=0" in said, said
    assert "left: other 0 mounts" in said, said


def test_what_a_users_keeper_has_left_is_put_back_when_the_users_services_start(installed: Path) -> None:
    mark = 0xCBF29CE484222325
    for byte in b"depth = 9\n":
        mark = (mark ^ byte) * 0x100000001B3 % 2**64
    content = {"kind": "content", "target": "/mnt/program.conf", "old": "depth = 8\n", "before": "absent"}
    content |= {"expected": f"10 bytes, {mark:016x}", "mode": 0o644}
    next((installed / "journal").iterdir()).unlink()
    (installed / "user").mkdir()
    shutil.copy(ROOT / "packaging/systemd/user" / UNIT, installed / "user" / UNIT)
    write(installed / "left.jsonl", [{**HEADER, "schema": 1}, {"change": {"n": 0, "change": content}}])
    (installed / "report").write_text(USERS_REPORT)
    (installed / "units" / "report.service").write_text(f"{REPORT}Delegate=yes\n")
    with Guest(visible=[installed]) as guest:
        for command in (
            "echo 'depth = 9' > /mnt/program.conf",
            "mkdir -p -m 700 /mnt/home/.local/state/ascar/journal",
            f"install -m 600 {installed}/left.jsonl /mnt/home/.local/state/ascar/journal/1-1.jsonl",
            "mount -t tmpfs own /etc/systemd/user",
            "mkdir /etc/systemd/user/default.target.wants",
            f"cp {installed}/user/{UNIT} /etc/systemd/user",
            f"ln -s ../{UNIT} /etc/systemd/user/default.target.wants/{UNIT}",
        ):
            done = guest.run(command)
            assert done.status == 0, done.output
        said = boot(guest, installed)
    assert "ConditionResult=yes" in said and "Result=success" in said and "ExecMainStatus=0" in said, said
    assert "left: depth = 8 0 journals" in said, said


def test_nothing_runs_where_nothing_is_left(installed: Path) -> None:
    with Guest(visible=[installed]) as guest:
        next((installed / "journal").iterdir()).unlink()
        guest.run("mkdir /mnt/left")
        said = boot(guest, installed)
    assert "ConditionResult=no" in said, said
    assert "left: left 0 mounts" in said, said
