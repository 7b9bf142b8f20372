"""The command line, for errors that must be the same."""

from __future__ import annotations

import pytest

from ascar.cli import main


@pytest.fixture(autouse=True)
def _own_history(tmp_path, monkeypatch):
    monkeypatch.setenv("ASCAR_HISTORY", str(tmp_path / "default.sqlite"))


@pytest.fixture
def ascar_command(capfd):
    def run(*words) -> str:
        main([str(word) for word in words])
        return capfd.readouterr().err

    return run
