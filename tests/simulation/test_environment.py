"""The Gymnasium environment."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="the extra 'gym' is not installed")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from ascar.errors import InputError  # noqa: E402
from ascar.simulation import INDICATORS, preset, with_settings  # noqa: E402
from ascar.simulation.cluster_parameters import Setting  # noqa: E402
from ascar.simulation.environment import ClusterEnvironment, ClusterEnvironments  # noqa: E402
from ascar.simulation.scales import SCALES, scaled  # noqa: E402


@pytest.fixture
def scenario():
    return with_settings(preset("random-write"), ["duration_s=5", "warmup_s=1"])


def test_gymnasium_finds_no_fault(scenario):
    environment = gymnasium.make("ascar/Cluster-v0", scenario=scenario)
    check_env(environment.unwrapped)


def test_an_episode_is_the_scenarios_duration(scenario):
    environment = ClusterEnvironment(scenario, ticks_per_observation=3)
    observation, facts = environment.reset(seed=7)
    assert observation.shape == (3, 20, len(INDICATORS))
    assert not observation[:2].any()
    assert facts["window"] == 8
    ended = []
    for action in (1, 3, 0, 0, 0):
        observation, reward, terminated, truncated, facts = environment.step(np.int64(action))
        assert observation in environment.observation_space
        assert reward == pytest.approx(facts["throughput_mb_per_s"] / 100)
        assert not terminated
        ended.append(truncated)
    assert ended == [False] * 4 + [True]
    assert (facts["window"], facts["tau_us"]) == (12, 1_500)
    assert reward > 1


def test_the_same_seed_is_the_same_episode(scenario):
    def rewards(seed):
        environment = ClusterEnvironment(scenario)
        environment.reset(seed=seed)
        return [environment.step(np.int64(2))[1] for _ in range(4)]

    assert rewards(3) == rewards(3)
    assert rewards(3) != rewards(4)


def test_many_go_on_together_as_each_by_itself(scenario):
    """As gymnasium's own vector of the same environments, and whatever the threads."""
    ours = gymnasium.make_vec("ascar/Cluster-v0", num_envs=3, scenario=scenario)
    assert isinstance(ours.unwrapped, ClusterEnvironments)
    theirs = gymnasium.vector.SyncVectorEnv([lambda: ClusterEnvironment(scenario)] * 3)
    alone = ClusterEnvironments(3, scenario, threads=1)
    begun = [one.reset(seed=5) for one in (ours, theirs, alone)]
    assert ours.observation_space == theirs.observation_space
    actions = np.random.default_rng(1).integers(5, size=(8, 3))
    every = [begun, *([one.step(row) for one in (ours, theirs, alone)] for row in actions)]
    assert any(step[0][3].any() for step in every[1:]), "an episode ends in between, and the next begins"
    for first, *others in every:
        for other in others:
            *values, facts = first
            for value, same in zip(values, other, strict=False):
                np.testing.assert_array_equal(value, same)
            for name, value in facts.items():
                np.testing.assert_array_equal(value, other[-1][name])
    for one in (ours, theirs, alone):
        one.close()


def test_many_that_make_no_sense_are_refused(scenario):
    with pytest.raises(InputError, match="num_envs = 0: must be 1 or more"):
        ClusterEnvironments(0, scenario)
    with pytest.raises(InputError, match="threads = 0"):
        ClusterEnvironments(2, scenario, threads=0)
    made = ClusterEnvironments(2, scenario)
    with pytest.raises(InputError, match=r"actions: have shape \(3,\); must be \(2,\)"):
        made.step(np.zeros(3, np.int64))
    with pytest.raises(InputError, match="no episode has begun"):
        made.step(np.zeros(2, np.int64))
    with pytest.raises(InputError, match="seed: has 3 seeds; must be one, or 2"):
        made.reset(seed=[1, 2, 3])
    made.close()


def test_steps_out_of_range_change_nothing():
    assert Setting(3, 0).after(2) == Setting(3, 0)
    assert Setting(254, 0).after(1) == Setting(254, 0)
    assert Setting(8, 1_000).after(4) == Setting(8, 1_000)
    assert Setting(8, 0).after(1) == Setting(12, 0)
    assert Setting(8, 1_500).after(4) == Setting(8, 0)


def test_what_makes_no_sense_is_refused(scenario):
    with pytest.raises(InputError, match="must be 'fixed'"):
        ClusterEnvironment(with_settings(scenario, ["control.controller=copa"]))
    with pytest.raises(InputError, match="ticks_per_observation"):
        ClusterEnvironment(scenario, 0)
    with pytest.raises(InputError, match="call reset first"):
        ClusterEnvironment(scenario).step(np.int64(0))


def test_scales_cover_every_indicator_from_nothing_to_one():
    assert tuple(SCALES) == INDICATORS
    rows = np.zeros((4, len(INDICATORS)))
    rows[1] = [large for _, large in SCALES.values()]
    rows[2] = 1e30
    rows[3] = np.nan
    found = scaled(rows)
    assert found.dtype == np.float32
    assert (found[0] == 0).all()
    assert np.allclose(found[1:], 1)


def test_the_rest_of_the_package_does_not_need_gymnasium():
    script = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "import ascar.simulation, ascar.cli.sim.run\n"
        "try:\n"
        "    import ascar.simulation.environment\n"
        "except ascar.errors.EnvironmentLacks as error:\n"
        "    print(error.message)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'ascar[gym]'" in done.stdout
