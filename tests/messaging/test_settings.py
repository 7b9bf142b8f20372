"""How to connect: what is allowed, where it is read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ascar.errors import EnvironmentLacks, InputError
from ascar.messaging import Settings, Tls, find_settings, read_settings, settings_from_environment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "url",
    [
        "nats://127.0.0.1:4222",
        "nats://localhost",
        "nats://[::1]:1",
        "tls://far.example:4222",
        "unix:///run/a",
    ],
)
def test_allowed(url: str) -> None:
    assert Settings(url=url).check().url == url


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nats://10.0.0.1:4222", "without TLS; write tls://10.0.0.1:4222"),
        ("nats://far.example", "without TLS; write tls://far.example:4222"),
        ("nats://0.0.0.0:4222", "without TLS"),
        ("nats://127.0.0.1.far.example:4222", "without TLS"),
        ("nats://me:secret@127.0.0.1:4222", "use a connection file"),
        ("http://127.0.0.1:4222", "must be nats://HOST:PORT"),
        ("127.0.0.1:4222", "must be nats://HOST:PORT"),
        ("nats://127.0.0.1:99999", "Port out of range"),
        ("nats://127.0.0.1:1,nats://10.0.0.1:1", "Port could not be cast"),
        ("nats://[::1", "must be nats://HOST:PORT"),
        ("", "must be nats://HOST:PORT"),
        ("unix://host/run/a", "must be unix:///PATH"),
        ("unix:run/a", "must be unix:///PATH"),
    ],
)
def test_refused_addresses(url: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        Settings(url=url).check()
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(user="a"), "give both or none"),
        (Settings(user="a", password="b", token="c"), "user and token: give only one of these credentials"),
        (Settings(url="tls://a", tls=Tls(certificate="a")), "tls.certificate and tls.key"),
        (Settings(tls=Tls(ca="a")), "write tls://"),
        (Settings(url="unix:///run/a", token="c"), "is a socket of this machine"),
    ],
)
def test_refused_combinations(settings: Settings, words: str) -> None:
    with pytest.raises(InputError, match=words):
        settings.check()


def test_a_connection_file_with_paths_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "far.toml"
    path.write_text('url = "tls://far:4222"\nuser = "a"\npassword = "b"\n[tls]\nca = "ca.pem"\n')
    path.chmod(0o600)
    found = read_settings(path)
    assert found.tls.ca == str(tmp_path / "ca.pem")
    assert "b" not in repr(found).replace("tls://far:4222", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("url = 3", "Expected `str`"),
        ("pass = 'x'", "allowed keys: url, user, password"),
        ("url = ", "is not TOML: "),
        ("\x00", "is not TOML: "),
        ("x" * 70_000, "larger than"),
        ("a = " + "[" * 20_000, "is not TOML: "),
    ],
)
def test_refused_files(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_settings(path)


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('user = "a"\npassword = "b"\n')
    path.chmod(0o640)
    with pytest.raises(InputError, match="chmod 600"):
        read_settings(path)


def test_environment(tmp_path: Path) -> None:
    assert settings_from_environment({}) is None
    assert settings_from_environment({"ASCAR_NATS_URL": "nats://127.0.0.1:1"}) == Settings(
        url="nats://127.0.0.1:1"
    )
    file = tmp_path / "c.toml"
    file.write_text('url = "nats://127.0.0.1:1"\ntoken = "t"\n')
    file.chmod(0o600)
    both = {"ASCAR_NATS_URL": "tls://far:2", "ASCAR_NATS_CREDENTIALS": str(file), "ASCAR_NATS_CA": "/ca.pem"}
    assert settings_from_environment(both) == Settings(url="tls://far:2", token="t", tls=Tls(ca="/ca.pem"))
    creds = settings_from_environment({"ASCAR_NATS_CREDENTIALS": "/a/user.creds"})
    assert creds == Settings(credentials="/a/user.creds")
    with pytest.raises(InputError, match="without TLS"):
        settings_from_environment({"ASCAR_NATS_URL": "nats://10.1.1.1:4222"})


def test_no_server_anywhere(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacks, match="no message server"):
        find_settings("manager", environment={"XDG_RUNTIME_DIR": str(tmp_path)})


def test_a_file_that_is_named_counts_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('url = "nats://127.0.0.1:7"\n')
    known = {"ASCAR_NATS_URL": "nats://127.0.0.1:8", "ASCAR_RUNTIME_DIR": str(tmp_path / "run")}
    assert find_settings("manager", file, known).url == "nats://127.0.0.1:7"
    assert find_settings("manager", None, known).url == "nats://127.0.0.1:8"
    own = tmp_path / "run" / "messages"
    own.mkdir(parents=True)
    (own / "manager.toml").write_text('url = "nats://127.0.0.1:9"\n')
    del known["ASCAR_NATS_URL"]
    assert find_settings("manager", None, known).url == "nats://127.0.0.1:9"
