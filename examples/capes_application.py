"""A made-up application, to see how a session tunes one: it tells how it does, and takes settings.

    python3 capes_application.py run FILE      works, and prints a reading as JSON five times a second
    python3 capes_application.py knobs FILE    takes settings as lines of JSON, and leaves them in FILE

With the batch near 40 requests and compression on it does most; both change at once. What it does is drawn
from a formula with 3% of noise.
"""

import json
import random
import signal
import sys
import time
from pathlib import Path

START = {"batch_requests": 8, "compression": "off"}


def write(file, values):
    """As a whole: a reader never sees half of it."""
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(values))
    draft.replace(file)


def tell(document):
    """A line of JSON, at once."""
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def run(file):
    """The application."""
    while True:
        values = json.loads(file.read_text()) if file.exists() else START
        most = 1000 - 12 * abs(values["batch_requests"] - 40)
        requests_per_s = most * (1 if values["compression"] == "on" else 0.8) * random.gauss(1, 0.03)
        latency_ms = 1000 * values["batch_requests"] / requests_per_s
        tell({"requests_per_s": requests_per_s, "latency_ms": latency_ms})
        time.sleep(0.2)


def knobs(file):
    """What `ascard agent` speaks to: {"get": true}, {"set": {NAME: VALUE}}, {"restore": true}."""
    values = dict(START)
    write(file, values)
    for line in sys.stdin:
        order = json.loads(line)
        values = dict(START) if "restore" in order else values | order.get("set", {})
        write(file, values)
        tell({"ok": values})
    write(file, START)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # nobody reads any more: the session is over
    {"run": run, "knobs": knobs}[sys.argv[1]](Path(sys.argv[2]))
