//! `[[floor]]` and `[[ceiling]]`: the service level, a limit of each metric's mean over a window of ticks.

use std::fmt::{self, Display, Formatter};

use serde::Deserialize;

/// Most ticks of a window.
const WINDOW_TICKS_MAX: u64 = 1_000_000;

/// `[[floor]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// A metric's name.
    pub metric: String,
    /// Its mean must not be less.
    pub minimum: f64,
    /// Over so many ticks.
    #[serde(default = "default_window")]
    pub window_ticks: u64,
    /// After a violation nothing is changed for so long.
    #[serde(default = "default_hold")]
    pub hold_ticks: u64,
}

/// `[[ceiling]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ceiling {
    /// A metric's name.
    pub metric: String,
    /// Its mean must not be more.
    pub maximum: f64,
    /// Over so many ticks.
    #[serde(default = "default_window")]
    pub window_ticks: u64,
    /// After a violation nothing is changed for so long.
    #[serde(default = "default_hold")]
    pub hold_ticks: u64,
}

fn default_window() -> u64 {
    30
}
fn default_hold() -> u64 {
    300
}

/// On which side of a limit a mean has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The mean must not be less.
    Floor,
    /// The mean must not be more.
    Ceiling,
}

/// A floor or a ceiling.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// A metric's name.
    pub metric: String,
    /// Which of the two.
    pub side: Side,
    /// The minimum, or the maximum.
    pub value: f64,
    /// Over so many ticks.
    pub window_ticks: u64,
    /// After a violation nothing is changed for so long.
    pub hold_ticks: u64,
}

impl Limit {
    /// One with the usual window and hold.
    pub fn new(metric: &str, side: Side, value: f64) -> Self {
        Self {
            metric: metric.to_owned(),
            side,
            value,
            window_ticks: default_window(),
            hold_ticks: default_hold(),
        }
    }

    /// Whether a mean violates it.
    pub fn is_violated(&self, mean: f64) -> bool {
        match self.side {
            Side::Floor => mean < self.value,
            Side::Ceiling => mean > self.value,
        }
    }

    /// The formula that a mean has to fulfil.
    pub fn formula(&self) -> String {
        let sign = match self.side {
            Side::Floor => ">=",
            Side::Ceiling => "<=",
        };
        format!("{} {sign} {}", self.metric, self.value)
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    /// The key, and what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        if !self.value.is_finite() {
            return Err(format!(
                "{} = {}: must be a finite number",
                self.side.keys().1,
                self.value
            ));
        }
        if !(1..=WINDOW_TICKS_MAX).contains(&self.window_ticks) {
            return Err(format!(
                "window_ticks = {}: must be from 1 to {WINDOW_TICKS_MAX}",
                self.window_ticks
            ));
        }
        Ok(())
    }
}

impl Side {
    /// The key of such limits in files and requests, and that of their values.
    pub const fn keys(self) -> (&'static str, &'static str) {
        match self {
            Self::Floor => ("floor", "minimum"),
            Self::Ceiling => ("ceiling", "maximum"),
        }
    }
}

impl From<&Floor> for Limit {
    fn from(floor: &Floor) -> Self {
        Self {
            metric: floor.metric.clone(),
            side: Side::Floor,
            value: floor.minimum,
            window_ticks: floor.window_ticks,
            hold_ticks: floor.hold_ticks,
        }
    }
}

impl From<&Ceiling> for Limit {
    fn from(ceiling: &Ceiling) -> Self {
        Self {
            metric: ceiling.metric.clone(),
            side: Side::Ceiling,
            value: ceiling.maximum,
            window_ticks: ceiling.window_ticks,
            hold_ticks: ceiling.hold_ticks,
        }
    }
}

impl Display for Side {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Floor => "less than",
            Self::Ceiling => "more than",
        })
    }
}
