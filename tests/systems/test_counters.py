"""The kernel's totals, from the real ones and from copies that hold what this machine lacks."""

from __future__ import annotations

import pytest

from ascar.systems.counters import Counters


@pytest.fixture
def tree(tmp_path):
    sys, proc = tmp_path / "sys", tmp_path / "proc"
    (sys / "class/block/sdx").mkdir(parents=True)
    (sys / "class/block/sdx/stat").write_text("10 1 200 5 20 2 400 9 0 1500 30 0 0 0 0 7 3\n")
    (proc / "pressure").mkdir(parents=True)
    (proc / "stat").write_text("cpu  100 10 50 9000 77 5 5 0 0 0\ncpu0 0 0 0\n")
    (proc / "pressure/io").write_text(
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 total=99\n"
    )
    return sys, proc


def domain(sys, name, kind, energy_uj, range_uj=1000):
    path = sys / "class/powercap" / name
    path.mkdir(parents=True)
    (path / "name").write_text(kind + "\n")
    (path / "energy_uj").write_text(f"{energy_uj}\n")
    (path / "max_energy_range_uj").write_text(f"{range_uj}\n")
    return path


def test_totals_carry_their_units(tree):
    sys, proc = tree
    totals = Counters({"device": "sdx"}, sys=sys, proc=proc).read()
    assert totals == {
        "cpu_busy_s": pytest.approx(1.7),
        "stall_io_s": 2.5,
        "device_read_ios": 10,
        "device_read_bytes": 200 * 512,
        "device_write_ios": 20,
        "device_write_bytes": 400 * 512,
        "device_flush_ios": 7,
        "device_busy_s": 1.5,
    }


def test_energy_is_of_packages_and_survives_wrapping(tree):
    sys, proc = tree
    package = domain(sys, "intel-rapl:0", "package-0", 900, range_uj=1000)
    domain(sys, "intel-rapl:1", "package-1", 10)
    domain(sys, "intel-rapl:0:0", "core", 5)
    domain(sys, "intel-rapl-mmio:0", "package-0", 5)
    counters = Counters({}, sys=sys, proc=proc)
    assert counters.read()["energy_j"] == 0
    (package / "energy_uj").write_text("100\n")
    assert counters.read()["energy_j"] == pytest.approx(200e-6)
    (package / "energy_uj").write_text("150\n")
    assert counters.read()["energy_j"] == pytest.approx(250e-6)


def test_counters_that_cannot_be_read_are_left_out(tree):
    sys, proc = tree
    path = domain(sys, "intel-rapl:0", "package-0", 0)
    (path / "energy_uj").unlink()
    assert "energy_j" not in Counters({}, sys=sys, proc=proc).read()


def test_this_machine_has_processors_and_its_counters_grow():
    counters = Counters({})
    before = counters.read()
    sum(number * number for number in range(2_000_000))
    after = counters.read()
    assert set(before) == set(after)
    assert after["cpu_busy_s"] >= before["cpu_busy_s"] > 0
