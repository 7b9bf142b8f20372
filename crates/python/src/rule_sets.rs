//! Rule sets as text and as plain values.

use ascar_congestion::{AXES, Action, Interval, Observed, Rule, RuleSet, SPACE, THESIS_AXES};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Bounds of each indicator, (m100, b100, tau_us), and (used_times, means) where there are statistics.
type Values = (Vec<(u32, u32)>, (i32, i32, u32), Option<(u64, Vec<u32>)>);

/// The rules of a rule file, its window changes a second, and its active files.
#[pyfunction]
pub fn read_rule_set(text: &str) -> PyResult<(Vec<Values>, u32, u32)> {
    let set = RuleSet::parse(text).map_err(refuse)?;
    let axes = set.axes();
    let rules = set.rules().iter().map(|rule| values(rule, axes)).collect();
    Ok((rules, set.updates_per_second(), set.active_files()))
}

/// The text of a rule file; refuses what a rule set may not be.
#[pyfunction]
pub fn write_rule_set(
    rules: Vec<Values>,
    updates_per_second: u32,
    active_files: u32,
) -> PyResult<String> {
    let axes = rules.iter().map(|(bounds, ..)| bounds.len()).max();
    let rules = rules.into_iter().map(rule).collect::<PyResult<_>>()?;
    let axes = axes.unwrap_or(THESIS_AXES);
    let set = RuleSet::with_axes(rules, axes, updates_per_second).map_err(refuse)?;
    let set = set.with_active_files(active_files).map_err(refuse)?;
    Ok(set.to_text())
}

fn values(rule: &Rule, axes: usize) -> Values {
    let Action { m100, b100, tau_us } = rule.action;
    let bounds = rule.region[..axes].iter().map(|at| (at.lo, at.hi));
    let observed = rule.observed.as_ref();
    (
        bounds.collect(),
        (m100, b100, tau_us),
        observed.map(|seen| (seen.used_times, seen.means[..axes].to_vec())),
    )
}

fn rule((bounds, (m100, b100, tau_us), seen): Values) -> PyResult<Rule> {
    let mut region = SPACE;
    let axes = check("bounds", bounds.len())?;
    for (interval, (lo, hi)) in region.iter_mut().zip(bounds) {
        *interval = Interval { lo, hi };
    }
    let observed = seen.map(|(used_times, found)| {
        let mut means = [0; AXES];
        for (mean, value) in means.iter_mut().zip(found).take(axes) {
            *mean = value;
        }
        Observed { used_times, means }
    });
    Ok(Rule {
        region,
        action: Action { m100, b100, tau_us },
        observed,
    })
}

fn check(name: &str, found: usize) -> PyResult<usize> {
    if (THESIS_AXES..=AXES).contains(&found) {
        return Ok(found);
    }
    Err(PyValueError::new_err(format!(
        "{name}: {found} indicators; allowed: {THESIS_AXES} to {AXES}"
    )))
}

fn refuse(fault: ascar_congestion::Fault) -> PyErr {
    PyValueError::new_err(fault.to_string())
}
