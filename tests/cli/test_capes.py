"""`ascar capes game`, from the outside."""

from __future__ import annotations

import pytest


def test_the_document_keeps_to_its_schema(ascar):
    done = ascar("capes", "game", "--noise-sd", "0.1", "--runs", "2", "--algorithm", "random", "--json")
    assert done.status == 0, done.err
    found = done.document
    assert (found["noise"], found["delay"], found["runs"], found["success_rate"]) == (0.1, 3, 2, 0)
    assert found["ticks_median"] is None


def test_people_read_a_few_lines(ascar):
    done = ascar(
        "capes", "game", "--noise-sd", "50%", "--game", "thesis", "--algorithm", "sweep", "--runs", "3"
    )
    assert done.status == 0, done.err
    assert "3 of 3 runs (100%)" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--noise-sd", "much"), "--noise-sd = 'much'"),
        (("--noise-sd", "-1"), "--noise-sd = '-1'"),
        (("--noise-sd", "nan"), "--noise-sd = 'nan'"),
        (("--algorithm", "dqn"), "must be one of modern, classic, sweep, random"),
        (("--game", "easy"), "must be one of thesis, hard"),
        (("--delay", "9999"), "delay = 9999"),
    ],
)
def test_bad_input_is_refused_in_one_line(ascar, arguments, words):
    done = ascar("capes", "game", "--runs", "1", *arguments)
    assert done.status == 2
    assert words in done.error


@pytest.mark.parametrize("confidence", ["0", "0.4", "1", "nan", "95"])
def test_a_proof_needs_a_confidence_between_a_half_and_one(ascar, confidence):
    done = ascar("capes", "prove", "--confidence", confidence)
    assert done.status == 2
    assert "--confidence = " in done.error
    assert "must be from 0.5 to 0.999999" in done.error
