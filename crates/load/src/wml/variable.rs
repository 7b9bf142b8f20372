//! Variables: `set $x=...`, `cvar(...)`, `define randvar`, `set $x.mean=...`.

use std::collections::HashMap;

use super::error::WmlError;
use crate::quantity::{Shape, Variable};

/// What a variable, or the right side of an attribute, holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Flag(bool),
    Text(String),
    Random(RandomText),
}

/// A random variable as written; fields may still be set one by one.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct RandomText {
    pub(super) kind: Option<RandomKind>,
    pub(super) mean: Option<f64>,
    /// Shape parameter, 1.5 being the default of Filebench.
    pub(super) gamma: Option<f64>,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) round: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RandomKind {
    Gamma,
    Uniform,
}

/// Largest shape parameter: a gamma of shape 10^6 is a constant within 0.1%.
const LARGEST_GAMMA: f64 = 1e6;

impl RandomText {
    /// The variable, or what is missing.
    pub(super) fn variable(&self) -> Result<Variable, String> {
        let min = self.min.unwrap_or(0.0);
        let shape = match self.kind {
            None => {
                return Err(
                    "the random variable has no type; give it type=gamma or type=uniform".into(),
                );
            }
            Some(RandomKind::Gamma) => {
                let mean = self.mean.ok_or("a gamma variable needs its mean")?;
                let shape = self.gamma.unwrap_or(1.5);
                if !(shape > 0.0 && shape <= LARGEST_GAMMA) {
                    return Err(format!(
                        "gamma must lie above 0 and at most {LARGEST_GAMMA}, but is {shape}"
                    ));
                }
                Shape::Gamma { shape, mean }
            }
            Some(RandomKind::Uniform) => {
                let low = self.low.unwrap_or(min);
                let high = match (self.high.or(self.max), self.mean) {
                    (Some(high), _) => high,
                    (None, Some(mean)) => 2.0 * mean - low,
                    (None, None) => {
                        return Err("a uniform variable needs lower and upper, or its mean".into());
                    }
                };
                if high < low {
                    return Err(format!(
                        "a uniform variable needs lower <= upper, but got {low} and {high}"
                    ));
                }
                Shape::Uniform { low, high }
            }
        };
        let max = self.max.unwrap_or(f64::MAX);
        if max < min {
            return Err(format!(
                "a random variable needs min <= max, but got {min} and {max}"
            ));
        }
        Ok(Variable {
            shape,
            min,
            max,
            round: self.round.unwrap_or(0.0),
        })
    }

    /// Set a field from a number. `thousandths`: gamma is written as in `define randvar` (1500 for 1.5).
    pub(super) fn set(&mut self, field: &str, value: f64, thousandths: bool) -> Result<(), String> {
        let place = match field {
            "mean" => &mut self.mean,
            "gamma" => {
                self.gamma = Some(if thousandths { value / 1000.0 } else { value });
                return Ok(());
            }
            "lower" => &mut self.low,
            "upper" => &mut self.high,
            "min" => &mut self.min,
            "max" => &mut self.max,
            "round" => &mut self.round,
            _ => {
                return Err("not a field of a random variable; known: gamma, lower, max, mean, min, round, type, upper"
                    .into());
            }
        };
        *place = Some(value);
        Ok(())
    }

    /// Set the type from its word.
    pub(super) fn set_kind(&mut self, word: &str) -> Result<(), String> {
        self.kind = Some(match word {
            "gamma" | "cvar-gamma" => RandomKind::Gamma,
            "uniform" | "cvar-uniform" => RandomKind::Uniform,
            _ => return Err("not a known type of random variable; known: gamma, uniform".into()),
        });
        Ok(())
    }
}

/// All variables set so far.
#[derive(Debug, Default)]
pub(super) struct Variables {
    values: HashMap<String, Value>,
}

impl Variables {
    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.values.insert(name.to_owned(), value);
    }

    /// The value of `$name`.
    pub(super) fn get(&self, name: &str, line: usize) -> Result<&Value, WmlError> {
        self.values.get(name).ok_or_else(|| {
            WmlError::new(
                line,
                &format!("${name}"),
                "this variable was not set on an earlier line",
            )
        })
    }

    /// The random variable `$name`, to set a field of.
    pub(super) fn random(&mut self, name: &str, line: usize) -> Result<&mut RandomText, WmlError> {
        match self.values.get_mut(name) {
            Some(Value::Random(random)) => Ok(random),
            _ => Err(WmlError::new(
                line,
                &format!("${name}"),
                "not a random variable; define it first with define randvar name=$NAME,type=gamma|uniform",
            )),
        }
    }
}
