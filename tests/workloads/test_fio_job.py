"""fio jobs: what they may say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascar.errors import StudyError
from ascar.workloads.fio_job import ALLOWED, ENGINES, SWITCHES, FioJob, checked_options, parse_job
from ascar.workloads.fio_presets import PRESETS, preset_job


def refused(options):
    with pytest.raises(StudyError) as error:
        checked_options("workload.options", options)
    assert "\n" not in error.value.message
    return error.value.message


def test_values_become_fios_own_words():
    options = {"rw": "randrw", "bs": "4k", "fsync": 1, "norandommap": True, "rate_iops": 100, "size": " 1g "}
    assert checked_options("o", options) == {
        "rw": "randrw",
        "bs": "4k",
        "fsync": "1",
        "norandommap": "1",
        "rate_iops": "100",
        "size": "1g",
    }


@pytest.mark.parametrize(
    "name",
    [
        "exec_prerun",
        "exec_postrun",
        "output",
        "write_bw_log",
        "write_iolog",
        "read_iolog",
        "opendir",
        "cgroup",
        "uid",
        "include",
        "verify_state_load",
        "mem",
        "iomem",
        "ioscheduler",
        "profile",
        "lockfile",
        "hostname",
        "fill_device",
        "allow_mounted_write",
        "ignore_error",
        "continue_on_error",
        "stonewall",
        "wait_for",
        "error_dump",
        "number_ios",  # fio 3.33 hangs when it is time-based as well
        "chroot",
    ],
)
def test_options_that_reach_outside_are_refused(name):
    assert f"workload.options.{name}" in refused({name: "1"})


@pytest.mark.parametrize("name", ["directory", "runtime", "time_based", "create_only", "group_reporting"])
def test_options_that_the_study_decides_are_refused_inline(name):
    assert "is decided by the study" in refused({name: "1"})


@pytest.mark.parametrize(
    "value",
    [
        *("4k\n[evil]", "4k\nexec_prerun=id", "4k\r[x]", "\0", "ä", "a b", "x" * 600),
        *("$(id)", "`id`", "${HOME}", "$ncpus", "4k;id", "a'b", 'a"b', "(1)"),
    ],
)
def test_values_that_could_be_anything_else_are_refused(value):
    assert "workload.options.bs" in refused({"bs": value})


@pytest.mark.parametrize("name", ["/dev/sda", "../x", "a/b", "..", ".", "", "a:b", "a\\:b", "x\ny"])
def test_file_names_stay_in_the_directory(name):
    assert "must be a plain file name" in refused({"filename": name})


@pytest.mark.parametrize("value", ["$jobname/$filenum", "../$filenum", "..", "$HOME", "$jobnamex", "a b", ""])
def test_file_name_formats_stay_in_the_directory(value):
    assert "workload.options.filename_format" in refused({"filename_format": value})


def test_plain_names_and_formats_are_taken():
    options = {"filename": "data.bin", "filename_format": "$jobname.$jobnum.$filenum"}
    assert checked_options("o", options) == options


@pytest.mark.parametrize("engine", ["exec", "net", "external:/tmp/x.so", "sg", "null", "cpuio", "libpmem"])
def test_engines_that_do_no_file_io_are_refused(engine):
    assert "must be one of" in refused({"ioengine": engine})


@pytest.mark.parametrize(
    ("name", "value"),
    [("numjobs", 0), ("numjobs", 100000), ("nrfiles", "many"), ("nrfiles", -1), ("openfiles", 1.5)],
)
def test_counts_have_bounds(name, value):
    assert "must be a whole number from 1 to" in refused({name: value})


def test_a_near_name_is_suggested():
    assert "did you mean 'numjobs'" in refused({"numjob": 1})


@pytest.mark.parametrize("value", [None, [1], {"a": 1}])
def test_other_types_are_refused(value):
    assert "must be a string, a number or a boolean" in refused({"bs": value})


JOB = """
; a comment
[global]
rw=randread      ; another
bs=4k
directory=/mnt/x
runtime=60
time_based
[one]
size=64m
numjobs=2
[two]  # a third
rw = write
norandommap
filesize=1m
nrfiles=10
"""


def test_a_job_file_is_read():
    job = parse_job("job", JOB)
    assert job.common == {"rw": "randread", "bs": "4k"}
    assert job.sections == {
        "one": {"size": "64m", "numjobs": "2"},
        "two": {"rw": "write", "norandommap": "1", "filesize": "1m", "nrfiles": "10"},
    }
    assert job.replaced == ("directory", "runtime", "time_based")
    assert job.dataset_bytes == 2 * 64 * 2**20 + 10 * 2**20
    again = parse_job("job", job.text())
    assert (again.common, again.sections) == (job.common, job.sections)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has no job"),
        ("[global]\nbs=4k\n", "has no job"),
        ("bs=4k\n[a]\n", "must come after a section"),
        ("[a]\nrw=read\n[a]\n", "a second job 'a'"),
        ("[a]\nrw=read\n[global]\nbs=4k", r"a second \[global\]"),
        ("[/dev/sda]\nrw=read\n", "section '.*/dev/sda"),
        ("[../x]\nrw=read\n", "section"),
        ("[a\nrw=read\n", "section"),
        ("[a]\ninclude other.fio\n", "include other.fio"),
        ("[a]\nexec_prerun=id\n", "line 2: exec_prerun"),
        ("[a]\nfilename=/etc/passwd\n", "must be a plain file name"),
        ("[a]\nioengine=exec\n", "must be one of"),
        ("[a]\nbs=$(id)\n", "letters, digits"),
    ],
)
def test_mistakes_in_a_job_file_name_their_line(text, problem):
    with pytest.raises(StudyError, match=problem) as error:
        parse_job("workload.job = 'x.fio'", text)
    assert error.value.message.startswith("workload.job = 'x.fio'")
    assert "\n" not in error.value.message


@given(st.text(max_size=300))
def test_any_text_is_a_job_or_a_study_error(text):
    try:
        job = parse_job("job", text)
    except StudyError:
        return
    lines = job.text().splitlines()
    assert sum(line.startswith("[") for line in lines) == 1 + len(job.sections)


@given(
    st.dictionaries(st.sampled_from(["bs", "size", "rw", "filename", "exec_prerun"]), st.text(max_size=40))
)
def test_options_never_add_a_line(options):
    try:
        checked = checked_options("o", options)
    except StudyError:
        return
    text = FioJob(checked, {"load": {}}).text()
    assert len(text.splitlines()) == 2 + len(checked)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"size": "1g"}, 2**30),
        ({"size": "1g", "numjobs": "4"}, 4 * 2**30),
        ({"filename": "one", "size": "1g", "numjobs": "4"}, 2**30),
        ({"filesize": "16k", "nrfiles": "250", "numjobs": "4"}, 4 * 250 * 16384),
        ({"filesize": "16k", "nrfiles": "250", "size": "1m"}, 2**20),
        ({"size": "10%"}, None),
        ({"filesize": "4k-64k", "nrfiles": "10"}, None),
        ({}, None),
    ],
)
def test_the_size_of_the_data_is_known_where_it_can_be(options, expected):
    assert FioJob(options, {"a": {}}).dataset_bytes == expected


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_jobs_and_scale(name):
    one, four = preset_job(name, 1).dataset_bytes, preset_job(name, 4).dataset_bytes
    assert one is not None
    assert four == 4 * one
    checked_options("o", dict(preset_job(name, 1).common))


@pytest.mark.parametrize("name", [name for name in PRESETS if name.endswith("-heavy")])
def test_heavy_presets_are_two_and_a_half_times_the_default_memory(name):
    assert preset_job(name, 1).dataset_bytes == pytest.approx(2.5 * 256 * 2**20)


def test_scaling_many_files_keeps_their_size():
    assert preset_job("small-files-fsync", 0.1).common["nrfiles"] == "25"
    assert preset_job("small-files-fsync", 0.1).common["filesize"] == "16k"


def test_the_documentation_lists_what_is_allowed():
    text = (Path(__file__).parents[2] / "docs/howto/fio.md").read_text()
    listed = text.partition("<!-- allowed options")[2].partition("-->")[2].partition("<!-- end -->")[0]
    assert set(listed.split()) == set(ALLOWED)
    engines = text.partition("\nEngines: ")[2].partition(".\n")[0]
    assert set(engines.split(", ")) == set(ENGINES)
    for name in PRESETS:
        assert f"`{name.removesuffix('-heavy')}`" in text


@pytest.mark.parametrize("name", ["bs", "size", "iodepth", "rw"])
def test_what_is_no_switch_is_not_true(name):
    """`bs = true` would be blocks of one byte."""
    with pytest.raises(StudyError, match=f"o.{name} = true: must be a value"):
        checked_options("o", {name: True})
    assert SWITCHES < ALLOWED
