//! A performance indicator: what is measured, and how well (ASCAR thesis, sections 4.2 and 4.3).

use crate::goal::{Goal, Rule};
use crate::measurement::Measurement;
use crate::{Error, Result};

/// How readings of an indicator are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ordinary numbers: the arithmetic mean.
    Ordinary,
    /// Ratios such as speeds over equal amounts of work, all above 0: the harmonic mean.
    Ratio,
    /// Outcomes 0 and 1: a proportion.
    Binary,
}

/// One performance indicator.
#[derive(Clone, Debug, PartialEq)]
pub struct Indicator {
    /// With its unit last, e.g. "throughput_mb_per_s".
    pub name: String,
    /// How its readings are averaged.
    pub kind: Kind,
    /// What it must reach; None: it is reported, and never keeps a session going.
    pub goal: Option<Goal>,
}

impl Kind {
    /// Every kind, with its name.
    pub const NAMED: [(&'static str, Self); 3] = [
        ("ordinary", Self::Ordinary),
        ("ratio", Self::Ratio),
        ("binary", Self::Binary),
    ];

    /// The kind of a name.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::NAMED.into_iter();
        all.find(|it| it.0 == name).map(|it| it.1)
    }
}

impl Indicator {
    /// A round's unit readings on their own: their stable phase, and the mean of what is averaged of them.
    pub fn analyze(&self, values: &[f64], confidence: f64, rule: Rule) -> Result<Measurement> {
        Measurement::of(&self.averaged(values), confidence, false, rule)
    }

    /// What is averaged: of ratios such as speeds the reciprocals, for their mean is harmonic.
    pub(crate) fn averaged(&self, values: &[f64]) -> Vec<f64> {
        match self.kind {
            Kind::Ratio => values.iter().map(|value| 1.0 / value).collect(),
            Kind::Ordinary | Kind::Binary => values.to_vec(),
        }
    }

    /// Refuses readings that are not of the indicator's kind.
    pub fn check(&self, values: &[f64]) -> Result<()> {
        let (right, allowed): (fn(f64) -> bool, _) = match self.kind {
            Kind::Ordinary => (is_number, "a finite number of magnitude at most 1e149"),
            Kind::Ratio => (
                |value| (1e-149..=1e149).contains(&value),
                "a finite number above 0, as its kind is ratio",
            ),
            Kind::Binary => (
                |value| value == 0.0 || value == 1.0,
                "0 or 1, as its kind is binary",
            ),
        };
        match values.iter().find(|&&value| !right(value)) {
            None => Ok(()),
            Some(value) => Err(Error::new(
                "reading",
                format!("{value} of {}", self.name),
                allowed,
            )),
        }
    }
}

/// Whether a number can be squared and summed.
fn is_number(value: f64) -> bool {
    value.abs() <= ascar_statistics::error::MAGNITUDE_MAX
}
