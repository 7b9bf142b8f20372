"""The packages of Debian and RPM: built, installed, upgraded, removed and purged in a fresh Debian."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from benchmarks.fresh_debian import run_inside

from built_packages import ROOT, build_packages, debian_or_skip, packages_of_this_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
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


@pytest.fixture
def installed(debian: Path) -> Path:
    """The same Debian with the packages installed."""
    done(debian, "apt-get install -qq -y --no-install-recommends /packages/*_0.1.0_*.deb >/dev/null")
    return debian


def test_sqlite_is_tuned_where_only_the_packages_are_installed(installed: Path) -> None:
    assert inside(installed, "command -v cc gcc rustc").returncode != 0
    told = done(installed, "ascar --version")
    assert "ascard 0.1.0 (agent, disk, interface, keeper, load, proxy)" in told
    assert "extras: explore" in told
    assert "message server: /usr/lib/ascar/bin/nats-server" in told
    done(installed, "cd /root && touch begun && ascar init sqlite --out study.toml && ascar check study.toml")
    said = inside(installed, "cd /root && ascar tune study.toml --budget 30s --json")
    assert said.returncode in {0, 3}, said.stderr
    assert json.loads(said.stdout)["verdict"]["kind"]
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


def test_pages_and_completions_are_where_they_are_looked_for(installed: Path) -> None:
    for file in (
        *("man/man1/ascar.1.gz", "man/man1/ascar-tune.1.gz", "man/man1/ascard-keeper.1.gz"),
        *("bash-completion/completions/ascar", "bash-completion/completions/ascard"),
        *("zsh/site-functions/_ascar", "zsh/site-functions/_ascard"),
        *("fish/vendor_completions.d/ascar.fish", "fish/vendor_completions.d/ascard.fish"),
    ):
        assert done(installed, f"stat -c %s /usr/share/{file}").strip() != "0"


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
    done(installed, "touch /etc/ascar/agent.toml; dpkg --purge ascar ascar-node")
    assert done(installed, "ls /srv/images") == "other\n"
    left = done(
        installed, "find / -xdev -name '*ascar*' ! -path '/packages/*' ! -path '/root/*' ! -path '/var/*'"
    )
    assert left.split() == ["/etc/ascar"], left
    assert done(installed, "ls /var/lib | grep ascar || true") == ""


def test_rpm_has_the_same_files_as_the_package_of_debian(packages: Path) -> None:
    if shutil.which("rpm") is None:
        pytest.skip("needs the package rpm; install it")
    for name in ("ascar-node", "ascar"):
        [rpm] = packages.glob(f"{name}-0.1.0*.rpm")
        [deb] = packages.glob(f"{name}_0.1.0_*.deb")
        listed = subprocess.run(["rpm", "-qpl", rpm], capture_output=True, text=True, check=True).stdout
        unpacked = subprocess.run(["dpkg-deb", "-c", deb], capture_output=True, text=True, check=True).stdout
        of_deb = {
            line.split(None, 5)[5].partition(" -> ")[0].removeprefix(".")
            for line in unpacked.splitlines()
            if not line.startswith("d")
        }
        of_rpm = set(listed.splitlines())
        assert of_deb <= of_rpm
        needs = subprocess.run(["rpm", "-qpR", rpm], capture_output=True, text=True, check=True).stdout
        assert ("ascar-node = 0.1.0" in needs) == (name == "ascar")
        scripts = subprocess.run(
            ["rpm", "-qp", "--scripts", rpm], capture_output=True, text=True, check=True
        ).stdout
        assert ("keeper --restore" in scripts) == (name == "ascar-node")


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
