"""The header compiles, and the examples build with pkg-config's flags and run."""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(1800)

ROOT = Path(__file__).resolve().parents[2]
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
COPY, SORT = ROOT / "examples/c/measure_copy.c", ROOT / "examples/cpp/measure_sort.cpp"


def _compiler(name):
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing; set up with: make setup-dev")
    return found


def _run(*arguments, **options):
    return subprocess.run(
        [str(one) for one in arguments], capture_output=True, text=True, check=False, timeout=300, **options
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory, flags):
    """The examples, built as their usage comments say, but with all warnings errors."""
    folder = tmp_path_factory.mktemp("examples")
    copy = _run(_compiler("cc"), "-std=c99", *STRICT, "-o", folder / "copy", COPY, *flags, "-lm")
    assert (copy.returncode, copy.stderr) == (0, "")
    sort = _run(_compiler("c++"), "-std=c++17", *STRICT, "-o", folder / "sort", SORT, *flags)
    assert (sort.returncode, sort.stderr) == (0, "")
    return folder


@pytest.mark.parametrize(
    ("compiler", "language"), [("cc", "c99"), ("cc", "c17"), ("c++", "c++11"), ("c++", "c++20")]
)
def test_the_headers_stand_alone(tmp_path, prefix, compiler, language):
    source = tmp_path / ("use.c" if compiler == "cc" else "use.cpp")
    source.write_text(
        "#include <pilot.h>\n#include <pilot.h>\n#include <congestion.h>\n#include <congestion.h>\n"
        "int main(void) { const pilot_analysis_options_t a = PILOT_ANALYSIS_DEFAULTS;\n"
        "const pilot_edm_options_t b = PILOT_EDM_DEFAULTS;\n"
        "const ascar_rule_options_t c = ASCAR_RULE_OPTIONS_DEFAULTS;\n"
        "const ascar_rival_settings_t d = ASCAR_RIVAL_DEFAULTS;\n"
        "return !(a.min_segment == b.min_segment && pilot_version()[0] == PILOT_VERSION[0] &&\n"
        "c.window < d.bbr_probe_gain && ascar_version()[0] == ASCAR_VERSION[0]); }\n"
    )
    made = _run(_compiler(compiler), f"-std={language}", *STRICT, "-c", source, f"-I{prefix}/include",
                "-o", tmp_path / "use.o")  # fmt: skip
    assert (made.returncode, made.stderr) == (0, "")


def _told(output: str) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in output.splitlines())


def test_measure_copy(built, tmp_path):
    done = _run(built / "copy", "-l", "2", "-m", "64", tmp_path)
    # On a busy machine two seconds may not be enough: then it says so, and tells what it has.
    assert done.returncode in {0, 3}, done.stderr
    told = _told(done.stdout)
    assert told["ended"] == "every goal is reached" if done.returncode == 0 else "limit" in told["ended"]
    assert float(told["speed_mib_per_s"]) > 0 or told["interval"].startswith("none: ")
    assert float(told["slowest_block_ms"]) > 0 or told["interval"].startswith("none: ")
    assert re.fullmatch(r"\S+ to \S+ at 95%|none: .+", told["interval"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([], 2, "usage"),
        (["-b", "0", "."], 2, "usage"),
        (["-b", "many", "."], 2, "usage"),
        (["-m", "0", "."], 2, "work amount is 1 to 0; allowed: 0 < least <= most"),
        (["-l", "-1", "."], 2, "session limit is -1 s; allowed: seconds, above 0"),
        (["-l", "5", "/nowhere"], 1, "in /nowhere: No such file or directory"),
    ],
)
def test_measure_copy_says_what_is_wrong(built, arguments, status, said):
    done = _run(built / "copy", *arguments)
    assert (done.returncode, said in done.stderr) == (status, True), done.stderr
    if status == 1:
        assert "the workload failed: it returned -1" in done.stderr


def test_measure_copy_interrupted_tells_what_it_has(built, tmp_path):
    command = [built / "copy", "-l", "100", "-s", "-b", "512", tmp_path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        while not list(tmp_path.iterdir()) and running.poll() is None:
            time.sleep(0.005)
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=120)
    assert running.returncode == 3
    assert _told(output)["ended"] == "it was asked to stop"
    assert list(tmp_path.iterdir()) == []


def test_measure_sort(built):
    done = _run(built / "sort", "3000", "1.5")
    assert done.returncode in {0, 3}, done.stderr
    lines = [line for line in done.stdout.splitlines() if " has no interval: " not in line]
    assert [line.split()[0] for line in lines] == ["std::sort", "std::stable_sort", "verdict"]
    for line in lines[:2]:
        mean, low, high = map(float, re.findall(r" (\S+) ms \((\S+) to (\S+)\),", line)[0])
        assert mean > 0
        assert math.isnan(low) or low <= mean <= high
    assert _run(built / "sort", "0").returncode == 2
    assert _run(built / "sort", "10", "nan").returncode == 2


def test_the_static_library_is_enough(prefix, tmp_path):
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is missing; set up with: make setup-dev")
    search = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    told = _run("pkg-config", "--static", "--libs-only-l", "ascar", env=search)
    others = [flag for flag in told.stdout.split() if flag != "-lascar"]
    assert others
    program = tmp_path / "copy"
    made = _run(_compiler("cc"), "-std=c99", *STRICT, "-o", program, COPY, f"-I{prefix}/include",
                prefix / "lib/libascar.a", *others)  # fmt: skip
    assert (made.returncode, made.stderr) == (0, "")
    assert "libascar" not in _run("ldd", program).stdout
    assert _run(program).returncode == 2


@pytest.mark.slow
def test_no_memory_is_lost_or_misused(built, tmp_path):
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is missing")
    checker = [
        "valgrind",
        "--quiet",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
        "--error-exitcode=99",
    ]
    done = _run(*checker, built / "copy", "-l", "1", "-m", "16", tmp_path)
    assert done.returncode in {0, 3}, done.stderr
    done = _run(*checker, built / "sort", "200", "1")
    assert done.returncode in {0, 3}, done.stderr


def test_installing_says_what_is_wrong(tmp_path):
    script = ROOT / "scripts/install-c"
    for arguments, said in [
        ((), "PREFIX"),
        (("usr",), "absolute"),
        (("/a b",), "white space"),
        (("/a|b",), "|"),
    ]:
        done = _run(script, *arguments)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    done = _run(script, "/usr", env={**os.environ, "CARGO_TARGET_DIR": str(tmp_path)})
    assert (done.returncode, "make c-library" in done.stderr) == (2, True)


def test_a_package_is_installed_below_its_destination(prefix, tmp_path):
    arguments = ("/usr", "/usr/lib64")
    done = _run(ROOT / "scripts/install-c", *arguments, env={**os.environ, "DESTDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.is_dir()}
    assert {
        "usr/include/pilot.h",
        "usr/include/congestion.h",
        "usr/lib64/libascar.a",
        "usr/lib64/pkgconfig/ascar.pc",
    } < files
    assert (tmp_path / "usr/lib64/libascar.so").resolve().name.startswith("libascar.so.")
    described = (tmp_path / "usr/lib64/pkgconfig/ascar.pc").read_text()
    assert "libdir=/usr/lib64\n" in described
    assert "@" not in described


def _documented() -> list[str]:
    """The programs of the how-tos: indented blocks that begin with an include."""
    pages = [(ROOT / "docs/howto" / name).read_text() for name in ("c-library.md", "congestion-c.md")]
    blocks = [one for page in pages for one in re.findall(r"((?:^(?: {4}.*)?\n)+)", page, re.MULTILINE)]
    programs = [textwrap.dedent(block) for block in blocks]
    return [program for program in programs if program.lstrip().startswith("#include")]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_programs_of_the_documentation_run(tmp_path, flags, number):
    programs = _documented()
    assert len(programs) == 3
    source = tmp_path / "program.c"
    source.write_text(programs[number])
    made = _run(_compiler("cc"), "-std=c99", *STRICT, "-o", tmp_path / "program", source, *flags)
    assert (made.returncode, made.stderr) == (0, "")
    done = _run(tmp_path / "program")
    assert (done.returncode, done.stderr) == (0, "")
    said = [
        r"\S+ divisions/s \(\S+ to \S+\), .+\n",
        r"5\.\S+ ms \(5\.\S+ to 5\.\S+\), stable from 6\d on\n",
        r"1000 replies, window \S+, \d+ us apart\n",
    ]
    assert re.fullmatch(said[number], done.stdout), done.stdout
