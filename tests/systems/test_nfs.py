"""NFS as a target: its catalogue, what kernels say, options, what is refused; see also test_nfs_nodes.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from ascar.catalogues import linux
from ascar.catalogues.nfs import nfs
from ascar.errors import EnvironmentLacks, InputError, Refused, StageFailed, StudyError, WorkError
from ascar.nodes import Finished
from ascar.prepared_study import PreparedStudy
from ascar.space import ChangeCost, Guarantee
from ascar.study import Study
from ascar.systems import live_machine, open_target
from ascar.systems.mount_table import mount_around
from ascar.systems.nfs import Nfs, existing, mount_settings, nfs_space, restoration
from ascar.systems.nfs.existing import ExistingNfs
from ascar.systems.nfs.machine import NfsMachine, exported_in
from ascar.systems.nfs.mounts import COUNTERS, check_idle, counters_of, mount_at, mounted
from ascar.systems.nfs.restoration import NfsRestoration
from ascar.systems.nfs.settings import in_order, kept_of
from ascar.systems.nfs.space import chosen
from ascar.systems.nfs.statements import forms_of
from ascar.systems.undo_record import note, restore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.systems.keeper import Keeper

DATA = Path(__file__).parents[1] / "data" / "nfs"
MOUNTINFO = (DATA / "mountinfo").read_text()
MOUNTSTATS = (DATA / "mountstats").read_text()
WIDE = nfs_space(nfs().values(), {})


class Said:
    """A node on which every program says the same."""

    name = "said"

    def __init__(self, out: str = "", status: int = 0, err: str = "") -> None:
        self.done = Finished(status, out.encode(), err)
        self.asked: list[list[str]] = []

    def run(self, argv: list[str], limit_s: float, stdin: bytes = b"") -> Finished:
        self.asked.append(list(argv))
        return self.done


def machine(*said: object) -> NfsMachine:
    return NfsMachine(Said(*said))  # type: ignore[arg-type]


# The catalogue.


def test_every_setting_is_a_parameter_and_its_knob_is_the_keepers() -> None:
    for one in nfs().values():
        assert one.parameter().default == one.default
        assert one.what.endswith("."), one.name
        assert not one.knob or one.knob in linux(), one.name
        assert bool(one.words) == (one.kind == "boolean"), one.name
        assert one.value(one.text(one.default)) == one.default, one.name
        assert set(one.guarantees) <= set(Guarantee)


def test_options_that_promise_less_are_weaker() -> None:
    weaker = {
        ("hard", False): {"durability", "integrity"},
        ("cto", False): {"integrity"},
        ("actimeo", 600): {"integrity"},
        ("lock", False): {"consistency", "integrity"},
        ("sync", False): {"durability", "consistency"},
    }
    for (name, value), guarantees in weaker.items():
        assert WIDE[name].weakens(value) == guarantees
        assert not WIDE[name].weakens(WIDE[name].default)
    for parameter in WIDE.parameters:
        if parameter.name not in {name for name, _ in weaker}:
            assert not parameter.weaker, parameter.name


def test_what_takes_effect_at_once_costs_no_mount() -> None:
    costs = {parameter.name: parameter.cost for parameter in WIDE.parameters}
    assert costs["bdi_read_ahead_kb"] == costs["nfsd_threads"] == ChangeCost.DYN_KERNEL
    assert costs["rsize"] == costs["nfs_max_session_slots"] == ChangeCost.UMOUNT_MOUNT
    assert costs["nfsd_max_block_size"] == ChangeCost.APP_RESTART
    assert costs["wdelay"] == ChangeCost.DYN_APP


def test_requests_are_no_larger_than_the_server_takes() -> None:
    default = WIDE.default()
    with pytest.raises(InputError, match="rsize"):
        WIDE.validate({**default, "nfsd_max_block_size": 65536})
    sized = nfs_space(chosen("expert"), {"rsize": 32768, "wsize": 32768}, largest=32768)
    with pytest.raises(InputError, match="rsize"):
        sized.validate({**sized.default(), "rsize": 65536})


def test_a_value_in_force_that_no_search_would_try_is_the_default_all_the_same() -> None:
    found = nfs_space(nfs().values(), {"rsize": 12288, "nfsd.threads": 300, "disk.scheduler": "none"})
    assert (found["rsize"].default, found["nfsd_threads"].default) == (12288, 300)
    soft = nfs_space(nfs().values(), {"hard": False})
    assert not soft["hard"].weakens(False), "what the mount does already is no longer weaker"


def test_a_condition_counts_where_the_study_searches_what_it_speaks_of() -> None:
    assert WIDE["nfs_max_session_slots"].condition is not None
    assert nfs_space(chosen("expert"), {})["nfs_max_session_slots"].condition is None


# What kernels say.


def test_a_recorded_mount_is_read() -> None:
    (mount,) = mounted(MOUNTINFO)
    assert (mount.source, mount.place, mount.kind) == ("server:/data", "/mnt/data", "nfs4")
    assert mount.device.startswith("0:")
    read = {
        name: nfs()[name].value_in(mount.options) for name in ("vers", "nconnect", "hard", "cto", "actimeo")
    }
    assert read == {"vers": "4.2", "nconnect": 2, "hard": True, "cto": True, "actimeo": -1}
    assert not any(one.startswith(("addr=", "clientaddr=")) for one in mount.given)
    assert mount_at(MOUNTINFO, "/mnt/none") is None
    assert getattr(mount_at(MOUNTINFO, "/mnt"), "kind", None) == "tmpfs", "what is seen, of whatever kind"


def test_the_latest_mount_of_a_place_is_the_one_that_is_seen() -> None:
    line = next(line for line in MOUNTINFO.splitlines() if " nfs4 " in line)
    later = line.replace("server:/data", "server:/other")
    found = mount_at(f"{line}\n{later}\n", "/mnt/data")
    assert found is not None
    assert found.source == "server:/other"


def test_names_with_spaces_are_read_as_they_are() -> None:
    line = next(line for line in MOUNTINFO.splitlines() if " nfs4 " in line)
    (found,) = mounted(line.replace("/mnt/data", r"/mnt/my\040data"))
    assert found.place == "/mnt/my data"


@pytest.mark.parametrize("text", ["", "\0", " - ", "1 2 3 - nfs4 a b", MOUNTINFO[:200], "x" * 100_000])
def test_what_cannot_be_read_is_no_mount(text: str) -> None:
    assert mounted(text) == []


def test_counters_of_a_recorded_mount() -> None:
    found = counters_of(MOUNTSTATS, "/mnt/data")
    assert set(found) == set(COUNTERS)
    assert found["nfs_operations"] > 0
    assert found["nfs_transmissions"] >= found["nfs_operations"]
    assert found["nfs_write_bytes"] > 0
    assert found["nfs_timeouts"] == 0


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("fstype nfs4", "fstype ext4"), ("mounted on", "mounted at"), ("/mnt/data", "/mnt/b")],
)
def test_counters_of_no_mount_are_refused(wrong: str, right: str) -> None:
    with pytest.raises(StageFailed, match="nothing of NFS is mounted there"):
        counters_of(MOUNTSTATS.replace(wrong, right), "/mnt/data")


def test_lines_that_are_cut_or_wrong_add_nothing() -> None:
    whole = counters_of(MOUNTSTATS, "/mnt/data")
    broken = MOUNTSTATS.replace("READ: ", "READ: x ").replace("bytes:\t", "bytes:\t- ")
    found = counters_of(broken, "/mnt/data")
    assert found["nfs_operations"] < whole["nfs_operations"]
    assert found["nfs_read_bytes"] == 0


def test_limits_of_attributes_are_what_actimeo_sets() -> None:
    options = ("rw", "acregmin=600", "acregmax=600", "acdirmin=600", "acdirmax=600", "soft", "nocto")
    assert nfs()["actimeo"].value_in(options) == 600
    assert nfs()["hard"].value_in(options) is False
    assert nfs()["cto"].value_in(options) is False


# Setting.


def test_tunables_of_bfq_are_written_where_bfq_is() -> None:
    values = {name: one.default for name, one in nfs().items()}
    assert "disk.slice_idle" not in in_order(values)
    assert list(in_order({**values, "disk.scheduler": "bfq"})) == list(nfs())


def test_a_machine_that_says_too_little_fails() -> None:
    with pytest.raises(StageFailed, match="cannot be read"):
        machine("one").read(["/proc/a", "/proc/b"])
    with pytest.raises(StageFailed, match=r"node said: set: .*the kernel refuses it"):
        machine("", 1, "/proc/a = 1: the kernel refuses it\n").write({"nfsd.threads": 1})


def test_the_options_of_an_export_are_told() -> None:
    told = "/srv/other\t*(ro)\n/srv/data\t*(rw,async,no_wdelay,fsid=1)\n"
    assert "async" in exported_in(told, "/srv/data")
    with pytest.raises(StageFailed, match="/srv/none: is not exported"):
        exported_in(told, "/srv/none")


def test_what_the_kernel_tells_instead_of_an_option_is_not_kept_beside_it() -> None:
    given = ("rw", "acregmin=600", "acdirmax=600", "soft", "local_lock=none")
    assert kept_of(given, ["actimeo", "hard", "nfsd.threads"], "mount") == ["rw", "local_lock=none"]


# The words of an administrator.


def test_a_configuration_is_said_in_the_files_that_there_are() -> None:
    values = {
        **{one.parameter_name: one.default for one in nfs().values()},
        "nfsd_threads": 16,
        "bdi_read_ahead_kb": 4096,
        "rsize": 262144,
        "cto": False,
        "disk_read_ahead_kb": 2048,
        "sunrpc_tcp_max_slot_table_entries": 64,
    }
    chosen_names = [name for name, value in values.items() if value != WIDE[name].default]
    found = forms_of(values, chosen_names)
    assert found["nfs.conf"] == ["[nfsd]", "threads=16", "[nfsrahead]", "nfs=4096", "nfs4=4096"]
    assert found["fstab"] == ["SERVER:/EXPORT /MOUNT nfs rsize=262144,nocto 0 0"]
    assert found["sysctl"] == ["sunrpc.tcp_max_slot_table_entries = 64"]
    assert found["udev"] == [
        'ACTION=="add|change", SUBSYSTEM=="block", KERNEL=="DEVICE", ATTR{queue/read_ahead_kb}="2048"'
    ]
    assert "rpc.nfsd 16" in found["shell"]
    assert found["shell"].index("umount /MOUNT") < len(found["shell"]) - 1
    assert not forms_of(values, [])


def test_a_hostile_mount_stays_one_word() -> None:
    found = forms_of({"rsize": 65536}, ["rsize"], source="a:/$(touch x)", place="/mnt/a; b")
    assert "mount -t nfs -o rsize=65536 'a:/$(touch x)' '/mnt/a; b'" in found["shell"]
    assert found["fstab"] == [r"a:/$(touch\040x) /mnt/a;\040b nfs rsize=65536 0 0"]


def test_a_shell_takes_the_commands_for_what_they_are() -> None:
    values = {one.parameter_name: one.default for one in nfs().values()}
    lines = forms_of(values, list(values))["shell"]
    done = subprocess.run(["sh", "-n"], input="\n".join(lines), text=True, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")


# What is refused.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"disk": "no-such-disk"}, "target.disk = 'no-such-disk'"),
        ({"disk_size": "1 MiB"}, "target.disk_size = '1 MiB': must be from"),
        ({"server_memory": "1 GiB 2"}, "target.server_memory"),
        ({"client_memory": "64 MiB"}, "target.client_memory = '64 MiB': must be from 128 MiB"),
        ({"directory": "relative"}, "target.directory = 'relative'"),
        ({"link": {"delay_ms": -1}}, "link.delay_ms"),
        ({"clients": 3}, "target.clients: unknown key"),
        ({"server": "existing"}, "target.path: missing"),
        ({"server": "existing", "path": "mnt"}, "target.path = 'mnt'"),
        ({"server": "existing", "export": "/srv", "remounts": "allowed"}, "target.remounts = 'allowed'"),
    ],
)
def test_a_broken_target_is_refused_by_key(options: dict[str, object], said: str) -> None:
    kind = Nfs.variant(options)
    with pytest.raises(StudyError) as caught:
        kind(options)  # type: ignore[call-arg]
    assert said in caught.value.message


def test_only_root_tunes_what_people_use() -> None:
    if os.geteuid() == 0:
        pytest.skip("is root")
    with (
        pytest.raises(EnvironmentLacks, match="needs root"),
        ExistingNfs({"server": "existing", "path": "/mnt"}),
    ):
        pass


def test_a_directory_on_no_mount_of_nfs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with (
        pytest.raises(StudyError, match="is on no mount of NFS"),
        ExistingNfs({"server": "existing", "path": str(tmp_path)}),
    ):
        pass


def test_a_mount_in_use_is_refused_and_its_user_named(tmp_path: Path) -> None:
    place = os.path.realpath(tmp_path)
    mountinfo = f"30 20 0:40 / {place} rw - nfs4 server:/data rw\n"
    check_idle(place, mountinfo)
    child = subprocess.Popen(["sleep", "100"], cwd=place)
    try:
        with pytest.raises(Refused, match=rf"in use by sleep \(process {child.pid}\); it is not unmounted"):
            check_idle(place, mountinfo)
    finally:
        child.kill()
        child.wait()
    with (tmp_path / "file").open("w"), pytest.raises(Refused, match=f"process {os.getpid()}"):
        check_idle(place, mountinfo)


def test_a_mount_below_another_is_not_unmounted(tmp_path: Path) -> None:
    inner = f"31 30 0:41 / {tmp_path}/inner rw - tmpfs none rw\n"
    with pytest.raises(Refused, match="something else is mounted on"):
        check_idle(str(tmp_path), f"30 20 0:40 / {tmp_path} rw - nfs4 server:/data rw\n{inner}")


def test_what_is_mounted_on_a_name_with_spaces_is_seen() -> None:
    outer = r"30 20 0:40 / /mnt/my\040data rw - nfs4 server:/data rw"
    inner = r"31 30 0:41 / /mnt/my\040data/inner rw - tmpfs none rw"
    check_idle("/mnt/my data", f"{outer}\n")
    for more in (inner, outer):
        with pytest.raises(Refused, match="something else is mounted on"):
            check_idle("/mnt/my data", f"{outer}\n{more}\n")


@pytest.mark.parametrize("kind", ["autofs", "nfs4"])
@pytest.mark.parametrize("below", ["/net", "/net/data"])
def test_a_mount_that_comes_back_by_itself_is_not_unmounted(kind: str, below: str) -> None:
    """Of autofs, of systemd, and a server's inner file system below its outer one."""
    mountinfo = f"20 1 0:40 / {below} rw - {kind} x rw\n30 20 0:41 / /net/data rw - nfs4 server:/data rw\n"
    with pytest.raises(Refused, match=f"/net/data is mounted below {kind}, which mounts it again by itself"):
        check_idle("/net/data", mountinfo)


def test_a_line_is_what_the_kernel_ends() -> None:
    line = next(line for line in MOUNTINFO.splitlines() if " nfs4 " in line)
    (found,) = mounted(line.replace("/mnt/data", "/mnt/a\x0cb\u2028c"))
    assert found.place == "/mnt/a\x0cb\u2028c"


# A mount that is there, on a machine that says what the test wants.


NUMBER = "0:45"
READ_AHEAD = nfs()["bdi.read_ahead_kb"].file(NUMBER)
SLOTS = nfs()["nfs.max_session_slots"].file(None)
OTHER = f"40 20 {NUMBER} / /mnt/other rw - nfs4 other:/data rw,vers=4.2,addr=10.9.0.1\n"


class Machine:
    """A client with one mount, whose kernel and programs are these few lines."""

    values, values_of, mount_of = NfsMachine.values, NfsMachine.values_of, NfsMachine.mount_of

    def __init__(self, mountinfo: str = "") -> None:
        self.mountinfo = mountinfo
        self.files: dict[str, str] = {}
        self.done: list[tuple[str, ...]] = []

    def read(self, files: list[str]) -> list[str]:
        return [
            self.mountinfo if file.endswith("mountinfo") else self.files.get(file, "64") for file in files
        ]

    def write(self, wanted: dict[str, int], device: str | None = None) -> None:
        self.files |= {nfs()[name].file(device): str(value) for name, value in wanted.items()}
        if wanted:
            self.done.append(("write", *wanted))

    def mount(self, source: str, place: str, options: list[str]) -> None:
        self.done.append(("mount", source, *options))
        self.mountinfo += f"50 20 {NUMBER} / {place} rw - nfs4 {source} {','.join(options)}\n"
        self.files[READ_AHEAD] = "128"  # what a new mount has

    def unmount(self, place: str) -> None:
        self.done.append(("unmount", place))
        lines = self.mountinfo.splitlines(keepends=True)
        del lines[max(at for at, line in enumerate(lines) if f" {place} " in line)]
        self.mountinfo = "".join(lines)


def mounted_with(place: object, options: str) -> str:
    return f"30 20 {NUMBER} / {place} rw - nfs4 server:/data {options},addr=10.9.0.1\n"


class FakeKeeper:
    """A keeper without a process, which puts the mount of `before` back when it starts."""

    machine: Machine
    before = ""
    told: list[tuple[str, ...]]

    def __init__(self, owner: str, *, user: bool = False, **_: object) -> None:
        self._user = user

    def __enter__(self) -> FakeKeeper:
        if self._user and self.before:
            self.machine.mountinfo = self.before
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def lock(self, *names: str) -> None:
        self.told.append(("lock", *names))

    def undo_command(self, argv: list[str], limit_s: float = 10.0, *, stdin: str | None = None) -> None:
        self.told.append(("undo", *argv, *([] if stdin is None else [stdin])))

    def undo_forget(self, argv: list[str], *, stdin: str | None = None) -> None:
        self.told.append(("forget", *argv, *([] if stdin is None else [stdin])))


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    FakeKeeper.machine, FakeKeeper.before, FakeKeeper.told = found, "", []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(live_machine, "Keeper", FakeKeeper)
    monkeypatch.setattr(mount_settings, "mount_around", lambda path: mount_at(found.mountinfo, path))
    for module in (existing, mount_settings, restoration):
        monkeypatch.setattr(module, "NfsMachine", lambda _node: found)
    return found


def changed(target: ExistingNfs, **values: object) -> None:
    target.apply(target.space.validate({**target.space.default(), **values}))


def noted() -> dict[str, Any]:
    """The record that is in the keeper's journal."""
    records = (told[-1] for told in reversed(FakeKeeper.told) if told[0] == "undo")
    return json.loads(next(text for text in records if text.startswith("{")))


def test_what_a_killed_study_has_left_is_not_taken_for_the_mount_of_before(
    there: Machine, tmp_path: Path
) -> None:
    there.mountinfo = mounted_with(tmp_path, "rw,vers=4.2,rsize=16384")
    FakeKeeper.before = mounted_with(tmp_path, "rw,vers=4.2,rsize=1048576")
    with ExistingNfs({"server": "existing", "path": str(tmp_path), "remounts": "allowed"}) as target:
        assert target.space["rsize"].default == 1048576
        changed(target, rsize=32768)
        assert "rsize=1048576" in noted()["options"]


def test_nobody_else_tunes_the_same_mount_meanwhile(there: Machine, tmp_path: Path) -> None:
    there.mountinfo = mounted_with(tmp_path, "rw,vers=4.2")
    with ExistingNfs({"server": "existing", "path": str(tmp_path), "remounts": "allowed"}):
        what, *names = next(told for told in FakeKeeper.told if told[0] == "lock")
    assert what == "lock"
    assert f"nfs:{tmp_path}" in names
    assert "nfs.max_session_slots" in names


def test_windows_of_connections_that_other_mounts_keep_are_not_tuned(
    there: Machine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"server": "existing", "path": str(tmp_path), "remounts": "allowed", "parameters": "wide"}
    windows = {"nconnect", "nfs_max_session_slots", "sunrpc_tcp_max_slot_table_entries"}
    there.mountinfo = mounted_with(tmp_path, "rw,vers=4.2") + OTHER.replace("10.9.0.1", "10.9.0.7")
    with ExistingNfs(options) as target:
        assert windows <= set(target.space.names)
    there.mountinfo = mounted_with(tmp_path, "rw,vers=4.2") + OTHER
    with ExistingNfs(options) as target:
        assert not windows & set(target.space.names)
        assert "rsize" in target.space.names
    assert "/mnt/other: of the same server" in caplog.text


def test_a_directory_that_is_not_there_is_not_made(
    there: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mount_settings, "mount_around", mount_around)
    there.mountinfo = mounted_with(tmp_path, "rw,vers=4.2")
    wrong = ExistingNfs({"server": "existing", "path": f"{tmp_path}/none/deep"})
    with pytest.raises(StudyError, match=r"target\.path = .*No such file"), wrong:
        pass
    assert list(tmp_path.iterdir()) == []
    with (
        pytest.raises(StudyError, match=r"target\.export = .*: must be the absolute path of a directory"),
        ExistingNfs({"server": "existing", "export": f"{tmp_path}/none"}),
    ):
        pass


RECORD = NfsRestoration("server:/data", "/mnt/d", ("rw", "vers=4.2"), {}, mounts=True)


def test_a_mount_that_came_twice_is_put_back_once(there: Machine) -> None:
    """One that was under way when its study was killed may come after all."""
    there.mountinfo = mounted_with("/mnt/d", "rw") + mounted_with("/mnt/d", "rw,rsize=16384")
    RECORD.carry_out()
    assert len(mounted(there.mountinfo)) == 1
    assert ("mount", "server:/data", "rw", "vers=4.2") in there.done


@pytest.mark.parametrize(
    "line", ["30 20 8:1 / /mnt/d rw - ext4 /dev/sda1 rw\n", OTHER.replace("other ", "d ")]
)
def test_what_somebody_has_mounted_there_since_stays(there: Machine, line: str) -> None:
    there.mountinfo = line
    assert "not as ascar left it: left alone" in RECORD.carry_out()[-1]
    assert there.mountinfo == line
    assert not [done for done in there.done if done[0] != "write"]


# What somebody else has changed.


@pytest.fixture
def tuned(there: Machine, tmp_path: Path) -> Iterator[ExistingNfs]:
    there.mountinfo = mounted_with(tmp_path, "rw,vers=4.2,rsize=1048576,hard,nconnect=2")
    options = {"server": "existing", "path": str(tmp_path), "remounts": "allowed", "parameters": "wide"}
    target = ExistingNfs(options)
    with target:
        yield target


def test_a_study_puts_back_what_it_has_changed(there: Machine, tuned: ExistingNfs, tmp_path: Path) -> None:
    changed(tuned, rsize=65536, nfs_max_session_slots=3, bdi_read_ahead_kb=1024)
    assert "rsize=65536" in there.mountinfo
    assert (there.files[SLOTS], there.files[READ_AHEAD]) == ("3", "1024")
    tuned.__exit__(None, None, None)
    assert there.done[-2] == (
        "mount",
        "server:/data",
        "rw",
        "vers=4.2",
        "rsize=1048576",
        "hard",
        "nconnect=2",
    )
    assert there.done[-1] == ("write", "bdi.read_ahead_kb"), "which the new mount does not have"
    assert (there.files[SLOTS], there.files[READ_AHEAD]) == ("64", "64")
    assert there.mountinfo.count(str(tmp_path)) == 1


def test_what_takes_effect_at_once_is_put_back_without_a_new_mount(
    there: Machine, tuned: ExistingNfs
) -> None:
    changed(tuned, bdi_read_ahead_kb=1024)
    assert noted()["mounts"] is False
    tuned.__exit__(None, None, None)
    assert there.files[READ_AHEAD] == "64"
    assert {done[0] for done in there.done} == {"write"}


@pytest.mark.parametrize(
    ("name", "file"), [("nfs.max_session_slots", SLOTS), ("bdi.read_ahead_kb", READ_AHEAD)]
)
def test_a_value_that_somebody_else_changes_in_mid_study_ends_the_study_and_stays(
    there: Machine, tuned: ExistingNfs, name: str, file: str, caplog: pytest.LogCaptureFixture
) -> None:
    changed(tuned, rsize=65536, nfs_max_session_slots=3, bdi_read_ahead_kb=1024)
    there.files[file] = "777"
    with pytest.raises(StageFailed, match=f"{name} = .*: is 777 .* somebody else changed it under the load"):
        tuned.sample()
    with pytest.raises(WorkError, match=f"{name}: is '777' .*somebody else changed it in mid-study"):
        changed(tuned, rsize=32768)
    tuned.__exit__(None, None, None)
    assert there.files[file] == "777"
    assert there.files[SLOTS if file == READ_AHEAD else READ_AHEAD] == "64", "the other one is put back"
    assert "rsize=1048576" in there.mountinfo
    assert f"left alone: {name}: is '777'" in caplog.text


def test_options_that_somebody_else_mounts_with_stay(
    there: Machine, tuned: ExistingNfs, caplog: pytest.LogCaptureFixture
) -> None:
    changed(tuned, rsize=65536, nconnect=4)
    there.mountinfo = there.mountinfo.replace("rsize=65536", "rsize=8192,acregmin=5")
    with pytest.raises(WorkError, match="rsize: is '8192'"):
        changed(tuned)
    tuned.__exit__(None, None, None)
    (mount,) = mounted(there.mountinfo)
    assert {"rsize=8192", "acregmin=5", "nconnect=2"} <= set(mount.options)
    assert "rsize=1048576" not in mount.options
    for name in ("rsize", "actimeo"):
        assert f"left alone: {name}: is '" in caplog.text


def test_another_export_at_the_place_ends_the_study_and_stays(there: Machine, tuned: ExistingNfs) -> None:
    changed(tuned, rsize=65536)
    there.mountinfo = there.mountinfo.replace("server:/data", "server:/else")
    with pytest.raises(WorkError, match="server:/else is mounted there, not server:/data: somebody else"):
        changed(tuned)
    tuned.__exit__(None, None, None)
    assert "rsize=65536" in there.mountinfo


def test_what_the_server_grants_instead_is_nobody_elses(
    there: Machine, tuned: ExistingNfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = there.mount

    def smaller(source: str, place: str, options: list[str]) -> None:
        mount(source, place, [one.replace("rsize=65536", "rsize=4096") for one in options])

    monkeypatch.setattr(there, "mount", smaller)
    with pytest.raises(StageFailed, match="rsize = 65536: is 4096 on .* once it is written"):
        changed(tuned, rsize=65536)
    changed(tuned, rsize=32768)
    assert "rsize=32768" in there.mountinfo


def test_a_mount_that_fails_is_made_as_before(
    there: Machine, tuned: ExistingNfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = there.mount

    def refusing(source: str, place: str, options: list[str]) -> None:
        if "rsize=65536" in options:
            raise StageFailed("nfs", "mount: refused")
        mount(source, place, options)

    monkeypatch.setattr(there, "mount", refusing)
    with pytest.raises(StageFailed, match="refused"):
        changed(tuned, rsize=65536, nfs_max_session_slots=3)
    assert "rsize=1048576" in there.mountinfo
    changed(tuned, rsize=32768)
    assert there.files[SLOTS] == "64"


def test_a_killed_study_s_values_are_told_from_those_of_others(
    there: Machine, tuned: ExistingNfs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper carries the record out, as `python -m ascar.systems.nfs.restoration` does."""
    changed(tuned, rsize=65536, nfs_max_session_slots=3, bdi_read_ahead_kb=1024)
    there.files[READ_AHEAD] = "777"
    monkeypatch.setattr(sys, "argv", ["restoration", json.dumps(noted())])
    assert restore(NfsRestoration, NfsRestoration.carry_out) == 0
    said = capsys.readouterr().err
    assert said.startswith("bdi.read_ahead_kb: is '777' on ")
    assert "not as ascar left it: somebody else changed it" in said
    assert (there.files[SLOTS], there.files[READ_AHEAD]) == ("64", "777"), "also on the new mount"
    assert "rsize=1048576" in there.mountinfo


def test_a_study_that_is_killed_between_two_mounts_is_mounted_as_before(
    there: Machine, tuned: ExistingNfs, tmp_path: Path
) -> None:
    changed(tuned, rsize=65536, nfs_max_session_slots=3)
    record = msgspec.json.decode(json.dumps(noted()), type=NfsRestoration)
    there.unmount(str(tmp_path))
    there.files[SLOTS] = "99"
    assert [line.partition(":")[0] for line in record.carry_out()] == ["nfs.max_session_slots"]
    assert "rsize=1048576" in there.mountinfo
    assert there.files[SLOTS] == "99"


def test_a_new_mount_that_has_no_read_ahead_yet_is_nobody_elses(
    there: Machine, tuned: ExistingNfs, tmp_path: Path
) -> None:
    """The study was killed between mounting it anew and writing what a new mount does not keep."""
    changed(tuned, rsize=65536, bdi_read_ahead_kb=1024)
    record = msgspec.json.decode(json.dumps(noted()), type=NfsRestoration)
    there.unmount(str(tmp_path))
    there.mount("server:/data", str(tmp_path), ["rw", "rsize=65536", "nconnect=2"])
    assert there.files[READ_AHEAD] == "128"
    assert record.carry_out() == ()
    assert there.files[READ_AHEAD] == "64"


def test_a_record_of_an_earlier_ascar_is_carried_out(there: Machine) -> None:
    """It does not say what its study may have left."""
    there.mountinfo = mounted_with("/mnt/d", "rw,rsize=16384")
    there.files |= {SLOTS: "3", READ_AHEAD: "1024"}
    settings = {"nfs.max_session_slots": 64, "bdi.read_ahead_kb": 128}
    assert NfsRestoration("server:/data", "/mnt/d", ("rw",), settings, mounts=True).carry_out() == ()
    assert (there.files[SLOTS], there.files[READ_AHEAD]) == ("64", "128")
    assert mounted(there.mountinfo)[0].options == ("rw",)


@pytest.mark.parametrize("name", ["nfsd.threads", "none", "wdelay", "nfs.max_session_slots"])
def test_a_record_with_what_is_no_setting_of_a_client_is_refused(there: Machine, name: str) -> None:
    record = NfsRestoration("s:/d", "/mnt/d", (), {}, mounts=True, left={name: ("1",)})
    with pytest.raises(InputError, match=f"'{name}': must be a setting of a client"):
        record.carry_out()
    assert there.done == []


def test_the_keeper_is_told_what_puts_a_mount_back() -> None:
    record = NfsRestoration("s:/d", "/mnt/d", ("rw", "vers=4.2"), {"nfs.max_session_slots": 64}, mounts=False)
    keeper = FakeKeeper("a test", user=True)
    keeper.told = []
    note(cast("Keeper", keeper), record, None, 60.0)
    (_, program, option, module, text) = keeper.told[-1]
    assert (program, module) == (sys.executable, "ascar.systems.nfs.restoration")
    assert json.loads(text)["settings"] == {"nfs.max_session_slots": 64}
    wrong = NfsRestoration("s:/d", "/mnt/d", (), {"nfsd.threads": 1}, mounts=False)
    with pytest.raises(InputError, match=r"'nfsd\.threads': must be a setting of a client"):
        wrong.carry_out()
    argv = [program, option, module]
    for given, more in (("{}", []), ("", ["{}"])):  # earlier journals have it as an argument
        done = subprocess.run([*argv, *more], input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "missing required field" in done.stderr


def test_a_load_that_works_on_files_of_this_machine_is_refused() -> None:
    study = Study.parse(
        '[study]\nname = "s"\nobjective = "maximize throughput_ops_per_s"\nbudget = "1 min"\n'
        '[target]\nkind = "nfs"\n[workload]\nkind = "sqlite-transactions"\n'
    )
    with pytest.raises(
        StudyError, match=r"workload\.kind = 'sqlite-transactions': must be one of command, fil"
    ):
        PreparedStudy.open(study)


def test_the_kind_is_found_by_name() -> None:
    assert isinstance(open_target({"kind": "nfs"}), Nfs)
    assert isinstance(open_target({"kind": "nfs", "server": "existing", "path": "/mnt"}), ExistingNfs)
