//! Controllers of streams, as a scenario has them.

use std::sync::Arc;

use ascar_congestion::{AnyController, Deployment, Extended, Extensions, Faithful, Fixed, RuleSet};

use crate::scenario::{Control, Controller, ScenarioError};

/// Makes the controllers of a group's streams.
pub(super) struct ControllerMaker<'a> {
    control: &'a Control,
    /// The rule set in force; all streams of a group count their use of rules in it.
    pub deployment: Option<Arc<Deployment>>,
    rogue_window: Option<u32>,
}

fn hundredths(window: f64) -> u32 {
    (window * 100.0).round() as u32
}

impl<'a> ControllerMaker<'a> {
    /// For a group under `control`; a rogue keeps its window whatever that says.
    pub fn new(
        control: &'a Control,
        rogue_window: Option<u32>,
    ) -> Result<ControllerMaker<'a>, ScenarioError> {
        let deployment = match &control.rules {
            None => None,
            Some(text) => {
                let rules = RuleSet::parse(text).map_err(|fault| ScenarioError {
                    key: "control.rules".into(),
                    message: fault.to_string(),
                })?;
                Some(Arc::new(Deployment::new(rules)))
            }
        };
        Ok(ControllerMaker {
            control,
            deployment,
            rogue_window,
        })
    }

    /// Least and most requests in flight, whatever the controller says.
    pub fn bounds(&self) -> (u32, u32) {
        match self.rogue_window {
            Some(window) => (window, window),
            None => (
                self.control.window_min as u32,
                self.control.window_max as u32,
            ),
        }
    }

    /// The controller of one stream; seeds tell the probes of streams apart.
    pub fn make(&self, seed: u64) -> AnyController {
        self.make_with(seed, None)
    }

    /// As `make`, going on from a window (in hundredths) instead of the one that the control begins with.
    pub fn make_with(&self, seed: u64, window_x100: Option<u32>) -> AnyController {
        let control = self.control;
        if let Some(window) = self.rogue_window {
            return AnyController::Fixed(Fixed::new(window * 100, 0));
        }
        let window = window_x100.unwrap_or_else(|| hundredths(control.window));
        if let Some(deployment) = &self.deployment {
            let deployment = Arc::clone(deployment);
            if control.faithful {
                return AnyController::Faithful(Faithful::with_window(deployment, window));
            }
            let extended = Extended::new(deployment, Arc::new(Extensions::default()), seed);
            let extended = extended.expect("the default extensions are within their ranges");
            return AnyController::Extended(extended.with_window(window));
        }
        let name = match control.controller {
            Controller::Fixed | Controller::Rules => "fixed",
            Controller::Aimd => "aimd",
            Controller::Vegas => "vegas",
            Controller::Gradient2 => "gradient2",
            Controller::EnvoyGradient => "envoy",
            Controller::Copa => "copa",
            Controller::IoPathTune => "iopathtune",
        };
        let mut controller =
            AnyController::rival(name, seed).expect("every name here is a rival's");
        if let AnyController::Fixed(fixed) = &mut controller {
            fixed.set(window, control.tau_us.round() as u32);
        }
        controller
    }
}
