"""What an answer that is a refusal becomes."""

from __future__ import annotations

from ascar.errors import MessagingError


class RequestRefused(MessagingError):
    """The other side was reached, and will not do it.

    Args:
        subject: the subject of the request.
        reason: the reason in the responder's words.
    """

    def __init__(self, subject: str, reason: str) -> None:
        super().__init__(f"{subject}: refused: {reason}")
        self.reason = reason
