//! Controllers of streams, as a scenario has them.

use std::sync::Arc;

use ascar_congestion::{
    AnyController, Bounds, Deployment, Extended, Extensions, Faithful, Fixed, Probe, RuleSet,
    Sequences, THESIS_AXES, Turns, Unit,
};

use super::nanos;
use crate::scenario::{Control, Controller, RuleExtensions, ScenarioError};

/// Makes the controllers of a group's streams.
pub(super) struct ControllerMaker<'a> {
    control: &'a Control,
    /// The rule set in force; all streams of a group count their use of rules in it.
    pub deployment: Option<Arc<Deployment>>,
    rogue_window: Option<u32>,
    extensions: Arc<Extensions>,
    throughput: Bounds,
}

fn hundredths(window: f64) -> u32 {
    (window * 100.0).round() as u32
}

fn bytes(megabytes: f64) -> u64 {
    (megabytes * 1e6).round() as u64
}

/// The controllers' own settings; 0 turns a part off, as the scenario says.
fn extensions_of(own: &RuleExtensions) -> Extensions {
    let microseconds = |seconds: f64| Some((seconds * 1e6).round() as u64).filter(|time| *time > 0);
    let kib = |count: u32| Some(count << 10).filter(|size| *size > 0);
    Extensions {
        unit: kib(own.piece_kib).map_or(Unit::Requests, Unit::Bytes),
        minimum_period_us: microseconds(own.minimum_period_s),
        probe: microseconds(own.probe_interval_s).map(|interval_us| Probe {
            interval_us,
            window_x100: hundredths(own.probe_window),
            replies: own.probe_replies,
        }),
        size_fixed_bytes: kib(own.fixed_cost_kib),
        slow_weight_shift: own.slow_weight_shift,
        gate_growth: own.gate_growth,
        timeout_m100: (own.timeout_factor * 100.0).round() as u8,
    }
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
            extensions: Arc::new(extensions_of(&control.extensions)),
            throughput: Bounds::new(
                bytes(control.least_mb_per_s),
                control.most_mb_per_s.map_or(u64::MAX, bytes),
            )
            .expect("the scenario's bounds are in order"),
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

    /// The turns of a stream's files, where their number is limited.
    pub fn turns(&self) -> Option<Box<Turns>> {
        let control = self.control;
        let of_rules = self.deployment.as_ref().map(|it| it.rules.active_files());
        let most = of_rules
            .filter(|files| *files > 0)
            .unwrap_or(control.active_files);
        let limited = most > 0 && self.rogue_window.is_none();
        let ns = |milliseconds: f64| nanos(milliseconds / 1e3);
        limited.then(|| {
            Box::new(Turns::new(
                most,
                ns(control.turn_ms),
                ns(control.turn_idle_ms),
            ))
        })
    }

    /// What tells a stream's sequential requests, where rules ask for more than the indicators of the thesis.
    pub fn sequences(&self) -> Option<Box<Sequences>> {
        self.is_extended().then(Box::default)
    }

    /// Whether streams follow rules beyond the original: as they are told to, or by the indicators that rules name.
    fn is_extended(&self) -> bool {
        let rules = self.deployment.as_ref().map(|it| &it.rules);
        rules.is_some_and(|rules| rules.axes() > THESIS_AXES || !self.control.faithful)
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
            if !self.is_extended() {
                return AnyController::Faithful(Faithful::with_window(deployment, window));
            }
            let extended = Extended::new(deployment, Arc::clone(&self.extensions), seed);
            let extended = extended.expect("the scenario's extensions are within their ranges");
            return AnyController::Extended(
                extended.with_window(window).with_bounds(self.throughput),
            );
        }
        let name = match control.controller {
            Controller::Fixed | Controller::Rules => "fixed",
            Controller::Aimd => "aimd",
            Controller::Cubic => "cubic",
            Controller::Bbr => "bbr",
            Controller::Bbr3 => "bbr3",
            Controller::Vegas => "vegas",
            Controller::Gradient2 => "gradient2",
            Controller::EnvoyGradient => "envoy",
            Controller::Copa => "copa",
            Controller::IoPathTune => "iopathtune",
        };
        let mut controller = AnyController::tuned(name, seed, &control.rivals.settings())
            .expect("every name here is a rival's");
        if let AnyController::Fixed(fixed) = &mut controller {
            fixed.set(window, control.tau_us.round() as u32);
        }
        controller
    }
}
