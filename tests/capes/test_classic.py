"""Deep Q-learning in JAX: its step, checkpoints, what happens without JAX."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import msgspec
import numpy as np
import pytest

import classic_parts as parts
from ascar.capes.axes import Axis
from ascar.capes.classic.experience import Experience
from ascar.capes.classic.hyperparameters import GAME, PAPER, THESIS, DeepQHyperparameters
from ascar.capes.policy import TickObservation
from ascar.errors import InputError
from ascar.learning import Transitions, forward, gradient, targets
from ascar.learning.network import initialized, views

pytestmark = parts.needs_jax
KNOBS = (Axis("a", 3, 0, 6, 1),)
SMALL = msgspec.structs.replace(
    GAME,
    hidden_size=16,
    ticks_per_observation=2,
    exploration_ticks=400,
    steps_per_tick=1,
    discount=0.5,
    learning_rate=3e-3,
)


def _batch(rng, n=8, inputs=6, actions=5):
    return Transitions(
        rng.normal(size=(n, inputs)).astype(np.float32),
        rng.integers(actions, size=n).astype(np.intp),
        rng.normal(size=n).astype(np.float32),
        rng.normal(size=(n, inputs)).astype(np.float32),
        np.ones((n, actions), bool),
        np.zeros(n, bool),
    )


def _play(learner, ticks, first=0, setting=(3.0,)):
    values = []
    for tick in range(first, first + ticks):
        values.append(10.0 - abs(setting[0] - 5))
        indicators = np.array([[setting[0] / 6, values[-1] / 10]], np.float32)
        setting = learner.decide(TickObservation(tick, values[-1], indicators, setting))
    return values, setting


def test_a_step_is_plain_q_learning():
    rng = np.random.default_rng(1)
    hyper = DeepQHyperparameters(
        optimizer="rmsprop", learning_rate=1e-2, hidden_size=7, gradient_norm_max=1e6
    )
    state = parts.first_state(hyper, parts.sizes_of(hyper, 6, 5), rng)
    network = type(state.network)(type(one)(*map(np.asarray, one)) for one in state.network)
    batch = _batch(rng)
    wanted = targets(network, batch, hyper.discount)
    error = np.abs(forward(network, batch.states)[np.arange(8), batch.actions] - wanted).mean()
    slope = gradient(network, batch, wanted)
    stepped = parts.make_step(hyper)(state, batch)
    assert float(stepped.prediction_error) == pytest.approx(error, rel=1e-4)
    for before, after, follower, part in zip(
        network, stepped.state.network, stepped.state.target, slope, strict=True
    ):
        # RMSProp's first step: gradient over the root of 0.1 of its square (Li, Table 5.2: decay 0.9).
        expected = before.weight - 1e-2 * part.weight / np.sqrt(0.1 * part.weight**2 + 1e-8)
        assert np.asarray(after.weight) == pytest.approx(expected, abs=2e-3)
        assert np.asarray(follower.weight) == pytest.approx(
            0.99 * before.weight + 0.01 * np.asarray(after.weight), abs=1e-6
        )


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adam", "rmsprop"])
@pytest.mark.parametrize("longest", [0.01, 100.0])
def test_a_descent_is_that_of_optax(optimizer, longest):
    optax = pytest.importorskip("optax")
    hyper = DeepQHyperparameters(optimizer=optimizer, learning_rate=1e-2, gradient_norm_max=longest)
    rng = np.random.default_rng(2)
    network = views(initialized((4, 3, 2), rng), (4, 3, 2))
    descent = optax.adam(1e-2) if optimizer == "adam" else optax.rmsprop(1e-2, decay=0.9)
    reference = optax.chain(optax.clip_by_global_norm(longest), descent)
    mine, moments, theirs, state = (
        network,
        parts.first_moments(hyper, network),
        network,
        reference.init(network),
    )
    for _ in range(3):
        slope = views(rng.normal(size=len(initialized((4, 3, 2), rng))).astype(np.float32), (4, 3, 2))
        mine, moments = parts.descend(hyper, slope, mine, moments)
        updates, state = reference.update(slope, state)
        theirs = optax.apply_updates(theirs, updates)
    for one, other in zip(mine, theirs, strict=True):
        assert np.asarray(one.weight) == pytest.approx(np.asarray(other.weight), rel=1e-4, abs=1e-6)
        assert np.asarray(one.bias) == pytest.approx(np.asarray(other.bias), rel=1e-4, abs=1e-6)


def test_hidden_layers_are_as_wide_as_the_input_unless_said_otherwise():
    assert parts.sizes_of(THESIS, 1760, 5) == (1760, 1760, 1760, 5)
    assert parts.sizes_of(PAPER, 1760, 5) == (1760, 600, 600, 5)


def test_it_learns_where_the_reward_is():
    learner = parts.Classic(KNOBS, 2, SMALL, np.random.default_rng(3))
    values, _ = _play(learner, 900)
    assert np.mean(values[-150:]) > 9
    assert learner.steps > 800
    assert 0 <= learner.prediction_error < 1


@pytest.mark.slow
def test_a_crowd_is_as_good_as_one():
    experiences = [Experience(KNOBS, 2, SMALL, np.random.default_rng(seed)) for seed in range(4)]
    batch = parts.ClassicBatch(experiences, SMALL)
    settings = [(3.0,)] * 4
    total = []
    for tick in range(900):
        values = [10.0 - abs(one[0] - 5) for one in settings]
        total.append(np.mean(values))
        seen = [
            TickObservation(tick, value, np.array([[one[0] / 6, value / 10]], np.float32), one)
            for value, one in zip(values, settings, strict=True)
        ]
        settings = batch.decide(seen)
    assert np.mean(total[-150:]) > 9


def test_a_checkpoint_goes_on_where_it_was_left(tmp_path):
    learner = parts.Classic(KNOBS, 2, SMALL, np.random.default_rng(3))
    _play(learner, 200)
    parts.save(tmp_path / "learner.npz", learner, ("setting", "value"))
    again = parts.Classic(KNOBS, 2, SMALL, np.random.default_rng(4))
    header = parts.restore(tmp_path / "learner.npz", again)
    assert header.indicators == ("setting", "value")
    assert (again.steps, again.experience.exploration.ticks, again.experience.scale) == (
        learner.steps,
        200,
        learner.experience.scale,
    )
    states = np.random.default_rng(5).normal(size=(3, 4)).astype(np.float32)
    assert parts.values_of(again.state, states) == pytest.approx(parts.values_of(learner.state, states))
    batch = _batch(np.random.default_rng(6), inputs=4, actions=3)
    step = parts.make_step(SMALL)
    one, two = step(learner.state, batch), step(again.state, batch)
    assert parts.values_of(one.state, states) == pytest.approx(parts.values_of(two.state, states)), (
        "moments too"
    )
    assert list(tmp_path.iterdir()) == [tmp_path / "learner.npz"]


def _rewritten(source, target, change):
    """The checkpoint with its header changed."""
    with np.load(source) as file:
        arrays = {name: file[name] for name in file.files}
    about = msgspec.json.decode(arrays["header"].tobytes())
    change(about, arrays)
    arrays["header"] = np.frombuffer(msgspec.json.encode(about), np.uint8)
    np.savez(target, **arrays)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda about, arrays: about.update(version=2), "newer than 1"),
        (lambda about, arrays: about.update(version="x"), "newer than 1"),
        (lambda about, arrays: about.update(format="other"), "of another program"),
        (lambda about, arrays: about.pop("sizes"), "header is wrong"),
        (lambda about, arrays: about["hyper"].update(discount=7), "discount"),
        (lambda about, arrays: about.update(sizes=[4, 9, 3]), "its layers are"),
        (lambda about, arrays: about.update(knobs=["b"]), "its knobs are b, not a"),
        (lambda about, arrays: arrays.pop("leaf0001"), "array 1 of"),
        (lambda about, arrays: arrays.update(leaf0000=np.zeros((9, 9), np.float32)), "array 0 of"),
        (
            lambda about, arrays: arrays.update(leaf0000=np.full_like(arrays["leaf0000"], np.nan)),
            "not finite",
        ),
    ],
)
def test_a_foreign_or_newer_checkpoint_is_refused(tmp_path, change, words):
    learner = parts.Classic(KNOBS, 2, SMALL, np.random.default_rng(3))
    parts.save(tmp_path / "good.npz", learner)
    _rewritten(tmp_path / "good.npz", tmp_path / "bad.npz", change)
    with pytest.raises(InputError, match=words):
        parts.restore(tmp_path / "bad.npz", learner)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    learner = parts.Classic(KNOBS, 2, SMALL, np.random.default_rng(3))
    parts.save(tmp_path / "good.npz", learner)
    whole = (tmp_path / "good.npz").read_bytes()
    bad = tmp_path / "bad.npz"
    for content in (b"", b"hello", whole[: len(whole) // 2], whole[:100] + bytes(200) + whole[300:]):
        bad.write_bytes(content)
        with pytest.raises(InputError, match="checkpoint"):
            parts.restore(bad, learner)
    with zipfile.ZipFile(bad, "w") as file:
        file.writestr("other.txt", "no arrays")
    with pytest.raises(InputError, match="checkpoint"):
        parts.read_header(bad)
    with pytest.raises(InputError, match="No such file"):
        parts.read_header(tmp_path / "none.npz")


def test_a_checkpoint_never_runs_code(tmp_path):
    marker = tmp_path / "ran"

    class Evil:
        def __reduce__(self):
            return (open, (str(marker), "w"))

    np.savez(tmp_path / "evil.npz", header=np.array([Evil()], object))
    with pytest.raises(InputError, match="damaged"):
        parts.read_header(tmp_path / "evil.npz")
    assert not marker.exists()


def test_without_jax_one_line_names_the_extra():
    code = (
        "import sys; sys.modules['jax'] = None\n"
        "from ascar.cli import main\n"
        "sys.argv = ['ascar', 'capes', 'game', '--algorithm', 'classic', '--runs', '1']\n"
        "sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "pip install 'ascar[drl]'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
