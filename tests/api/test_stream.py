"""`ascar.Stream`, and the example that limits its own reads."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import ascar

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "limit_reads.py"
RULES = """\
2,1000000
0,2147483647,0,2147483647,100,200,100,100,50
0,2147483647,0,2147483647,200,2147483647,90,-10,90
"""
NOW_US_MAX = 2**63 - 1


def test_no_more_than_the_window_is_in_flight() -> None:
    stream = ascar.Stream(2.5)
    assert stream.ask(10, 4096) == 10
    first = stream.sent(10, 4096)
    assert (first.sent_us, first.size_bytes) == (10, 4096)
    assert stream.ask(11, 1) == 11
    stream.sent(11, 1, offset_bytes=4096, writes=True)
    assert stream.ask(12, 1) is None
    state = stream.state
    assert (state.window, state.requests_in_flight, state.bytes_in_flight) == (2.5, 2, 4097)
    stream.replied(first, 40)
    assert stream.ask(40, 1) == 40
    stream.give_back()
    assert (stream.state.requests_in_flight, stream.state.replies, stream.state.pt_ratio) == (1, 1, 1.0)


def test_requests_leave_a_pace_apart() -> None:
    stream = ascar.Stream(8, pace_us=100)
    assert stream.ask(1_000, 1) == 1_000
    stream.sent(1_000, 1)
    assert stream.ask(1_001, 1) == stream.ask(1_099, 1) == 1_100
    with pytest.raises(ascar.InputError, match="may leave at 1100 us, and now_us is 1099"):
        stream.sent(1_099, 1)
    stream.set_fixed(8)
    assert stream.ask(1_099, 1) == 1_099


def test_rules_are_followed_and_counted() -> None:
    stream = ascar.Stream()
    assert stream.rules is None
    stream.set_rules(RULES, window=2)
    for at_us in range(1_000, 21_000, 1_000):
        stream.ask(at_us, 1)
        stream.replied(stream.sent(at_us, 1), at_us + 10)
    assert stream.rules is not None
    assert stream.rules.splitlines()[1].split(",")[9] == "19"
    assert (stream.state.window, stream.state.pace_us) == (21.0, 50)
    stream.set_rules(stream.rules, extended=True, seed=3)
    assert stream.state.window == 21.0


def test_what_does_not_fit_is_refused_and_changes_nothing() -> None:
    stream, other = ascar.Stream(), ascar.Stream()
    with pytest.raises(ascar.InputError, match="no place; ask first"):
        stream.sent(5, 1)
    stream.ask(10, 1)
    request = stream.sent(10, 1)
    for now_us, said in [(9, "allowed: 10 or more"), (NOW_US_MAX + 1, "allowed: at most")]:
        with pytest.raises(ascar.InputError, match=said):
            stream.ask(now_us, 1)
        with pytest.raises(ascar.InputError, match=said):
            stream.replied(request, now_us)
    with pytest.raises(ascar.InputError, match="another stream's"):
        other.replied(request, 20)
    stream.timed_out(request, 20)
    for end in (stream.replied, stream.timed_out):
        with pytest.raises(ascar.InputError, match="not in flight; end each request that was sent once"):
            end(request, 30)
    with pytest.raises(ascar.InputError, match="not in flight"):
        stream.cancelled(request)
    for number in (-1, 2**64, 2**32):
        with pytest.raises((OverflowError, ascar.InputError)):
            stream.ask(number if number > 2**32 else 20, number)
    for window in (0.5, 257, float("nan")):
        with pytest.raises(ascar.InputError, match="window is .*; allowed: 1 to 256 requests"):
            ascar.Stream(window)
        with pytest.raises(ascar.InputError, match="window is"):
            stream.set_rules(RULES, window=window)
    with pytest.raises(ascar.InputError, match="rules: line 2, ack_hi: found 'x'|rules: line 2, ack_hi"):
        stream.set_rules("1,2\n0,x")
    with pytest.raises(ascar.InputError, match='controller is "tahoe"; allowed: fixed, aimd'):
        stream.set_rival("tahoe")  # type: ignore[arg-type]
    with pytest.raises(ascar.InputError, match="vegas_beta is 1; allowed: vegas_alpha to 10000"):
        stream.set_rival("vegas", vegas_beta=1.0)
    with pytest.raises(
        ascar.InputError, match="gamma is no setting of a controller; allowed: latency_us_max"
    ):
        stream.set_rival("vegas", gamma=1.0)
    with pytest.raises(TypeError):
        stream.set_rival("aimd", latency_us_max=0.5)
    assert (stream.state.window, stream.state.requests_in_flight, stream.state.timeouts) == (8.0, 0, 1)


def test_published_controllers_take_settings() -> None:
    stream = ascar.Stream()
    stream.set_rival("aimd", latency_us_max=100, aimd_decrease=0.25)
    stream.ask(1_000, 1)
    stream.replied(stream.sent(1_000, 1), 1_500)
    assert stream.state.window == 2.0


def test_threads_may_share_a_stream() -> None:
    stream, errors = ascar.Stream(4), []

    def work() -> None:
        for _ in range(2_000):
            try:
                if stream.ask(1, 1) is not None:
                    stream.replied(stream.sent(1, 1), 1)
            except ascar.InputError:
                errors.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stream.give_back()
    assert stream.state.requests_in_flight == 0


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "data"
    path.write_bytes(bytes(range(256)) * 4096)
    return path


def example(*words: str | Path) -> tuple[int, dict[str, str], str]:
    """Exit status, what it says by name, and errors."""
    command = [sys.executable, "-P", "-W", "error", EXAMPLE, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    return done.returncode, told, done.stderr


def test_the_example_keeps_window_and_pace(data: Path) -> None:
    status, told, errors = example(data, "--window", "3", "--pace-us", "1000", "--count", "200")
    assert (status, errors) == (0, "")
    assert (told["requests"], told["window"], told["pace_us"]) == ("200", "3", "1000")
    assert int(told["in_flight_most"]) <= 3
    assert float(told["seconds"]) >= 199 * 0.001


def test_the_example_follows_rules_and_published_controllers(data: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text(RULES)
    status, told, errors = example(data, "--rules", tmp_path / "rules.txt", "--count", "500")
    assert (status, errors, told["requests"]) == (0, "", "500")
    assert told["pace_us"] in {"50", "90"}
    status, told, errors = example(data, "--rival", "gradient2", "--count", "500")
    assert (status, errors, told["requests"]) == (0, "", "500")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["/nowhere"], 1, "/nowhere"),
        (["DATA", "--window", "0"], 2, "window is 0; allowed: 1 to 256 requests"),
        (["DATA", "--pace-us", "-1"], 2, "--pace-us is -1; allowed: 0 to 1000000000"),
        (["DATA", "--rival", "tahoe"], 2, "allowed: fixed, aimd"),
        (["DATA", "--count", "0"], 2, "--count is 0; allowed: 1 to"),
        (["DATA", "--rules", "/dev/null"], 2, "rules: line 1, n_rules"),
    ],
)
def test_the_example_says_what_is_wrong(data: Path, words: list[str], status: int, said: str) -> None:
    found, _, errors = example(*(data if word == "DATA" else word for word in words))
    assert (found, said in errors) == (status, True), errors
