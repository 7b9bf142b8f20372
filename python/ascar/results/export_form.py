"""The forms in which an administrator can use a configuration."""

from __future__ import annotations

from typing import Literal, get_args

ExportForm = Literal[
    "shell",
    "sysctl",
    "udev",
    "fstab",
    "tuned",
    "postgresql.conf",
    "alter-system",
    "redis.conf",
    "config-set",
    "patroni",
    "ansible",
    "my.cnf",
    "set-global",
    "rocksdb-options",
    "ceph-config",
    "nfs.conf",
    "systemd",
]
EXPORT_FORMS: tuple[ExportForm, ...] = get_args(ExportForm)
