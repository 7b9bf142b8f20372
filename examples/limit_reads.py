"""Reads random blocks of a file with many threads, as few at a time as a stream says.

    python examples/limit_reads.py FILE                         a window of 8
    python examples/limit_reads.py FILE --window 2 --pace-us 500
    python examples/limit_reads.py FILE --rules rules.txt       congestion rules
    python examples/limit_reads.py FILE --rival vegas           a published controller

`LimitedFile` is what another client would copy: each of its reads waits until the stream lets it leave, and
tells the stream when its data have come. The same goes for requests on a socket. The last lines say what was
done.

Exit status: 0 done, 1 a read failed, 2 bad arguments.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self

import ascar

if TYPE_CHECKING:
    from types import TracebackType


def now_us() -> int:
    """The clock of all streams."""
    return time.monotonic_ns() // 1000


class LimitedFile:
    """A file whose reads a stream limits; threads share it.

    Args:
        path: the file.
        stream: the stream; nobody else asks it.
    """

    def __init__(self, path: Path, stream: ascar.Stream) -> None:
        self.stream = stream
        self.in_flight_most = 0
        self._file = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self._file).st_size
        # Held for a call or two of the stream, so that times do not go back, never for a read.
        self._moved = threading.Condition()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def read(self, offset: int, count: int) -> bytes:
        """Read so many bytes at an offset, once the stream lets the request leave."""
        request = self._leave(offset, count)
        try:
            return os.pread(self._file, count, offset)
        finally:
            with self._moved:
                self.stream.replied(request, now_us())
                self._moved.notify_all()

    def _leave(self, offset: int, count: int) -> ascar.StreamRequest:
        """Wait for window and pace."""
        with self._moved:
            # None: until a reply has come. A time: until then, or something has come that changes it.
            while (at_us := self.stream.ask(now_us(), count)) is None or at_us > now_us():
                self._moved.wait(None if at_us is None else max(0, at_us - now_us()) / 1e6)
            request = self.stream.sent(now_us(), count, offset_bytes=offset)
            self.in_flight_most = max(self.in_flight_most, self.stream.state.requests_in_flight)
            return request


def controlled(words: argparse.Namespace) -> ascar.Stream:
    """The stream that the command line asks for."""
    stream = ascar.Stream(words.window, words.pace_us)
    if words.rules is not None:
        stream.set_rules(words.rules.read_text("utf-8"))
    elif words.rival is not None:
        stream.set_rival(words.rival)
    return stream


def read_all(file: LimitedFile, words: argparse.Namespace) -> float:
    """Read so many blocks; the seconds that it took."""
    places = random.Random(words.seed)
    blocks = max(1, file.size // words.block)
    offsets = [places.randrange(blocks) * words.block for _ in range(words.count)]
    begun = time.monotonic()
    with ThreadPoolExecutor(words.threads) as threads:
        for _ in threads.map(lambda offset: file.read(offset, words.block), offsets):
            pass
    return time.monotonic() - begun


def main() -> int:
    """Read, and say how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--window", type=float, default=8.0, help="requests in flight at most")
    parser.add_argument("--pace-us", type=int, default=0, help="least time between two requests")
    controllers = parser.add_mutually_exclusive_group()
    controllers.add_argument("--rules", type=Path, help="a rule file")
    controllers.add_argument("--rival", help="a published controller by its name")
    parser.add_argument("--count", type=int, default=1000, help="blocks to read")
    parser.add_argument("--block", type=int, default=4096, help="bytes of a block")
    parser.add_argument("--threads", type=int, default=16, help="threads that read")
    parser.add_argument("--seed", type=int, default=0, help="which blocks")
    words = parser.parse_args()
    for name, least, most in (
        ("count", 1, 10**9),
        ("block", 1, 2**30),
        ("threads", 1, 1000),
        ("pace_us", 0, 10**9),
    ):
        if not least <= getattr(words, name) <= most:
            parser.error(f"--{name.replace('_', '-')} is {getattr(words, name)}; allowed: {least} to {most}")
    try:
        stream = controlled(words)
        with LimitedFile(words.file, stream) as file:
            seconds = read_all(file, words)
    except (ascar.InputError, UnicodeDecodeError) as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    state = stream.state
    print(f"requests {state.replies}")
    print(f"seconds {seconds:.6f}")
    print(f"in_flight_most {file.in_flight_most}")
    print(f"window {state.window:g}")
    print(f"pace_us {state.pace_us}")
    print(f"pt_ratio {state.pt_ratio:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
