"""Of all tests: signals mean what they mean at a terminal, programs start as fast as they do there, and what
is drawn is the same in every run."""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from ascar.errors import EnvironmentLacks
from ascar.program.node_binary import find_ascard
from ascar.threads import compute_on_one_thread

if TYPE_CHECKING:
    from collections.abc import Iterator

# Tests of several folders share helpers, which lie beside this file.
sys.path.insert(0, str(Path(__file__).parent))

ROOT = Path(__file__).resolve().parents[1]
MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 2 << 30
BYTECODE = ROOT / "build" / "bytecode"
MACHINE_LOCK = Path("/run/ascar-tests.lock")
FIGURES = pytest.StashKey[Counter[str]]()

# The same examples everywhere, however slow the machine: a test that fails, fails for everybody. To look for
# new ones, and twice as many: pytest --hypothesis-profile=search.
settings.register_profile(
    "same",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--seed` and `--cuts`, for `make proof`."""
    parser.addoption("--seed", type=int, default=0, help="seed of the moments at which tests kill")
    parser.addoption("--cuts", type=int, default=1, help="power cuts a kind of system")


def _valkey_alone() -> None:
    """With ASCAR_TEST_VALKEY, the path of a valkey-server: the tests of Redis run on that.

    Its folder in PATH also has a `redis-server` that tells no version, so that the installed one is hidden.
    """
    server = os.environ.get("ASCAR_TEST_VALKEY")
    if server is None or "PYTEST_XDIST_WORKER" in os.environ:
        return
    folder = Path(tempfile.mkdtemp(prefix="ascar-valkey-"))
    folder.chmod(0o755)
    (folder / "valkey-server").symlink_to(Path(server).absolute())
    (folder / "redis-server").symlink_to("/bin/false")
    os.environ["PATH"] = os.pathsep.join((str(folder), os.environ.get("PATH", os.defpath)))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def pytest_configure() -> None:
    """Undo what `nohup` and a shell's `&` do: programs that tests interrupt would inherit deafness to it."""
    _valkey_alone()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    _keep_bytecode()
    # As the program does: several threads on small matrices wait for each other, beside a load for minutes.
    compute_on_one_thread()


def asked_for_slow(config: pytest.Config) -> bool:
    """Whether only slow tests are run."""
    return config.getoption("markexpr").startswith("slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a slow test where slow ones are asked for: each worker collects all files."""
    if not asked_for_slow(config) or not collection_path.match("test_*.py"):
        return None
    shared = collection_path.with_name("conftest.py")
    texts = [path.read_text("utf-8") for path in (collection_path, shared) if path.exists()]
    return None if any("mark.slow" in text for text in texts) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test of the machine that is not seen as one: workers would wait for it instead of testing."""
    for item in items:
        if item.get_closest_marker("machine") and group_of(item.nodeid) == item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: write the mark machine before its def, or in pytestmark")
    # What may take longest begins first: at the end, all other workers would wait for it.
    items.sort(key=_may_take_long, reverse=True)


def _may_take_long(item: pytest.Item) -> bool:
    limit = item.get_closest_marker("timeout")
    return limit is not None and limit.args[0] > float(item.config.getini("timeout"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect thousands of tests without looking for garbage among them, which takes as long again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def _keep_bytecode() -> None:
    """Compile modules once for all programs that tests start, even where the environment keeps no bytecode.

    Else each of some hundred `ascar` would compile a thousand modules anew: half of what it takes to start.
    """
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(BYTECODE)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(BYTECODE)


class Scheduling(LoadScopeScheduling):
    """Shares the tests out: what belongs together goes to one worker, everything else to whoever is free."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _reschedule(self, node: Any) -> None:
        """Give a worker more; behind a slow test only one waits, which others could do meanwhile."""
        # Each worker has to know what comes next before it begins a test.
        if (
            not asked_for_slow(self.config)
            or not self.workqueue
            or self._pending_of(self.assigned_work[node]) < 2
        ):
            super()._reschedule(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    """Share the tests out in this project's way, whatever `--dist` says."""
    return Scheduling(config, log)


def group_of(nodeid: str) -> str:
    """The tests that run one after another in one worker; the test itself where it needs no company.

    Who shares out does not know the tests, only where they are: so their files say it, or the folder's
    `conftest.py`. Tests that have the machine for themselves would wait for each other in several workers.
    """
    path, *classes, name = nodeid.partition("[")[0].split("::")
    text = _text_of(ROOT / path)
    if _is_all_of_machine(ROOT / path):
        return "machine"
    # A file system of Lustre is tuned by one study at a time, and that of the stand-in has one name.
    if "import lctl_stand_in" in text:
        return "lustre"
    # JAX takes seconds to import and to compile.
    if any(word in text for word in ('scope="module"', 'importorskip("jax"', "import classic_parts")):
        return path
    if classes and 'scope="class"' in text:
        return f"{path}::{classes[0]}"
    return nodeid if _names_of_machine(ROOT / path).isdisjoint((*classes, name)) else "machine"


@cache
def _text_of(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def _is_all_of_machine(path: Path) -> bool:
    shared = path.parent / "conftest.py"
    if shared.exists() and shared != Path(__file__) and "mark.machine" in shared.read_text("utf-8"):
        return True
    return bool(re.search(r"^pytestmark = (\[[^\]]*)?pytest\.mark\.machine", _text_of(path), re.MULTILINE))


@cache
def _names_of_machine(path: Path) -> frozenset[str]:
    """The tests and classes with the mark before their `def` or `class`, or on some of their parameters."""
    parts = re.split(r"^ *(?:def|class) (\w+)", _text_of(path), flags=re.MULTILINE)
    before = zip(parts[::2], parts[1::2], strict=False)
    return frozenset(name for text, name in before if "mark.machine" in text)


@pytest.fixture(autouse=True, scope="session")
def history_of_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Sessions and searches that tests run are not kept in the user's history."""
    os.environ["ASCAR_HISTORY"] = str(tmp_path_factory.mktemp("history") / "history.sqlite")


@pytest.fixture(autouse=True)
def machine(request: pytest.FixtureRequest) -> Iterator[None]:
    """One at a time of the tests that change the machine, also of those that another checkout runs."""
    if request.node.get_closest_marker("machine") is None or os.geteuid() != 0:
        yield
        return
    with MACHINE_LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def seed(request: pytest.FixtureRequest) -> int:
    """Of what a test draws itself, such as the moments at which it kills: another one, other moments."""
    return request.config.getoption("--seed")


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Counter[str]:
    """What tests have counted; the last line shows it, and `make proof` keeps it."""
    return request.config.stash.setdefault(FIGURES, Counter())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what tests have counted."""
    if FIGURES in config.stash:
        terminalreporter.write_line(f"figures {json.dumps(config.stash[FIGURES])}")


@pytest.fixture(scope="session")
def in_memory() -> Path | None:
    """Where files cost no wait for a disk, if there is room; None: where temporary files go anyway."""
    if not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < MEMORY_BYTES_MIN:
        return None
    return MEMORY


@pytest.fixture(scope="session")
def ascard() -> Path:
    """The node binary."""
    try:
        return find_ascard()
    except EnvironmentLacks as lack:
        pytest.skip(str(lack))
