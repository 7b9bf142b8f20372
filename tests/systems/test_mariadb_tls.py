"""MariaDB that people use, by TLS: a real server with certificates, and what it must not be trusted for."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks, StudyError
from ascar.systems import open_target
from ascar.systems.asking import apply_checked
from ascar.workloads import open_workload
from ascar.workspace import LoadTiming
from certificates import Authority, Certificate
from live_mariadb import LiveMariaDB, live_mariadb
from own_servers import mariadb_account, mariadb_installed, server_place
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.systems.mariadb.existing import ExistingMariaDB

pytestmark = pytest.mark.skipif(not mariadb_installed(), reason="MariaDB is not installed, or has no account")

TRIAL = {"innodb_io_capacity": 1000}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper's journal is the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where certificates are, which the server's account can read; the name has what option files escape."""
    with server_place(mariadb_account(), "ascar-tls-") as place:
        Path(place).chmod(0o755)
        made = Path(place) / 'of "us" # \\and'
        made.mkdir()
        yield made


@pytest.fixture(scope="module")
def ours(folder: Path) -> Certificate:
    return Authority(folder).issue("client", "clientAuth")


def server_lines(certificate: Certificate, place: Path) -> list[str]:
    """The lines of my.cnf for a server with a certificate, by paths that need no quotes."""
    lines = []
    for option, file in (("ca", certificate.ca), ("cert", certificate.path), ("key", certificate.key)):
        copy = place.parent / file.name
        copy.write_bytes(file.read_bytes())
        copy.chmod(0o644)
        lines.append(f"ssl_{option} = {copy}")
    return lines


@pytest.fixture(scope="module")
def server(folder: Path, ours: Certificate) -> Iterator[LiveMariaDB]:
    """A server whose certificate is for 127.0.0.1, and an account that has to show one."""
    assert ours.ca.parent == folder
    authority = Authority(folder, "servers")
    with live_mariadb(*server_lines(authority.issue("server", "serverAuth"), folder)) as started:
        started.ask("CREATE USER tuner@'127.0.0.1' REQUIRE SSL")
        started.ask("GRANT SUPER, BINLOG ADMIN, CONNECTION ADMIN, SLAVE MONITOR ON *.* TO tuner@'127.0.0.1'")
        yield started


def options_of(live: LiveMariaDB, tls: object, host: str = "127.0.0.1") -> dict[str, Any]:
    return {
        "kind": "mariadb", "server": "existing", "host": host, "port": live.port, "user": "tuner",
        "confirmed_server": f"{host}:{live.port}", "tls": tls,
    }  # fmt: skip


def target_of(live: LiveMariaDB, tls: object, host: str = "127.0.0.1") -> ExistingMariaDB:
    return open_target(options_of(live, tls, host))  # type: ignore[return-value]


def refused(target: ExistingMariaDB) -> str:
    """Why a server is not connected to, in one line."""
    with pytest.raises(EnvironmentLacks, match=r"target\.server: ") as told, target:
        pass
    assert "\n" not in told.value.message
    return told.value.message


def test_a_server_with_a_certificate_is_tuned_and_told_apart_from_others(
    server: LiveMariaDB, folder: Path
) -> None:
    tls = {"ca": str(folder / "servers.pem")}
    with target_of(server, tls) as target:
        said = target._entered().session.ask("SHOW SESSION STATUS LIKE 'Ssl_version'")
        assert "TLSv1" in said
        apply_checked(target, target.space.validate({**target.space.default(), **TRIAL}))
        assert server.get("innodb_io_capacity") == "1000"
    assert server.get("innodb_io_capacity") == "300"


def test_a_certificate_of_another_authority_is_not_believed(server: LiveMariaDB, folder: Path) -> None:
    for tls in ({"ca": str(folder / "ca.pem")}, {}):
        assert "certificate" in refused(target_of(server, tls)), tls


def test_who_the_system_trusts_counts_where_no_authority_is_named(
    server: LiveMariaDB, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "servers.pem"))
    with target_of(server, {}) as target:
        assert "TLSv1" in target._entered().session.ask("SHOW SESSION STATUS LIKE 'Ssl_version'")


def test_a_certificate_for_another_name_is_not_believed(folder: Path) -> None:
    certificate = Authority(folder, "others").issue("elsewhere", "serverAuth", "DNS:db.example")
    with live_mariadb(*server_lines(certificate, folder)) as live:
        live.ask("CREATE USER tuner@'127.0.0.1'")
        assert "TLS" in refused(target_of(live, {"ca": str(certificate.ca)}))


def test_a_server_without_tls_is_refused_before_it_learns_who_asks(folder: Path) -> None:
    with live_mariadb("skip_ssl") as live:
        live.ask("CREATE USER tuner@'127.0.0.1'")
        live.ask("SET GLOBAL log_warnings = 9")
        assert "does not support" in refused(target_of(live, {"ca": str(folder / "ca.pem")}))
        assert "'tuner'" not in (live.place / "log").read_text()


def test_a_server_that_asks_for_a_certificate_is_shown_ours(
    server: LiveMariaDB, folder: Path, ours: Certificate
) -> None:
    tls = {"ca": str(folder / "servers.pem")}
    shown = {**tls, "certificate": str(ours.path), "key": str(ours.key)}
    server.ask("ALTER USER tuner@'127.0.0.1' REQUIRE X509")
    try:
        assert "Access denied" in refused(target_of(server, tls))
        # The server does not know who signed it, and hangs up; its alert may come too late to be read.
        assert re.search("unknown ca|Lost connection to server at", refused(target_of(server, shown)))
        known = folder.parent / "servers.pem"
        known.write_bytes(known.read_bytes() + ours.ca.read_bytes())
        server.ask("FLUSH SSL")
        with target_of(server, shown) as target:
            apply_checked(target, target.space.validate({**target.space.default(), **TRIAL}))
    finally:
        server.ask("ALTER USER tuner@'127.0.0.1' REQUIRE SSL")


def test_a_load_finds_the_server_by_the_same_certificates(
    server: LiveMariaDB, folder: Path, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    statement = "SHOW SESSION STATUS LIKE 'Ssl_version'"
    client = f'exec mariadb --user="$MARIADB_USER" -Ne "{statement}"'
    command = ["sh", "-c", f"mariadb --print-defaults >{asked}; {client} >>{asked}"]
    with target_of(server, {"ca": str(folder / "servers.pem")}) as target:
        load = open_workload({"kind": "command", "argv": command, "metrics": {}})
        load.run(target.workspace, LoadTiming(0.1, 5.0, 0.1, lambda _: True))
        told = asked.read_text()
    assert f"--ssl-ca={folder / 'servers.pem'}" in told
    assert "--ssl-verify-server-cert" in told
    assert "TLSv1" in told


@pytest.mark.parametrize(
    ("tls", "words"),
    [
        (
            {"ca": "/proc/absent.pem"},
            "target.tls: /proc/absent.pem: No such file or directory; name PEM files",
        ),
        ({"ca": ""}, "target.tls.ca = '': must be a text of characters that are printed"),
        ({"ca": "a\nb"}, "target.tls.ca = 'a\\nb': must be a text"),
        ({"certificate": "a.pem"}, "target.tls.certificate and tls.key: give both or none"),
        ({"verify": False}, "target.tls.verify: unknown key; allowed here: ca, certificate, key"),
        ("on", "target.tls = 'on'"),
    ],
)
def test_a_wrong_key_is_one_line(server: LiveMariaDB, tls: object, words: str) -> None:
    with pytest.raises(StudyError) as told:
        target_of(server, tls)
    assert words in told.value.message
    assert "\n" not in told.value.message


def test_a_key_that_others_may_read_is_refused(
    server: LiveMariaDB, ours: Certificate, tmp_path: Path
) -> None:
    key = tmp_path / "client.key"
    key.write_bytes(ours.key.read_bytes())
    key.chmod(0o640)
    with pytest.raises(StudyError, match=r"target\.tls\.key = '.*': others may read it; .*\(chmod 600\)"):
        target_of(server, {"certificate": str(ours.path), "key": str(key)})


def test_tls_through_a_socket_is_refused(server: LiveMariaDB) -> None:
    with pytest.raises(StudyError, match=r"target\.tls: must be left out where target\.host is a socket"):
        open_target({"kind": "mariadb", "server": "existing", "host": str(server.socket), "tls": {}})


SCRIPT = """
import json, sys
from ascar.systems import open_target
with open_target(json.loads(sys.argv[1])) as target:
    target.apply(target.space.validate({**target.space.default(), "innodb_io_capacity": 1000}))
    print("set", flush=True)
    sys.stdin.read()
"""


def test_old_values_come_back_by_tls_after_a_kill(server: LiveMariaDB, folder: Path) -> None:
    given = json.dumps(options_of(server, {"ca": str(folder / "servers.pem")}))
    words = [sys.executable, "-c", SCRIPT, given]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"set\n"
        assert server.get("innodb_io_capacity") == "1000"
        process.send_signal(signal.SIGKILL)
    until(lambda: server.get("innodb_io_capacity") == "300", 60)
