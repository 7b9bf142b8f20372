//! The congestion state of a stream (Li, 3.1.3 and table 3.1): a point of the space that rules divide.

/// What stands for infinity in rule files, and one more than any indicator can be.
pub const INFINITY: u32 = 2_147_483_647;

/// Indicators that a rule can bound: the three of the thesis, then those that extended rule sets may name.
pub const AXES: usize = 8;

/// Indicators of the thesis, and of every rule file.
pub const THESIS_AXES: usize = 3;

/// Names of the indicators, in the order of rule files.
pub const AXIS_NAMES: [&str; AXES] = [
    "ack_ewma",
    "send_ewma",
    "pt_ratio",
    "slow_ack_ewma",
    "timeout_rate",
    "write_share",
    "sequential_share",
    "request_kib",
];

/// The least value of each indicator: a process time is never shorter than the shortest.
pub const AXIS_MIN: [u32; AXES] = [0, 0, 100, 0, 0, 0, 0, 0];

/// Where a stream is in the congestion state space; each below [`INFINITY`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// Moving average of gaps between replies, in microseconds.
    pub ack_us: u32,
    /// Moving average of gaps between the sending times of the requests replied to, in microseconds.
    pub send_us: u32,
    /// 100 times the last process time over the shortest; at least 100 once there was a reply.
    pub ratio100: u32,
    /// Like `ack_us` but slower (extended controllers only), in microseconds.
    pub slow_ack_us: u32,
    /// Time-outs a thousand requests, moving average (extended controllers only).
    pub timeouts_per_1000: u32,
    /// Writes among a thousand requests, moving average (extended controllers only).
    pub writes_per_1000: u32,
    /// Requests among a thousand that go on where one before them ended, moving average (extended controllers only).
    pub sequential_per_1000: u32,
    /// Mean size of a request, moving average (extended controllers only).
    pub request_kib: u32,
}

impl Signals {
    /// The values in the order of [`AXIS_NAMES`], made to fit the space.
    #[must_use]
    #[inline]
    pub fn point(&self) -> [u32; AXES] {
        [
            self.ack_us.min(INFINITY - 1),
            self.send_us.min(INFINITY - 1),
            self.ratio100.clamp(AXIS_MIN[2], INFINITY - 1),
            self.slow_ack_us.min(INFINITY - 1),
            self.timeouts_per_1000.min(INFINITY - 1),
            self.writes_per_1000.min(INFINITY - 1),
            self.sequential_per_1000.min(INFINITY - 1),
            self.request_kib.min(INFINITY - 1),
        ]
    }
}

/// The fast weight of moving averages: a new gap counts for 1/8.
pub(crate) const WEIGHT_SHIFT: u32 = 3;

/// A stream silent for longer than this begins anew.
pub const SILENCE_MAX_US: u64 = 600_000_000;

/// `average + (gap - average) / 8` in whole microseconds.
#[inline]
pub(crate) fn averaged(average_us: u32, gap_us: u32, weight_shift: u32) -> u32 {
    let weight = (1_u64 << weight_shift) - 1;
    let sum = u64::from(average_us) * weight + u64::from(gap_us);
    (sum >> weight_shift) as u32
}

/// `100 * process time / shortest`, within the space.
#[inline]
pub(crate) fn ratio100(process_time_us: u32, shortest_us: u32) -> u32 {
    let ratio = u64::from(process_time_us) * 100 / u64::from(shortest_us.max(1));
    (ratio.min(u64::from(INFINITY - 1))) as u32
}

/// The three indicators of the thesis, as the original keeps them.
///
/// The first reply after a start, a reset or ten minutes of silence only sets the times that gaps are counted from;
/// averages then begin at zero, as in Remy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tracker {
    last_ack_us: u64,
    process_time_us: u32,
    shortest_us: u32,
    ack_us: u32,
    send_us: u32,
}

impl Default for Tracker {
    fn default() -> Self {
        Self {
            last_ack_us: 0,
            process_time_us: 0,
            shortest_us: u32::MAX,
            ack_us: 0,
            send_us: 0,
        }
    }
}

impl Tracker {
    /// Takes in a reply to a request sent at `sent_us`; whether there are gaps to go by.
    #[inline]
    pub fn on_reply(&mut self, sent_us: u64, now_us: u64, process_time_us: u32) -> bool {
        let first = self.shortest_us == u32::MAX;
        let ack_gap_us = now_us.saturating_sub(self.last_ack_us);
        let known = !first && ack_gap_us <= SILENCE_MAX_US;
        if known {
            // The last request's sending time is its reply's time less its process time: no need to store it.
            let last_sent_us = self
                .last_ack_us
                .saturating_sub(u64::from(self.process_time_us));
            let send_gap_us = sent_us.abs_diff(last_sent_us).min(SILENCE_MAX_US);
            self.ack_us = averaged(self.ack_us, ack_gap_us as u32, WEIGHT_SHIFT);
            self.send_us = averaged(self.send_us, send_gap_us as u32, WEIGHT_SHIFT);
        } else {
            (self.ack_us, self.send_us) = (0, 0);
        }
        self.last_ack_us = now_us;
        self.process_time_us = process_time_us;
        self.shortest_us = self.shortest_us.min(process_time_us);
        known
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// The present congestion state.
    #[must_use]
    #[inline]
    pub fn signals(&self) -> Signals {
        Signals {
            ack_us: self.ack_us,
            send_us: self.send_us,
            ratio100: ratio100(self.process_time_us, self.shortest_us),
            ..Signals::default()
        }
    }
}
