"""What a scenario's clients do as jobs of fio, and what fio reports of it."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from ascar.errors import ScenarioError, StudyError, WorkError
from ascar.sharp.trials.block_clients import BlockClient, DiskReach, block_clients
from ascar.sharp.trials.block_report import METRICS, ClientReport, run_metrics
from ascar.simulation import preset, with_settings

GIB = 1 << 30
EXPORT = DiskReach("export", "nbd+unix:///disk?socket=/run/disk.sock")


def clients_of(name: str, *settings: str, disks: tuple[int, ...] = (16 * GIB,)) -> tuple[BlockClient, ...]:
    scenario = with_settings(preset(name), settings)
    return block_clients(scenario, lambda number: number % len(disks), disks)


def test_streams_are_jobs_each_with_a_file_of_its_own() -> None:
    clients = clients_of("read-ahead-cliff")
    assert len(clients) == 3
    jobs = [job for one in clients for job in one.jobs]
    assert len(jobs) == 36
    assert {(job.pattern, job.request_bytes, job.depth, job.direct) for job in jobs} == {
        ("read", 128 << 10, 2, False)
    }
    for one, other in combinations([job.part for job in jobs], 2):
        assert one.offset + one.size <= other.offset or other.offset + other.size <= one.offset
    assert max(job.part.offset + job.part.size for job in jobs) <= 16 * GIB


def test_random_writers_share_one_queue() -> None:
    clients = clients_of("random-write", "clients.count=2", "workloads.threads.instances=7")
    assert [[(job.pattern, job.depth, job.direct) for job in one.jobs] for one in clients] == [
        [("randwrite", 7, True)]
    ] * 2


def test_a_mixture_keeps_its_ratio() -> None:
    (job,) = clients_of("capes-1-9", "clients.count=1")[0].jobs
    assert (job.pattern, job.write_percent) == ("randrw", 90)
    assert "--rwmixwrite=90" in job.words("a", EXPORT)


def test_parts_are_scaled_down_to_the_disk_and_clients_spread_over_disks() -> None:
    sizes = (1 * GIB, 2 * GIB)
    clients = clients_of("read-ahead-cliff", disks=sizes)
    assert [one.disk for one in clients] == [0, 1, 0]
    for client in clients:
        assert max(job.part.offset + job.part.size for job in client.jobs) <= sizes[client.disk]
    ends = [max(job.part.offset + job.part.size for job in one.jobs) for one in clients if one.disk == 0]
    begins = [min(job.part.offset for job in one.jobs) for one in clients if one.disk == 0]
    assert ends[0] <= begins[1]


@pytest.mark.parametrize(
    ("name", "setting", "told"),
    [
        ("mdtest", "seed=2", r"flowops\[0\]\.op = '.*': must be 'read' or 'write'"),
        ("random-write", "workloads.threads.rate_per_s=5", "rate_per_s = 5: must be left out"),
        ("random-write", "clients.start_s=1", r"clients\[0\]\.start_s = 1\.0: must be left out"),
        ("random-write", "clients.rogue=true", r"clients\[0\]\.rogue = True: must be left out"),
        ("random-write", "clients.count=65", "65 in all; a testbed takes at most 64"),
        ("random-write", "workloads.threads.instances=300", "keep 300 requests in flight"),
    ],
)
def test_what_block_devices_cannot_do_is_refused_by_its_key(name: str, setting: str, told: str) -> None:
    with pytest.raises(ScenarioError, match=told):
        clients_of(name, setting)


def test_a_disk_that_is_too_small_is_refused() -> None:
    with pytest.raises(StudyError, match=r"disk\.size: leaves .* less than 1 MiB for each file of 'stream'"):
        clients_of("read-ahead-cliff", disks=(8 << 20,))


def test_each_way_to_a_disk_has_its_words() -> None:
    (writer,) = clients_of("random-write", "clients.count=1")
    (reader,) = clients_of("read-ahead-cliff", "clients.count=1")
    assert "--ioengine=nbd" in writer.words(EXPORT, (1, 2), 0, "log")
    at_device = writer.words(DiskReach("device", "/dev/nbd15"), (1, 2), 0, "log")
    assert {"--ioengine=libaio", "--direct=1", "--filename=/dev/nbd15"} <= set(at_device)
    in_folder = reader.words(DiskReach("folder", "/mnt/disk"), (1, 2), 0, "log")
    assert "--ioengine=psync" in in_folder
    assert len({one for one in in_folder if one.startswith("--filename=/mnt/disk/part-")}) == 12
    assert {one for one in in_folder if one.startswith("--offset=")} == {"--offset=0"}
    assert "--create_only=1" in reader.preparation(DiskReach("folder", "/mnt/disk"))


def said(mb_per_s: float, bins: dict[str, int], error: int = 0) -> str:
    both = {"bw_bytes": mb_per_s * 1e6, "lat_ns": {"bins": bins, "max": 9e6, "mean": 1.0}}
    return "a word of the engine\n" + json.dumps({"jobs": [{"error": error, "mixed": both, "more": 1}]})


def test_latencies_of_all_clients_are_one_distribution() -> None:
    quick = ClientReport.of(
        "client 1", said(3.0, {"1000000": 990}), "1000, 2000, 0, 0, 0\n2000, 4000, 0, 0\n"
    )
    slow = ClientReport.of("client 2", said(1.0, {"1000000": 9, "5000000": 11}), "1000, 1000, 1, 0\nx")
    metrics, totals = run_metrics([quick, slow])
    assert set(metrics) == METRICS
    assert metrics["throughput_mb_per_s"] == 4.0
    assert metrics["jain_index"] == pytest.approx(0.8)
    assert (metrics["latency_ms_p50"], metrics["latency_ms_p99"]) == (1.0, 5.0)
    assert metrics["latency_ms_max"] == 9.0
    assert totals == (pytest.approx(3.072),)


@pytest.mark.parametrize("text", ["", "no report", "{", '{"jobs": []}', '{"jobs": [{"error": 0}]}'])
def test_what_is_no_report_is_told(text: str) -> None:
    with pytest.raises(WorkError, match="client 1: fio reports nothing that can be read"):
        ClientReport.of("client 1", text, "")


def test_errors_and_clients_that_moved_nothing_are_told() -> None:
    with pytest.raises(WorkError, match="client 1: fio reports error 5"):
        ClientReport.of("client 1", said(1.0, {}, error=5), "")
    idle = ClientReport.of("client 1", said(0.0, {}), "")
    with pytest.raises(WorkError, match="client 1: moved nothing"):
        run_metrics([idle])
