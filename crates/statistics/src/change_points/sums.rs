//! Running sums of a series and of its lagged products: any segment's mean, contrast and autocovariance in O(1).

/// Lags kept: autoregressions up to this order describe the noise between changes.
pub(super) const LAGS: usize = 5;

/// Positions that are looked at together.
const LANES: usize = 4;

/// Sums of lagged products are kept once in so many readings; those between follow from the readings themselves.
const STRIDE: usize = 16;

/// Prefix sums around a reference level, so that a large offset costs no digits.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    reference: f64,
    recent: [f64; LAGS],
    totals: Vec<f64>,
    /// Of the readings so far.
    product: [f64; LAGS + 1],
    /// Of the first 0, 16, 32 ... readings.
    products: Vec<[f64; LAGS + 1]>,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            reference: 0.0,
            recent: [0.0; LAGS],
            totals: vec![0.0],
            product: [0.0; LAGS + 1],
            products: vec![[0.0; LAGS + 1]],
        }
    }
}

impl Sums {
    pub(super) fn len(&self) -> usize {
        self.totals.len() - 1
    }

    /// Makes room for so many further readings.
    pub(super) fn reserve(&mut self, readings: usize) {
        self.totals.reserve(readings);
        self.products.reserve(readings / STRIDE + 1);
    }

    pub(super) fn push(&mut self, value: f64) {
        let n = self.len();
        if n == 0 {
            self.reference = value;
        }
        let x = value - self.reference;
        self.product[0] += x * x;
        for (lag, earlier) in self.recent.iter().enumerate() {
            // Before the series began the products are zero; segments never ask for them.
            self.product[lag + 1] += x * earlier;
        }
        self.recent.rotate_right(1);
        self.recent[0] = x;
        self.totals.push(self.totals[n] + x);
        if (n + 1).is_multiple_of(STRIDE) {
            self.products.push(self.product);
        }
    }

    /// Sums of lagged products of the first `end` readings.
    fn products_until(&self, end: usize) -> [f64; LAGS + 1] {
        let kept = end / STRIDE;
        let mut products = self.products[kept];
        let reading = |at: usize| self.totals[at + 1] - self.totals[at];
        for at in kept * STRIDE..end {
            for (lag, product) in products.iter_mut().enumerate().take(at + 1) {
                *product += reading(at) * reading(at - lag);
            }
        }
        products
    }

    /// Sum of [start, end) around the reference.
    fn total(&self, start: usize, end: usize) -> f64 {
        self.totals[end] - self.totals[start]
    }

    /// Mean of [start, end) around the reference.
    pub(super) fn mean(&self, start: usize, end: usize) -> f64 {
        self.total(start, end) / (end - start) as f64
    }

    /// What a change at `at` takes off the sum of squares of [start, end): n_l n_r / n (mean_r - mean_l)^2.
    #[inline]
    pub(super) fn gain(&self, start: usize, at: usize, end: usize) -> f64 {
        let (left, right) = ((at - start) as f64, (end - at) as f64);
        let base = self.totals[start];
        let whole = self.totals[end] - base;
        let excess = (self.totals[at] - base) - whole * (left / (left + right));
        excess * excess * (left + right) / (left * right)
    }

    /// The first of the positions `first`, `first + stride` ... `last` with the largest [`Sums::gain`], and that gain.
    ///
    /// Lanes take the positions in turn and have a largest gain each, so that compilers make vectors of them.
    pub(super) fn best_gain(
        &self,
        (start, end): (usize, usize),
        (first, last): (usize, usize),
        stride: usize,
    ) -> (usize, f64) {
        let totals = &self.totals[start..=end];
        let (base, n) = (totals[0], (end - start) as f64);
        let whole = totals[end - start] - base;
        let offset = first - start;
        let inside = &totals[offset..=last - start];
        let gain = |total: f64, left: f64| {
            let excess = (total - base) - whole * (left / n);
            excess * excess * n / (left * (n - left))
        };
        let mut gains = [f64::NEG_INFINITY; LANES];
        let mut places = [0.0; LANES];
        let mut left: [f64; LANES] = std::array::from_fn(|lane| (offset + lane * stride) as f64);
        let mut groups = inside.chunks_exact(LANES * stride);
        for group in &mut groups {
            for lane in 0..LANES {
                let found = gain(group[lane * stride], left[lane]);
                let is_better = found > gains[lane];
                gains[lane] = if is_better { found } else { gains[lane] };
                places[lane] = if is_better { left[lane] } else { places[lane] };
                left[lane] += (LANES * stride) as f64;
            }
        }
        for (lane, &total) in groups.remainder().iter().step_by(stride).enumerate() {
            let found = gain(total, left[lane]);
            if found > gains[lane] {
                (gains[lane], places[lane]) = (found, left[lane]);
            }
        }
        let mut best = (0.0, f64::NEG_INFINITY);
        for (place, gain) in places.into_iter().zip(gains) {
            if gain > best.1 || (gain == best.1 && place < best.0) {
                best = (place, gain);
            }
        }
        (start + best.0 as usize, best.1)
    }

    /// Sums of lagged products of deviations from the segment's own mean, with the number of terms of each.
    pub(super) fn lagged(&self, start: usize, end: usize) -> [(f64, f64); LAGS + 1] {
        let mean = self.mean(start, end);
        let mut out = [(0.0, 0.0); LAGS + 1];
        let until_end = self.products_until(end);
        for (lag, slot) in out.iter_mut().enumerate() {
            if end - start <= lag {
                break;
            }
            let terms = (end - start - lag) as f64;
            let product = until_end[lag] - self.products_until(start + lag)[lag];
            let ends = self.total(start + lag, end) + self.total(start, end - lag);
            *slot = (product - mean * ends + terms * mean * mean, terms);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Position by position.
    fn plain(
        sums: &Sums,
        sides: (usize, usize),
        span: (usize, usize),
        stride: usize,
    ) -> (usize, f64) {
        let mut best = (0, f64::NEG_INFINITY);
        for at in (span.0..=span.1).step_by(stride) {
            let gain = sums.gain(sides.0, at, sides.1);
            if gain > best.1 {
                best = (at, gain);
            }
        }
        best
    }

    proptest::proptest! {
        /// Bit by bit, also where gains are equal: readings of a coarse unit have many of those.
        #[test]
        fn lanes_find_the_first_of_the_largest_gains(
            values in proptest::collection::vec(-1e3..1e3_f64, 12..300),
            unit in proptest::sample::select(vec![0.0, 1.0, 500.0, 1e6]),
            (skip, inset, stride) in (0_usize..4, 1_usize..4, 1_usize..9),
        ) {
            let mut sums = Sums::default();
            for value in values.iter().map(|value| if unit > 0.0 { (value / unit).round() } else { *value }) {
                sums.push(value);
            }
            let sides = (skip, sums.len());
            let span = (skip + inset, sums.len() - inset);
            let (at, gain) = sums.best_gain(sides, span, stride);
            let (plain_at, plain_gain) = plain(&sums, sides, span, stride);
            proptest::prop_assert_eq!((at, gain.to_bits()), (plain_at, plain_gain.to_bits()));
        }
    }
}
