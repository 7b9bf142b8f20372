"""Storage V5 against the kernel and the mkfs programs of this machine: every value once, every category."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ascar.space import ChangeCost, Guarantee, preset

SPACE = preset("storage-v5").permit_weaker(Guarantee)
IMAGE_BYTES = 2300 * 2**20  # sparse; 32 allocation groups of XFS need more than 2 GiB
PROGRAMS = (
    "mkfs.ext2",
    "mkfs.ext3",
    "mkfs.ext4",
    "mkfs.xfs",
    "mkfs.btrfs",
    "losetup",
    "mount",
    "dumpe2fs",
    "xfs_info",
)


def missing():
    if os.geteuid() != 0:
        return "needs root"
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"needs {', '.join(lacking)}" if lacking else ""


pytestmark = [
    pytest.mark.root,
    pytest.mark.machine,
    pytest.mark.skipif(bool(missing()), reason=missing() or "everything is there"),
]


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)


def must(*arguments):
    done = run(*arguments)
    assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr}"
    return done.stdout


def mkfs(configuration, device):
    """The command that formats; every size is given, none left to the program."""
    get = configuration.get
    fs = configuration["fs"]
    if fs == "xfs":
        return [
            *("mkfs.xfs", "-f", "-q", "-b", f"size={get('block_size_bytes')}"),
            *("-i", f"size={get('xfs_inode_size_bytes')}", "-d", f"agcount={get('xfs_allocation_groups')}"),
            *("-s", f"size={get('xfs_sector_size_bytes')}", device),
        ]
    if fs == "btrfs":
        profile = get("btrfs_metadata_profile")
        return ["mkfs.btrfs", "-f", "-q", "-n", str(get("btrfs_node_size_bytes")), "-m", profile, device]
    command = [
        f"mkfs.{fs}",
        "-F",
        "-q",
        "-b",
        str(get("block_size_bytes")),
        "-I",
        str(get("ext_inode_size_bytes")),
    ]
    if "ext4_flex_group_size" in configuration:
        command += ["-G", str(get("ext4_flex_group_size"))]
    if get("ext_journal_size_mib"):
        command += ["-J", f"size={get('ext_journal_size_mib')}"]
    return [*command, "-E", "lazy_itable_init=0,lazy_journal_init=0", device]


def options(configuration):
    """What `mount -o` is given, by parameter."""
    forms = {
        "ext_journal_mode": "data={}",
        "ext_commit_interval_s": "commit={}",
        "btrfs_commit_interval_s": "commit={}",
        "btrfs_max_inline_bytes": "max_inline={}",
        "xfs_log_buffers": "logbufs={}",
        "xfs_log_buffer_size_kib": "logbsize={}k",
    }
    given = {name: form.format(configuration[name]) for name, form in forms.items() if name in configuration}
    given["atime"] = configuration["atime"]
    if "write_barrier" in configuration:
        given["write_barrier"] = "barrier" if configuration["write_barrier"] else "nobarrier"
    if "ext4_delayed_allocation" in configuration:
        given["ext4_delayed_allocation"] = (
            "delalloc" if configuration["ext4_delayed_allocation"] else "nodelalloc"
        )
    if configuration.get("xfs_allocation_size_kib"):
        given["xfs_allocation_size_kib"] = f"allocsize={configuration['xfs_allocation_size_kib']}k"
    if "btrfs_data_mode" in configuration:
        given["btrfs_data_mode"] = {"datacow": "datacow,datasum"}.get(
            configuration["btrfs_data_mode"], configuration["btrfs_data_mode"]
        )
    if "btrfs_compression" in configuration:
        given["btrfs_compression"] = f"compress={configuration['btrfs_compression'].replace('none', 'no')}"
    return given


# What the kernel shows of a value that is its own default: nothing.
UNSHOWN = {
    "delalloc",
    "barrier",
    "datacow,datasum",
    "compress=no",
    "max_inline=2048",
    "commit=5",
    "commit=30",
}


def shows(mounted, option, fs):
    """Whether the options of a mounted file system agree with one that was given."""
    if option in ("commit=5", "commit=30"):
        usual = (option == "commit=5") == (fs in ("ext3", "ext4"))
        return usual or option in mounted
    if option in UNSHOWN:
        stem = {"delalloc": "nodelalloc", "barrier": "nobarrier", "datacow,datasum": "nodatasum"}.get(option)
        stem = stem or option.partition("=")[0]
        return not any(shown.startswith(stem) for shown in mounted)
    return option in mounted


class Device:
    """A loop device with a sparse image and a mount point, put back afterwards."""

    def __init__(self, directory):
        image = directory / "image"
        image.touch()
        os.truncate(image, IMAGE_BYTES)
        self.place = directory / "mnt"
        self.place.mkdir()
        self.device = must("losetup", "--find", "--show", str(image)).strip()
        self.name = Path(self.device).name
        self.queue = Path("/sys/block") / self.name / "queue"
        self.before = {
            knob: (self.queue / knob).read_text() for knob in ("scheduler", "nr_requests", "read_ahead_kb")
        }

    def close(self):
        run("umount", str(self.place))
        # A detached loop device keeps these for its next user.
        scheduler = self.before["scheduler"].partition("[")[2].partition("]")[0]
        for knob, value in {**self.before, "scheduler": scheduler}.items():
            (self.queue / knob).write_text(value)
        must("losetup", "--detach", self.device)

    def options(self):
        return must("findmnt", "--noheadings", "--output", "OPTIONS", str(self.place)).strip().split(",")

    def put(self, configuration):
        """Format and mount; check that the file system works and shows what was asked for."""
        fs = configuration["fs"]
        must(*mkfs(configuration, self.device))
        given = options(configuration)
        must("mount", "-t", fs, "-o", ",".join(given.values()), self.device, str(self.place))
        (self.place / "file").write_bytes(b"x" * 100_000)
        os.sync()
        mounted = self.options()
        wrong = {name: option for name, option in given.items() if not shows(mounted, option, fs)}
        assert not wrong, f"{wrong} not in {mounted}"
        for name, value in self.on_disk(configuration).items():
            assert configuration[name] == value, name

    def on_disk(self, configuration):
        """Sizes as the file system itself reports them."""
        if configuration["fs"] == "xfs":
            words = must("xfs_info", str(self.place)).replace(",", " ").split()
            number = {}
            for word in words:
                key, _, value = word.partition("=")
                if value.isdigit():
                    number.setdefault(key, int(value))
            return {
                "xfs_inode_size_bytes": number["isize"],
                "xfs_allocation_groups": number["agcount"],
                "xfs_sector_size_bytes": number["sectsz"],
                "block_size_bytes": number["bsize"],
            }
        if configuration["fs"] == "btrfs":
            return {"btrfs_node_size_bytes": int(Path(self.sysfs_btrfs(), "nodesize").read_text())}
        lines = must("dumpe2fs", "-h", self.device).splitlines()
        fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        found = {
            "block_size_bytes": int(fields["Block size"]),
            "ext_inode_size_bytes": int(fields["Inode size"]),
        }
        if configuration.get("ext_journal_size_mib"):
            found["ext_journal_size_mib"] = int(fields["Total journal size"].removesuffix("M"))
        if "ext4_flex_group_size" in configuration and configuration["ext4_flex_group_size"] > 1:
            found["ext4_flex_group_size"] = int(fields["Flex block group size"])
        return found

    def sysfs_btrfs(self):
        uuid = must("findmnt", "--noheadings", "--output", "UUID", str(self.place)).strip()
        return f"/sys/fs/btrfs/{uuid}"

    def unmount(self):
        must("umount", str(self.place))


@pytest.fixture
def device(tmp_path):
    opened = Device(tmp_path)
    yield opened
    opened.close()


def supported(fs):
    return fs in Path("/proc/filesystems").read_text().split() or run("modprobe", fs).returncode == 0


def of(fs):
    return SPACE.pin({"fs": fs})


@pytest.mark.slow
@pytest.mark.parametrize("fs", SPACE["fs"].domain.values)
def test_every_value_of_a_file_system_formats_mounts_and_reads_back(fs, device):
    if not supported(fs):
        pytest.skip(f"this kernel has no {fs}")
    space = of(fs)
    start = space.default()
    costs = (ChangeCost.REFORMAT_RESTORE, ChangeCost.UMOUNT_MOUNT, ChangeCost.REMOUNT)
    seen = {}
    for configuration in [start, *space.neighbours(start)]:
        changed = space.change(start, configuration).parameters
        if changed and not any(space[name].cost in costs for name in changed):
            continue
        device.put(configuration)
        device.unmount()
        for name, value in configuration.items():
            seen.setdefault(name, set()).add(value)
    for name, values in seen.items():
        if space[name].cost in costs and name != "fs":
            assert values == set(space.domain(name).values), name


@pytest.mark.parametrize(
    ("fs", "values"),
    [
        ("ext4", {"block_size_bytes": 1024, "ext_inode_size_bytes": 2048}),
        ("xfs", {"block_size_bytes": 1024, "xfs_inode_size_bytes": 1024}),
        ("xfs", {"block_size_bytes": 2048, "xfs_sector_size_bytes": 4096}),
    ],
)
def test_what_the_constraints_forbid_the_programs_refuse(fs, values, device):
    configuration = of(fs).default().replaced(**values)
    broken = [
        rule
        for rule in SPACE.constraints
        if rule.holds({**dict.fromkeys(SPACE.names), **configuration}) is False
    ]
    assert len(broken) == 1
    assert run(*mkfs(configuration, device.device)).returncode != 0


@pytest.mark.parametrize("fs", ["ext4", "xfs", "btrfs"])
def test_a_remount_suffices_exactly_where_the_category_says_so(fs, device):
    if not supported(fs):
        pytest.skip(f"this kernel has no {fs}")
    space = of(fs)
    start = space.default()
    device.put(start)
    for neighbour in space.neighbours(start):
        (name,) = (name for name in start if name in neighbour and start[name] != neighbour[name])
        cost = space[name].cost
        if cost not in (ChangeCost.REMOUNT, ChangeCost.UMOUNT_MOUNT):
            continue
        given = options(neighbour)[name]
        done = run("mount", "-o", f"remount,{given}", str(device.place))
        took = done.returncode == 0 and shows(device.options(), given, fs)
        assert took == (cost is ChangeCost.REMOUNT), f"{name}: {given} by remount: {done.stderr}"
        if took:
            # Back: "relatime" alone leaves noatime in force.
            back = "atime,relatime" if name == "atime" else options(start)[name]
            must("mount", "-o", f"remount,{back}", str(device.place))
            assert shows(device.options(), options(start)[name], fs)
    device.unmount()


def test_kernel_parameters_of_the_block_device(device):
    offered = (device.queue / "scheduler").read_text().replace("[", "").replace("]", "").split()
    for scheduler in SPACE["block_scheduler"].domain.values:
        if scheduler not in offered:
            continue
        (device.queue / "scheduler").write_text(scheduler)
        assert f"[{scheduler}]" in (device.queue / "scheduler").read_text()
        for number in SPACE["block_nr_requests"].domain.values:
            allowed = SPACE.is_valid(
                SPACE.default().replaced(block_scheduler=scheduler, block_nr_requests=number)
            )
            if allowed:
                (device.queue / "nr_requests").write_text(str(number))
                assert int((device.queue / "nr_requests").read_text()) == number
    for kib in SPACE["block_read_ahead_kb"].domain.values:
        (device.queue / "read_ahead_kb").write_text(str(kib))
        assert int((device.queue / "read_ahead_kb").read_text()) == kib


def test_kernel_parameters_of_ext4(device):
    device.put(of("ext4").default())
    knob = Path("/sys/fs/ext4") / device.name / "inode_readahead_blks"
    for blocks in SPACE["ext4_inode_readahead_blks"].domain.values:
        knob.write_text(str(blocks))
        assert int(knob.read_text()) == blocks
    device.unmount()


@pytest.mark.parametrize(
    ("name", "knob"),
    [
        ("vm_dirty_background_ratio", "dirty_background_ratio"),
        ("vm_dirty_ratio", "dirty_ratio"),
        ("vm_dirty_expire_centisecs", "dirty_expire_centisecs"),
        ("vm_vfs_cache_pressure", "vfs_cache_pressure"),
    ],
)
def test_kernel_parameters_of_memory_are_there(name, knob):
    # Only read: they concern the whole machine.
    present = int((Path("/proc/sys/vm") / knob).read_text())
    assert SPACE[name].with_default(present).default == present
