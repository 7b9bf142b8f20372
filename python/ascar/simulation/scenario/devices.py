"""What stores a server's data."""

from __future__ import annotations

import msgspec


class Mechanical(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="mechanical",
):
    """A disk with platters and an arm; the defaults are the Travelstar Z7K500 of Li's thesis.

    A seek over a share d of the tracks takes seek_track_ms + (seek_full_ms - seek_track_ms) *
    d**seek_exponent; none is needed inside a track.

    Attributes:
        capacity_gb: capacity.
        rpm: revolutions a minute.
        read_mb_per_s: sequential reading at the outermost tracks.
        write_mb_per_s: sequential writing at the outermost tracks.
        inner_speed: at the innermost tracks as a share of that at the outermost; zones lie between them
            linearly.
        zones: of equal speed.
        seek_track_ms: seek to the next track.
        seek_full_ms: seek over all tracks.
        seek_exponent: of the seek curve; with 0.425 the mean over all pairs of tracks is 12 ms.
        write_settle_ms: longer settling before a write than before a read.
        command_ms: time of the controller and the bus for a command.
        read_ahead_kib: data that the disk reads on after a read, into a segment of its buffer, while nothing
            else waits.
        read_ahead_segments: of the buffer; streams beyond so many lose their read-ahead.
        stream_read_ahead_kib: data that it reads on after a read that went on with a stream held in the
            buffer, even if something else waits.
        write_cache_kib: writes that the disk's buffer takes and answers before they lie on the platter; 0:
            write-through.
    """

    capacity_gb: float = 500.0
    rpm: float = 7200.0
    read_mb_per_s: float = 113.0
    write_mb_per_s: float = 106.0
    inner_speed: float = 0.5
    zones: int = 24
    seek_track_ms: float = 1.0
    seek_full_ms: float = 20.0
    seek_exponent: float = 0.425
    write_settle_ms: float = 0.3
    command_ms: float = 0.1
    read_ahead_kib: int = 2048
    read_ahead_segments: int = 6
    stream_read_ahead_kib: int = 4096
    write_cache_kib: int = 0


class Flash(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind", tag="flash"
):
    """A flash drive: pages on parallel channels; writing uses up free blocks, and collecting them takes time.

    Attributes:
        capacity_gb: capacity.
        channels: that work in parallel; a request is spread over them by `channel_kib`.
        channel_kib: unit of interleaving over channels.
        channel_read_mb_per_s: reading of one channel.
        channel_write_mb_per_s: programming of one channel.
        read_us: fixed time of a read on a channel.
        write_us: fixed time of a write on a channel.
        bus_mb_per_s: speed of the bus to the host.
        spare_percent: spare blocks beyond the capacity, as a percentage of it.
        filled_percent: share of the capacity that holds live data at the start: what garbage collection
            moves.
        erase_block_mib: erase block of one channel.
        erase_ms: time to erase a block.
    """

    capacity_gb: float = 480.0
    channels: int = 8
    channel_kib: int = 128
    channel_read_mb_per_s: float = 70.0
    channel_write_mb_per_s: float = 55.0
    read_us: float = 80.0
    write_us: float = 60.0
    bus_mb_per_s: float = 530.0
    spare_percent: float = 7.0
    filled_percent: float = 60.0
    erase_block_mib: float = 4.0
    erase_ms: float = 3.0


class Memory(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="memory",
):
    """A server whose data lies in memory.

    Attributes:
        capacity_gb: capacity.
        copy_mb_per_s: copying, shared by all requests in service.
        request_us: fixed time of a request.
    """

    capacity_gb: float = 64.0
    copy_mb_per_s: float = 4_000.0
    request_us: float = 10.0


Device = Mechanical | Flash | Memory
