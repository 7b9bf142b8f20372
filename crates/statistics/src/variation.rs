//! Measures of performance variation (Cao's thesis, chapter 6).

use crate::error::{Error, Result, check_values};
use crate::moments::{Moments, mean};

fn check_mean(center: f64) -> Result<f64> {
    if center != 0.0 {
        return Ok(center);
    }
    Err(Error::new(
        "values",
        "a series of mean 0",
        "a mean other than 0: the measure is relative to it",
    ))
}

/// Relative standard deviation, eq. 6.2: the sample standard deviation over the mean's magnitude.
pub fn relative_standard_deviation(values: &[f64]) -> Result<f64> {
    check_values("values", values, 2)?;
    let moments = Moments::of(values);
    Ok(moments.deviation() / check_mean(moments.mean)?.abs())
}

/// Relative range, eq. 6.3: (max - min) over the mean's magnitude.
pub fn relative_range(values: &[f64]) -> Result<f64> {
    check_values("values", values, 1)?;
    let (low, high) = extremes(values);
    Ok((high - low) / check_mean(mean(values))?.abs())
}

fn extremes(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
            (low.min(value), high.max(value))
        })
}

/// Throughput-N (section 6.2): the mean rate of each full window of `window` consecutive readings.
///
/// `values` are rates over equal spans of time, so a window of N seconds is N over that span; readings left over
/// at the end, less than a window, are dropped.
pub fn throughput_windows(values: &[f64], window: usize) -> Result<Vec<f64>> {
    check_values("values", values, 1)?;
    if window == 0 || window > values.len() {
        return Err(Error::new(
            "window",
            window,
            format!("1 to the number of readings, {}", values.len()),
        ));
    }
    Ok(values.chunks_exact(window).map(mean).collect())
}

/// Kolmogorov-Smirnov distance of two samples: the largest vertical distance of their empirical CDFs
/// (section 6.6.3), between 0 and 1.
pub fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> Result<f64> {
    check_values("a", a, 1)?;
    check_values("b", b, 1)?;
    Ok(sorted_distance(&sorted(a), &sorted(b)))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut copy = values.to_vec();
    copy.sort_unstable_by(f64::total_cmp);
    copy
}

fn sorted_distance(a: &[f64], b: &[f64]) -> f64 {
    let (mut i, mut j) = (0, 0);
    let mut largest = 0.0_f64;
    while i < a.len() && j < b.len() {
        let step = a[i].min(b[j]);
        while i < a.len() && a[i] <= step {
            i += 1;
        }
        while j < b.len() && b[j] <= step {
            j += 1;
        }
        largest = largest.max((i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs());
    }
    largest
}

/// The range of a set of distributions (section 6.6.3): the largest K-S distance between any two of them.
pub fn distribution_range(samples: &[&[f64]]) -> Result<f64> {
    if samples.len() < 2 {
        return Err(Error::new(
            "samples",
            format!("{} samples", samples.len()),
            "at least 2 samples",
        ));
    }
    let mut ordered = Vec::with_capacity(samples.len());
    for sample in samples {
        check_values("samples", sample, 1)?;
        ordered.push(sorted(sample));
    }
    let mut largest = 0.0_f64;
    for (index, a) in ordered.iter().enumerate() {
        for b in &ordered[index + 1..] {
            largest = largest.max(sorted_distance(a, b));
        }
    }
    Ok(largest)
}

/// Pearson's correlation coefficient; None where one side does not vary.
pub fn pearson(x: &[f64], y: &[f64]) -> Result<Option<f64>> {
    check_values("x", x, 2)?;
    check_values("y", y, 2)?;
    if x.len() != y.len() {
        return Err(Error::new(
            "y",
            format!("a series of {}", y.len()),
            format!("as long as x, {}", x.len()),
        ));
    }
    let (mean_x, mean_y) = (mean(x), mean(y));
    let (mut sum_xx, mut sum_yy, mut sum_xy) = (0.0, 0.0, 0.0);
    for (a, b) in x.iter().zip(y) {
        let (dx, dy) = (a - mean_x, b - mean_y);
        sum_xx += dx * dx;
        sum_yy += dy * dy;
        sum_xy += dx * dy;
    }
    if sum_xx <= 0.0 || sum_yy <= 0.0 {
        return Ok(None);
    }
    Ok(Some(
        (sum_xy / sum_xx.sqrt() / sum_yy.sqrt()).clamp(-1.0, 1.0),
    ))
}
