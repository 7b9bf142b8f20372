"""A session of online tuning as its daemons tell it: their messages, on a real message server."""

from __future__ import annotations

import asyncio
import json
import struct
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from ascar.capes.messages.bus import Bus
from ascar.capes.session.files import users
from ascar.messaging import Background, MessageServer, read_settings

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.messaging import Settings

SESSION = "shown"
OBJECTIVE = "maximize throughput_bytes_per_s"
DEFAULT = {"vm.dirty_ratio": 20}
RANGE = {"name": "vm.dirty_ratio", "minimum": 1, "maximum": 90, "choices": []}
BEGAN = 1_700_000_000


class Told:
    """The interface, the learner and `ascar capes up` of a session, in one.

    Ticks are stored, and given again to whoever asks for the past, as the interface does.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stack = ExitStack()
        self.stored: list[tuple[int, float, dict[str, Any]]] = []
        self.actions: list[dict[str, Any]] = []
        self.asked = 0
        self.interval_s = 1.0
        self.tick = BEGAN

    def __enter__(self) -> Self:
        self._stack.enter_context(MessageServer(self._directory, users(SESSION, "node1")))
        self._loop = self._stack.enter_context(Background())
        self._buses = {
            name: self._loop.call(Bus.open(self.settings(name), SESSION, name=name), 20)
            for name in ("interface", "learner", "session")
        }
        self._loop.call(self._answer(), 20)
        return self

    def __exit__(self, *exception: object) -> None:
        for bus in self._buses.values():
            self._loop.call(bus.__aexit__(None, None, None), 20)
        self._stack.close()

    def file(self, user: str) -> Path:
        return self._directory / f"{user}.toml"

    def settings(self, user: str = "viewer") -> Settings:
        return read_settings(self.file(user))

    def tell(self, what: str, document: dict[str, Any], user: str = "interface") -> None:
        self._loop.call(self._buses[user].publish(what, {"version": 1, **document}), 20)

    def here(self, **keys: Any) -> None:
        """What `ascar capes up` says every two seconds."""
        parts = {"learner": {"state": "running", "pid": 1, "restarts": 0}}
        whole = {"event": "here", "objective": OBJECTIVE, "interval_s": self.interval_s, "phase": "learning"}
        self.tell(
            "session",
            {**whole, "until_s": None, "knobs": [RANGE], "defaults": DEFAULT, "parts": parts, **keys},
            "session",
        )

    def ticked(self, value: float, setting: dict[str, Any] | None = None, **keys: Any) -> None:
        """One tick more."""
        self.tick += 1
        setting = DEFAULT if setting is None else setting
        self.stored.append((self.tick, value, setting))
        tick = {
            "tick": self.tick,
            "part": 0,
            "parts": 1,
            "stored": True,
            "layouts": {"5f1c09aa": ["cpu.busy_share"]},
            "nodes": {"node1": ["5f1c09aa", [0.25]]},
            "missing": [],
            "metrics": {"throughput_bytes_per_s": value},
            "setting": setting,
            "mode": "automatic",
            "holding": None,
            "workload": "fileserver",
        }
        self.tell("ticks", {**tick, **keys})

    def learned(self, **keys: Any) -> None:
        """What the learner says of a tick."""
        whole = {"tick": self.tick, "algorithm": "classic", "objective": OBJECTIVE, "phase": "learning"}
        whole |= {"wanted": {}, "expected": None, "baseline": None, "changes": 0, "refused": 0}
        self.tell("learner", {**whole, "epsilon": 0.25, "prediction_error": 0.08, **keys}, "learner")

    def refused(self, reason: str, **setting: Any) -> None:
        """An action that a rule has refused."""
        one = {"tick": self.tick, "id": f"a-{len(self.actions)}", "set": setting}
        one |= {"verdict": "refused", "reason": reason}
        self.actions.append({**one, "why": "policy", "actor": "learner"})
        self.tell("outcomes", one)

    async def _answer(self) -> None:
        link = self._buses["interface"]._link
        client = link._client

        async def give(message: Any) -> None:
            asked = json.loads(message.data)
            assert asked["nodes"] == []
            self.asked += 1
            for part in self._past(asked["from_tick"], asked["to_tick"]):
                await client.publish(message.reply, part)
            await client.flush()

        await client.subscribe(f"ascar.capes.{SESSION}.history.*", cb=give)
        await asyncio.wait_for(link.flush(), 20)

    def _past(self, first: int, end: int) -> list[bytes]:
        rows = [one for one in self.stored if first <= one[0] < end]
        block = struct.pack(f"<{len(rows)}q", *(tick for tick, _, _ in rows))
        block += struct.pack(f"<{len(rows)}f", *(value for _, value, _ in rows))
        settings: list[dict[str, Any]] = []
        for tick, _, setting in rows:
            if not settings or settings[-1]["setting"] != setting:
                settings.append({"tick": tick, "setting": setting})
        names = ["throughput_bytes_per_s"]
        actions = [one for one in self.actions if first <= one["tick"] < end]
        return [
            _part({"part": 0, "last": False, "node": None, "names": names, "rows": len(rows)}, block),
            _part({"part": 1, "last": False, "actions": actions}),
            _part({"part": 2, "last": False, "settings": settings}),
            _part({"part": 3, "last": True, "next_tick": None}),
        ]


def _part(header: dict[str, Any], block: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(4, "little") + text + block
