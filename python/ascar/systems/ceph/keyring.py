"""Keys by which the daemons and users of a cluster know each other (cephx)."""

from __future__ import annotations

import base64
import secrets
import struct
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_CAPABILITIES = {
    "mon": {"mon": "allow *"},
    "mgr": {"mon": "allow profile mgr", "osd": "allow *"},
    "osd": {"mon": "allow profile osd", "mgr": "allow profile osd", "osd": "allow *"},
    "client": {"mon": "allow *", "mgr": "allow *", "osd": "allow *"},
}
_AES, _KEY_BYTES = 1, 16  # Ceph's CEPH_CRYPTO_AES, and the length of its keys


def keyring_text(names: Sequence[str]) -> str:
    """A keyring with a new key and the usual capabilities for each name, such as "osd.0".

    A key is Ceph's CryptoKey: its type, when it was made, its length and its bytes (src/auth/Crypto.h).
    """
    lines: list[str] = []
    for name in names:
        head = struct.pack("<HIIH", _AES, int(time.time()), 0, _KEY_BYTES)
        key = base64.b64encode(head + secrets.token_bytes(_KEY_BYTES)).decode()
        lines += [f"[{name}]", f"key = {key}"]
        capabilities = _CAPABILITIES[name.partition(".")[0]]
        lines += [f'caps {service} = "{allowed}"' for service, allowed in capabilities.items()]
    return "".join(f"{line}\n" for line in lines)
