//! Where the level of a series changes: robust to spikes, honest about correlated noise, incremental.
//!
//! 1. Readings are cut to a local median +- 4 robust deviations (`cleaning`), so spikes cannot pose as shifts.
//! 2. Seeded intervals (Kovacs, Buhlmann, Li and Munk 2023, "Seeded binary segmentation", Biometrika), a fixed
//!    set of O(n / min_segment) overlapping intervals of geometrically growing length, each give the position of
//!    the largest contrast of means inside; all are evaluated as readings arrive, in O(1) amortised time a scale.
//! 3. The positions are merged bottom-up, least gain first (as in tail-greedy segmentation, Fryzlewicz 2018),
//!    which gives nested models with ever fewer changes. Each is scored by the likelihood of an autoregression
//!    for the noise that remains, with a price per change (Schwarz criterion for changes in autoregressive noise:
//!    Cho and Fryzlewicz 2024, "Multiple change point detection under serial dependence"). Correlated noise is
//!    thus explained by the autoregression, not by changes.
//! 4. What is left must stand out from the long-run variance, else it goes too.

mod cleaning;
mod ordered;
mod selection;
mod sharpen;
mod short_term;
mod sums;

use crate::error::{Error, Result, check_values};
use cleaning::{BLOCK, Cleaner};
use short_term::ShortTerm;
use sums::Sums;

/// The shortest segment by default: EDM's in the released Pilot.
pub const MIN_SEGMENT: usize = 30;
/// Candidate positions tried in a long interval before refining around the best.
const GRID: usize = 128;

/// A position where the level changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Index of the first reading of the new level.
    pub index: usize,
    /// Squared contrast of the levels on both sides in long-run standard errors.
    pub strength: f64,
}

/// The best split of one seeded interval.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    at: usize,
    gain: f64,
}

/// One length of seeded intervals and where its next one ends.
#[derive(Clone, Copy, Debug)]
struct Scale {
    length: usize,
    step: usize,
    next_start: usize,
}

/// Takes readings one by one and knows the change points so far.
#[derive(Clone, Debug)]
pub struct ChangePointDetector {
    min_segment: usize,
    values: Vec<f64>,
    cleaner: Cleaner,
    sums: Sums,
    short_term: ShortTerm,
    scales: Vec<Scale>,
    /// The length at which the next seeded interval is complete.
    next_due: usize,
    candidates: Vec<Candidate>,
    answer: Vec<ChangePoint>,
    /// How many cleaned readings the answer is about.
    answered_at: usize,
}

impl ChangePointDetector {
    /// A detector of segments of at least `min_segment` readings (2 or more).
    pub fn new(min_segment: usize) -> Result<Self> {
        if !(2..=usize::MAX / 4).contains(&min_segment) {
            return Err(Error::new("min_segment", min_segment, "2 or more readings"));
        }
        Ok(Self {
            min_segment,
            values: Vec::new(),
            cleaner: Cleaner::default(),
            sums: Sums::default(),
            short_term: ShortTerm::default(),
            scales: vec![Scale {
                length: 2 * min_segment,
                step: min_segment,
                next_start: 0,
            }],
            next_due: 2 * min_segment,
            candidates: Vec::new(),
            answer: Vec::new(),
            answered_at: 0,
        })
    }

    /// Number of readings so far.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no reading yet.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The readings so far.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Takes the next reading.
    pub fn push(&mut self, value: f64) -> Result<()> {
        check_values("value", &[value], 1)?;
        self.values.push(value);
        if self.values.len().is_multiple_of(BLOCK) {
            self.clean();
        }
        Ok(())
    }

    /// Takes further readings, which are known to be finite.
    fn extend(&mut self, values: &[f64]) {
        self.values.extend_from_slice(values);
        self.clean();
    }

    /// Cleans all blocks that are complete and have a complete one after them.
    fn clean(&mut self) {
        let mut cleaner = std::mem::take(&mut self.cleaner);
        let values = std::mem::take(&mut self.values);
        while cleaner.has_next(&values) {
            cleaner.clean_next(&values, |cleaned, reach| self.take(cleaned, reach));
        }
        (self.cleaner, self.values) = (cleaner, values);
    }

    fn take(&mut self, cleaned: f64, reach: f64) {
        self.short_term.push(cleaned, reach);
        self.sums.push(cleaned);
        if self.sums.len() == self.next_due {
            self.evaluate_due();
        }
    }

    /// Evaluates the seeded intervals that end here.
    fn evaluate_due(&mut self) {
        let n = self.sums.len();
        if self.scales[self.scales.len() - 1].length == n {
            self.add_scale();
        }
        self.next_due = usize::MAX;
        for index in 0..self.scales.len() {
            let scale = self.scales[index];
            if scale.next_start + scale.length == n {
                self.candidates.push(self.best_split(scale.next_start, n));
                self.scales[index].next_start += scale.step;
            }
            self.next_due = self
                .next_due
                .min(self.scales[index].next_start + scale.length);
        }
    }

    /// Lengths grow by sqrt(2) from two segments on; neighbours overlap by half.
    fn add_scale(&mut self) {
        let last = self.scales[self.scales.len() - 1].length;
        let length = (last as f64 * std::f64::consts::SQRT_2).ceil() as usize;
        self.scales.push(Scale {
            length,
            step: length / 2,
            next_start: 0,
        });
    }

    /// The split of [start, end) with the largest gain, sides at least `min_segment` long.
    fn best_split(&self, start: usize, end: usize) -> Candidate {
        let (mut first, mut last) = (start + self.min_segment, end - self.min_segment);
        loop {
            let stride = ((last - first) / GRID).max(1);
            let (at, gain) = self.sums.best_gain((start, end), (first, last), stride);
            if stride == 1 {
                return Candidate { at, gain };
            }
            first = at.saturating_sub(stride).max(start + self.min_segment);
            last = (at + stride).min(end - self.min_segment);
        }
    }

    /// The change points of the readings so far, in order of position.
    ///
    /// The last 10 to 19 readings are not considered yet: a block is cleaned when the next one is complete. The
    /// answer is kept until then, so that asking after every reading costs next to nothing.
    pub fn change_points(&mut self) -> &[ChangePoint] {
        if self.answered_at != self.sums.len() {
            self.answered_at = self.sums.len();
            self.answer = self.sharpened(self.selected());
        }
        &self.answer
    }

    fn selected(&self) -> Vec<ChangePoint> {
        let n = self.sums.len();
        if n < 2 * self.min_segment {
            return Vec::new();
        }
        // Seeded intervals end where they were seeded; these end at the newest reading.
        let lengths = self
            .scales
            .iter()
            .map(|scale| scale.length)
            .take_while(|&length| length <= n);
        let latest: Vec<Candidate> = lengths
            .chain([n])
            .map(|length| self.best_split(n - length, n))
            .collect();
        let candidates = self.candidates.iter().chain(&latest);
        let variance_min = self.short_term.long_run_variance();
        selection::select(&self.sums, candidates, self.min_segment, variance_min)
    }

    /// Positions moved, by a block at most, to where the readings themselves change sides.
    fn sharpened(&self, mut found: Vec<ChangePoint>) -> Vec<ChangePoint> {
        let n = self.sums.len();
        for index in 0..found.len() {
            let start = if index == 0 {
                0
            } else {
                found[index - 1].index
            };
            let end = found.get(index + 1).map_or(n, |next| next.index);
            let at = found[index].index - start;
            found[index].index = start + sharpen::sharpen(&self.values[start..end], at);
        }
        found
    }
}

/// The change points of a whole series.
pub fn change_points(values: &[f64], min_segment: usize) -> Result<Vec<ChangePoint>> {
    check_values("values", values, 1)?;
    let mut detector = ChangePointDetector::new(min_segment)?;
    detector.sums.reserve(values.len());
    detector.extend(values);
    Ok(detector.change_points().to_vec())
}
