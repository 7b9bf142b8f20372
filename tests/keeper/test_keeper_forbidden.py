"""A keeper that may not open files does not forget them: by a unit, a container, or an old kernel."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from ascar.errors import KeeperLost
from ascar.program.node_binary import find_ascard
from ascar.systems.keeper import Keeper

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.root


def test_a_file_that_cannot_be_looked_at_stays_in_the_journal(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace; install it")
    state, images = tmp_path / "state", tmp_path / "images"
    images.mkdir(mode=0o700)
    keeper = Keeper("killed", state_dir=state).start()
    keeper.image_create(images / "image", 1 << 26)
    os.kill(keeper.pid, signal.SIGKILL)
    with pytest.raises(KeeperLost):
        keeper.status()
    restore = [find_ascard(), "keeper", "--restore", "--state-dir", state]
    # As systemd's RestrictSUIDSGID= does it.
    forbidden = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=openat2:error=ENOSYS"]
    refused = subprocess.run([*forbidden, *restore], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    [failed] = json.loads(refused.stdout)["failed"]
    assert str(images) in failed
    assert (images / "image").exists()
    done = subprocess.run(restore, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["restored"] == [f"file {images}/image"]
    assert not (images / "image").exists()
