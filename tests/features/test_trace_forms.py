"""Which form a trace has is told by its content; distances between workloads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascar.errors import InputError
from ascar.features import (
    TRACE_FORMS,
    Trace,
    TraceOperation,
    features_of,
    parse_kernel_trace,
    parse_system_calls,
    parse_trace,
    relative_differences,
    relative_distance,
)

PERF = """\
# ========
fio 1234 [001] 52.000100: block:block_rq_issue: 8,0 R 4096 () 2048 + 8 [fio]
fio 1234 [001] 52.000200: block:block_rq_issue: 8,0 WS 8192 () 4096 + 16 none,0,0 [fio]
fio 1234 [001] 52.000300: block:block_rq_complete: 8,0 R () 2048 + 8 [0]
fio 1234 [001] 52.000400: block:block_rq_issue: 8,0 FF 0 () 18446744073709551615 + 0 [fio]
"""
TRACE_PIPE = """\
# tracer: nop
     kworker/0:1-17  [000] d..1.   99.123456: block_bio_queue: 259,1 RA 512 + 64 [cat]
     kworker/0:1-17  [000] d..1.   99.123460: block_rq_issue: 259,1 RA 32768 () 512 + 64 [kworker/0:1]
"""
BPFTRACE = "Attaching 1 probe...\n7.000000042: block_rq_issue: 8,16 W 4096 () 77 + 8 [postgres]\n"

EXAMPLES = {
    "blkparse": "  8,0    1        1     0.000000000   697  Q   R 223490 + 8 [kjournald]\n",
    "kernel": PERF,
    "msr": "128166372003061629,hm,1,Read,383496192,32768,413\n",
    "mqsim": "1000 4 200 16 0\n",
    "strace": '17 1.000001 pread64(3</data/f>, ""..., 4096, 8192) = 4096 <0.000005>\n',
    "load": "time_s,thread,flowop,type,file,offset,bytes,latency_us\n0.1,0,r,read,f/1,0,4096,12.5\n",
}


def test_every_form_has_an_example() -> None:
    assert set(EXAMPLES) == set(TRACE_FORMS)


@pytest.mark.parametrize("form", TRACE_FORMS)
def test_the_form_is_told_by_the_content(form: str) -> None:
    found, trace = parse_trace(EXAMPLES[form].encode())
    assert found == form
    assert len(trace) >= 1
    named, same = parse_trace(EXAMPLES[form].encode(), form)
    assert (named, len(same)) == (form, len(trace))


def test_block_events_of_the_kernel() -> None:
    trace = parse_kernel_trace(PERF.splitlines())
    assert trace.operation.tolist() == [TraceOperation.READ, TraceOperation.WRITE]
    assert trace.offset_bytes.tolist() == [2048 * 512, 4096 * 512]
    assert trace.size_bytes.tolist() == [4096, 8192]
    queued = parse_kernel_trace(TRACE_PIPE.splitlines())
    assert (len(queued), queued.seconds[0]) == (1, 99.123456)
    assert parse_kernel_trace(BPFTRACE.splitlines()).offset_bytes.tolist() == [77 * 512]
    with pytest.raises(InputError, match="block_rq_issue"):
        parse_kernel_trace(["sched:sched_switch: x"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "known: blkparse"),
        (b"hello\nworld\n", "'hello'"),
        (b"\x07ea\x00" * 100, "blkparse -i FILE"),
        (b"1000 4 200 16 7\n", "not a trace"),
    ],
)
def test_what_is_no_trace_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_trace(content)


def test_a_form_that_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match="'pcap'"):
        parse_trace(b"x", "pcap")


@given(st.binary(max_size=300), st.sampled_from([None, *TRACE_FORMS]))
def test_noise_is_a_trace_or_refused(content: bytes, form: str | None) -> None:
    try:
        _, trace = parse_trace(content, form)
    except InputError:
        return
    assert len(trace) > 0


STRACE = """\
17 1.000 openat(AT_FDCWD</data>, "f", O_RDWR|O_CREAT) = 3</data/f> <0.000005>
17 1.001 read(3</data/f>, ""..., 4096) = 4096 <0.000005>
17 1.002 openat(AT_FDCWD</data>, "/other/g", O_RDONLY) = 4</other/g> <0.000005>
17 1.003 read(4</other/g>, ""..., 4096) = 4096 <0.000005>
17 1.004 unlink("f") = 0 <0.000005>
17 1.005 newfstatat(5</data>, "f", 0x0, 0) = 0 <0.000005>
17 1.006 unlink("/database/f") = 0 <0.000005>
"""


def test_only_files_below_a_directory_count() -> None:
    everything = parse_system_calls(STRACE.splitlines())
    below = parse_system_calls(STRACE.splitlines(), "/data")
    assert (len(everything), len(below)) == (7, 4)
    assert below.operation.tolist() == [
        TraceOperation.OPEN,
        TraceOperation.READ,
        TraceOperation.DELETE,
        TraceOperation.STAT,
    ]
    assert len(np.unique(below.file)) == 1, "relative names are the same file as absolute ones"
    with pytest.raises(InputError, match="below /elsewhere"):
        parse_system_calls(STRACE.splitlines(), "/elsewhere/")


def trace_of(size: int, step_s: float, kinds: tuple[TraceOperation, ...] = (TraceOperation.READ,)) -> Trace:
    n = 60
    return Trace.of(
        {
            "seconds": np.arange(n) * step_s,
            "operation": np.resize(np.array(kinds), n),
            "offset_bytes": np.arange(n) * size,
            "size_bytes": np.full(n, size),
        }
    )


def test_a_distance_is_symmetric_and_grows_from_zero_to_one() -> None:
    base = features_of(trace_of(4096, 0.01))
    larger = features_of(trace_of(8192, 0.01))
    slower = features_of(trace_of(8192, 0.1))
    writes = features_of(trace_of(4096, 0.01, (TraceOperation.WRITE,)))
    assert relative_distance(base, base) == 0
    assert relative_distance(base, larger) == relative_distance(larger, base)
    assert 0 < relative_distance(base, larger) < relative_distance(base, slower) < 1
    assert 0.9 < relative_distance(base, writes) <= 1


def test_ratios_to_what_hardly_occurs_are_not_compared() -> None:
    original = features_of(trace_of(4096, 0.01, (TraceOperation.WRITE,) * 59 + (TraceOperation.CREATE,)))
    other = features_of(trace_of(4096, 0.01, (TraceOperation.WRITE,)))
    assert relative_differences(original, other)["data_to_metadata_ratio"] == np.inf
    assert "data_to_metadata_ratio" not in relative_differences(original, other, share_min=0.02)
    mixed = features_of(trace_of(4096, 0.01, (TraceOperation.WRITE, TraceOperation.READ)))
    assert relative_differences(mixed, mixed, share_min=0.02)["read_to_write_ratio"] == 0
