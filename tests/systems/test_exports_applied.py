"""What is exported, put in force by Patroni and Ansible themselves, and read back equal."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from benchmarks.harness import free_port

from ascar.catalogues.mariadb import mariadb
from ascar.errors import StageFailed
from ascar.program.account import Account
from ascar.program.mariadb import MariaPrograms
from ascar.program.postgresql import Programs
from ascar.program.redis import RedisPrograms
from ascar.systems.keeper import Keeper
from ascar.systems.linux import Linux
from ascar.systems.mariadb.server import MariaServer
from ascar.systems.mariadb.statements import forms_of as forms_of_mariadb
from ascar.systems.postgresql.reading import IN_FORCE, read_back
from ascar.systems.postgresql.server import PostgresServer
from ascar.systems.postgresql.statements import forms_of
from ascar.systems.redis.protocol import ask
from ascar.systems.redis.statements import forms_of as forms_of_redis
from own_servers import (
    mariadb_account,
    mariadb_installed,
    postgresql_account,
    postgresql_installed,
    server_place,
)
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.slow

WANTED = {
    "work_mem": 5120,
    "random_page_cost": 1.5,
    "wal_compression": "pglz",
    "jit": False,
    "checkpoint_timeout": 600,
    "autovacuum_vacuum_cost_delay": 0.3,
    "shared_buffers": 65_536,
}
WANTED_OF_REDIS = {"hz": 20, "save": "900 1 300 10 60 10000", "appendfsync": "no", "latency_tracking": False}
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
"""An interpreter that every account can run: ours may lie in somebody's home."""

COLLECTIONS = ("community/postgresql", "community/mysql", "community/general", "ansible/posix")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment of its own, which every account can read."""
    if not postgresql_installed():
        pytest.skip("PostgreSQL is not installed, or has no account")
    with server_place(postgresql_account(), "ascar-tools-") as folder:
        yield Path(folder)


def install(place: Path, *packages: str) -> Path:
    """A new environment with packages; skips where there is no network."""
    environment = place / "venv"
    subprocess.run([PYTHON, "-m", "venv", str(environment)], check=True)
    words = [environment / "bin/pip", "install", "-q", "--disable-pip-version-check", *packages]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{packages[0]} cannot be installed: {done.stderr.strip()[-200:]}")
    return environment / "bin"


# Patroni


def patroni_file(place: Path, ports: Sequence[int]) -> Path:
    api, raft, server = (f"127.0.0.1:{port}" for port in ports)
    configuration = {
        "scope": "ascar",
        "name": "one",
        "restapi": {"listen": api, "connect_address": api},
        "raft": {"data_dir": str(place / "raft"), "self_addr": raft},
        "bootstrap": {
            "dcs": {
                "loop_wait": 1,
                "ttl": 20,
                "retry_timeout": 3,
                "postgresql": {"parameters": {"jit": "on"}},
            },
            "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, {"auth": "trust"}],
        },
        "postgresql": {
            "listen": server,
            "connect_address": server,
            "data_dir": str(place / "data"),
            "bin_dir": str(Programs.find().folder),
            "pgpass": str(place / "pgpass"),
            "authentication": {
                "superuser": {"username": "postgres", "password": "x"},
                "replication": {"username": "replicator", "password": "x"},
            },
            "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 trust"],
            "parameters": {"unix_socket_directories": str(place)},
        },
    }
    path = place / "patroni.yml"
    path.write_text(yaml.safe_dump(configuration))
    return path


@contextmanager
def running_as(account: Account, argv: Sequence[str | Path], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program, ended at the end."""
    with log.open("wb") as said:
        process = subprocess.Popen(
            account.run(*map(str, argv)), stdout=said, stderr=said, cwd=log.parent, start_new_session=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def test_patroni_puts_its_part_in_force(tools: Path) -> None:
    account = postgresql_account()
    programs = install(tools, "patroni[raft]", "psycopg[binary]")
    ports = (free_port(), free_port(), free_port())
    path = patroni_file(tools, ports)

    def asked(statement: str) -> str:
        psql = [Programs.find().path("psql"), "-X", "-A", "-t", "-q", "-h", str(tools), "-p", str(ports[2])]
        words = account.run(*psql, "-U", "postgres", "-d", "postgres", "-c", statement)
        return subprocess.run(words, capture_output=True, text=True, check=False, cwd=tools).stdout

    def control(*words: str) -> str:
        argv = account.run(str(programs / "patronictl"), "-c", str(path), *words)
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tools)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    wanted = {**WANTED, "wal_log_hints": True, "max_worker_processes": 6}
    lines = forms_of(wanted, tuple(wanted))["patroni"]
    assert lines[0].endswith(": wal_log_hints")
    exported = tools / "exported.yml"
    exported.write_text("\n".join(lines) + "\n")
    log = tools / "patroni.log"
    with running_as(account, [programs / "patroni", path], log):
        until(
            lambda: asked("SELECT pg_is_in_recovery()").strip() == "f",
            what="Patroni does not start PostgreSQL",
        )
        until(lambda: '"Leader"' in control("list", "--format", "json"), what="no leader")
        control("edit-config", "ascar", "--apply", str(exported), "--force")
        until(lambda: asked("SHOW work_mem").strip() == "5MB", what="the part is not in force")
        until(lambda: "Pending restart" in control("list", "--format", "json"), what="no restart is wanted")
        control("restart", "ascar", "--force")
        until(lambda: asked("SHOW shared_buffers").strip() == "64MB", what="it does not restart")
        assert read_back(asked(IN_FORCE), wanted, wanted) == wanted
        assert "work_mem: 5120kB" in control("show-config", "ascar")


# Ansible


@pytest.fixture(scope="module")
def ansible(tools: Path) -> Path:
    """ansible-playbook with the collections that the playbooks name, out of PyPI's `ansible`."""
    place = tools / "ansible"
    place.mkdir()
    programs = install(place, "ansible-core", "psycopg2-binary", "redis", "PyMySQL")
    words = [
        programs / "pip",
        "download",
        "-q",
        "--no-deps",
        "--disable-pip-version-check",
        "-d",
        place,
        "ansible",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"ansible cannot be downloaded: {done.stderr.strip()[-200:]}")
    (wheel,) = place.glob("ansible-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        wanted = tuple(f"ansible_collections/{name}/" for name in COLLECTIONS)
        packed.extractall(place, [name for name in packed.namelist() if name.startswith(wanted)])
    wheel.unlink()
    return programs


def play(
    ansible: Path, lines: Sequence[str], environment: dict[str, str], changes: dict[str, Any]
) -> dict[str, int]:
    """Run a playbook on this machine as we are; how many tasks were ok, changed, ...

    Args:
        ansible: the programs.
        lines: the playbook.
        environment: more variables.
        changes: what this machine has elsewhere: texts to replace, and "handler", instead of a service.
    """
    text = "\n".join(lines)
    for old, new in changes.items():
        if old != "handler":
            assert old in text
            text = text.replace(old, new)
    (found,) = yaml.safe_load(text)
    for handler in found.get("handlers", ()):
        del handler["ansible.builtin.service"]
        handler["ansible.builtin.command"] = {"argv": changes["handler"]}
    path = ansible.parent / "playbook.yml"
    # Written anew only where a handler is another one: else Ansible reads what was exported.
    path.write_text(yaml.safe_dump([found]) if "handlers" in found else text + "\n")
    words = [
        ansible / "ansible-playbook",
        "-i",
        f"{found['hosts']},",
        "-c",
        "local",
        "-e",
        "ansible_become=false",
    ]
    words += ["-e", f"ansible_python_interpreter={ansible / 'python'}", path]
    variables = {
        "ANSIBLE_COLLECTIONS_PATH": str(ansible.parents[1]),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
        "ANSIBLE_LOCALHOST_WARNING": "0",
        "ANSIBLE_LOCAL_TEMP": str(ansible.parents[1] / "tmp"),
        "ANSIBLE_REMOTE_TEMP": str(ansible.parents[1] / "tmp"),
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env={**os.environ, **variables, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    recap = done.stdout.rpartition("PLAY RECAP")[2]
    return {name: int(count) for name, _, count in (word.partition("=") for word in recap.split()) if count}


def test_ansible_sets_postgresql_and_a_second_run_changes_nothing(ansible: Path) -> None:
    account = postgresql_account()
    with server_place(account, "ascar-pg-") as folder, Keeper("postgresql", user=True) as keeper:
        place = Path(folder)
        server = PostgresServer(Programs.find(), account, place, keeper)
        server.create()
        server.begin([], 60)
        try:
            lines = forms_of(WANTED, tuple(WANTED))["ansible"]
            variables = {"PGHOST": folder, "PGUSER": "postgres", "PGDATABASE": "postgres"}
            changes = {"handler": ["touch", str(place / "restarted")]}
            done = play(ansible, lines, variables, changes)
            assert done["changed"] >= 2
            assert (place / "restarted").exists()
            server.stop()
            server.begin([], 60)
            assert read_back(server.ask(IN_FORCE), WANTED, WANTED) == WANTED
            (place / "restarted").unlink()
            assert play(ansible, lines, variables, changes)["changed"] == 0
            assert not (place / "restarted").exists()
        finally:
            server.stop()


def test_ansible_sets_redis_and_a_second_run_changes_nothing(ansible: Path) -> None:
    account = Account.of(None, "Redis", "redis")
    port = free_port()
    with server_place(account, "ascar-redis-") as folder:
        path = Path(folder) / "redis.conf"
        path.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {folder}\nunixsocket {folder}/s\nsave 60 1\nhz 10\n"
        )
        programs = RedisPrograms.find()

        def told() -> dict[str, str]:
            answer = ask(Path(folder) / "s", ("CONFIG", "GET", "*"), 10)
            assert isinstance(answer, list)
            return dict(zip(map(str, answer[::2]), map(str, answer[1::2]), strict=True))

        def answers() -> bool:
            with suppress(StageFailed):
                return bool(told())
            return False

        wanted = {"hz": "20", "save": "900 1 300 10 60 10000", "appendfsync": "no", "latency-tracking": "no"}
        lines = forms_of_redis(WANTED_OF_REDIS, tuple(WANTED_OF_REDIS))["ansible"]
        (found,) = yaml.safe_load("\n".join(lines))
        for task in found["tasks"]:
            if "community.general.redis" in task:
                task["community.general.redis"]["login_port"] = port
        told_port = yaml.safe_dump([found]).splitlines()
        for turn, changed in enumerate((len(wanted) + 1, 0)):
            with running_as(account, [programs.server, path], Path(folder) / f"log{turn}"):
                until(answers, what="Redis does not start")
                done = play(ansible, told_port, {}, {"/etc/redis/redis.conf": str(path)})
                assert done["changed"] == changed
                assert {name: told()[name] for name in wanted} == wanted


@pytest.mark.skipif(not mariadb_installed(), reason="MariaDB is not installed, or has no account")
@pytest.mark.parametrize(
    "wanted",
    [
        {"innodb_io_capacity": 2500, "innodb_io_capacity_max": 3000, "innodb_max_dirty_pages_pct": 75.5},
        {"innodb_log_buffer_size": 32 << 20, "innodb_adaptive_hash_index": True, "sort_buffer_size": 1 << 20},
    ],
    ids=["at once", "by a restart"],
)
def test_ansible_sets_mariadb_and_a_second_run_changes_nothing(
    ansible: Path, wanted: dict[str, Any], tmp_path: Path
) -> None:
    account, file = mariadb_account(), tmp_path / "90-ascar.cnf"
    with server_place(account, "ascar-maria-") as folder, Keeper("mariadb", user=True) as keeper:
        server = MariaServer(MariaPrograms.find(), account, Path(folder), keeper)
        server.create()
        server.begin([], 60)
        try:
            (found,) = yaml.safe_load("\n".join(forms_of_mariadb(wanted, tuple(wanted))["ansible"]))
            for task in found["tasks"]:
                if "community.mysql.mysql_variables" in task:
                    task["community.mysql.mysql_variables"]["login_unix_socket"] = str(server.socket)
                    task["community.mysql.mysql_variables"]["login_user"] = "root"
            lines = yaml.safe_dump([found]).splitlines()
            changes: dict[str, Any] = {"/etc/mysql/mariadb.conf.d/90-ascar.cnf": str(file)}
            if "handlers" in found:
                changes["handler"] = ["touch", str(tmp_path / "restarted")]
            assert play(ansible, lines, {}, changes)["changed"] >= len(wanted)
            assert (tmp_path / "restarted").exists() == ("handlers" in found)
            if "handlers" in found:
                server.stop()
                server.begin(file.read_text("utf-8").splitlines()[1:], 60)
            told = server.settings()
            assert {name: mariadb()[name].value(told[name]) for name in wanted} == wanted
            assert play(ansible, lines, {}, changes)["changed"] == 0
        finally:
            server.stop()


@pytest.mark.root
@pytest.mark.machine
def test_ansible_sets_the_kernel(ansible: Path, tmp_path: Path) -> None:
    target = Linux({"settings": ["vm.vfs_cache_pressure"]})
    name = "vm.vfs_cache_pressure"
    with Keeper("test") as keeper:
        before = keeper.knob_read(name).value
        assert isinstance(before, int)
        keeper.knob_write(name, before + 7)  # the value that it expects at the end, and undoes
        target.space = target.space.with_defaults({"vm_vfs_cache_pressure": before})
        Path("/proc/sys/vm/vfs_cache_pressure").write_text(str(before))
        configuration = target.space.validate({"vm_vfs_cache_pressure": before + 7})
        lines = target.commands(configuration, ("vm_vfs_cache_pressure",))["ansible"]
        file = tmp_path / "90-ascar.conf"
        changes = {"/etc/sysctl.d/90-ascar.conf": str(file)}
        assert play(ansible, lines, {}, changes)["changed"] == 1
        assert file.read_text().split("\n")[-2] == f"{name}={before + 7}"
        assert keeper.knob_read(name).value == before + 7
        assert play(ansible, lines, {}, changes)["changed"] == 0
    assert int(Path("/proc/sys/vm/vfs_cache_pressure").read_text()) == before
