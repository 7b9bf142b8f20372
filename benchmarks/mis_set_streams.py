"""A stream, as `benchmarks.mis_set` runs it: a file is read from its begin to its end, by small reads.

    python mis_set_streams.py DIRECTORY fill       write the file
    python mis_set_streams.py DIRECTORY SECONDS    read it again and again, and tell the reads a second

What is in memory of it is dropped before each turn, so that the read-ahead decides how fast it goes.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path

FILE_BYTES, READ_BYTES, READING_S = 8 << 20, 4 << 10, 0.25


def main() -> None:
    """Write the file, or read it for so many seconds."""
    directory, what = sys.argv[1:]
    path = Path(directory) / "stream"
    if what == "fill":
        with path.open("wb") as file:
            file.write(random.Random(1).randbytes(FILE_BYTES))
            os.fsync(file.fileno())
        return
    now_s = last_s = time.monotonic()
    end_s, done = now_s + float(what), 0
    while now_s < end_s:
        done += reads_of(path)
        now_s = time.monotonic()
        if now_s >= last_s + READING_S:
            print(json.dumps({"throughput_ops_per_s": done / (now_s - last_s)}), flush=True)
            last_s, done = now_s, 0


def reads_of(path: Path) -> int:
    """Read the file from the disk; how many reads that took."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
        count = 0
        while os.read(number, READ_BYTES):
            count += 1
        return count
    finally:
        os.close(number)


if __name__ == "__main__":
    main()
