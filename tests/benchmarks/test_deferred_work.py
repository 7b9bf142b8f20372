"""A planted trap on a real file system: dirty pages that may wait for ten minutes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.deferred_work import TRAPS, one_pair

THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device")

pytestmark = [
    pytest.mark.root,
    pytest.mark.machine,
    pytest.mark.slow,
    pytest.mark.paced,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a loop device and vm.dirty_expire_centisecs"),
    pytest.mark.skipif(not THROTTLE.exists(), reason="needs the control group blkio, version 1"),
]


def test_trials_that_do_not_charge_report_a_gain_and_ours_do_not():
    pair = one_pair(TRAPS["write-back"], 0)
    naive, charged = (pair["candidate"][kind] / pair["reference"][kind] for kind in ("naive", "charged"))
    assert naive > 1.25
    assert 0.85 < charged < 1.15
