from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from ascar.analysis.drawing import Drawing, svg
from ascar.analysis.variation_runs import FrameLayout, runs_of
from ascar.analysis.variation_study import FIGURES, VariationRequest, examined, figures_of
from ascar.errors import InputError
from ascar.results.measurement import Series


def study(readings=True, latencies=True, loads=("mail", "web"), seed=0):
    """Ten configurations under each load, four runs each; mail varies five times as much."""
    rng = np.random.default_rng(seed)
    rows, series = [], []
    for load in loads:
        for size in range(10):
            for number in range(4):
                rates = (
                    (size + 1) * 100 * rng.normal(1, 0.1, 60) * rng.normal(1, 0.1 if load == "mail" else 0.02)
                )
                rows.append(
                    (load, size, number, float(rates.mean()), *(10 / rates.mean() * np.array([1, 3, 9])))
                )
                series.append(Series(np.arange(1.0, 61), rates))
    names = ["load", "size", "number", "rate", *(f"read_latency_ms_{p}" for p in ("p50", "p99", "max"))]
    frame = pl.DataFrame(rows, names, orient="row")
    frame = frame if latencies else frame.drop(names[4:])
    return runs_of(frame, FrameLayout("rate", ("load", "size"), "number", series=series if readings else ()))


def test_every_figure_is_drawn_and_said_in_words():
    figures = figures_of(examined(study(), VariationRequest(by="load")))
    assert list(figures) == list(FIGURES)
    for name, drawing in figures.items():
        assert isinstance(drawing, Drawing), name
        assert len(drawing.alt) > 40
        assert "</svg>" in svg(drawing, f"v-{name}")


def test_what_cannot_be_drawn_says_why():
    figures = figures_of(
        examined(study(readings=False, latencies=False, loads=("mail",)), VariationRequest())
    )
    left = {name: said for name, said in figures.items() if isinstance(said, str)}
    assert set(left) == {
        "across",
        "cumulative",
        "bands",
        "windows",
        "instantaneous",
        "latencies",
        "correlations",
    }
    assert "--by" in left["across"]
    assert "no readings" in left["bands"]
    assert "read_latency_ms_p50" in left["latencies"]


def test_groups_that_share_no_configuration_are_not_put_side_by_side():
    runs = study()
    alike = figures_of(examined(runs, VariationRequest(by="size")))["across"]
    assert isinstance(alike, str) or "by size" in alike.alt
    frame = pl.DataFrame({"fs": ["a", "a", "b", "b"], "only": [1, 1, None, None], "y": [1.0, 2, 3, 4]})
    found = examined(runs_of(frame, FrameLayout("y", ("fs", "only"))), VariationRequest(by="fs"))
    assert "no configuration was measured under two values of fs" in figures_of(found)["across"]


def test_boxes_show_the_most_varying_first():
    found = examined(study(), VariationRequest(by="load"))
    axes = figures_of(found)["boxes"].figure.axes[0]
    assert axes.get_yticklabels()[0].get_text().startswith("mail-")
    shares = [float(text.get_text().split("%")[0]) for text in axes.texts]
    assert shares == sorted(shares, reverse=True) and len(shares) == 10


def test_bars_are_the_ranges_and_dots_the_means():
    found = examined(study(), VariationRequest(by="load"))
    upper, lower = figures_of(found)["across"].figure.axes
    assert sorted(bar.get_height() for bar in upper.patches) == pytest.approx(sorted(found.spread.range))
    drawn = sorted(float(y) for line in lower.lines for y in line.get_ydata())
    assert drawn == pytest.approx(sorted(found.spread.mean))


def test_a_band_is_as_wide_as_the_runs_differ():
    runs = study()
    found = examined(runs, VariationRequest(by="load", windows_s=(10.0,)))
    figure = figures_of(found)["bands"].figure
    assert len(figure.axes) == 2
    assert len(figure.axes[0].lines[0].get_xdata()) == 6
    assert "Throughput-10:" in figure.get_supylabel()


def test_distributions_end_at_one_and_never_fall():
    found = examined(study(), VariationRequest(by="load"))
    for axes in figures_of(found)["windows"].figure.axes[:2]:
        for line in axes.lines:
            shares = list(line.get_ydata())
            assert shares[-1] == 1 and all(a <= b for a, b in pairwise(shares))


def test_means_that_are_far_apart_have_a_logarithmic_axis():
    frame = pl.DataFrame({"a": [1, 1, 2, 2], "y": [1.0, 1.1, 1e6, 1.1e6]})
    found = examined(runs_of(frame, FrameLayout("y", ("a",))), VariationRequest())
    assert figures_of(found)["range-mean"].figure.axes[0].get_xscale() == "log"


def test_hostile_names_are_only_text():
    frame = pl.DataFrame({"$<b>\\frac": ["</svg><script>", "$_{x"] * 6, "y": np.arange(1.0, 13)})
    found = examined(runs_of(frame, FrameLayout("y", ("$<b>\\frac",))), VariationRequest(by="$<b>\\frac"))
    for name, drawing in figures_of(found).items():
        if isinstance(drawing, Drawing):
            assert "<script>" not in svg(drawing, f"v-{name}")


def test_a_window_longer_than_every_run_has_no_ranges():
    assert examined(study(), VariationRequest(windows_s=(1000.0,))).windows == []


def test_groups_must_be_a_parameter():
    with pytest.raises(InputError, match="parameters are load, size"):
        examined(study(), VariationRequest(by="rate"))
