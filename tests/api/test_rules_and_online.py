"""`ascar.make_rules` and `ascar.tune_online`."""

from __future__ import annotations

import pytest

import ascar
from ascar.cli.main import main
from ascar.sharp import RuleSet
from ascar.simulation import open_scenario, with_settings


def test_rules_are_made_and_compared(tmp_path):
    out = tmp_path / "rules.txt"
    scenario = with_settings(open_scenario("random-write"), ["duration_s=2"])
    made = ascar.make_rules(scenario, out, evaluations=30, pairs=4, seed=7, progress=False)
    assert made.verdict is not None
    assert made.verdict.kind in ("improved", "default-is-fine", "undecided")
    assert RuleSet.read(out, str(out)).bare().text() == made.found.best.rules.bare().text()
    with pytest.raises(ascar.InputError, match="already exists"):
        ascar.make_rules(scenario, out, evaluations=30, pairs=4, seed=7)
    again = ascar.make_rules(scenario, out, evaluations=30, pairs=4, seed=7, resume=True)
    assert again.found.best.rules.text() == made.found.best.rules.text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scenario": "no-such-scenario"}, "no-such-scenario"),
        ({"objective": "maximize speed"}, "speed"),
        ({"schedule": "fast"}, "schedule = 'fast'"),
        ({"budget": "soon"}, "budget = 'soon'"),
        ({"threads": 0}, "threads = 0"),
    ],
)
def test_mistakes_in_the_rules_that_are_wanted_are_one_line(tmp_path, options, message):
    given = {"scenario": "random-write", **options}
    with pytest.raises(ascar.InputError) as told:
        ascar.make_rules(given.pop("scenario"), tmp_path / "rules.txt", **given)
    assert message in told.value.message
    assert "\n" not in told.value.message


def test_a_study_that_is_not_of_the_online_loop_is_refused(tmp_path):
    study = tmp_path / "study.toml"
    study.write_text('[study]\nname = "x"\nobjective = "maximize a"\n')
    with pytest.raises(ascar.InputError) as told:
        ascar.tune_online(study, folder=tmp_path / "session")
    assert "online" in told.value.message
    assert not (tmp_path / "session").exists()
    with pytest.raises(ascar.InputError, match=r"nothing\.toml"):
        ascar.tune_online(tmp_path / "nothing.toml")


def test_what_it_measured_is_found_by_the_command_line(tmp_path, ascar_command, capfd):
    space = ascar.Space((ascar.integer("depth", (1, 64), default=4),))
    ascar.tune(lambda configuration: configuration["depth"], space, budget="30 s", stop={"trials": 10})
    for words in (("report", "1", "--out", tmp_path), ("history", "show", "1"), ("importance", "1")):
        assert "error" not in ascar_command(*words), words
    assert main(["apply", "1", "--dry-run"]) == 0
    assert "left to you (depth): ascar has no command for them: set them by hand" in capfd.readouterr().out
