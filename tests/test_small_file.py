import os
import tracemalloc
from pathlib import Path

import pytest

from ascar.errors import InputError, StudyError
from ascar.small_file import SmallFile
from ascar.study import study_table


def small(path, bytes_max=100):
    return SmallFile(path, f"study file {str(path)!r}", bytes_max, "give a TOML file", StudyError)


def test_a_small_file_is_read_as_a_whole(tmp_path):
    path = tmp_path / "a.toml"
    path.write_bytes(b"name = 'caf\xc3\xa9'\n")
    assert small(path).content() == path.read_bytes()
    assert small(path).text() == "name = 'café'\n"
    assert small(path).toml() == {"name": "café"}
    assert small(path, bytes_max=path.stat().st_size).toml() == {"name": "café"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x" * 101, "larger than 100 bytes"),
        (b"name = '\xff'", "is not UTF-8 text (invalid start byte at byte 8)"),
        ("name = 'a'".encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
        (b"name = ", "is not TOML: Invalid value (at end of document)"),
        (b"a = " + b"[" * 90, "is not TOML: "),
        (b"name = 'a'\0", "is not TOML: "),
    ],
)
def test_what_is_no_small_toml_file_is_refused_in_one_line(tmp_path, content, reason):
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(StudyError) as caught:
        small(path).toml()
    assert caught.value.message.startswith(f"study file {str(path)!r}: {reason}")
    assert caught.value.message.endswith("; give a TOML file")
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("name", "reason"),
    [("absent", "No such file or directory"), (".", "Is a directory"), ("a\0b", "embedded null byte")],
)
def test_what_cannot_be_read_is_named(tmp_path, name, reason):
    with pytest.raises(StudyError, match=f"{reason}; give a TOML file"):
        small(tmp_path / name).text()


def test_a_device_without_end_is_not_read_to_its_end():
    with pytest.raises(InputError, match="/dev/zero': larger than 100 bytes"):
        small(Path("/dev/zero")).content()


def test_a_limit_is_not_reserved_before_there_is_so_much_to_read(tmp_path):
    path = tmp_path / "a.toml"
    path.write_bytes(b"a = 1\n" * 100_000)  # longer than one piece
    tracemalloc.start()
    try:
        assert small(path, bytes_max=10**9).content() == path.read_bytes()
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", ["a = ", "a = " + "[" * 20_000, "a = " + "1" * 5_000])
def test_text_that_is_no_toml_is_refused_with_a_short_reason(text):
    with pytest.raises(StudyError, match="^study file is not TOML: .{5,300}$"):
        study_table(text)


def test_a_byte_order_mark_is_left_out(tmp_path):
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbfname = 'a'")
    assert SmallFile(path, "the file", 100).toml() == {"name": "a"}


def test_a_pipe_that_this_process_was_given_is_read():
    read, write = os.pipe()
    os.write(write, b"a = 1\n")
    os.close(write)
    try:
        assert SmallFile(Path(f"/dev/fd/{read}"), "the file", 100).toml() == {"a": 1}
    finally:
        os.close(read)
