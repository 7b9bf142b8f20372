"""Clients of a web server: each asks again as soon as it is answered. Prints the rate of answers.

python3 load.py ADDRESS CLIENTS SECONDS
"""

import http.client
import sys
import threading
import time

address, clients, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
counts, end_s = [0] * clients, time.monotonic() + seconds


def ask(client):
    """One client."""
    while time.monotonic() < end_s:
        connection = http.client.HTTPConnection(address, timeout=5)
        try:
            for _ in range(50):
                connection.request("GET", "/")
                connection.getresponse().read()
                counts[client] += 1
                if time.monotonic() >= end_s:
                    break
        except OSError:
            time.sleep(0.01)
        finally:
            connection.close()


for client in range(clients):
    threading.Thread(target=ask, args=(client,), daemon=True).start()
before, before_s = 0, time.monotonic()
while time.monotonic() < end_s:
    time.sleep(0.2)
    total, now_s = sum(counts), time.monotonic()
    sys.stdout.write(f"{(total - before) / (now_s - before_s):.1f} requests/s\n")
    sys.stdout.flush()
    before, before_s = total, now_s
