"""A testbed as a bench: real disks, proxies and clients, whatever happens to them; nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import InputError, Refused, StudyError
from ascar.sharp import RuleTrial, objective_of
from ascar.sharp.trials import testbed_bench as bench_module
from ascar.sharp.trials.block_clients import block_clients
from ascar.sharp.trials.testbed_bench import TestbedBench as Bench
from ascar.sharp.trials.testbed_bench import fixed
from ascar.sharp.trials.testbed_places import places_on, scenario_on, windows_on
from ascar.simulation import with_settings
from ascar.testbed import inside
from ascar.testbed.file import is_testbed_file as is_bed_file
from ascar.testbed.file import read_testbed as read_bed
from ascar.testbed.file import testbed_of as bed_of
from ascar.testbed.folder import TestbedFolder as Folder
from ascar.testbed.folder import TestbedRunner as Runner
from ascar.testbed.folder import testbeds_folder as beds_folder
from ascar.testbed.running import RunningTestbed
from ascar.units import parse_size
from testbed_processes import fio_or_skip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.testbed.file import TestbedFile

THROUGHPUT = objective_of("throughput")
EXAMPLES = Path(__file__).parents[2] / "examples" / "testbed"
LIMIT_S = 60.0
DISK = """
name = "quick"
warmup_s = 0.2
duration_s = 1
[[clients]]
count = 2
workload = "writers"
[[workloads]]
name = "writers"
filesets = [{ name = "part", size_mib = 64 }]
threads = [{ instances = 4, flowops = [{ op = "write", iosize_kib = 64, random = true, directio = true }] }]
[[servers]]
device = { kind = "memory", capacity_gb = 1, request_us = 500 }
"""


def table_of(**proxy: Any) -> dict[str, Any]:
    return {
        "testbed": {"name": "bed"},
        "node": [{"name": "server"}, {"name": "client1"}, {"name": "client2"}],
        "disk": [{"name": "disk", "node": "server", "scenario": "quick.toml", "size": "256MiB"}],
        "proxy": [{"node": f"client{at}", "disks": ["disk"], **proxy} for at in (1, 2)],
    }


def kernels_of(*agents: dict[str, Any], **change: Any) -> dict[str, Any]:
    """Two clients that are kernels, each with an agent; `change` is of the second client's node."""
    attach = [{"server": "server", "port": 10_809}]
    table: dict[str, Any] = {
        "testbed": {"name": "bed"},
        "node": [
            {"name": "server", "kind": "kernel"},
            {"name": "client1", "kind": "kernel", "attach": attach},
            {"name": "client2", "kind": "kernel", "attach": attach, **change},
        ],
        "disk": table_of()["disk"],
    }
    own = agents or ({}, {})
    windows = {"devices": ["nbd15"]}
    table["agent"] = [
        {"node": f"client{at}", "windows": {**windows, **one}} for at, one in enumerate(own, start=1)
    ]
    return table


@pytest.fixture
def folder(in_memory: Path | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose path is short enough for sockets, with the scenario."""
    with TemporaryDirectory(prefix="ascar-", dir=in_memory) as path:
        monkeypatch.setenv("ASCAR_RUNTIME_DIR", path)
        (Path(path) / "quick.toml").write_text(DISK)
        yield Path(path)
        assert left_of(Path(path)) == []


@pytest.fixture
def bed(folder: Path, ascard: Path) -> TestbedFile:
    del ascard
    fio_or_skip()
    return bed_of(table_of(), folder)


def left_of(folder: Path) -> list[str]:
    """The commands of processes that carry a testbed's mark of this folder."""
    mark = f"{inside.MARK}={folder}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def test_a_run_tells_what_clients_got_and_leaves_nothing(bed: TestbedFile, folder: Path) -> None:
    bench = Bench(bed, scenario_on(bed), THROUGHPUT)
    (one,) = bench.run([RuleTrial(fixed(1), 1)])
    assert (one.failed, len(one.groups), bench.groups) == ("", 2, ("client 1", "client 2"))
    assert one.metrics["throughput_mb_per_s"] == pytest.approx(sum(one.groups))
    assert 0 < one.metrics["latency_ms_p50"] <= one.metrics["latency_ms_p99"]
    assert one.rules is not None and one.rules.rules[0].observed is not None
    assert one.rules.rules[0].observed.used_times > 0
    assert not (beds_folder() / "bed").exists()
    assert left_of(folder) == []


@pytest.mark.slow
def test_a_node_that_dies_fails_its_run_by_name_and_the_next_goes_on(
    bed: TestbedFile, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(bed, scenario_on(bed), THROUGHPUT)
    whole, cutting = RunningTestbed.machine, list[threading.Timer]()

    def machine(testbed: RunningTestbed, name: str) -> Any:
        if name == "client1" and not cutting:
            cutting.append(threading.Timer(0.5, whole(testbed, "server").cut))
            cutting[0].start()
        return whole(testbed, name)

    monkeypatch.setattr(RunningTestbed, "machine", machine)
    failed, made = bench.run([RuleTrial(None), RuleTrial(None, 1)])
    assert failed.failed in ("node server: ended in the run", "disk disk: ended in the run")
    assert failed.metrics == {}
    assert (made.failed, made.metrics["throughput_mb_per_s"] > 0) == ("", True)
    assert left_of(folder) == []


@pytest.mark.slow
def test_a_proxy_that_was_started_anew_fails_the_run(
    bed: TestbedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(bed, scenario_on(bed), THROUGHPUT)

    async def forgotten(controllers: Any) -> dict[str, None]:
        return dict.fromkeys(controllers.names)

    monkeypatch.setattr(bench_module, "_used", forgotten)
    (found,) = bench.run([RuleTrial(fixed(2))])
    assert found.failed == "client1: follows other rules than those deployed; was it restarted?"


def test_one_that_is_up_already_is_left_alone(bed: TestbedFile) -> None:
    bench = Bench(bed, scenario_on(bed), THROUGHPUT)
    with Folder(beds_folder() / "bed") as place:
        with pytest.raises(Refused, match="'bed': is up already"):
            next(bench.run([RuleTrial(None)]))
        place.announce(Runner(os.getpid(), "bed", "bed.toml", 0.0))
        with pytest.raises(Refused, match=f"'bed': is up already, process {os.getpid()}"):
            Bench(bed, scenario_on(bed), THROUGHPUT)
        assert (beds_folder() / "bed").exists()


def test_a_full_disk_fails_the_run(bed: TestbedFile, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(bed, scenario_on(bed), THROUGHPUT)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(bench_module.tempfile, "TemporaryFile", full)
        (found,) = bench.run([RuleTrial(None)])
    assert found.failed == "No space left on device"


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_a_search_that_is_ended_leaves_nothing_and_goes_on(
    bed: TestbedFile, folder: Path, by: signal.Signals
) -> None:
    del bed
    (folder / "bed.toml").write_text(
        'version = 1\n[testbed]\nname = "bed"\n[[node]]\nname = "server"\n[[node]]\nname = "client1"\n'
        '[[disk]]\nname = "disk"\nnode = "server"\nscenario = "quick.toml"\nsize = "256MiB"\n'
        '[[proxy]]\nnode = "client1"\ndisks = ["disk"]\n'
    )
    words = [
        sys.executable, "-m", "ascar", "sharp", "search", "bed.toml", "--evaluations", "12",
        "--real-runs", "8", "--out", "rules.txt", "--json",
    ]  # fmt: skip
    own = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    journal = folder / "rules.txt.journal"
    process = subprocess.Popen(words, cwd=folder, env=own, stdout=subprocess.DEVNULL)
    end_s = time.monotonic() + LIMIT_S
    while not (journal.exists() and journal.read_bytes().count(b"\n") > 2):
        assert process.poll() is None and time.monotonic() < end_s
        time.sleep(0.02)
    process.send_signal(by)
    assert process.wait(LIMIT_S) == (-by if by == signal.SIGKILL else 130)
    while left_of(folder):
        assert time.monotonic() < end_s
        time.sleep(0.05)
    kept = journal.read_bytes()
    done = subprocess.run(
        [*words, "--resume"], cwd=folder, env=own, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr
    document = json.loads(done.stdout)
    assert journal.read_bytes().startswith(kept[: kept.rindex(b"\n") + 1])
    proof = document["testbed"]
    assert (proof["runs"], proof["turns"], proof["failures"]) == (6, 2, [])
    assert [one["name"] for one in proof["contenders"]] == ["rules", "default", "best static"]
    assert all(one["real"]["runs"] == 2 for one in proof["contenders"])
    assert (document["scenario"], document["first_in"]) == ("bed", "quick")
    assert (folder / "rules.txt").exists()
    shown = subprocess.run(
        [sys.executable, "-m", "ascar", "history", "show", "rules.txt"],
        cwd=folder, env=own, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "simulation and testbed differ:" in shown.stdout
    assert "best static" in shown.stdout


def test_files_that_rules_cannot_be_searched_for_are_refused(folder: Path) -> None:
    def refused(change: dict[str, Any], told: str) -> None:
        with pytest.raises(StudyError, match=told):
            scenario_on(bed_of({**table_of(), **change}, folder))

    refused({"proxy": []}, "proxy: must have a table")
    refused({"disk": [], "proxy": []}, "disk: must have a table")
    other = {"name": "other", "node": "server", "scenario": "random-write"}
    refused({"disk": [*table_of()["disk"], other]}, r"disk\[1\]\.scenario = 'random-write': must be that")
    windows = [{**one, "window": at} for at, one in enumerate(table_of()["proxy"], start=1)]
    refused({"proxy": windows}, r"proxy\[1\]\.window = 2: must be that of proxy\[0\]")


def test_kernels_whose_windows_rules_cannot_set_are_refused(folder: Path) -> None:
    def refused(table: dict[str, Any], told: str) -> None:
        with pytest.raises(StudyError, match=told):
            scenario_on(bed_of(table, folder))

    device = [{"server": "server", "port": 10_809, "device": "/dev/nbd3"}]
    refused(kernels_of({}), r"agent: node 'client2' must have one with windows = .*'nbd15'")
    refused(kernels_of(attach=device), r"agent: node 'client2' must have one with windows = .*'nbd3'")
    refused(kernels_of({}, {"maximum": 64}), r"agent\[1\]\.windows\.maximum = 64: must be 128 as")
    without = kernels_of()
    for agent in without["agent"]:
        del agent["windows"]
    refused(without, "proxy: must have a table, or agents of nodes of kind 'kernel' must have windows")
    mounted = kernels_of()
    mounted["node"][0]["nfs"] = {"exports": [{"name": "disk"}]}
    mounted["disk"][0]["file_system"] = "ext4"
    for node in mounted["node"][1:]:
        del node["attach"]
        node["mounts"] = [{"server": "server", "export": "disk"}]
    refused(mounted, "node 'client1': mounts /mnt/disk, whose client has no window")
    proxied = {**kernels_of(), "agent": [], "proxy": [{"node": "client1", "disks": ["disk"]}]}
    refused(proxied, r"proxy\[0\]\.node = 'client1': must be of kind 'process' or 'namespace'")


def test_kernels_without_rules_let_any_number_of_requests_pass(folder: Path) -> None:
    wanted = bed_of(kernels_of({"minimum": 6}, {"minimum": 6}), folder)
    control = scenario_on(wanted).control
    assert (control.window, control.window_min, control.tau_us) == (256, 6, 0)
    assert [(one.node, one.disk, one.reach and one.reach.where) for one in places_on(wanted)] == [
        ("client1", 0, "/dev/nbd15"),
        ("client2", 0, "/dev/nbd15"),
    ]
    assert (windows_on(wanted), windows_on(bed_of(table_of(), folder))) == ((6, 128), None)


@pytest.mark.parametrize("name", ["search", "search-kernels"])
def test_what_clients_of_the_examples_do_can_be_done_there(name: str) -> None:
    wanted = read_bed(EXAMPLES / f"{name}.toml")
    (disk,) = wanted.disk
    clients = block_clients(scenario_on(wanted), lambda _: 0, [parse_size(disk.size or "")])
    assert sum(job.depth for one in clients for job in one.jobs) == 128


def test_the_default_of_the_simulation_is_that_of_the_proxies(folder: Path) -> None:
    scenario = scenario_on(bed_of(table_of(window=5, gap_us=7), folder))
    assert (scenario.control.window, scenario.control.tau_us) == (5, 7)
    assert scenario_on(bed_of(table_of(), folder)).control.window == 256


def test_metrics_that_no_testbed_tells_are_refused(bed: TestbedFile) -> None:
    with pytest.raises(InputError, match="--objective names 'service_time_ms_p99'; a testbed tells"):
        Bench(bed, scenario_on(bed), objective_of("minimize service_time_ms_p99"))


def test_a_disk_without_a_size_is_refused(folder: Path) -> None:
    table = table_of()
    del table["disk"][0]["size"]
    wanted = bed_of(table, folder)
    with pytest.raises(StudyError, match=r"disk\[0\]\.size: must be given"):
        Bench(wanted, with_settings(scenario_on(wanted), ["seed=2"]), THROUGHPUT)


def test_testbed_files_are_told_from_scenarios(folder: Path) -> None:
    (folder / "bed.toml").write_text('[testbed]\nname = "a"\n')
    (folder / "broken.toml").write_text("[testbed")
    assert is_bed_file(folder / "bed.toml")
    for name in ("quick.toml", "broken.toml", "missing.toml", "random-write"):
        assert not is_bed_file(folder / name)
