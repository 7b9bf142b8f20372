"""Ready-made fio loads, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.workloads.fio_job import FioJob

if TYPE_CHECKING:
    from collections.abc import Mapping

# Without "overwrite" fio would not lay out files that a load only writes: its first writes would allocate
# blocks and its later ones not.
_COMMON = {
    "ioengine": "psync",
    "overwrite": "1",
    "fallocate": "none",
    "file_service_type": "random",
    "create_serialize": "0",
}

# A "-heavy" preset has 640 MiB of data: 2.5 times localfs's default memory, the ratio of Cao's "-heavy" loads
# (Table 4.2 and section 4.2: as many files as make 2.5 times the memory, never larger files).
PRESETS: Mapping[str, Mapping[str, str]] = {
    # A mail or message store: many small files, every write made durable before the next.
    "small-files-fsync": {
        "rw": "randwrite",
        "bs": "4k",
        "fsync": "1",
        "numjobs": "4",
        "nrfiles": "250",
        "filesize": "16k",
    },
    "small-files-fsync-heavy": {
        "rw": "randwrite",
        "bs": "4k",
        "fsync": "1",
        "numjobs": "4",
        "nrfiles": "10240",
        "filesize": "16k",
        "openfiles": "200",
    },
    # A database's files: 70% reads at random, writes made durable now and then.
    "random-read-write": {
        "rw": "randrw",
        "rwmixread": "70",
        "bs": "8k",
        "fdatasync": "32",
        "numjobs": "4",
        "nrfiles": "1",
        "filesize": "16m",
    },
    "random-read-write-heavy": {
        "rw": "randrw",
        "rwmixread": "70",
        "bs": "8k",
        "fdatasync": "32",
        "numjobs": "4",
        "nrfiles": "1",
        "filesize": "160m",
    },
    # Backups and media: a few long streams, read and written.
    "sequential-streams": {
        "rw": "rw",
        "rwmixread": "50",
        "bs": "1m",
        "numjobs": "4",
        "nrfiles": "1",
        "filesize": "32m",
    },
    "sequential-streams-heavy": {
        "rw": "rw",
        "rwmixread": "50",
        "bs": "1m",
        "numjobs": "4",
        "nrfiles": "1",
        "filesize": "160m",
    },
}


def preset_job(name: str, scale: float) -> FioJob:
    """A preset with `scale` times its data: more files where it has many, larger ones where it has one a job.

    The size of the many is a property of the load and stays (Cao 4.2).
    """
    options = {**_COMMON, **PRESETS[name]}
    files = int(options["nrfiles"])
    if files > 1:
        options["nrfiles"] = str(max(1, round(files * scale)))
    else:
        megabytes = int(options["filesize"].removesuffix("m"))
        # Whole mebibytes: a multiple of every preset's block size.
        options["filesize"] = f"{max(1, round(megabytes * scale))}m"
    return FioJob(options, {name: {}})
