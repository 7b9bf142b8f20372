"""Who may say and hear what on a message server of our own: each user no more than its role needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.messaging.rule_subjects import ANY, FIND, VERBS, ask, beat
from ascar.messaging.server_config import User
from ascar.messaging.subjects import token

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def session_users(session: str, agents: Mapping[str, str]) -> list[User]:
    """The users of a session of CAPES (docs/capes-protocol.md, Accounts and permissions).

    Args:
        session: the name of the session.
        agents: the node of each agent, by the agent's user.

    Raises:
        InputError: a name cannot stand in a subject.
    """
    start = f"ascar.capes.{token('session', session)}"

    def to(*names: str) -> tuple[str, ...]:
        return tuple(f"{start}.{name}" for name in names)

    def told(user: str) -> tuple[str, ...]:
        return (*to("ticks", "outcomes", "events", "learner", "session"), f"_INBOX.{user}.>")

    asked = to("agents.*.*", "actions.*", "history.*", "control.*.*")
    turns = to(*(f"control.session.{op}" for op in ("status", "mode", "restore", "set")))
    learns = to("actions.learner", "history.learner", "control.learner.status", "learner")
    return [
        *(
            User(user, to(f"agents.{token('node', node)}.*"), to(f"nodes.{node}", "nodes.all"))
            for user, node in agents.items()
        ),
        User("interface", (*to("nodes.*", "ticks", "outcomes", "events"), "_INBOX.>"), asked),
        User("learner", learns, told("learner")),
        User("session", (*turns, *to("session")), told("session")),
        User("operator", to("control.operator.*"), ("_INBOX.operator.>",)),
        User("viewer", to("history.viewer"), told("viewer")),
    ]


def manager_user(name: str = "manager") -> User:
    """The manager's account: may ask all controllers, and hear them."""
    asks = tuple(ask(verb, ANY) for verb in VERBS)
    return User(name, publish=(FIND, *asks), subscribe=(beat(ANY), f"_INBOX.{name}.>"))


def controller_user(name: str, controllers: Iterable[str] = (ANY,)) -> User:
    """An account of controllers: may hear what they are asked, answer, and say that they are there."""
    named = tuple(controllers)
    return User(
        name,
        publish=tuple(beat(one) for one in named),
        subscribe=(FIND, *(ask(ANY, one) for one in named)),
    )
