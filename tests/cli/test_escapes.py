"""What others wrote is shown and never acted on by the terminal: a load's last words, imports, nodes."""

from __future__ import annotations

import io
import json
import unicodedata

import pytest
from rich.table import Table
from rich.text import Text

from ascar.cli.console import VisibleConsole
from ascar.history import History
from ascar.render import visible
from ascar.results.trial import Failure, Purpose, Trial, TrialState
from ascar.space import Configuration, Space, integer
from ascar.study import Study

TITLE = "\x1b]0;owned\x07"
HOSTILE = f"{TITLE}\x1b[2J\x1b[31m\x9b5A\rspoofed\u202ehidden\x08\x00\udc80 end"
STUDY = '[study]\nname = "s"\nobjective = "maximize x"\nbudget = "1 min"\n[target]\nkind = "simulated"\n'


def acted_on(text: str) -> list[str]:
    return [sign for sign in text if unicodedata.category(sign) in ("Cc", "Cf", "Cs") and sign not in "\n\t"]


def test_every_control_character_becomes_visible():
    every = "".join(map(chr, [*range(0xA0), *range(0x2000, 0x2070), 0xFEFF, 0xD800, 0xE0041]))
    assert acted_on(visible(every)) == []
    assert visible("a\tb\n\u00e9 \u2581") == "a\tb\n\u00e9 \u2581"
    assert visible(visible(HOSTILE)) == visible(HOSTILE)


def test_a_console_on_a_terminal_shows_them_in_whatever_is_printed():
    table = Table("name")
    table.add_row(Text(HOSTILE))
    for printed in (HOSTILE, Text(HOSTILE, style="red"), table):
        out = io.StringIO()
        console = VisibleConsole(file=out, force_terminal=True, width=400, highlight=False)
        console.print(printed, markup=False)
        console.out(HOSTILE)
        said = out.getvalue()
        assert TITLE not in said
        for sign in ("\x1b]", "\x1b[2J", "\x9b", "\r", "\u202e", "\x08", "\x00", "\x07", "\udc80"):
            assert sign not in said
        assert "\\x1b]0;owned" in said


@pytest.fixture
def history(tmp_path, monkeypatch):
    path = tmp_path / "history.sqlite"
    monkeypatch.setenv("ASCAR_HISTORY", str(path))
    space = Space((integer("a", (1, 9), default=1),))
    with History(path) as history, history.begin(Study.parse(STUDY), space, {"node": HOSTILE}) as run:
        failure = Failure("load", HOSTILE, HOSTILE)
        for number in (1, 2):
            run.finish_trial(
                Trial(
                    number,
                    Configuration({"a": number}),
                    Purpose.DEFAULT,
                    TrialState.FAILED,
                    failure=failure,
                    reason=HOSTILE.replace("\udc80", ""),
                )
            )
    return path


@pytest.mark.parametrize(
    "arguments", [("show", "1"), ("show", "1", "--trial", "2"), ("ls",), ("show", "1", "--json")]
)
def test_commands_show_what_a_load_said(ascar, history, arguments):
    done = ascar("history", *arguments)
    assert done.status == 0, done.err
    assert acted_on(done.out + done.err) == []


def test_an_import_and_an_error_show_it_too(ascar, history, tmp_path):
    exported = tmp_path / "x.json"
    assert ascar("history", "export", "1", "--out", exported).status in (0, 2)
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({"runs": [{"format": "ascar-history", "version": TITLE}]}))
    done = ascar("history", "import", bad)
    assert done.status == 2
    assert acted_on(done.out + done.err) == []
    named = ascar("history", "show", TITLE)
    assert named.status == 2
    assert acted_on(named.out + named.err) == []
