//! What extended controllers do beyond the original, each an option.

use crate::fault::{Fault, Result};
use crate::window::{WINDOW_X100_MAX, WINDOW_X100_MIN};

/// What window and tau count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Requests, whatever their size: the original.
    Requests,
    /// Pieces of so many bytes: a request of twice the size takes twice the place and twice the gap.
    Bytes(u32),
}

/// How the shortest process time is measured again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Microseconds between two probes; each is put forward by up to a fifth, by chance.
    pub interval_us: u64,
    /// The window while probing, in hundredths.
    pub window_x100: u32,
    /// Replies to requests sent while probing that end it.
    pub replies: u16,
}

/// Options of extended controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extensions {
    /// What window and tau count.
    pub unit: Unit,
    /// The shortest process time of this many microseconds at least, twice as many at most; `None`: of all time.
    pub minimum_period_us: Option<u64>,
    /// Probing for the shortest process time; `None`: wait until one comes by.
    pub probe: Option<Probe>,
    /// Process times are compared as if every request had one size: `t * (fixed + 1 MiB) / (fixed + bytes)`, where
    /// `fixed` is the size whose transfer takes as long as what each request costs whatever its size.
    pub size_fixed_bytes: Option<u32>,
    /// A gap counts for 1 / 2^this in the slow average.
    pub slow_weight_shift: u8,
    /// The window grows only if it was full at some time since its last change.
    pub gate_growth: bool,
    /// A time-out multiplies the window by this over 100, as often as the window may change; 100: no.
    pub timeout_m100: u8,
}

impl Default for Extensions {
    /// Everything on, in requests.
    fn default() -> Self {
        Self {
            unit: Unit::Requests,
            minimum_period_us: Some(30_000_000),
            probe: Some(Probe {
                interval_us: 30_000_000,
                window_x100: 100,
                replies: 4,
            }),
            size_fixed_bytes: Some(1 << 20),
            slow_weight_shift: 8,
            gate_growth: true,
            timeout_m100: 50,
        }
    }
}

impl Extensions {
    /// None of them: what is left differs from the original in the start of averages only.
    pub const NONE: Self = Self {
        unit: Unit::Requests,
        minimum_period_us: None,
        probe: None,
        size_fixed_bytes: None,
        slow_weight_shift: 8,
        gate_growth: false,
        timeout_m100: 100,
    };

    /// Refuses settings out of range.
    pub fn check(&self) -> Result<()> {
        if self.unit == Unit::Bytes(0) {
            return Err(Fault::setting("unit", 0, "1 byte or more"));
        }
        if self.minimum_period_us == Some(0) {
            return Err(Fault::setting("minimum_period_us", 0, "1 or more"));
        }
        if !(1..=16).contains(&self.slow_weight_shift) {
            let value = self.slow_weight_shift;
            return Err(Fault::setting("slow_weight_shift", value, "1 to 16"));
        }
        if !(1..=100).contains(&self.timeout_m100) {
            return Err(Fault::setting(
                "timeout_m100",
                self.timeout_m100,
                "1 to 100",
            ));
        }
        self.probe.as_ref().map_or(Ok(()), Probe::check)
    }
}

impl Probe {
    fn check(&self) -> Result<()> {
        if self.interval_us == 0 {
            return Err(Fault::setting("probe.interval_us", 0, "1 or more"));
        }
        if self.replies == 0 {
            return Err(Fault::setting("probe.replies", 0, "1 or more"));
        }
        if !(WINDOW_X100_MIN..=WINDOW_X100_MAX).contains(&self.window_x100) {
            let allowed = "100 to 25600 hundredths";
            return Err(Fault::setting(
                "probe.window_x100",
                self.window_x100,
                allowed,
            ));
        }
        Ok(())
    }
}
