"""File servers, whose files grow while they live, do as much at the start of a run as 20 minutes later."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from ascar.simulation import preset, run_many

WINDOW_S = 120


@pytest.mark.parametrize(("name", "seeds"), [("fileserver", 2), ("capes-fileserver", 4)])
def test_a_file_server_is_stationary(name, seeds):
    scenario = preset(name)
    scenarios = [
        msgspec.structs.replace(scenario, seed=seed, duration_s=1_200, tick_s=10) for seed in range(seeds)
    ]
    ticks = np.array([one.total_mb_per_s for one in run_many(scenarios)])
    first, last = ticks[:, : WINDOW_S // 10].mean(), ticks[:, -WINDOW_S // 10 :].mean()
    assert first == pytest.approx(last, rel=0.1)
