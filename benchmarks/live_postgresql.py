"""Bad candidates on a PostgreSQL server that people use: how long they have less than the floor.

    python -m benchmarks.live_postgresql --budget 30min

Each study is a process of its own on a server with people, who are a pgbench that notes each transaction. Its
search begins with a planted bad candidate; `[guard]` has a floor of 70% of what they usually get. A window of
half a second in which they get less than that, from the begin of the bad trial to five seconds after its end,
is time below the floor. The same is counted while the old values are in force, as what happens anyway.

scans      each lookup reads the whole table (enable_indexscan and its like are off)
sessions   the same where sessions keep the plans that they have, and others come four seconds later
crowd      the same while others have taken every connection, so that nobody can connect
wal        a checkpoint whenever the log has grown by the least max_wal_size of the space
delay      each commit waits for others (commit_delay)
vacuum     autovacuum is off, which hurts late
buffers    shared_buffers of 16 MiB; the server is started anew for it, and to put it back
dies       shared_buffers that the server does not come up with

A study must leave every setting, postgresql.conf and postgresql.auto.conf as they were, and the same server
process where no new start is allowed.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Benchmark, Piece, table

from ascar.errors import EnvironmentLacks
from ascar.history import History
from ascar.program.account import Account
from ascar.program.postgresql import Programs

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

FLOOR, WINDOW_S, AFTER_S, ROUNDS = 0.7, 0.5, 5.0, 3
BELOW_MAX_S = 5.0
_CLIENTS, _CONNECTIONS = 4, 30
_STUDY_MAX_S = 300.0
_DIE_KIB = 3 << 20
_LATE_S = 4.0
_OURS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ascar'"
_HISTORY = "history.sqlite"

SCANS = "enable_indexscan = false, enable_indexonlyscan = false, enable_bitmapscan = false"

STUDY = """
[study]
name = "bad"
objective = "maximize throughput_ops_per_s"
budget = "2 min"
seed = {seed}
[target]
kind = "postgresql"
server = "existing"
host = "{host}"
user = "postgres"
database = "postgres"
memory = "64 GiB"
parameters = "wide"
{restarts}
[space]
tuned = {tuned}
allow_weaker = ["availability"]
[start]
configurations = [{{ {bad} }}]
[measurement]
load_min = "9 s"
load_max = "10 s"
reading = "1 s"
abandon = 0.0
[stop]
trials = 3
[verify]
runs_min = 2
runs_max = 2
[[guard.floor]]
metric = "throughput_ops_per_s"
minimum = "{floor:.0f}%"
hold_ticks = 50
"""


@dataclass(frozen=True, slots=True)
class BadCandidate:
    """A candidate that is planted, and the people who suffer from it.

    Attributes:
        values: the candidate, as TOML.
        people: pgbench's options.
        late: whether other sessions come after four seconds.
        crowded: whether others have taken every connection.
        restarts: whether the server may be started anew.
    """

    values: str
    people: tuple[str, ...] = ("-S",)
    late: bool = False
    crowded: bool = False
    restarts: bool = False

    @property
    def planted(self) -> dict[str, Any]:
        """The parameters that it sets."""
        return tomllib.loads(self.values.replace(", ", "\n"))


CANDIDATES = {
    "scans": BadCandidate(SCANS),
    "sessions": BadCandidate(SCANS, ("-S", "-M", "prepared"), late=True),
    "crowd": BadCandidate(SCANS, crowded=True),
    "wal": BadCandidate("max_wal_size = 256, checkpoint_completion_target = 0.5", ("-N",)),
    "delay": BadCandidate("commit_delay = 10000, commit_siblings = 1", ("-N",)),
    "vacuum": BadCandidate("autovacuum = false", ()),
    "buffers": BadCandidate("shared_buffers = 16384", ("-S",), restarts=True),
    "dies": BadCandidate("shared_buffers = 33554432", ("-S",), restarts=True),
}


class PeoplesServer:
    """A server with people.

    Args:
        place: a directory that its account may write to.
        people: pgbench's options.
    """

    def __init__(self, place: Path, people: Sequence[str]) -> None:
        self.place, self._programs = place, Programs.find()
        self._account = Account.of(None, "PostgreSQL", "postgres")
        os.chown(place, self._account.uid, self._account.gid)
        self.data, self._people = place / "data", people
        self._loads: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Make it, fill it, and start it."""
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "--no-sync")
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(
                f"unix_socket_directories = '{self.place}'\nlisten_addresses = ''\nmax_connections = "
                f"{_CONNECTIONS}\nsuperuser_reserved_connections = 3\ncluster_name = 'bad'\n"
            )
        self._run("pg_ctl", "start", "-w", "-D", str(self.data), "-l", str(self.place / "log"))
        self._run("pgbench", "-i", "-q", "-s", "4", "-h", str(self.place), "-U", "postgres", "postgres")
        self.ask("ALTER SYSTEM SET work_mem = '8MB'")
        self.ask("SELECT pg_reload_conf()")

    def restart_command(self) -> list[str]:
        """Starts it anew; with more memory than it may have it does not come up."""
        script = (
            f"ulimit -v {_DIE_KIB}; exec {self._programs.path('pg_ctl')} restart -w -t 20 -m fast "
            f"-D {self.data} -l {self.place / 'log'}"
        )
        return self._account.run("/bin/sh", "-c", script)

    @property
    def pid(self) -> int:
        """Its process."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def files(self) -> dict[str, str]:
        """Its configuration files."""
        names = ("postgresql.conf", "postgresql.auto.conf", "pg_hba.conf")
        return {name: (self.data / name).read_text() for name in names}

    def settings(self) -> str:
        """Every setting, as a new session has it."""
        return self.ask("SELECT name, setting, source, pending_restart FROM pg_settings ORDER BY 1")

    def ask(self, statement: str) -> str:
        """The answer to a statement."""
        words = ["psql", "-X", "-A", "-t", "-q", "-h", str(self.place), "-U", "postgres", "-d", "postgres"]
        end_s = time.monotonic() + 60
        while True:
            done = subprocess.run([*words, "-c", statement], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return done.stdout
            if time.monotonic() > end_s:
                raise RuntimeError(done.stderr)
            time.sleep(0.2)

    def come(self, *words: str) -> subprocess.Popen[bytes]:
        """More people; where the server is started anew they come again."""
        name = self.place / f"people{len(self._loads)}"
        bench = [self._programs.path("pgbench"), "-n", "-T", "600", "-c", str(_CLIENTS), "-j", "1", "-l"]
        bench += [f"--log-prefix={name}", *words, "-h", str(self.place), "-U", "postgres", "postgres"]
        script = 'while :; do "$@"; sleep 0.1; done'
        load = subprocess.Popen(
            ["/bin/sh", "-c", script, "people", *bench],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._loads.append(load)
        return load

    def go(self, load: subprocess.Popen[bytes]) -> None:
        """Some people go."""
        with suppress(ProcessLookupError):
            os.killpg(load.pid, 9)
        load.wait()

    def all_go(self) -> None:
        """Everybody goes."""
        for load in self._loads:
            self.go(load)

    def answers_s(self) -> list[float]:
        """When each transaction of the people was done, in seconds since 1970."""
        found: list[float] = []
        for path in self.place.glob("people*.*"):
            for line in path.read_text().splitlines():
                words = line.split()
                if len(words) >= 6:
                    found.append(float(words[4]) + float(words[5]) / 1e6)
        return sorted(found)

    def close(self) -> None:
        """End it, and everybody."""
        self.all_go()
        with suppress(RuntimeError):
            self._run("pg_ctl", "stop", "-D", str(self.data), "-m", "immediate")

    def _run(self, name: str, *words: str) -> None:
        argv = self._account.run(self._programs.path(name), *words)
        with (self.place / "out").open("wb") as out:
            done = subprocess.run(argv, stdout=out, stderr=out, check=False, cwd=self.place)
        if done.returncode != 0:
            raise RuntimeError((self.place / "out").read_text()[-300:])


@dataclass(slots=True)
class Crowd:
    """Sessions that do nothing but hold connections.

    Attributes:
        server: the server.
        sessions: those that hold one.
    """

    server: PeoplesServer
    sessions: list[subprocess.Popen[bytes]] = field(default_factory=list["subprocess.Popen[bytes]"])

    def come(self) -> None:
        """Take what connections there are."""
        words = ["psql", "-X", "-q", "-h", str(self.server.place), "-U", "postgres", "-d", "postgres"]
        for _ in range(_CONNECTIONS):
            self.sessions.append(
                subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            )

    def close(self) -> None:
        """Go."""
        for session in self.sessions:
            session.kill()
            session.wait()
            if session.stdin is not None:
                session.stdin.close()


def below_s(answers_s: Sequence[float], usual: float, begin_s: float, end_s: float) -> float:
    """Seconds in windows in which people got less than the floor."""
    count = max(0, int((end_s - begin_s) / WINDOW_S))
    done = [0] * count
    for at_s in answers_s:
        number = int((at_s - begin_s) / WINDOW_S)
        if begin_s <= at_s and number < count:
            done[number] += 1
    return WINDOW_S * sum(one < FLOOR * usual * WINDOW_S for one in done)


def study(name: str, seed: int) -> dict[str, Any]:
    """One study: what people had of it, and what it left."""
    candidate = CANDIDATES[name]
    with serving(candidate) as (server, folder), ExitStack() as held:
        file = folder / "study.toml"
        restarts = ""
        if candidate.restarts:
            restarts = f"restarts = 'allowed'\nrestart_command = {json.dumps(server.restart_command())}"
        file.write_text(
            STUDY.format(
                seed=seed,
                host=server.place,
                restarts=restarts,
                tuned=json.dumps(list(candidate.planted)),
                bad=candidate.values,
                floor=100 * FLOOR,
            )
        )
        people = server.come(*candidate.people)
        time.sleep(3)
        before, files, pid = server.settings(), server.files(), server.pid
        crowd = Crowd(server)
        held.callback(crowd.close)
        environment = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / "state"),
            "ASCAR_HISTORY": str(folder / _HISTORY),
        }
        words = [sys.executable, "-m", "ascar", "tune", str(file), "--json", "--allow-live"]
        process = subprocess.Popen(
            [*words, f"{server.place}:5432/bad"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        if candidate.crowded:
            threading.Thread(target=_crowd_comes, args=(server, crowd, process), daemon=True).start()
        if candidate.late:
            threading.Thread(
                target=_others_come, args=(server, people, candidate, process), daemon=True
            ).start()
        said, told = process.communicate(timeout=_STUDY_MAX_S)
        crowd.close()
        time.sleep(1)
        ended_s = time.time()
        after, files_after = server.settings(), server.files()
        left = {
            "settings_same": before == after,
            "files_same": files == files_after,
            "process_same": pid == server.pid,
        }
        server.all_go()
        trials = trials_of(folder)
        if not trials:
            raise RuntimeError(f"ascar tune ended with {process.returncode}: {(told or said)[-300:]!r}")
        return {
            **judged(server.answers_s(), trials, candidate.planted, ended_s),
            **left,
            "status": process.returncode,
        }


def _crowd_comes(server: PeoplesServer, crowd: Crowd, process: subprocess.Popen[bytes]) -> None:
    """Once the study and its guard are connected, others take what is left."""
    while process.poll() is None and int(server.ask(_OURS)) < 2:
        time.sleep(0.1)
    time.sleep(1)
    crowd.come()


def _others_come(
    server: PeoplesServer,
    people: subprocess.Popen[bytes],
    candidate: BadCandidate,
    process: subprocess.Popen[bytes],
) -> None:
    """Once the bad candidate is in force, those who have plans of before go, and others come."""
    files = server.files()
    while server.files() == files and process.poll() is None:
        time.sleep(0.02)
    time.sleep(_LATE_S)
    server.go(people)
    server.come(*candidate.people)


def trials_of(folder: Path) -> list[dict[str, Any]]:
    """The trials of the study, as the history has them."""
    path = folder / _HISTORY
    if not path.exists():
        return []
    with History(path) as history:
        if not history.runs("bad"):
            return []
        return [
            {
                "values": dict(one.configuration),
                "state": one.state.value,
                "failure": None if one.failure is None else one.failure.message,
                "begin_s": datetime.fromisoformat(one.started_at).timestamp(),
                "seconds": sum(one.stage_s.values()),
            }
            for one in history.run("bad").trials()
            if one.started_at
        ]


def judged(
    answers_s: Sequence[float],
    trials: Sequence[dict[str, Any]],
    planted: Mapping[str, Any],
    ended_s: float,
) -> dict[str, Any]:
    """How long people had less than the floor for each trial of the bad candidate, and otherwise."""
    good = [one for one in trials if one["values"] == trials[0]["values"]]
    usual_begin_s, usual_end_s = good[0]["begin_s"], good[0]["begin_s"] + good[0]["seconds"]
    usual = sum(usual_begin_s <= at_s < usual_end_s for at_s in answers_s) / (usual_end_s - usual_begin_s)
    bad = [
        {
            "below_s": below_s(
                answers_s, usual, one["begin_s"], min(ended_s, one["begin_s"] + one["seconds"] + AFTER_S)
            ),
            "seconds": one["seconds"],
            "state": one["state"],
            "failure": one["failure"],
        }
        for one in trials
        if all(one["values"].get(name) == value for name, value in planted.items())
    ]
    anyway_s = sum(below_s(answers_s, usual, g["begin_s"], g["begin_s"] + g["seconds"]) for g in good)
    return {
        "usual_per_s": usual,
        "bad": bad,
        "anyway_s": anyway_s,
        "good_s": sum(g["seconds"] for g in good),
    }


@contextmanager
def serving(candidate: BadCandidate) -> Generator[tuple[PeoplesServer, Path]]:
    """A server, and a directory for the study."""
    place = Path(tempfile.mkdtemp(prefix="ascar-bad-", dir="/var/tmp"))
    try:
        with tempfile.TemporaryDirectory() as folder:
            server = PeoplesServer(place, candidate.people)
            try:
                server.start()
                yield server, Path(folder)
            finally:
                server.close()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def main() -> None:
    """Carry out what has no result yet, and show all."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "30min")
    try:
        Programs.find()
        Account.of(None, "PostgreSQL", "postgres")
    except EnvironmentLacks as lack:
        sys.exit(str(lack))
    pieces = [
        Piece(f"{name} {seed}", lambda name=name, seed=seed: study(name, seed))
        for seed in range(1, ROUNDS + 1)
        for name in CANDIDATES
    ]
    found = benchmark.run(pieces)
    rows: list[list[str]] = []
    for name in CANDIDATES:
        ours = [one for key, one in found.items() if key.rpartition(" ")[0] == name]
        bad = [trial for one in ours for trial in one["bad"]]
        if not ours:
            continue
        seconds = sorted(one["below_s"] for one in bad)
        anyway = sum(one["anyway_s"] for one in ours) / max(1e-9, sum(one["good_s"] for one in ours))
        rows.append(
            [
                name,
                str(len(ours)),
                str(len(bad)),
                str(sum("guard" in str(one["failure"]) or one["state"] == "failed" for one in bad)),
                f"{statistics.median(seconds):.1f}" if seconds else "",
                f"{seconds[-1]:.1f}" if seconds else "",
                f"{sum(one <= BELOW_MAX_S for one in seconds)} of {len(seconds)}",
                f"{anyway:.1%}",
                f"{sum(one['settings_same'] and one['files_same'] for one in ours)} of {len(ours)}",
            ]
        )
    head = ["candidate", "studies", "bad trials", "ended", "below, median s", "greatest s", "at most 5 s"]
    table([*head, "anyway", "as before"], rows)


if __name__ == "__main__":
    main()
