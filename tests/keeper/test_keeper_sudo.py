"""Root's keeper for a user, through the real sudo: what its lines allow, and what nothing allows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from ascar.errors import EnvironmentLacks
from ascar.program.node_binary import INSTALLED_KEEPER, check_roots_alone, find_ascard
from sudo_machine import DEFAULT, KNOB, ROOT, UID, SudoMachine

if TYPE_CHECKING:
    from collections.abc import Iterator

# A session that ends well, or dies together with its keeper.
SESSION = f"""
import os, signal, sys
from ascar.systems.keeper import Keeper
keeper = Keeper("a user's study").start()
keeper.knob_write({KNOB!r}, 5)
print(keeper.hello.uid, keeper.knob_read({KNOB!r}).value, flush=True)
if sys.argv[1:] == ["dies"]:
    sys.stdin.readline()
keeper.close()
"""

# A setting that is confirmed, or not.
UNCONFIRMED = f"""
import sys
from ascar.systems.keeper import Hold, Keeper
with Keeper("apply 1 (x)", hold=Hold(2.0)) as keeper:
    keeper.knob_write({KNOB!r}, 5)
    print(keeper.knob_read({KNOB!r}).value)
if sys.argv[1:] == ["confirms"]:
    with Keeper("confirm") as keeper:
        print("confirmed", keeper.confirm("apply 1 (x)"))
"""

# Root is led to write a file of the user's content into somebody else's directory.
SWAP = """
import sys
from pathlib import Path
from ascar.systems.keeper import Keeper
own, victim = Path(sys.argv[1]), sys.argv[2]
(own / "images").mkdir(parents=True)
with Keeper("an attack") as keeper:
    keeper.image_create(own / "images/image", 16 << 20)
    device = keeper.image_attach(own / "images/image").device
    own.rename(own.with_name("moved"))
    own.symlink_to(victim)
    keeper.image_save("copy", device)
"""


@pytest.fixture
def machine_with_sudo() -> Iterator[SudoMachine]:
    if shutil.which("sudo") is None:
        pytest.skip("sudo is not installed")
    # Not among pytest's folders, which each run closes to all but their owner.
    with TemporaryDirectory(prefix="ascar-sudo-") as place:
        Path(place).chmod(0o755)
        machine = SudoMachine(Path(place))
        try:
            if machine.lacks:
                pytest.skip(f"no namespaces of mounts here: {machine.lacks}")
            yield machine
        finally:
            machine.end()


def test_a_user_tunes_with_just_the_installed_lines(machine_with_sudo):
    machine = machine_with_sudo
    assert "needs root" in machine.python(SESSION, fails=True).stderr
    needs = json.loads(machine.ascar("doctor", "--json").stdout)["needs"]
    assert next(it for it in needs if it["name"] == "root")["found"] is None
    machine.install()
    needs = json.loads(machine.ascar("doctor", "--json").stdout)["needs"]
    assert next(it for it in needs if it["name"] == "root")["found"] == "through sudo"
    assert machine.python(SESSION).stdout == f"{UID} 5\n"
    assert machine.knob() == DEFAULT
    for words in (("cat", "/etc/shadow"), (INSTALLED_KEEPER, "keeper", "--user"), (find_ascard(), "keeper")):
        assert "password is required" in machine.run("sudo", "-n", "--", *words, fails=True).stderr


def test_what_a_user_does_not_confirm_is_put_back(machine_with_sudo):
    machine = machine_with_sudo
    machine.install()
    assert machine.python(UNCONFIRMED).stdout == "5\n"
    end_s = time.monotonic() + 60
    while machine.knob() != DEFAULT:
        assert time.monotonic() < end_s
        time.sleep(0.1)
    assert machine.python(UNCONFIRMED, "confirms").stdout == "5\nconfirmed 1\n"
    time.sleep(3.0)
    assert machine.knob() == 5
    assert f"restored: {KNOB}" in machine.ascar("restore").stdout
    assert machine.knob() == DEFAULT


def test_a_user_restores_what_a_killed_keeper_has_left(machine_with_sudo):
    machine = machine_with_sudo
    machine.install()
    words = machine.words(sys.executable, "-c", SESSION, "dies")
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == f"{UID} 5\n"
        keepers = subprocess.run(
            ["pgrep", "-f", f"^{INSTALLED_KEEPER} keeper$", "-P", _sudo_of(session.pid)],
            capture_output=True,
            text=True,
            check=True,
        )
        subprocess.run(["kill", "-KILL", *keepers.stdout.split()], check=True)
        session.communicate("")
    assert machine.knob() == 5
    assert f"restored: {KNOB}" in machine.ascar("restore").stdout
    assert machine.knob() == DEFAULT


def _sudo_of(pid: int) -> str:
    """The processes below one that may be the keeper's parents."""
    found, fresh = [str(pid)], [str(pid)]
    while fresh:
        children = subprocess.run(
            ["pgrep", "-P", ",".join(fresh)], capture_output=True, text=True, check=False
        )
        fresh = children.stdout.split()
        found += fresh
    return ",".join(found)


def test_a_keeper_that_others_may_write_is_no_way_to_root(machine_with_sudo):
    machine = machine_with_sudo
    own = machine.home / "ascard"
    shutil.copy(find_ascard(), own)
    machine.allow(f"{own} keeper")
    done = machine.run("sudo", "-n", "--", own, "keeper", fails=True)
    assert f"{machine.home} may be written by others than root" in done.stderr
    assert "`sudo make install-keeper`" in done.stderr
    # The client does not even ask sudo.
    with pytest.raises(EnvironmentLacks, match=f"{machine.home} may be written by others than root"):
        check_roots_alone(own)


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_a_directory_of_roots_that_a_group_or_others_may_write_is_no_way_either(machine_with_sudo, mode):
    machine = machine_with_sudo
    folder = machine.home.parent / "opt"
    (folder / "bin").mkdir(parents=True)
    own = folder / "bin" / "ascard"
    shutil.copy(find_ascard(), own)
    machine.allow(f"{own} keeper")
    check_roots_alone(own)
    folder.chmod(mode)
    done = machine.run("sudo", "-n", "--", own, "keeper", fails=True)
    assert f"{folder} may be written by others than root" in done.stderr
    with pytest.raises(EnvironmentLacks, match=f"{folder} may be written by others than root"):
        check_roots_alone(own)


@pytest.mark.parametrize(
    "option", ["--user", "--state-dir=/var/lib/other", "--end=2:2:" + "a" * 32, "--wait=2"]
)
def test_options_that_would_make_root_are_refused(machine_with_sudo, option):
    machine = machine_with_sudo
    machine.install()
    machine.allow(f"{INSTALLED_KEEPER} *")
    done = machine.run("sudo", "-n", "--", INSTALLED_KEEPER, "keeper", option, fails=True)
    assert f"{option.partition('=')[0]}: is not allowed through sudo" in done.stderr
    assert not Path("/var/lib/other").exists()


def test_root_writes_nothing_for_a_user_where_the_user_may_not(machine_with_sudo, tmp_path):
    machine = machine_with_sudo
    machine.install()
    victim = machine.home.parent / "victim"
    (victim / "images").mkdir(parents=True)
    machine.python(SWAP, machine.home / "own", victim)
    assert list((victim / "images").iterdir()) == []


def test_the_unit_restores_what_the_machines_stop_has_left(machine_with_sudo):
    machine = machine_with_sudo
    machine.install()
    unit = machine.units / "ascar-restore.service"
    wanted = machine.units / "multi-user.target.wants" / unit.name
    assert wanted.resolve() == unit
    if shutil.which("systemd-analyze"):
        machine.run(
            "systemd-analyze", "verify", "--man=no", "/etc/systemd/system/ascar-restore.service", user=False
        )
    image = machine.home / "image"
    left = (
        "import os, signal\nfrom pathlib import Path\nfrom ascar.systems.keeper import Keeper\n"
        f"keeper = Keeper('a study').start()\nkeeper.image_create(Path({str(image)!r}), 1 << 20)\n"
        "os.kill(keeper.pid, signal.SIGKILL)"
    )
    machine.python(left, user=False)
    assert image.exists()
    (boot,) = machine.run("sh", "-c", "cat /var/lib/ascar/journal/*.jsonl", user=False).stdout.splitlines()[
        :1
    ]
    before = json.loads(boot)["boot_id"]
    machine.run("sh", "-c", f"sed -i 1s/{before}/another/ /var/lib/ascar/journal/*.jsonl", user=False)
    (command,) = re.findall(r"^ExecStart=(.+)$", unit.read_text(), re.MULTILINE)
    assert str(image) in machine.run(*command.split(), user=False).stdout
    assert not image.exists()


@pytest.mark.parametrize("allow", ["alice,ALL", "alice ALL=(ALL)", "-x", "%", "alice\\"])
def test_only_names_come_into_sudoers(tmp_path, allow):
    words = [str(ROOT / "scripts/install-keeper"), *allow.split()]
    done = subprocess.run(
        words, env={"DESTDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"must be users and %groups" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_package_has_the_same_files_below_its_own_root(tmp_path):
    """Neither root nor systemd is needed for that, and nothing of this machine is changed."""
    words = [str(ROOT / "scripts/install-keeper"), "alice", "%storage"]
    sudoers = ["etc/sudoers.d/ascar"] if shutil.which("visudo", path="/usr/sbin:/usr/bin") else []
    environment = {"DESTDIR": str(tmp_path), "PATH": "/usr/bin:/bin", "ASCARD": str(find_ascard())}
    for _ in range(2):  # over an earlier version too
        subprocess.run(words if sudoers else words[:1], env=environment, capture_output=True, check=True)
    found = {
        str(path.relative_to(tmp_path)): oct(path.stat().st_mode & 0o7777)
        for path in tmp_path.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    assert found == {
        "usr/libexec/ascar/ascard": "0o755",
        "etc/systemd/system/ascar-restore.service": "0o644",
        "etc/systemd/user/ascar-restore.service": "0o644",
        **dict.fromkeys(sudoers, "0o440"),
    }
    links = {path.parent.name: path.resolve() for path in tmp_path.rglob("*.wants/*")}
    assert links == {
        "multi-user.target.wants": tmp_path / "etc/systemd/system/ascar-restore.service",
        "default.target.wants": tmp_path / "etc/systemd/user/ascar-restore.service",
    }
