"""Floors and ceilings of tenants, where other clients heed nothing (Li, section 6.3.3)."""

from __future__ import annotations

import pytest

from ascar.simulation import Cluster, parse_scenario
from ascar.simulation.groups import client_rates

TENANTS = """
name = "tenants"
warmup_s = 5
duration_s = 30
[[clients]]
count = 2
workload = "write"
[clients.control]
controller = "rules"
faithful = false
rules = "1,2\\n0,2147483647,0,2147483647,0,2147483647,100,1000,0\\n"
most_mb_per_s = 4
[[clients]]
count = 2
workload = "write"
[clients.control]
controller = "rules"
faithful = false
rules = "1,2\\n0,2147483647,0,2147483647,0,2147483647,0,100,5000000\\n"
least_mb_per_s = 6
[[clients]]
count = 1
workload = "write"
rogue = true
rogue_window = {rogue_window}
[[workloads]]
name = "write"
filesets = [{{ name = "file", size_mib = 2560 }}]
[[workloads.threads]]
instances = 64
flowops = [{{ op = "write", iosize_kib = 1024, random = true, directio = true }}]
"""
STREAMS = 4


@pytest.mark.parametrize("rogue_window", [1, 8, 32])
def test_floors_and_ceilings_hold_within_five_percent_beside_a_rogue(rogue_window):
    outcome = Cluster(parse_scenario(TENANTS.format(rogue_window=rogue_window))).run()
    capped, floored, rogue = (client_rates(outcome)[part] for part in (slice(0, 2), slice(2, 4), slice(4, 5)))
    for rate in capped:  # its rules open the window on and on
        assert rate == pytest.approx(STREAMS * 4, rel=0.05)
    for rate in floored:  # its rules allow a request in five seconds
        assert rate >= 0.95 * STREAMS * 6
    assert rogue[0] > 0
