"""The configuration of a nats-server of our own: loopback alone, nobody without a password."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.messaging.message import MESSAGE_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who may connect.

    Attributes:
        name: a token.
        publish: subjects that the user may send to; `>` is all.
        subscribe: subjects that the user may listen to.
    """

    name: str
    publish: tuple[str, ...] = (">",)
    subscribe: tuple[str, ...] = (">",)


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What a server allows.

    Attributes:
        payload_bytes: the largest message.
        connections: the greatest number of connections at a time.
        pending_bytes: the bytes that may wait for one slow reader before it is cut off.
    """

    payload_bytes: int = MESSAGE_BYTES_MAX
    connections: int = 16_384
    pending_bytes: int = 64 << 20


def config_text(
    directory: Path, port: int, passwords: Sequence[tuple[User, str]], limits: ServerLimits
) -> str:
    """The text of a configuration file.

    Args:
        directory: the directory for the log and for the file that gives the port.
        port: -1: any that is free.
        passwords: every user with the password.
        limits: the limits that the server enforces.
    """
    # nats-server's configuration language includes JSON, so that nothing needs to be quoted by hand.
    return json.dumps(
        {
            "listen": f"{HOST}:{port}",
            "server_name": "ascar",
            "ports_file_dir": str(directory),
            "logfile": str(directory / "server.log"),
            "log_size_limit": 1 << 20,
            "max_payload": limits.payload_bytes,
            "max_connections": limits.connections,
            "max_pending": limits.pending_bytes,
            "max_control_line": 4096,
            "authorization": {
                "timeout": 5,
                "users": [
                    {
                        "user": user.name,
                        "password": password,
                        "permissions": {
                            "publish": {"allow": list(user.publish)},
                            "subscribe": {"allow": list(user.subscribe)},
                            # Whoever is asked may answer, though it may not write to any inbox it likes.
                            "allow_responses": {"max": 1_000, "expires": "1m"},
                        },
                    }
                    for user, password in passwords
                ],
            },
        },
        indent=1,
    )
