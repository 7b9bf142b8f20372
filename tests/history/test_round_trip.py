"""What goes in comes out, bit for bit: through the tables, and through each form of export."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascar.history import History
from ascar.results.measurement import Measurement, Series
from ascar.results.trial import Change, Failure, Purpose, Trial, TrialState
from ascar.space import Configuration

ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
# Everything that a failing program can print, lone surrogates and NUL among it.
TEXT = st.text(st.characters() | st.sampled_from("\udcff\udc80\0\r\n\"'"), max_size=40)
NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=20)
MAPPING = st.dictionaries(NAMES, ANY_FLOAT, max_size=4)
COUNT = st.integers(0, 10**9)

configurations = st.one_of(
    st.builds(
        lambda agcount, kib: Configuration({"fs": "xfs", "agcount": agcount, "read_ahead_kb": kib}),
        st.integers(1, 64),
        st.integers(0, 4096),
    ),
    st.builds(lambda kib: Configuration({"fs": "ext4", "read_ahead_kb": kib}), st.integers(0, 4096)),
)
measurements = st.builds(
    Measurement,
    mean=ANY_FLOAT,
    ci_low=st.none() | ANY_FLOAT,
    ci_high=st.none() | ANY_FLOAT,
    confidence=FINITE,
    n=COUNT,
    independent_samples=COUNT,
    autocorrelation=ANY_FLOAT,
    subsession_size=COUNT,
    stable_start=COUNT,
    stable_end=COUNT,
    change_points=st.lists(COUNT, max_size=3).map(tuple),
    method=TEXT,
    reason=TEXT,
)


@st.composite
def series(draw: st.DrawFn) -> Series:
    values = draw(st.lists(ANY_FLOAT, max_size=8))
    return Series.of(draw(st.lists(FINITE, min_size=len(values), max_size=len(values))), values)


trials = st.builds(
    Trial,
    number=st.integers(1, 2**31 - 1),
    configuration=configurations,
    purpose=st.sampled_from(Purpose),
    state=st.sampled_from([state for state in TrialState if state is not TrialState.RUNNING]),
    score=st.none() | FINITE,
    measurement=st.none() | measurements,
    metrics=MAPPING,
    series=st.dictionaries(NAMES, series(), max_size=3),
    change=st.none()
    | st.builds(
        Change,
        parameters=st.lists(NAMES, max_size=3).map(tuple),
        category=st.integers(-1, 3),
        step_s=MAPPING,
        filled=st.booleans(),
    ),
    stage_s=st.dictionaries(NAMES, FINITE, max_size=4),
    unmet=st.lists(TEXT, max_size=2).map(tuple),
    failure=st.none() | st.builds(Failure, stage=TEXT, message=TEXT, stderr=TEXT),
    started_at=st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=30),
)
lists = st.lists(trials, max_size=4, unique_by=lambda trial: trial.number)
MANY = settings(
    max_examples=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@MANY
@given(written=lists)
def test_trials_come_back_as_they_were(history, study, space, same, written):
    with history.begin(study, space, {}) as run:
        for trial in written:
            run.start_trial(trial)
            run.finish_trial(trial)
    read = history.run(run.id).trials()
    assert [trial.number for trial in read] == sorted(trial.number for trial in written)
    for before, after in zip(sorted(written, key=lambda trial: trial.number), read, strict=True):
        assert same(before, after), (before, after)


@MANY
@given(written=lists, suffix=st.sampled_from([".json", ".parquet", ".csv"]))
def test_an_export_holds_everything(history, study, space, same, written, suffix):
    with history.begin(study, space, {"kernel": "6.1", "sizes": [1, 2.5, None]}, {"fio": "3.33"}) as run:
        for trial in written:
            run.finish_trial(trial)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / f"runs{suffix}"
        history.export([run.id], file)
        with History(Path(directory) / "other.sqlite") as other:
            (imported,) = other.import_runs(file)
            copy = other.run(imported)
            original = history.run(run.id)
            assert same(tuple(copy.trials()), tuple(original.trials()), bits=False)
            assert copy.machine == original.machine
            assert copy.versions == original.versions
            assert (copy.name, copy.text, copy.space) == (original.name, original.text, original.space)
            assert copy.study == study


def test_every_bit_of_a_reading_is_kept(history, study, space, configuration, make):
    patterns = np.array([0x7FF8000000000001, 0xFFF0000000000000, 1, 0x8000000000000000], np.uint64)
    values = np.concatenate([patterns.view(np.float64), np.array([np.nextafter(1, 2), 1e308, 5e-324])])
    odd = Series(np.arange(7.0)[::-1], values[::1])
    trial = make.complete(1, configuration)
    with history.begin(study, space, {}) as run:
        run.finish_trial(Trial(**{**_fields(trial), "series": {"x": odd}}))
        (read,) = run.trials()
    assert read.series["x"].values.tobytes() == values.tobytes()
    assert read.series["x"].seconds.tolist() == odd.seconds.tolist()
    assert read.series["x"].values.flags.writeable


def test_strided_readings_are_written_in_their_order(history, study, space, configuration, make):
    trial = make.complete(1, configuration)
    backwards = Series(np.arange(10.0)[::2], np.arange(10.0)[::-2])
    with history.begin(study, space, {}) as run:
        run.finish_trial(Trial(**{**_fields(trial), "series": {"x": backwards}}))
        (read,) = run.trials()
    assert read.series["x"].values.tolist() == [9, 7, 5, 3, 1]


def test_numpy_numbers_are_taken_for_numbers(history, study, space, configuration, make, same):
    trial = make.complete(1, configuration)
    fields = _fields(trial) | {
        "score": np.float64(3.5),
        "metrics": {"x": np.float32(0.5)},
        "stage_s": {"load": np.float64(1.25)},
    }
    with history.begin(study, space, {"cpus": np.int64(2)}) as run:
        run.finish_trial(Trial(**fields))
        (read,) = run.trials()
    assert (read.score, read.metrics, read.stage_s) == (3.5, {"x": 0.5}, {"load": 1.25})
    assert history.run(run.id).machine == {"cpus": 2}


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_is_a_number_or_none(history, study, space, configuration, make, score):
    with (
        history.begin(study, space, {}) as run,
        pytest.raises(AssertionError, match="NaN is a failed trial"),
    ):
        run.finish_trial(make.complete(1, configuration, score))


def test_values_keep_their_kinds(history, study, space, make):
    kinds = Configuration({"a": True, "b": 1, "c": 1.0, "d": "1", "e": "é<>"})
    with history.begin(study, space, {}) as run:
        run.finish_trial(make.complete(1, kinds))
        (read,) = run.trials()
    assert [type(value) for value in read.configuration.values()] == [bool, int, float, str, str]
    assert list(read.configuration) == list("abcde")
    assert read.configuration.key() == kinds.key()


def test_a_trial_written_again_replaces_itself(history, study, space, configuration, make, same):
    with history.begin(study, space, {}) as run:
        for score in (1.0, 2.0):
            run.finish_trial(make.complete(7, configuration, score))
        assert same(tuple(run.trials()), (make.complete(7, configuration, 2.0),))


def _fields(trial: Trial) -> dict[str, object]:
    return {name: getattr(trial, name) for name in itertools.chain(Trial.__slots__)}
