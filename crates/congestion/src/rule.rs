//! A rule: a region of the congestion state space, and what to do there (Li, 3.1.4).

use crate::signals::{AXES, AXIS_MIN, INFINITY};

/// `[lo, hi)`; `hi` is [`INFINITY`] where there is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The least value inside.
    pub lo: u32,
    /// The least value above.
    pub hi: u32,
}

impl Interval {
    /// All values.
    pub const WHOLE: Self = Self {
        lo: 0,
        hi: INFINITY,
    };

    /// Whether a value is inside.
    #[must_use]
    #[inline]
    pub const fn contains(&self, value: u32) -> bool {
        self.lo <= value && value < self.hi
    }
}

/// A box of the space, one interval an axis, in the order of [`crate::AXIS_NAMES`].
pub type Region = [Interval; AXES];

/// The whole congestion state space K.
pub const SPACE: Region = {
    let mut space = [Interval::WHOLE; AXES];
    space[2].lo = AXIS_MIN[2];
    space
};

/// What a rule does: `window = m * window + b`, and the gap tau.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// m times 100; below zero: do not multiply.
    pub m100: i32,
    /// b times 100.
    pub b100: i32,
    /// Least gap between two requests, in microseconds.
    pub tau_us: u32,
}

/// How often a rule was used, and at which mean indicators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Replies that it matched.
    pub used_times: u64,
    /// Mean of each indicator over them, in the order of [`crate::AXIS_NAMES`]; zero where never used.
    pub means: [u32; AXES],
}

/// One rule of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where it holds; of overlapping rules the first does.
    pub region: Region,
    /// What it does.
    pub action: Action,
    /// Its statistics, where the file it was read from had them.
    pub observed: Option<Observed>,
}
