"""Values as words of other programs' files and commands, one function a format.

What is exported is pasted into a shell of root's or put under /etc, and a history may come from anybody. Each
function returns text that its reader takes for exactly that value, and refuses what its format cannot say.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
_REDIS_PLAIN = re.compile(r"[A-Za-z0-9_.:/-]+")
_REDIS_SIGNS = {ord('"'): '\\"', ord("\\"): "\\\\"}
_MY_CNF_VALUE = re.compile(r"-?[A-Za-z0-9_]+(?:[.-][A-Za-z0-9_]+)*")
_CEPH_VALUE = re.compile(r"-?[A-Za-z0-9_./]+")
_ROCKSDB_VALUE = re.compile(r"-?[A-Za-z0-9_.:]+")
_SQL_WORD = re.compile(r"-?[A-Za-z0-9_]+")
_ALTERED = re.compile(r"[A-Za-z0-9_.+-]+")
_YAML_SIGNS = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}
_TEMPLATE = re.compile(r"\{[{%#]")


def shell_word(value: object) -> str:
    """A word of sh(1).

    Raises:
        InputError: it has a character that a terminal would act on.
    """
    text = str(value)
    return shlex.quote(
        _without(text, "a shell command", lambda sign: not (sign.isprintable() or sign in "\n\t"))
    )


def shell_line(words: Iterable[object]) -> str:
    """A command of sh(1), word by word.

    Raises:
        InputError: as `shell_word`.
    """
    return " ".join(shell_word(word) for word in words)


def echo_line(value: object, path: str) -> str:
    """A command of sh(1) that writes a value to a file of the kernel.

    Raises:
        InputError: as `shell_word`.
    """
    return f"{shell_line(['echo', value])} > {shell_word(path)}"


def comment(text: str) -> str:
    """A line that begins with "#" in every format.

    Raises:
        InputError: it is more than a line.
    """
    return f"# {_printable(text, 'a comment')}"


def fstab_field(value: object) -> str:
    """A field of fstab(5).

    Raises:
        InputError: it is empty, or has a character that is not printed.
    """
    text = str(value)
    if not text:
        raise InputError("'': cannot be written to fstab; leave it out")
    _without(text, "fstab", lambda sign: not (sign.isprintable() or sign in "\t\n"))
    return "".join(f"\\{ord(sign):03o}" if sign in " \t\n\\#" else sign for sign in text)


def mount_option(value: object) -> str:
    """One option of mount(8), which a comma would make two.

    Raises:
        InputError: it has a comma, or a character that is not printed.
    """
    text = _printable(str(value), "a mount option")
    return _without(text, "a mount option", lambda sign: sign in ', "\\')


def mount_options(options: Iterable[object]) -> str:
    """Options of mount(8), as one word.

    Raises:
        InputError: as `mount_option`.
    """
    return ",".join(map(mount_option, options))


def fstab_line(source: str, place: str, kind: str, options: str, check_pass: int = 0) -> str:
    """A line of fstab(5), which dump(8) passes over.

    Args:
        source: what is mounted.
        place: where it is mounted.
        kind: the type of the file system.
        options: its options, as one word; empty: the defaults.
        check_pass: when fsck looks at it at boot; 0: never.

    Raises:
        InputError: as `fstab_field`.
    """
    return " ".join(map(fstab_field, (source, place, kind, options or "defaults", 0, check_pass)))


def sysctl_line(key: str, value: object) -> str:
    """A line of sysctl.d(5).

    Raises:
        InputError: the key is none, or the value is more than a line.
    """
    text = _printable(str(value), "sysctl.d")
    return f"{_key(key, 'sysctl.d')} = {_trimmed(text, 'sysctl.d')}"


def udev_assignment(attribute: str, value: object) -> str:
    """`ATTR{attribute}="value"` of udev(7), in which neither quotes nor substitutions are left.

    Raises:
        InputError: the attribute is none, or the value has a quote or a backslash.
    """
    text = _printable(str(value), "a udev rule")
    text = _without(text, "a udev rule", lambda sign: sign in '"\\')
    text = text.replace("$", "$$").replace("%", "%%")
    return f'ATTR{{{_key(attribute, "a udev rule")}}}="{text}"'


def udev_rule(device: str, attributes: Mapping[str, object]) -> list[str]:
    """The rule of udev(7) that sets attributes of a block device, in their order; none where there are none.

    Raises:
        InputError: as `udev_assignment`.
    """
    told = [udev_assignment(name, value) for name, value in attributes.items()]
    whole = ['ACTION=="add|change"', 'SUBSYSTEM=="block"', f'KERNEL=="{device}"', *told]
    return [", ".join(whole)] if told else []


def tuned_line(key: str, value: object) -> str:
    """A line of a TuneD profile, whose `${...}` would run a function.

    Raises:
        InputError: the key is none, or the value is more than a plain word or several.
    """
    text = _printable(str(value), "a TuneD profile")
    text = _without(text, "a TuneD profile", lambda sign: sign in "$\\#;%=[]\"'")
    return f"{_key(key.removeprefix('/'), 'a TuneD profile', key)}={_trimmed(text, 'a TuneD profile')}"


def sql_word(value: object) -> str:
    """A number or a name of SQL that needs no quotes.

    Raises:
        InputError: it would need them.
    """
    if not _SQL_WORD.fullmatch(str(value)):
        raise _refused(str(value), "a pragma", "letters, digits and '_'")
    return str(value)


def my_cnf_value(value: object) -> str:
    """A value of my.cnf, and a number or a name of SQL, that needs no quotes: 4096, 0.5, O_DIRECT.

    Raises:
        InputError: it would need them.
    """
    if not _MY_CNF_VALUE.fullmatch(str(value)):
        raise _refused(str(value), "my.cnf", "letters, digits, '_', and '.' or '-' between them")
    return str(value)


def my_cnf_text(text: str) -> str:
    """A text of my.cnf between quotes, such as the path of a file.

    Raises:
        InputError: it has a line's end or another sign that is not printed.
    """
    if not text.isprintable():
        raise _refused(text, "my.cnf", "characters that are printed")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def rocksdb_value(value: object) -> str:
    """A value of RocksDB's OPTIONS file that needs no escapes: 4096, kZSTD, bloomfilter:10:false.

    Raises:
        InputError: it would need them.
    """
    if not _ROCKSDB_VALUE.fullmatch(str(value)):
        raise _refused(str(value), "an OPTIONS file", "letters, digits, '_', '.' and ':'")
    return str(value)


def ceph_value(value: object) -> str:
    """A value of Ceph's configuration that needs no escapes: 4096, 0.450000, wpq, 1/5.

    Raises:
        InputError: it would need them.
    """
    if not _CEPH_VALUE.fullmatch(str(value)):
        raise _refused(str(value), "Ceph's configuration", "letters, digits, '_', '.' and '/'")
    return str(value)


def sql_literal(value: object) -> str:
    """A value between quotes, as postgresql.conf and SQL read it alike.

    Raises:
        InputError: it has a backslash, which they read differently, or a character that is not printed.
    """
    text = _without(_printable(str(value), "SQL"), "SQL", lambda sign: sign == "\\")
    return "'" + text.replace("'", "''") + "'"


def redis_word(value: object) -> str:
    """A value as redis.conf and redis-cli read it: plain, or between double quotes.

    Raises:
        InputError: it has a NUL, at which both end, or half of a pair of surrogates that stands for no byte.
    """
    text = str(value)
    if _REDIS_PLAIN.fullmatch(text):
        return text
    _without(
        text, "redis.conf", lambda sign: sign == "\0" or (_is_half(sign) and not "\udc80" <= sign <= "\udcff")
    )
    data = text.encode("utf-8", "surrogateescape")
    return '"' + "".join(_REDIS_SIGNS.get(byte) or _redis_sign(byte) for byte in data) + '"'


def yaml_word(value: object) -> str:
    """A string of YAML between double quotes, which no reader takes for a number, a switch or a tag.

    Raises:
        InputError: it has half of a pair of surrogates, which is no character.
    """
    text = _without(str(value), "YAML", _is_half)
    return '"' + "".join(_YAML_SIGNS.get(sign) or _yaml_sign(sign) for sign in text) + '"'


def ansible_word(value: object) -> str:
    """A string of YAML in a playbook of Ansible, which would fill in templates.

    Raises:
        InputError: it begins a template, or as `yaml_word`.
    """
    text = str(value)
    if found := _TEMPLATE.search(text):
        raise _refused(text, "a playbook", f"no {found[0]!r}")
    return yaml_word(text)


def postgresql_set_word(value: object) -> str:
    """A value as Ansible's module postgresql_set takes it, which puts it between quotes of SQL unchanged.

    Raises:
        InputError: it would not stay between them, be divided at a comma, or stand for the default.
    """
    text = str(value)
    if not _ALTERED.fullmatch(text) or text.lower() == "default":
        raise _refused(text, "a playbook for postgresql_set", "letters, digits, '_', '.', '+' and '-'")
    return text


def _is_half(sign: str) -> bool:
    """Whether it is half of a pair of surrogates, which is no character."""
    return "\ud800" <= sign <= "\udfff"


def _redis_sign(byte: int) -> str:
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}"


def _yaml_sign(sign: str) -> str:
    if sign.isprintable():
        return sign
    return f"\\x{ord(sign):02x}" if ord(sign) < 0x100 else f"\\U{ord(sign):08x}"


def _without(text: str, where: str, is_bad: Callable[[str], bool]) -> str:
    for sign in text:
        if is_bad(sign):
            raise _refused(text, where, f"no {sign!r}")
    return text


def _printable(text: str, where: str) -> str:
    return _without(text, where, lambda sign: not sign.isprintable())


def _trimmed(text: str, where: str) -> str:
    if not text or text != text.strip():
        raise _refused(text, where, "no space at its ends")
    return text


def _key(key: str, where: str, whole: str | None = None) -> str:
    if not _KEY.fullmatch(key):
        raise _refused(key, where, "letters, digits, '_', '.', '/' and '-'")
    return whole or key


def _refused(text: str, where: str, allowed: str) -> InputError:
    return InputError(f"{text[:80]!a}: cannot be written to {where}, which allows {allowed}; set it by hand")
