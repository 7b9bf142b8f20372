"""On behalf of an ordinary user, as through sudo: the keeper is root, its client is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ascar.program.node_binary import find_ascard

NOBODY = 65534
# What sudo does: a parent whose real user is the invoking one starts root's process with SUDO_UID set.
AS_SUDO = f"""
import os, subprocess, sys
os.setresgid({NOBODY}, 0, 0)
os.setresuid({NOBODY}, 0, 0)
environment = dict(os.environ, SUDO_UID="{NOBODY}", SUDO_GID="{NOBODY}")
def become_root():
    os.setresuid(0, 0, 0)
    os.setresgid(0, 0, 0)
keeper = subprocess.Popen(sys.argv[1:], env=environment, preexec_fn=become_root)
sys.exit(keeper.wait())
"""


@pytest.fixture
def session(raw):
    """A session of the user nobody."""
    session = raw(words=(sys.executable, "-c", AS_SUDO), hello=False)
    hello = session.ask("hello", version=1, owner="nobody's study")
    assert (hello["ok"]["uid"], hello["ok"]["gid"]) == (NOBODY, NOBODY)
    return session


@pytest.fixture
def own(tmp_path):
    place = tmp_path / "own"
    place.mkdir()
    os.chown(place, NOBODY, NOBODY)
    return place


def refusal(reply):
    assert reply["error"]["kind"] == "refused", reply
    return reply["error"]["message"]


def test_images_are_made_in_directories_of_the_user_alone(session, own, images):
    request = {"size_bytes": 64 << 20}
    assert "belongs to user 0" in refusal(session.ask("image_create", path=str(images / "image"), **request))
    assert list(images.iterdir()) == []
    assert "ok" in session.ask("image_create", path=str(own / "image"), **request)
    assert (own / "image").stat().st_uid == 0
    link = own / "link"
    link.symlink_to(images)
    reply = session.ask("image_create", path=str(link / "image"), **request)
    assert "is a symbolic link: name the real one" in reply["error"]["message"]
    assert list(images.iterdir()) == []


def test_files_that_the_session_has_not_made_are_not_attached(session, own):
    foreign = own / "foreign"
    foreign.touch()
    os.truncate(foreign, 64 << 20)
    assert "has not made it" in refusal(session.ask("image_attach", path=str(foreign)))
    assert "has not made it" in refusal(session.ask("image_attach", path="/etc/shadow"))


def test_a_file_system_goes_to_the_user_and_to_nobody_else(session, own):
    session.ask("image_create", path=str(own / "image"), size_bytes=64 << 20)
    session.ask("image_attach", path=str(own / "image"))
    session.ask("format", fs="ext4")
    for owner in ({"uid": 0}, {"gid": 0}, {"uid": 0, "gid": 0}):
        assert "allowed are your own" in refusal(session.ask("mount", fs="ext4", **owner))
    mounted = session.ask("mount", fs="ext4")["ok"]
    state = Path(mounted["mountpoint"]).stat()
    assert (state.st_uid, state.st_gid) == (NOBODY, NOBODY)


def test_only_processes_of_the_user_are_limited(session):
    session.ask("cgroup_create", memory_bytes=64 << 20)
    roots = subprocess.Popen(["sleep", "1000"])
    users = subprocess.Popen(["sleep", "1000"], user=NOBODY)
    try:
        assert "is not a process of yours" in refusal(session.ask("cgroup_add", pid=roots.pid))
        assert "is not a process of yours" in refusal(session.ask("cgroup_add", pid=os.getpid()))
        assert "ok" in session.ask("cgroup_add", pid=users.pid)
        assert session.ask("cgroup_kill")["ok"]["processes"] == 0
        assert users.wait(100) == -9
        assert roots.poll() is None
    finally:
        roots.kill()
        roots.wait()
        users.kill()
        users.wait()


def test_everything_is_put_back_when_the_user_dies(session, own, gone):
    session.ask("image_create", path=str(own / "image"), size_bytes=64 << 20)
    session.ask("image_attach", path=str(own / "image"))
    assert (own / "image").exists()
    session.process.kill()
    gone()
    assert list(own.iterdir()) == []


@pytest.mark.anybody
def test_without_root_it_says_so_at_once():
    words = [find_ascard(), "keeper"]
    options = {"user": NOBODY} if os.geteuid() == 0 else {}
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    except PermissionError:
        pytest.skip("the binary is in a place that others may not enter")
    assert done.returncode == 2
    assert done.stderr == "ascard keeper: needs root: start it through sudo\n"
