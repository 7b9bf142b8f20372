"""Work per second from rounds of different work amounts (WPS; Li's thesis, section 4.2.1, eq. 4.1-4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar import _core
from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar._core import Speed
    from ascar.pilot.round import Round


def speed_of(rounds: Sequence[Round], confidence: float = 0.95) -> Speed | None:
    """The speed that rounds of different work amounts tell; None where they make no rising line.

    Raises:
        InputError: a round did no work or took no time, or the confidence is impossible.
    """
    pairs = [(done.work_amount, done.seconds) for done in rounds if done.work_amount is not None]
    try:
        return _core.speed_of(pairs, confidence)
    except ValueError as error:
        raise InputError(f"rounds: {error}") from error
