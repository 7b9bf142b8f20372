"""The line of progress: rewritten on a terminal, wiped at its end, nothing when quiet or over at once."""

from __future__ import annotations

import sys

import pytest

from ascar.cli.progress_line import AFTER_TWO_SECONDS, progress_line


@pytest.mark.parametrize(
    ("first_s", "quiet", "written"),
    [
        (0.0, False, "\r\033[K3 of 9\r\033[K"),
        (AFTER_TWO_SECONDS, False, "\r\033[K"),
        (0.0, True, ""),
    ],
)
def test_on_a_terminal(capsys, monkeypatch, first_s, quiet, written):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress_line("{} of 9".format, first_s=first_s, quiet=quiet) as show:
        show(3)
    assert capsys.readouterr().err == written


def test_elsewhere_a_line_comes_now_and_then(capsys):
    with progress_line("{} of 9".format, first_s=0.0) as show:
        show(3)
    assert capsys.readouterr().err == ""
