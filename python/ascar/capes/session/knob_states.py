"""Knobs before and after a session: whether they can be learnt, were put back, or are to stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.errors import AscarError, StudyError
from ascar.systems.keeper import Keeper

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.capes.session.study import KnobSection

OWNER = "ascar capes up"


def check_knobs(knobs: Mapping[str, KnobSection]) -> None:
    """Whether every knob is here, and stands within its range.

    Args:
        knobs: the knobs by their names on this machine.

    Raises:
        InputError: one is not known.
        StudyError: one stands elsewhere: the learner could not go back there.
    """
    if not knobs:
        return
    with Keeper(OWNER) as keeper:
        for name, knob in knobs.items():
            now = keeper.knob_read(name).value
            if knob.choices:
                allowed, is_fine = ", ".join(knob.choices), now in knob.choices
            else:
                low, high = knob.minimum or 0.0, knob.maximum or 0.0
                allowed, is_fine = f"{low:g} to {high:g}", not isinstance(now, str) and low <= now <= high
            if not is_fine:
                raise StudyError(
                    f"capes.knob {knob.name!r}: is {now} now, which is not among its values, {allowed}; "
                    "change minimum, maximum or choices so that it is"
                )


def left_changed(defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Knobs that do not stand where they stood before the session, with what they are now.

    Args:
        defaults: values by knob, as the agent found them.
    """
    found: dict[str, Any] = {}
    if not defaults:
        return found
    with Keeper(OWNER) as keeper:
        for knob, value in defaults.items():
            try:
                now = keeper.knob_read(knob).value
            except AscarError:
                continue  # its device is gone, and the knob with it
            if now != value:
                found[knob] = now
    return found


def keep_setting(setting: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Set what differs from before and is still there, to stay until `ascar restore`; what was set.

    Args:
        setting: values by knob.
        defaults: the initial setting.

    Raises:
        AscarError: the keeper refuses one; what it had set stays in its journal for `ascar restore`.
    """
    wanted = {knob: value for knob, value in setting.items() if defaults.get(knob) != value}
    # A scheduler brings its own queue depth, so it is set first.
    order = sorted(wanted, key=lambda knob: (not knob.endswith(".scheduler"), knob))
    kept: dict[str, Any] = {}
    if not order:
        return kept
    with Keeper(OWNER, hold=True) as keeper:
        for knob in order:
            value = wanted[knob]
            whole = round(value) if isinstance(value, float) else value
            kept[knob] = keeper.knob_write(knob, whole).effective
    return kept
