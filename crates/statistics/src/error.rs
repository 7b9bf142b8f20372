//! What every refusal says: the offending name, its value, and what is allowed.

use std::fmt;

/// An argument that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The argument's name.
    pub name: &'static str,
    /// Its value, as text.
    pub value: String,
    /// What is allowed instead.
    pub allowed: String,
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Names the argument, its value and what is allowed.
    pub fn new(name: &'static str, value: impl fmt::Display, allowed: impl Into<String>) -> Self {
        Self {
            name,
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} is {}; allowed: {}",
            self.name, self.value, self.allowed
        )
    }
}

impl std::error::Error for Error {}

/// Refuses a level (confidence, alpha, power) outside the open unit interval.
pub(crate) fn check_level(name: &'static str, value: f64) -> Result<()> {
    if value > 0.0 && value < 1.0 {
        return Ok(());
    }
    Err(Error::new(name, value, "a number above 0 and below 1"))
}

/// The largest magnitude whose square, summed 10^9 times, is still finite.
pub const MAGNITUDE_MAX: f64 = 1e149;

/// Squares of a spread that a series below this can show vanish, and what varies would look constant.
pub const MAGNITUDE_MIN: f64 = 1e-140;

/// Refuses a series that is not all zeros and whose largest magnitude is too small for a variance.
pub(crate) fn check_scale(name: &'static str, values: &[f64]) -> Result<()> {
    let largest = values
        .iter()
        .fold(0.0_f64, |most, value| most.max(value.abs()));
    if largest == 0.0 || largest >= MAGNITUDE_MIN {
        return Ok(());
    }
    Err(Error::new(
        name,
        format!("a series of magnitude {largest:e}"),
        format!("zeros, or numbers of magnitude {MAGNITUDE_MIN:e} and more; take a smaller unit"),
    ))
}

/// Refuses a value that is not finite or too large to be squared, and a series with fewer than `at_least`.
pub(crate) fn check_values(name: &'static str, values: &[f64], at_least: usize) -> Result<()> {
    if values.len() < at_least {
        return Err(Error::new(
            name,
            format!("a series of {}", values.len()),
            format!("at least {at_least} numbers"),
        ));
    }
    match values
        .iter()
        .position(|value| !value.is_finite() || value.abs() > MAGNITUDE_MAX)
    {
        None => Ok(()),
        Some(index) => Err(Error::new(
            name,
            format!("{:e} at index {index}", values[index]),
            format!("finite numbers of magnitude at most {MAGNITUDE_MAX:e}"),
        )),
    }
}

/// Refuses a number that is not finite.
pub(crate) fn check_finite(name: &'static str, value: f64) -> Result<()> {
    if value.is_finite() && value.abs() <= MAGNITUDE_MAX {
        return Ok(());
    }
    Err(Error::new(
        name,
        value,
        format!("a finite number of magnitude at most {MAGNITUDE_MAX:e}"),
    ))
}

/// Refuses a standard deviation or width that is negative or not finite.
pub(crate) fn check_not_negative(name: &'static str, value: f64) -> Result<()> {
    if (0.0..=MAGNITUDE_MAX).contains(&value) {
        return Ok(());
    }
    Err(Error::new(name, value, "a finite number, 0 or more"))
}
