"""Subjects: words with dots between them, of which names that people give are single words."""

from __future__ import annotations

import re

from ascar.errors import InputError

_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,64}")


def token(what: str, text: str) -> str:
    """A name that may stand in a subject.

    Args:
        what: the thing that the name stands for, for the message.
        text: the name.

    Raises:
        InputError: it has other signs than letters, digits, - and _, or more than 64.
    """
    if not _TOKEN.fullmatch(text):
        raise InputError(f"{what} = {text[:80]!r}: must be 1 to 64 letters, digits, - or _")
    return text


def subject(*words: str) -> str:
    """The subject of these words: each a token, or the wildcard `*`; the last may be `>`."""
    assert words, "a subject has a word"
    last = len(words) - 1
    for at, word in enumerate(words):
        assert _TOKEN.fullmatch(word) or word == "*" or (word == ">" and at == last), word
    return ".".join(words)
