"""What packages run when they are installed, upgraded, removed and purged, in a folder in place of `/`."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
UNITS = sorted(PACKAGING.glob("systemd/*.service"))
PLACES = ("/run/systemd/system", "/var/lib", "/etc/ascar", "/usr/libexec/ascar")
UNIT = re.compile(r"ascar-\w+\.service")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine that systemd runs, with an ascard; what either is asked to do is written down in `asked`."""
    for place in (*PLACES, "/bin"):
        (tmp_path / place[1:]).mkdir(parents=True)
    program(tmp_path, "bin/systemctl", "exit 0")
    program(tmp_path, "bin/systemd-sysusers", "exit 0")
    program(tmp_path, "usr/libexec/ascar/ascard", "exit 0")
    return tmp_path


def program(root: Path, name: str, does: str) -> None:
    """One that writes down its words first."""
    file = root / name
    file.write_text(f'#!/bin/sh\necho "${{0##*/}} $*" >>"{root}/asked"\n{does}\n')
    file.chmod(0o755)


def run(root: Path, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """One of the packages' scripts, all of whose places are below the folder."""
    text = (PACKAGING / script).read_text()
    for place in PLACES:
        text = text.replace(place, f"{root}{place}")
    return subprocess.run(
        ["sh", "-s", *words],
        input=text,
        env={"PATH": f"{root}/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def asked(root: Path) -> str:
    file = root / "asked"
    return file.read_text() if file.exists() else ""


def state_of(unit: Path) -> set[str]:
    """The directories of /var/lib that systemd makes for a unit."""
    named = re.findall(r"^StateDirectory=(.*)$", unit.read_text(), re.MULTILINE)
    return {name for line in named for name in line.split()}


@pytest.mark.parametrize("package", ["node", "ascar"])
def test_a_unit_that_does_not_start_again_is_named_and_stops_no_upgrade(root: Path, package: str) -> None:
    """A key of its file that this version refuses left the package half installed, and all that needs it."""
    program(root, "bin/systemctl", 'case "$*" in try-restart*) exit 1 ;; esac')
    done = run(root, f"{package}-installed", "configure", "0.0.9")
    assert done.returncode == 0, done.stderr
    # One that fails keeps none of the others from being started.
    tried = UNIT.findall(asked(root))
    assert len(tried) == 2
    assert len(done.stderr.splitlines()) == 2
    for unit in tried:
        assert f"{unit} did not start again: journalctl -u {unit}" in done.stderr


@pytest.mark.parametrize("package", ["node", "ascar"])
def test_what_runs_goes_on_with_the_new_files_and_nothing_else_is_started(root: Path, package: str) -> None:
    done = run(root, f"{package}-installed", "configure", "0.0.9")
    assert (done.returncode, done.stderr) == (0, "")
    told = asked(root)
    assert "systemctl daemon-reload" in told
    assert "systemctl try-restart" in told
    assert not re.search(r"systemctl (re)?start|enable", told)
    # Its clients' connections would end.
    assert "proxy" not in told


def test_both_scripts_start_again_every_daemon_but_proxies(root: Path) -> None:
    for package in ("node", "ascar"):
        assert run(root, f"{package}-installed", "configure").returncode == 0
    assert set(UNIT.findall(asked(root))) == {unit.name for unit in UNITS} - {
        "ascar-proxy.service",
        "ascar-restore.service",
    }


@pytest.mark.parametrize("unit", [unit for unit in UNITS if state_of(unit)], ids=lambda unit: unit.stem)
def test_purging_removes_what_its_unit_has_written(root: Path, unit: Path) -> None:
    """Weights of learners and rules of proxies stayed."""
    for name in state_of(unit):
        (root / "var/lib" / name / "inside").mkdir(parents=True)
    for package in ("ascar", "node"):
        kept = run(root, f"{package}-gone", "remove")
        assert kept.returncode == 0, kept.stderr
    assert {one.name for one in (root / "var/lib").iterdir()} == state_of(unit)
    for package in ("ascar", "node"):
        done = run(root, f"{package}-gone", "purge")
        assert (done.returncode, done.stderr) == (0, "")
    assert not list((root / "var/lib").iterdir())
    assert "systemctl daemon-reload" in asked(root)


def test_values_from_before_of_what_is_still_changed_outlive_a_purge(root: Path) -> None:
    note = root / "var/lib/ascar/journal/1.jsonl"
    note.parent.mkdir(parents=True)
    note.write_text("{}\n")
    done = run(root, "node-gone", "purge")
    assert done.returncode == 0
    assert "journal stays" in done.stderr
    assert note.exists()


@pytest.mark.parametrize("words", [("upgrade", "0.2.0"), ("1",), ("failed-upgrade", "0.0.9")])
@pytest.mark.parametrize("package", ["node", "ascar"])
def test_an_upgrade_removes_and_stops_nothing(root: Path, package: str, words: tuple[str, ...]) -> None:
    (root / "var/lib/ascar-learner").mkdir()
    (root / "var/lib/ascar-proxy").mkdir()
    for script in ("leaves", "gone"):
        done = run(root, f"{package}-{script}", *words)
        assert (done.returncode, done.stderr) == (0, ""), script
    assert asked(root) == ""
    assert len(list((root / "var/lib").iterdir())) == 2


@pytest.mark.parametrize("words", [("remove",), ("0",)])
def test_nothing_is_removed_while_something_could_not_be_put_back(root: Path, words: tuple[str, ...]) -> None:
    program(root, "usr/libexec/ascar/ascard", 'echo \'{"failed": ["/srv/image"]}\'; exit 1')
    done = run(root, "node-leaves", *words)
    assert done.returncode == 1
    assert "nothing was removed" in done.stderr and "/srv/image" in done.stderr
    # Whoever still changes something has been stopped before.
    first, second = asked(root).splitlines()
    assert first.startswith("systemctl disable --now") and second == "ascard keeper --restore"


def test_each_package_runs_the_scripts_that_there_are() -> None:
    named = [
        Path(line.split()[-1]).name
        for package in ("ascar", "ascar-node")
        for line in (PACKAGING / f"{package}.yaml").read_text().splitlines()
        if re.match(r"  (pre|post)(install|remove): ", line)
    ]
    there = [
        file.name for file in PACKAGING.iterdir() if file.is_file() and file.read_text().startswith("#!")
    ]
    assert sorted(named) == sorted(there)
