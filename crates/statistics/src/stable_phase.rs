//! Which readings belong to the stable phase, and why the others do not.
//!
//! The published rule: the longest segment between changes, if it holds more than half of the readings (ASCAR
//! thesis, section 4.2.1). What lies before it is the warm-up, what lies after it the cool-down. Two parts of them
//! that the rule leaves inside are removed as well: the tail of a warm-up that fades too slowly to be told from
//! noise, and a warm-up shorter than a segment may be. Where the last level holds less than half of the readings, all
//! before it may still be one long warm-up. What then remains of a warm-up is judged by [`crate::tail`]. And a level that keeps going up and down all the time (a
//! garbage collector, a journal) is a property of the load, not a phase of it.
//!
//! Cool-downs are found as warm-ups of the series read backwards.

use crate::mean_interval::{CorrelatedMean, READINGS_MIN};
use crate::moments::{mean, median_of};
use crate::tail::{Tail, tail};

/// Why a stretch of readings does not belong to the stable phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Another level than the stable phase's.
    Level,
    /// Next to another level, and still leaning towards it.
    Settling,
    /// At an end of the series, short, and unlike all other stretches of its length.
    Edge,
}

/// A part of the warm-up or of the cool-down: the stretch [start, end).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Index of its first reading.
    pub start: usize,
    /// Index after its last reading.
    pub end: usize,
    /// Why it was removed.
    pub why: Why,
}

/// The stable phase [start, end) of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct StablePhase {
    /// Index of the first stable reading.
    pub start: usize,
    /// Index after the last stable reading.
    pub end: usize,
    /// Whether there is a stable phase; if not, start and end are the whole series.
    pub found: bool,
    /// Readings in the longest segment between changes.
    pub longest: usize,
    /// What may remain of a warm-up moves the mean by too much: the series is not steady yet.
    pub unsteady: bool,
    /// What may remain of a warm-up moves the mean by up to so much, negative where the warm-up lies below.
    pub bias: f64,
    /// What was removed, in order.
    pub removed: Vec<Removed>,
}

/// Next to a change as much as this many times what is already known of the warm-up may belong to its tail: what is
/// left of a warm-up that fades exponentially is after as long again the square of what it was.
const TAIL_OF_WARM_UP: f64 = 1.0;
/// ... but no more than this share of the stable segment. Half of both leaves 92% coverage after exponential
/// warm-ups in AR(1) noise, these 93-95% for intervals that are 2% wider (`benchmarks/pilot_coverage.py`).
const TAIL_OF_SEGMENT: f64 = 0.2;
/// Standard errors by which readings next to a change may lean towards the other level: what is left inside
/// then moves the mean by a quarter of its standard error at most.
const LEAN: f64 = 0.7;
/// The last level may hold less than half of the readings, but this share, where all before it is warm-up.
const LAST_MIN: f64 = 0.4;
/// ... and it must have lasted this many times as long as every level before it. Where steps come after like times, or
/// after times that double, the next one may be due: then the readings are not steady yet.
const LAST_OVER_EARLIER: usize = 2;
/// Levels that cross the overall mean this often recur.
const CROSSINGS: usize = 10;
/// Windows of up to this many readings at an end are examined; longer warm-ups are changes of level.
const EDGE_MAX: usize = 48;
const EDGE_ROUNDS_MAX: usize = 3;

/// The longest of the segments between changes of level.
pub fn longest_segment(n: usize, changes: &[usize]) -> (usize, usize) {
    let boundaries: Vec<usize> = std::iter::once(0)
        .chain(changes.iter().copied())
        .chain(std::iter::once(n))
        .collect();
    let mut longest = (0, 0);
    for pair in boundaries.windows(2) {
        if pair[1] - pair[0] > longest.1 - longest.0 {
            longest = (pair[0], pair[1]);
        }
    }
    longest
}

/// The published rule alone: the longest segment if it is dominant.
pub fn dominant_segment(n: usize, changes: &[usize]) -> StablePhase {
    let (start, end) = longest_segment(n, changes);
    let longest = end - start;
    if 2 * longest <= n {
        return StablePhase {
            start: 0,
            end: n,
            found: false,
            longest,
            unsteady: false,
            bias: 0.0,
            removed: Vec::new(),
        };
    }
    let mut removed = Vec::new();
    for (start, end) in [(0, start), (end, n)] {
        if start < end {
            removed.push(Removed {
                start,
                end,
                why: Why::Level,
            });
        }
    }
    StablePhase {
        start,
        end,
        found: true,
        longest,
        unsteady: false,
        bias: 0.0,
        removed,
    }
}

/// The stable phase of a series whose changes of level are known.
pub fn stable_phase(values: &[f64], changes: &[usize]) -> StablePhase {
    let n = values.len();
    let mut phase = dominant_segment(n, changes);
    if !phase.found {
        phase.found = recurring(values, changes);
        if phase.found || !phase.take_last(values.len(), changes) {
            return phase;
        }
    }
    let mut reversed: Vec<f64> = values[phase.start..phase.end].to_vec();
    reversed.reverse();
    let before = (phase.start > 0).then(|| {
        adjacent(
            changes,
            phase.start,
            |&index| index < phase.start,
            0,
            values,
        )
    });
    let after = (phase.end < n)
        .then(|| adjacent(changes, phase.end, |&index| index > phase.end, n, values));
    let warm_up = before.map_or(0, |level| {
        warm_up_tail(&values[phase.start..phase.end], level, phase.start)
    });
    let cool_down = after.map_or(0, |level| warm_up_tail(&reversed, level, n - phase.end));
    let known = phase.start;
    phase.cut(warm_up, cool_down, Why::Settling);
    let segment = &values[phase.start..phase.end];
    let short_warm_up = short_warm_ups(segment);
    let short_cool_down = short_warm_ups(&reversed[cool_down..cool_down + segment.len()]);
    phase.cut(short_warm_up, short_cool_down, Why::Edge);
    let before = changes.partition_point(|&index| index <= known);
    match tail(&values[..phase.end], &changes[..before]) {
        Tail::None => {}
        Tail::Unsteady => phase.unsteady = true,
        Tail::Until { cut, bias } => {
            phase.bias = bias;
            phase.cut(cut.saturating_sub(phase.start), 0, Why::Settling);
        }
    }
    phase.removed.sort_unstable_by_key(|stretch| stretch.start);
    phase
}

impl StablePhase {
    /// Takes the last level of a series of n readings for the stable phase, if it is long enough.
    fn take_last(&mut self, n: usize, changes: &[usize]) -> bool {
        let start = changes.last().copied().unwrap_or(0);
        let (first, end) = longest_segment(start, &changes[..changes.len().saturating_sub(1)]);
        let is_long = (n - start) as f64 >= LAST_MIN * n as f64;
        if !is_long || n - start < LAST_OVER_EARLIER * (end - first) {
            return false;
        }
        (self.start, self.found) = (start, true);
        self.removed.push(Removed {
            start: 0,
            end: start,
            why: Why::Level,
        });
        true
    }

    /// Removes so many further readings as warm-up and as cool-down.
    fn cut(&mut self, warm_up: usize, cool_down: usize, why: Why) {
        if warm_up > 0 {
            self.removed.push(Removed {
                start: self.start,
                end: self.start + warm_up,
                why,
            });
            self.start += warm_up;
        }
        if cool_down > 0 {
            self.removed.push(Removed {
                start: self.end - cool_down,
                end: self.end,
                why,
            });
            self.end -= cool_down;
        }
    }
}

/// The mean level of the segment next to the boundary `at`, on the far side.
fn adjacent(
    changes: &[usize],
    at: usize,
    beyond: impl Fn(&usize) -> bool,
    end: usize,
    values: &[f64],
) -> f64 {
    let mut others = changes.iter().copied().filter(|index| beyond(index));
    if end == 0 {
        mean(&values[others.next_back().unwrap_or(0)..at])
    } else {
        mean(&values[at..others.next().unwrap_or(end)])
    }
}

/// Whether the levels go up and down through the mean again and again.
fn recurring(values: &[f64], changes: &[usize]) -> bool {
    let center = mean(values);
    let mut boundaries = vec![0];
    boundaries.extend_from_slice(changes);
    boundaries.push(values.len());
    let above: Vec<bool> = boundaries
        .windows(2)
        .map(|pair| mean(&values[pair[0]..pair[1]]) > center)
        .collect();
    above.windows(2).filter(|pair| pair[0] != pair[1]).count() >= CROSSINGS
}

/// How many readings at the beginning are the tail of the warm-up: they still lean towards the level before them.
///
/// Either none or the whole margin: where the first quarter, half or all of the margin deviates from the rest by
/// more than [`LEAN`] standard errors in that direction.
fn warm_up_tail(segment: &[f64], level_before: f64, known: usize) -> usize {
    let n = segment.len();
    let margin = (TAIL_OF_WARM_UP * known as f64).min(TAIL_OF_SEGMENT * n as f64) as usize;
    if margin == 0 || n < READINGS_MIN {
        return 0;
    }
    let Ok(whole) = CorrelatedMean::of(&segment[margin..]) else {
        return 0;
    };
    let rest = whole.mean();
    let direction = (level_before - rest).signum();
    let leans = [margin / 4, margin / 2, margin]
        .into_iter()
        .filter(|&width| width > 0)
        .any(|width| {
            let lean = direction * (mean(&segment[..width]) - rest);
            lean > LEAN * (whole.long_run_variance() / width as f64).sqrt()
        });
    if leans { margin } else { 0 }
}

/// [`short_warm_up`] until nothing unusual is left, for the widths tried leave gaps.
fn short_warm_ups(values: &[f64]) -> usize {
    let mut removed = 0;
    for _ in 0..EDGE_ROUNDS_MAX {
        let found = short_warm_up(&values[removed..]);
        if found == 0 {
            break;
        }
        removed += found;
    }
    removed
}

/// How many readings at the beginning are unlike all others: a warm-up too short to be a segment.
///
/// The median of the first w readings is compared with those of all other windows of w readings: autocorrelation,
/// skewness and periodic spikes affect all alike. The window goes if its distance from the overall median is
/// larger than that of every other window, by a factor that grows as windows get fewer.
fn short_warm_up(values: &[f64]) -> usize {
    let n = values.len();
    let (shortest, longest) = match n {
        0..12 => return 0,
        12..60 => (1, n / 5),
        _ => (3, (n / 8).min(EDGE_MAX)),
    };
    let center = median_of(&mut values.to_vec());
    let mut unusual = 0;
    let mut width = shortest;
    let mut window = Vec::with_capacity(EDGE_MAX);
    while width <= longest {
        let mut distance = |chunk: &[f64]| {
            window.clear();
            window.extend_from_slice(chunk);
            (median_of(&mut window) - center).abs()
        };
        let edge = distance(&values[..width]);
        let others = n / width - 1;
        let factor = 1.0 + 8.0 / others as f64;
        let farthest = values[width..]
            .chunks_exact(width)
            .map(distance)
            .fold(0.0, f64::max);
        if edge > factor * farthest {
            unusual = width;
        }
        width = (width + 1).max(width * 4 / 3);
    }
    unusual
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Levels with a little noise, one after the other: their lengths and heights.
    fn stairs(steps: &[(usize, f64)]) -> (Vec<f64>, Vec<usize>) {
        let mut values = Vec::new();
        let mut changes = Vec::new();
        for &(length, height) in steps {
            changes.push(values.len());
            let noise = |at: usize| ((at * 7919 + 13) % 101) as f64 / 101.0 - 0.5;
            values.extend((0..length).map(|at| height + noise(at)));
        }
        changes.remove(0);
        (values, changes)
    }

    fn found(steps: &[(usize, f64)]) -> bool {
        let (values, changes) = stairs(steps);
        stable_phase(&values, &changes).found
    }

    #[test]
    fn a_last_level_below_half_is_steady_where_it_has_outlasted_the_others_twice() {
        assert!(found(&[(180, 0.0), (170, 6.0), (170, 9.0), (480, 10.0)]));
        assert!(!found(&[(180, 0.0), (170, 6.0), (260, 9.0), (390, 10.0)])); // below 40%
    }

    #[test]
    fn where_the_next_step_may_be_due_nothing_is_steady() {
        assert!(!found(&[(280, 0.0), (270, 6.0), (450, 9.0)]));
        assert!(!found(&[(70, 0.0), (150, 4.0), (300, 7.0), (480, 9.0)])); // as lengths that double
        assert!(!found(&[(500, 0.0), (500, 9.0)]));
    }

    #[test]
    fn more_than_half_is_steady_as_published() {
        assert!(found(&[(280, 0.0), (200, 6.0), (520, 9.0)]));
    }
}
