//! `[[rule]]`: formulas over parameters and metrics of which none may hold.

use std::collections::BTreeSet;

use ascar_expression::{Expression, Value as Term};
use serde::Deserialize;

/// `[[rule]]`: a setting for which the formula is true is refused.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Combination {
    /// A formula over parameters, their names with `_` for every other sign, and metrics.
    pub forbid: String,
    /// The reason that is told.
    pub why: String,
}

impl Combination {
    /// Whether it can be read.
    ///
    /// # Errors
    /// The key, and what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        self.formula().map(drop)
    }

    /// The formula.
    ///
    /// # Errors
    /// The key, and what is wrong with it.
    pub fn formula(&self) -> Result<Expression, String> {
        Expression::parse(&self.forbid).map_err(|error| format!("forbid: {error}"))
    }
}

/// All combinations, ready to be asked.
#[derive(Debug)]
pub struct Forbidden(Vec<(Expression, Combination)>);

impl Forbidden {
    /// The combinations, where `known` are the names of parameters and metrics.
    ///
    /// # Errors
    /// When a formula names something that nobody knows: behind the rule's key, the name and what is allowed.
    pub fn new(combinations: &[Combination], known: &BTreeSet<String>) -> Result<Self, String> {
        let mut read = Vec::new();
        for combination in combinations {
            let formula = combination.formula()?;
            if let Some(name) = formula.names().iter().find(|name| !known.contains(*name)) {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                return Err(format!(
                    "forbid = {:?}: {name:?} is not a knob and no metric; allowed are {}",
                    combination.forbid,
                    known.join(", ")
                ));
            }
            read.push((formula, combination.clone()));
        }
        Ok(Self(read))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Judges a setting by its values, which `lookup` finds.
    ///
    /// # Errors
    /// The formula that holds, and why it must not.
    pub fn check(&self, lookup: impl Fn(&str) -> Result<Term, String>) -> Result<(), String> {
        for (formula, Combination { forbid, why }) in &self.0 {
            match formula.holds(&lookup) {
                Ok(None | Some(false)) => {}
                Ok(Some(true)) => return Err(format!("rule: {forbid} ({why})")),
                Err(error) => return Err(format!("rule: {forbid}: {error}")),
            }
        }
        Ok(())
    }
}
