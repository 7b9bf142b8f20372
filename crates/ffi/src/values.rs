//! The structures that results are written to, field by field as in the header.

use std::ffi::{c_char, c_int};

use ascar_pilot::findings::{Basis, Finding};
use ascar_pilot::measurement::Measurement;
use ascar_statistics::work_per_second::WorkPerSecond;

/// Both ends of an interval; NaN where there is none.
pub fn ends(limits: Option<(f64, f64)>) -> (f64, f64) {
    limits.unwrap_or((f64::NAN, f64::NAN))
}

/// A C string of fixed size; what does not fit is cut off.
pub fn fixed<const N: usize>(text: &str) -> [c_char; N] {
    let mut bytes = [0; N];
    let mut end = text.len().min(N - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    for (place, byte) in bytes.iter_mut().zip(text[..end].bytes()) {
        *place = byte as c_char;
    }
    bytes
}

/// `pilot_measurement_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CMeasurement {
    pub mean: f64,
    pub ci_low: f64,
    pub ci_high: f64,
    pub confidence: f64,
    pub autocorrelation: f64,
    pub independent_samples: f64,
    pub n: usize,
    pub subsession_size: usize,
    pub subsessions: usize,
    pub stable_start: usize,
    pub stable_end: usize,
    pub change_points: usize,
    pub method: [c_char; 64],
    pub reason: [c_char; 192],
}

impl From<&Measurement> for CMeasurement {
    fn from(found: &Measurement) -> Self {
        let (ci_low, ci_high) = ends(found.limits);
        Self {
            mean: found.mean,
            ci_low,
            ci_high,
            confidence: found.confidence,
            autocorrelation: found.autocorrelation,
            independent_samples: found.independent_samples as f64,
            n: found.n,
            subsession_size: found.subsession_size,
            subsessions: found.subsessions(),
            stable_start: found.stable_start,
            stable_end: found.stable_end,
            change_points: found.change_points.len(),
            method: fixed(&found.method),
            reason: fixed(&found.reason),
        }
    }
}

/// `pilot_finding_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CFinding {
    pub measurement: CMeasurement,
    pub basis: c_int,
    pub reached: c_int,
    pub readings: usize,
    pub removed: usize,
    pub rounds_unstable: usize,
}

impl CFinding {
    /// A finding; its confidence where nothing was read yet.
    pub fn of(finding: &Finding, confidence: f64) -> Self {
        let measurement = finding.measurement.as_ref().map_or_else(
            || CMeasurement {
                mean: f64::NAN,
                confidence,
                n: 0,
                independent_samples: 0.0,
                subsession_size: 0,
                subsessions: 0,
                stable_end: 0,
                method: fixed(""),
                reason: fixed("there are no readings"),
                ..CMeasurement::from(&Measurement::single(0.0, confidence))
            },
            CMeasurement::from,
        );
        Self {
            measurement,
            basis: match finding.basis {
                Basis::Readings => 0,
                Basis::UnitReadings => 1,
                Basis::Rounds => 2,
            },
            reached: c_int::from(finding.reached()),
            readings: finding.readings,
            removed: finding.removed,
            rounds_unstable: finding.rounds_unstable,
        }
    }
}

/// `pilot_speed_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CSpeed {
    pub work_per_s: f64,
    pub ci_low: f64,
    pub ci_high: f64,
    pub confidence: f64,
    pub overhead_s: f64,
    pub autocorrelation: f64,
    pub rounds: usize,
    pub reason: [c_char; 192],
}

impl CSpeed {
    /// A speed; without one, why there is none.
    pub fn of(speed: Option<&WorkPerSecond>, confidence: f64) -> Self {
        let (ci_low, ci_high) = ends(speed.and_then(|found| found.limits));
        let reason = match speed {
            None => "rounds of different work make no rising line yet",
            Some(found) => found.reason.as_deref().unwrap_or_default(),
        };
        Self {
            work_per_s: speed.map_or(f64::NAN, |found| found.speed),
            ci_low,
            ci_high,
            confidence,
            overhead_s: speed.map_or(f64::NAN, |found| found.overhead_s),
            autocorrelation: speed.map_or(0.0, |found| found.autocorrelation),
            rounds: speed.map_or(0, |found| found.rounds),
            reason: fixed(reason),
        }
    }
}

/// `pilot_summary_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CSummary {
    pub ended: c_int,
    pub reached: c_int,
    pub speed_decides: c_int,
    pub rounds: usize,
    pub rounds_used: usize,
    pub seconds: f64,
    pub seconds_left: f64,
    pub why: [c_char; 96],
}

/// `pilot_done_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CDone {
    pub work_amount: f64,
    pub seconds: f64,
    pub used: c_int,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters_and_ends_with_nul() {
        let cut: [c_char; 4] = fixed("ab\u{e9}");
        assert_eq!(cut.map(|byte| byte as u8), *b"ab\0\0");
        let whole: [c_char; 5] = fixed("ab\u{e9}");
        assert_eq!(whole.map(|byte| byte as u8), *b"ab\xc3\xa9\0");
    }
}
