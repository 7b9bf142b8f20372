//! The least value of late: of the present period and the one before.

/// Forgets what is older than two periods; holds for one at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowedMinimum {
    period_end_us: u64,
    present: u32,
    before: u32,
}

impl Default for WindowedMinimum {
    fn default() -> Self {
        Self {
            period_end_us: 0,
            present: u32::MAX,
            before: u32::MAX,
        }
    }
}

impl WindowedMinimum {
    /// Takes in a value; a period of `u64::MAX` never ends.
    #[inline]
    pub(crate) fn add(&mut self, now_us: u64, value: u32, period_us: u64) {
        if now_us >= self.period_end_us {
            let silent = now_us.saturating_sub(self.period_end_us) >= period_us;
            self.before = if silent { u32::MAX } else { self.present };
            self.present = u32::MAX;
            self.period_end_us = now_us.saturating_add(period_us);
        }
        self.present = self.present.min(value);
    }

    /// The least value; `u32::MAX` before the first.
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.present.min(self.before)
    }
}
