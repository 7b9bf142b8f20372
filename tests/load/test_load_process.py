"""The load generator as a process: it starts at once, ends when told, and fails with one line."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Load = Callable[..., Any]


def names(ascard: Path) -> list[str]:
    done = subprocess.run([ascard, "load", "--list"], capture_output=True, text=True, check=True)
    return [json.loads(line)["name"] for line in done.stdout.splitlines()]


def scale_of(name: str) -> tuple[str, str]:
    """Small enough to fill in milliseconds."""
    return ("--scale", "0.00001") if name == "videoserver" else ("--scale", "0.0002")


def test_every_personality_starts_and_stops_again_and_again(ascard: Path, memory: Path) -> None:
    for name in names(ascard):
        for _ in range(2):
            words = ["--personality", name, *scale_of(name), "--dir", memory, "--seconds", "0.02", "--clean"]
            done = subprocess.run(
                [ascard, "load", *words], capture_output=True, text=True, timeout=100, check=False
            )
            assert done.returncode == 0, (name, done.stderr)
            assert json.loads(done.stdout.splitlines()[-1])["ended"] == "time"
    assert list(memory.iterdir()) == []


ONE_DELAY = """
define fileset name=one,path=$dir,size=4k,entries=4,prealloc=100
define process name=p,instances=1 {
  thread name=t,instances=2 {
    flowop openfile name=open,filesetname=one,fd=1
    flowop delay name=work,value=0.01
    flowop closefile name=close,fd=1
  }
}
"""


def test_an_open_loop_has_its_rate_and_counts_from_the_arrival(load: Load, memory: Path) -> None:
    """Two threads that take 10 ms a pass do 200 a second: 100 arrive without much of a wait, 400 do not."""
    wml = memory / "own.f"
    wml.write_text(ONE_DELAY)
    there = ("--wml", wml, "--dir", memory, "--seconds", "3", "--clean")
    closed = load(*there).summary
    assert "rate_per_s" not in closed and closed["waiting"] == 0
    easy = load(*there, "--rate-per-s", "100").summary
    assert easy["rate_per_s"] == 100
    passes = easy["flowops"]["open"]["ops"]
    assert passes == pytest.approx(300, abs=5 * 300**0.5)
    assert easy["flowops"]["close"]["latency_ms_p99"] < easy["flowops"]["open"]["latency_ms_p99"]
    over = load(*there, "--rate-per-s", "400").summary
    # Half of what arrives is done, so that the last one waited for half of the three seconds.
    assert over["flowops"]["open"]["latency_ms_max"] > 1_000
    assert over["flowops"]["close"]["latency_ms_mean"] < 5  # the pass waits, not each of its operations
    done = over["flowops"]["open"]["ops"]
    assert done + over["waiting"] == pytest.approx(1_200, abs=5 * 1_200**0.5)
    assert over["waiting"] > 400
    refused = load(*there, "--rate-per-s", "0")
    assert refused.status == 2 and "--rate-per-s" in refused.errors


@pytest.mark.slow
def test_sigterm_at_any_moment_ends_a_load_and_leaves_nothing(ascard: Path, memory: Path, seed: int) -> None:
    """During start, fill and run alike; `benchmarks.load_starts` does so a hundred times each."""
    chance = random.Random(1 + seed)
    for name in names(ascard):
        words = ["--personality", name, *scale_of(name), "--dir", memory, "--seconds", "60", "--clean"]
        for _ in range(2):
            process = subprocess.Popen(
                [ascard, "load", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            time.sleep(chance.random() * 0.1)
            process.terminate()
            _, errors = process.communicate(timeout=50)
            # Before it can take signals it ends at once, with nothing made.
            assert process.returncode in (3, -signal.SIGTERM), (name, errors)
            assert list(memory.iterdir()) == [], name


@pytest.mark.parametrize(
    "name", ["fileserver", "mailserver", "webserver", "dbserver", "btio-b", "videoserver"]
)
def test_sigterm_ends_within_a_second_with_the_summary(ascard: Path, memory: Path, name: str) -> None:
    scale = ("--scale", "0.0001") if name == "videoserver" else ("--scale", "0.05")
    words = [
        "--personality",
        name,
        *scale,
        "--dir",
        memory,
        "--seconds",
        "60",
        "--reading-ms",
        "100",
        "--clean",
    ]
    took_s: list[float] = []
    while not took_s or min(took_s) >= 1.5:  # a second, and the files' removal
        assert len(took_s) < 5, took_s  # a busy machine may take longer now and then
        process = subprocess.Popen([ascard, "load", *words], stdout=subprocess.PIPE, text=True)
        assert process.stdout
        for line in process.stdout:
            if json.loads(line)["kind"] == "reading":
                break
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        last = process.stdout.read().splitlines()[-1]
        assert process.wait(50) == 3
        took_s.append(time.monotonic() - begun)
        assert json.loads(last)["kind"] == "summary"
        assert json.loads(last)["ended"] == "signal"
        assert list(memory.iterdir()) == []
        process.stdout.close()


def test_sigterm_ends_a_fill(ascard: Path, memory: Path) -> None:
    took_s: list[float] = []
    while not took_s or min(took_s) >= 1.5:
        assert len(took_s) < 5, took_s
        place = memory / str(len(took_s))
        place.mkdir()
        words = ["--personality", "fileserver-heavy", "--scale", "0.2", "--dir", place, "--fill-only"]
        process = subprocess.Popen([ascard, "load", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not any(place.iterdir()):
            assert process.poll() is None
            time.sleep(0.001)  # the signal is to come at the beginning
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=50)
        assert process.returncode in (0, 3)
        # More than a GB is filled in half a second: before the signal, if this process had to wait.
        took_s.append(time.monotonic() - begun if process.returncode else 60.0)
        if min(took_s) >= 1.5:
            shutil.rmtree(place)  # several would not fit
    again = subprocess.run(
        [ascard, "load", *words[:2], "--scale", "0.001", "--dir", place, "--fill-only"],
        check=False,
        timeout=100,
    )
    assert again.returncode == 0  # what the interrupted fill left is taken away first


def test_a_reader_that_goes_away_ends_the_load(ascard: Path, memory: Path) -> None:
    words = ["--personality", "mailserver", "--dir", memory, "--seconds", "60", "--reading-ms", "50"]
    process = subprocess.Popen(
        [ascard, "load", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout
    assert process.stderr
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(100) == 1
    assert "cannot write the readings" in process.stderr.read()
    process.stderr.close()


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of 12 MB."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a tmpfs")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", tmp_path], check=False)
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.root
def test_a_full_disk_ends_the_load_with_one_line(
    load: Load, tiny: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    wml = tmp_path_factory.mktemp("wml") / "grow.f"
    wml.write_text(
        "define fileset name=log,size=0,entries=4,prealloc\n"
        "define process name=p { thread name=t,instances=4 {\n"
        "flowop appendfile name=a,filesetname=log,iosize=100k } }\n"
    )
    done = load("--wml", wml, "--dir", tiny, "--seconds", "30")
    assert done.status == 1
    assert done.errors.count("\n") == 1
    assert "full" in done.errors
    assert str(tiny) in done.errors
    cleaned = load("--wml", wml, "--dir", tiny, "--seconds", "30", "--clean")
    assert cleaned.status == 1
    assert "full" in cleaned.errors
    assert list(tiny.iterdir()) == []
    too_large = load("--personality", "fileserver", "--dir", tiny, "--seconds", "1", "--clean")
    assert too_large.status == 1
    assert "--scale" in too_large.errors
    assert list(tiny.iterdir()) == []


def test_two_loads_do_not_share_a_directory(ascard: Path, load: Load, memory: Path) -> None:
    words = ["--personality", "mailserver", "--dir", memory, "--seconds", "30"]
    process = subprocess.Popen([ascard, "load", *words], stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    second = load("--personality", "mailserver", "--dir", memory, "--seconds", "1")
    process.terminate()
    process.communicate()
    assert second.status == 2
    assert "another load" in second.errors


def test_direct_and_synchronous_flags_reach_the_kernel(ascard: Path, memory: Path) -> None:
    wml = memory / "flags.f"
    wml.write_text(
        "define fileset name=f,size=1m,prealloc\n"
        "define process name=p { thread name=t {\n"
        "flowop write name=w,filesetname=f,iosize=4k,random,directio,dsync\n"
        "flowop delay name=d,value=60 } }\n"
    )
    process = subprocess.Popen(
        [ascard, "load", "--wml", wml, "--dir", memory, "--seconds", "30", "--reading-ms", "100"],
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    for line in process.stdout:
        reading = json.loads(line)
        if reading["kind"] == "reading" and reading["ops"] >= 1:  # they come by the clock, even of nothing
            break
    flags = 0
    for entry in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            if str(entry.readlink()).endswith("f/000000000"):
                info = Path(f"/proc/{process.pid}/fdinfo/{entry.name}").read_text()
                flags = int(
                    next(line.split()[1] for line in info.splitlines() if line.startswith("flags")), 8
                )
    process.terminate()
    process.communicate()
    assert flags & os.O_DIRECT
    assert flags & os.O_SYNC == os.O_SYNC


def test_a_refused_file_names_its_line_and_word(load: Load, tmp_path: Path) -> None:
    wml = tmp_path / "bad.f"
    wml.write_text('set $dir=/tmp\ndefine fileset name=f\nsystem "sync"\n')
    done = load("--wml", wml, "--dir", tmp_path, "--seconds", "1")
    assert done.status == 2
    assert "line 3: 'system'" in done.errors
    assert done.errors.count("\n") == 1
    wml.write_bytes(b"\xff\xfe\x00" * 100)
    assert load("--wml", wml, "--describe").status == 2
    assert load("--wml", "/dev/zero", "--describe").status == 2


def test_it_starts_in_milliseconds(load: Load, memory: Path) -> None:
    load("--personality", "webserver", "--dir", memory, "--fill-only")
    starts = [
        load("--personality", "webserver", "--dir", memory, "--no-fill", "--seconds", "0.01").summary[
            "start_s"
        ]
        for _ in range(9)
    ]
    assert min(starts) < 1  # 100 threads; some 10 ms on an idle machine


def test_help_and_list_need_nothing(ascard: Path) -> None:
    done = subprocess.run([ascard, "load", "--help"], capture_output=True, text=True, check=True)
    assert "--personality NAME" in done.stdout
    assert len(names(ascard)) >= 20
    assert shutil.which(str(ascard))
