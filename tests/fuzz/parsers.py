"""Every parser of Python's that reads what comes from outside, under one name each.

A function takes any bytes. It returns, or the parser refuses them with an error of the package in one line;
anything else is a failure. Each function imports what it needs, so that a fuzzer starts at once. `feed.py`
feeds one by Atheris, and `test_corpus.py` reads the small inputs of `corpus/`.
"""

from __future__ import annotations

import functools
import math
import os
import tempfile
import tomllib
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import AscarError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Parser:
    """A parser.

    Attributes:
        feed: takes any bytes; an error that it raises is a failure.
        modules: the modules, with those below them, whose branches a fuzzer follows.
    """

    feed: Callable[[bytes], None]
    modules: tuple[str, ...]


PARSERS: dict[str, Parser] = {}
"""The parsers by name."""


def parser(
    name: str, *modules: str, also: type[Exception] = AscarError
) -> Callable[[Callable[[bytes], None]], Callable[[bytes], None]]:
    """Enter a parser, which may refuse with an error of the package in one line, or with the error `also`."""

    def enter(read: Callable[[bytes], None]) -> Callable[[bytes], None]:
        @functools.wraps(read)
        def feed(content: bytes) -> None:
            try:
                read(content)
            except AscarError as error:
                said = error.message
            except also:
                return
            else:
                return
            assert said, "an error says something"
            assert "\n" not in said, said

        PARSERS[name] = Parser(feed, modules)
        return feed

    return enter


def text(content: bytes) -> str:
    """The bytes as the text of a file, which is read as UTF-8 or not at all."""
    return content.decode("utf-8", "replace")


def word(content: bytes) -> str:
    """The bytes as a word of a command line, where what is not UTF-8 becomes surrogates."""
    return content.decode("utf-8", "surrogateescape")


def first(content: bytes, of: tuple[str, ...] | list[str]) -> tuple[str, bytes]:
    """What the first byte chooses, and the rest."""
    return of[(content[:1] or b"\0")[0] % len(of)], content[1:]


@functools.cache
def scratch() -> tempfile.TemporaryDirectory[str]:
    """This process's folder."""
    return tempfile.TemporaryDirectory(prefix="ascar-fuzz-")


def file(name: str, content: bytes) -> Path:
    """A file with this content, readable by this user alone."""
    path = Path(scratch().name) / name
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
        opened.write(content)
    return path


@parser("study", "ascar.study", "ascar.space")
def study(content: bytes) -> None:
    """A study file, and its space on top of a known one."""
    from ascar.space import preset
    from ascar.space.study_table import space_from_table
    from ascar.study import Study

    space_from_table(Study.parse(text(content)).space, preset("storage-v5"))


@parser("online-study", "ascar.capes.session.study", "ascar.study")
def online_study(content: bytes) -> None:
    """A study file of the online loop."""
    from ascar.capes.session.study import OnlineStudy

    OnlineStudy.parse(text(content))


@parser("space-table", "ascar.space", also=tomllib.TOMLDecodeError)
def space_table(content: bytes) -> None:
    """`[space]` of a study, without the other tables."""
    from ascar.space import preset
    from ascar.space.study_table import space_from_table

    space_from_table(tomllib.loads(text(content)), preset("storage-v5"))


@parser("space-document", "ascar.space")
def space_document(content: bytes) -> None:
    """A space in JSON."""
    from ascar.space import space_from_json

    space_from_json(content)


@parser("scenario", "ascar.simulation.reading")
def scenario(content: bytes) -> None:
    """A scenario of the simulated cluster."""
    from ascar.simulation.reading import parse_scenario

    parse_scenario(text(content))


@parser("rules", "ascar.rules")
def rules(content: bytes) -> None:
    """A file of rules."""
    from ascar.rules import RuleSet

    RuleSet.parse(text(content))


@parser("formula", "ascar.expression")
def formula(content: bytes) -> None:
    """A formula; what is read is written and read again, and evaluated."""
    from ascar.expression import parse as parse_formula

    found = parse_formula(word(content))
    assert parse_formula(str(found)) == found
    found.evaluate({"a": 1.5, "b": "x", "c": True})


@parser("objective", "ascar.objective", "ascar.expression")
def objective(content: bytes) -> None:
    """What a study maximizes."""
    from ascar.objective import Objective

    Objective.parse(word(content))


@parser("units", "ascar.units")
def units(content: bytes) -> None:
    """A duration or a size."""
    from ascar.units import parse_duration, parse_size

    kind, rest = first(content, ("duration", "size"))
    found = parse_duration(word(rest)) if kind == "duration" else parse_size(word(rest))
    assert found >= 0


@parser("traces", "ascar.features")
def traces(content: bytes) -> None:
    """A trace of a load, in a form that is named or found out."""
    from ascar.features.trace_form import TRACE_FORMS, parse_trace

    form, rest = first(content, ["", *TRACE_FORMS])
    _, trace = parse_trace(rest, form or None)
    assert len(trace) > 0


@parser("fio-report", "ascar.workloads.fio_report")
def fio_report(content: bytes) -> None:
    """What fio prints, in pieces."""
    from ascar.workloads.fio_report import Documents, read_totals

    documents = Documents()
    for at in range(0, len(content), 13):
        for document in documents.feed(content[at : at + 13]):
            read_totals(document)
    for document in documents.end():
        read_totals(document)


@parser("fio-job", "ascar.workloads.fio_job")
def fio_job(content: bytes) -> None:
    """A job file of fio; what is written from it has no other sections."""
    from ascar.workloads.fio_job import parse_job

    job = parse_job("job", text(content))
    assert sum(line.startswith("[") for line in job.text().splitlines()) == 1 + len(job.sections)


@parser("extraction", "ascar.program.extraction")
def extraction(content: bytes) -> None:
    """Where a program's output has a number, and a line of it."""
    from ascar.program.extraction import decode as decode_line
    from ascar.program.extraction import parse_extractor

    head, _, line = content.partition(b"\n")
    document = decode_line(line)
    found = parse_extractor("key", f"json:{word(head)}").find(document)
    assert found is None or found == found  # noqa: PLR0124 - not a number differs from itself


@parser("file-keys", "ascar.systems.program.file_keys", also=ValueError)
def file_keys(content: bytes) -> None:
    """A program's own file, in which a key is set."""
    from ascar.systems.program.file_keys import FORMATS, with_key

    form, rest = first(content, list(FORMATS))
    key, _, body = rest.partition(b"\n")
    with_key(form, word(body), word(key), 5)


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)


@parser("markup", "ascar.analysis.markup", "html")
def markup(content: bytes) -> None:
    """Any text on the report page stays text."""
    from ascar.analysis.markup import tag

    said = word(content)
    page, reader = tag("p", said, title=said), _Elements()
    page.encode("utf-8")
    reader.feed(page)
    reader.close()
    assert reader.names == ["p"], page


@parser("messages", "ascar.messaging.message")
def rule_messages(content: bytes) -> None:
    """What controllers and their manager say to each other."""
    from ascar.messaging.message import Message, decode
    from ascar.sharp.deployment import messages

    kinds = {
        name: one
        for name, one in vars(messages).items()
        if isinstance(one, type) and issubclass(one, Message)
    }
    kind, rest = first(content, sorted(kinds))
    decode(rest, kinds[kind])


@parser("history-database", "ascar.history")
def history_database(content: bytes) -> None:
    """A history as a damaged disk leaves it, opened."""
    from ascar.history import History

    path = file("history.sqlite", content)
    for end in ("-wal", "-shm", "-journal"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    with History(path):
        pass


@parser("history-file", "ascar.history")
def history_file(content: bytes) -> None:
    """An export of a history: JSON, CSV or Parquet."""
    from ascar.history.exchange import read_runs
    from ascar.history.record import run_record

    suffix, rest = first(content, (".json", ".csv", ".parquet"))
    path = file(f"history{suffix}", rest)
    for run in read_runs(path):
        run_record(run, "run")


@parser("checkpoint", "ascar.capes.archive", "zipfile", "numpy.lib")
def checkpoint(content: bytes) -> None:
    """A checkpoint of a learner."""
    from ascar.capes.archive import read_archive

    read_archive(file("checkpoint.npz", content), "ascar-capes-checkpoint", 9)


@parser("learner-file", "ascar.capes", "ascar.objective")
def learner_file(content: bytes) -> None:
    """The file of a learner."""
    from ascar.capes.process.learner_file import read_plan

    read_plan(file("learner.toml", content))


@parser("library", "ascar.library")
def library(content: bytes) -> None:
    """The library of rules and configurations."""
    from ascar.library.store import Library

    Library.read(file("library.jsonl", content))


@parser("tables", "ascar.analysis.tables")
def tables(content: bytes) -> None:
    """A table that somebody hands to `ascar explore`: CSV or Parquet."""
    from ascar.analysis.tables import read_bytes

    read_bytes(content, "table")


@parser("readings", "ascar.pilot.sources")
def readings(content: bytes) -> None:
    """Recorded readings, in a form that the name's ending tells."""
    from ascar.pilot.sources import ENDINGS, read_all

    ending, rest = first(content, list(ENDINGS))
    read_all(file(f"readings{ending}", rest))


@parser("saved-results", "ascar.pilot.saved")
def saved_results(content: bytes) -> None:
    """What `ascar measure --json` wrote."""
    from ascar.pilot.saved import is_saved, read_saved

    path = file("saved.json", content)
    if is_saved(path):
        read_saved(path)


@parser("connection-file", "ascar.messaging.settings", "ascar.small_file")
def connection_file(content: bytes) -> None:
    """The file that says where the message server is."""
    from ascar.messaging.settings import read_settings

    read_settings(file("connection.toml", content))


@parser("configuration-file", "ascar.cli.configuration_file", "ascar.space")
def configuration_file(content: bytes) -> None:
    """A configuration that `ascar explore` saved."""
    from ascar.cli.configuration_file import read_configuration
    from ascar.space import preset

    read_configuration(file("configuration.json", content), preset("storage-v5"))


@parser(
    "rocksdb", "ascar.workloads.db_bench_report", "ascar.systems.rocksdb.event_log", "ascar.program.rocksdb"
)
def rocksdb(content: bytes) -> None:
    """What db_bench prints, and what RocksDB leaves in the directory of a database."""
    from ascar.program.rocksdb import OptionsInForce
    from ascar.systems.rocksdb.event_log import events_of
    from ascar.workloads.db_bench_report import rounds_of, tally_of

    kind, rest = first(content, ("output", "LOG", "OPTIONS-000007"))
    if kind == "output":
        tally_of(rounds_of(rest.decode("utf-8", "replace"), 1.0)).metrics()
    else:
        database = file(kind, rest).parent
        events_of(database)
        OptionsInForce.of(database)


@parser("ceph", "ascar.workloads.rados_bench_report", "ascar.systems.ceph")
def ceph_output(content: bytes) -> None:
    """What `rados bench`, `ceph status` and `perf dump` say of a cluster."""
    from ascar.systems.ceph.admin_socket import answered
    from ascar.systems.ceph.counters import counters_of, put_off
    from ascar.systems.ceph.status import ClusterStatus
    from ascar.workloads.rados_bench_report import intervals_of, made_of, moments_of

    kind, rest = first(content, ("bench", "status", "dump"))
    if kind == "bench":
        text = rest.decode("utf-8", "replace")
        assert all(math.isfinite(one.rate) for one in intervals_of(moments_of(text)))
        made_of(text)
    elif kind == "status":
        reason = ClusterStatus.of(rest.decode("utf-8", "replace")).problem(3)
        assert reason is None or (len(reason) <= 1_100 and "\n" not in reason)
    else:
        dump = answered(rest, "osd.0", "perf dump")
        assert all(math.isfinite(one) for one in (*counters_of(dump).values(), put_off(dump)))


@parser("lab-files", "ascar.lab")
def lab_files(content: bytes) -> None:
    """A benchmark of searches, and what its options say."""
    from ascar.lab.benchmark import Benchmark
    from ascar.lab.problem import NoiseModel
    from ascar.lab.sweeps import Sweep

    kind, rest = first(content, ("benchmark", "noise", "sweep"))
    if kind == "noise":
        NoiseModel.parse(word(rest))
    elif kind == "sweep":
        Sweep.parse(word(rest))
    else:
        Benchmark.read(file("benchmark.toml", rest), Path(scratch().name))


@parser("nfs", "ascar.systems.nfs.mounts", "ascar.catalogues.nfs")
def nfs_mounts(content: bytes) -> None:
    """What a client's kernel says of its mounts: mountinfo and mountstats."""
    from ascar.catalogues.nfs import nfs
    from ascar.systems.nfs.mounts import counters_of, mounted

    kind, rest = first(content, ("mountinfo", "mountstats"))
    if kind == "mountinfo":
        for mount in mounted(text(rest)):
            assert set(mount.given) <= set(mount.options)
            for one in nfs().values():
                if one.where == "mount":
                    one.value_in(mount.options)
    else:
        assert all(0 <= one < 1e23 for one in counters_of(text(rest), "/mnt/data").values())


@parser("lustre", "ascar.systems.lustre", "ascar.catalogues.lustre")
def lustre_output(content: bytes) -> None:
    """What `lctl get_param` and `lfs getstripe` say on clients and servers."""
    from ascar.catalogues.lustre import lustre
    from ascar.nodes import Finished
    from ascar.systems.lustre.layout import Layout
    from ascar.systems.lustre.lctl import Lctl

    class Said:
        def run(self, argv: object, limit_s: float, stdin: bytes = b"") -> Finished:
            return Finished(0, rest, "")

    kind, rest = first(content, ("values", "imports", "statistics", "jobs", "layout"))
    lctl = Lctl(Said(), "lctl", "scratch")  # type: ignore[arg-type]
    if kind == "values":
        names = lctl.known(tuple(lustre()))
        assert all(0 <= one < 1e15 for one in lctl.values(names).values())
    elif kind == "imports":
        allowed = lctl.allowed()
        for one in lustre().values():
            low, high, step = one.limits(allowed)
            assert low > high or one.range[0] <= low <= high <= one.range[1]
            assert step >= 1
        lctl.disturbances()
        lctl.check_serving()
    elif kind == "statistics":
        assert all(math.isfinite(one) for one in lctl.counters().values())
    elif kind == "jobs":
        assert all(math.isfinite(one) for job in lctl.jobs().values() for one in job.values())
    else:
        Layout.told(rest.decode("utf-8", "replace"))


@parser("node-frames", "ascar.testbed.frames", also=ValueError)
def node_frames(content: bytes) -> None:
    """What a node that is a kernel says on its line, in pieces: the same frames as at once."""
    from ascar.testbed.frames import FrameReader

    reader = FrameReader()
    pieces = [frame for at in range(0, len(content), 7) for frame in reader.feed(content[at : at + 7])]
    assert pieces == FrameReader().feed(content)
