"""What a release checks before it builds anything, its signature, and its bill of materials."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from process_state import alive
from waiting import until

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    "scripts/release",
    "scripts/release-files",
    "scripts/fresh-build",
    "scripts/wheels",
    "pyproject.toml",
    "crates/ascard/pyproject.toml",
    "Cargo.toml",
    "CHANGELOG.md",
)
AUTHOR = {f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
ENVIRONMENT = {**os.environ, **AUTHOR, "GIT_CONFIG_GLOBAL": "/dev/null"}


# In place of what takes minutes to compile.
MAKEFILE = """
setup:
\tmkdir -p .venv/bin
\tprintf '#!/bin/sh\\nexec python3 "$$@"\\n' >.venv/bin/python
\tchmod +x .venv/bin/python
wheels:
\tmkdir -p build/wheels
\techo "$(TARGETS)" >build/wheels/ascar.whl
packages:
\tmkdir -p build/packages
\t{build} >build/packages/ascar.deb
\techo rpm >build/packages/ascar.rpm
check-wheels:
\techo "checks $(WHEELS)"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    place = tmp_path / "checkout"
    for name in FILES:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name)
    (place / ".gitignore").write_text("build/\n.venv/\n")
    run("git", "init", "-q", at=place)
    commit(place)
    return place


@pytest.fixture
def building(checkout: Path) -> Path:
    """A checkout whose builds take no time, and equal one another."""
    (checkout / "Makefile").write_text(MAKEFILE.format(build="echo deb"))
    (checkout / "scripts/bill_of_materials.py").write_text("print('{}')\n")
    commit(checkout)
    return checkout


class Key(NamedTuple):
    """Both halves of a key of minisign that has no password."""

    secret: Path
    public: Path


def new_key(folder: Path, name: str) -> Key:
    if shutil.which("minisign") is None:
        pytest.skip("needs minisign; install it")
    key = Key(folder / f"{name}.key", folder / f"{name}.pub")
    run("minisign", "-G", "-W", "-f", "-s", key.secret, "-p", key.public, at=folder)
    return key


def run(*words: str | Path, at: Path, fails: bool = False) -> str:
    """What a program says that ends well; with `fails`, badly."""
    done = subprocess.run(
        words, cwd=at, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def commit(place: Path) -> None:
    run("git", "add", ".", at=place)
    run("git", "commit", "-q", "-m", "all", at=place)


def released(checkout: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "scripts/release", *words],
        env={**ENVIRONMENT, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    "words",
    [[], ["1.0"], ["1.0.0-rc1"], ["v1.0.0"], ["1.0.0;ls"], ["0.1.0", "--fast"], ["0.1.0", "--fresh", "x"]],
)
def test_wrong_words_are_refused(checkout: Path, words: list[str]) -> None:
    said = released(checkout, *words)
    assert said.returncode == 2
    assert "must be" in said.stderr
    assert not (checkout / "build").exists()


def test_everything_that_is_wrong_is_named_at_once(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 0.0.9\n\n- Old.\n")
    run("git", "tag", "v9.9.9", at=checkout)
    said = released(checkout, "9.9.9", "--rehearse", SIGN="/no/such/key", TARGETS="of-none")
    assert said.returncode == 1
    for part in (
        "packaging/release.pub is missing, by which users verify: minisign -R",
        "the checkout has changes",
        "pyproject.toml: version = 0.1.0: must be 9.9.9",
        "crates/ascard/pyproject.toml: version",
        "Cargo.toml: version",
        "must need ascard==9.9.9",
        "the tag v9.9.9 is there",
        "nothing stands under Unreleased",
        "SIGN = /no/such/key",
        "TARGETS: Rust has no library for of-none; get it with: rustup target add of-none",
    ):
        assert part in said.stderr
    assert not (checkout / "build").exists()
    assert "9.9.9" not in (checkout / "CHANGELOG.md").read_text()


def test_nothing_is_dated_when_the_build_fails(checkout: Path) -> None:
    """There is no Makefile here."""
    said = released(checkout, "0.1.0", "--rehearse")
    assert said.returncode == 1
    assert "failed" in said.stderr
    assert not (checkout / "build").exists()
    assert (checkout / "CHANGELOG.md").read_text() == (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("build", ["pwd", "date +%z", "locale"])
def test_builds_that_differ_are_no_release(building: Path, build: str) -> None:
    (building / "Makefile").write_text(MAKEFILE.format(build=build))
    commit(building)
    said = released(building, "0.1.0", "--rehearse", TZ="UTC", LC_ALL="C")
    assert said.returncode == 1
    assert "the two builds differ:\nascar.deb\n" in said.stderr
    [kept] = (building / "build/release").iterdir()
    assert kept.name == "0.1.0.differs" and f"both are kept in {kept}" in said.stderr
    first, second = ((kept / name / "ascar.deb").read_text() for name in ("first", "the-second"))
    assert first != second


@pytest.fixture
def checked(building: Path) -> Path:
    """The same, where all checks of a release pass at once."""
    (building / ".ci").mkdir()
    for name in ("run", "release"):
        (building / ".ci" / name).write_text("#!/bin/sh\n")
        (building / ".ci" / name).chmod(0o755)
    commit(building)
    return building


def test_a_release_dates_the_changelog(checked: Path) -> None:
    said = released(checked, "0.1.0")
    assert said.returncode == 0, said.stderr
    assert "now: git commit -am 'ascar 0.1.0' && git tag v0.1.0" in said.stderr
    heads = [line for line in (checked / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    assert heads[0] == "## Unreleased"
    assert heads[1].startswith("## 0.1.0 (20")


def test_commits_made_meanwhile_are_no_part_of_it(checked: Path) -> None:
    """The first build is followed by a commit in the checkout; the second is of the same sources."""
    later = (
        "sh -c 'git -C $$(git remote get-url origin) commit -q --allow-empty -m later; git rev-parse HEAD'"
    )
    (checked / "Makefile").write_text(MAKEFILE.format(build=later))
    commit(checked)
    asked = run("git", "rev-parse", "HEAD", at=checked)
    said = released(checked, "0.1.0")
    assert said.returncode == 1
    assert f"built from {asked.strip()}, but the checkout is at another commit now" in said.stderr
    assert (checked / "build/release/0.1.0/ascar.deb").read_text() == asked
    assert "## 0.1.0" not in (checked / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT])
def test_a_release_that_is_ended_leaves_nothing(building: Path, asked: signal.Signals) -> None:
    (building / "Makefile").write_text(MAKEFILE.format(build="echo $$$$ >pid; exec sleep 600"))
    commit(building)
    words = [building / "scripts/release", "0.1.0", "--rehearse"]
    with subprocess.Popen(words, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as release:
        assert release.stderr is not None
        place = Path(release.stderr.readline().rpartition(" ")[2].strip())
        pid = int(until(lambda: (place / "pid").exists() and (place / "pid").read_text().strip()))
        release.send_signal(asked)
        assert release.wait(30) == 130
    assert not place.parent.exists()
    until(lambda: not alive(pid))
    assert not (building / "build").exists()


# In place of a Debian: a folder with what a build there prints of its compiler, and the way back out of it.
FRESH = """#!/bin/sh
echo "ascar fresh build: rustc 1.0 of $(basename "$1"); $(date +%z)" >&2
exec "$1/scripts/release-files"
"""


def test_a_fresh_release_is_built_in_two_debians(building: Path) -> None:
    (building / "scripts/fresh-build").write_text(FRESH)
    commit(building)
    (building / "bin").mkdir()
    for name in ("debootstrap", "id"):
        (building / "bin" / name).write_text("#!/bin/sh\necho 0\n")
        (building / "bin" / name).chmod(0o755)
    (building / ".git/info/exclude").write_text("bin/\n")
    found = {"PATH": f"{building}/bin:{os.environ['PATH']}", "TZ": "UTC"}
    said = released(building, "0.1.0", "--fresh", "--rehearse", **found)
    assert said.returncode == 0, said.stderr
    assert "rustc 1.0 of first; +0000\n" in said.stderr
    assert "rustc 1.0 of the-second; +1400\n" in said.stderr
    assert "two builds in two Debians, at different paths" in said.stderr
    targeted = released(
        building, "0.1.0", "--rehearse", "--fresh", TARGETS="x86_64-unknown-linux-gnu", **found
    )
    assert targeted.returncode == 1
    assert (
        "TARGETS = x86_64-unknown-linux-gnu: --fresh builds for this machine's processor alone"
        in targeted.stderr
    )


@pytest.mark.parametrize(
    ("lacking", "line"),
    [("checkout", "needs a checkout"), ("id", "needs root"), ("debootstrap", "debootstrap is missing")],
)
def test_a_fresh_build_says_what_is_missing_and_leaves_nothing(
    checkout: Path, tmp_path: Path, lacking: str, line: str
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("sh", "realpath", "dirname"):
        (tools / name).symlink_to(shutil.which(name) or "")
    (tools / "id").write_text(f"#!/bin/sh\necho {1000 if lacking == 'id' else 0}\n")
    (tools / "id").chmod(0o755)
    before = sorted(tmp_path.rglob("*"))
    place = tmp_path / "none" if lacking == "checkout" else checkout
    said = subprocess.run(
        [shutil.which("sh") or "", checkout / "scripts/fresh-build", place],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert said.returncode == 2
    assert line in said.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_fresh_build_that_fails_leaves_no_debian(checkout: Path, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("id", "echo 0"), ("debootstrap", "echo no such suite >&2; exit 1")):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    before = sorted(tmp_path.rglob("*"))
    said = subprocess.run(
        [checkout / "scripts/fresh-build", checkout],
        env={**ENVIRONMENT, "PATH": f"{tools}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert said.returncode == 1
    assert "no such suite\nascar fresh build: debootstrap fails" in said.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_a_release_is_verified_as_users_do(building: Path, tmp_path: Path) -> None:
    key = new_key(tmp_path, "ours")
    (building / "packaging").mkdir()
    shutil.copy(key.public, building / "packaging/release.pub")
    commit(building)
    about = run("sh", "-c", "PATH=$PATH:$HOME/.cargo/bin; rustc -vV", at=tmp_path)
    host = about.partition("host: ")[2].split()[0]
    said = released(building, "0.1.0", "--rehearse", SIGN=str(key.secret), TARGETS=host)
    assert said.returncode == 0, said.stderr
    assert "signed: " in said.stderr
    out = building / "build/release/0.1.0"
    assert (out / "ascar.whl").read_text() == f"{host}\n"
    verify = ("minisign", "-V", "-p", key.public, "-m", "SHA256SUMS")
    told = run(*verify, at=out)
    assert "Trusted comment: ascar 0.1.0" in told
    assert run("sha256sum", "--check", "SHA256SUMS", at=out).count(": OK\n") == 4
    # Whoever changes a file cannot sign its new sum; nor does another's signature do.
    (out / "ascar.deb").write_text("another\n")
    assert "ascar.deb: FAILED" in run("sha256sum", "--check", "SHA256SUMS", at=out, fails=True)
    (out / "SHA256SUMS").write_text(run("sha256sum", "ascar.deb", at=out))
    assert "Signature verification failed" in run(*verify, at=out, fails=True)
    run("minisign", "-S", "-s", new_key(tmp_path, "theirs").secret, "-m", "SHA256SUMS", at=out)
    assert "key id" in run(*verify, at=out, fails=True)


@pytest.mark.parametrize("kind", ["another's", "no key"])
def test_a_key_that_users_cannot_verify_is_found_before_the_builds(
    building: Path, tmp_path: Path, kind: str
) -> None:
    (building / "packaging").mkdir()
    shutil.copy(new_key(tmp_path, "ours").public, building / "packaging/release.pub")
    commit(building)
    secret = new_key(tmp_path, "theirs").secret
    if kind == "no key":
        secret.write_text("nonsense\n")
    said = released(building, "0.1.0", "--rehearse", SIGN=str(secret))
    assert said.returncode == 1
    assert f"SIGN = {secret}: must sign what packaging/release.pub verifies" in said.stderr
    assert "the build in" not in said.stderr
    assert not (building / "build").exists()


def test_a_rehearsal_signs_nothing_without_a_key_and_dates_nothing(building: Path) -> None:
    said = released(building, "0.1.0", "--rehearse")
    assert said.returncode == 0, said.stderr
    assert "not signed: SIGN names no key" in said.stderr
    made = {file.name for file in (building / "build/release/0.1.0").iterdir()}
    assert made == {"SHA256SUMS", "ascar-0.1.0.cdx.json", "ascar.deb", "ascar.rpm", "ascar.whl"}
    assert run("git", "status", "--porcelain", at=building) == ""


def test_the_bill_of_materials_has_what_is_shipped_and_nothing_else() -> None:
    script = ROOT / "scripts/bill_of_materials.py"
    said = [
        subprocess.run(
            [sys.executable, script], capture_output=True, text=True, check=True, timeout=120
        ).stdout
        for _ in range(2)
    ]
    assert said[0] == said[1]
    document = json.loads(said[0])
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    names = {one["name"] for one in document["components"]}
    assert {"numpy", "sqlalchemy", "msgspec", "rusqlite", "lexopt", "pyo3"} <= names
    assert not names & {"pytest", "ruff", "proptest", "hypothesis", "maturin", "vite", "typescript"}
    # Locked for other systems than Linux.
    assert not {name for name in names if name == "colorama" or re.match("windows|wasi|.*-wasm-", name)}
    assert {one["name"] for one in document["components"] if "version" not in one} == {"glibc", "rust-std"}
    # In the message server of the packages, whose program says so.
    modules = {
        one["name"]: one["version"]
        for one in document["components"]
        if one.get("purl", "").startswith("pkg:golang/")
    }
    assert {"stdlib", "github.com/nats-io/nats-server/v2", "golang.org/x/crypto"} <= modules.keys()
    assert all(re.fullmatch(r"v?\d+\.\d+\.\d+\S*", version) for version in modules.values())
    # Of the page of `ascar explore`, what it is built from, and what that takes.
    page = {one["name"] for one in document["components"] if one.get("purl", "").startswith("pkg:npm/")}
    needed = json.loads((ROOT / "web/package.json").read_text())["dependencies"]
    assert needed.keys() | {"d3-array", "internmap"} <= page
    known = [one["bom-ref"] for one in document["components"]]
    assert len(set(known)) == len(known)
    known.append(document["metadata"]["component"]["bom-ref"])
    for one in document["dependencies"]:
        assert {one["ref"], *one.get("dependsOn", ())} <= set(known)
    crates = [one for one in document["components"] if one.get("purl", "").startswith("pkg:cargo/")]
    assert len({one["purl"] for one in crates}) == len(crates)
    assert all(one["licenses"][0]["expression"] for one in crates)
