//! A disk with platters and an arm: how long an operation takes where the head is now.

use super::NS_PER_MS;
use super::geometry::{Geometry, Place};
use super::read_ahead::ReadAhead;
use super::seek::SeekCurve;
use super::unit::{Conduct, Service};
use super::work::{Direction, Span};
use crate::scenario::Mechanical;

/// Serial ATA's 6 Gb/s after its 8b/10b code, in bytes a nanosecond.
const BUS_BYTES_PER_NS: f64 = 0.6;

/// What a segment of the buffer holds besides what was read ahead.
const REQUEST_BYTES: u64 = 1 << 20;

/// The head and what it has read on by itself.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    geometry: Geometry,
    seek: SeekCurve,
    buffer: ReadAhead,
    read_ahead_bytes: u64,
    stream_bytes: u64,
    write_over_read: f64,
    write_settle_ns: f64,
    command_ns: f64,
    cache_bytes: u64,
    /// Where the head stands, and since when.
    head: u64,
    head_cylinder: u64,
    since_ns: f64,
    last: Direction,
    /// How many times as long as usual the platter takes: noise, a slow server.
    factor: f64,
    /// The segment that a read fills, and the address up to which the disk reads on.
    filling: Option<(usize, u64)>,
    /// Up to here it reads on even if another operation waits.
    kept: u64,
}

impl Disk {
    pub(super) fn new(spec: &Mechanical) -> Self {
        let geometry = Geometry::new(spec);
        let seek = SeekCurve::new(spec, geometry.cylinders());
        let read_ahead_bytes = u64::from(spec.read_ahead_kib) * 1024;
        let stream_bytes = u64::from(spec.stream_read_ahead_kib) * 1024;
        Self {
            seek,
            // A segment holds a request besides what is read after it.
            buffer: ReadAhead::new(
                spec.read_ahead_segments as usize,
                read_ahead_bytes.max(stream_bytes) + REQUEST_BYTES,
            ),
            read_ahead_bytes,
            stream_bytes,
            write_over_read: spec.read_mb_per_s / spec.write_mb_per_s,
            write_settle_ns: spec.write_settle_ms * NS_PER_MS,
            command_ns: spec.command_ms * NS_PER_MS,
            cache_bytes: u64::from(spec.write_cache_kib) * 1024,
            head: 0,
            head_cylinder: 0,
            since_ns: 0.0,
            last: Direction::Read,
            factor: 1.0,
            filling: None,
            kept: 0,
            geometry,
        }
    }

    pub(super) fn capacity_bytes(&self) -> u64 {
        self.geometry.capacity_bytes()
    }

    /// Whether `span` goes on where the head is at this very moment, so that nothing need be waited for.
    pub(super) fn continues(&self, now_ns: f64, span: Span) -> bool {
        span.position == self.head && span.direction == self.last && now_ns <= self.since_ns
    }

    /// The time before the first byte of `span`, which lies at `place`: what a drive minimises that chooses among
    /// commands.
    pub(super) fn access_ns(&self, now_ns: f64, span: Span, place: Place) -> f64 {
        let held =
            span.direction == Direction::Read && self.buffer.holds(span.position, span.end());
        if held || self.continues(now_ns, span) {
            return 0.0;
        }
        self.position_ns(now_ns + self.command_ns, span.direction, place)
    }

    /// Cylinders beyond which a write takes at least so long to reach.
    pub(super) fn distance_within(&self, time_ns: f64) -> u64 {
        self.seek.distance_within(time_ns)
    }

    /// Whether a write lies farther away. A read may be held in the buffer, wherever it lies.
    pub(super) fn is_beyond(&self, span: Span, place: Place, distance: u64) -> bool {
        span.direction == Direction::Write && place.cylinder.abs_diff(self.head_cylinder) > distance
    }

    /// Where a byte lies.
    pub(super) fn place(&self, position: u64) -> Place {
        self.geometry.place(position)
    }

    /// Bytes of writes that may wait in the buffer.
    pub(super) fn cache_bytes(&self) -> u64 {
        self.cache_bytes
    }

    /// The time in which `bytes` pass between host and buffer, the command included.
    pub(super) fn transfer_ns(&self, bytes: u64, factor: f64) -> f64 {
        (factor * (self.command_ns + bytes as f64 / BUS_BYTES_PER_NS)).ceil()
    }

    /// Serve `span` from `now_ns` on.
    pub(super) fn serve(&mut self, now_ns: f64, span: Span, conduct: Conduct) -> Service {
        self.factor = conduct.factor;
        self.read_on(now_ns);
        match span.direction {
            Direction::Read => self.read(now_ns, span, conduct.streamed),
            Direction::Write => self.write(now_ns, span, conduct.streamed),
        }
    }

    /// What the disk has read since the last operation, while it had nothing else to do.
    fn read_on(&mut self, now_ns: f64) {
        let Some((segment, limit)) = self.filling else {
            return;
        };
        if now_ns <= self.since_ns || self.head >= limit {
            return;
        }
        let read = self
            .geometry
            .streamed_bytes(self.head, now_ns - self.since_ns)
            .min(limit - self.head);
        self.since_ns = if self.head + read == limit {
            self.since_ns + self.geometry.streaming_ns(self.head, read)
        } else {
            now_ns
        };
        self.head += read;
        self.head_cylinder = self.place(self.head).cylinder;
        self.buffer.extend(segment, self.head);
    }

    fn read(&mut self, now_ns: f64, span: Span, streamed: bool) -> Service {
        if let Some((segment, held)) = self.buffer.find(span.position) {
            if span.end() <= held {
                self.buffer.ask(segment, span.bytes);
                self.reach_further(now_ns, segment, span.end());
                return Service {
                    time_ns: self.transfer_ns(span.bytes, self.factor),
                    positioning_ns: 0.0,
                };
            }
            if held == self.head {
                // The rest comes from the platter, from where the head stands.
                self.buffer.ask(segment, held - span.position);
                let rest = Span {
                    position: held,
                    bytes: span.end() - held,
                    ..span
                };
                return self.read_platter(now_ns, rest, (Some(segment), streamed));
            }
        }
        self.read_platter(now_ns, span, (None, streamed))
    }

    /// After a hit the disk reads on behind the stream, as far as it may be ahead of it.
    fn reach_further(&mut self, now_ns: f64, segment: usize, end: u64) {
        let Some((filling, limit)) = self.filling else {
            return;
        };
        let further = end + self.read_ahead_bytes;
        if filling != segment || further <= limit {
            return;
        }
        if self.head >= limit {
            // It had stopped: the platter must come round again.
            self.since_ns = now_ns + self.turn_ns(now_ns, self.place(self.head).angle);
        }
        self.filling = Some((segment, further.min(self.geometry.capacity_bytes())));
    }

    fn read_platter(
        &mut self,
        now_ns: f64,
        span: Span,
        (segment, streamed): (Option<usize>, bool),
    ) -> Service {
        let reading_on = self.last == Direction::Read && span.position == self.head && {
            let under_way = self.filling.is_some_and(|(_, limit)| self.head < limit);
            under_way || (streamed && now_ns <= self.since_ns)
        };
        let segment = match self.filling {
            Some((filling, _)) if reading_on => segment.or(Some(filling)),
            _ => segment.or_else(|| self.buffer.ending_at(span.position)),
        };
        let streams = segment.is_some();
        let (begin_ns, positioning_ns) = if reading_on {
            (self.since_ns.max(now_ns), 0.0)
        } else {
            self.go(now_ns, span)
        };
        let segment = segment.or_else(|| self.buffer.begin(span.position));
        let time_ns = begin_ns + self.geometry.streaming_ns(span.position, span.bytes) - now_ns;
        let service = self.finish(
            now_ns,
            span,
            Service {
                time_ns,
                positioning_ns,
            },
        );
        let reach = |bytes: u64| (self.head + bytes).min(self.geometry.capacity_bytes());
        self.kept = self.head;
        self.filling = segment.map(|segment| {
            self.buffer.extend(segment, self.head);
            let asked = self.buffer.ask(segment, span.bytes);
            if streams {
                // The longer a stream has gone on, the more of it the disk expects.
                self.kept = reach(asked.min(self.stream_bytes));
            }
            (segment, reach(self.read_ahead_bytes).max(self.kept))
        });
        service
    }

    /// Leaves for `span`: when the head is there, and what of that was positioning.
    fn go(&mut self, now_ns: f64, span: Span) -> (f64, f64) {
        let mut leave_ns = now_ns;
        if let Some((segment, _)) = self.filling
            && self.head < self.kept
        {
            leave_ns = self.since_ns.max(now_ns)
                + self.geometry.streaming_ns(self.head, self.kept - self.head);
            self.head = self.kept;
            self.head_cylinder = self.place(self.head).cylinder;
            self.buffer.extend(segment, self.head);
        }
        let ready_ns = leave_ns + self.command_ns;
        let positioning_ns = self.position_ns(ready_ns, span.direction, self.place(span.position));
        (ready_ns + positioning_ns, positioning_ns)
    }

    fn write(&mut self, now_ns: f64, span: Span, streamed: bool) -> Service {
        let (begin_ns, positioning_ns) = if streamed && self.continues(now_ns, span) {
            (now_ns, 0.0)
        } else {
            self.go(now_ns, span)
        };
        self.filling = None;
        self.buffer.forget(span.position, span.end());
        let transfer_ns =
            self.geometry.streaming_ns(span.position, span.bytes) * self.write_over_read;
        self.finish(
            now_ns,
            span,
            Service {
                time_ns: begin_ns + transfer_ns - now_ns,
                positioning_ns,
            },
        )
    }

    /// The head is behind `span`, at a whole nanosecond, so that what follows at that instant goes on from there.
    fn finish(&mut self, now_ns: f64, span: Span, usual: Service) -> Service {
        let time_ns = (usual.time_ns * self.factor).ceil();
        self.head = span.end();
        self.head_cylinder = self.place(self.head).cylinder;
        self.since_ns = now_ns + time_ns;
        self.last = span.direction;
        Service {
            time_ns,
            positioning_ns: usual.positioning_ns * self.factor,
        }
    }

    /// Seek, settle, wait for the platter.
    fn position_ns(&self, ready_ns: f64, direction: Direction, place: Place) -> f64 {
        let settle_ns = match direction {
            Direction::Read => 0.0,
            Direction::Write => self.write_settle_ns,
        };
        let distance = place.cylinder.abs_diff(self.head_cylinder);
        let there_ns = self.seek.time_ns(distance) + settle_ns;
        there_ns + self.turn_ns(ready_ns + there_ns, place.angle)
    }

    /// The wait until `angle` comes below the head.
    fn turn_ns(&self, now_ns: f64, angle: f64) -> f64 {
        let wait = angle - self.geometry.angle_at(now_ns);
        let wait = if wait < 0.0 { wait + 1.0 } else { wait };
        wait * self.geometry.revolution_ns()
    }
}
