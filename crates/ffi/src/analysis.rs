//! Readings that are there already: stable phase, change points, correlation, speed.

use std::ffi::c_int;

use ascar_statistics::analysis::{self as core, Method};
use ascar_statistics::work_per_second::{self as wps, Round};
use ascar_statistics::{autocorrelation, change_points, edm, subsession};

use crate::pointers::{self, Place, Room};
use crate::status::{Failure, Outcome, guard};
use crate::values::{CMeasurement, CSpeed, ends, fixed};

/// The usual limit on the autocorrelation of rounds.
const AUTOCORRELATION_LIMIT: f64 = 0.1;
/// Longer shortest phases than this are longer than any series.
const SEGMENT_MAX: usize = pointers::COUNT_MAX;

/// `pilot_analysis_options_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CAnalysisOptions {
    confidence: f64,
    autocorrelation_limit: f64,
    min_segment: usize,
    method: c_int,
}

impl CAnalysisOptions {
    fn options(&self) -> Outcome<core::Options> {
        let method = match self.method {
            0 => Method::Corrected,
            1 => Method::Faithful,
            other => {
                return Err(Failure::argument(format!(
                    "method is {other}; allowed: PILOT_CORRECTED or PILOT_FAITHFUL"
                )));
            }
        };
        Ok(core::Options {
            confidence: self.confidence,
            autocorrelation_limit: self.autocorrelation_limit,
            min_segment: segment(self.min_segment)?,
            method,
        })
    }
}

/// Refuses shortest phases that are none.
fn segment(min_segment: usize) -> Outcome<usize> {
    if (2..=SEGMENT_MAX).contains(&min_segment) {
        return Ok(min_segment);
    }
    Err(Failure::argument(format!(
        "min_segment is {min_segment}; allowed: 2 to {SEGMENT_MAX} readings"
    )))
}

/// `pilot_analyze`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_analyze(
    values: *const f64,
    count: usize,
    options: *const CAnalysisOptions,
    measurement: *mut CMeasurement,
) -> c_int {
    guard(|| {
        // SAFETY: the header asks for `count` numbers and room for a measurement.
        let (values, place) =
            unsafe { pointers::readings_and_place((values, count), ("measurement", measurement)) }?;
        let options = match options.is_null() {
            true => core::Options::default(),
            // SAFETY: the header asks for options.
            false => unsafe { pointers::shared("options", options) }?.options()?,
        };
        place.write(told(&core::analyze(values, &options)?));
        Ok(())
    })
}

fn told(found: &core::Analysis) -> CMeasurement {
    let (ci_low, ci_high) = ends(found.limits);
    let subsession_size = found.subsessions.map_or(found.n, |merged| merged.size);
    CMeasurement {
        mean: found.mean,
        ci_low,
        ci_high,
        confidence: found.confidence,
        autocorrelation: found.autocorrelation,
        independent_samples: found.effective_n,
        n: found.n,
        subsession_size,
        subsessions: found.n / subsession_size.max(1),
        stable_start: found.stable_start,
        stable_end: found.stable_end,
        change_points: found.change_points.len(),
        method: fixed(match found.method {
            Method::Corrected => "corrected",
            Method::Faithful => "faithful",
        }),
        reason: fixed(found.reason.as_deref().unwrap_or_default()),
    }
}

/// `pilot_change_points`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_change_points(
    values: *const f64,
    count: usize,
    min_segment: usize,
    points: *mut usize,
    capacity: usize,
    found: *mut usize,
) -> c_int {
    guard(|| {
        // SAFETY: the header asks for `count` numbers and that room.
        let (values, room) = unsafe {
            (
                pointers::readings("values", values, count)?,
                Room::new("points", points, capacity, found)?,
            )
        };
        let changes = change_points::change_points(values, segment(min_segment)?)?;
        let indexes: Vec<usize> = changes.iter().map(|change| change.index).collect();
        room.write(&indexes);
        Ok(())
    })
}

/// `pilot_edm_options_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CEdmOptions {
    min_segment: usize,
    percent: f64,
    degree: c_int,
}

/// `pilot_edm_change_points`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_edm_change_points(
    values: *const f64,
    count: usize,
    options: *const CEdmOptions,
    points: *mut usize,
    capacity: usize,
    found: *mut usize,
) -> c_int {
    guard(|| {
        // SAFETY: the header asks for `count` numbers and that room.
        let (values, room) = unsafe {
            (
                pointers::readings("values", values, count)?,
                Room::new("points", points, capacity, found)?,
            )
        };
        let options = match options.is_null() {
            true => edm::Options::default(),
            false => {
                // SAFETY: the header asks for options.
                let told = unsafe { pointers::shared("options", options) }?;
                edm::Options {
                    min_segment: segment(told.min_segment)?,
                    percent: told.percent,
                    degree: u32::try_from(told.degree).map_err(|_| {
                        Failure::argument(format!("degree is {}; allowed: 0, 1 or 2", told.degree))
                    })?,
                }
            }
        };
        room.write(&edm::change_points(values, &options)?);
        Ok(())
    })
}

/// `pilot_autocorrelation`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_autocorrelation(
    values: *const f64,
    count: usize,
    lag: usize,
    coefficient: *mut f64,
) -> c_int {
    guard(|| {
        // SAFETY: the header asks for `count` numbers and room for one.
        let (values, place) =
            unsafe { pointers::readings_and_place((values, count), ("coefficient", coefficient)) }?;
        place.write(autocorrelation::autocorrelation(values, lag)?);
        Ok(())
    })
}

/// `pilot_effective_sample_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_effective_sample_size(
    values: *const f64,
    count: usize,
    size: *mut f64,
) -> c_int {
    guard(|| {
        // SAFETY: the header asks for `count` numbers and room for one.
        let (values, place) =
            unsafe { pointers::readings_and_place((values, count), ("size", size)) }?;
        place.write(autocorrelation::effective_sample_size(values)?);
        Ok(())
    })
}

/// `pilot_subsession_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_subsession_size(
    values: *const f64,
    count: usize,
    limit: f64,
    size: *mut usize,
) -> c_int {
    guard(|| {
        // SAFETY: the header asks for `count` numbers and room for one.
        let (values, place) =
            unsafe { pointers::readings_and_place((values, count), ("size", size)) }?;
        let found = subsession::smallest_uncorrelated(values, limit)?;
        place.write(found.map_or(0, |merged| merged.size));
        Ok(())
    })
}

/// `pilot_work_per_second`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_work_per_second(
    work: *const f64,
    seconds: *const f64,
    count: usize,
    confidence: f64,
    speed: *mut CSpeed,
) -> c_int {
    guard(|| {
        // SAFETY: the header asks for `count` numbers twice and room for a speed.
        let (work, seconds, place) = unsafe {
            (
                pointers::readings("work", work, count)?,
                pointers::readings("seconds", seconds, count)?,
                Place::new("speed", speed)?,
            )
        };
        let rounds: Vec<Round> = work
            .iter()
            .zip(seconds)
            .map(|(&work, &duration_s)| Round { work, duration_s })
            .collect();
        let found = wps::work_per_second(&rounds, confidence, AUTOCORRELATION_LIMIT)?;
        place.write(CSpeed::of(Some(&found), confidence));
        Ok(())
    })
}
