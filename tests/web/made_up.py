"""Made-up measurements of storage systems in which the right answers of Cao's case studies are known."""

from __future__ import annotations

from itertools import product

import polars as pl

RUNS = (-1.0, -0.5, 0.0, 0.5, 1.0)

WORKLOADS = ("fileserver", "mailserver", "dbserver")
SYSTEMS = ("ext4", "xfs", "btrfs", "nilfs2")
DEVICES = ("sas", "500sas", "sata", "ssd")
BLOCKS = (1024, 2048, 4096)
INODES = (128, 256, 8192)
JOURNALS = ("ordered", "journal")
SCHEDULERS = ("noop", "deadline")

# Mean and half of the range, under each load.
LEVEL = {
    ("fileserver", "ext4"): (300, 150),
    ("fileserver", "xfs"): (800, 60),
    ("fileserver", "btrfs"): (820, 300),
    ("fileserver", "nilfs2"): (250, 100),
    ("mailserver", "ext4"): (400, 200),
    ("mailserver", "xfs"): (520, 20),
    ("mailserver", "btrfs"): (350, 120),
    ("mailserver", "nilfs2"): (500, 250),
    ("dbserver", "ext4"): (200, 90),
    ("dbserver", "xfs"): (150, 40),
    ("dbserver", "btrfs"): (20, 5),
    ("dbserver", "nilfs2"): (90, 30),
}


def storage() -> pl.DataFrame:
    """A row a run: what was set, and throughput and latency."""
    rows = [
        {
            "workload": workload,
            "fs": fs,
            "device": device,
            "block_size": block,
            "inode_size": inode,
            "journal": journal,
            "scheduler": scheduler,
            "throughput": throughput,
            "latency_ms": 1000.0 / throughput + (5.0 if device == "ssd" else 0.0),
        }
        for workload, fs, device, block, inode, journal, scheduler in product(
            WORKLOADS, SYSTEMS, DEVICES, BLOCKS, INODES, JOURNALS, SCHEDULERS
        )
        if fs == "ext4" or journal == "ordered"
        for throughput in _runs(workload, fs, device, block, inode, scheduler)
    ]
    return pl.DataFrame(rows)


def _runs(workload: str, fs: str, device: str, block: int, inode: int, scheduler: str) -> list[float]:
    mean, half = LEVEL[workload, fs]
    if (workload, fs) == ("fileserver", "btrfs"):
        half *= {128: 1.0, 256: 0.9, 8192: 0.3}[inode]
    if (workload, fs) == ("mailserver", "ext4"):
        half *= {1024: 0.3, 2048: 0.8, 4096: 1.0}[block] * {
            "sas": 0.5,
            "500sas": 0.9,
            "sata": 1.0,
            "ssd": 1.0,
        }[device]
    if (workload, fs) == ("dbserver", "ext4"):
        mean += {"sas": 0, "500sas": 10, "sata": -20, "ssd": 200}[device] + {128: 60, 256: 0, 8192: -30}[
            inode
        ]
        half *= {1024: 1.0, 2048: 0.4, 4096: 0.9}[block] * {"noop": 1.0, "deadline": 0.5}[scheduler]
    return [mean + half * run for run in RUNS]
