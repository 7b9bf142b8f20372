"""Reading traces: block traces, records of loads, system calls; wrong and hostile ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascar.errors import InputError
from ascar.features import (
    TraceOperation,
    parse_blkparse,
    parse_load_record,
    parse_mqsim,
    parse_msr,
    parse_system_calls,
)

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

BLKPARSE = """\
  8,0    1        1     0.000000000   697  Q   R 223490 + 8 [kjournald]
  8,0    1        2     0.000001829   697  G   R 223490 + 8 [kjournald]
  8,0    1        3     0.000004000   697  D   R 223490 + 8 [kjournald]
  8,0    0        4     0.000409000     0  C   R 223490 + 8 [0]
  8,0    1        5     0.001000000   697  Q  WS 1000 + 16 [db]
  8,16   1        6     0.002000000   697  Q  WFS 2000 + 16 [db]
  8,0    1        7     0.003000000   697  Q  DS 0 + 64 [fstrim]
  8,0    1        8     0.004000000   697  Q  FN [db]
  8,0    1        9     0.005000000   697  P   N [db]
CPU0 (sda):
 Reads Queued:           1,        4KiB
"""


def test_blkparse_text() -> None:
    trace = parse_blkparse(BLKPARSE.splitlines())
    assert trace.operation.tolist() == [
        TraceOperation.READ,
        TraceOperation.WRITE,
        TraceOperation.WRITE,
        TraceOperation.DELETE,
    ]
    assert trace.offset_bytes.tolist()[:2] == [223490 * 512, 1000 * 512]
    assert trace.size_bytes.tolist() == [4096, 8192, 8192, 32768]
    assert trace.file[0] == trace.file[1] != trace.file[2]
    assert len(parse_blkparse(BLKPARSE.splitlines(), action="C")) == 1
    with pytest.raises(InputError, match="'X'"):
        parse_blkparse(BLKPARSE.splitlines(), action="X")


def test_a_processor_whose_clock_was_off_is_left_out() -> None:
    off = "  8,0    2        1 1266874889.670077392   697  Q   R 0 + 8 [x]"
    assert len(parse_blkparse([*BLKPARSE.splitlines(), off])) == 4


def test_msr_csv() -> None:
    lines = [
        "128166372003061629,hm,1,Read,383496192,32768,413",
        "128166372016382155,hm,1,Write,2822144000,4096,1235",
    ]
    trace = parse_msr(lines)
    assert trace.operation.tolist() == [TraceOperation.READ, TraceOperation.WRITE]
    assert trace.duration_s == pytest.approx(1.3320526, abs=1e-5)
    assert trace.latency_s.tolist() == pytest.approx([413e-7, 1235e-7])


def test_mqsim() -> None:
    trace = parse_mqsim(["1000 4 200 16 0", "", "3000 4 216 8 1"])
    assert trace.operation.tolist() == [TraceOperation.WRITE, TraceOperation.READ]
    assert trace.offset_bytes.tolist() == [200 * 512, 216 * 512]
    assert np.isnan(trace.latency_s).all()


RECORD = b"""time_s,thread,flowop,type,file,offset,bytes,latency_us
0.000100000,0,read1,readwholefile,mail/7,0,16384,12.500
0.000050000,1,del1,deletefile,mail/8,0,0,5.000
0.000200000,0,sync1,fsync,mail/7,0,0,900.000
"""


def test_a_record_of_a_load() -> None:
    trace = parse_load_record(RECORD)
    assert trace.operation.tolist() == [TraceOperation.DELETE, TraceOperation.READ, TraceOperation.SYNC]
    assert trace.thread.tolist() == [1, 0, 0]
    assert trace.file[1] == trace.file[2] != trace.file[0]
    assert trace.latency_s[2] == pytest.approx(900e-6)


STRACE = """\
1234  1700000000.000100 openat(AT_FDCWD</tmp>, "/data/a", O_RDONLY) = 3</data/a> <0.000020>
1234  1700000000.000200 read(3</data/a>, ""..., 4096) = 4096 <0.000010>
1235  1700000000.000250 pwrite64(4</data/b>, ""..., 8192, 65536) = 8192 <0.000100>
1234  1700000000.000300 read(3</data/a>, ""..., 4096) = 1000 <0.000010>
1234  1700000000.000400 read(3</data/a>, ""..., 4096) = 0 <0.000001>
1234  1700000000.000450 lseek(3</data/a>, 512, SEEK_SET) = 512 <0.000001>
1234  1700000000.000500 read(3</data/a>,  <unfinished ...>
1235  1700000000.000550 fsync(4</data/b>) = 0 <0.010000>
1234  1700000000.000600 <... read resumed>""..., 488) = 488 <0.000110>
1234  1700000000.000700 close(3</data/a>) = 0 <0.000001>
1234  1700000000.000800 openat(AT_FDCWD</tmp>, "/d/n, = 3", O_CREAT|O_EXCL, 0600) = 3</d/n, = 3> <0.00002>
1234  1700000000.000900 unlink("/data/old") = 0 <0.000030>
1234  1700000000.001000 newfstatat(AT_FDCWD</tmp>, "/data/a", {st_mode=S_IFREG|0644, ...}, 0) = 0 <0.000002>
1234  1700000000.001100 read(5</dev/urandom>, ""..., 16) = 16 <0.000001>
1234  1700000000.001200 write(1<pipe:[99]>, ""..., 16) = 16 <0.000001>
1234  1700000000.001300 unlink("/data/missing") = -1 ENOENT (No such file or directory) <0.000002>
1234  1700000000.001400 --- SIGCHLD {si_signo=SIGCHLD} ---
1235  1700000000.001500 writev(4</data/b>, [{iov_base=""..., iov_len=5}, {iov_len=6}], 2) = 11 <0.00001>
1235  1700000000.001600 preadv2(4</data/b>, [{iov_base=""..., iov_len=5}], 1, 4096, RWF_NOWAIT) = 5 <0.00001>
"""


def test_system_calls() -> None:
    trace = parse_system_calls(STRACE.splitlines())
    o = TraceOperation
    expected = [o.OPEN, o.READ, o.WRITE, o.READ, o.READ, o.SYNC, o.CLOSE, o.CREATE, o.DELETE, o.STAT]
    assert trace.operation.tolist() == [*expected, o.WRITE, o.READ]
    reads = trace.only(o.READ)
    assert reads.offset_bytes.tolist() == [0, 4096, 512, 4096]
    assert reads.size_bytes.tolist() == [4096, 1000, 488, 5]
    assert trace.only(o.WRITE).offset_bytes.tolist() == [65536, 0]
    assert reads.latency_s[2] == pytest.approx(110e-6)
    assert trace.seconds[4] == pytest.approx(1700000000.0005)  # when the call began, not when it went on


PARSERS = [parse_blkparse, parse_mqsim, parse_msr, parse_system_calls]


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("lines", [[], ["nonsense"], [""] * 3])
def test_what_is_no_trace_is_refused(parse: object, lines: list[str]) -> None:
    with pytest.raises(InputError):
        parse(lines)  # type: ignore[operator]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"time_s,thread\n1,2\n",
        RECORD.splitlines()[0] + b"\n",
        RECORD.replace(b"fsync", b"frobnicate"),
        RECORD.replace(b"16384", b"many"),
        RECORD.replace(b"16384", b""),
        b"\xff\xfe" * 50,
        RECORD.replace(b"time_s", b"when"),
    ],
)
def test_what_is_no_record_is_refused(content: bytes) -> None:
    with pytest.raises(InputError):
        parse_load_record(content)


@pytest.mark.parametrize("parse", PARSERS)
@given(data=st.data())
def test_damaged_traces_are_read_or_refused(parse: object, data: st.DataObject) -> None:
    texts = {parse_blkparse: BLKPARSE, parse_system_calls: STRACE, parse_msr: "1,a,2,Read,3,4,5\n" * 3}
    text = texts.get(parse, "1000 4 200 16 0\n" * 3)  # type: ignore[call-overload]
    start = data.draw(st.integers(0, len(text)))
    junk = data.draw(st.text(st.characters(codec="utf-8"), max_size=12) | st.just("9" * 400))
    damaged = text[:start] + junk + text[start + data.draw(st.integers(0, 30)) :]
    try:
        trace = parse(damaged.splitlines())  # type: ignore[operator]
    except InputError:
        return
    assert (trace.offset_bytes >= 0).all()
    assert (trace.size_bytes >= 0).all()


@pytest.mark.skipif(not DATA.is_dir(), reason="the public traces are not here")
def test_public_traces_are_read() -> None:
    with (DATA / "mqsim_tpcc-small.trace").open() as file:
        mqsim = parse_mqsim(file)
    assert len(mqsim) == 6999
    assert mqsim.duration_s == pytest.approx(0.136489)
    with (DATA / "leveldb_blkparse.txt").open() as file:
        leveldb = parse_blkparse(file)
    assert set(leveldb.operation.tolist()) == {TraceOperation.WRITE}
    assert leveldb.duration_s < 60
