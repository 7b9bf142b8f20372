"""`{parameter}` in the words of a study: values take its place.

A word that names a parameter which does not apply in a configuration has no text, and is left out. `{{word}}`
stands for `{word}`. Braces around anything but a name are text.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Literal

from ascar.errors import SpaceError, StudyError
from ascar.space.parameter import value_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ascar.space import Parameter, Value

Booleans = Literal["true/false", "yes/no", "on/off", "1/0"]
"""How true and false are written."""

Words = tuple[str | tuple[str, ...], ...]
"""A command: its words; those in a list of their own are left out together."""

_PLACE = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}", re.ASCII)
_TRUE: Final = ("true", "yes", "on", "1")
_FALSE: Final = ("false", "no", "off", "0")


def names_in(text: str) -> set[str]:
    """The names that stand in braces."""
    return {match[2] for match in _PLACE.finditer(text) if match[2]}


def names_of(words: Words) -> set[str]:
    """The names that stand in braces in a command."""
    return {name for word in flat(words) for name in names_in(word)}


def flat(words: Words) -> list[str]:
    """Every word of a command."""
    return [one for word in words for one in ((word,) if isinstance(word, str) else word)]


def filled(text: str, values: Mapping[str, str]) -> str | None:
    """The text with values in it; None where a name has none."""
    if not names_in(text) <= values.keys():
        return None
    return _PLACE.sub(lambda match: values[match[2]] if match[2] else f"{{{match[1]}}}", text)


def command_of(words: Words, values: Mapping[str, str]) -> list[str]:
    """A command with values in it; what names a parameter that does not apply is left out."""
    command: list[str] = []
    for word in words:
        parts = [filled(one, values) for one in ((word,) if isinstance(word, str) else word)]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            command += known
    return command


def template_filled(text: str, values: Mapping[str, str], known: Collection[str]) -> str:
    """A template with values in it: names of no parameter stay, lines of those that do not apply go.

    Args:
        text: the template.
        values: the values, as text.
        known: all names, of parameters that apply and of those that do not.
    """
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        named = names_in(line) & set(known)
        if named <= values.keys():
            lines.append(_PLACE.sub(lambda match: _kept(match, values), line))
    return "".join(lines)


def _kept(match: re.Match[str], values: Mapping[str, str]) -> str:
    if match[1]:
        return f"{{{match[1]}}}" if match[1] in values else match[0]
    return values.get(match[2], match[0])


def check_names(key: str, names: Collection[str], known: Sequence[str]) -> None:
    """Refuse a name in braces that means nothing.

    Raises:
        StudyError: there is one.
    """
    for name in sorted(names):
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {{{near[0]}}}?" if near else ""
            raise StudyError(
                f"{key}: names {{{name}}}, which is no parameter of [space.parameters] and none of "
                f"{{directory}} and {{pid}}; write {{{{{name}}}}} for the text itself{hint}"
            )


def texts_of(configuration: Mapping[str, Value], booleans: Booleans) -> dict[str, str]:
    """The values of a configuration as they are written."""
    true, false = booleans.split("/")
    return {
        name: (true if value else false) if isinstance(value, bool) else value_text(value)
        for name, value in configuration.items()
    }


def value_from(parameter: Parameter, text: str) -> Value:
    """The value of a parameter that a text tells.

    Raises:
        SpaceError: it tells none.
    """
    word = text.strip().strip("\"'")
    if parameter.kind == "boolean":
        if word.lower() not in (*_TRUE, *_FALSE):
            raise SpaceError(f"{parameter.name} = {word[:80]!r}: must be true or false")
        return word.lower() in _TRUE
    return parameter.parse(word)


def pattern_of(text: str) -> re.Pattern[str] | None:
    """What finds a value in what `filled` made of a text with one name; None where it has none or several."""
    places = [match for match in _PLACE.finditer(text) if match[2]]
    if len(places) != 1 or any(match[1] for match in _PLACE.finditer(text)):
        return None
    (place,) = places
    return re.compile(f"{re.escape(text[: place.start()])}(.*){re.escape(text[place.end() :])}", re.DOTALL)
