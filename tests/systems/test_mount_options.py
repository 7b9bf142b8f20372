"""Options of the mount below an application: remounted, read back, put back, whoever else is there."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from ascar.catalogues.mount import mount_settings
from ascar.errors import EnvironmentLacks, InputError, Refused, StageFailed, StudyError, WorkError
from ascar.space import Guarantee
from ascar.systems.linux import Linux
from ascar.systems.mount_options import MountRestoration
from ascar.systems.mount_table import mount_around
from ascar.testing import TargetContract
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SIZE_BYTES = 512 << 20
NAMES = ("mount.atime", "mount.ext4.commit", "mount.ext4.barrier")
KILLED = """
import sys, time
from ascar.systems.linux import Linux
names = ["mount.atime", "mount.ext4.commit"]
with Linux({"path": sys.argv[1], "remounts": "allowed", "settings": names}) as one:
    one.apply(one.space.default().replaced(mount_atime="noatime", mount_ext4_commit=77))
    print("changed", flush=True)
    time.sleep(60)
"""
REFUSING = """#!/bin/sh
read -r how pattern < {pattern}
case "$how" in silently) ;; *) pattern=$how ;; esac
case "$*" in
*"$pattern"*)
    test "$how" = silently && exit
    echo "mount: bad option $pattern" >&2
    exit 32 ;;
esac
exec {real} "$@"
"""


def call(*words: object) -> None:
    subprocess.run([*map(str, words)], check=True, capture_output=True)


@contextmanager
def volume(
    folder: Path, kind: str = "ext4", *, made: tuple[str, ...] = (), options: str = "nosuid"
) -> Iterator[Path]:
    """A new file system, mounted at a name with a space."""
    image, place = folder / f"{kind} image", folder / f"{kind} data"
    with image.open("wb") as file:
        file.truncate(SIZE_BYTES)
    call(f"mkfs.{kind}", "-q", *made, image)
    place.mkdir()
    call("mount", "-o", f"loop,{options}", image, place)
    try:
        yield place
    finally:
        until(lambda: not subprocess.run(["umount", place], capture_output=True, check=False).returncode, 20)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    with volume(tmp_path) as mounted:
        yield mounted


def options(place: Path) -> tuple[str, ...]:
    return mount_around(str(place)).options


def study(place: Path, *names: str) -> Linux:
    return Linux({"path": str(place), "remounts": "allowed", "settings": list(names or NAMES)})


@pytest.mark.root
@pytest.mark.machine
class TestMountContract(TargetContract):
    # The dirty pages are the machine's, and the contract of the kernel's settings drains them.
    test_deferred_work_is_counted_in_amounts_and_can_be_drained = None

    @pytest.fixture(autouse=True)
    def _volume(self, place: Path) -> None:
        self._place = place

    def make(self) -> Linux:
        return Linux(self.options())

    def options(self) -> Mapping[str, Any]:
        return {
            "path": str(self._place),
            "remounts": "allowed",
            "settings": ["mount.atime", "mount.lazytime"],
        }


def test_every_setting_can_be_a_parameter_and_is_read_as_it_is_said() -> None:
    for name, one in mount_settings().items():
        parameter = one.parameter()
        assert parameter.native == name
        assert one.what.endswith("."), name
        assert set(one.guarantees) <= set(Guarantee), name
        assert not parameter.weakens(parameter.default), name
        for value in (False, True) if one.kind == "boolean" else one.values or map(int, one.search):
            assert one.value_in(["rw", one.said(value)]) == value, name
        assert one.value_in(["rw"]) == one.default, name


def test_what_promises_less_is_weaker_than_the_value_in_force() -> None:
    known = mount_settings()
    assert known["mount.ext4.barrier"].parameter().weakens(False) == {"durability", "consistency"}
    assert known["mount.ext4.auto_da_alloc"].parameter().weakens(False) == {"consistency"}
    assert known["mount.lazytime"].parameter().weakens(True) == {"durability"}
    commit = known["mount.ext4.commit"].parameter_in_force(60)
    assert commit.weakens(61) == {"durability"}
    assert not commit.weakens(60)
    assert not known["mount.ext4.barrier"].parameter_in_force(False).weakens(False)


def test_a_level_of_compression_that_no_search_tries_is_the_default_all_the_same() -> None:
    parameter = mount_settings()["mount.btrfs.compress"].parameter_in_force("zstd:7")
    assert parameter.default == "zstd:7"


@pytest.mark.root
@pytest.mark.machine
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_configurations_drawn_at_random_are_in_force_and_all_is_put_back(
    kind: str, tmp_path: Path, seed: int
) -> None:
    with volume(tmp_path, kind) as place:
        before = options(place)
        names = [name for name, one in mount_settings().items() if kind in one.file_systems]
        with study(place, *names) as target:
            for wanted in target.space.sample(np.random.default_rng(seed), 6):
                target.apply(wanted)
                assert target.read(target.space.names) == dict(wanted)
                assert "nosuid" in options(place)
        assert options(place) == before


@pytest.mark.root
@pytest.mark.machine
def test_a_mount_in_use_is_remounted_and_nobody_notices(place: Path) -> None:
    with (place / "log").open("w") as log, study(place) as target:
        change = target.apply(target.space.default().replaced(mount_ext4_commit=33))
        assert change.parameters == ("mount_ext4_commit",)
        assert "commit=33" in options(place)
        assert "remount" in change.step_s
        log.write("still there")
    assert (place / "log").read_text() == "still there"
    assert "commit=33" not in options(place)


@pytest.mark.root
@pytest.mark.machine
def test_a_commit_later_than_write_back_is_the_cycle(place: Path) -> None:
    with study(place) as target:
        default = target.space.default()
        assert target.cycle_s(default.replaced(mount_ext4_commit=300), {}) == 300
        assert target.cycle_s(default.replaced(mount_ext4_commit=1), {}) > 1


@pytest.mark.root
@pytest.mark.machine
def test_what_is_as_wanted_costs_no_remount(place: Path) -> None:
    with study(place, "mount.ext4.commit") as target:
        target.apply(target.space.default().replaced(mount_ext4_commit=33))
        assert "remount" not in target.apply(target.space.default().replaced(mount_ext4_commit=33)).step_s


@pytest.mark.root
@pytest.mark.machine
def test_what_was_changed_once_is_put_back_whatever_is_changed_later(place: Path) -> None:
    before = options(place)
    with study(place) as target:
        assert target._mount is not None
        target._mount.change({"mount.atime": "noatime"})
        target._mount.change({"mount.ext4.commit": 33})
        assert {"noatime", "commit=33"} <= set(options(place))
    assert options(place) == before


@pytest.mark.root
@pytest.mark.machine
def test_options_that_are_none_of_the_study_s_stay(tmp_path: Path) -> None:
    with volume(tmp_path, "xfs", options="noexec,nodiratime,inode32,lazytime") as place:
        before = options(place)
        with study(place, "mount.atime") as target:
            target.apply(target.space.default().replaced(mount_atime="strictatime"))
            assert set(before) - set(options(place)) == {"relatime"}
        assert options(place) == before


@pytest.mark.root
@pytest.mark.machine
def test_killed_in_mid_study_the_mount_is_as_before(place: Path) -> None:
    before = options(place)
    words = [sys.executable, "-c", KILLED, str(place)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "changed\n"
        assert {"noatime", "commit=77"} <= set(options(place))
        process.send_signal(signal.SIGKILL)
    until(lambda: options(place) == before and len(list(place.iterdir())) == 1, 30)
    assert [one.name for one in place.iterdir()] == ["lost+found"]


@pytest.mark.root
@pytest.mark.machine
def test_what_somebody_else_changed_ends_the_study_and_stays(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = set(options(place))
    with study(place) as target, caplog.at_level(logging.WARNING):
        wanted = target.space.default().replaced(mount_ext4_commit=33, mount_atime="noatime")
        target.apply(wanted)
        call("mount", "-o", "remount,commit=44", place)
        with pytest.raises(WorkError, match=r"mount.ext4.commit: is '44' on .*: somebody else changed it"):
            target.apply(target.space.default())
    assert set(options(place)) == before | {"commit=44"}, "the others are put back"
    assert "left alone: mount.ext4.commit: is '44'" in caplog.text


@pytest.mark.root
@pytest.mark.machine
def test_a_remount_by_somebody_else_under_the_load_fails_the_trial(place: Path) -> None:
    with study(place) as target:
        target.apply(target.space.default().replaced(mount_ext4_commit=33))
        target.sample()
        call("mount", "-o", "remount,commit=5", place)
        with pytest.raises(
            StageFailed, match=r"mount\.ext4\.commit = 33: is 5 on .* somebody else changed it"
        ):
            target.sample()


@pytest.mark.root
@pytest.mark.machine
def test_a_study_that_has_changed_nothing_puts_nothing_back(place: Path) -> None:
    with study(place) as target:
        target.apply(target.space.default())
        call("mount", "-o", "remount,commit=44", place)
    assert "commit=44" in options(place)


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a pattern of options that mount(8) refuses, as a kernel does that is older."""
    pattern, program = tmp_path / "refused", tmp_path / "bin/mount"
    pattern.write_text("none")
    program.parent.mkdir()
    program.write_text(REFUSING.format(pattern=pattern, real=shutil.which("mount")))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return pattern


@pytest.mark.root
@pytest.mark.machine
def test_what_the_kernel_refuses_to_remount_is_not_tuned(
    place: Path, refused: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refused.write_text("commit=")
    with study(place, "mount.atime", "mount.ext4.commit") as target:
        assert target.space.names == ("mount_atime",)
    assert "target.remounts: mount.ext4.commit is not tuned: commit=5: " in caplog.text
    message = r"the kernel refuses every remount: commit=5: .*: bad option commit="
    with pytest.raises(EnvironmentLacks, match=message), study(place, "mount.ext4.commit"):
        pass


@pytest.mark.root
@pytest.mark.machine
def test_a_refused_value_fails_its_trial_alone(place: Path, refused: Path) -> None:
    before = options(place)
    with study(place) as target:
        default = target.space.default()
        target.apply(default.replaced(mount_atime="noatime"))
        refused.write_text("commit=33")
        with pytest.raises(StageFailed, match=r"remount .*: bad option commit=33"):
            target.apply(default.replaced(mount_ext4_commit=33))
        wanted = default.replaced(mount_ext4_commit=34)
        target.apply(wanted)
        assert target.read(target.space.names) == dict(wanted)
    assert options(place) == before


@pytest.mark.root
@pytest.mark.machine
def test_a_value_that_is_passed_over_fails_by_name(place: Path, refused: Path) -> None:
    with study(place) as target:
        refused.write_text("silently commit=33")
        with pytest.raises(StageFailed, match=r"mount\.ext4\.commit = 33: is 5 on .* once it is written"):
            target.apply(target.space.default().replaced(mount_ext4_commit=33))


@pytest.mark.root
@pytest.mark.machine
def test_a_mount_that_is_gone_fails_the_trial_and_is_not_looked_for(place: Path, tmp_path: Path) -> None:
    over = tmp_path / "over"
    over.mkdir()
    with study(place) as target:
        target.apply(target.space.default().replaced(mount_ext4_commit=33))
        call("mount", "--bind", over, place)
        try:
            with pytest.raises(StageFailed, match="something else over it"):
                target.apply(target.space.default())
        finally:
            call("umount", place)
    assert "commit=33" not in options(place)


@pytest.mark.root
@pytest.mark.machine
def test_of_a_mount_that_came_anew_nothing_is_put_back(place: Path, tmp_path: Path) -> None:
    record = MountRestoration(
        "/no/such place", "8:1", {"mount.ext4.commit": "5"}, {"mount.ext4.commit": ("5", "9")}
    )
    assert record.carry_out() == ()
    device = mount_around(str(place)).device
    call("mount", "-o", "remount,commit=9", place)
    other = MountRestoration(
        str(place), "8:255", {"mount.ext4.commit": "5"}, {"mount.ext4.commit": ("5", "9")}
    )
    assert other.carry_out() == ()
    assert "commit=9" in options(place)
    assert MountRestoration(str(place), device, other.old, other.left).carry_out() == ()
    assert "commit=9" not in options(place)


def test_a_record_that_names_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="'rw,suid': must be a setting of a mount"):
        MountRestoration("/", "8:1", {"rw,suid": "1"}, {}).carry_out()
    with pytest.raises(InputError, match="with its old value"):
        MountRestoration("/", "8:1", {}, {"mount.ext4.commit": ("5", "9")}).carry_out()
    words = [sys.executable, "-m", "ascar.systems.mount_options"]
    for record in ("{}", "x", msgspec.json.encode(MountRestoration("/", "8:1", {}, {"a": ()})).decode()):
        done = subprocess.run([*words, record], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr


@pytest.mark.root
@pytest.mark.machine
def test_a_bind_mount_has_its_own_times_and_the_options_of_the_file_system(
    place: Path, tmp_path: Path
) -> None:
    (place / "part").mkdir()
    bound = tmp_path / "bound here"
    bound.mkdir()
    call("mount", "--bind", place / "part", bound)
    try:
        before = options(bound), options(place)
        with study(bound) as target:
            wanted = target.space.default().replaced(mount_atime="noatime", mount_ext4_commit=33)
            target.apply(wanted)
            assert {"noatime", "commit=33"} <= set(options(bound))
            assert {"relatime", "commit=33"} <= set(options(place))
            forms = target.commands(wanted, ["mount_atime"])
            assert not forms["fstab"]
            assert not forms["ansible"]
            assert "in /etc/fstab, where its file system is mounted" in forms["shell"][1]
        assert (options(bound), options(place)) == before
    finally:
        call("umount", bound)


@pytest.mark.root
@pytest.mark.machine
def test_one_study_at_a_time_tunes_a_file_system(place: Path) -> None:
    with study(place), pytest.raises(Refused, match="mount:"), study(place):
        pass


@pytest.mark.root
@pytest.mark.machine
def test_a_read_only_mount_is_refused(tmp_path: Path) -> None:
    with (
        volume(tmp_path, options="ro") as place,
        pytest.raises(StudyError, match=r"ext4 data, which is mounted read-only"),
    ):
        study(place)


@pytest.mark.root
@pytest.mark.machine
def test_a_file_system_without_such_options_is_refused(tmp_path: Path) -> None:
    call("mount", "-t", "tmpfs", "none", tmp_path)
    try:
        with pytest.raises(StudyError, match=r"is on tmpfs, mounted on .*one of btrfs, ext4, xfs"):
            study(tmp_path)
    finally:
        call("umount", tmp_path)


@pytest.mark.root
@pytest.mark.machine
def test_compression_that_is_forced_is_not_tuned(tmp_path: Path) -> None:
    with volume(tmp_path, "btrfs", options="compress-force=zstd:3") as place:
        with pytest.raises(
            StudyError, match=r"'mount\.btrfs\.compress' cannot be tuned on .*mount\.btrfs\.commit"
        ):
            study(place, "mount.btrfs.compress")
        assert "mount_btrfs_compress" not in Linux({"path": str(place), "remounts": "allowed"}).space.names


@pytest.mark.root
@pytest.mark.machine
def test_the_result_is_said_in_a_shell_fstab_and_ansible(place: Path) -> None:
    target = study(place)
    wanted = target.space.default().replaced(mount_ext4_commit=33)
    forms = target.commands(wanted, ["mount_ext4_commit"])
    source = mount_around(str(place)).source
    escaped = str(place).replace(" ", r"\040")
    assert forms["fstab"] == [f"{source} {escaped} ext4 rw,nosuid,relatime,commit=33 0 2"]
    assert 'opts: "rw,nosuid,relatime,commit=33"' in [line.strip() for line in forms["ansible"]]
    subprocess.run(["sh", "-ec", *forms["shell"]], check=True)
    assert {"nosuid", "relatime", "commit=33"} <= set(options(place))
    again = Linux({"path": str(place), "remounts": "allowed", "settings": list(NAMES)})
    assert again.space.default()["mount_ext4_commit"] == 33
    assert target.commands(wanted, [])["fstab"] == []


@pytest.mark.root
@pytest.mark.machine
def test_apply_leaves_the_remount_to_the_user(place: Path) -> None:
    target = study(place)
    wanted = target.space.default().replaced(mount_ext4_commit=33)
    given = {"path": str(place), "remounts": "allowed", "settings": list(NAMES)}
    placement = Linux.placement(given, target.space, wanted, None)  # type: ignore[arg-type]
    assert placement.settings == ()
    (left,) = placement.left
    assert (left.parameters, left.why) == (("mount_ext4_commit",), "remount")
    assert left.commands[0].startswith("mount -o remount,rw,nosuid,relatime,")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"remounts": "always", "path": "/"}, "target.remounts"),
        ({"remounts": "allowed"}, "target.remounts = 'allowed': is for the mount of target.path"),
        (
            {"settings": ["mount.atime"], "path": "/"},
            "target.settings: 'mount.atime' is an option of a mount",
        ),
        ({"settings": ["mount.atime"]}, "or target.remounts be 'allowed'"),
    ],
)
def test_mistakes_are_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        Linux(given)
    assert words in caught.value.message, caught.value.message


@pytest.mark.root
@pytest.mark.machine
def test_a_setting_of_no_mount_is_named(place: Path) -> None:
    with pytest.raises(StudyError, match=r"did you mean 'mount\.ext4\.commit'"):
        study(place, "mount.ext4.comit")
    with pytest.raises(StudyError, match="is named twice"):
        study(place, "mount.atime", "mount.atime")


@pytest.mark.root
@pytest.mark.machine
def test_only_root_remounts(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(EnvironmentLacks, match="needs root; run ascar through sudo"), study(place):
        pass
