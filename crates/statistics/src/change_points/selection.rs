//! From many candidate positions to the few that the data pay for.

use std::cmp::Ordering;
use std::collections::{BTreeSet, BinaryHeap};

use super::sums::{LAGS, Sums};
use super::{Candidate, ChangePoint};
use crate::autoregression::{Autoregression, yule_walker};

/// Candidates must gain this many ln n short-term variances: generous, for the model choice comes after.
const CANDIDATE_PRICE: f64 = 1.5;
/// Price of one change in the criterion, times ln n: its level, its size and its position. By simulation at most
/// 2% of stationary series (AR(1) up to 0.9, log-normal, Pareto, periodic spikes; 500 to 6,000 readings) are split.
const CHANGE_PRICE: f64 = 3.0;
/// A change must have a gain of this many ln n long-run variances at the end.
const FINAL_PRICE: f64 = 2.5;

pub(super) fn select<'a>(
    sums: &Sums,
    candidates: impl Iterator<Item = &'a Candidate>,
    min_segment: usize,
    variance_min: f64,
) -> Vec<ChangePoint> {
    let n = sums.len();
    let threshold = CANDIDATE_PRICE * (n as f64).ln() * variance_min;
    let spaced = spaced_positions(candidates, threshold, min_segment);
    if spaced.is_empty() {
        return Vec::new();
    }
    let positions = Path::new(sums, &spaced).cheapest();
    let positions = refine(sums, positions, min_segment);
    prune(sums, positions, min_segment)
}

/// Positions above the threshold, strongest first, none within `min_segment` of a stronger one or an end.
fn spaced_positions<'a>(
    candidates: impl Iterator<Item = &'a Candidate>,
    threshold: f64,
    min_segment: usize,
) -> Vec<usize> {
    let mut strong: Vec<Candidate> = candidates
        .filter(|candidate| candidate.gain > threshold)
        .copied()
        .collect();
    strong.sort_unstable_by(|a, b| b.gain.total_cmp(&a.gain).then(a.at.cmp(&b.at)));
    let mut taken = BTreeSet::new();
    for candidate in strong {
        let near = (candidate.at + 1).saturating_sub(min_segment)..candidate.at + min_segment;
        if taken.range(near).next().is_none() {
            taken.insert(candidate.at);
        }
    }
    taken.into_iter().collect()
}

/// A merge waiting in the queue: the boundary that goes, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Merge {
    cost: f64,
    boundary: usize,
    left: usize,
    right: usize,
}

impl Eq for Merge {}

impl Ord for Merge {
    fn cmp(&self, other: &Self) -> Ordering {
        // Cheapest first out of a max-heap.
        other
            .cost
            .total_cmp(&self.cost)
            .then(other.boundary.cmp(&self.boundary))
    }
}

impl PartialOrd for Merge {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Nested segmentations from all positions down to none.
struct Path<'a> {
    sums: &'a Sums,
    /// Boundaries including 0 and n.
    boundaries: Vec<usize>,
    previous: Vec<usize>,
    next: Vec<usize>,
    lagged: [(f64, f64); LAGS + 1],
    floor: f64,
}

impl<'a> Path<'a> {
    fn new(sums: &'a Sums, positions: &[usize]) -> Self {
        let n = sums.len();
        let mut boundaries = Vec::with_capacity(positions.len() + 2);
        boundaries.push(0);
        boundaries.extend_from_slice(positions);
        boundaries.push(n);
        let count = boundaries.len();
        let mut lagged = [(0.0, 0.0); LAGS + 1];
        for pair in boundaries.windows(2) {
            add(&mut lagged, &sums.lagged(pair[0], pair[1]), 1.0);
        }
        let floor = 1e-12 * sums.lagged(0, n)[0].0 / n as f64;
        Self {
            sums,
            boundaries,
            previous: (0..count).map(|index| index.wrapping_sub(1)).collect(),
            next: (1..=count).collect(),
            lagged,
            floor,
        }
    }

    fn merge_at(&self, index: usize) -> Merge {
        let (left, right) = (self.previous[index], self.next[index]);
        let cost = self.sums.gain(
            self.boundaries[left],
            self.boundaries[index],
            self.boundaries[right],
        );
        Merge {
            cost,
            boundary: index,
            left,
            right,
        }
    }

    /// Merges down to nothing and keeps the segmentation with the smallest criterion.
    fn cheapest(mut self) -> Vec<usize> {
        let n = self.sums.len();
        let inner = self.boundaries.len() - 2;
        let mut heap: BinaryHeap<Merge> = (1..=inner).map(|index| self.merge_at(index)).collect();
        let mut alive = inner;
        let mut best = self.criterion(alive);
        let mut best_removed = 0;
        let mut removed = Vec::with_capacity(inner);
        while let Some(merge) = heap.pop() {
            let index = merge.boundary;
            if self.next[index] == 0
                || self.previous[index] != merge.left
                || self.next[index] != merge.right
            {
                continue;
            }
            let (left, at, right) = (
                self.boundaries[merge.left],
                self.boundaries[index],
                self.boundaries[merge.right],
            );
            add(&mut self.lagged, &self.sums.lagged(left, at), -1.0);
            add(&mut self.lagged, &self.sums.lagged(at, right), -1.0);
            add(&mut self.lagged, &self.sums.lagged(left, right), 1.0);
            self.next[merge.left] = merge.right;
            self.previous[merge.right] = merge.left;
            self.next[index] = 0;
            removed.push(index);
            alive -= 1;
            let criterion = self.criterion(alive);
            if criterion <= best {
                best = criterion;
                best_removed = removed.len();
            }
            for neighbour in [merge.left, merge.right] {
                if neighbour > 0 && self.boundaries[neighbour] < n {
                    heap.push(self.merge_at(neighbour));
                }
            }
        }
        let gone: BTreeSet<usize> = removed[..best_removed].iter().copied().collect();
        (1..=inner)
            .filter(|index| !gone.contains(index))
            .map(|index| self.boundaries[index])
            .collect()
    }

    fn criterion(&self, changes: usize) -> f64 {
        let n = self.sums.len();
        noise(&self.lagged, self.floor, n).criterion
            + CHANGE_PRICE * changes as f64 * (n as f64).ln()
    }
}

fn add(into: &mut [(f64, f64); LAGS + 1], segment: &[(f64, f64); LAGS + 1], sign: f64) {
    for (total, part) in into.iter_mut().zip(segment) {
        total.0 += sign * part.0;
        total.1 += sign * part.1;
    }
}

/// The autoregression of the noise within segments.
fn noise(lagged: &[(f64, f64); LAGS + 1], floor: f64, n: usize) -> Autoregression {
    let mut autocovariances = [0.0; LAGS + 1];
    for (slot, (sum, terms)) in autocovariances.iter_mut().zip(lagged) {
        *slot = if *terms > 0.0 { sum / terms } else { 0.0 };
    }
    autocovariances[0] = autocovariances[0].max(floor).max(f64::MIN_POSITIVE);
    yule_walker(&autocovariances, n)
}

/// Each position moved to the best split between its neighbours.
fn refine(sums: &Sums, mut positions: Vec<usize>, min_segment: usize) -> Vec<usize> {
    for index in 0..positions.len() {
        let start = if index == 0 { 0 } else { positions[index - 1] };
        let end = positions.get(index + 1).copied().unwrap_or(sums.len());
        let here = positions[index];
        let reach = 2 * min_segment;
        let first = here.saturating_sub(reach).max(start + min_segment);
        let last = (here + reach).min(end.saturating_sub(min_segment));
        let mut best = (sums.gain(start, here, end), here);
        for at in first..=last {
            let gain = sums.gain(start, at, end);
            if gain > best.0 {
                best = (gain, at);
            }
        }
        positions[index] = best.1;
    }
    positions
}

/// Removes weak changes until all stand out from the long-run variance.
fn prune(sums: &Sums, mut positions: Vec<usize>, min_segment: usize) -> Vec<ChangePoint> {
    let n = sums.len();
    loop {
        let mut boundaries = vec![0];
        boundaries.extend_from_slice(&positions);
        boundaries.push(n);
        let mut lagged = [(0.0, 0.0); LAGS + 1];
        for pair in boundaries.windows(2) {
            add(&mut lagged, &sums.lagged(pair[0], pair[1]), 1.0);
        }
        let floor = 1e-12 * sums.lagged(0, n)[0].0 / n as f64;
        let variance = noise(&lagged, floor, n)
            .long_run_variance()
            .max(f64::MIN_POSITIVE);
        let found: Vec<ChangePoint> = boundaries
            .windows(3)
            .map(|three| ChangePoint {
                index: three[1],
                strength: sums.gain(three[0], three[1], three[2]) / variance,
            })
            .collect();
        let removable = removable(&found, FINAL_PRICE * (n as f64).ln());
        if removable.is_empty() {
            return found;
        }
        positions.retain(|position| !removable.contains(position));
        positions = refine(sums, positions, min_segment);
    }
}

/// Changes below the threshold and no stronger than their neighbours: each may go without the others' leave.
fn removable(found: &[ChangePoint], threshold: f64) -> BTreeSet<usize> {
    // Of equal ones every second or so goes first: low bits of the index decide.
    let key = |change: &ChangePoint| (change.strength, change.index.reverse_bits());
    let stronger = |other: Option<&ChangePoint>, change: &ChangePoint| {
        other.is_none_or(|other| key(other) > key(change))
    };
    (0..found.len())
        .filter(|&at| found[at].strength < threshold)
        .filter(|&at| stronger(at.checked_sub(1).map(|before| &found[before]), &found[at]))
        .filter(|&at| stronger(found.get(at + 1), &found[at]))
        .map(|at| found[at].index)
        .collect()
}
