"""How to reach a message server: its address, who we are, and TLS."""

from __future__ import annotations

import stat
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from ascar import typed
from ascar.errors import InputError
from ascar.small_file import SmallFile
from ascar.tls import Tls
from ascar.toml import toml_text

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

_BYTES_MAX = 65_536
_PORT = 4222
_URLS = "nats://HOST:PORT, tls://HOST:PORT, or unix:///PATH of a proxy"


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How to connect. The same keys make a connection file, in TOML.

    Attributes:
        url: nats://HOST:PORT, loopback addresses alone; tls://HOST:PORT anywhere; unix:///PATH is the control
            socket of a proxy on this machine, which a rule manager asks without a message server.
        user: account name.
        password: the user's password.
        token: instead of both.
        credentials: a .creds file of the server's operator, instead of these.
        tls: the certificates for a tls:// URL.
    """

    url: str = f"nats://127.0.0.1:{_PORT}"
    user: str | None = None
    password: str | None = None
    token: str | None = None
    credentials: str | None = None
    tls: Tls = Tls()

    def __repr__(self) -> str:
        """Without secrets."""
        return f"Settings(url={self.url!r}, user={self.user!r})"

    @property
    def encrypted(self) -> bool:
        """Whether the URL asks for TLS."""
        return urlsplit(self.url).scheme == "tls"

    @property
    def socket(self) -> Path | None:
        """The control socket that the URL names; None where it names a message server."""
        parts = urlsplit(self.url)
        return Path(parts.path) if parts.scheme == "unix" else None

    def check(self) -> Settings:
        """Itself, when it can be used.

        Raises:
            InputError: an address or a combination that is not allowed: the key, its value, what to do.
        """
        _check_url(self.url)
        if self.socket is not None and self != Settings(self.url):
            raise InputError(
                f"url = {self.url[:200]!r}: is a socket of this machine; leave user, credentials and TLS out"
            )
        given = [name for name in ("user", "token", "credentials") if getattr(self, name) is not None]
        if len(given) > 1:
            raise InputError(f"{' and '.join(given)}: give only one of these credentials")
        if (self.user is None) != (self.password is None):
            raise InputError("user and password: give both or none")
        self.tls.check()
        if self.tls != Tls() and not self.encrypted:
            raise InputError(
                f"tls: is has no effect with url = {self.url!r}; write tls:// instead of nats://"
            )
        return self

    def to_toml(self) -> str:
        """The text of a connection file."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        files = {name: value for name, value in msgspec.to_builtins(self.tls).items() if value}
        return toml_text({**plain, "tls": files or None})

    def ssl_context(self) -> ssl.SSLContext | None:
        """What TLS needs; None without it.

        Raises:
            InputError: a file cannot be read or is no certificate.
        """
        return self.tls.context() if self.encrypted else None


def is_loopback(host: str) -> bool:
    """Whether an address never leaves this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def read_settings(path: Path) -> Settings:
    """The settings in a connection file.

    Paths in it are relative to its folder.

    Raises:
        InputError: it cannot be read, others may read its secrets, or a key is wrong.
    """
    what = f"connection file {str(path)!r}"
    table = SmallFile(path, what, _BYTES_MAX).toml()
    try:
        settings = typed.convert(table, Settings)
    except msgspec.ValidationError as error:
        raise InputError(f"{what}: {str(error)[:300]}; allowed keys: {_keys()}") from None
    secret = settings.password is not None or settings.token is not None
    if secret and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise InputError(f"{what}: other users can read the secret in it; run `chmod 600` on it")
    return _at(settings, path.parent).check()


def settings_from_environment(environment: Mapping[str, str]) -> Settings | None:
    """The settings that environment variables give.

    ASCAR_NATS_URL is the server's address; ASCAR_NATS_CREDENTIALS a connection file, or a .creds file;
    ASCAR_NATS_CA, ASCAR_NATS_CERTIFICATE and ASCAR_NATS_KEY are files of TLS. What a variable says counts
    more than what the connection file says.

    Returns:
        None where neither of the first two is set.

    Raises:
        InputError: a file cannot be read, or a value is not allowed.
    """
    url, named = environment.get("ASCAR_NATS_URL"), environment.get("ASCAR_NATS_CREDENTIALS")
    if not url and not named:
        return None
    settings = Settings()
    if named:
        is_creds = named.endswith(".creds")
        settings = Settings(credentials=named) if is_creds else read_settings(Path(named))
    if url:
        settings = msgspec.structs.replace(settings, url=url)
    files = {name: environment.get(f"ASCAR_NATS_{name.upper()}") for name in ("ca", "certificate", "key")}
    files = {name: file for name, file in files.items() if file}
    if files:
        settings = msgspec.structs.replace(settings, tls=msgspec.structs.replace(settings.tls, **files))
    return settings.check()


def _check_url(url: str) -> None:
    shown = repr(url[:200])
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InputError(f"url = {shown}: {error}; must be {_URLS}") from None
    if parts.username is not None or parts.password is not None:
        raise InputError("url: contains a user or a password, which others can see; use a connection file")
    extra = parts.path.strip("/") or parts.query or parts.fragment
    if parts.scheme == "unix":
        if host or not parts.path.startswith("/") or parts.query or parts.fragment:
            raise InputError(f"url = {shown}: must be unix:///PATH, the control socket of a proxy")
        return
    if parts.scheme not in ("nats", "tls") or not host or extra or "," in url or port == 0:
        raise InputError(f"url = {shown}: must be {_URLS}")
    if parts.scheme == "nats" and not is_loopback(host):
        raise InputError(
            f"url = {shown}: would leave this machine without TLS; write tls://{host}:{port or _PORT}, "
            "and name the CA of the server's certificate in tls.ca or ASCAR_NATS_CA"
        )


def _at(settings: Settings, folder: Path) -> Settings:
    """With its paths relative to a folder."""

    def resolved(name: str | None) -> str | None:
        return None if name is None else str(folder / name)

    tls = settings.tls
    return msgspec.structs.replace(
        settings,
        credentials=resolved(settings.credentials),
        tls=Tls(ca=resolved(tls.ca), certificate=resolved(tls.certificate), key=resolved(tls.key)),
    )


def _keys() -> str:
    return ", ".join((*Settings.__struct_fields__[:-1], *(f"tls.{name}" for name in Tls.__struct_fields__)))
