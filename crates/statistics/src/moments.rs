//! Sample moments, computed around a value of the sample so that a large offset costs no digits.

/// Count, mean, variance and skewness of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub n: usize,
    /// Arithmetic mean; NaN for an empty sample.
    pub mean: f64,
    /// Unbiased variance (divisor n - 1); 0 for fewer than two values.
    pub variance: f64,
    /// The third central moment over the 3/2 power of the second; 0 without variation.
    pub skewness: f64,
}

impl Moments {
    /// The moments of `values`.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len();
        let mean = mean(values);
        let count = n as f64;
        let second: f64 = values
            .iter()
            .map(|value| (value - mean) * (value - mean))
            .sum();
        let variance = if n > 1 { second / (count - 1.0) } else { 0.0 };
        // In units of the spread, for cubes of large readings overflow.
        let spread = (second / count).sqrt();
        let cube = |value: &f64| ((value - mean) / spread).powi(3);
        let skewness = if spread > 0.0 {
            values.iter().map(cube).sum::<f64>() / count
        } else {
            0.0
        };
        Self {
            n,
            mean,
            variance,
            skewness,
        }
    }

    /// The standard deviation.
    pub fn deviation(&self) -> f64 {
        self.variance.sqrt()
    }
}

/// Arithmetic mean, as the first value plus the mean difference from it; NaN for an empty slice.
pub fn mean(values: &[f64]) -> f64 {
    let Some(&first) = values.first() else {
        return f64::NAN;
    };
    first + values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64
}

/// The median of `values`, which are reordered; NaN for an empty slice.
pub(crate) fn median_of(values: &mut [f64]) -> f64 {
    let n = values.len();
    if n == 0 {
        return f64::NAN;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    if n % 2 == 1 {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    0.5 * (lower + upper)
}
