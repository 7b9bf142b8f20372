"""Manual pages and completions, read by what reads them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ascar.cli.front_page import COMMANDS
from command_tree import COMMANDS as TREE

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
ROLES = ("agent", "disk", "interface", "keeper", "load", "proxy")


def made(script: str, folder: Path) -> Path:
    subprocess.run([sys.executable, ROOT / "scripts" / script, folder], check=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made("manual.py", tmp_path_factory.mktemp("man"))


@pytest.fixture(scope="module")
def completions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made("completions.py", tmp_path_factory.mktemp("completions"))


def needed(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"needs {program}; install it")
    return found


def shown(page: Path) -> str:
    """A page as a terminal shows it, in one line, without overstriking."""
    words = [needed("groff"), "-man", "-ww", "-Tascii", "-rLL=1000n", "-P-cbou", page]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == "", f"{page.name}: {done.stderr}"
    return " ".join(done.stdout.split())


def test_every_command_has_a_page(pages: Path) -> None:
    expected = {"ascar.1", "ascard.1", *(f"ascar-{name}.1" for name in COMMANDS)}
    assert {page.name for page in pages.iterdir()} == expected | {f"ascard-{role}.1" for role in ROLES}


def test_a_page_has_the_sections_that_its_readers_look_for(pages: Path) -> None:
    for page in pages.iterdir():
        text = shown(page)
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"):
            assert f" {section} " in text, f"{page.name}: {section}"
        # As `man` links them: no space before the section's number.
        assert re.search(r"SEE ALSO (ascard?(-\w+)?\(1\),? )+", text), page.name
    front = shown(pages / "ascar.1")
    assert "EXAMPLES ascar doctor" in front
    for name in ("ASCAR_HISTORY", "ASCAR_NATS_URL", "/var/lib/ascar/journal", "/etc/ascar"):
        assert name in front


def test_what_the_page_says_of_the_environment_is_read(pages: Path) -> None:
    sources = [path.read_text() for path in (ROOT / "python/ascar").rglob("*.py")]
    for name in re.findall(r"ASCAR_[A-Z_]+", shown(pages / "ascar.1")):
        begin = re.sub("(CA|CERTIFICATE|KEY)$", "", name)
        assert any(f'"{name}' in text or f'"{begin}{{' in text for text in sources), name


def test_a_page_has_every_option_with_its_sentence(pages: Path) -> None:
    texts = {page.stem: shown(page) for page in pages.glob("ascar*.1")}
    for path, command in TREE.items():
        text = texts[f"ascar-{path.split()[1]}"]
        for option in command.params:
            for name in option.opts if option.param_type_name == "option" else ():
                assert name in text, f"{path} {name}"
            plain = " ".join((option.help or "").encode("ascii", "ignore").decode().split())
            assert plain.replace("`", "")[:40] in text.replace("`", "").replace("'", "") or "'" in plain, (
                plain
            )
    assert "[default: 300]" in texts["ascar-library"]
    assert "--state-dir" in texts["ascard-keeper"]
    assert "Through sudo it takes no options but --hold" in texts["ascard-keeper"]
    assert "ascard agent --config agent.toml --check" in texts["ascard-agent"]


def test_pages_are_of_the_binary_that_is_packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one of a checkout may have fewer commands, or more."""
    other = tmp_path / "ascard"
    other.write_text("#!/bin/sh\nprintf 'Does it.\\n\\nCommands:\\n  other  Do it\\n'\n")
    other.chmod(0o755)
    monkeypatch.setenv("ASCARD", str(other))
    names = {page.name for page in made("manual.py", tmp_path / "man").iterdir()}
    assert {name for name in names if name.startswith("ascard")} == {"ascard.1", "ascard-other.1"}
    assert "other" in (made("completions.py", tmp_path / "completions") / "ascard.bash").read_text()
    assert "keeper" not in (tmp_path / "completions/ascard.bash").read_text()


def test_text_that_looks_like_a_request_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import manual

    hostile = ".so /etc/passwd\n'br\nC:\\new \\fB-x \\n\n.\\\" gone"
    page = tmp_path / "hostile.1"
    page.write_text("\n".join([*manual.begin("x", "y"), ".SH Z", *manual.literal(hostile.split("\n"))]))
    text = shown(page)
    assert ".so /etc/passwd" in text
    assert "'br C:\\new \\fB-x \\n .\\\" gone" in text


# Completions: each shell is asked what it would offer.

BASH = """
source {folder}/ascard.bash
COMP_WORDS=({words}) COMP_CWORD=$(({count} - 1))
_ascard
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
_describe() {{ print -rl -- ${{found%%:*}} }}
_files() {{ print files }}
words=({words}) CURRENT={count} PREFIX="{last}"
source {folder}/_ascard
"""
CASES = [
    ([""], {"agent", "disk", "interface", "keeper", "load", "proxy"}),
    (["keeper", "--"], {"--user", "--hold", "--restore", "--state-dir"}),
    (["load", "--"], {"--personality", "--seconds", "--describe"}),
]


@pytest.mark.parametrize(("words", "expected"), CASES)
def test_bash_completes_ascard(completions: Path, words: list[str], expected: set[str]) -> None:
    quoted = " ".join(f"'{word}'" for word in ["ascard", *words])
    script = BASH.format(folder=completions, words=quoted, count=len(words) + 1)
    done = subprocess.run([needed("bash"), "-c", script], capture_output=True, text=True, check=True)
    assert expected <= set(done.stdout.split())


@pytest.mark.parametrize(("words", "expected"), CASES)
def test_zsh_completes_ascard(completions: Path, words: list[str], expected: set[str]) -> None:
    quoted = " ".join(f"'{word}'" for word in ["ascard", *words])
    script = ZSH.format(folder=completions, words=quoted, count=len(words) + 1, last=words[-1])
    done = subprocess.run([needed("zsh"), "-fc", script], capture_output=True, text=True, check=True)
    assert expected <= set(done.stdout.split()), done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize(("words", "expected"), CASES)
def test_fish_completes_ascard(
    completions: Path, words: list[str], expected: set[str], tmp_path: Path
) -> None:
    line = " ".join(["ascard", *words])
    script = f"source {completions}/ascard.fish; complete -C '{line}'"
    done = subprocess.run(
        [needed("fish"), "--no-config", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert expected <= {row.partition("\t")[0] for row in done.stdout.splitlines()}, done.stderr


def test_every_option_of_ascard_is_offered(completions: Path) -> None:
    text = (completions / "ascard.bash").read_text()
    for role in ROLES:
        said = subprocess.run(
            [Path(sys.executable).with_name("ascard"), role, "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        listed = re.findall(r"^  (?:-\w, )?(--[\w-]+)", said.stdout.partition("\nExamples:")[0], re.MULTILINE)
        [line] = [line for line in text.splitlines() if line.strip().startswith(f"{role})")]
        assert set(listed) == set(re.findall(r"--[\w-]+", line))


# `ascar` is asked for its own words, at each key.
BASH_OF_ASCAR = """
source {folder}/ascar.bash
COMP_WORDS=({words}) COMP_CWORD=$(({count} - 1))
$(complete -p ascar | sed 's/.*-F \\([^ ]*\\).*/\\1/') ascar
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
CASES_OF_ASCAR = [
    (["ca"], {"capes"}),
    (["tune", "--bud"], {"--budget"}),
    (["history", ""], {"ls", "show", "export", "import", "purge"}),
]


def beside_python() -> dict[str, str]:
    """An environment in whose path this `ascar` is the first."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize(("words", "expected"), CASES_OF_ASCAR)
def test_bash_completes_ascar(completions: Path, words: list[str], expected: set[str]) -> None:
    quoted = " ".join(f"'{word}'" for word in ["ascar", *words])
    script = BASH_OF_ASCAR.format(folder=completions, words=quoted, count=len(words) + 1)
    done = subprocess.run(
        [needed("bash"), "-c", script], capture_output=True, text=True, check=True, env=beside_python()
    )
    assert expected <= set(done.stdout.split()), done.stderr
    assert "measure" not in done.stdout


@pytest.mark.parametrize(("words", "expected"), CASES_OF_ASCAR)
def test_fish_completes_ascar(
    completions: Path, words: list[str], expected: set[str], tmp_path: Path
) -> None:
    script = f"source {completions}/ascar.fish; complete -C '{' '.join(['ascar', *words])}'"
    done = subprocess.run(
        [needed("fish"), "--no-config", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=beside_python() | {"HOME": str(tmp_path)},
    )
    offered = {row.partition("\t")[0] for row in done.stdout.splitlines()}
    assert expected <= offered, done.stderr
    assert "measure" not in offered


# Beside it: what a package puts into the path.
FIRST_OF_ZSH = """
fpath=({folder} $fpath)
autoload -Uz compinit && compinit -D -u
_arguments() {{ print -rl -- "$@" }}
words=(ascar ca) CURRENT=2 PREFIX=ca
$_comps[ascar]
"""


def test_zsh_completes_ascar_at_the_first_time_that_it_is_asked(completions: Path) -> None:
    """What compinit finds is loaded by the first key, which shall complete as well as the next."""
    script = FIRST_OF_ZSH.format(folder=completions)
    done = subprocess.run(
        [needed("zsh"), "-fc", script], capture_output=True, text=True, check=False, env=beside_python()
    )
    assert "capes" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_ascar_is_one_that_its_shell_reads(completions: Path, shell: str) -> None:
    name = {"bash": "ascar.bash", "zsh": "_ascar", "fish": "ascar.fish"}[shell]
    done = subprocess.run(
        [needed(shell), "-n", completions / name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stderr == ""
