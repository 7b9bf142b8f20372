"""What commands of the documentation print is written into its pages; the pages that have none say why."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
COMMAND = re.compile(r"^    (?:sudo (?:-E env PATH=\$PATH )?|\.venv/bin/)?ascard? [a-z-]", re.MULTILINE)
PAGE = """\
<!-- run -->

    cat >words <<'END'
    one

      two
    END
    wc -l <words
    printf '%s\\n' \\
        three

Text.

<!-- output: 1 + 1 lines -->

    old

More.
"""


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import outputs

    return outputs


def test_a_page_with_commands_runs_them_or_says_why_not(outputs: Any) -> None:
    pages = {str(page.relative_to(DOCS)): page.read_text() for page in DOCS.rglob("*.md")}
    marked = {str(page.relative_to(DOCS)) for page in outputs.marked_pages(DOCS)}
    have_commands = {name for name, text in pages.items() if COMMAND.search(text)}
    excused = [name for names in outputs.NOT_RUN.values() for name in names]
    assert sorted(have_commands - marked) == sorted(excused), "give a page its marks, or the reason"


def test_commands_are_given_their_lines_and_what_they_print_is_shown(outputs: Any) -> None:
    page = outputs.with_outputs(PAGE)
    assert "\n    3\n    three\n" in page
    assert "old" not in page
    assert page.startswith(PAGE.partition("<!-- output")[0])


def test_commands_that_measure_go_before_other_work(outputs: Any, tmp_path: Path) -> None:
    before = os.sched_getscheduler(0)
    policy = "python3 -c 'import os; print(os.sched_getscheduler(0))'"
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        pytest.skip("needs the right to real-time scheduling, as root has it")
    finally:
        os.sched_setscheduler(0, before, os.sched_param(0))
    measured = outputs.ran(f"ascar measure --help >/dev/null; {policy}", str(tmp_path))
    assert measured == [str(os.SCHED_RR)]
    assert outputs.ran(policy, str(tmp_path)) == [str(before)]


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ("<!-- output -->\n\n    x\n", "an output without commands before it"),
        ("<!-- run -->\n\ntext\n", "no indented block follows the mark"),
        ("<!-- run -->\n\n    false\n", "false: exit status 1"),
        ("<!-- run -->\n\n    cat <<'END' && no-such-program\n    x\n", "exit status 127"),
    ],
)
def test_wrong_marks_and_commands_that_fail_are_named(outputs: Any, page: str, wrong: str) -> None:
    with pytest.raises(outputs.OutputError, match=wrong):
        outputs.with_outputs(page)
