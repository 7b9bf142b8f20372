//! Which readings belong to the stable phase, and why the others do not.
//!
//! The published rule: the longest segment between changes, if it holds more than half of the readings (ASCAR
//! thesis, section 4.2.1). Two things that rule leaves inside are removed as well: the tail of a transient that
//! fades too slowly to be told from noise, and a transient shorter than a segment may be.

use crate::change_points::ChangePoint;
use crate::moments::median_of;

/// A stretch [start, end) of readings and what else was found on the way to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StablePhase {
    /// Index of the first stable reading.
    pub start: usize,
    /// Index after the last stable reading.
    pub end: usize,
    /// Whether the longest segment holds more than half of the readings; if not, the phase is the whole series.
    pub dominant: bool,
    /// Readings in the longest segment between changes.
    pub longest: usize,
}

/// After a change this share of the unstable stretch is given up too: a transient that fades exponentially and
/// was seen over several of its time constants has then lost most of what was left.
const MARGIN_OF_TRANSIENT: f64 = 0.5;
/// ... but no more than this share of the stable segment.
const MARGIN_OF_SEGMENT: f64 = 0.1;
/// Edge windows up to two minimum segments are examined; longer transients are changes of level.
const EDGE_MAX: usize = 48;
const EDGE_ROUNDS_MAX: usize = 3;

/// The stable phase of a series whose changes of level are known.
pub fn stable_phase(values: &[f64], changes: &[ChangePoint]) -> StablePhase {
    let n = values.len();
    let mut boundaries = vec![0];
    boundaries.extend(changes.iter().map(|change| change.index));
    boundaries.push(n);
    let (mut start, mut end) = (0, 0);
    for pair in boundaries.windows(2) {
        if pair[1] - pair[0] > end - start {
            (start, end) = (pair[0], pair[1]);
        }
    }
    let longest = end - start;
    if 2 * longest <= n {
        return StablePhase {
            start: 0,
            end: n,
            dominant: false,
            longest,
        };
    }
    let margin = |unstable: usize| {
        (MARGIN_OF_TRANSIENT * unstable as f64).min(MARGIN_OF_SEGMENT * longest as f64) as usize
    };
    let (front, back) = (margin(start), margin(n - end));
    start += front;
    end -= back;
    let segment = &values[start..end];
    let reversed: Vec<f64> = segment.iter().rev().copied().collect();
    let (front, back) = (unusual_edges(segment), unusual_edges(&reversed));
    StablePhase {
        start: start + front,
        end: end - back,
        dominant: true,
        longest,
    }
}

/// [`unusual_edge`] until nothing unusual is left, for the widths tried leave gaps.
fn unusual_edges(values: &[f64]) -> usize {
    let mut removed = 0;
    for _ in 0..EDGE_ROUNDS_MAX {
        let found = unusual_edge(&values[removed..]);
        if found == 0 {
            break;
        }
        removed += found;
    }
    removed
}

/// How many readings at the beginning are unlike all others: a transient too short to be a segment.
///
/// The median of the first w readings is compared with those of all other windows of w readings: autocorrelation,
/// skewness and periodic spikes affect all alike. The window goes if its distance from the overall median is
/// larger than that of every other window, by a factor that grows as windows get fewer.
fn unusual_edge(values: &[f64]) -> usize {
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
