"""Completions of bash, zsh and fish: of `ascar` as its parser offers them, of `ascard` from its help pages.

    python scripts/completions.py DIRECTORY    writes NAME.bash, _NAME and NAME.fish for each

The scripts for `ascar` ask it at each key; those for `ascard` hold its commands and options.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from command_help import help_of_ascard, rows_of, section_of, write_files

_NAME = re.compile(r"--[\w-]+|^\w+")
_SHELLS = {"bash": "{}.bash", "zsh": "_{}", "fish": "{}.fish"}


def files() -> dict[str, str]:
    """Every file by its name."""
    roles = dict(_rows())
    made = {_SHELLS[shell].format("ascar"): _of_ascar(shell) for shell in _SHELLS}
    options = {role: _rows(role) for role in roles if not role.startswith("-")}
    made["ascard.bash"] = _bash(roles, options)
    made["_ascard"] = _zsh(roles, options)
    made["ascard.fish"] = _fish(roles, options)
    return made


def _of_ascar(shell: str) -> str:
    command = Path(sys.executable).with_name("ascar")
    done = subprocess.run(
        [command],
        env={**os.environ, "_ASCAR_COMPLETE": f"source_{shell}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return _called_at_once(f"{done.stdout.strip()}\n") if shell == "zsh" else f"{done.stdout.strip()}\n"


def _called_at_once(script: str) -> str:
    """A script that zsh loads when it first needs it: it completes then, too, and not only the next time."""
    end = "compdef _ascar_completion ascar"
    assert script.endswith(f"\n{end}\n"), "the parser's script registers its function last"
    called = "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n  _ascar_completion\nelse\n  {end}\nfi\n"
    return script.removesuffix(f"{end}\n") + called.format(end=end)


def _rows(*words: str) -> list[tuple[str, str]]:
    """The commands and options that a help page describes, each with its sentence."""
    text = help_of_ascard(*words)
    rows = rows_of(section_of(text, "Commands")) + rows_of(section_of(text, "Options"))
    return [(_NAME.findall(names)[0], said.rstrip(".")) for names, said in rows]


def _bash(roles: dict[str, str], options: dict[str, list[tuple[str, str]]]) -> str:
    cases = "\n".join(
        f'        {role}) words="{" ".join(name for name, _ in rows)}" ;;' for role, rows in options.items()
    )
    return f"""\
_ascard() {{
    local words="{" ".join(roles)}"
    [ "$COMP_CWORD" -gt 1 ] && case ${{COMP_WORDS[1]}} in
{cases}
        *) words="" ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _ascard ascard
"""


def _zsh(roles: dict[str, str], options: dict[str, list[tuple[str, str]]]) -> str:
    def listed(rows: list[tuple[str, str]]) -> str:
        return " ".join(_quoted(f"{name}:{said}") for name, said in rows)

    cases = "\n".join(f"        {role}) found=({listed(rows)}) ;;" for role, rows in options.items())
    return f"""\
#compdef ascard
local -a found
if (( CURRENT == 2 )); then
    found=({listed(list(roles.items()))})
else
    case $words[2] in
{cases}
    esac
fi
if [[ $PREFIX == -* ]] || (( CURRENT == 2 )); then
    _describe -o ascard found
else
    _files
fi
"""


def _fish(roles: dict[str, str], options: dict[str, list[tuple[str, str]]]) -> str:
    lines = [
        f"complete -c ascard -n __fish_use_subcommand -f -a {name} -d {_quoted(said)}"
        for name, said in roles.items()
        if not name.startswith("-")
    ]
    lines += [
        f"complete -c ascard -n '__fish_seen_subcommand_from {role}' -l {name[2:]} -d {_quoted(said)}"
        for role, rows in options.items()
        for name, said in rows
        if name.startswith("--")
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A word that all three shells read alike: each has its own way to put a quote into quotes."""
    return "'" + text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}") + "'"


if __name__ == "__main__":
    sys.exit(write_files(files))
