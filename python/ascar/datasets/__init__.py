"""Recorded datasets that come with ascar; `dataset:NAME` stands for one wherever a table is asked for.

They are exports of sweeps, complete in themselves: `ascar history import dataset:NAME` brings one back with
every trial. How they were measured, and what is in them, says docs/dataset.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DATASETS", "dataset_file", "located"]

_PREFIX: Final = "dataset:"

DATASETS: Final[Mapping[str, str]] = {
    "storage-v5-fileserver": "160 configurations of ext2/3/4, xfs and btrfs under a file server",
    "storage-v5-mailserver": "the same under a mail server",
}
"""What there is, by name, each in one line."""


def dataset_file(name: str) -> Path:
    """The Parquet file of a dataset.

    Raises:
        InputError: there is none of that name.
    """
    if name not in DATASETS:
        raise InputError(f"dataset {name!r}: does not exist; there are {', '.join(DATASETS)}")
    return Path(__file__).parent / f"{name}.parquet"


def located(path: Path) -> Path:
    """The path of a table's file: that of the dataset where it reads `dataset:NAME`, else itself.

    Raises:
        InputError: there is no dataset of that name.
    """
    text = str(path)
    return dataset_file(text.removeprefix(_PREFIX)) if text.startswith(_PREFIX) else path
