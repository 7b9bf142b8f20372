"""Messages: JSON objects of a known kind and version, strictly checked, of limited size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ascar import typed
from ascar.errors import MessagingError

if TYPE_CHECKING:
    from types import UnionType

MESSAGE_BYTES_MAX = 1 << 20
"""The largest payload, that of servers' default: NATS refuses more."""
_REASON_MAX = 2_000

Kind = TypeVar("Kind", bound="Message")


class Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="message"):
    """What all messages derive from.

    A message names its kind and version in the field "message". A subclass sets them:
    `class Hello(Message, frozen=True, tag="hello/1"): ...`. Unknown fields, another kind, another version and
    fields of a wrong type are all refused when it is read.
    """


class Refusal(Message, frozen=True, tag="refusal/1"):
    """The answer of a responder that will not do what it was asked.

    Attributes:
        reason: the reason in one line.
    """

    reason: str

    @classmethod
    def of(cls, reason: str) -> Refusal:
        """With a reason that fits."""
        return cls(reason=" ".join(reason.split())[:_REASON_MAX])


def encode(message: Message) -> bytes:
    """The payload of a message.

    Raises:
        MessagingError: it is too large.
    """
    payload = msgspec.json.encode(message)
    if len(payload) > MESSAGE_BYTES_MAX:
        raise MessagingError(
            f"message {_tag(type(message))}: {len(payload)} bytes; at most {MESSAGE_BYTES_MAX}"
        )
    return payload


def decode(payload: bytes, kind: type[Kind] | UnionType) -> Any:
    """The message in a payload.

    Args:
        payload: the payload as it came.
        kind: a message class, or a union of several.

    Raises:
        MessagingError: too large, no JSON, or no message of these kinds; says which field is wrong.
    """
    if len(payload) > MESSAGE_BYTES_MAX:
        raise MessagingError(f"message of {len(payload)} bytes: at most {MESSAGE_BYTES_MAX} are read")
    try:
        return typed.decode(payload, kind)
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        RecursionError,
    ) as error:
        raise MessagingError(f"message: {str(error)[:300]}; is the sender of the same version?") from None


def _tag(kind: type[Message]) -> str:
    return str(kind.__struct_config__.tag)
