"""Each parser has a corpus and reads all of it, among it what once made one fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from parsers import PARSERS

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_a_parser_reads_its_corpus(name):
    inputs = sorted((CORPUS / name).iterdir())
    assert inputs
    for path in inputs:
        PARSERS[name].feed(path.read_bytes())
    PARSERS[name].feed(b"")


def test_the_corpora_are_those_of_the_parsers_and_small():
    assert {path.name for path in CORPUS.iterdir()} == set(PARSERS)
    assert sum(path.stat().st_size for path in CORPUS.glob("*/*")) < 80_000
