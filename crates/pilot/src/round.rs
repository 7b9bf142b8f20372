//! One round of a benchmark: what it did, how long it took, what it read (ASCAR thesis, section 4.2).

use crate::units::Units;

/// One round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// How long it took.
    pub seconds: f64,
    /// How much work it did; None where the work cannot be adjusted.
    pub work_amount: Option<f64>,
    /// One number an indicator, in the order of the plan's indicators; None where it was not read.
    pub readings: Vec<Option<f64>>,
    /// One number a work unit, for each indicator, in the order they were taken.
    pub unit_readings: Vec<Vec<f64>>,
    /// What these units were, for each indicator; empty where they are alike.
    pub units: Vec<Units>,
}

/// What is kept of a round: its readings are in the findings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    /// How long it took.
    pub seconds: f64,
    /// How much work it did; None where the work cannot be adjusted.
    pub work_amount: Option<f64>,
    /// Whether the findings rest on it; short rounds are set aside.
    pub used: bool,
}
