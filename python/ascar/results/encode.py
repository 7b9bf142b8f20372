"""Results as JSON values."""

from __future__ import annotations

from typing import Any

import msgspec

from ascar.outcome import json_ready


def encoded(result: msgspec.Struct) -> dict[str, Any]:
    """A result as what strict JSON can say: NaN and infinities are null."""
    return json_ready(msgspec.to_builtins(result, str_keys=True, enc_hook=json_ready))
