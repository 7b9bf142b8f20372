"""What a program says it has written, or removed, is so after a power cut at that moment."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from ascar.testing import DiskServer, Guest, VolatileDisk
from power_cuts import BIN, LIMIT_S, ROOT, SETUP, VARIABLES, new_disk

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

# What comes before, what is done and said, and what holds after the cut.
CHECKPOINT = """
import os, sys, time
from pathlib import Path
import msgspec, numpy
from ascar.capes.archive import read_archive, write_archive
Header = msgspec.defstruct("Header", [("format", str), ("version", int)])
file = Path("/mnt/work/checkpoint")
if sys.argv[1] == "check":
    raise SystemExit(read_archive(file, "x", 9)[0]["version"] != 2)
write_archive(file, Header("x", 1), {"n": numpy.zeros(9)})
os.sync()
write_archive(file, Header("x", 2), {"n": numpy.zeros(9)})
print("written", flush=True)
time.sleep(1000)
"""
JOURNAL = """
import os, sys, time
from pathlib import Path
from ascar.systems.keeper import Keeper
file, journal = Path("/mnt/work/file"), Path("/mnt/work/journal")
if sys.argv[1] == "check":
    raise SystemExit(file.read_text() != "first" or bool(list(journal.glob("*.jsonl"))))
file.write_text("first")
os.sync()
keeper = Keeper("cut", state_dir=journal, user=True).start()
keeper.file_replace(file, "second")
keeper.close()
print("written", flush=True)
time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def guests() -> None:
    lack = Guest.missing()
    if lack is not None:
        pytest.skip(lack)


@pytest.mark.parametrize("script", [CHECKPOINT, JOURNAL], ids=["checkpoint", "journal"])
def test_what_is_said_to_be_done_survives_a_power_cut(script: str, tmp_path: Path) -> None:
    content = tmp_path / "content"
    for name in ("work", "lib"):
        (content / name).mkdir(parents=True)
    (content / "work" / "script.py").write_text(script)
    run = f"{BIN}/python -P /mnt/work/script.py"
    with VolatileDisk(new_disk(tmp_path / "disk.img", content)) as disk, DiskServer(disk) as server:
        with Guest([server], VARIABLES, visible=(ROOT,)) as guest:
            assert guest.run(SETUP).status == 0
            guest.start(f"{run} do || echo 'script ends'")
            guest.wait(
                lambda: "written" in guest.console or "script ends" in guest.console, "it is done", LIMIT_S
            )
            guest.cut(random.Random(1))
            assert "script ends" not in guest.console, guest.console
        with Guest([server], VARIABLES, visible=(ROOT,)) as guest:
            assert guest.run(SETUP).status == 0
            done = guest.run(f"{run} check", LIMIT_S)
            assert done.status == 0, done.output
