//! Work units that differ: in how much work they are, in their kind, or in both.
//!
//! The thesis expects work units to be homogeneous and leaves others as future work (section 4.2). Readings of reads and
//! writes, or of requests of 4 KiB and 1 MiB, have no common level: a run that reads first and writes then has a change
//! point that is no warm-up, and the mean depends on who was asked how often. Here a unit has a *kind* and an amount of
//! *work*:
//!
//! - The mean is R = sum_k p_k mu_k, where mu_k = sum w_i x_i / sum w_i over the stable units of kind k, and p_k is the
//!   kind's share of the work. Of speeds, whose reciprocals are averaged, that is all work over all time.
//! - Phases are looked for in readings over the median of their kind.
//! - The interval is that of the linearized readings y_i = R + p_k n (w_i / W_k) (x_i - mu_k) sqrt(n_k / (n_k - 1)), whose
//!   mean is R and whose spread is that of R (post-stratified ratio estimator: Cochran 1977, "Sampling Techniques",
//!   sections 5A.9 and 6.3). They are as correlated in time as the readings are, so every rule for correlated readings
//!   holds for them.

use std::collections::BTreeMap;

use crate::indicator::{Indicator, Kind};
use crate::round::Round;
use crate::{Error, Result};

/// More kinds than anyone tells apart.
pub const KINDS_MAX: usize = 1000;
const WORK_MAX: f64 = 1e100;

/// What the units of a series of unit readings are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Units {
    /// The kind of each unit, a number of the caller's; empty: all are of one.
    pub kinds: Vec<u32>,
    /// The work of each unit, above 0; empty: each is the same.
    pub work: Vec<f64>,
}

impl Units {
    /// Whether nothing tells the units apart.
    pub fn alike(&self) -> bool {
        self.kinds.is_empty() && self.work.is_empty()
    }

    /// Refuses units that do not belong to an indicator's unit readings.
    pub fn check(&self, indicator: &Indicator, round: &Round, index: usize) -> Result<()> {
        if self.alike() {
            return Ok(());
        }
        let name = &indicator.name;
        if indicator.kind == Kind::Binary {
            let value = format!("of {name} that differ");
            return Err(Error::new("units", value, "alike, as its kind is binary"));
        }
        let readings = round.unit_readings.get(index).map_or(0, Vec::len);
        for (what, count) in [("kinds", self.kinds.len()), ("work", self.work.len())] {
            if count != 0 && count != readings {
                let value = format!("{what} of {count} units for {readings} readings of {name}");
                return Err(Error::new("units", value, "one for each reading"));
            }
        }
        let fits = |&&work: &&f64| !(work > 0.0 && work <= WORK_MAX);
        if let Some(work) = self.work.iter().find(fits) {
            let value = format!("of work {work} of {name}");
            return Err(Error::new("unit", value, "work above 0, and finite"));
        }
        Ok(())
    }
}

/// Units in a row: what is averaged of each, its kind, its work.
#[derive(Clone, Debug, Default)]
pub struct UnitLedger {
    values: Vec<f64>,
    kinds: Vec<u32>,
    work: Vec<f64>,
    /// One past the last unit of each round.
    ends: Vec<usize>,
    /// Work of each kind, in all rounds and phases.
    total: BTreeMap<u32, f64>,
    /// Sum of work times value, in all rounds and phases.
    product: f64,
}

/// What is known of one kind of units.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    n: f64,
    work: f64,
    product: f64,
}

impl UnitLedger {
    /// Takes in a round's units; those of `stable` are averaged.
    pub fn add(
        &mut self,
        averaged: &[f64],
        units: &Units,
        stable: std::ops::Range<usize>,
    ) -> Result<()> {
        for (index, &value) in averaged.iter().enumerate() {
            let (kind, work) = at(units, index);
            *self.total.entry(kind).or_default() += work;
            self.product += work * value;
            if stable.contains(&index) {
                self.values.push(value);
                self.kinds.push(kind);
                self.work.push(work);
            }
        }
        if !stable.is_empty() {
            self.ends.push(self.values.len());
        }
        if self.total.len() > KINDS_MAX {
            let value = format!("of {} kinds", self.total.len());
            return Err(Error::new("units", value, format!("at most {KINDS_MAX}")));
        }
        Ok(())
    }

    /// The share of each kind in all work.
    pub fn shares(&self) -> BTreeMap<u32, f64> {
        let all: f64 = self.total.values().sum();
        self.total
            .iter()
            .map(|(&kind, work)| (kind, work / all))
            .collect()
    }

    /// The mean over all units, of stable phases or not.
    pub fn mean(&self) -> f64 {
        self.product / self.total.values().sum::<f64>()
    }

    /// The linearized readings of all stable units; Err names a kind of which too few are stable.
    pub fn linearized(&self) -> std::result::Result<Vec<f64>, u32> {
        let all = 0..self.values.len();
        let known = self.sums(all.clone());
        match self
            .total
            .keys()
            .find(|kind| known.get(kind).is_none_or(|sums| sums.n < 2.0))
        {
            Some(&kind) => Err(kind),
            None => Ok(self.readings(all, &known)),
        }
    }

    /// The linearized readings of each round, for its own mean at the same shares.
    pub fn rounds(&self) -> Vec<Vec<f64>> {
        let known = self.sums(0..self.values.len());
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends).map(|(start, &end)| start..end);
        ranges.map(|range| self.readings(range, &known)).collect()
    }

    /// The readings of one kind, linearized around their own mean.
    pub fn of_kind(&self, kind: u32) -> Vec<f64> {
        let known = self.sums(0..self.values.len());
        let Some(&sums) = known.get(&kind) else {
            return Vec::new();
        };
        let mean = sums.product / sums.work;
        let of_kind = (0..self.values.len()).filter(|&index| self.kinds[index] == kind);
        of_kind
            .map(|index| mean + sums.n * self.work[index] / sums.work * (self.values[index] - mean))
            .collect()
    }

    fn sums(&self, range: std::ops::Range<usize>) -> BTreeMap<u32, Sums> {
        let mut found: BTreeMap<u32, Sums> = BTreeMap::new();
        for index in range {
            let sums = found.entry(self.kinds[index]).or_default();
            sums.n += 1.0;
            sums.work += self.work[index];
            sums.product += self.work[index] * self.values[index];
        }
        found
    }

    /// The linearized readings of a range; where it lacks a kind, that kind's mean is what all units say.
    fn readings(&self, range: std::ops::Range<usize>, all: &BTreeMap<u32, Sums>) -> Vec<f64> {
        let here = self.sums(range.clone());
        let shares = self.shares();
        let mean_of = |kind: &u32| {
            let sums = here.get(kind).or_else(|| all.get(kind));
            sums.map_or(0.0, |sums| sums.product / sums.work)
        };
        let center: f64 = shares
            .iter()
            .map(|(kind, share)| share * mean_of(kind))
            .sum();
        let n = range.len() as f64;
        range
            .map(|index| {
                let kind = self.kinds[index];
                let sums = here[&kind];
                // Each kind's own mean costs a degree of freedom; the analysis takes one for all of them.
                let freedom = match sums.n > 1.0 {
                    true => (sums.n / (sums.n - 1.0) * (n - 1.0) / n).sqrt(),
                    false => 1.0,
                };
                let weight = shares[&kind] * n * self.work[index] / sums.work * freedom;
                center + weight * (self.values[index] - sums.product / sums.work)
            })
            .collect()
    }
}

/// Readings in which phases can be looked for: each over the median of its kind, or less it where some are not above 0.
pub fn level(averaged: &[f64], units: &Units) -> Vec<f64> {
    if units.kinds.is_empty() {
        return averaged.to_vec();
    }
    let mut by_kind: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (&value, &kind) in averaged.iter().zip(&units.kinds) {
        by_kind.entry(kind).or_default().push(value);
    }
    let medians: BTreeMap<u32, f64> = by_kind
        .into_iter()
        .map(|(kind, mut values)| (kind, median(&mut values)))
        .collect();
    let above = averaged.iter().all(|&value| value > 0.0);
    let each = averaged.iter().zip(&units.kinds);
    each.map(|(&value, kind)| match above {
        true => value / medians[kind],
        false => value - medians[kind],
    })
    .collect()
}

fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

fn at(units: &Units, index: usize) -> (u32, f64) {
    (
        units.kinds.get(index).copied().unwrap_or_default(),
        units.work.get(index).copied().unwrap_or(1.0),
    )
}
