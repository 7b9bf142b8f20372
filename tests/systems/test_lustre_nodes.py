"""Several Lustre clients at once: stand-ins of `lctl` behind SSH servers; cut off, different, killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import lctl_stand_in as stand_in
from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.study.nodes import on_node
from ascar.systems.keeper import restore_all
from ascar.systems.lustre.client import LustreClient
from ssh_server import Server, running_server
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("client1", "client2")
CHILD = """
import json, sys
from ascar.systems.lustre.client import LustreClient
with LustreClient(json.loads(sys.argv[1])) as target:
    target.apply(target.space.validate({**target.space.default(), "llite_statahead_max": 64}))
    print("set", flush=True)
    sys.stdin.read()
"""


class Client(stand_in.ClientState):
    """A client whose state is in the home of its SSH server."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.folder)
        self.server = server

    def reachable(self, *, is_so: bool) -> None:
        keys = self.server.folder / "authorized"
        keys.write_bytes((self.server.folder / "user.pub").read_bytes() if is_so else b"")
        if not is_so:
            self.server.cut()


@pytest.fixture(scope="module")
def servers() -> Iterator[list[Server]]:
    with ExitStack() as held:
        yield [held.enter_context(running_server()) for _ in NAMES]


@pytest.fixture
def clients(servers: list[Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("ascar.systems.keeper.ROOTS_STATE", tmp_path / "of-root")
    return [Client(one) for one in servers]


@pytest.fixture
def options(clients: list[Client], tmp_path: Path) -> dict[str, Any]:
    script, lctl = Path(stand_in.__file__).resolve(), tmp_path / "lctl"
    lctl.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {script} "$HOME/state.json" "$@"\n')
    lctl.chmod(0o755)
    tables = [one.server.table(name=name) for one, name in zip(clients, NAMES, strict=True)]
    target = {"file_system": stand_in.FILE_SYSTEM, "path": str(tmp_path), "lctl": str(lctl)}
    return on_node({**target, "settings": ["llite.statahead_max"], "nodes": [*NAMES]}, tables)


def apply(target: LustreClient, value: int) -> None:
    target.apply(target.space.validate({**target.space.default(), "llite_statahead_max": value}))


def statahead(clients: list[Client]) -> list[int]:
    return [one.values[f"{stand_in.LLITE}.statahead_max"] for one in clients]


def test_all_clients_are_set_and_put_back(clients: list[Client], options: dict[str, Any]) -> None:
    before = [one.values for one in clients]
    with LustreClient(options) as target:
        apply(target, 64)
        assert statahead(clients) == [64, 64]
        assert target.read(["llite_statahead_max"]) == {"llite_statahead_max": 64}
        assert target.sample().counters["mdc_requests"] == 40, "of both"
        assert target.describe()["nodes"] == [*NAMES]
    assert [one.values for one in clients] == before


def test_clients_that_differ_are_named(clients: list[Client], options: dict[str, Any]) -> None:
    clients[1].change(values={**clients[1].values, f"{stand_in.LLITE}.statahead_max": 8})
    with pytest.raises(StageFailed, match=r"node client2: llite.*= 8: must be 32, as on other devices"):
        LustreClient(options).__enter__()


def test_what_only_one_client_has_is_put_back_too(clients: list[Client], options: dict[str, Any]) -> None:
    """A newer client raises its dirty data of metadata along; an older one has none."""
    clients[1].save(stand_in.fresh("2.10"))
    before = [one.values for one in clients]
    with LustreClient({**options, "settings": ["mdc.max_rpcs_in_flight"]}) as target:
        assert "mdc_max_dirty_mb" not in target.space
        target.apply(target.space.validate({**target.space.default(), "mdc_max_rpcs_in_flight": 256}))
        assert clients[0].values[f"{stand_in.MDC[0]}.max_dirty_mb"] == 256
    assert [one.values for one in clients] == before


def test_what_fails_on_one_client_is_said_with_its_name(
    clients: list[Client], options: dict[str, Any]
) -> None:
    with LustreClient(options) as target:
        apply(target, 64)
        clients[1].change(states={stand_in.OSC[1]: "RECOVER"})
        with pytest.raises(StageFailed, match=r"node client2: osc.*the state is RECOVER"):
            apply(target, 128)
        assert statahead(clients) == [64, 64], "nothing is set while one recovers"
        clients[1].change(states={}, history={stand_in.OSC[2]: [[200, "EVICTED"], [201, "FULL"]]})
        with pytest.raises(StageFailed, match=r"node client2: osc.*was evicted at 200"):
            target.sample()


@pytest.mark.slow
def test_a_client_that_is_cut_off_is_put_back_once_it_can_be_reached(
    clients: list[Client], options: dict[str, Any]
) -> None:
    with LustreClient(options) as target:
        apply(target, 64)
        clients[1].reachable(is_so=False)
        with pytest.raises(EnvironmentLacks, match="node client2: cannot be reached"):
            apply(target, 128)
    assert statahead(clients)[0] == 32
    assert statahead(clients)[1] == 64
    failed = restore_all()
    assert any("client2" in one for one in failed.failed), failed
    clients[1].reachable(is_so=True)
    assert restore_all().failed == ()
    assert statahead(clients) == [32, 32]


def test_a_client_that_cannot_be_reached_ends_a_study_before_anything_is_set(
    clients: list[Client], options: dict[str, Any]
) -> None:
    clients[0].reachable(is_so=False)
    try:
        with pytest.raises(EnvironmentLacks, match="node client1: cannot be reached"):
            LustreClient(options).__enter__()
    finally:
        clients[0].reachable(is_so=True)
    assert statahead(clients) == [32, 32]


@pytest.mark.slow
def test_killed_all_clients_are_put_back(clients: list[Client], options: dict[str, Any]) -> None:
    words = [sys.executable, "-c", CHILD, json.dumps(options)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"set\n"
        assert statahead(clients) == [64, 64]
        child.send_signal(signal.SIGKILL)
    until(lambda: statahead(clients) == [32, 32], 60)


OST, MDT = f"obdfilter.{stand_in.FILE_SYSTEM}-OST0000", f"mdt.{stand_in.FILE_SYSTEM}-MDT0000"


@pytest.fixture
def with_servers(clients: list[Client], options: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """The client is this machine, and the two of SSH are servers."""
    client = stand_in.ClientState(tmp_path)
    script = Path(stand_in.__file__).resolve()
    Path(options["lctl"]).write_text(
        f'#!/bin/sh\n[ -n "$SSH_CONNECTION" ] && state=$HOME/state.json || state={client.file}\n'
        f'exec {sys.executable} -I -S {script} "$state" "$@"\n'
    )
    clients[0].change(jobs={OST: {"fio.0": [100, 1000, 0], "cp:7": [5, 50, 0]}}, values={})
    clients[1].change(jobs={MDT: {"fio.0": [0, 0, 10]}}, values={}, version="2.10")
    return {**{key: options[key] for key in options if key != "nodes"}, "servers": options["nodes"]}


def jobs(target: LustreClient) -> dict[str, float]:
    found = target.sample().counters
    return {name: value for name, value in found.items() if name.startswith(("job_", "others_")) and value}


def test_servers_tell_what_they_did_for_the_loads_job(
    clients: list[Client], with_servers: dict[str, Any]
) -> None:
    with LustreClient({**with_servers, "job": "fio.0"}) as target:
        assert jobs(target) == {}, "what was before the study does not count"
        clients[0].change(jobs={OST: {"fio.0": [100, 1700, 0], "cp:7": [5, 90, 0], "new.1": [3, 0, 0]}})
        clients[1].change(jobs={MDT: {"fio.0": [0, 0, 14]}})
        counted = {"job_write_bytes": 700, "job_metadata_operations": 4}
        others = {"others_write_bytes": 40, "others_read_bytes": 3}
        assert jobs(target) == counted | others
        clients[0].change(jobs={OST: {"fio.0": [100, 30, 0]}})  # it has forgotten the job in between
        assert jobs(target) == {**counted, "job_write_bytes": 730} | others


@pytest.mark.parametrize(
    ("jobid_var", "changes", "words"),
    [
        ("disable", {"job": "fio.0"}, "the client labels no requests (jobid_var = 'disable')"),
        ("SLURM_JOB_ID", {}, "target.job: missing; jobid_var = 'SLURM_JOB_ID': the variable"),
        ("SLURM_JOB_ID", {"job": ""}, "target.job = '': must be a job ID"),
        ("SLURM_JOB_ID", {"job": "a\nb"}, "target.job = 'a\\nb': must be a job ID"),
        (
            "SLURM_JOB_ID",
            {"job": "fio.0", "servers": []},
            "target.job = 'fio.0': is allowed beside `servers` alone",
        ),
    ],
)
def test_a_job_that_cannot_be_told_is_named(
    with_servers: dict[str, Any], tmp_path: Path, jobid_var: str, changes: dict[str, Any], words: str
) -> None:
    state = tmp_path / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "jobid_var": jobid_var}))
    with pytest.raises(StudyError) as caught:
        LustreClient({**with_servers, **changes}).__enter__()
    assert words in caught.value.message


def test_the_job_is_that_of_the_environment(
    with_servers: dict[str, Any], tmp_path: Path, clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "jobid_var": "SLURM_JOB_ID"}))
    monkeypatch.setenv("SLURM_JOB_ID", "cp:7")
    with LustreClient(with_servers) as target:
        clients[0].change(jobs={OST: {"cp:7": [5, 90, 0]}})
        assert jobs(target) == {"job_write_bytes": 40}


def test_a_machine_that_is_no_server_of_the_file_system_is_named(
    clients: list[Client], with_servers: dict[str, Any]
) -> None:
    clients[1].change(jobs={})
    with pytest.raises(StageFailed, match=r"node client2: obdfilter.*is it a server of it"):
        LustreClient({**with_servers, "job": "fio.0"}).__enter__()


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([], "target.nodes = []: must be a list of names of [[node]] tables"),
        ("client1", "target.nodes = 'client1': must be a list of names"),
        (["client3"], "target.nodes[0] = 'client3': must be the name of a [[node]]; there are client1"),
        (["client1", "client1"], "target.nodes: 'client1' is there twice"),
        ([7], "target.nodes[0] = 7: must be the name of a [[node]]"),
    ],
)
def test_nodes_that_are_none_are_named(nodes: Any, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        on_node({"nodes": nodes}, [{"name": "client1", "host": "a"}])
    assert words in caught.value.message
