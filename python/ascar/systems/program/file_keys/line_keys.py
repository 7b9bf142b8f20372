"""Keys of formats with one setting a line: `.ini`, `.env`, and the plain `.conf` of servers."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.space import Value

_Found = TypeVar("_Found")
_SECTION = re.compile(r"\s*\[([^\]]*)\]\s*(?:[#;].*)?$")
_BLOCKS = re.compile(r"[;{]\s*(?:#.*)?$")


def with_conf_key(text: str, key: str, value: Value) -> str:
    """`key value`, `key = value` or `key value;`, as servers write it (redis.conf, nginx.conf).

    A key that is not there is added as a last line, unless the file has blocks.

    Raises:
        ValueError: several lines set the key, or it cannot be told where it belongs.
    """
    lines = text.splitlines(keepends=True)
    found = _conf_lines(lines, key)
    if found:
        at, (before, _, after) = _single(found, key)
        lines[at] = f"{before}{_one_line(value)}{after}"
        return "".join(lines)
    if any(_BLOCKS.search(line.rstrip("\r\n")) for line in lines if not line.lstrip().startswith("#")):
        raise ValueError(f"{key!r} is not set in it, and the file has blocks; add a line with any value")
    assigns = any(re.match(r"\s*[\w.-]+\s*=", line) for line in lines)
    return _appended(lines, f"{key}{' = ' if assigns else ' '}{_one_line(value)}")


def conf_key_in(text: str, key: str) -> str | None:
    """The value of a key.

    Raises:
        ValueError: several lines set it.
    """
    found = _conf_lines(text.splitlines(keepends=True), key)
    return _single(found, key)[1][1] if found else None


def with_ini_key(text: str, key: str, value: Value) -> str:
    """`key = value` below `[section]`; the key is "section.key", or "key" above all sections.

    Raises:
        ValueError: several lines set the key.
    """
    lines = text.splitlines(keepends=True)
    found = list(_ini_lines(lines, key))
    if found:
        at, match = _single(found, key)
        lines[at] = f"{match['before']}{_one_line(value)}{match['after']}"
        return "".join(lines)
    sections = [name for line in lines if (name := _section_of(line)) is not None]
    section = next(
        (name for name in sorted(sections, key=len, reverse=True) if key.startswith(f"{name}.")), None
    )
    if section is None:
        section, _, name = key.rpartition(".")
        if section:
            return _appended(lines, f"[{section}]{_newline(lines)}{name} = {_one_line(value)}")
    else:
        name = key.removeprefix(f"{section}.")
    at = _end_of(lines, section)
    fresh = f"{name} = {_one_line(value)}{_newline(lines)}"
    if at and not lines[at - 1].endswith("\n"):
        lines[at - 1] += _newline(lines)
    return "".join([*lines[:at], fresh, *lines[at:]])


def ini_key_in(text: str, key: str) -> str | None:
    """The value of a key.

    Raises:
        ValueError: several lines set it.
    """
    found = list(_ini_lines(text.splitlines(keepends=True), key))
    return _single(found, key)[1]["value"] if found else None


def with_env_key(text: str, key: str, value: Value) -> str:
    """`KEY=value`, as shells and systemd's EnvironmentFile read it.

    Raises:
        ValueError: several lines set the key.
    """
    lines = text.splitlines(keepends=True)
    found = [(at, match) for at, line in enumerate(lines) if (match := _env_line(line, key))]
    written = shlex.quote(_one_line(value))
    if not found:
        return _appended(lines, f"{key}={written}")
    at, match = _single(found, key)
    if match["value"][:1] == '"' and not re.search(r'["\\$`]', _one_line(value)):
        written = f'"{_one_line(value)}"'
    lines[at] = f"{match['before']}{written}{match['after']}"
    return "".join(lines)


def env_key_in(text: str, key: str) -> str | None:
    """The value of a key, without its quotes.

    Raises:
        ValueError: several lines set it, or its quotes do not close.
    """
    found = [match for line in text.splitlines(keepends=True) if (match := _env_line(line, key))]
    if not found:
        return None
    return "".join(shlex.split(_single(list(enumerate(found)), key)[1]["value"]))


def _conf_lines(lines: list[str], key: str) -> list[tuple[int, tuple[str, str, str]]]:
    """The lines that set a key: what stands before the value, the value, and what stands after it."""
    start = re.compile(rf"\s*{re.escape(key)}(?:\s*=\s*|[ \t]+)")
    found: list[tuple[int, tuple[str, str, str]]] = []
    for at, line in enumerate(lines):
        match = start.match(line)
        if match is None:
            continue
        end = _conf_value_end(line, match.end(), key)
        found.append((at, (match[0], line[match.end() : end], line[end:])))
    return found


def _conf_value_end(line: str, at: int, key: str) -> int:
    """Where a value ends: before ";", before " #", and before the end of the line; quotes keep all of them.

    Raises:
        ValueError: the line goes on after ";", or opens a block.
    """
    end, quote = at, ""
    while at < len(line):
        sign = line[at]
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign == ";" or (sign == "#" and line[at - 1] in " \t"):
            break
        at += 1
        if sign not in " \t\r\n":
            end = at
    rest = line[at:].lstrip(";").strip()
    if (rest and not rest.startswith("#")) or line[:end].endswith("{"):
        raise ValueError(f"{key!r} shares its line with something else; give it a line of its own")
    return end


def _ini_line(line: str, key: str) -> re.Match[str] | None:
    return re.fullmatch(
        rf"(?P<before>\s*{re.escape(key)}\s*[=:][ \t]*)(?P<value>[^\r\n]*?)"
        r"(?P<after>(?:[ \t]+[#;][^\r\n]*|[ \t]*)[\r\n]*)",
        line,
    )


def _env_line(line: str, key: str) -> re.Match[str] | None:
    return re.fullmatch(
        rf"(?P<before>\s*(?:export\s+)?{re.escape(key)}=)"
        r"(?P<value>\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s#]*)(?P<after>\s*(?:#[^\r\n]*)?[\r\n]*)",
        line,
    )


def _ini_lines(lines: list[str], key: str) -> Iterator[tuple[int, re.Match[str]]]:
    section = ""
    for at, line in enumerate(lines):
        name = _section_of(line)
        if name is not None:
            section = name
        elif not section or key.startswith(f"{section}."):
            match = _ini_line(line, key.removeprefix(f"{section}.") if section else key)
            if match:
                yield at, match


def _section_of(line: str) -> str | None:
    match = _SECTION.match(line.rstrip("\r\n"))
    return None if match is None else match[1].strip()


def _end_of(lines: list[str], section: str) -> int:
    """The number of the line before which a section ends, blank lines and comments left after it."""
    inside, end = not section, 0
    for at, line in enumerate(lines):
        name = _section_of(line)
        if name is not None:
            inside = name == section
        if inside and (name is not None or (line.strip() and line.lstrip()[0] not in "#;")):
            end = at + 1
    return end


def _single(found: list[tuple[int, _Found]], key: str) -> tuple[int, _Found]:
    if len(found) > 1:
        places = ", ".join(str(at + 1) for at, _ in found)
        raise ValueError(f"{key!r} is set in several places ({places}); leave one")
    return found[0]


def _one_line(value: Value) -> str:
    written = str(value)
    if not written.isprintable():
        raise ValueError(f"{written[:40]!r} does not fit in a line")
    return written


def _newline(lines: list[str]) -> str:
    return "\r\n" if lines and lines[0].endswith("\r\n") else "\n"


def _appended(lines: list[str], line: str) -> str:
    end = _newline(lines)
    text = "".join(lines)
    between = end if text and not text.endswith("\n") else ""
    return f"{text}{between}{line}{end}"
