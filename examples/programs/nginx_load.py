"""A page of 60 kB of text, asked for by wrk with 8 connections in rounds. Prints the rate of each round.

python3 nginx_load.py prepare FILE
python3 nginx_load.py ADDRESS SECONDS
"""

import random
import re
import subprocess
import sys
import time
from pathlib import Path

if sys.argv[1] == "prepare":
    source = random.Random(1)
    words = ["".join(source.choices("etaoinshrdlu", k=source.randint(2, 9))) for _ in range(2000)]
    Path(sys.argv[2]).write_text(" ".join(source.choices(words, k=10_000)))
    sys.exit()

address, seconds = sys.argv[1], float(sys.argv[2])
end_s = time.monotonic() + seconds
while time.monotonic() < end_s:
    done = subprocess.run(
        ["wrk", "-t", "1", "-c", "8", "-d", "1s", "-H", "Accept-Encoding: gzip", address],
        check=True,
        capture_output=True,
        text=True,
    )
    failed = re.search(r"Non-2xx or 3xx responses: +(\d+)", done.stdout)
    if failed:
        sys.exit(f"{failed[1]} answers were errors")
    rate = re.search(r"Requests/sec: +([0-9.]+)", done.stdout)
    sys.stdout.write(f"{rate[1]} requests/s\n")
    sys.stdout.flush()
