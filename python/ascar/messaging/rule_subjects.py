"""Subjects of congestion rules: where a manager asks controllers, and where they say that they are there."""

from __future__ import annotations

from ascar.messaging.subjects import subject

ANY = "*"
VERBS = ("load", "renew", "keep", "back", "stop", "show", "record", "read")
"""What a manager may ask of a controller."""
FIND = subject("ascar", "rules", "find")
"""Where all controllers listen."""


def ask(verb: str, controller: str) -> str:
    """Where one controller listens; the verb is one of `VERBS`."""
    return subject("ascar", "rules", verb, controller)


def beat(controller: str) -> str:
    """Where a controller says, tick by tick, that it is there."""
    return subject("ascar", "rules", "beat", controller)
