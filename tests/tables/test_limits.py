"""Files that are small and become large: refused before anything is decoded."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from parquet_bomb import bomb

from ascar.analysis.tables import read_bytes, read_frame
from ascar.errors import InputError
from ascar.history.exchange import read_runs
from ascar.pilot.sources import read_column
from ascar.tables import TableLimits, TableSource, json_bytes
from ascar.tables.parquet_size import parquet_bytes

MILLION = pl.DataFrame({"iops": pl.repeat(1.5, 1_000_000, eager=True)})
WITHIN_BYTES = 1 << 30


@pytest.mark.slow
def test_a_table_of_ten_gigabytes_in_a_small_file_is_refused_at_small_memory(tmp_path):
    """Its row group is decoded 1,200 times; three times it is read, so that the file is what it claims."""
    three = bomb(MILLION, 3)
    assert pl.read_parquet(BytesIO(three)).shape == (3_000_000, 1)
    path = tmp_path / "bomb.parquet"
    path.write_bytes(bomb(MILLION, 1200))
    assert path.stat().st_size < 2_000_000
    for arguments in (
        ("explore", "--no-open", "--port", "0", "--objective", "iops", "--table", path),
        ("history", "import", path),
    ):
        command = [sys.executable, "-m", "ascar", *map(str, arguments)]
        environment = {**os.environ, "ASCAR_HISTORY": str(tmp_path / "history.sqlite")}
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
            said = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 2
        assert re.search(r"would take 96\d{8} bytes in memory, at most 4294967296 are allowed", said), said
        assert usage.ru_maxrss * 1024 < WITHIN_BYTES


def test_a_table_that_is_dropped_on_the_page_is_refused_too():
    with pytest.raises(InputError, match=r"file 'x': would take 96\d{8} bytes in memory, at most 1073741824"):
        read_bytes(bomb(MILLION, 1200), "file 'x'")


def test_the_pages_are_believed_and_not_the_footer():
    honest = bomb(MILLION, 1)
    assert (
        parquet_bytes(bomb(MILLION, 1, rows=10), 10)
        == parquet_bytes(honest, 10)
        == pytest.approx(8_000_000, rel=1e-3)
    )
    assert parquet_bytes(bomb(MILLION, 1, rows=10**12), 10) == 8 * 10**12


@pytest.mark.slow
def test_a_long_text_in_many_rows_is_refused():
    frame = pl.DataFrame({"text": pl.repeat("x" * 1_000_000, 2_000, eager=True)})
    buffer = BytesIO()
    frame.write_parquet(buffer)
    assert len(buffer.getvalue()) < 2_000_000
    with pytest.raises(InputError, match="would take 20"):
        read_bytes(buffer.getvalue(), "file 'x'")


def test_sizes_are_at_least_what_is_decoded():
    frame = pl.DataFrame(
        {
            "number": pl.arange(0, 20_000, eager=True),
            "text": [f"value {row}" * 9 for row in range(20_000)],
            "flag": [row % 3 == 0 for row in range(20_000)],
            "list": [[float(row)] * (row % 5) for row in range(20_000)],
            "null": pl.Series([None] * 20_000, dtype=pl.Float64),
        }
    )
    for compression in ("uncompressed", "zstd", "snappy"):
        buffer = BytesIO()
        frame.write_parquet(buffer, compression=compression, row_group_size=3_000)
        assert frame.estimated_size() <= parquet_bytes(buffer.getvalue(), 10) < 10 * frame.estimated_size()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"a,b\n" + b"1,2\n" * 10_000_000), "is compressed; unpack it first"),
        (",".join(f"c{n}" for n in range(1_900)).encode() + b"\n" * 200_000, "would take 6080"),
        (b"\n".join([b"a" + b",b" * 2_500, b"1"]), "has 2501 columns; at most 2000"),
        (b"PAR1" + bytes(100), "is not a whole Parquet file"),
        (b"PAR1" + bytes(4) + b"\xff\xff\xff\x7fPAR1", "is not a whole Parquet file"),
        (b"PAR1" + b"\x1c" * 100 + (100).to_bytes(4, "little") + b"PAR1", "metadata nested deeper than 16"),
        (b"PAR1" + b"\x19\xf5\xff\xff\xff\x0f" + (6).to_bytes(4, "little") + b"PAR1", "a list longer than"),
    ],
)
def test_other_files_that_grow_are_refused(tmp_path, content, said):
    with pytest.raises(InputError, match=said):
        read_bytes(content, "file 'x'")
    path = tmp_path / ("x.parquet" if content.startswith(b"PAR1") else "x.csv")
    path.write_bytes(content)
    limits = TableLimits(decoded_bytes_max=2**30)
    with pytest.raises(InputError, match=said):
        TableSource(path, "file 'x'", limits).read()


def test_compressed_readings_are_refused(tmp_path):
    path = tmp_path / "readings.csv"
    path.write_bytes(gzip.compress(b"value\n" + b"1\n" * 1_000_000))
    with pytest.raises(InputError, match="is compressed; unpack it first"):
        read_column(path)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 1500), st.integers(0, 255))
def test_damaged_files_are_one_line(noise, place, byte):
    whole, said = bytearray(bomb(MILLION.head(50), 2)), []
    for content in (noise, b"PAR1" + noise, _with(whole, place, byte)):
        try:
            read_bytes(bytes(content), "file 'x'")
        except InputError as error:
            said.append(error.message)
    assert not any("\n" in message for message in said)


def _with(whole: bytearray, place: int, byte: int) -> bytearray:
    changed = bytearray(whole)
    changed[place % len(whole)] = byte
    return changed


def test_json_of_many_small_values_is_refused(tmp_path, monkeypatch):
    """A list takes three bytes in the file and a hundred in memory."""
    deep = json.dumps({"runs": [[]] * 100_000})
    assert json_bytes(deep) > 100 * 100_000
    monkeypatch.setattr("ascar.history.exchange._LIMITS", TableLimits(decoded_bytes_max=10_000_000))
    for suffix, content in (
        ("json", deep.encode()),
        ("csv", b"trial.run,trial.record\n" + b'"{}",\n' * 90_000),
    ):
        path = tmp_path / f"deep.{suffix}"
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"would take \d+ bytes in memory, at most 10000000 are allowed"):
            read_runs(path)


def test_a_file_name_is_no_pattern(tmp_path):
    for name, rows in (("a*.parquet", 1), ("ab.parquet", 2)):
        MILLION.head(rows).write_parquet(tmp_path / name)
    assert read_frame(tmp_path / "a*.parquet", "x").height == 1
