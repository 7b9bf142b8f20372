"""HTML that is escaped unless said otherwise: what a user wrote can never become markup."""

from __future__ import annotations

from html import escape

_VOID = frozenset({"meta", "br", "hr"})


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def text(value: object) -> Html:
    """A value as HTML: markup stays, everything else is escaped."""
    if isinstance(value, Html):
        return value
    # Control characters and lone surrogates, from programs' output, have no place in HTML.
    plain = str(value).encode("utf-8", "replace").decode()
    plain = "".join(
        letter if letter in "\n\t" or letter.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for letter in plain
    )
    return Html(escape(plain))


def tag(name: str, /, *content: object, **attributes: str | None) -> Html:
    """An element; `class_` stands for class, "_" for "-"; attributes that are None are left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{each(*content)}</{name}>")


def each(*content: object) -> Html:
    """Contents one after the other."""
    return Html("".join(text(item) for item in content))
