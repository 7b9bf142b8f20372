//! Why a rule set or a setting is refused: where, what was found, what is allowed.

use std::fmt;

use crate::rule::Region;
use crate::signals::{AXIS_NAMES, INFINITY};

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A field of the text cannot be read.
    Field {
        /// Line, from 1.
        line: usize,
        /// Name of the field.
        field: String,
        /// What was found.
        found: String,
        /// What is allowed.
        allowed: String,
    },
    /// No rule holds somewhere.
    Gap {
        /// A region in which none does.
        region: Region,
        /// How many indicators the set bounds.
        axes: usize,
    },
    /// The rules overlap in so many ways that their cover cannot be verified in reasonable time.
    TooComplex,
    /// A setting out of its range.
    Setting {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A name that is none of those known.
    Unknown {
        /// Of what.
        name: &'static str,
        /// What was found.
        value: String,
        /// Those known.
        allowed: &'static [&'static str],
    },
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    pub(crate) fn setting(
        name: &'static str,
        value: impl fmt::Display,
        allowed: &'static str,
    ) -> Self {
        Self::Setting {
            name,
            value: value.to_string(),
            allowed,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field {
                line,
                field,
                found,
                allowed,
            } => write!(
                out,
                "line {line}, {field}: found {found:?}; allowed: {allowed}"
            ),
            Self::Gap { region, axes } => {
                write!(out, "no rule holds for ")?;
                write_region(out, region, *axes)?;
                write!(out, "; add a rule that covers it")
            }
            Self::TooComplex => write!(
                out,
                "the rules overlap in too many ways to verify that they cover the space; use fewer rules, or put one \
                 that holds everywhere last"
            ),
            Self::Setting {
                name,
                value,
                allowed,
            } => write!(out, "{name} is {value}; allowed: {allowed}"),
            Self::Unknown {
                name,
                value,
                allowed,
            } => write!(out, "{name} is {value:?}; allowed: {}", allowed.join(", ")),
        }
    }
}

impl std::error::Error for Fault {}

/// `ack_ewma in [0, 41), ...`
fn write_region(out: &mut fmt::Formatter<'_>, region: &Region, axes: usize) -> fmt::Result {
    for (axis, interval) in region.iter().enumerate().take(axes) {
        let comma = if axis == 0 { "" } else { ", " };
        write!(out, "{comma}{} in [{}, ", AXIS_NAMES[axis], interval.lo)?;
        match interval.hi {
            INFINITY => write!(out, "infinity)")?,
            hi => write!(out, "{hi})")?,
        }
    }
    Ok(())
}
