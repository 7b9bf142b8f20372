"""Real file systems through the command line: made, mounted, tuned, killed, put back."""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ascar.program.found import find_program

pytestmark = [pytest.mark.root, pytest.mark.machine]

PATIENCE_S = 100
SYSCTLS = ("dirty_ratio", "dirty_background_ratio", "dirty_expire_centisecs", "vfs_cache_pressure")
STUDY = """
[study]
name = "small"
objective = "maximize throughput_ops_per_s"
budget = "{budget}"
[target]
kind = "localfs"
image = "{image}"
size = "640 MiB"
file_systems = ["ext4", "xfs"]
[space]
preset = "storage-v5"
[workload]
kind = "fio"
preset = "small-files-fsync"
scale = 0.2
[measurement]
load_min = "400 ms"
load_max = "800 ms"
reading = "100 ms"
[optimizer]
kind = "random"
[stop]
trials = 2
[verify]
runs_min = 2
runs_max = 2
"""


def endless(image: Path) -> str:
    return STUDY.format(budget="2 h", image=image).replace("trials = 2", "trials = 1000")


@pytest.fixture
def image(tmp_path):
    return tmp_path / "disk.img"


@pytest.fixture
def study(tmp_path, image):
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(budget="60 s", image=image))
    return file


def traces(image: Path) -> dict[str, object]:
    """What a study on this image changes on the machine, seen while no other study changes it."""
    wait_until_alone()
    loops = []
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            if backing.read_text().startswith(str(image)):
                loops.append(backing.parts[3])
        except OSError:
            continue
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return {
        "loops": loops,
        "mounts": [line for line in mounts if line.split()[0].removeprefix("/dev/") in loops],
        "sysctls": {name: Path("/proc/sys/vm", name).read_text() for name in SYSCTLS},
        "files": sorted(path.name for path in image.parent.glob("disk.img*")),
        "left groups": [
            str(group)
            for group in Path("/sys/fs/cgroup").glob("**/ascar-*/")
            if not Path("/proc", group.name.rpartition("-")[2]).exists()
        ],
    }


def somebody_else_tunes() -> bool:
    """Whether a study on this machine holds the lock that every study of a file system needs."""
    try:
        with Path("/run/ascar/locks/vm.drop_caches.lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def wait_until_alone() -> None:
    deadline = time.monotonic() + PATIENCE_S
    while somebody_else_tunes() and time.monotonic() < deadline:
        time.sleep(0.2)


def when_alone(command):
    """Run a command; again while another study on this machine holds what it needs."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        wait_until_alone()
        done = command()
        if done.status != 2 or "is locked by" not in done.err or time.monotonic() > deadline:
            return done


class Running:
    """A study in a process of its own."""

    def __init__(self, *arguments: object) -> None:
        self._command = [sys.executable, "-m", "ascar", "tune", *map(str, arguments)]
        self._start()

    def _start(self) -> None:
        wait_until_alone()
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    @property
    def keeper(self) -> int | None:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for child in children:
            with suppress(OSError):  # it has ended meanwhile
                if "keeper" in Path(f"/proc/{child}/cmdline").read_text():
                    return int(child)
        return None

    def wait_for_trials(self, count: int) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "is locked by" in line:  # another study on this machine was faster
                self.process.communicate()
                self._start()
                return self.wait_for_trials(count)
            assert not line.startswith("error: "), line
            count -= line.startswith("trial ")
            if count == 0:
                return None
        raise AssertionError("the study ended before that trial")


@pytest.mark.slow
def test_a_study_ends_with_a_verdict_and_the_machine_as_it_was(ascar, study, image):
    before = traces(image)
    done = when_alone(lambda: ascar("tune", study, "--json"))
    assert done.status in (0, 3), done.err
    document = done.document
    assert document["machine"]["target"] == "localfs"
    assert document["machine"]["workload"]["preset"] == "small-files-fsync"
    assert document["default"]["configuration"]["fs"] == "ext4"
    assert sum(document["counts"].values()) >= 4
    assert document["stage_s"]["load"] > 0
    assert traces(image) == before
    text = ascar("history", "show", "small").out
    assert "valid for:" in text
    assert "file_systems: ext4, xfs" in text
    assert Path(ascar("report", "small", "--out", image.parent, "--json").document["page"]).exists()


@pytest.mark.slow
def test_the_example_is_tuned(ascar, tmp_path, image):
    """examples/mailserver.toml, with shorter loads and fewer of them."""
    text = (Path(__file__).resolve().parents[2] / "examples" / "mailserver.toml").read_text("utf-8")
    text = re.sub(r'(load_min|load_max) = ".*?"', r'\1 = "500 ms"', text)
    text = text.replace('budget = "5 min"', 'budget = "80 s"')
    text = text.replace("[verify]", "[stop]\ntrials = 2\n[verify]\nruns_min = 2\nruns_max = 2")
    file = tmp_path / "mailserver.toml"
    file.write_text(text.replace('kind = "localfs"', f'kind = "localfs"\nimage = "{image}"'))
    document = when_alone(lambda: ascar("tune", file, "--json")).document
    assert document["machine"]["file_systems"] == ["ext2", "ext3", "ext4", "xfs", "btrfs"]
    trials = ascar("history", "show", "mailserver", "--json").document["trials"]
    promising_less = {"fs": "ext2", "write_barrier": False, "ext_journal_mode": "writeback"}
    for trial in trials:
        for name, value in promising_less.items():
            assert trial["configuration"].get(name) != value


@pytest.mark.slow
def test_its_configurations_can_be_exported(ascar, study):
    done = when_alone(lambda: ascar("tune", study, "--json"))
    assert done.status in (0, 3), done.err
    trials = ascar("history", "show", "small", "--json").document["trials"]
    number = next(trial["number"] for trial in trials if trial["purpose"] == "search")
    signs = (
        ("shell", "vm_dirty_ratio", "sysctl -w vm.dirty_ratio="),
        ("sysctl", "vm_dirty_ratio", "vm.dirty_ratio = "),
        ("udev", "block_scheduler", "ATTR{queue/scheduler}"),
        ("fstab", "atime", "atime"),
        ("tuned", "vm_dirty_ratio", "vm.dirty_ratio="),
    )
    for form, parameter, sign in signs:
        document = ascar("export", "small", "--as", form, "--trial", number, "--json").document
        assert (parameter in document["chosen"]) == (sign in "\n".join(document["lines"]))
    of_default = ascar("export", "small", "--trial", 1, "--json").document
    assert (of_default["chosen"], of_default["lines"]) == ([], [])


@pytest.mark.slow
def test_a_study_that_is_killed_leaves_nothing_and_loses_no_trial(ascar, study, image, seed):
    """SIGKILL at random moments: the keeper, whose pipe closes, puts everything back."""
    study.write_text(endless(image))
    before = traces(image)
    chance = random.Random(20 + seed)
    kept: dict[int, object] = {}
    for round_ in range(3):
        running = Running(study, *(["--resume"] if round_ else []))
        try:
            running.wait_for_trials(2)
            time.sleep(chance.uniform(0, 1.5))
        finally:
            running.process.kill()
            running.process.communicate()
        assert _settles(image, before)
        trials = ascar("history", "show", "small", "--json").document["trials"]
        ended = {
            trial["number"]: trial for trial in trials if trial["state"] not in ("running", "interrupted")
        }
        for number, trial in kept.items():
            assert ended[number] == trial, "what was measured before is still there, to the bit"
        assert len(ended) >= len(kept) + 2
        kept = ended


def test_a_keeper_that_is_killed_too_is_made_good_by_restore(ascar, study, image):
    study.write_text(endless(image))
    before = traces(image)
    running = Running(study)
    try:
        running.wait_for_trials(2)
        keeper = running.keeper
        assert keeper is not None
        os.kill(keeper, signal.SIGKILL)
    finally:
        running.process.kill()
        running.process.communicate()
    assert traces(image)["loops"], "nobody is left who could have put it back"
    document = ascar("restore", "--json").document
    assert document["failed"] == []
    assert _settles(image, before)


@pytest.mark.slow
def test_a_keeper_that_dies_ends_the_study_in_order(ascar, study, image):
    study.write_text(endless(image))
    before = traces(image)
    running = Running(study)
    running.wait_for_trials(2)
    keeper = running.keeper
    assert keeper is not None
    os.kill(keeper, signal.SIGKILL)
    _, err = running.process.communicate(timeout=300)
    assert running.process.returncode == 1
    assert err.splitlines()[-1].startswith("error: ")
    assert ascar("restore", "--json").document["failed"] == []
    assert _settles(image, before)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interrupted_study_puts_everything_back_before_it_ends(study, image, number):
    study.write_text(endless(image))
    before = traces(image)
    running = Running(study)
    running.wait_for_trials(2)
    running.process.send_signal(number)
    _, err = running.process.communicate(timeout=300)
    assert running.process.returncode == 130
    assert traces(image) == before
    assert "--resume" in err.splitlines()[-1]


@pytest.mark.slow
def test_two_studies_at_once_are_refused(ascar, study, image, tmp_path):
    study.write_text(endless(image))
    other = tmp_path / "other.toml"
    other.write_text(STUDY.format(budget="90 s", image=tmp_path / "other.img").replace('"small"', '"other"'))
    running = Running(study)
    try:
        running.wait_for_trials(1)
        done = ascar("tune", other)
        assert done.status == 2
        assert 'is locked by "study small, process ' in done.error, "it names who holds what both need"
        assert not (tmp_path / "other.img").exists()
    finally:
        running.process.send_signal(signal.SIGINT)
        running.process.communicate(timeout=300)


def _settles(image: Path, wanted: dict[str, object], within_s: float = 60) -> bool:
    deadline = time.monotonic() + within_s
    while (found := traces(image)) != wanted:
        if time.monotonic() > deadline:
            print(f"wanted {wanted}\nfound {found}")  # noqa: T201
            return False
        time.sleep(0.05)
    return True


# Mistakes that show on a real machine only: one line, status 2, nothing touched.


def _refused(ascar, file, image, *arguments):
    before = traces(image)
    done = when_alone(lambda: ascar("tune", file, *arguments))
    assert done.status == 2, (done.status, done.err)
    assert traces(image) == before
    assert ascar("history", "ls", "--json").document["runs"] == []
    return done.error


def test_a_metric_that_fio_does_not_report(ascar, study, image):
    study.write_text(study.read_text().replace("throughput_ops_per_s", "throughput_iops"))
    before = traces(image)
    done = when_alone(lambda: ascar("tune", study, "--quiet"))
    assert done.status == 2
    assert "'throughput_iops'" in done.error
    assert "throughput_ops_per_s" in done.error
    assert traces(image) == before


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"640 MiB"', '"100 TiB"', ["target.size", "'100 TiB'"]),
        ('"640 MiB"', '"1 MiB"', ["target.size", "'1 MiB'", "320 MiB"]),
        ('["ext4", "xfs"]', '["ext5"]', ["target.file_systems", "'ext5'", "ext4"]),
        ('kind = "localfs"', 'kind = "localfs"\nmemory = "1 MiB"', ["target.memory", "'1 MiB'", "32 MiB"]),
        ('kind = "localfs"', 'kind = "localfs"\nuser = "nosuchuser"', ["target.user", "'nosuchuser'"]),
        (
            'preset = "small-files-fsync"',
            'preset = "small"',
            ["workload.preset", "'small'", "small-files-fsync"],
        ),
    ],
)
def test_an_impossible_target(ascar, study, image, old, new, named):
    text = study.read_text()
    assert old in text
    study.write_text(text.replace(old, new))
    error = _refused(ascar, study, image)
    for name in named:
        assert name in error, error


def test_a_full_disk(ascar, study, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", str(small)], check=True)
    try:
        study.write_text(STUDY.format(budget="90 s", image=small / "disk.img"))
        error = _refused(ascar, study, small / "disk.img")
        for name in ("target.size", "'640 MiB'", "64 MiB", str(small)):
            assert name in error, error
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_an_image_that_is_there_already_is_kept(ascar, study, image):
    image.write_text("precious")
    assert str(image) in _refused(ascar, study, image)
    assert image.read_text() == "precious"


@pytest.fixture
def disk(tmp_path):
    """A loop device that stands for a disk of the machine."""
    with disk_on(tmp_path / "backing") as device:
        yield device


@contextmanager
def disk_on(backing):
    with backing.open("wb") as file:
        file.truncate(700 * 2**20)
    made = subprocess.run(
        ["losetup", "--find", "--show", str(backing)], capture_output=True, text=True, check=True
    )
    device = made.stdout.strip()
    yield device
    subprocess.run(["umount", device], capture_output=True, check=False)
    subprocess.run(["losetup", "--detach", device], check=True)


@pytest.fixture
def on_disk(study, image, disk):
    study.write_text(
        study.read_text()
        .replace(f'image = "{image}"', f'device = "{disk}"')
        .replace('size = "640 MiB"\n', "")
    )
    return study


def test_a_device_needs_a_confirmation(ascar, on_disk, image, disk):
    error = _refused(ascar, on_disk, image)
    assert f"--format-device {disk}" in error
    assert disk in _refused(ascar, on_disk, image, "--format-device", "/dev/null")


def test_a_device_that_holds_data_is_refused(ascar, on_disk, image, disk):
    subprocess.run(["mkfs.ext4", "-q", disk], check=True)
    error = _refused(ascar, on_disk, image, "--format-device", disk)
    assert disk in error
    assert "ext4" in error


def test_a_device_in_use_is_refused(ascar, on_disk, image, disk, tmp_path):
    subprocess.run(["mkfs.ext4", "-q", disk], check=True)
    (tmp_path / "mnt").mkdir()
    subprocess.run(["mount", disk, str(tmp_path / "mnt")], check=True)
    assert disk in _refused(ascar, on_disk, image, "--format-device", disk)


@pytest.mark.slow
def test_an_empty_device_that_is_confirmed_is_tuned(ascar, on_disk, disk):
    done = when_alone(lambda: ascar("tune", on_disk, "--format-device", disk, "--json"))
    assert done.status in (0, 3), done.err
    assert done.document["machine"]["device"]["path"] == disk


@pytest.mark.slow
def test_two_devices_that_are_confirmed_are_compared(ascar, on_disk, image, disk, tmp_path):
    with disk_on(tmp_path / "other") as other:
        on_disk.write_text(
            on_disk.read_text()
            .replace(f'device = "{disk}"', f"device = {[disk, other]}")
            .replace('preset = "storage-v5"', 'tuned = ["device"]')
        )
        assert other in _refused(ascar, on_disk, image, "--format-device", disk)
        confirmed = ("--format-device", disk, "--format-device", other)
        done = when_alone(lambda: ascar("tune", on_disk, *confirmed, "--json"))
        assert done.status in (0, 3), done.err
        tried = ascar("history", "show", "small", "--json").document["trials"]
        assert {trial["configuration"]["device"] for trial in tried} == {disk, other}


def test_what_is_no_device(ascar, study, image):
    text = study.read_text()
    for path in ("/dev/nosuchdevice", "/dev/null", "/etc/passwd"):
        study.write_text(text.replace(f'image = "{image}"', f'device = "{path}"'))
        assert path in _refused(ascar, study, image, "--format-device", path)


@pytest.mark.parametrize("program", ["fio", "mkfs.xfs", "blkid"])
def test_a_missing_program_is_named_with_its_package(study, image, program):
    path = find_program(program)
    assert path is not None
    before = traces(image)
    # Where only this process and its children look, the program is no program any more.
    hidden = 'mount --bind /dev/null "$1" && shift && exec "$@"'
    command = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        hidden,
        "sh",
        path,
        sys.executable,
        "-m",
        "ascar",
        "tune",
        str(study),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert program in line
    assert "apt" in line
    assert traces(image) == before


def test_somebody_who_is_not_root(as_nobody):
    """As nobody, without sudo: needs root, says so, touches nothing."""
    home, run = as_nobody
    image, study = home / "disk.img", home / "study.toml"
    study.write_text(STUDY.format(budget="60 s", image=image))
    before = traces(image)
    done = run("tune", study)
    assert done.status == 2, done.err
    assert "needs root" in done.error
    assert traces(image) == before
    done = run("restore")
    assert done.status == 2
    assert done.error.startswith("needs root")
    assert "cannot be tuned here: root" in run("doctor").out


def test_somebody_who_is_not_root_can_tune_sqlite(as_nobody):
    home, run = as_nobody
    study = home / "study.toml"
    example = (Path(__file__).resolve().parents[2] / "examples" / "sqlite.toml").read_text()
    example = re.sub(r'(load_min|load_max) = ".*?"', r'\1 = "300 ms"', example)
    example = example.replace("trials_without_gain = 25", "trials = 1")
    example = example.replace("latency_ms_p99 <= 500", "latency_ms_p99 <= 60000")  # also on a busy machine
    study.write_text(f"{example}\n[verify]\nruns_min = 2\nruns_max = 2\n")
    document = run("tune", study, "--json").document
    assert document["machine"]["target"] == "sqlite"
    assert document["verdict"]["kind"] in ("improved", "default-is-fine", "undecided"), document["verdict"]
    left = [
        path for path in home.rglob("*") if path.is_file() and "state" not in path.parts and path != study
    ]
    assert left == [], "no database is left"


def test_the_space_of_a_study_is_shown_without_root_too(ascar, study, image):
    document = ascar("space", study, "--json").document
    assert json.dumps(document["parameters"][0]).startswith('{"name": "fs"')
    assert not image.exists()
