//! Small reproducible random numbers, so that streams do not probe all at the same time.

/// Marsaglia's xorshift of 32 bits ("Xorshift RNGs", Journal of Statistical Software 8(14), 2003).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jitter(u32);

impl Jitter {
    /// Any seed; neighbouring seeds give unlike numbers.
    pub(crate) fn new(seed: u64) -> Self {
        let mixed = (seed.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(((mixed >> 32) as u32).max(1))
    }

    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    /// Between `least_percent` and 100% of a value, uniformly.
    pub(crate) fn shortened(&mut self, value: u64, least_percent: u64) -> u64 {
        let span = value.saturating_mul(100 - least_percent) / 100;
        let cut = (u128::from(span) * u128::from(self.next())) >> 32;
        value - cut as u64
    }
}
