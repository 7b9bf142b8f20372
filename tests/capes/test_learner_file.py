"""A learner's file: every mistake is one line that names the key, its value and what is allowed."""

import pytest

from ascar.capes.process.learner_file import read_plan
from ascar.errors import InputError


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "objective: missing"),
        ("objective = 3", "objective = 3: must be text"),
        ("objective = 'max x'", "must be 'maximize FORMULA'"),
        ("objective = 'maximize x('", r"objective = 'maximize x\('"),
        ("objective = []", "objective: has 0 of them"),
        ("objective = ['maximize a', 'max b']", r"objective\[1\] = 'max b'"),
        ("objective = ['maximize a', 'minimize b']\nweights = [1]", "one weight an objective, 2"),
        ("objective = ['maximize a', 'minimize b']\nweights = [1, 0]", r"weights\[1\] = 0.0: must be from"),
        ("objective = 'maximize x'\nknob = ['a']", "knob: unknown key.*did you mean 'knobs'"),
        ("objective = 'maximize x'\nknobs = []", "knobs = .*must be a list of names"),
        ("objective = 'maximize x'\nalgorithm = 'deep'", "algorithm = 'deep': must be one of"),
        ("objective = 'maximize x'\nsession = 'a b'", "session = 'a b': must be 1 to 64"),
        ("objective = 'maximize x'\nstate = ''", "state = '': must be a file's name"),
        ("objective = 'maximize x'\ncheckpoint_s = 0", "checkpoint_s = 0.0: must be from 1"),
        ("objective = 'maximize x'\nmissing_tolerance = 2", "missing_tolerance = 2.0: must be from 0 to 1"),
        ("objective = 'maximize x'\n[classic]\npreset = 'x'", "classic.preset = 'x': must be one of paper"),
        ("objective = 'maximize x'\n[classic]\ndiscount = 7", "classic.discount = 7.0: must be from 0"),
        ("objective = 'maximize x'\n[classic]\nlayers = 7", "classic.layers: unknown key"),
        ("objective = 'maximize x'\n[modern]\nlayers = 7", "modern.layers: unknown key"),
        (
            "objective = 'maximize x'\n[modern]\nfirst_ticks = 1.5",
            "modern.first_ticks = 1.5: must be a whole",
        ),
        ("objective = 'maximize x'\n[modern]\nbudget = nan", "modern.budget = nan"),
        ("objective = 'maximize x'\n[modern]\nbudget = true", "modern.budget = True: must be a number"),
        ("objective = 'maximize x'\n[modern]\nrecognition = 0", "modern.recognition: unknown key"),
        ("objective = ", "is not TOML: "),
        ("\x00", "is not TOML: "),
    ],
)
def test_mistakes_are_named(tmp_path, text, words):
    path = tmp_path / "learner.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read_plan(path)
    assert "learner.toml" in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_left_out_has_its_default_and_paths_are_beside_the_file(tmp_path):
    path = tmp_path / "learner.toml"
    path.write_text(
        "objective = ['maximize ops', 'minimize ms']\nweights = [2, 1]\nconnection = 'c.toml'\n"
        "[classic]\npreset = 'thesis'\nreward = 'level'\n[modern]\nbudget = 0.1\n"
    )
    plan = read_plan(path)
    assert plan.objective.text == "maximize ops ** 0.666667 * ms ** -0.333333"
    assert (plan.state, plan.connection) == (tmp_path / "learner.npz", tmp_path / "c.toml")
    assert (plan.hyper.optimizer, plan.hyper.reward, plan.hyper.missing_tolerance) == (
        "rmsprop",
        "level",
        0.2,
    )
    assert plan.options.budget == 0.1 and plan.file.session == "default" and plan.file.warm
    with pytest.raises(InputError, match="No such file"):
        read_plan(tmp_path / "none.toml")
