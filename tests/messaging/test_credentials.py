"""`.creds` files at a server of an operator's, with tokens that openssl signs: both clients."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ascar.errors import InputError, MessagingError
from ascar.messaging import Link, Settings
from ascar.messaging.identity import caller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

OPERATOR, ACCOUNT, USER, SEED = 14 << 3, 0, 20 << 3, 18 << 3
FILE = """\
-----BEGIN NATS USER JWT-----
{token}
------END NATS USER JWT------

************************* IMPORTANT *************************
NKEY Seed printed below can be used to sign and prove identity.

-----BEGIN USER NKEY SEED-----
{seed}
------END USER NKEY SEED------

*************************************************************
"""


def crc16(data: bytes) -> bytes:
    total = 0
    for byte in data:
        total ^= byte << 8
        for _ in range(8):
            total = (total << 1 ^ (0x1021 if total & 0x8000 else 0)) & 0xFFFF
    return total.to_bytes(2, "little")


def nkey(head: bytes, key: bytes) -> str:
    return base64.b32encode(head + key + crc16(head + key)).decode().rstrip("=")


def letters(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Key:
    """A pair, kept in a file for openssl."""

    def __init__(self, folder: Path, name: str, kind: int) -> None:
        self.path, self.kind = folder / f"{name}.pem", kind
        self._openssl("genpkey", "-algorithm", "ed25519", "-out", str(self.path))
        public = self._openssl("pkey", "-in", str(self.path), "-pubout", "-outform", "DER")
        self.public = nkey(bytes([kind]), public[-32:])

    @property
    def seed(self) -> str:
        private = self._openssl("pkey", "-in", str(self.path), "-outform", "DER")
        return nkey(bytes([SEED | self.kind >> 5, (self.kind & 31) << 3]), private[-32:])

    def token(self, subject: Key, nats: dict[str, object], ends_in_s: int = 3600) -> str:
        """A JWT about a subject, signed by this key."""
        now = int(time.time())
        claims = {
            "jti": "X",
            "iat": now,
            "exp": now + ends_in_s,
            "iss": self.public,
            "name": "test",
            "sub": subject.public,
            "nats": {"version": 2, **nats},
        }
        heads = ({"typ": "JWT", "alg": "ed25519-nkey"}, claims)
        text = ".".join(letters(json.dumps(part).encode()) for part in heads)
        signed = self.path.with_suffix(".text")
        signed.write_text(text)
        signature = self._openssl("pkeyutl", "-sign", "-rawin", "-inkey", str(self.path), "-in", str(signed))
        return f"{text}.{letters(signature)}"

    @staticmethod
    def _openssl(*arguments: str) -> bytes:
        return subprocess.run(["openssl", *arguments], check=True, capture_output=True).stdout


@dataclass
class Realm:
    folder: Path
    account: Key
    port: int

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def creds(self, name: str, signer: Key | None = None, ends_in_s: int = 3600) -> Path:
        user = Key(self.folder, name, USER)
        limits = {"subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}, "type": "user"}
        token = (signer or self.account).token(user, limits, ends_in_s)
        path = self.folder / f"{name}.creds"
        path.touch(0o600)
        path.write_text(FILE.format(token=token, seed=user.seed))
        return path


@pytest.fixture(scope="module")
def realm(
    tmp_path_factory: pytest.TempPathFactory, serving: Callable[[Path, str], AbstractContextManager[int]]
) -> Iterator[Realm]:
    folder = tmp_path_factory.mktemp("operator")
    operator, account = Key(folder, "operator", OPERATOR), Key(folder, "account", ACCOUNT)
    names = ("subs", "conn", "leaf", "imports", "exports", "data", "payload")
    limits = {**dict.fromkeys(names, -1), "wildcards": True}
    content = (
        'listen: "127.0.0.1:-1"\n'
        f"operator: {operator.token(operator, {'type': 'operator'})}\nresolver: MEMORY\n"
        f"resolver_preload: {{ {account.public}: "
        f"{operator.token(account, {'type': 'account', 'limits': limits})} }}\n"
    )
    with serving(folder, content) as port:
        yield Realm(folder, account, port)


async def connect(realm: Realm, credentials: Path) -> bool:
    settings = Settings(url=realm.url, credentials=str(credentials))
    async with await Link.open(settings, name="test") as link:
        await link.flush()
        return link.connected


def test_who_has_the_key_is_let_in(realm: Realm) -> None:
    assert asyncio.run(connect(realm, realm.creds("good")))


def test_each_user_has_a_name_and_an_inbox_of_its_own(realm: Realm) -> None:
    async def run() -> tuple[str, str]:
        settings = Settings(url=realm.url, credentials=str(realm.creds("named")))
        async with await Link.open(settings, name="x") as link:
            return link.user, link.new_inbox()

    user, inbox = asyncio.run(run())
    assert user == "test" and inbox.startswith("_INBOX.test.")  # the name in the token
    assert caller(Settings(user="alice", password="x")) == "alice"
    assert caller(Settings()) == "anyone"
    for wrong in ("a.b", "*", ">", ""):
        with pytest.raises(InputError, match=re.escape(f"user = {wrong!r}: must be 1 to 64 letters")):
            caller(Settings(user=wrong, password="x"))


def test_who_has_not_is_not(realm: Realm, tmp_path: Path) -> None:
    stranger = Key(tmp_path, "stranger", ACCOUNT)
    stolen = realm.creds("stolen")
    other = Key(tmp_path, "other", USER)
    token = stolen.read_text().splitlines()[1]
    stolen.write_text(FILE.format(token=token, seed=other.seed))
    for path in (realm.creds("of-a-stranger", signer=stranger), realm.creds("ended", ends_in_s=-9), stolen):
        with pytest.raises(MessagingError, match="does not let us in; check credentials"):
            asyncio.run(connect(realm, path))


def test_a_file_that_is_none_is_told_before_anybody_is_asked(realm: Realm) -> None:
    path = realm.creds("open")
    path.chmod(0o644)
    with pytest.raises(
        InputError, match="other users can read the secret in it; run `chmod 600` on it|`chmod 600` it"
    ):
        asyncio.run(connect(realm, path))
    path.chmod(0o600)
    path.write_text("nothing")
    with pytest.raises(InputError, match=r"no \.creds file"):
        asyncio.run(connect(realm, path))


def find_ascard() -> Path | None:
    path = Path(sys.executable).parent / "ascard"
    if not os.access(path, os.X_OK):
        return None
    asked = subprocess.run([path, "agent", "--help"], capture_output=True, check=False)
    return path if asked.returncode == 0 else None


def test_a_node_signs_too(realm: Realm) -> None:
    ascard = find_ascard()
    if ascard is None:
        pytest.skip("ascard was built without the agent: run `make online`")
    realm.creds("node")
    connection = realm.folder / "connection.toml"
    connection.write_text(f"url = '{realm.url}'\ncredentials = 'node.creds'\n")
    config = realm.folder / "agent.toml"
    config.write_text(
        f"session = 'test'\nnode = 'n1'\ninterval_s = 0.2\nconnection = '{connection}'\n"
        f"state_directory = '{realm.folder}'\n[[collector]]\nkind = 'cpu'\n"
    )

    async def hears() -> None:
        settings = Settings(url=realm.url, credentials=str(realm.creds("viewer")))
        async with await Link.open(settings, name="viewer") as link:
            heard = asyncio.Event()

            async def note(_subject: str, _payload: bytes) -> None:
                heard.set()

            await link.hear("ascar.capes.test.agents.n1.hello", note)
            await link.flush()
            process = await asyncio.create_subprocess_exec(str(ascard), "agent", "--config", str(config))
            try:
                async with asyncio.timeout(60):
                    await heard.wait()
            finally:
                process.terminate()
                await process.wait()

    asyncio.run(hears())
