//! Two sides compared: once, or again and again.

use std::ffi::c_int;

use ascar_statistics::sequential::{self, Options, Verdict};
use ascar_statistics::welch as core;

use crate::pointers::{self, Place};
use crate::status::guard;
use crate::values::ends;

/// `pilot_welch_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CWelch {
    difference: f64,
    ci_low: f64,
    ci_high: f64,
    ratio: f64,
    ratio_ci_low: f64,
    ratio_ci_high: f64,
    p_value: f64,
    t: f64,
    dof: f64,
}

/// `pilot_welch`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_welch(
    a: *const f64,
    a_count: usize,
    b: *const f64,
    b_count: usize,
    confidence: f64,
    welch: *mut CWelch,
) -> c_int {
    guard(|| {
        // SAFETY: the header asks for so many numbers and room for the result.
        let (a, b, place) = unsafe {
            (
                pointers::readings("a", a, a_count)?,
                pointers::readings("b", b, b_count)?,
                Place::new("welch", welch)?,
            )
        };
        let found = core::welch(a, b, confidence)?;
        let (ratio_ci_low, ratio_ci_high) = ends(found.ratio_limits);
        place.write(CWelch {
            difference: found.difference,
            ci_low: found.difference_low,
            ci_high: found.difference_high,
            ratio: found.ratio,
            ratio_ci_low,
            ratio_ci_high,
            p_value: found.p_value,
            t: found.t,
            dof: found.dof,
        });
        Ok(())
    })
}

/// `pilot_welch_sample_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_welch_sample_size(
    mean_a: f64,
    sd_a: f64,
    mean_b: f64,
    sd_b: f64,
    alpha: f64,
    power: f64,
    samples: *mut u64,
) -> c_int {
    guard(|| {
        // SAFETY: the header asks for room for a number.
        let place = unsafe { Place::new("samples", samples) }?;
        place.write(core::sample_size(
            (mean_a, sd_a),
            (mean_b, sd_b),
            alpha,
            power,
        )?);
        Ok(())
    })
}

/// `pilot_sequential_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CSequential {
    difference: f64,
    ci_low: f64,
    ci_high: f64,
    ratio: f64,
    ratio_ci_low: f64,
    ratio_ci_high: f64,
    p_value: f64,
    independent_samples: f64,
    verdict: c_int,
}

/// `pilot_sequential_compare`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pilot_sequential_compare(
    a: *const f64,
    a_count: usize,
    b: *const f64,
    b_count: usize,
    alpha: f64,
    margin: f64,
    comparison: *mut CSequential,
) -> c_int {
    guard(|| {
        // SAFETY: the header asks for so many numbers and room for the result.
        let (a, b, place) = unsafe {
            (
                pointers::readings("a", a, a_count)?,
                pointers::readings("b", b, b_count)?,
                Place::new("comparison", comparison)?,
            )
        };
        let margin = (margin != 0.0).then_some(margin);
        let found = sequential::compare(a, b, &Options { alpha, margin })?;
        let (ratio_ci_low, ratio_ci_high) = ends(found.ratio_limits);
        place.write(CSequential {
            difference: found.difference,
            ci_low: found.difference_limits.0,
            ci_high: found.difference_limits.1,
            ratio: found.ratio,
            ratio_ci_low,
            ratio_ci_high,
            p_value: found.p_value,
            independent_samples: found.effective_n,
            verdict: match found.verdict {
                Verdict::Undecided => 0,
                Verdict::Less => 1,
                Verdict::Greater => 2,
                Verdict::Equivalent => 3,
            },
        });
        Ok(())
    })
}
