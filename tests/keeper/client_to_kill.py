"""A study in a hurry: changes what a study changes, and tells how far it has come; made to be killed.

Arguments: state directory, image directory, file for its notes, file system, seed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from ascar.systems.keeper import Keeper

MIB = 1 << 20
SCHEDULERS = ("bfq", "kyber", "mq-deadline")


def chosen(text: str) -> str:
    """The word in brackets, where there is one: the others grow when a scheduler's module is loaded."""
    return text.partition("[")[2].partition("]")[0] or text.strip()


def main() -> None:
    state, images, notes, fs, seed = sys.argv[1:]
    source = random.Random(int(seed))
    with Keeper("to be killed", state_dir=Path(state)) as keeper, Path(notes).open("w") as log:

        def note(**what: object) -> None:
            log.write(json.dumps(what) + "\n")
            log.flush()

        note(keeper=keeper.pid)
        image = Path(images) / "image"
        keeper.image_create(image, 512 * MIB)
        device = keeper.image_attach(image).device
        queue = Path("/sys/block") / device.name / "queue"
        schedulers = [name for name in SCHEDULERS if name in (queue / "scheduler").read_text()] or ["none"]
        names = ("scheduler", "nr_requests", "read_ahead_kb")
        note(device=device.name, before={name: chosen((queue / name).read_text()) for name in names})
        group = keeper.cgroup_create(256 * MIB)
        note(group=str(group.path))
        while True:
            keeper.knob_write(f"block.{device.name}.scheduler", source.choice(schedulers))
            keeper.knob_write(f"block.{device.name}.nr_requests", source.choice((32, 64, 99)))
            keeper.knob_write(f"block.{device.name}.read_ahead_kb", source.choice((64, 512)))
            keeper.format(fs)
            place = keeper.mount(fs, ["noatime"]).mountpoint
            words = ["dd", "if=/dev/zero", f"of={place}/data", "bs=1M", "count=300", "status=none"]
            gate = ["/bin/sh", "-c", 'read _ && exec "$@"', "sh"]
            load = subprocess.Popen([*gate, *words], stdin=subprocess.PIPE)
            keeper.cgroup_add(load.pid)
            note(load=load.pid)
            load.communicate(b"\n")
            (place / "dirty").write_bytes(os.urandom(8 * MIB))
            note(trial=True)
            keeper.unmount()
            keeper.image_save("copy")
            keeper.image_load("copy")
            keeper.image_forget("copy")


main()
