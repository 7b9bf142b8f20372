//! Intervals of independent samples.

use std::ffi::c_int;

use ascar_statistics::intervals::{self as core, Interval};

use crate::pointers::{self, Place};
use crate::status::{Failure, Outcome, guard};

/// `pilot_interval_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CInterval {
    estimate: f64,
    low: f64,
    high: f64,
}

impl From<Interval> for CInterval {
    fn from(found: Interval) -> Self {
        Self {
            estimate: found.estimate,
            low: found.low,
            high: found.high,
        }
    }
}

/// Computes an interval of readings and writes it.
///
/// # Safety
///
/// A pointer that is not NULL points to `count` numbers, or has room for an interval.
unsafe fn of(
    (values, count): (*const f64, usize),
    interval: *mut CInterval,
    compute: impl FnOnce(&[f64]) -> Outcome<CInterval>,
) -> c_int {
    guard(|| {
        // SAFETY: as promised.
        let (values, place) =
            unsafe { pointers::readings_and_place((values, count), ("interval", interval)) }?;
        place.write(compute(values)?);
        Ok(())
    })
}

/// `pilot_mean_interval`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_mean_interval(
    values: *const f64,
    count: usize,
    confidence: f64,
    interval: *mut CInterval,
) -> c_int {
    // SAFETY: the header asks for the same.
    unsafe {
        of((values, count), interval, |values| {
            Ok(core::mean_t(values, confidence)?.into())
        })
    }
}

/// `pilot_harmonic_mean_interval`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_harmonic_mean_interval(
    values: *const f64,
    count: usize,
    confidence: f64,
    interval: *mut CInterval,
) -> c_int {
    // SAFETY: the header asks for the same.
    unsafe {
        of((values, count), interval, |values| {
            Ok(core::harmonic_mean(values, confidence)?.into())
        })
    }
}

/// `pilot_percentile_interval`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_percentile_interval(
    values: *const f64,
    count: usize,
    quantile: f64,
    confidence: f64,
    interval: *mut CInterval,
) -> c_int {
    let none = CInterval {
        estimate: f64::NAN,
        low: f64::NAN,
        high: f64::NAN,
    };
    // SAFETY: the header asks for the same.
    unsafe {
        of((values, count), interval, |values| {
            let found = core::percentile(values, quantile, confidence)?;
            Ok(found.map_or(none, CInterval::from))
        })
    }
}

/// `pilot_proportion_interval`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_proportion_interval(
    successes: u64,
    trials: u64,
    confidence: f64,
    method: c_int,
    interval: *mut CInterval,
) -> c_int {
    guard(|| {
        // SAFETY: the header asks for room for an interval.
        let place = unsafe { Place::new("interval", interval) }?;
        let found = match method {
            0 => core::proportion_wilson(successes, trials, confidence),
            1 => core::proportion_exact(successes, trials, confidence),
            other => {
                return Err(Failure::argument(format!(
                    "method is {other}; allowed: PILOT_WILSON or PILOT_EXACT"
                )));
            }
        };
        place.write(found?.into());
        Ok(())
    })
}
