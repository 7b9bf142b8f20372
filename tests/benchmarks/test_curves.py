"""The curves: every point can be run on every kind of testbed, and a fall is told where there is one."""

from __future__ import annotations

import random
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from ascar.sharp.trials.block_clients import block_clients
from ascar.testbed.file import testbed_of as bed_of
from ascar.units import parse_size

ROOT = Path(__file__).parents[2]


@pytest.fixture
def curves(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import curves

    return curves


def test_every_point_has_a_testbed_and_a_load_that_fits(curves: Any) -> None:
    for name in curves.GROUNDS:
        for point in curves._points(name):
            bed = bed_of(curves._testbed(name, point), Path("/"))
            clients = block_clients(
                curves._scenario(point), lambda _: 0, [parse_size(bed.disk[0].size or "")]
            )
            assert len(clients) == point[1]
            kernels = sum(node.kind == "kernel" for node in bed.node)
            assert kernels == (1 + point[1] if name in ("nbd", "nfs") else 0)


def test_each_run_is_one_piece(curves: Any) -> None:
    keys = {piece.key for piece in curves._pieces(("process", "nbd"))}
    points = len(list(curves._points("process")))
    assert len(keys) == 3 * points * curves.TURNS
    assert all(point[0] == "streams" for point in curves._points("nfs"))


def test_a_fall_is_told_with_what_is_left(curves: Any) -> None:
    def runs(*rates: float) -> list[dict[str, float]]:
        return [{"throughput_mb_per_s": one} for one in rates]

    points = {
        ("streams", 1, 1): runs(10, 11),
        ("streams", 3, 4): runs(20, 22),
        ("streams", 6, 8): runs(10, 11),
    }
    assert curves._fall(points).startswith("the maximum is at 3 x 4; at 6 x 8 50.0% (")
    del points["streams", 6, 8]
    assert curves._fall(points) == (
        "the maximum is at 3 x 4, where most is in flight: there is no fall up to there"
    )
    assert curves._fall({}) == "no runs"


def test_the_luckiest_of_many_equal_points_is_no_fall(curves: Any) -> None:
    draws, left = random.Random(1), list[float]()
    for _ in range(200):
        points = {
            ("streams", 1, depth): [{"throughput_mb_per_s": draws.gauss(10, 1)} for _ in range(3)]
            for depth in range(1, 13)
        }
        told = re.search(r"([0-9.]+)%", curves._fall(points))
        if told is not None:
            left.append(float(told[1]))
    assert len(left) > 150
    assert fmean(left) == pytest.approx(100, abs=2)
