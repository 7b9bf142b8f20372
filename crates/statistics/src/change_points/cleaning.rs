//! Spikes cut down to the reach of ordinary noise, with a fixed delay, so that only lasting shifts count.

/// Readings on each side of the one being cleaned.
pub(super) const REACH: usize = 15;
/// Robust standard deviations beyond which a reading is cut.
const CUT: f64 = 3.0;
/// Median absolute deviation to standard deviation, for normal noise.
const MAD_TO_SIGMA: f64 = 1.4826;
/// Mean absolute deviation to standard deviation, for normal noise.
const MEAN_TO_SIGMA: f64 = 1.2533;

/// A centred running window: each reading is cut to the window's median +- 3 robust standard deviations.
///
/// Bounded influence is what makes medians robust (James, Kejariwal and Matteson 2016); cutting instead of taking
/// medians keeps the efficiency of means where there are no spikes (Huber 1964).
#[derive(Clone, Debug, Default)]
pub(super) struct Cleaner {
    /// The last 2 REACH + 1 readings in order of arrival.
    recent: std::collections::VecDeque<f64>,
    /// The same readings in order of size.
    sorted: Vec<f64>,
}

impl Cleaner {
    /// Takes a reading; gives the cleaned readings that are now due: none at first, then REACH + 1, then one each.
    pub(super) fn push(&mut self, value: f64, mut due: impl FnMut(f64)) {
        const WIDTH: usize = 2 * REACH + 1;
        let full = self.recent.len() == WIDTH;
        if full && let Some(oldest) = self.recent.pop_front() {
            let at = self.sorted.partition_point(|&other| other < oldest);
            self.sorted.remove(at);
        }
        self.recent.push_back(value);
        let at = self.sorted.partition_point(|&other| other < value);
        self.sorted.insert(at, value);
        if self.recent.len() < WIDTH {
            return;
        }
        let (low, high) = self.limits();
        if full {
            due(self.recent[REACH].clamp(low, high));
        } else {
            // The first full window also cleans the readings that have no full window of their own.
            for index in 0..=REACH {
                due(self.recent[index].clamp(low, high));
            }
        }
    }

    fn limits(&self) -> (f64, f64) {
        let median = self.sorted[REACH];
        let mut sigma = MAD_TO_SIGMA * self.median_deviation(median);
        if sigma <= 0.0 {
            let total: f64 = self.sorted.iter().map(|value| (value - median).abs()).sum();
            sigma = MEAN_TO_SIGMA * total / self.sorted.len() as f64;
        }
        (median - CUT * sigma, median + CUT * sigma)
    }

    /// The median of |x - median| by walking outwards from the middle of the sorted window.
    fn median_deviation(&self, median: f64) -> f64 {
        let (mut below, mut above) = (REACH, REACH);
        let mut deviation = 0.0;
        for _ in 0..REACH {
            let down = if below > 0 {
                median - self.sorted[below - 1]
            } else {
                f64::INFINITY
            };
            let up = self
                .sorted
                .get(above + 1)
                .map_or(f64::INFINITY, |value| value - median);
            if down <= up {
                below -= 1;
                deviation = down;
            } else {
                above += 1;
                deviation = up;
            }
        }
        deviation
    }
}
