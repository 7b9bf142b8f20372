"""A configuration put in force on servers that people use: for a while, to stay, or not at all."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks, Refused
from ascar.program.account import Account
from ascar.program.postgresql import Programs
from ascar.space.study_table import study_space
from ascar.study import Study, tuned_tables
from ascar.systems import open_target
from ascar.systems.existing.address import PasswordAddress
from ascar.systems.keeper import restore_all
from live_mariadb import live_mariadb
from live_postgresql import AUTO, live_server
from live_redis import live_redis, redis_installed
from own_servers import mariadb_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

STUDY = """
[study]
name = "tuned"
objective = "maximize throughput_ops_per_s"
budget = "1 min"
[target]
kind = "KIND"
"""
LIVE = """
[target]
kind = "KIND"
server = "existing"
host = "HOST"
"""


@dataclass
class Server:
    """A server that people use.

    Attributes:
        kind: its kind.
        name: what `--allow-live` calls it.
        host: where it is.
        more: further lines of its table.
        read: tells a setting as the server writes it.
        write: sets one, as its administrator would.
        kept: the file in which it keeps settings, if a change may be there.
        wanted: values that a run recommends; the server takes them while it works.
        told: the same, as the server writes them.
        static: one that takes a new start.
    """

    kind: str
    name: str
    host: Path
    more: str
    read: Callable[[str], str]
    write: Callable[[str, str], object]
    kept: Path | None
    wanted: Mapping[str, Any]
    told: Mapping[str, str]
    static: Mapping[str, Any]

    def table(self, path: Path, lines: str = "") -> Path:
        """A file whose [target] is this server."""
        path.write_text(
            f"{LIVE.replace('KIND', self.kind).replace('HOST', str(self.host))}{self.more}{lines}"
        )
        return path

    def state(self) -> tuple[object, ...]:
        """What a change would change."""
        names = (*self.told, *self.static)
        return (*map(self.read, names), None if self.kept is None else self.kept.read_bytes())

    def takes(self) -> bool:
        """Whether what was recommended is in force."""
        return all(self.read(name) == text for name, text in self.told.items())


@contextmanager
def _postgresql() -> Generator[Server]:
    with live_server() as live:

        def write(name: str, text: str) -> None:
            live.ask(f"ALTER SYSTEM SET {name} = '{text}'")
            live.ask("SELECT pg_reload_conf()")

        yield Server(
            "postgresql",
            live.name,
            live.place,
            'user = "postgres"\ndatabase = "postgres"\n',
            lambda name: live.ask(f"SELECT setting FROM pg_settings WHERE name = '{name}'"),
            write,
            live.auto,
            {"work_mem": 16384, "random_page_cost": 1.123456789},
            {"work_mem": "16384", "random_page_cost": "1.12346"},
            {"shared_buffers": 32768},
        )


@contextmanager
def _redis() -> Generator[Server]:
    with live_redis() as live:
        yield Server(
            "redis",
            live.name,
            live.socket,
            "",
            lambda name: live.get(name.replace("_", "-")),
            lambda name, text: live.ask("CONFIG", "SET", name.replace("_", "-"), text),
            live.conf,
            {"hz": 100, "hash_max_listpack_entries": 1024},
            {"hz": "100", "hash_max_listpack_entries": "1024"},
            {"io_threads": 2, "io_threads_do_reads": False},
        )


@contextmanager
def _mariadb() -> Generator[Server]:
    with live_mariadb() as live:
        yield Server(
            "mariadb",
            live.name,
            live.socket,
            'user = "root"\n',
            live.get,
            lambda name, text: live.ask(f"SET GLOBAL {name} = {text}"),
            live.conf,
            {"innodb_io_capacity": 1000, "innodb_max_dirty_pages_pct_lwm": 41.28374653},
            {"innodb_io_capacity": "1000", "innodb_max_dirty_pages_pct_lwm": "41.283747"},
            {"tmp_table_size": 33554432},
        )


def _lacks(kind: str) -> str | None:
    if kind == "postgresql":
        try:
            Programs.find()
            Account.of(None, "PostgreSQL", "postgres")
        except EnvironmentLacks as lack:
            return str(lack)
        return None
    there = redis_installed() if kind == "redis" else mariadb_installed()
    return None if there else f"{kind} is not installed, or has no account"


SLOW = pytest.mark.slow


@pytest.fixture(
    scope="module",
    params=[pytest.param("postgresql", marks=SLOW), "redis", pytest.param("mariadb", marks=SLOW)],
)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    lacking = _lacks(request.param)
    if lacking is not None:
        pytest.skip(lacking)
    with {"postgresql": _postgresql, "redis": _redis, "mariadb": _mariadb}[request.param]() as live:
        yield live


@pytest.fixture
def live(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The study file of the server, which is as before afterwards."""
    # What root's keeper has in force is that of other tests.
    monkeypatch.setattr("ascar.systems.keeper.ROOTS_STATE", tmp_path / "of-root")
    before = server.state()
    yield server.table(tmp_path / "live.toml")
    comes_back(server, before)


@pytest.fixture
def run(
    server: Server, keep_run: Callable[..., int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., int]:
    """Keeps a run of a server of the study's own, or of the server itself, which recommends the values."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def keep(*, of_server: bool = False, **values: Any) -> int:
        itself = f'server = "existing"\nhost = "{server.host}"\nconfirmed_server = "{server.name}"\n'
        itself = f"{itself}{server.more}" if of_server else ""
        study = Study.parse(STUDY.replace("KIND", server.kind) + itself)
        space = study_space(study, open_target(study.target).space)
        best = space.validate({**space.default(), **(values or server.wanted)})
        return keep_run(study, space, best, {"target": server.kind, "cpu": "of another machine"})

    return keep


def becomes(condition: Callable[[], bool], limit_s: float = 30.0) -> None:
    end_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.1)


def comes_back(server: Server, before: tuple[object, ...]) -> None:
    """Put everything back, also what a killed command's keeper is still at."""

    def is_back() -> bool:
        restore_all(everything=True)
        return server.state() == before

    becomes(is_back)


def test_it_is_as_before_when_nobody_confirms(ascar: Any, server: Server, live: Path, run: Any) -> None:
    before, named = server.state(), ["--server", live, "--allow-live", server.name]
    done = ascar("apply", run(), *named, "--confirm", "3 s", "--json")
    assert done.status == 0, done.err
    assert {one["parameter"] for one in done.document["settings"]} == set(server.wanted)
    assert {one["path"] for one in done.document["settings"]} == {f"server {server.name}"}
    assert server.takes()
    becomes(lambda: server.state() == before)


def test_it_stays_once_it_is_confirmed_and_drift_names_what_somebody_changed(
    ascar: Any, server: Server, live: Path, run: Any
) -> None:
    number, before = run(), server.state()
    assert ascar("apply", number, "--server", live, "--dry-run").status == 0
    assert server.state() == before
    assert ascar("drift", number, "--server", live, "--json").document["in_force"] is False
    ascar("apply", number, "--server", live, "--allow-live", server.name, "--confirm", "10 min")
    assert ascar("confirm", number, "--json").document["changes"] >= 1
    drifted = ascar("drift", number, "--server", live, "--json")
    assert (drifted.status, drifted.document["in_force"]) == (0, True)
    assert "in force already" in ascar("apply", number, "--server", live, "--allow-live", server.name).out
    somebodys, old = next(iter(server.told)), before[0]
    server.write(somebodys, {"work_mem": "12MB", "hz": "33"}.get(somebodys, "700"))
    changed = server.read(somebodys)
    told = ascar("drift", number, "--server", live, "--json").document["settings"]
    assert [one["parameter"] for one in told if not one["in_force"]] == [somebodys]
    restored = ascar("restore")
    assert somebodys in restored.out + restored.err
    assert server.read(somebodys) == changed, "what somebody else has set is left alone"
    assert server.state()[1:-1] == before[1:-1]
    server.write(somebodys, str(old))
    # The server reads its file some time after it was told to; it shall not find the file half written.
    becomes(lambda: server.read(somebodys) == old)
    if server.kind == "postgresql":
        assert server.kept is not None
        assert isinstance(before[-1], bytes)
        server.kept.write_bytes(before[-1])


def test_what_promises_less_than_is_in_force_is_refused(
    ascar: Any, server: Server, live: Path, run: Any
) -> None:
    if server.kind != "postgresql":
        pytest.skip("the others' settings that promise something are left alone while they work")
    number = run(checkpoint_timeout=200, work_mem=16384)
    server.write("checkpoint_timeout", "60")
    becomes(lambda: server.read("checkpoint_timeout") == "60")
    try:
        refused = ascar("apply", number, "--server", live, "--allow-live", server.name)
        assert refused.status == 2
        assert "checkpoint_timeout" in refused.error
        assert "weakens availability" in refused.error
        assert server.read("work_mem") != "16384"
    finally:
        server.write("checkpoint_timeout", "300")
        assert server.kept is not None
        lines = server.kept.read_text().splitlines(keepends=True)
        server.kept.write_text("".join(one for one in lines if "checkpoint_timeout" not in one))
        becomes(lambda: server.read("checkpoint_timeout") == "300")


@pytest.mark.slow
def test_over_a_reboot_postgresql_has_the_old_values_unless_they_are_confirmed(
    ascar: Any, keep_run: Callable[..., int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lacking = _lacks("postgresql")
    if lacking is not None:
        pytest.skip(lacking)
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.setattr("ascar.systems.keeper.ROOTS_STATE", tmp_path / "of-root")
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    study = Study.parse(STUDY.replace("KIND", "postgresql"))
    space = study_space(study, open_target(study.target).space)
    best = space.validate({**space.default(), "work_mem": 16384})
    number = keep_run(study, space, best, {"target": "postgresql"})
    with live_server(cluster="rebooted") as server:
        table = LIVE.replace("KIND", "postgresql").replace("HOST", str(server.place))
        (tmp_path / "live.toml").write_text(f'{table}user = "postgres"\ndatabase = "postgres"\n')
        named = ("--server", tmp_path / "live.toml", "--allow-live", server.name)

        def reboot() -> None:
            """The power is cut; what runs at boot finds the journal of another one, and no server yet."""
            server.kill()
            for journal in state.rglob("*.jsonl"):
                draft = journal.with_suffix(".draft")
                draft.write_text(journal.read_text().replace(boot_id, "another"))
                draft.replace(journal)
            ascar("restore", "--keep-applied")

        assert ascar("apply", number, *named, "--confirm", "10 min").status == 0
        assert server.ask("SHOW work_mem") == "16MB"
        reboot()
        becomes(lambda: server.auto.read_text() == AUTO)
        server.start_after_kill()
        assert server.ask("SHOW work_mem") == "8MB"

        assert ascar("apply", number, *named, "--confirm", "10 min").status == 0
        assert ascar("confirm", number).status == 0
        reboot()
        server.start_after_kill()
        assert server.ask("SHOW work_mem") == "16MB", "what was confirmed stays"
        assert ascar("drift", number, *named[:2], "--json").document["in_force"] is True
        assert ascar("restore").status == 0
        assert server.auto.read_text() == AUTO
        assert server.ask("SHOW work_mem") == "8MB"


def test_a_run_of_the_server_itself_needs_no_file_and_its_confirmation_is_asked_again(
    ascar: Any, server: Server, live: Path, run: Any
) -> None:
    number = run(of_server=True)
    assert ascar("drift", number, "--json").document["in_force"] is False
    assert f"--allow-live {server.name}" in ascar("apply", number).error
    assert ascar("apply", number, "--allow-live", server.name).status == 0
    assert server.takes()
    assert ascar("drift", number, "--json").document["in_force"] is True
    assert ascar("restore").status == 0


def test_a_machine_is_compared_only_where_the_server_is_on_it(
    ascar: Any, server: Server, live: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("apply", run(), "--server", live, "--dry-run", "--json")
    assert any("this machine has" in one for one in ascar(*words).document["warnings"])
    if server.kind == "redis":  # PostgreSQL tells where it is by itself
        monkeypatch.setattr(PasswordAddress, "is_local", False)
        assert ascar(*words).document["warnings"] == [
            "machine: not compared with that of the result; the server is not known to be on this one"
        ]


def test_a_trials_values_are_not_taken_for_the_servers(
    ascar: Any, server: Server, live: Path, run: Any
) -> None:
    number = run()
    table, _, _ = tuned_tables(live)
    with open_target({**table, "confirmed_server": server.name}):
        for words in (("drift", number), ("apply", number, "--allow-live", server.name)):
            refused = ascar(*words, "--server", live)
            assert refused.status == 2
            assert f"{server.name}: is tuned by" in refused.error


def test_no_study_begins_while_a_configuration_waits(
    ascar: Any, server: Server, live: Path, run: Any
) -> None:
    table, _, _ = tuned_tables(live)
    ascar("apply", run(), "--server", live, "--allow-live", server.name, "--confirm", "10 min")
    with pytest.raises(Refused, match="confirm it"), open_target({**table, "confirmed_server": server.name}):
        pass


def test_what_takes_a_new_start_is_left_with_its_commands(
    ascar: Any, server: Server, live: Path, run: Any
) -> None:
    number = run(**server.wanted, **server.static)
    if server.kind == "postgresql":  # which a study may start anew
        server.table(live, 'restarts = "allowed"\nrestart_command = ["false"]\n')
    document = ascar("apply", number, "--server", live, "--allow-live", server.name, "--json").document
    assert server.takes()
    [left] = document["left_to_you"]
    assert set(left["parameters"]) <= set(server.static)
    assert any(
        next(iter(server.static)).replace("_", "-") in one.replace("_", "-") for one in left["commands"]
    )
    assert ascar("drift", number, "--server", live, "--json").document["in_force"] is None


def test_what_must_not_be_set_is_refused_before_anything_is(
    ascar: Any, server: Server, live: Path, run: Any, tmp_path: Path
) -> None:
    number, before = run(), server.state()
    unconfirmed = ascar("apply", number, "--server", live)
    assert unconfirmed.status == 2
    assert f"--allow-live {server.name}" in unconfirmed.error
    wrong = ascar("apply", number, "--server", live, "--allow-live", "another:1")
    assert f"is {server.name}" in wrong.error
    other = tmp_path / "other.toml"
    other.write_text('[target]\nkind = "sqlite"\n')
    assert "has a target of the kind 'sqlite'" in ascar("apply", number, "--server", other).error
    assert ascar("apply", number, "--server", tmp_path / "none.toml").status == 2
    own = tmp_path / "own.toml"
    own.write_text(f'[target]\nkind = "{server.kind}"\n')
    assert "is no server that people use" in ascar("apply", number, "--server", own).error
    measured = ascar("drift", number, "--server", live, "--measure")
    assert "--server: is not allowed with --measure" in measured.error
    assert "tunes no server" in ascar("apply", number, "--allow-live", server.name).error
    gone = tmp_path / "gone.toml"
    gone.write_text(live.read_text().replace(str(server.host), str(tmp_path / "nobody")))
    assert ascar("apply", number, "--server", gone, "--allow-live", server.name).status != 0
    assert server.state() == before


@pytest.mark.parametrize("turn", range(3))
def test_killed_at_any_moment_it_is_in_force_as_a_whole_or_not_at_all(
    server: Server, live: Path, run: Any, turn: int, seed: int
) -> None:
    before = server.state()
    words = ["apply", str(run()), "--server", str(live), "--allow-live", server.name]
    with subprocess.Popen([sys.executable, "-m", "ascar", *words], stdout=subprocess.DEVNULL) as process:
        if turn:
            becomes(lambda: server.state() != before or process.poll() is not None)
        else:
            time.sleep(0.3 + (seed % 7) / 10)
        process.send_signal(signal.SIGKILL)
    becomes(lambda: server.takes() or server.state() == before)
    time.sleep(0.5)
    comes_back(server, before)


def test_an_imported_run_is_not_connected_to_the_server_that_it_names(
    ascar: Any, server: Server, live: Path, run: Any, tmp_path: Path
) -> None:
    number, file = run(of_server=True), tmp_path / "run.json"
    ascar("history", "export", number, "--out", file)
    ascar("history", "purge", number, "--yes")
    [number] = ascar("history", "import", file, "--json").document["runs"]
    for words in (("apply", number, "--dry-run"), ("apply", number, "--allow-live", server.name)):
        refused = ascar(*words)
        assert refused.status == 2
        assert "name the server with --server" in refused.error
    assert ascar("apply", number, "--dry-run", "--server", live).status == 0
