//! What differences of neighbours say about the noise, whatever its level does.

/// Running sums over the differences of neighbours, cut so that jumps of level do not count as noise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShortTerm {
    last: f64,
    last_difference: f64,
    count: usize,
    squares: f64,
    products: f64,
}

impl ShortTerm {
    /// Takes the next cleaned reading and the reach (4 standard deviations) of the noise around it.
    pub(super) fn push(&mut self, value: f64, reach: f64) {
        if self.count > 0 {
            let limit = reach * std::f64::consts::SQRT_2;
            let difference = (value - self.last).clamp(-limit, limit);
            self.squares += difference * difference;
            self.products += difference * self.last_difference;
            self.last_difference = difference;
        }
        self.last = value;
        self.count += 1;
    }

    /// Long-run variance of the first-order autoregression with these differences.
    ///
    /// For x_t = phi x_(t-1) + e_t neighbouring differences have correlation -(1 - phi) / 2 and variance
    /// 2 e / (1 + phi), so the long-run variance e / (1 - phi)^2 follows. Slower correlation than that is not
    /// seen: the value is a lower bound to sift candidates with, not a scale to test them by.
    pub(super) fn long_run_variance(&self) -> f64 {
        if self.squares <= 0.0 {
            return 0.0;
        }
        let phi = (1.0 + 2.0 * self.products / self.squares).clamp(-0.5, PHI_MAX);
        let innovation = 0.5 * (1.0 + phi) * self.squares / (self.count - 1) as f64;
        innovation / ((1.0 - phi) * (1.0 - phi))
    }
}

/// Readings that correlate more look like a drifting level, and are given the benefit of the doubt.
const PHI_MAX: f64 = 0.95;
