//! Writes that lie in the disk's cache: acknowledged, and not on the medium.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::store::{Change, Data, Turn};

/// One write, and which parts of it still have to reach the medium.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// The write.
    pub(crate) change: Arc<Change>,
    /// The parts; what a later write has put on the medium before is none of them.
    pub(crate) parts: Vec<Range<u64>>,
}

/// All such writes, by their numbers, which tell what came after what.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    writes: BTreeMap<u64, Held>,
    /// What is on the medium that came after a write that is still under way.
    ahead: BTreeMap<u64, Range<u64>>,
}

impl Cache {
    /// Takes a write in.
    pub(crate) fn hold(&mut self, number: u64, change: Arc<Change>) {
        let parts = self.missing(number, &change.range());
        self.writes.insert(number, Held { change, parts });
    }

    /// A write, with what of it must be written.
    pub(crate) fn get(&self, number: u64) -> Option<Held> {
        self.writes.get(&number).cloned()
    }

    /// The numbers of all writes, in order.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.writes.keys().copied().collect()
    }

    /// The parts of a range that no later write than this one has put on the medium.
    pub(crate) fn missing(&self, number: u64, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut parts = vec![range.clone()];
        for later in self.ahead.range(number + 1..).map(|(_, range)| range) {
            cut_out(&mut parts, later);
        }
        parts
    }

    /// The write of this turn and range is on the medium: older ones must not be written over it any more.
    pub(crate) fn landed(&mut self, turn: Turn, range: &Range<u64>) {
        self.writes.remove(&turn.number);
        for (_, held) in self.writes.range_mut(..turn.number) {
            cut_out(&mut held.parts, range);
        }
        self.ahead = self.ahead.split_off(&turn.oldest);
        if turn.oldest < turn.number {
            self.ahead.insert(turn.number, range.clone());
        }
    }

    /// All is lost.
    pub(crate) fn clear(&mut self) {
        self.writes.clear();
        self.ahead.clear();
    }

    /// The writes that touch a range, oldest first.
    pub(crate) fn touching(&self, range: &Range<u64>) -> Vec<Held> {
        let touches = |held: &&Held| {
            let own = held.change.range();
            own.start < range.end && range.start < own.end
        };
        self.writes.values().filter(touches).cloned().collect()
    }
}

impl Held {
    /// Lays what is held over what was read of the medium from `position` on.
    pub(crate) fn lay_over(&self, position: u64, buffer: &mut [u8]) {
        let end = position + buffer.len() as u64;
        for part in &self.parts {
            let (from, to) = (part.start.max(position), part.end.min(end));
            if from >= to {
                continue;
            }
            let target = &mut buffer[(from - position) as usize..(to - position) as usize];
            match &self.change.data {
                Data::Zeroes { .. } => target.fill(0),
                Data::Bytes { bytes, .. } => {
                    let begin = (from - self.change.position) as usize;
                    target.copy_from_slice(&bytes[begin..begin + target.len()]);
                }
            }
        }
    }
}

fn cut_out(parts: &mut Vec<Range<u64>>, range: &Range<u64>) {
    let is_touched = |part: &Range<u64>| part.start < range.end && range.start < part.end;
    if parts.iter().any(is_touched) {
        *parts = without(parts, range);
    }
}

/// The parts that lie outside `range`.
fn without(parts: &[Range<u64>], range: &Range<u64>) -> Vec<Range<u64>> {
    let outside = |part: &Range<u64>| {
        [
            part.start..part.end.min(range.start).max(part.start),
            part.start.max(range.end).min(part.end)..part.end,
        ]
    };
    let rest = parts.iter().flat_map(outside);
    rest.filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "parts are ranges")]
    fn a_range_is_cut_out() {
        let parts = [0..10, 20..30];
        assert_eq!(without(&parts, &(5..25)), [0..5, 25..30]);
        assert_eq!(without(&parts, &(0..30)), []);
        assert_eq!(without(&parts, &(10..20)), parts);
        assert_eq!(without(&parts[..1], &(3..4)), [0..3, 4..10]);
        assert_eq!(without(&parts, &(0..10)), [20..30]);
    }
}
