from __future__ import annotations

import pytest

from ascar.analysis.importance_source import table_source as importance_of
from ascar.analysis.table_columns import ColumnOptions
from ascar.analysis.variation_source import table_source as variation_of
from ascar.errors import InputError


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "day,fs,size,latency_ms_p99,note,trial.number,rate\n1,ext4,8,2.5,x,1,100\n2,xfs,8,2.0,y,2,90\n"
    )
    return path


def test_parameters_are_the_columns_that_no_option_names(table):
    frame, objective, parameters = ColumnOptions("rate", ignore="note", order="day").read(table)
    assert (frame.height, objective, parameters) == (2, "rate", ("fs", "size", "latency_ms_p99"))
    assert ColumnOptions("rate", parameters="size, fs").read(table)[2] == ("size", "fs")


def test_a_latency_is_a_parameter_for_importance_and_a_measurement_for_variation(table):
    columns = ColumnOptions("rate", ignore="note,day")
    assert importance_of(table, columns).sheet.parameters == ("fs", "size", "latency_ms_p99")
    assert variation_of(table, columns).layout.parameters == ("fs", "size")


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (ColumnOptions(), "--objective: name the table's column"),
        (ColumnOptions("rate", "fs", "note"), "--parameters and --ignore: give one of the two"),
        (ColumnOptions("speed"), "--objective = 'speed': the table has no such column"),
        (ColumnOptions("rate", setup="boot"), "--setup = 'boot': the table has no such column"),
        (ColumnOptions("rate", ignore=" , "), "--ignore = ' , ': must be names with commas"),
    ],
)
def test_wrong_columns_are_refused(table, columns, problem):
    with pytest.raises(InputError, match=problem):
        columns.read(table)


def test_a_run_takes_no_option_of_a_table():
    ColumnOptions().refuse()
    with pytest.raises(InputError, match="--series = 'iops': applies only to a --table"):
        ColumnOptions(series="iops").refuse()
