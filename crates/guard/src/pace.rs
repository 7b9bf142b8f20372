//! `[guard.pace.NAME]`: how fast a parameter may change.

use serde::Deserialize;

/// `[guard.pace.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pace {
    /// Largest change of a number at once.
    pub change_max: Option<f64>,
    /// Fewest ticks between two changes.
    pub interval_ticks: u64,
}

impl Pace {
    /// Whether it makes sense.
    ///
    /// # Errors
    /// The key, and what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        match self.change_max {
            Some(most) if most <= 0.0 || !most.is_finite() => {
                Err(format!("change_max = {most}: must be above 0"))
            }
            _ => Ok(()),
        }
    }

    /// Whether a parameter may change now.
    ///
    /// # Arguments
    /// * `change`: from which number to which; none of what has no numbers.
    /// * `ticks`: since its last change; none where it was never changed.
    ///
    /// # Errors
    /// What is allowed, behind the parameter's name.
    pub fn allows(&self, change: Option<(f64, f64)>, ticks: Option<u64>) -> Result<(), String> {
        if let (Some(most), Some((from, to))) = (self.change_max, change)
            && (to - from).abs() > most
        {
            return Err(format!(
                "from {from} to {to}: allowed is a change of {most}"
            ));
        }
        match ticks {
            Some(ticks) if ticks < self.interval_ticks => Err(format!(
                "was changed {ticks} ticks ago: allowed is once in {} ticks",
                self.interval_ticks
            )),
            _ => Ok(()),
        }
    }
}
