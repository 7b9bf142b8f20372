//! Rounds to findings: unit readings where there are any, else one reading a round.

use ascar_statistics::distributions::chi_squared;
use ascar_statistics::intervals;
use ascar_statistics::moments::mean;

use crate::Result;
use crate::goal::{Goal, Rule};
use crate::indicator::{Indicator, Kind};
use crate::measurement::Measurement;
use crate::round::Round;
use crate::stopping::{cautious, may_look};
use crate::units::{UnitLedger, Units, level};

/// Rounds whose means differ more than their own intervals explain, at this level, are the samples themselves.
const ROUNDS_DIFFER_P: f64 = 0.05;

/// So many rounds must be left where the first ones are taken for a warm-up.
const WARM_REST_MIN: usize = 3;
/// Means of so many rounds are a series of their own, with a warm-up and correlation.
const SERIES_MIN: usize = 12;

/// What a finding rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// One reading a round.
    Readings,
    /// Unit readings of stable phases.
    UnitReadings,
    /// Means of rounds, where unit readings agree inside rounds but not between them.
    Rounds,
}

/// What the rounds say about one indicator.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What the indicator must reach; None where it is only reported.
    pub goal: Option<Goal>,
    /// Its mean with an interval; None before the first reading.
    pub measurement: Option<Measurement>,
    /// What it rests on.
    pub basis: Basis,
    /// How many readings were taken.
    pub readings: usize,
    /// Of them left out as warm-up and cool-down.
    pub removed: usize,
    /// Rounds without a stable phase, left out whole.
    pub rounds_unstable: usize,
    /// What is known of each kind of work units, by the kind's number; empty where units are alike.
    pub kinds: Vec<UnitKind>,
}

/// What is known of one kind of work units.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitKind {
    /// The caller's number of the kind.
    pub kind: u32,
    /// Its share of all work, in the stable phases and outside.
    pub share: f64,
    /// The mean of its stable units, with its own interval; None where none is stable.
    pub measurement: Option<Measurement>,
}

impl Basis {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Readings => "readings",
            Self::UnitReadings => "unit readings",
            Self::Rounds => "rounds",
        }
    }
}

impl Finding {
    /// Whether the indicator's goal is reached, and may be stopped at; without a goal, always.
    pub fn reached(&self) -> bool {
        match (&self.goal, &self.measurement) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(goal), Some(found)) => goal.met_by(found),
        }
    }
}

/// All readings of one indicator, round by round.
#[derive(Clone, Debug)]
pub struct Ledger {
    indicator: Indicator,
    confidence: f64,
    rule: Rule,
    /// The stable phases of all rounds, one after the other.
    stable: Vec<f64>,
    /// What each round with a stable phase said.
    rounds: Vec<Measurement>,
    /// The unit readings of the first round that gave any.
    first: Vec<f64>,
    /// The same readings, where some differ in their work or kind.
    mixed: Option<UnitLedger>,
    readings: Vec<f64>,
    units: usize,
    unstable: usize,
    looked_at: usize,
    finding: Option<Finding>,
}

impl Ledger {
    /// An empty ledger; confidence and rule are those of `goal` where the indicator has no goal of its own.
    pub fn new(indicator: Indicator, goal: Goal) -> Self {
        let goal = indicator.goal.unwrap_or(goal);
        Self {
            confidence: goal.confidence,
            rule: goal.rule,
            indicator,
            stable: Vec::new(),
            rounds: Vec::new(),
            first: Vec::new(),
            mixed: None,
            readings: Vec::new(),
            units: 0,
            unstable: 0,
            looked_at: 0,
            finding: None,
        }
    }

    /// Whether rounds gave unit readings.
    pub fn has_units(&self) -> bool {
        self.units > 0
    }

    /// Takes in what a round read; each warms up and cools down on its own (section 4.2.1).
    ///
    /// `index` is the indicator's place in the round. Refused where a reading is not of the indicator's kind.
    pub fn add(&mut self, round: &Round, index: usize) -> Result<()> {
        let values = round
            .unit_readings
            .get(index)
            .map_or(&[][..], Vec::as_slice);
        if !values.is_empty() {
            self.indicator.check(values)?;
            if self.units == 0 {
                self.first = values.to_vec();
            }
            self.units += values.len();
            let units = round.units.get(index).filter(|units| !units.alike());
            if units.is_some() || self.mixed.is_some() {
                return self.add_mixed(values, units.unwrap_or(&Units::default()));
            }
            let found = self.indicator.analyze(values, self.confidence, self.rule)?;
            if ["no stable phase", "not yet steady"]
                .iter()
                .any(|why| found.reason.contains(why))
            {
                self.unstable += 1;
            } else {
                self.stable
                    .extend_from_slice(&values[found.stable_start..found.stable_end]);
                self.rounds.push(found);
            }
        } else if let Some(reading) = round.readings.get(index).copied().flatten() {
            self.indicator.check(&[reading])?;
            self.readings.push(reading);
        }
        Ok(())
    }

    /// Takes in a round's units that differ.
    fn add_mixed(&mut self, values: &[f64], units: &Units) -> Result<()> {
        if self.mixed.is_none() {
            let mut before = UnitLedger::default();
            // Rounds before this one had units of one kind.
            let stable = self.indicator.averaged(&self.stable);
            before.add(&stable, &Units::default(), 0..stable.len())?;
            self.mixed = Some(before);
        }
        let averaged = self.indicator.averaged(values);
        let found = Measurement::of(&level(&averaged, units), self.confidence, false, self.rule)?;
        let stable = if found.reason.contains("no stable phase") {
            self.unstable += 1;
            0..0
        } else {
            let stable = found.stable_start..found.stable_end;
            self.stable.extend_from_slice(&values[stable.clone()]);
            self.rounds.push(found);
            stable
        };
        let mixed = self.mixed.get_or_insert_default();
        mixed.add(&averaged, units, stable)
    }

    /// What is known now; `last` looks even though little was added since the last look.
    pub fn finding(&mut self, last: bool) -> Result<Finding> {
        let count = if self.has_units() {
            self.units
        } else {
            self.readings.len()
        };
        match &self.finding {
            Some(known) if !last && !may_look(count, self.looked_at, self.rule) => {
                Ok(known.clone())
            }
            _ => {
                self.looked_at = count;
                let found = self.look()?;
                self.finding = Some(found.clone());
                Ok(found)
            }
        }
    }

    fn look(&self) -> Result<Finding> {
        let mut finding = Finding {
            goal: self.indicator.goal,
            measurement: None,
            basis: Basis::Readings,
            readings: self.readings.len(),
            removed: 0,
            rounds_unstable: 0,
            kinds: Vec::new(),
        };
        if !self.has_units() {
            if !self.readings.is_empty() {
                let found = self.measure(&self.readings, false)?;
                finding.removed = self.readings.len() - found.n;
                finding.measurement = Some(found);
            }
            return Ok(finding);
        }
        finding.basis = Basis::UnitReadings;
        finding.readings = self.units;
        finding.rounds_unstable = self.unstable;
        if let Some(mixed) = &self.mixed {
            return self.look_mixed(mixed, finding);
        }
        if self.rounds.is_empty() {
            finding.measurement = Some(self.measure(&self.first, false)?);
            return Ok(finding);
        }
        let whole = self.rounds.len() > 1 || self.unstable > 0;
        let mut found;
        if whole {
            found = self.measure(&self.stable, true)?;
            if self.rounds_differ(&self.rounds) {
                (found, finding.basis) = match self.after_warm_rounds()? {
                    Some(found) => (found, Basis::UnitReadings),
                    None => (self.between_rounds(found, &self.rounds)?, Basis::Rounds),
                };
            }
        } else {
            found = self.measure(&self.first, false)?;
        }
        if self.unstable >= self.rounds.len() {
            let all = self.unstable + self.rounds.len();
            found.limits = None;
            found.reason = format!("{} of {all} rounds have no stable phase", self.unstable);
        }
        finding.removed = self.units - found.n;
        finding.measurement = Some(found);
        Ok(finding)
    }

    /// What is known where units differ in their work or kind.
    fn look_mixed(&self, mixed: &UnitLedger, mut finding: Finding) -> Result<Finding> {
        let shares = mixed.shares();
        let linear = mixed.linearized();
        let mut found = match &linear {
            Ok(values) => self.measure_averaged(values, true)?,
            Err(kind) => Measurement {
                reason: format!(
                    "work units of kind {kind}: fewer than 2 are in a stable phase; measure longer"
                ),
                ..self.told(Measurement::single(mixed.mean(), self.confidence))
            },
        };
        if linear.is_ok() && self.rounds.len() > 1 {
            let each = mixed.rounds();
            let rounds = each
                .iter()
                .map(|values| Measurement::of(values, self.confidence, true, self.rule));
            let rounds: Vec<Measurement> = rounds.collect::<Result<_>>()?;
            if self.rounds_differ(&rounds) {
                (found, finding.basis) = (self.between_rounds(found, &rounds)?, Basis::Rounds);
            }
        }
        if let ([only], 0, Ok(_)) = (self.rounds.as_slice(), self.unstable, &linear) {
            found.stable_start = only.stable_start;
            found.stable_end = only.stable_end;
            found.change_points.clone_from(&only.change_points);
        }
        if self.unstable >= self.rounds.len() {
            let all = self.unstable + self.rounds.len();
            found.limits = None;
            found.reason = format!("{} of {all} rounds have no stable phase", self.unstable);
        }
        found.method = format!("{}, units that differ", found.method);
        for (kind, share) in shares {
            let values = mixed.of_kind(kind);
            let measurement = match values.is_empty() {
                true => None,
                false => Some(self.measure_averaged(&values, true)?),
            };
            finding.kinds.push(UnitKind {
                kind,
                share,
                measurement,
            });
        }
        finding.removed = self.units - self.stable.len();
        finding.measurement = Some(found);
        Ok(finding)
    }

    /// How many readings the first rounds have in their stable phases.
    fn readings_of(&self, rounds: usize) -> usize {
        self.rounds[..rounds].iter().map(|found| found.n).sum()
    }

    /// The mean where the first rounds are the warm-up of the whole session, which is so if the others agree.
    fn after_warm_rounds(&self) -> Result<Option<Measurement>> {
        let found = self.measure(&self.stable, false)?;
        let warm = (0..self.rounds.len())
            .find(|&count| self.readings_of(count) >= found.stable_start)
            .unwrap_or(0);
        let left = self.rounds.len() - warm;
        let steady = warm > 0 && left >= WARM_REST_MIN && !self.rounds_differ(&self.rounds[warm..]);
        Ok(steady.then_some(found))
    }

    /// The mean of this kind of readings with its interval.
    fn measure(&self, values: &[f64], whole: bool) -> Result<Measurement> {
        if self.indicator.kind == Kind::Binary {
            return self.proportion(values);
        }
        self.measure_averaged(&self.indicator.averaged(values), whole)
    }

    /// The same of what is averaged.
    fn measure_averaged(&self, averaged: &[f64], whole: bool) -> Result<Measurement> {
        let found = Measurement::of(averaged, self.confidence, whole, self.rule)?;
        let stable = found.stable_start..found.stable_end;
        let found = match self.rule {
            Rule::Corrected => cautious(found, &averaged[stable]),
            Rule::Published { .. } => found,
        };
        Ok(self.told(found))
    }

    fn proportion(&self, values: &[f64]) -> Result<Measurement> {
        let n = values.len();
        let successes = values.iter().filter(|&&value| value == 1.0).count();
        let found = intervals::proportion_wilson(successes as u64, n as u64, self.confidence)?;
        Ok(Measurement {
            limits: Some((found.low, found.high)),
            n,
            independent_samples: n,
            stable_end: n,
            method: "Wilson".to_owned(),
            reason: String::new(),
            ..Measurement::single(found.estimate, self.confidence)
        })
    }

    /// The measurement of what was averaged as one of the indicator.
    fn told(&self, found: Measurement) -> Measurement {
        match self.indicator.kind {
            Kind::Ratio => found.inverted(),
            Kind::Ordinary | Kind::Binary => found,
        }
    }

    /// Cochran's Q test (1954, "The combination of estimates from different experiments").
    fn rounds_differ(&self, rounds: &[Measurement]) -> bool {
        // The published rule pools all rounds.
        if self.indicator.kind == Kind::Binary || self.rule != Rule::Corrected {
            return false;
        }
        let known: Vec<(f64, f64)> = rounds
            .iter()
            .filter_map(|found| Some((found.mean, found.standard_error().filter(|&e| e > 0.0)?)))
            .map(|(mean, error)| (mean, 1.0 / (error * error)))
            .collect();
        if known.len() < 2 {
            return false;
        }
        let total: f64 = known.iter().map(|(_, weight)| weight).sum();
        let center = known
            .iter()
            .map(|(mean, weight)| mean * weight)
            .sum::<f64>()
            / total;
        let q: f64 = known
            .iter()
            .map(|(mean, weight)| weight * (mean - center) * (mean - center))
            .sum();
        chi_squared::survival(q, known.len() as f64 - 1.0) < ROUNDS_DIFFER_P
    }

    /// The mean of the rounds' means, which are then the samples.
    ///
    /// As a series they may warm up and be correlated like any other; a few are taken as independent.
    fn between_rounds(&self, inside: Measurement, rounds: &[Measurement]) -> Result<Measurement> {
        let means: Vec<f64> = rounds.iter().map(|found| found.mean).collect();
        let method = "means of rounds".to_owned();
        if means.len() >= SERIES_MIN {
            let found = Measurement::of(&means, self.confidence, false, self.rule)?;
            let steady = found.stable_start..found.stable_end;
            let readings = rounds[steady.clone()].iter().map(|round| round.n).sum();
            let found = cautious(found, &means[steady]);
            return Ok(self.told(Measurement {
                mean: found.mean,
                limits: found.limits,
                independent_samples: found.independent_samples,
                n: readings,
                method,
                reason: found.reason,
                ..inside
            }));
        }
        let found = intervals::mean_t(&means, self.confidence)?;
        Ok(self.told(Measurement {
            mean: mean(&means),
            limits: Some((found.low, found.high)),
            independent_samples: means.len(),
            method,
            reason: String::new(),
            ..inside
        }))
    }
}
