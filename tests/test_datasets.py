"""The datasets that come with ascar: complete, readable as a table, tunable, searchable."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ascar.datasets import DATASETS, dataset_file, located
from ascar.errors import InputError
from ascar.history import History
from ascar.lab import NoiseModel, TableSpecification
from ascar.loops.offline import tune
from ascar.results.trial import TrialState
from ascar.study import Study
from ascar.sweep import SweepPlan, passes
from ascar.systems.recording import MeasurementTable
from ascar.systems.recording_columns import TableColumns

ROOT = Path(__file__).parents[1]
BYTES_MAX = 3_000_000
REPLICATES_MIN = 2  # docs/dataset.md says how many of what there are
FLAT = ("fs", "block_size_bytes", "ext_journal_mode", "btrfs_data_mode", "xfs_log_buffer_size_kib", "atime")


@pytest.fixture(params=sorted(DATASETS))
def name(request):
    return request.param


def recording(name, parameters=()):
    return MeasurementTable.read(Path(f"dataset:{name}"), TableColumns(parameters, ("operations",)))


def study_of(name):
    return Study.read(ROOT / "benchmarks" / "dataset" / f"{name.removeprefix('storage-v5-')}.toml")


def test_names_are_found_and_others_are_refused():
    for name in DATASETS:
        assert located(Path(f"dataset:{name}")) == dataset_file(name)
    assert located(Path("table.csv")) == Path("table.csv")
    for name in ("", "storage-v5", "../storage-v5-mailserver", "storage-v5-mailserver.parquet"):
        with pytest.raises(InputError, match="there are storage-v5-fileserver"):
            located(Path(f"dataset:{name}"))


def test_they_are_small():
    assert sum(dataset_file(name).stat().st_size for name in DATASETS) < BYTES_MAX


def test_every_configuration_was_measured_so_often_as_is_said(name):
    table = recording(name)
    assert table.complete
    assert len(table) >= 150
    counts = np.diff(table.starts)
    assert counts.min() >= REPLICATES_MIN
    assert set(table.space.names) >= {"fs", "xfs_allocation_groups", "btrfs_compression"}
    assert {one["fs"] for one in table.configurations} == {"ext2", "ext3", "ext4", "xfs", "btrfs"}
    truth = table.truth("operations")
    assert np.isfinite(truth).all()
    assert truth.max() > 1.5 * np.median(truth), "there is something to find"


def test_the_space_is_that_of_the_study_that_made_it(name):
    text = pl.read_parquet(dataset_file(name), columns=["trial.run"])["trial.run"].drop_nulls()[0]
    study = study_of(name)
    assert study.digest in text, "benchmarks/dataset has the study that was measured"
    run = json.loads(text)
    assert run["machine"]["kernel"].startswith("6.18")
    assert run["machine"]["device"]["iops_max"] == study.target["iops"]
    assert run["machine"]["memory_bytes"] * 2.5 <= run["machine"]["workload"]["dataset_bytes"]


@pytest.mark.slow
def test_it_can_be_imported_with_all_its_readings(name, tmp_path):
    with History(tmp_path / "history.sqlite") as history:
        ids = history.import_runs(Path(f"dataset:{name}"))
        trials = [trial for run in ids for trial in history.run(run).trials()]
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    assert len(complete) >= 160 * REPLICATES_MIN
    for trial in complete[::50]:
        rates = trial.series["throughput_ops_per_s"]
        assert rates.values.mean() * 5 == pytest.approx(trial.metrics["operations"], rel=0.05)
        assert trial.score == pytest.approx(trial.metrics["operations"] / 5, rel=1e-4)


def test_it_is_what_the_plan_says_as_far_as_it_got(name):
    table = recording(name)
    counts = Counter(dict(zip(table.configurations, np.diff(table.starts).tolist(), strict=True)))
    planned = Counter(passes(table.space, SweepPlan(3, None, 30, 10), study_of(name).seed))
    assert set(planned) == set(counts)
    assert all(counts[one] <= planned[one] for one in counts)


def test_the_laboratory_draws_its_replicates(name):
    specification = TableSpecification(
        f"dataset:{name}", "operations", maximize=True, noise=NoiseModel.parse("replicates")
    )
    assert specification.name == name
    assert len(specification.identity()["file"]) == 64
    problem = specification.build()
    rng = np.random.default_rng(1)
    default = problem.space.default()
    drawn = {problem.draw(default, rng)[0] for _ in range(50)}
    assert len(drawn) >= REPLICATES_MIN
    assert min(drawn) <= problem.truth(default) <= max(drawn)
    assert problem.best < problem.median < 0


def test_it_is_flat_where_its_parameters_are_named(name):
    table = recording(name, FLAT)
    assert not table.space.constraints
    for configuration in table.space.sample(np.random.default_rng(2), 200):
        row = table.configurations[table.nearest(configuration)]
        shared = [key for key in FLAT if key in row]
        assert row["fs"] == configuration["fs"] or sum(row[key] != configuration[key] for key in shared) <= 2


@pytest.mark.slow
def test_a_study_tunes_on_it(tmp_path):
    text = (ROOT / "examples" / "dataset.toml").read_text("utf-8")
    study = Study.parse(f"{text}[stop]\ntrials = 60\n")
    with History(tmp_path / "history.sqlite") as history:
        outcome = tune(study, history)
    assert outcome.verdict.kind == "improved"
    assert outcome.recommended["fs"] == "xfs"
