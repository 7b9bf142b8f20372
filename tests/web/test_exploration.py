"""Tables and runs as dimensions and metrics, and as the bytes that the page receives."""

from __future__ import annotations

import json
import struct

import numpy as np
import polars as pl
import pytest

from ascar.analysis.tables import read_frame
from ascar.datasets import dataset_file
from ascar.errors import InputError
from ascar.web import Exploration, NothingYet, Roles, of_table
from ascar.web.dropped import explored, inspected
from ascar.web.exploration import ABSENT
from ascar.web.part import COST
from ascar.web.payload import metric_payload, payload


def of(frame, objective="iops", **roles):
    return Exploration.of([of_table(frame, "made-up", Roles(objective, **roles))], objective, None)


def dimension(whole, name):
    return next(one for one in whole.dimensions if one.name == name)


def test_values_keep_their_kinds_and_their_order():
    frame = pl.DataFrame(
        {
            "text": ["b", "a", None, "b"],
            "flag": [True, False, True, True],
            "size": [4096, 512, 1024, 512],
            "share": [0.5, None, 0.25, 0.5],
            "joined": [2.0, float("nan"), 10.0, 2.0],
            "iops": [1.5, 2.5, 3.5, 4.5],
        }
    )
    whole = of(frame, parameters=("text", "flag", "size", "share", "joined"))
    assert [(one.name, one.kind, one.values) for one in whole.dimensions] == [
        ("text", "text", ("a", "b")),
        ("flag", "boolean", (False, True)),
        ("size", "integer", (512, 1024, 4096)),
        ("share", "number", (0.25, 0.5)),
        ("joined", "integer", (2, 10)),
    ]
    assert dimension(whole, "text").codes.tolist() == [1, 0, ABSENT, 1]
    assert dimension(whole, "flag").labels == ("false", "true")
    assert dimension(whole, "joined").codes.tolist() == [0, ABSENT, 1, 0]


def test_configurations_are_equal_where_all_values_are_and_not_their_ranges():
    size = [float(number) + 0.5 for number in range(40)] * 2
    frame = pl.DataFrame({"size": size, "mode": ["a", "b"] * 40, "iops": [float(n) for n in range(80)]})
    whole = of(frame, parameters=("size", "mode"))
    assert len(dimension(whole, "size").labels) == 8
    assert whole.configurations.tolist()[:40] == whole.configurations.tolist()[40:]
    assert len(set(whole.configurations.tolist())) == 40
    assert dimension(whole, "size").raw.tolist() == size


def test_many_dimensions_do_not_overflow():
    rng = np.random.default_rng(1)
    columns = {f"p{at}": rng.integers(0, 12, 300) for at in range(40)}
    frame = pl.DataFrame({**columns, "iops": rng.normal(size=300)})
    assert len(np.unique(of(frame, parameters=tuple(columns)).configurations)) == 300


def test_numbers_with_fractions_and_many_values_were_measured():
    rows = 100
    frame = pl.DataFrame(
        {
            "depth": list(range(rows)),
            "ratio": [0.25, 0.5] * (rows // 2),
            "latency_ms": [n + 0.25 for n in range(rows)],
            "iops": [float(n) for n in range(rows)],
        }
    )
    whole = of(frame)
    assert [one.name for one in whole.dimensions] == ["depth", "ratio"]
    assert [(one.name, one.minimize) for one in whole.metrics] == [("iops", False), ("latency_ms", True)]


def test_a_table_of_ours_says_what_was_set():
    parts = []
    for name in ("storage-v5-fileserver", "storage-v5-mailserver"):
        frame = read_frame(dataset_file(name), name)
        parts.append(of_table(frame, name, Roles("operations")))
    whole = Exploration.of(parts, "operations", None)
    assert dimension(whole, "workload").labels == ("fileserver", "mailserver")
    assert dimension(whole, "workload").given
    assert (dimension(whole, "fs").cost, dimension(whole, "fs").category) == ("reformat-restore", 3)
    assert dimension(whole, "block_scheduler").category == 0
    assert not dimension(whole, "block_nr_requests").varies
    assert [one.name for one in whole.origins] == ["storage-v5-fileserver", "storage-v5-mailserver"]
    assert whole.rows == sum(part.frame.height for part in parts)
    # Only the scheduler departs from its default where a change costs nothing.
    category = whole.metric(COST).values
    assert set(np.unique(category)) <= {0.0, 1.0, 2.0, 3.0}
    formats = dimension(whole, "fs")
    assert (category[formats.codes != formats.labels.index("ext4")] == 3).all()


def test_the_bytes_say_all_of_it():
    frame = pl.DataFrame({"mode": ["a", None, "b"] * 2, "iops": [1.0, 2.0, float("nan"), 4.0, 5.0, 6.0]})
    whole = of(frame, parameters=("mode",))
    content = payload(whole, version=7)
    magic, version, length, _ = struct.unpack("<4sIII", content[:16])
    header = json.loads(content[16 : 16 + length])
    assert (magic, version, header["version"], header["rows"]) == (b"ASCX", 1, 7, 6)
    arrays = {
        one["name"]: np.frombuffer(content, one["type"], one["length"], 16 + length + one["offset"])
        for one in header["arrays"]
    }
    assert arrays["dimension.0"].tolist() == [0, 255, 1] * 2
    np.testing.assert_array_equal(arrays["metric.0"], frame["iops"].to_numpy())
    assert all(one["offset"] % 8 == 0 for one in header["arrays"])
    assert (16 + length) % 8 == 0
    assert metric_payload(whole.metric("iops")).endswith(frame["iops"].to_numpy().tobytes())


@pytest.mark.parametrize(
    ("columns", "roles", "said"),
    [
        ({"a": ["x", "y"], "iops": [1.0, 2.0]}, {"objective": "speed"}, "no column 'speed'; it has a, iops"),
        ({"a": [1, 2], "iops": ["1", "fast"]}, {}, "column 'iops': row 2 holds 'fast'; a metric must hold"),
        ({"a": ["x", "x"], "iops": [1.0, 2.0]}, {}, "no parameter takes two values"),
        ({"a": ["x", "y"], "iops": [None, float("nan")]}, {}, "column 'iops': holds no finite number"),
        (
            {"a": ["x", "y"], "iops": [1.0, 2.0]},
            {"parameters": ("iops",)},
            "cannot be both a parameter and a metric",
        ),
        ({"a": [[1], [2]], "iops": [1.0, 2.0]}, {}, "column 'a': holds List(Int64); a parameter must hold"),
    ],
)
def test_bad_tables_are_refused_in_one_line(columns, roles, said):
    frame = pl.DataFrame(columns, strict=False)
    if columns["iops"][0] is None:
        frame = frame.with_columns(pl.col("iops").cast(pl.Float64))
    with pytest.raises(InputError) as refused:
        of(frame, **roles)
    assert said in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.slow
def test_a_million_different_texts_are_refused():
    frame = pl.DataFrame({"host": "h" + pl.int_range(1_000_000, eager=True).cast(pl.String)})
    frame = frame.with_columns(fs=pl.lit("xfs"), iops=pl.lit(1.5))
    said = "'host': holds text of 1000000 different values, at most 200"
    with pytest.raises(InputError, match=said):
        of(frame)
    # The same dropped on the page.
    content = frame.write_csv().encode()
    host = inspected(content, "own.csv")["columns"][0]
    assert (host["role"], host["note"]) == ("ignore", "1000000 different texts, at most 200 can be shown")
    with pytest.raises(InputError, match=said):
        explored(content, "own.csv", {"objective": "iops", "parameters": "host"})


def test_a_dropped_table_is_described_before_it_is_explored():
    content = b"fs,depth,latency_ms\next4,1,0.5\nxfs,2,0.25\next4,2,1.5\n"
    found = inspected(content, "own.csv")
    assert [(one["name"], one["role"]) for one in found["columns"]] == [
        ("fs", "parameter"),
        ("depth", "parameter"),
        ("latency_ms", "metric"),
    ]
    whole = explored(content, "own.csv", {"objective": "latency_ms", "parameters": "fs\ndepth"})
    assert (whole.objective, whole.minimize, whole.rows) == ("latency_ms", True, 3)
    with pytest.raises(InputError, match="direction 'up': must be min or max"):
        explored(content, "own.csv", {"objective": "latency_ms", "direction": "up"})
    parquet = dataset_file("storage-v5-mailserver").read_bytes()
    assert explored(parquet, "own.parquet", {"objective": "operations"}).rows > 300


def test_nothing_yet_is_told_from_bad_input():
    with pytest.raises(NothingYet):
        of(pl.DataFrame({"a": ["x"], "iops": [1.0]}))
