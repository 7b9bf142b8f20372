//! The endpoint that answers a rule manager, for a plane that is Python's.

use std::time::Duration;

use ascar_congestion::RuleSet;
use ascar_plane::{Asked, Endpoint, Plane, StreamIndicators, Told};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Notes what is to be followed: Python has it followed, which may take a while and may fail.
#[derive(Clone, Debug, Default)]
struct Noted {
    rules: Option<RuleSet>,
    changes: u64,
}

impl Plane for Noted {
    fn follow(&mut self, rules: Option<&RuleSet>) -> Result<(), String> {
        self.rules = rules.cloned();
        self.changes += 1;
        Ok(())
    }

    fn used(&self) -> Option<RuleSet> {
        self.rules.clone()
    }

    fn observe(&self) -> Vec<StreamIndicators> {
        Vec::new()
    }
}

/// Answers a rule manager for one plane. What it answers holds once it is committed.
#[pyclass(module = "ascar._core")]
pub struct RuleEndpoint {
    endpoint: Endpoint<Noted>,
    next: Endpoint<Noted>,
}

#[pymethods]
impl RuleEndpoint {
    /// Of a controller without rules; refuses names that are none.
    #[new]
    fn new(controller: &str, workload: &str, instance: &str) -> PyResult<Self> {
        let endpoint = Endpoint::new(controller, workload, instance, Noted::default());
        let endpoint = endpoint.map_err(PyValueError::new_err)?;
        Ok(Self {
            next: endpoint.clone(),
            endpoint,
        })
    }

    /// Id of the rules in force, on trial or kept; None: none are.
    #[getter]
    fn rules(&self) -> Option<&str> {
        self.endpoint.rules()
    }

    /// Whether those are on trial.
    #[getter]
    fn on_trial(&self) -> bool {
        self.endpoint.is_on_trial()
    }

    /// How long the rules in force stay by themselves; None: they stay.
    fn left_s(&self, now_s: f64) -> PyResult<Option<f64>> {
        let left = self.endpoint.left(moment(now_s)?);
        Ok(left.map(|left| left.as_secs_f64()))
    }

    /// When the time of rules ends next: `expire` is due then.
    #[getter]
    fn ends_at_s(&self) -> Option<f64> {
        self.endpoint.ends_at().map(|at| at.as_secs_f64())
    }

    /// The answer to a message, whether other rules are to be followed, and their text; None: none are to be.
    fn answer(&mut self, asked: &[u8], now_s: f64) -> PyResult<(String, bool, Option<String>)> {
        let now = moment(now_s)?;
        self.next = self.endpoint.clone();
        let told = match Asked::parse(asked) {
            Ok(asked) => self.next.answer(&asked, now),
            Err(reason) => Some(Told::refusal(&reason)),
        };
        let told = told.unwrap_or_else(|| Told::refusal("message: is not for this controller"));
        let (changes, text) = self.wish();
        Ok((told.to_line(), changes, text))
    }

    /// Ends what is over: whether other rules are to be followed, and their text.
    fn expire(&mut self, now_s: f64) -> PyResult<(bool, Option<String>)> {
        let now = moment(now_s)?;
        self.next = self.endpoint.clone();
        while self.next.expire(now).is_some() {}
        Ok(self.wish())
    }

    /// What was answered or ended last is so from now on.
    fn commit(&mut self) {
        self.endpoint = self.next.clone();
    }
}

impl RuleEndpoint {
    fn wish(&self) -> (bool, Option<String>) {
        let (before, now) = (self.endpoint.plane(), self.next.plane());
        let text = now.rules.as_ref().map(RuleSet::to_text);
        (now.changes != before.changes, text)
    }
}

fn moment(now_s: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(now_s)
        .map_err(|error| PyValueError::new_err(format!("now_s = {now_s}: {error}")))
}
