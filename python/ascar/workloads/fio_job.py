"""fio jobs as values: read, checked against what a load may do, and written for fio's standard input.

fio can do far more than load a directory: run programs (`exec_prerun`, `ioengine=exec`, and even arithmetic
in a value, which it hands to a shell), write logs anywhere, open any device. So a job may use only the
options listed here, with values made of harmless characters; where the files go is never the job's to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from ascar.errors import InputError, StudyError
from ascar.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Mapping

JOB_BYTES_MAX = 50_000

# What shapes the I/O and cannot leave the directory, run a program, or hide an error.
# fmt: off
ALLOWED = frozenset({
    "allrandrepeat", "ba", "blockalign", "blocksize", "blocksize_range", "blocksize_unaligned", "bs",
    "bs_unaligned", "bsrange", "bssplit", "buffer_compress_chunk", "buffer_compress_percentage", "buffered",
    "clocksource", "cpus_allowed", "cpus_allowed_policy", "create_fsync", "create_on_open",
    "create_serialize", "dedupe_mode", "dedupe_percentage", "direct", "end_fsync", "fadvise_hint",
    "fallocate", "fdatasync", "file_append", "file_service_type", "filename", "filename_format", "filesize",
    "fixedbufs", "flow", "flow_id", "flow_sleep", "force_async", "fsync", "fsync_on_close", "hipri",
    "invalidate", "io_limit", "io_size", "io_submit_mode", "iodepth", "iodepth_batch",
    "iodepth_batch_complete", "iodepth_batch_complete_max", "iodepth_batch_complete_min",
    "iodepth_batch_submit", "iodepth_low", "ioengine", "nice", "nonvectored", "norandommap", "nrfiles",
    "numjobs", "offset", "offset_align", "offset_increment", "openfiles", "overwrite", "percentage_random",
    "pre_read", "prio", "prioclass", "random_distribution", "random_generator", "randrepeat", "randseed",
    "rate", "rate_iops", "rate_process", "readwrite", "refill_buffers", "registerfiles", "rw", "rw_sequencer",
    "rwmixread", "rwmixwrite", "scramble_buffers", "serialize_overlap", "size", "softrandommap",
    "sqthread_poll", "startdelay", "sync", "sync_file_range", "thinktime", "thinktime_blocks",
    "thinktime_blocks_type", "thinktime_iotime", "thinktime_spin", "thread", "uncached", "unique_filename",
    "unlink", "unlink_each_loop", "use_os_rand", "write_barrier", "zero_buffers",
})
# fmt: on

# Those of them that are on or off.
# fmt: off
SWITCHES = frozenset({
    "allrandrepeat", "blocksize_unaligned", "bs_unaligned", "buffered", "create_fsync", "create_on_open",
    "create_serialize", "direct", "end_fsync", "fadvise_hint", "fallocate", "fdatasync", "file_append",
    "fixedbufs", "force_async", "fsync", "fsync_on_close", "hipri", "invalidate", "nonvectored",
    "norandommap", "overwrite", "pre_read", "randrepeat", "refill_buffers", "registerfiles",
    "scramble_buffers", "serialize_overlap", "softrandommap", "sqthread_poll", "sync", "thread", "uncached",
    "unique_filename", "unlink", "unlink_each_loop", "use_os_rand", "zero_buffers",
})
# fmt: on

# Options that every job file has and that a study decides instead: replaced, and said so.
# fmt: off
REPLACED = frozenset({
    "create_only", "directory", "exitall", "group_reporting", "loops", "ramp_time", "runtime",
    "status_interval", "time_based", "timeout",
})
# fmt: on

# Engines that do plain file I/O, or work on the pool of the target's Ceph cluster; others run programs, open
# devices or talk to a network.
# fmt: off
ENGINES = frozenset({
    "filecreate", "filedelete", "filestat", "io_uring", "libaio", "mmap", "posixaio", "psync", "pvsync",
    "pvsync2", "rados", "rbd", "splice", "sync", "vsync",
})
# fmt: on

_SECTION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_VALUE = re.compile(r"[A-Za-z0-9_.,:/%+-]{0,512}")
_FILENAME = re.compile(r"(?!\.\.?$)[A-Za-z0-9_.-]{1,128}")
_FILENAME_FORMAT = re.compile(r"(?:[A-Za-z0-9_-]|\.(?!\.)|\$(?:jobname|jobnum|filenum)\b)+")
_COUNTS_MAX = {"numjobs": 1024, "nrfiles": 10_000_000, "openfiles": 1_000_000, "iodepth": 65_536}
_RW = frozenset({"read", "write", "randread", "randwrite", "readwrite", "rw", "randrw"})


@dataclass(frozen=True, slots=True)
class FioJob:
    """Jobs that run together.

    Attributes:
        common: options of all of them.
        sections: options of each, by its name; at least one.
        replaced: options that were dropped because the study decides them.
    """

    common: Mapping[str, str]
    sections: Mapping[str, Mapping[str, str]]
    replaced: tuple[str, ...] = field(default=())

    def text(self) -> str:
        """The jobs as fio reads them."""
        lines = ["[global]", *(f"{key}={value}" for key, value in self.common.items())]
        for name, options in self.sections.items():
            lines += [f"[{name}]", *(f"{key}={value}" for key, value in options.items())]
        return "\n".join([*lines, ""])

    @property
    def rated(self) -> bool:
        """Whether any I/O keeps to a rate; completion latencies do not count from its arrival even so."""
        return any(
            not {"rate", "rate_iops"}.isdisjoint({**self.common, **options})
            for options in self.sections.values()
        )

    @property
    def dataset_bytes(self) -> int | None:
        """Bytes of the files it lays out; None where its options leave that open."""
        sizes = [_dataset_bytes({**self.common, **options}) for options in self.sections.values()]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None


def checked_options(key: str, options: Mapping[str, object]) -> dict[str, str]:
    """A table of options as fio's own words.

    Args:
        key: the place of the table in the study, e.g. "workload.options".
        options: strings, numbers and booleans.

    Raises:
        StudyError: an option or a value that a load may not use.
    """
    checked: dict[str, str] = {}
    for name, given in options.items():
        where = f"{key}.{name}"
        if isinstance(given, bool):
            if name in ALLOWED - SWITCHES:
                raise StudyError(f"{where} = {str(given).lower()}: must be a value, e.g. 4096 or '4k'")
            value = str(int(given))
        elif isinstance(given, int | float | str):
            value = str(given).strip()
        else:
            raise StudyError(f"{where} = {given!r}: must be a string, a number or a boolean")
        _check(where, name, value)
        checked[name] = value
    return checked


def parse_job(key: str, text: str) -> FioJob:
    """Read a job file.

    Args:
        key: the key that names the job file, with its path, for errors.
        text: the content of the job file.

    Raises:
        StudyError: a line that is none, or an option or a value that a load may not use.
    """
    common: dict[str, str] = {}
    sections: dict[str, dict[str, str]] = {}
    replaced: set[str] = set()
    current: dict[str, str] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.split(r"(?:^|\s)[;#]", raw, maxsplit=1)[0].strip()
        where = f"{key} line {number}"
        if not line:
            continue
        if line.startswith("["):
            name = line[1:-1].strip() if line.endswith("]") else ""
            if not _SECTION.fullmatch(name):
                raise StudyError(
                    f"{where}: section {line[:80]!r}: must be [NAME] with letters, digits, '.', '_' or '-'; "
                    "elsewhere fio would take it for a file"
                )
            if name == "global" and sections:
                raise StudyError(f"{where}: a second [global] after a job: put all common options first")
            if name in sections:
                raise StudyError(f"{where}: a second job {name!r}: give each its own name")
            current = common if name == "global" else sections.setdefault(name, {})
            continue
        if current is None:
            raise StudyError(f"{where} = {line[:80]!r}: must come after a section such as [global]")
        option, separator, value = (part.strip() for part in line.partition("="))
        if option in REPLACED:
            replaced.add(option)
            continue
        _check(f"{where}: {option}", option, value if separator else "1")
        current[option] = value if separator else "1"
    if not sections:
        raise StudyError(f"{key}: has no job: add a section such as [load] with rw=randwrite")
    return FioJob(common, sections, tuple(sorted(replaced)))


def _check(where: str, name: str, value: str) -> None:
    """Refuse an option or a value that a load may not use."""
    if name in REPLACED:
        raise StudyError(
            f"{where} = {value!r}: is decided by the study ([measurement], [target]); leave it out"
        )
    if name not in ALLOWED:
        near = get_close_matches(name, ALLOWED, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise StudyError(
            f"{where} = {value[:80]!r}: is not among fio's options that a load may use "
            f"(docs/howto/fio.md lists them){hint}"
        )
    if name == "filename":
        if not _FILENAME.fullmatch(value):
            raise StudyError(
                f"{where} = {value[:80]!r}: must be a plain file name (letters, digits, '.', '_', '-'); "
                "files go to the target's own directory"
            )
    elif name == "filename_format":
        if not _FILENAME_FORMAT.fullmatch(value):
            raise StudyError(
                f"{where} = {value[:80]!r}: must be made of letters, digits, '.', '_', '-', $jobname, "
                "$jobnum and $filenum"
            )
    elif not _VALUE.fullmatch(value):
        raise StudyError(
            f"{where} = {value[:80]!r}: must be made of letters, digits and . , : / % + - _ alone"
        )
    if name == "ioengine" and value not in ENGINES:
        raise StudyError(f"{where} = {value!r}: must be one of {', '.join(sorted(ENGINES))}")
    if name in ("rw", "readwrite") and value.partition(":")[0] not in _RW:
        raise StudyError(f"{where} = {value!r}: must be one of {', '.join(sorted(_RW))}")
    if name in _COUNTS_MAX and not (value.isdecimal() and 1 <= int(value) <= _COUNTS_MAX[name]):
        raise StudyError(f"{where} = {value!r}: must be a whole number from 1 to {_COUNTS_MAX[name]}")


def file_bytes(options: Mapping[str, str]) -> int | None:
    """Bytes of each file of one section's jobs; None where the options leave that open."""
    each, whole = _size(options.get("filesize")), _size(options.get("size"))
    return whole // int(options.get("nrfiles", "1")) if each is None and whole is not None else each


def _dataset_bytes(options: Mapping[str, str]) -> int | None:
    """Bytes that one section's jobs lay out (fio's HOWTO, "I/O size")."""
    jobs = 1 if "filename" in options else int(options.get("numjobs", "1"))
    files = int(options.get("nrfiles", "1"))
    per_file, whole = _size(options.get("filesize")), _size(options.get("size"))
    if per_file is not None:
        return jobs * (files * per_file if whole is None else min(whole, files * per_file))
    return None if whole is None else jobs * whole


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_size(text.removesuffix("b").removesuffix("i"))
    except InputError:
        return None  # a range or a percentage
