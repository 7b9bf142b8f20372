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

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.catalogues.nfs import NfsSetting
    from ascar.space import Value

SOURCE, PLACE, EXPORTED = "SERVER:/EXPORT", "/MOUNT", "CLIENTS:/EXPORT"
_DEVICE = "DEVICE"
_READ_AHEAD = "bdi.read_ahead_kb"


def forms_of(
    configuration: Mapping[str, Value],
    chosen: Collection[str],
    *,
    source: str = SOURCE,
    place: str = PLACE,
    given: Collection[str] = (),
) -> Mapping[str, list[str]]:
    """The chosen settings, as lines by form; the other ones stay as they are.

    nfs.conf has the server's threads and the clients' read-ahead, which nfsrahead(5) reads for udev; fstab
    the mount, sysctl the slots of connections, udev the disk. What has no file of its own is a comment.

    Args:
        configuration: values by the parameter's name.
        chosen: the parameters to speak of.
        source: the server and its export.
        place: the mount point.
        given: options that the mount has besides.
    """
    by_where: dict[str, list[tuple[NfsSetting, Value]]] = {}
    for one in nfs().values():
        if one.parameter_name in chosen and one.parameter_name in configuration:
            by_where.setdefault(one.where, []).append((one, configuration[one.parameter_name]))
    if not by_where:
        return {}
    whole = [*given, *(text for one, value in by_where.get("mount", ()) if (text := one.option(value)))]
    disk = by_where.get("disk", ())
    queue = {one.file(_DEVICE).partition(f"/{_DEVICE}/")[2]: one.text(value) for one, value in disk}
    return {
        "shell": [*_server(by_where), *_client(by_where, whole, source, place)],
        "nfs.conf": _nfs_conf(by_where),
        "fstab": [fstab_line(source, place, "nfs", mount_options(whole))] if "mount" in by_where else [],
        "sysctl": [
            sysctl_line(one.name, value)
            for one, value in by_where.get("client", ())
            if one.name.startswith("sunrpc.")
        ],
        "udev": udev_rule(_DEVICE, queue),
    }


def _server(by_where: Mapping[str, Collection[tuple[NfsSetting, Value]]]) -> list[str]:
    lines: list[str] = []
    for one, value in by_where.get("server", ()):
        if one.context == "restart":
            lines += [
                comment("on the server, while no thread of it runs (rpc.nfsd 0):"),
                echo_line(value, one.file(None)),
            ]
        else:
            lines.append(shell_line(["rpc.nfsd", value]))
    if exports := [one.option(value) for one, value in by_where.get("export", ())]:
        lines += [
            comment(f"among the options of the line in /etc/exports: {','.join(exports)}"),
            shell_line(["exportfs", "-r"]),
        ]
    lines += [echo_line(one.text(value), one.file(_DEVICE)) for one, value in by_where.get("disk", ())]
    if "boot" in by_where:
        said = " ".join(text for one, value in by_where["boot"] if (text := one.option(value)))
        lines.append(comment(f"on the kernels' command lines, from the next boot on: {said or 'no more'}"))
    return lines


def _client(
    by_where: Mapping[str, Collection[tuple[NfsSetting, Value]]],
    options: Collection[str],
    source: str,
    place: str,
) -> list[str]:
    lines: list[str] = []
    late: list[str] = []
    is_mounted = "mount" in by_where
    for one, value in by_where.get("client", ()):
        if one.name == _READ_AHEAD:
            number = f'"/sys/class/bdi/$(mountpoint -d {shell_word(place)})/read_ahead_kb"'
            late.append(f"{shell_line(['echo', value])} > {number}")
            continue
        is_mounted = True
        if one.name.startswith("nfs."):
            lines.append(echo_line(value, one.file(None)))
            setting = one.name.removeprefix("nfs.")
            lines.append(comment(f"to stay: options nfs {setting}={value} in /etc/modprobe.d/90-ascar.conf"))
        else:
            lines.append(shell_line(["sysctl", "-w", f"{one.name}={value}"]))
    if is_mounted:
        lines.append(shell_line(["umount", place]))
        words = ["-o", mount_options(options)] if options else []
        lines.append(shell_line(["mount", "-t", "nfs", *words, source, place]))
    return lines + late


def _nfs_conf(by_where: Mapping[str, Collection[tuple[NfsSetting, Value]]]) -> list[str]:
    lines: list[str] = []
    for one, value in by_where.get("server", ()):
        if one.name == "nfsd.threads":
            lines += ["[nfsd]", f"threads={int(value)}"]
    for one, value in by_where.get("client", ()):
        if one.name == _READ_AHEAD:
            lines += ["[nfsrahead]", f"nfs={int(value)}", f"nfs4={int(value)}"]
    return lines
