"""Figures of nothing, of one trial, of many, of failures only, of values that do not vary."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from msgspec.structs import replace

from ascar.analysis import figures
from ascar.analysis.drawing import COLOURS, Drawing, svg
from ascar.analysis.frames import trials_frame
from ascar.analysis.marginals import marginal_figure, marginals
from ascar.objective import Objective
from ascar.results.measurement import Measurement, Series
from ascar.results.trial import Purpose
from ascar.results.verdict import Verdict
from ascar.space import ChangeCost, Configuration, Space, categorical

SVG = "{http://www.w3.org/2000/svg}"


def parsed(drawing: Drawing | None, name: str = "x") -> ET.Element:
    """The drawing's SVG, well-formed, with unique ids that are all its own."""
    assert drawing is not None
    text = svg(drawing, name)
    root = ET.fromstring(text)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert all(str(found).startswith(f"{name}-") for found in ids)
    for reference in re.findall(r'(?:url\(#|href="#)([^")]+)', text):
        assert reference in ids
    assert root.get("role") == "img"
    title = root.find(f"{SVG}title")
    assert title is not None
    assert title.text == drawing.alt
    assert root.get("width") is None
    assert root.get("viewBox")
    return root


def texts(root: ET.Element) -> list[str]:
    return ["".join(element.itertext()).strip() for element in root.iter(f"{SVG}text")]


def all_figures(trials, objective, space) -> list[Drawing | None]:
    scores = [trial.score for trial in trials if trial.score is not None] or [0.0]
    span = min(scores), max(scores)
    return [
        figures.best_so_far(trials_frame(trials, objective), objective, 1000.0),
        figures.instantaneous(trials, objective),
        figures.distribution(trials, objective, space.default()),
        *(figures.readings(trial, objective, "best") for trial in trials[:1]),
        *(marginal_figure(found, objective, span) for found in marginals(trials, space)),
    ]


def test_nothing_is_drawn_of_nothing(objective, space):
    assert all_figures([], objective, space) == [None, None, None]
    assert figures.stages({}) is None
    assert figures.stages({"load": 0.0}) is None
    assert figures.comparison(Verdict("not-verified"), objective) is None


def test_nothing_is_drawn_of_failures(objective, space, make):
    trials = [make.failed(n, space.default()) for n in range(1, 5)]
    assert all_figures(trials, objective, space) == [None, None, None, None]


def test_one_trial(objective, space, make):
    drawn = all_figures([make.trial(1, space.default(), 1000.0, Purpose.DEFAULT)], objective, space)
    assert len(drawn) == 4
    for index, drawing in enumerate(drawn):
        parsed(drawing, f"f{index}")


@pytest.mark.parametrize("n", [2, 60])
def test_many_trials(objective, space, make, n):
    for index, drawing in enumerate(all_figures(make.search(space, n), objective, space)):
        parsed(drawing, f"f{index}")


@pytest.mark.parametrize("score", [0.0, 5.0, -5.0, 1e-9, 1e15])
def test_scores_that_do_not_vary(objective, space, make, score):
    settings = space.sample(np.random.default_rng(0), 12)
    trials = [make.trial(n, setting, score) for n, setting in enumerate(settings, start=1)]
    for index, drawing in enumerate(all_figures(trials, objective, space)):
        parsed(drawing, f"f{index}")


def test_ten_thousand_trials_stay_small(objective, space, make):
    one = make.trial(1, space.default(), 1000.0)
    trials = [replace(one, number=n, score=1000.0 + n % 77) for n in range(1, 10_001)]
    for drawing in (
        figures.best_so_far(trials_frame(trials, objective), objective, None),
        figures.instantaneous(trials, objective),
        figures.distribution(trials, objective, space.default()),
    ):
        assert drawing is not None
        assert len(svg(drawing, "x")) < 2_000_000


def test_the_best_so_far_says_its_numbers(objective, space, make):
    trials = [make.trial(n, space.default(), score) for n, score in enumerate([10.0, 30.0, 20.0], start=1)]
    drawing = figures.best_so_far(trials_frame(trials, objective), objective, 12.0)
    assert drawing is not None
    assert "from 10 to 30; the default scores 12." in drawing.alt
    said = texts(parsed(drawing))
    assert "throughput (ops/s)" in said
    assert {"best so far", "default", "each trial", "time spent on trials (s)"} <= set(said)


def test_the_distribution_marks_the_default(objective, space, make):
    xfs = [Configuration({"fs": "xfs", "agcount": n, "read_ahead_kb": 0, "barrier": True}) for n in (1, 2, 3)]
    trials = [make.trial(1, space.default(), 100.0, Purpose.DEFAULT)]
    trials += [make.trial(n, setting, 50.0 * n) for n, setting in enumerate(xfs, start=1)]  # 50, 100, 150
    trials.append(make.trial(9, xfs[0], 9999.0, Purpose.VERIFY))  # no part of the search
    drawing = figures.distribution(trials, objective, space.default())
    assert drawing is not None
    assert "25% of the configurations tried score better" in drawing.alt
    assert "highest 150" in drawing.alt
    fewer_is_better = figures.distribution(
        trials, Objective.parse("minimize throughput_ops_per_s"), space.default()
    )
    assert fewer_is_better is not None
    assert "25% of the configurations tried score better" in fewer_is_better.alt  # the one of 50
    unknown = figures.distribution(trials, objective, xfs[0].replaced(agcount=9))
    assert unknown is not None
    assert "default" not in unknown.alt


def test_the_time_line_starts_after_each_change(objective, space, make):
    trials = [make.trial(n, space.default(), 100.0) for n in (1, 2)]
    drawing = figures.instantaneous(trials, objective)
    assert drawing is not None
    (line,) = drawing.figure.axes[0].get_lines()
    at = np.asarray(line.get_xdata())
    first, second = at[:40], at[41:81]
    assert first[0] == pytest.approx(0.6 + 0.5 + 0.1 + 0.25)
    assert second[0] == pytest.approx(11.21 + 1.2 + 0.25)
    assert np.isnan(at[40])


def test_readings_shade_the_stable_phase(objective, space, make):
    trial = make.trial(1, space.default(), 100.0)
    drawing = figures.readings(trial, objective, "default")
    assert drawing is not None
    shaded = drawing.figure.axes[0].patches[0].get_extents()
    assert "stable phase" in texts(parsed(drawing))
    assert shaded.width > 0


def test_readings_of_odd_trials(objective, space, make):
    trial = make.trial(1, space.default(), 100.0)
    assert figures.readings(replace(trial, series={}), objective, "best") is None
    assert figures.readings(replace(trial, measurement=None), objective, "best") is None
    holes = Series.of([1, 2, 3, 4], [1.0, float("nan"), float("inf"), 2.0])
    odd = replace(trial, series={"throughput_ops_per_s": holes}, measurement=Measurement.single(1.0))
    parsed(figures.readings(odd, objective, "best"))
    beyond = replace(trial.measurement, stable_start=90, stable_end=99)
    parsed(figures.readings(replace(trial, measurement=beyond), objective, "best"))
    parsed(figures.instantaneous([odd], objective))


def test_stages_name_their_shares(make):
    drawing = figures.stages({"load": 80.0, "change": 15.0, "own": 5.0, "fill": 0.0})
    assert drawing is not None
    assert drawing.alt == "Time by stage: load 80%, change 15%, own 5.0%."
    assert {"load 80%", "change 15%", "own 5.0%"} <= set(texts(parsed(drawing)))


def test_the_comparison_shows_both_sides(objective, verdicts):
    drawing = figures.comparison(verdicts("improved"), objective)
    assert drawing is not None
    # Valid after every run, so wider than the t interval of five runs, 983.7 to 1,016.
    assert "default 1,000 (966.3 to 1,035) over 5 runs" in drawing.alt
    assert {"default", "best found"} <= set(texts(parsed(drawing)))
    one = replace(verdicts("improved"), best_scores=(5.0,), default_scores=(4.0,))
    parsed(figures.comparison(one, objective))


def test_colours_follow_the_page(objective, space, make):
    drawing = figures.best_so_far(trials_frame(make.search(space, 5), objective), objective, 1000.0)
    assert drawing is not None
    text = svg(drawing, "x")
    for role in ("ink", "muted", "grid", "best", "default"):
        assert f"var(--{role}, {COLOURS[role]})" in text
    assert len(set(COLOURS.values())) == len(COLOURS)
    assert not re.search(r"(?<!, )#000000", text.replace("fill: none", ""))


def test_a_figure_is_drawn_the_same_way_twice(objective, space, make):
    trials = make.search(space, 10)
    drawn = [svg(figures.distribution(trials, objective, space.default()), "x") for _ in range(2)]
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "$x$ & $\\frac", "数据", "a" * 150, "]]>"])
def test_names_of_any_kind(make, objective, name):
    space = Space((categorical("p", [name, "other"], default="other", cost=ChangeCost.DYN_KERNEL),))
    trials = [
        make.trial(n, Configuration({"p": value}), float(n))
        for n, value in enumerate([name, "other"] * 3, start=1)
    ]
    (found,) = marginals(trials, space)
    root = parsed(marginal_figure(found, objective, (1.0, 6.0)))
    assert any(said.startswith(name[:20]) for said in texts(root))
    formula = Objective("maximize", objective.formula)
    assert formula.unit == "throughput_ops_per_s"
