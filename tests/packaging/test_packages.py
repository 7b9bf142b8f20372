"""The packages of Debian and RPM: built, installed, upgraded, removed and purged in a fresh Debian."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import tarfile
import time
from typing import TYPE_CHECKING

import pytest
from benchmarks.fresh_debian import run_inside

from built_packages import ROOT, build_packages, debian_or_skip, packages_of_this_run
from elf_file import Elf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
OF_LICENCES = re.compile(r"\.dist-info/(?:.*/)?(?:LICEN[CS]E|COPYING|NOTICE)[^/]*$", re.IGNORECASE)
FIRST_VERDICT_S = 180.0
"""From `apt-get install` to a verdict."""
# A keeper that is killed after it has made a file in a directory.
KILLED_KEEPER = r"""
mkdir -p /srv/images && chmod 700 /srv/images
(
    echo '{"id": 1, "op": "hello", "version": 1, "owner": "killed"}'
    echo '{"id": 2, "op": "image_create", "path": "/srv/images/image", "size_bytes": 67108864}'
    sleep 1000
) | ascard keeper >/tmp/said &
while [ "$(grep -c '"ok"' /tmp/said)" -lt 2 ]; do sleep 0.1; done
for process in /proc/[0-9]*; do
    [ "$(readlink "$process/exe")" != /usr/libexec/ascar/ascard ] || kill -KILL "${process#/proc/}"
done
"""

# What a user without rights tunes: a file system on an image file, and nothing that the machine has once.
STUDY = """
[study]
name = "of-a-user"
objective = "maximize throughput_ops_per_s"
budget = "25 s"
[target]
kind = "localfs"
size = "512 MiB"
file_systems = ["ext4"]
memory = "none"
[space]
allow_cost = ["umount-mount", "reformat-restore"]
[workload]
kind = "filebench"
personality = "mailserver"
scale = 0.05
[measurement]
preset = "quick"
load_min = "1 s"
load_max = "2 s"
[optimizer]
kind = "random"
"""
# Its processes and the keeper that sudo had started, killed while a file system is mounted.
KILLED_STUDY = r"""
mounted() { grep -q /run/ascar/mnt /proc/mounts; }
send() {
    for process in /proc/[0-9]*; do
        case $(readlink "$process/exe") in
            /usr/bin/python3* | /usr/libexec/ascar/ascard | /usr/bin/sudo)
                kill "$1" "${process#/proc/}" || true
                ;;
        esac
    done
}
alice() { setpriv --reuid=alice --regid=alice --init-groups env HOME=/home/alice "$@"; }
alice ascar tune --quiet /home/alice/study.toml >/dev/null 2>&1 &
until mounted; do sleep 0.1; done
# Stopped first: none of them sees another die.
send -STOP
send -KILL
wait
# Mounted or, on a slow machine, between two mounts: its image is attached.
losetup --all | grep "(/home/alice"
alice ascar restore
if mounted; then exit 1; fi
"""
DETACHED = "losetup --all | grep '(/home/alice' | cut -d: -f1 | xargs --no-run-if-empty losetup -d"
LEFT_BY_STUDIES = (
    "ls /var/lib/ascar/journal; find /home -size +100M; losetup --all | grep '(/home/alice' || true"
)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packages_of_this_run(tmp_path_factory)


@pytest.fixture(scope="module")
def debian(packages: Path) -> Iterator[Path]:
    """A fresh Debian with the packages in it, not installed yet."""
    with debian_or_skip() as place:
        (place / "packages").mkdir()
        for package in packages.glob("*.deb"):
            shutil.copy(package, place / "packages")
        yield place


def inside(debian: Path, script: str, timeout_s: float = 600.0) -> subprocess.CompletedProcess[str]:
    return run_inside(debian, "sh", "-ec", script, timeout_s=timeout_s)


def done(debian: Path, script: str, timeout_s: float = 600.0) -> str:
    """What a script says that must succeed."""
    found = inside(debian, script, timeout_s)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def install(debian: Path) -> Path:
    """The same Debian with the packages installed."""
    done(debian, "apt-get install -qq -y --no-install-recommends /packages/*_0.1.0_*.deb >/dev/null")
    return debian


@pytest.fixture
def installed(debian: Path) -> Path:
    return install(debian)


def test_sqlite_is_tuned_where_only_the_packages_are_installed(debian: Path) -> None:
    begun_s = time.monotonic()
    installed = install(debian)
    assert inside(installed, "command -v cc gcc rustc").returncode != 0
    told = done(installed, "ascar --version")
    assert "ascard 0.1.0 (agent, disk, interface, keeper, load, proxy)" in told
    assert "extras: explore" in told
    assert "message server: /usr/lib/ascar/bin/nats-server" in told
    done(installed, "cd /root && touch begun && ascar init sqlite --out study.toml && ascar check study.toml")
    said = inside(installed, "cd /root && ascar tune study.toml --budget 12s --json")
    assert said.returncode in {0, 3}, said.stderr
    assert json.loads(said.stdout)["verdict"]["kind"]
    assert time.monotonic() - begun_s < FIRST_VERDICT_S
    # Nothing was compiled at run time: users could not write that.
    assert done(installed, "find /usr/lib/ascar -newer /root/begun") == ""


def test_what_is_installed_is_roots_and_closed_to_others(installed: Path) -> None:
    modes = done(
        installed,
        "stat -c '%a %U %n' /usr/libexec/ascar/ascard /etc/sudoers.d/ascar /var/lib/ascar /etc/ascar",
    )
    assert modes.splitlines() == [
        "755 root /usr/libexec/ascar/ascard",
        "440 root /etc/sudoers.d/ascar",
        "700 root /var/lib/ascar",
        "755 root /etc/ascar",
    ]
    assert done(installed, "find /usr/lib/ascar /usr/libexec/ascar -perm /022 ! -type l") == ""
    assert done(installed, "find /usr/lib/ascar ! -user root") == ""
    assert "/nologin" in done(installed, "getent passwd ascar")
    assert done(installed, "getent group ascar-tune").startswith("ascar-tune:")
    # No path of the machine that built it.
    assert done(installed, "grep -rlF /stage/environment /usr/lib/ascar /usr/share || true") == ""


def test_it_runs_where_python3_is_another_version(installed: Path) -> None:
    """RHEL and Fedora have the Python that is needed beside their own, which was asked, and lacks ascar."""
    other = "printf '#!/bin/sh\\nexit 9\\n' >/usr/local/bin/other && chmod 755 /usr/local/bin/other"
    replaced = "mv /usr/bin/python3 /usr/bin/python3.was; ln -s /usr/local/bin/other /usr/bin/python3"
    done(installed, f"{other}; {replaced}")
    try:
        assert done(installed, "ascar --version").startswith("ascar 0.1.0\n")
    finally:
        done(installed, "rm /usr/local/bin/other; mv /usr/bin/python3.was /usr/bin/python3")


def test_the_c_library_that_it_needs_is_named(packages: Path) -> None:
    """The extension is built against that of the building machine; an older one ended in an ImportError."""
    needed = max(
        Elf(file.read_bytes()).newest(b"GLIBC")
        for file in (packages / "stage/environment").rglob("_core*.so")
    )
    [deb] = packages.glob("ascar_0.1.0_*.deb")
    words = ["dpkg-deb", "--field", deb, "Depends"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    [version] = re.findall(r"\blibc6 \(>= ([\d.]+)\)", told)
    assert tuple(map(int, version.split("."))) >= needed


def test_pages_and_completions_are_where_they_are_looked_for(installed: Path) -> None:
    for file in (
        *("man/man1/ascar.1.gz", "man/man1/ascar-tune.1.gz", "man/man1/ascard-keeper.1.gz"),
        *("bash-completion/completions/ascar", "bash-completion/completions/ascard"),
        *("zsh/vendor-completions/_ascar", "zsh/vendor-completions/_ascard"),
        *("doc/ascar/changelog.gz", "doc/ascar-node/changelog.gz"),
        *("fish/vendor_completions.d/ascar.fish", "fish/vendor_completions.d/ascard.fish"),
    ):
        assert done(installed, f"stat -c %s /usr/share/{file}").strip() != "0"


@pytest.fixture
def users(installed: Path) -> Iterator[Path]:
    """The same Debian with sudo, and two users, one of them in the group that may tune."""
    done(installed, "apt-get -qq update; apt-get -qq -y --no-install-recommends install sudo >/dev/null")
    done(installed, "useradd -m mallory; useradd -m -G ascar-tune alice")
    for name in ("alice", "mallory"):
        (installed / "home" / name / "study.toml").write_text(STUDY)
    try:
        yield installed
    finally:
        done(installed, f"{DETACHED}; userdel -r mallory 2>/dev/null; userdel -r alice 2>/dev/null")


def of_user(
    debian: Path, name: str, *words: str, timeout_s: float = 600.0
) -> subprocess.CompletedProcess[str]:
    become = ("setpriv", f"--reuid={name}", f"--regid={name}", "--init-groups", "env", f"HOME=/home/{name}")
    return run_inside(debian, *become, *words, timeout_s=timeout_s)


def test_only_members_of_its_group_tune_a_file_system_through_sudo(users: Path) -> None:
    refused = of_user(users, "mallory", "ascar", "tune", "/home/mallory/study.toml")
    assert refused.returncode == 2
    assert "needs root" in refused.stderr
    assert "ascar-tune" in refused.stderr
    doctor = json.loads(of_user(users, "alice", "ascar", "doctor", "--json").stdout)
    assert next(need["found"] for need in doctor["needs"] if need["name"] == "root") == "through sudo"
    tuned = of_user(users, "alice", "ascar", "tune", "--json", "/home/alice/study.toml")
    assert tuned.returncode in {0, 3}, tuned.stderr
    assert json.loads(tuned.stdout)["verdict"]["kind"]
    assert done(users, LEFT_BY_STUDIES) == ""
    # A member may have it tuned, and nothing else.
    keeper = "/usr/libexec/ascar/ascard"
    for words in (
        ("cat", "/etc/shadow"),
        (keeper, "keeper", "--state-dir", "/tmp"),
        (keeper, "agent"),
        ("ascar",),
    ):
        said = of_user(users, "alice", "sudo", "-n", "--", *words)
        assert said.returncode == 1, words
        assert "password is required" in said.stderr


def test_a_member_puts_back_what_a_killed_study_has_left(users: Path) -> None:
    assert "restored: " in done(users, KILLED_STUDY)
    assert done(users, LEFT_BY_STUDIES) == ""


def test_an_upgrade_keeps_what_was_measured_and_configured(
    installed: Path, tmp_path: Path, packages: Path
) -> None:
    later = build_packages(tmp_path, "deb", version="0.1.1")
    for package in later.glob("*.deb"):
        shutil.copy(package, installed / "packages")
    tune = "ascar init simulated --out simulated.toml && ascar tune simulated.toml --quiet"
    done(installed, f"cd /root && {tune} >/dev/null; ascar history ls > before; grep -q simulated before")
    done(installed, "echo '# ours' >> /etc/sudoers.d/ascar; touch /etc/ascar/agent.toml")
    done(installed, "apt-get install -qq -y --no-install-recommends /packages/*_0.1.1_*.deb >/dev/null")
    assert done(installed, "dpkg-query -W -f '${Version} ' ascar ascar-node").split() == ["0.1.1", "0.1.1"]
    assert "# ours" in done(installed, "cat /etc/sudoers.d/ascar && stat /etc/ascar/agent.toml")
    done(installed, "cd /root && ascar history ls | diff before -")
    # Equal sources give equal packages, whatever is installed in between.
    trees = [packages / "stage/environment", later / "stage/environment"]
    compared = subprocess.run(["diff", "-r", *trees], capture_output=True, text=True, check=False)
    assert compared.returncode == 0, compared.stdout[:2000]
    done(installed, "apt-get install -qq -y --allow-downgrades /packages/*_0.1.0_*.deb >/dev/null")


def test_it_is_not_removed_while_only_it_can_put_something_back(installed: Path) -> None:
    done(installed, KILLED_KEEPER)
    done(installed, "test -e /srv/images/image; touch /srv/images/other")
    fixed = inside(installed, "chattr +i /srv/images")
    if fixed.returncode != 0:
        pytest.skip(f"a directory cannot be made immutable: {fixed.stderr}")
    try:
        refused = inside(installed, "apt-get purge -qq -y ascar-node")
        assert refused.returncode != 0
        assert "not everything could be put back" in refused.stdout + refused.stderr
        assert "/srv/images/image" in refused.stdout + refused.stderr
        assert done(installed, "ascard --version")
    finally:
        done(installed, "chattr -i /srv/images")
    # What units have written.
    done(installed, "mkdir -p /var/lib/ascar-interface /var/lib/ascar-learner /var/lib/ascar-proxy")
    done(installed, "touch /etc/ascar/agent.toml; dpkg --purge ascar ascar-node")
    assert done(installed, "ls /srv/images") == "other\n"
    # Locks in /run are of every ascar on the machine, and end with its uptime.
    elsewhere = " ".join(f"! -path '/{place}/*'" for place in ("packages", "root", "run", "var"))
    left = done(installed, f"find / -xdev -name '*ascar*' {elsewhere}")
    assert left.split() == ["/etc/ascar"], left
    assert done(installed, "ls /var/lib | grep ascar || true") == ""


def test_no_file_has_the_time_of_the_build(packages: Path) -> None:
    for package in packages.glob("*_0.1.0_*.deb"):
        with (
            subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as unpacking,
            tarfile.open(fileobj=unpacking.stdout, mode="r|") as files,
        ):
            times = {file.mtime for file in files}
        assert len(times) == 1, f"{package.name}: a build takes longer than a second"


def unpacked(package: Path, *names: str) -> dict[str, str]:
    """What files in a package of Debian say."""
    found = {}
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as unpacking,
        tarfile.open(fileobj=unpacking.stdout, mode="r|") as files,
    ):
        for file in files:
            if file.name.removeprefix(".") in names:
                content = files.extractfile(file)
                assert content is not None
                found[file.name.removeprefix(".")] = content.read().decode()
    return found


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("ascar-node", ("LICENSE", "crates/ascard/THIRD-PARTY-LICENSES.txt", "packaging/licences/glibc.txt")),
        ("ascar", ("LICENSE", "THIRD-PARTY-LICENSES.txt", "packaging/licences/nats-server.txt")),
    ],
)
def test_a_package_has_the_licences_of_all_that_is_in_it(
    packages: Path, name: str, parts: tuple[str, ...]
) -> None:
    """In the one file that Debian's images keep, who leave out documentation."""
    file = f"/usr/share/doc/{name}/copyright"
    [deb] = packages.glob(f"{name}_0.1.0_*.deb")
    told = unpacked(deb, file)[file]
    places = [told.index((ROOT / part).read_text()) for part in parts]
    assert places == sorted(places)
    if shutil.which("rpm") is None:
        pytest.skip("needs the package rpm; install it")
    [rpm] = packages.glob(f"{name}-0.1.0*.rpm")
    words = ["rpm", "-qp", "--licensefiles", rpm]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert listed.split() == [f"/usr/share/licenses/{name}/copyright"]
    words = ["rpm", "-qp", "--qf", "[%{FILENAMES} %{FILESIZES}\n]", rpm]
    sizes = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert f"/usr/share/licenses/{name}/copyright {len(told.encode())}\n" in sizes


def test_python_packages_keep_their_licences(packages: Path) -> None:
    """Each has the files that its own list of files has, and at least one."""
    [deb] = packages.glob("ascar_0.1.0_*.deb")
    words = ["dpkg-deb", "-c", deb]
    lines = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    packed = {line.split(None, 5)[5].removeprefix(".") for line in lines if not line.startswith("d")}
    records = [file for file in packed if file.endswith(".dist-info/RECORD")]
    assert len(records) > 20
    for record, listed in unpacked(deb, *records).items():
        site = record.rsplit("/", 2)[0]
        said = {f"{site}/{row[0]}" for row in csv.reader(listed.splitlines())}
        licences = {file for file in said if OF_LICENCES.search(file)}
        assert licences, f"{record}: names no licence"
        assert licences <= packed, f"{record}: {licences - packed}"


def test_rpm_has_the_same_files_as_the_package_of_debian(packages: Path) -> None:
    if shutil.which("rpm") is None:
        pytest.skip("needs the package rpm; install it")
    for name in ("ascar-node", "ascar"):
        [rpm] = packages.glob(f"{name}-0.1.0*.rpm")
        [deb] = packages.glob(f"{name}_0.1.0_*.deb")
        listed = subprocess.run(["rpm", "-qpl", rpm], capture_output=True, text=True, check=True).stdout
        unpacked = subprocess.run(["dpkg-deb", "-c", deb], capture_output=True, text=True, check=True).stdout
        of_deb = {
            line.split(None, 5)[5]
            .partition(" -> ")[0]
            .removeprefix(".")
            .replace("/zsh/vendor-completions/", "/zsh/site-functions/")  # where each one's zsh looks
            .replace(f"/usr/share/doc/{name}/copyright", f"/usr/share/licenses/{name}/copyright")
            for line in unpacked.splitlines()
            if not line.startswith("d")
        }
        of_rpm = set(listed.splitlines())
        assert of_deb <= of_rpm
        needs = subprocess.run(["rpm", "-qpR", rpm], capture_output=True, text=True, check=True).stdout
        assert ("ascar-node = 0.1.0" in needs) == (name == "ascar")
        assert bool(re.search(r"^glibc >= 2\.\d+$", needs, re.MULTILINE)) == (name == "ascar")
        scripts = subprocess.run(
            ["rpm", "-qp", "--scripts", rpm], capture_output=True, text=True, check=True
        ).stdout
        assert ("keeper --restore" in scripts) == (name == "ascar-node")
        host = subprocess.run(
            ["rpm", "-qp", "--qf", "%{BUILDHOST}", rpm], capture_output=True, text=True, check=True
        ).stdout
        assert host == "localhost"


def test_rpms_are_installed_upgraded_and_erased(packages: Path, tmp_path: Path) -> None:
    """By rpm, in a root that has its database; that root is Debian's, for its Python."""
    if shutil.which("rpm") is None:
        pytest.skip("needs the package rpm; install it")
    later = build_packages(tmp_path, "rpm", version="0.1.1", names="ascar-node")
    with debian_or_skip() as place:

        def rpm(*words: str | Path, fails: bool = False) -> str:
            command = ["rpm", f"--root={place}", "--dbpath=/var/lib/rpm", *words]
            said = subprocess.run(command, capture_output=True, text=True, check=False)
            assert (said.returncode != 0) == fails, said.stdout + said.stderr
            return said.stdout + said.stderr

        both = sorted(packages.glob("*-0.1.0*.rpm"))
        # All that a root of RPM would have besides: Python and the C library, none of rpm's here.
        lacks = rpm("--install", "--test", *both, fails=True)
        needed = set(re.findall(r"^\s+(.*) is needed by", lacks, re.MULTILINE))
        assert {re.sub(r"2\.\d+$", "2.", one) for one in needed} == {
            f"python(abi) = {python_of(place)}",
            "glibc >= 2.",
        }
        rpm("--install", "--nodeps", *both)
        assert "ascard 0.1.0 (agent, disk, interface, keeper, load, proxy)" in done(place, "ascar --version")
        tune = "ascar init simulated --out simulated.toml && ascar tune simulated.toml --quiet"
        assert inside(place, f"cd /root && {tune}").returncode in {0, 3}
        assert done(place, "getent group ascar-tune").startswith("ascar-tune:")
        assert rpm("--verify", "ascar-node") == ""
        # An upgrade keeps what root wrote, and is no removal.
        done(place, "echo '# ours' >> /etc/sudoers.d/ascar; touch /etc/ascar/agent.toml")
        rpm("--upgrade", "--nodeps", *later.glob("*.rpm"))
        assert done(place, "ascard --version").startswith("ascard 0.1.0")
        assert "# ours" in done(place, "cat /etc/sudoers.d/ascar; stat /etc/ascar/agent.toml")
        # Erasing puts back first what a killed keeper has left.
        done(place, KILLED_KEEPER)
        done(place, "test -e /srv/images/image")
        rpm("--erase", "ascar", "ascar-node")
        assert done(place, "ls /srv/images") == ""
        left = done(
            place, "find / -xdev -name '*ascar*' ! -path '/root/*' ! -path '/var/*' ! -path '/proc/*'"
        )
        assert set(left.split()) <= {"/etc/ascar", "/etc/sudoers.d/ascar.rpmsave"}, left


def python_of(place: Path) -> str:
    """The version of its Python, e.g. 3.11."""
    return done(place, "python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'").strip()


@pytest.mark.parametrize("words", [["zip"], ["deb", "exe"]])
def test_unknown_formats_are_refused_before_anything_is_built(words: list[str], tmp_path: Path) -> None:
    script = ROOT / "scripts/packages"
    out = tmp_path / "out"
    said = subprocess.run(
        [script, *words],
        env={"OUT": str(out), "PATH": "/usr/bin:/bin", "HOME": "/"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 2
    assert f"{words[-1]}: must be deb or rpm" in said.stderr
    assert not out.exists()
