"""A cache of 50,000 items of 60 to 6,000 bytes, 70 MB in all, read by popularity. Prints the share of hits.

python3 memcached_load.py PORT SECONDS

A read that misses is followed by a write, as an application does that fetches the item from its database.
"""

import itertools
import random
import socket
import sys
import time

port, seconds = int(sys.argv[1]), float(sys.argv[2])
ITEMS, BATCH = 50_000, 100
source = random.Random(1)
sizes = [min(6000, max(60, int(source.lognormvariate(7.0, 0.8)))) for _ in range(ITEMS)]
weights = list(itertools.accumulate(1 / (rank + 50) ** 0.8 for rank in range(ITEMS)))
keys = list(range(ITEMS))
source.shuffle(keys)
body = b"x" * 6000
connection = socket.create_connection(("127.0.0.1", port), timeout=60)
answers = connection.makefile("rb", buffering=1 << 16)


def write(wanted):
    """Write items, without waiting for each."""
    lines = [b"set k%d 0 0 %d noreply\r\n%s\r\n" % (key, sizes[key], body[: sizes[key]]) for key in wanted]
    connection.sendall(b"".join(lines))


def read(wanted):
    """The keys that are found."""
    connection.sendall(b"get %s\r\n" % b" ".join(b"k%d" % key for key in wanted))
    found = set()
    while (line := answers.readline()).startswith(b"VALUE"):
        found.add(int(line.split()[1][1:]))
        answers.read(int(line.split()[3]) + 2)
    return found


draw = random.Random(time.time_ns())
for first in range(0, ITEMS, BATCH):
    write(keys[first : first + BATCH])
for _ in range(200):  # the popular ones come to stay
    batch = set(draw.choices(keys, cum_weights=weights, k=BATCH))
    write(batch - read(batch))
end_s = time.monotonic() + seconds
while time.monotonic() < end_s:
    asked = hits = 0
    until_s = time.monotonic() + 0.25
    while time.monotonic() < until_s:
        batch = set(draw.choices(keys, cum_weights=weights, k=BATCH))
        found = read(batch)
        write(batch - found)
        asked, hits = asked + len(batch), hits + len(found)
    sys.stdout.write(f"{100 * hits / asked:.3f} percent\n")
    sys.stdout.flush()
