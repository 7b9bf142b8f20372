"""A configuration of NFS in administrators' files: nfs.conf, fstab, sysctl.d, udev; and commands for now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.nfs import nfs
from ascar.quoting import (
    comment,
    echo_line,
    fstab_line,
    mount_options,
    shell_line,
    shell_word,
    sysctl_line,
    udev_rule,
)
from ascar.systems.nfs.settings import options_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.catalogues.nfs import NfsSetting
    from ascar.space import Value

SOURCE, PLACE = "SERVER:/EXPORT", "/MOUNT"
_DEVICE = "DEVICE"
_READ_AHEAD = "bdi.read_ahead_kb"
_CONF = {
    "nfsd.threads": ("[nfsd]", "threads={:d}"),
    _READ_AHEAD: ("[nfsrahead]", "nfs={:d}", "nfs4={:d}"),
}
"""The lines of nfs.conf; nfsrahead(5) reads those of the read-ahead for udev."""


def forms_of(
    configuration: Mapping[str, Value],
    chosen: Collection[str],
    *,
    source: str = SOURCE,
    place: str = PLACE,
    given: Collection[str] = (),
) -> Mapping[str, list[str]]:
    """The chosen settings, as lines by form; the other ones stay as they are.

    nfs.conf has the server's threads and the clients' read-ahead; fstab the mount, sysctl the slots of
    connections, udev the disk. What has no file of its own is a comment.

    Args:
        configuration: values by the parameter's name.
        chosen: the parameters to speak of.
        source: the server and its export.
        place: the mount point.
        given: options that the mount has besides.
    """
    names = {one.name: one.parameter_name for one in nfs().values() if one.parameter_name in chosen}
    values = {name: configuration[key] for name, key in names.items() if key in configuration}
    if not values:
        return {}
    options = mount_options([*given, *options_of(values, "mount")])
    disk = _of(values, "disk")
    queue = {one.file(_DEVICE).partition(f"/{_DEVICE}/")[2]: one.text(value) for one, value in disk}
    return {
        "shell": [*_server(values), *_client(values, options, source, place)],
        "nfs.conf": [
            line.format(int(values[name])) for name in _CONF if name in values for line in _CONF[name]
        ],
        "fstab": [fstab_line(source, place, "nfs", options)] if _of(values, "mount") else [],
        "sysctl": [sysctl_line(name, told) for name, told in values.items() if name.startswith("sunrpc.")],
        "udev": udev_rule(_DEVICE, queue),
    }


def _of(values: Mapping[str, Value], where: str) -> list[tuple[NfsSetting, Value]]:
    return [(nfs()[name], value) for name, value in values.items() if nfs()[name].where == where]


def _server(values: Mapping[str, Value]) -> list[str]:
    lines: list[str] = []
    for one, value in _of(values, "server"):
        if one.context == "restart":
            lines += [
                comment("on the server, while no thread of it runs (rpc.nfsd 0):"),
                echo_line(value, one.file(None)),
            ]
        else:
            lines.append(shell_line(["rpc.nfsd", value]))
    if exports := options_of(values, "export"):
        lines += [
            comment(f"among the options of the line in /etc/exports: {','.join(exports)}"),
            shell_line(["exportfs", "-r"]),
        ]
    lines += [echo_line(one.text(value), one.file(_DEVICE)) for one, value in _of(values, "disk")]
    if _of(values, "boot"):
        said = " ".join(options_of(values, "boot")) or "no more"
        lines.append(comment(f"on the kernels' command lines, from the next boot on: {said}"))
    return lines


def _client(values: Mapping[str, Value], options: str, source: str, place: str) -> list[str]:
    windows = [(one, value) for one, value in _of(values, "client") if one.name != _READ_AHEAD]
    lines: list[str] = []
    for one, value in windows:
        if one.name.startswith("nfs."):
            lines.append(echo_line(value, one.file(None)))
            setting = one.name.removeprefix("nfs.")
            lines.append(comment(f"to stay: options nfs {setting}={value} in /etc/modprobe.d/90-ascar.conf"))
        else:
            lines.append(shell_line(["sysctl", "-w", f"{one.name}={value}"]))
    if windows or _of(values, "mount"):
        lines.append(shell_line(["umount", place]))
        words = ["-o", options] if options else []
        lines.append(shell_line(["mount", "-t", "nfs", *words, source, place]))
    if _READ_AHEAD in values:
        number = f'"/sys/class/bdi/$(mountpoint -d {shell_word(place)})/read_ahead_kb"'
        lines.append(f"{shell_line(['echo', values[_READ_AHEAD]])} > {number}")
    return lines
