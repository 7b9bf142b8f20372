//! Running sums of a series and of its lagged products: any segment's mean, contrast and autocovariance in O(1).

/// Lags kept: autoregressions up to this order describe the noise between changes.
pub(super) const LAGS: usize = 5;

/// Prefix sums around a reference level, so that a large offset costs no digits.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    reference: f64,
    recent: [f64; LAGS],
    totals: Vec<f64>,
    products: Vec<[f64; LAGS + 1]>,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            reference: 0.0,
            recent: [0.0; LAGS],
            totals: vec![0.0],
            products: vec![[0.0; LAGS + 1]],
        }
    }
}

impl Sums {
    pub(super) fn len(&self) -> usize {
        self.totals.len() - 1
    }

    pub(super) fn push(&mut self, value: f64) {
        let n = self.len();
        if n == 0 {
            self.reference = value;
        }
        let x = value - self.reference;
        let mut products = self.products[n];
        products[0] += x * x;
        for (lag, earlier) in self.recent.iter().enumerate() {
            // Before the series began the products are zero; segments never ask for them.
            products[lag + 1] += x * earlier;
        }
        self.recent.rotate_right(1);
        self.recent[0] = x;
        self.totals.push(self.totals[n] + x);
        self.products.push(products);
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

    /// Sums of lagged products of deviations from the segment's own mean, with the number of terms of each.
    pub(super) fn lagged(&self, start: usize, end: usize) -> [(f64, f64); LAGS + 1] {
        let mean = self.mean(start, end);
        let mut out = [(0.0, 0.0); LAGS + 1];
        for (lag, slot) in out.iter_mut().enumerate() {
            if end - start <= lag {
                break;
            }
            let terms = (end - start - lag) as f64;
            let product = self.products[end][lag] - self.products[start + lag][lag];
            let ends = self.total(start + lag, end) + self.total(start, end - lag);
            *slot = (product - mean * ends + terms * mean * mean, terms);
        }
        out
    }
}
