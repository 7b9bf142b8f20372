"""What clients do, in the terms of `ascard load`: file sets, thread groups, flowops."""

from __future__ import annotations

from typing import Literal

import msgspec

Operation = Literal[
    "read", "write", "createfile", "openfile", "closefile", "writewholefile", "readwholefile", "appendfile",
    "appendfilerand", "deletefile", "statfile", "delay", "barrier", "sync",
]  # fmt: skip
"""Filebench's names, besides "barrier" (all threads of the workload on all clients meet) and "sync"."""


class FileSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Files that a workload works on.

    Attributes:
        name: that flowops refer to.
        size_mib: mean size of a file.
        entries: files.
        size_gamma: shape of the gamma distribution of sizes; 0: all alike (Filebench: cvar-gamma, 1.5).
        prealloc_percent: share of the files that exist at the start.
        shared: all clients work on this one set; otherwise each has its own.
    """

    name: str
    size_mib: float
    entries: int = 1
    size_gamma: float = 0.0
    prealloc_percent: float = 100.0
    shared: bool = False


class Flowop(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One step of a thread.

    Attributes:
        op: what is done: Filebench's operations; "barrier": wait until every thread of the workload on every
            client has come here; "sync": wait until all that the client has written has reached the servers.
        fileset: that it works on; None: the workload's only one.
        iosize_kib: bytes an operation (of "appendfilerand": at most).
        random: of "read" and "write": at a random place of the file; otherwise in sequence.
        directio: past the client's cache: the thread waits until a server has answered for every byte.
        file_per_thread: of "read" and "write": a file for each thread; otherwise one at random.
        iters: times in a row.
        probability_percent: of "read" and "write": of the times that this step is done at all; a ratio of two
            steps.
        value_s: of "delay": how long.
    """

    op: Operation
    fileset: str | None = None
    iosize_kib: float = 1024.0
    random: bool = False
    directio: bool = False
    file_per_thread: bool = False
    iters: int = 1
    probability_percent: float = 100.0
    value_s: float = 0.0


class ThreadGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Threads that are alike.

    Attributes:
        flowops: what each does, in turn and for ever.
        instances: how many on each client.
    """

    flowops: tuple[Flowop, ...]
    instances: int = 1


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one client runs; every client of a group runs its own copy.

    Attributes:
        name: that client groups refer to.
        filesets: it works on.
        threads: groups of them.
    """

    name: str
    filesets: tuple[FileSet, ...]
    threads: tuple[ThreadGroup, ...]
