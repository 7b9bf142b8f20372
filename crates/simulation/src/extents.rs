//! Locks on ranges of bytes, as Lustre's servers grant them (`ldlm_extent.c`): what was asked for, and around it as much
//! as nobody else holds or waits for.

/// With more conflicting claims on an object than this, held or waiting, a range does not grow downwards.
const CROWD: usize = 4;
/// With more than this, a range to write in ends `CROWDED_BYTES` behind its begin at most.
const LARGE_CROWD: usize = 32;
const CROWDED_BYTES: u64 = 32 << 20;

/// Bytes of an object, without `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub begin: u64,
    /// Behind the last.
    pub end: u64,
}

impl Range {
    fn overlaps(self, other: Range) -> bool {
        self.begin < other.end && other.begin < self.end
    }

    fn covers(self, other: Range) -> bool {
        self.begin <= other.begin && other.end <= self.end
    }
}

/// What a client holds or asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The client.
    pub client: u32,
    /// Reading and writing, alone; otherwise reading, beside other readers.
    pub write: bool,
    /// Where.
    pub range: Range,
}

impl Claim {
    /// Whether the two can not both be held where they meet. What a client has never stands in its own way.
    fn opposes(&self, other: &Claim) -> bool {
        self.client != other.client && (self.write || other.write)
    }

    /// Whether the two can not both be held.
    pub fn conflicts(&self, other: &Claim) -> bool {
        self.opposes(other) && self.range.overlaps(other.range)
    }

    /// Whether who holds this needs nothing else for `ask`.
    pub fn allows(&self, ask: &Claim) -> bool {
        self.client == ask.client && self.write >= ask.write && self.range.covers(ask.range)
    }

    /// The range that is granted, `most` bytes beyond what was asked for at most, where nothing of what others hold
    /// conflicts with it.
    pub fn grown<'a>(
        &self,
        most: u64,
        held: impl Iterator<Item = &'a Claim>,
        waiting: impl Iterator<Item = &'a Claim>,
    ) -> Range {
        let mut grown = Range {
            begin: self.range.begin.saturating_sub(most),
            end: self.range.end.saturating_add(most),
        };
        self.limit(&mut grown, held);
        self.limit(&mut grown, waiting);
        grown
    }

    fn limit<'a>(&self, grown: &mut Range, others: impl Iterator<Item = &'a Claim>) {
        let asked = self.range;
        let mut crowd = 0;
        for other in others.filter(|other| other.opposes(self)) {
            crowd += 1;
            if other.range.end <= asked.begin {
                grown.begin = grown.begin.max(other.range.end);
            } else if other.range.begin >= asked.end {
                grown.end = grown.end.min(other.range.begin);
            }
            // One that waits for some of the same bytes calls them back whatever is granted.
        }
        if crowd > CROWD {
            grown.begin = asked.begin;
        }
        if crowd > LARGE_CROWD && self.write {
            let crowded = asked.begin.saturating_add(CROWDED_BYTES);
            grown.end = grown.end.min(crowded.max(asked.end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(client: u32, write: bool, begin: u64, end: u64) -> Claim {
        let range = Range { begin, end };
        Claim {
            client,
            write,
            range,
        }
    }

    fn grown(ask: &Claim, held: &[Claim], waiting: &[Claim]) -> (u64, u64) {
        let range = ask.grown(u64::MAX, held.iter(), waiting.iter());
        (range.begin, range.end)
    }

    #[test]
    fn who_asks_first_has_all() {
        assert_eq!(grown(&claim(0, true, 10, 20), &[], &[]), (0, u64::MAX));
        let limited = claim(0, true, 10, 20).grown(5, [].iter(), [].iter());
        assert_eq!((limited.begin, limited.end), (5, 25));
        let exact = claim(0, true, 10, 20).grown(0, [].iter(), [].iter());
        assert_eq!((exact.begin, exact.end), (10, 20));
    }

    #[test]
    fn a_range_grows_to_what_others_hold_or_wait_for() {
        let held = [
            claim(1, true, 0, 4),
            claim(2, false, 40, 50),
            claim(2, true, 90, 99),
        ];
        let ask = claim(0, true, 10, 20);
        assert_eq!(grown(&ask, &held, &[]), (4, 40));
        let waiting = [
            claim(3, true, 6, 8),
            claim(3, true, 30, 35),
            claim(3, true, 15, 60),
        ];
        // The last one waits for some of what is asked for: it does not limit.
        assert_eq!(grown(&ask, &held, &waiting), (8, 30));
        // Readers grow over readers.
        assert_eq!(grown(&claim(0, false, 10, 20), &held, &[]), (4, 90));
        // What the client has does not limit it.
        assert_eq!(grown(&claim(2, true, 10, 20), &held, &[]), (4, u64::MAX));
    }

    #[test]
    fn in_a_crowd_a_range_grows_less() {
        let many = |count: u32| -> Vec<Claim> {
            let far = 1 << 40;
            let of = |client| {
                claim(
                    client,
                    true,
                    far + u64::from(client),
                    far + u64::from(client) + 1,
                )
            };
            (1..=count).map(of).collect()
        };
        let ask = claim(0, true, 10, 20);
        assert_eq!(grown(&ask, &many(4), &[]), (0, (1 << 40) + 1));
        assert_eq!(grown(&ask, &many(5), &[]), (10, (1 << 40) + 1));
        assert_eq!(grown(&ask, &[], &many(5)), (10, (1 << 40) + 1));
        assert_eq!(grown(&ask, &many(33), &[]), (10, 10 + CROWDED_BYTES));
        let long = claim(0, true, 10, 10 + 2 * CROWDED_BYTES);
        assert_eq!(grown(&long, &many(33), &[]), (10, long.range.end));
    }

    #[test]
    fn conflicts_are_of_others_who_write_on_the_same_bytes() {
        let own = claim(0, true, 10, 20);
        assert!(own.conflicts(&claim(1, false, 19, 30)));
        assert!(!own.conflicts(&claim(1, true, 20, 30)));
        assert!(!own.conflicts(&claim(0, true, 10, 20)));
        assert!(!claim(0, false, 10, 20).conflicts(&claim(1, false, 10, 20)));
        assert!(own.allows(&claim(0, false, 12, 20)));
        assert!(!own.allows(&claim(0, true, 12, 21)) && !own.allows(&claim(1, true, 12, 20)));
        assert!(!claim(0, false, 10, 20).allows(&claim(0, true, 10, 20)));
    }
}
