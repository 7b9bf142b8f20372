//! E-Divisive with Medians as published, for comparison and for the faithful method.
//!
//! James, Kejariwal and Matteson 2016, "Leveraging cloud data to mitigate user experience from 'breaking bad'":
//! the segmentation that maximises the sum over changes of n_l n_r / (n_l + n_r)^2 (median_l - median_r)^2, found
//! by dynamic programming, a change being kept only if it raises the sum by a percentage (the released program's
//! `percent` and `degree`; Pilot uses 0.25 and 1). The statistic has no scale of noise in it: a stationary series
//! is always split at least once, and correlated noise many times. [`crate::change_points`] is the default.

use crate::error::{Error, Result, check_values};
use crate::moments::median_of;

/// What the published method may be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The shortest segment, in readings.
    pub min_segment: usize,
    /// The relative increase of the statistic that one more change must bring.
    pub percent: f64,
    /// How the price grows with k changes: 0 free, 1 `percent`, 2 `percent` (2 k + 1).
    pub degree: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            min_segment: 30,
            percent: 0.25,
            degree: 1,
        }
    }
}

/// Longer series are first reduced to medians of equal blocks, this many at most: the search is quadratic.
const POSITIONS_MAX: usize = 4096;

/// The change points of a series, as indices of the first reading of each new level.
///
/// Beyond 4,096 readings positions are multiples of the block size and medians are medians of block medians.
pub fn change_points(values: &[f64], options: &Options) -> Result<Vec<usize>> {
    check_values("values", values, 1)?;
    if options.min_segment < 2 {
        return Err(Error::new(
            "min_segment",
            options.min_segment,
            "2 or more readings",
        ));
    }
    if !(options.percent >= 0.0 && options.percent.is_finite()) {
        return Err(Error::new(
            "percent",
            options.percent,
            "a finite number, 0 or more; 0.25 is usual",
        ));
    }
    if options.degree > 2 {
        return Err(Error::new("degree", options.degree, "0, 1 or 2"));
    }
    let block = values.len().div_ceil(POSITIONS_MAX);
    if block == 1 {
        return Ok(segment(values, options));
    }
    let medians: Vec<f64> = values
        .chunks_exact(block)
        .map(|chunk| median_of(&mut chunk.to_vec()))
        .collect();
    let coarse = Options {
        min_segment: options.min_segment.div_ceil(block),
        ..*options
    };
    Ok(segment(&medians, &coarse)
        .into_iter()
        .map(|index| index * block)
        .collect())
}

/// The dynamic programme over the last change before each position.
fn segment(values: &[f64], options: &Options) -> Vec<usize> {
    let n = values.len();
    let min = options.min_segment;
    let mut best = vec![0.0_f64; n + 1];
    let mut previous = vec![0_usize; n + 1];
    let mut count = vec![0_u32; n + 1];
    let mut later = Medians::new(values);
    for t in 1..=n {
        let before = previous[t];
        if before > 0
            && best[t] - best[before]
                < options.percent * price(options.degree, count[before]) * best[before]
        {
            // The last change did not pay: this position inherits what came before it.
            (best[t], count[t], previous[t]) = (best[before], count[before], previous[before]);
        }
        later.drop_first(t - 1);
        if t < min || t + min > n {
            continue;
        }
        let start = previous[t];
        let left = median_of(&mut values[start..t].to_vec());
        let (here, changes) = (best[t], count[t] + 1);
        later.each_prefix(t, min, |s, right| {
            let weight =
                ((t - start) as f64 / (s - start) as f64) * ((s - t) as f64 / (s - start) as f64);
            let total = here + weight * (left - right) * (left - right);
            if total > best[s] {
                (best[s], count[s], previous[s]) = (total, changes, t);
            }
        });
    }
    let mut found = Vec::new();
    let mut at = n;
    while previous[at] > 0 {
        at = previous[at];
        found.push(at);
    }
    found.reverse();
    found
}

fn price(degree: u32, changes: u32) -> f64 {
    match degree {
        0 => 0.0,
        1 => 1.0,
        _ => 2.0 * f64::from(changes) + 1.0,
    }
}

/// Medians of all prefixes of a suffix in O(1) each: elements leave a sorted linked list from the back, and the
/// middle moves by at most one place.
struct Medians<'a> {
    values: &'a [f64],
    /// Position in sorted order of each element, all different; 0 and n + 1 are the list's ends.
    rank: Vec<u32>,
    /// Value at each rank.
    sorted: Vec<f64>,
    list: List,
    scratch: List,
}

#[derive(Clone, Debug, Default)]
struct List {
    next: Vec<u32>,
    previous: Vec<u32>,
    middle: u32,
    len: usize,
}

impl List {
    /// Removes the element at `rank`; the middle stays the lower median.
    fn remove(&mut self, rank: u32) {
        let (before, after) = (self.previous[rank as usize], self.next[rank as usize]);
        if self.len % 2 == 1 {
            if rank >= self.middle {
                self.middle = self.previous[self.middle as usize];
            }
        } else if rank <= self.middle {
            self.middle = self.next[self.middle as usize];
        }
        self.next[before as usize] = after;
        self.previous[after as usize] = before;
        self.len -= 1;
    }
}

impl<'a> Medians<'a> {
    fn new(values: &'a [f64]) -> Self {
        let n = values.len();
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
        let mut rank = vec![0; n];
        let mut sorted = vec![0.0; n + 2];
        for (place, &index) in (1_u32..).zip(&order) {
            rank[index as usize] = place;
            sorted[place as usize] = values[index as usize];
        }
        let end = n as u32 + 1;
        let list = List {
            next: (1..=end + 1).map(|place| place.min(end)).collect(),
            previous: (0..=end).map(|place| place.saturating_sub(1)).collect(),
            middle: (n as u32).div_ceil(2),
            len: n,
        };
        Self {
            values,
            rank,
            sorted,
            scratch: list.clone(),
            list,
        }
    }

    fn drop_first(&mut self, index: usize) {
        self.list.remove(self.rank[index]);
    }

    /// Calls `visit(s, median of t .. s)` for s from n down to t + `shortest`; elements before t must be dropped.
    fn each_prefix(&mut self, t: usize, shortest: usize, mut visit: impl FnMut(usize, f64)) {
        self.scratch.next.clone_from(&self.list.next);
        self.scratch.previous.clone_from(&self.list.previous);
        (self.scratch.middle, self.scratch.len) = (self.list.middle, self.list.len);
        let list = &mut self.scratch;
        for s in (t + shortest..=self.values.len()).rev() {
            let low = self.sorted[list.middle as usize];
            let median = match list.len % 2 {
                1 => low,
                _ => 0.5 * (low + self.sorted[list.next[list.middle as usize] as usize]),
            };
            visit(s, median);
            list.remove(self.rank[s - 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same programme with medians taken anew each time.
    fn plain(values: &[f64], options: &Options) -> Vec<usize> {
        let (n, min) = (values.len(), options.min_segment);
        let (mut best, mut previous, mut count) =
            (vec![0.0; n + 1], vec![0; n + 1], vec![0_u32; n + 1]);
        for s in 2 * min..=n {
            for t in min..=s - min {
                let start: usize = previous[t];
                let left = median_of(&mut values[start..t].to_vec());
                let right = median_of(&mut values[t..s].to_vec());
                let weight = ((t - start) as f64 / (s - start) as f64)
                    * ((s - t) as f64 / (s - start) as f64);
                let total: f64 = best[t] + weight * (left - right) * (left - right);
                if total > best[s] {
                    (best[s], previous[s], count[s]) = (total, t, count[t] + 1);
                }
            }
            let before = previous[s];
            if before > 0
                && best[s] - best[before]
                    < options.percent * price(options.degree, count[before]) * best[before]
            {
                (best[s], count[s], previous[s]) = (best[before], count[before], previous[before]);
            }
        }
        let (mut found, mut at) = (Vec::new(), n);
        while previous[at] > 0 {
            at = previous[at];
            found.push(at);
        }
        found.reverse();
        found
    }

    proptest::proptest! {
        #[test]
        fn linked_medians_give_the_plain_programme(
            values in proptest::collection::vec(-5_i32..5, 4..60),
            min_segment in 2_usize..6,
            degree in 0_u32..3,
            percent in 0.0..1.0_f64,
        ) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let options = Options { min_segment, percent, degree };
            proptest::prop_assert_eq!(change_points(&values, &options).unwrap(), plain(&values, &options));
        }
    }

    #[test]
    fn finds_the_levels_of_a_clean_series() {
        let values: Vec<f64> = (0..300)
            .map(|i| f64::from(i % 7) + if i < 100 { 0.0 } else { 20.0 })
            .collect();
        // Medians do not mind a few foreign readings, so the published position leans towards the middle.
        let found = change_points(&values, &Options::default()).unwrap();
        assert!(
            matches!(found[..], [at] if at.abs_diff(100) <= 50),
            "{found:?}"
        );
    }
}
