"""Rounds of redis-benchmark on one hash: a thousand fields written and read. Prints the rate of each round.

python3 redis_load.py PORT SECONDS
"""

import random
import subprocess
import sys
import time

port, seconds = sys.argv[1], float(sys.argv[2])
FIELDS = 1000
ROUND = 4000  # requests
commands = (("hset", "users:1", "__rand_int__", "x" * 20), ("hget", "users:1", "__rand_int__"))


def benchmark(requests, *command):
    """A round of a command, in pipelines of 16 requests."""
    words = ["redis-benchmark", "-p", port, "-c", "20", "-P", "16", "-n", str(requests), "-r", str(FIELDS)]
    subprocess.run([*words, "-q", *command], check=True, stdout=subprocess.DEVNULL)


benchmark(8 * FIELDS, *commands[0])  # nearly every field is there
end_s = time.monotonic() + seconds
while time.monotonic() < end_s:
    begun_s = time.monotonic()
    for command in random.sample(commands, 2):
        benchmark(ROUND, *command)
    sys.stdout.write(f"{2 * ROUND / (time.monotonic() - begun_s):.1f} requests/s\n")
    sys.stdout.flush()
