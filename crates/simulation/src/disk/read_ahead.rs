//! The disk's buffer: what it has read on after the requests of a stream.

/// A stretch of the disk that the buffer holds.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    start: u64,
    end: u64,
    used: u64,
    /// Bytes that were asked for of the stream.
    asked: u64,
}

/// Segments of the buffer, one a stream; the one used least recently makes room for a new stream. Streams beyond the
/// number of segments therefore lose what was read ahead for them before they come to ask for it.
#[derive(Clone, Debug)]
pub(super) struct ReadAhead {
    segments: Vec<Segment>,
    segment_bytes: u64,
    clock: u64,
}

impl ReadAhead {
    /// `segments` of which each holds `segment_bytes`.
    pub(super) fn new(segments: usize, segment_bytes: u64) -> Self {
        Self {
            segments: vec![Segment::default(); segments],
            segment_bytes,
            clock: 0,
        }
    }

    /// The segment that holds the byte at `position`, and the end of what it holds. Using it keeps it.
    pub(super) fn find(&mut self, position: u64) -> Option<(usize, u64)> {
        let holds = |segment: &Segment| segment.start <= position && position < segment.end;
        let found = self.segments.iter().position(holds)?;
        self.clock += 1;
        self.segments[found].used = self.clock;
        Some((found, self.segments[found].end))
    }

    /// The segment whose stream goes on at `position`.
    pub(super) fn ending_at(&mut self, position: u64) -> Option<usize> {
        let ends = |segment: &Segment| segment.end == position && segment.start < position;
        let found = self.segments.iter().position(ends)?;
        self.clock += 1;
        self.segments[found].used = self.clock;
        Some(found)
    }

    /// Whether all of `position..end` lies in one segment.
    pub(super) fn holds(&self, position: u64, end: u64) -> bool {
        self.segments
            .iter()
            .any(|segment| segment.start <= position && end <= segment.end)
    }

    /// A segment for a new stream that begins at `start`; none where the buffer has none.
    pub(super) fn begin(&mut self, start: u64) -> Option<usize> {
        self.clock += 1;
        let (index, segment) = self
            .segments
            .iter_mut()
            .enumerate()
            .min_by_key(|(_, segment)| segment.used)?;
        *segment = Segment {
            start,
            end: start,
            used: self.clock,
            asked: 0,
        };
        Some(index)
    }

    /// `bytes` of the segment's stream are asked for; how many were so far.
    pub(super) fn ask(&mut self, index: usize, bytes: u64) -> u64 {
        self.segments[index].asked += bytes;
        self.segments[index].asked
    }

    /// The segment now holds what was read up to `end`; its oldest bytes make room.
    pub(super) fn extend(&mut self, index: usize, end: u64) {
        let segment = &mut self.segments[index];
        segment.end = segment.end.max(end);
        segment.start = segment
            .start
            .max(segment.end.saturating_sub(self.segment_bytes));
    }

    /// What is written over is no longer held.
    pub(super) fn forget(&mut self, start: u64, end: u64) {
        for segment in &mut self.segments {
            if segment.start < end && start < segment.end {
                *segment = Segment::default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_stream_makes_room() {
        let mut buffer = ReadAhead::new(2, 100);
        for start in [1000, 2000] {
            let index = buffer.begin(start).unwrap();
            buffer.extend(index, start + 50);
        }
        assert!(buffer.find(1010).is_some());
        let index = buffer.begin(3000).unwrap();
        buffer.extend(index, 3010);
        assert!(buffer.holds(1000, 1050) && buffer.holds(3000, 3010));
        assert!(buffer.find(2010).is_none());
    }

    #[test]
    fn a_segment_keeps_its_newest_bytes_and_a_write_drops_them() {
        let mut buffer = ReadAhead::new(1, 100);
        let index = buffer.begin(0).unwrap();
        buffer.extend(index, 250);
        assert!(!buffer.holds(149, 160) && buffer.holds(150, 250));
        buffer.forget(249, 300);
        assert!(buffer.find(200).is_none());
    }

    #[test]
    fn a_disk_without_a_buffer_holds_nothing() {
        let mut buffer = ReadAhead::new(0, 100);
        assert!(buffer.begin(0).is_none() && buffer.find(0).is_none());
    }
}
