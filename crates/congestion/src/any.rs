//! Any of the controllers, in one type of known size: what a table of streams holds.

use std::sync::Arc;

use crate::controller::{Controller, InFlight, Reply, Window};
use crate::extended::Extended;
use crate::extensions::Extensions;
use crate::faithful::Faithful;
use crate::rivals::{
    Aimd, Bbr, Copa, Cubic, EnvoyGradient, Fixed, Gradient2, IoPathTune, RivalSettings, Vegas,
};
use crate::rule_set::Deployment;
use crate::signals::{Signals, THESIS_AXES};

/// Names of the controllers that need no rules, as [`AnyController::rival`] takes them.
pub const RIVAL_NAMES: [&str; 10] = [
    "fixed",
    "aimd",
    "cubic",
    "bbr",
    "bbr3",
    "vegas",
    "gradient2",
    "envoy",
    "copa",
    "iopathtune",
];

/// One controller, whichever.
#[derive(Clone, Debug)]
pub enum AnyController {
    /// Rules, as the original follows them.
    Faithful(Faithful),
    /// Rules, with what the original lacks.
    Extended(Extended),
    /// A window and a gap as set.
    Fixed(Fixed),
    /// Additive increase, multiplicative decrease.
    Aimd(Aimd),
    /// CUBIC.
    Cubic(Cubic),
    /// BBR, of the first version or of the third.
    Bbr(Bbr),
    /// Vegas.
    Vegas(Vegas),
    /// Netflix' Gradient2.
    Gradient2(Gradient2),
    /// Envoy's gradient.
    Envoy(EnvoyGradient),
    /// Copa's default mode.
    Copa(Copa),
    /// IOPathTune's heuristic.
    IoPathTune(IoPathTune),
}

impl AnyController {
    /// A controller by rules, with the defaults of extensions: the original, unless the extended one is wanted, or rules
    /// bound what only that one knows. Seeds tell the probes of streams apart.
    #[must_use]
    pub fn by_rules(
        deployment: Arc<Deployment>,
        window_x100: u32,
        wants_extended: bool,
        seed: u64,
    ) -> Self {
        if !wants_extended && deployment.rules.axes() <= THESIS_AXES {
            return Self::Faithful(Faithful::with_window(deployment, window_x100));
        }
        let extended = Extended::new(deployment, Arc::new(Extensions::default()), seed);
        let extended = extended.expect("the extensions' defaults are within their ranges");
        Self::Extended(extended.with_window(window_x100))
    }

    /// A rival by its name of [`RIVAL_NAMES`], with its defaults; seeds tell the probes of streams apart.
    #[must_use]
    pub fn rival(name: &str, seed: u64) -> Option<Self> {
        Self::tuned(name, seed, &RivalSettings::default())
    }

    /// The same with settings of its own.
    #[must_use]
    pub fn tuned(name: &str, seed: u64, settings: &RivalSettings) -> Option<Self> {
        Some(match name {
            "fixed" => Self::Fixed(Fixed::default()),
            "aimd" => Self::Aimd(Aimd::new(settings)),
            "cubic" => Self::Cubic(Cubic::new(settings)),
            "bbr" => Self::Bbr(Bbr::new(settings, false, seed)),
            "bbr3" => Self::Bbr(Bbr::new(settings, true, seed)),
            "vegas" => Self::Vegas(Vegas::new(settings, seed)),
            "gradient2" => Self::Gradient2(Gradient2::new(settings)),
            "envoy" => Self::Envoy(EnvoyGradient::new(seed)),
            "copa" => Self::Copa(Copa::new(settings)),
            "iopathtune" => Self::IoPathTune(IoPathTune::default()),
            _ => return None,
        })
    }
}

macro_rules! each {
    ($any:expr, $controller:ident => $call:expr) => {
        match $any {
            AnyController::Faithful($controller) => $call,
            AnyController::Extended($controller) => $call,
            AnyController::Fixed($controller) => $call,
            AnyController::Aimd($controller) => $call,
            AnyController::Cubic($controller) => $call,
            AnyController::Bbr($controller) => $call,
            AnyController::Vegas($controller) => $call,
            AnyController::Gradient2($controller) => $call,
            AnyController::Envoy($controller) => $call,
            AnyController::Copa($controller) => $call,
            AnyController::IoPathTune($controller) => $call,
        }
    };
}

impl Controller for AnyController {
    #[inline]
    fn reserve(&mut self, now_us: u64, bytes: u32) -> u64 {
        each!(self, controller => controller.reserve(now_us, bytes))
    }

    #[inline]
    fn on_send(&mut self, now_us: u64, bytes: u32) {
        each!(self, controller => controller.on_send(now_us, bytes));
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        each!(self, controller => controller.on_reply(reply));
    }

    fn on_timeout(&mut self, sent_us: u64, now_us: u64) {
        each!(self, controller => controller.on_timeout(sent_us, now_us));
    }

    #[inline]
    fn window(&self) -> Window {
        each!(self, controller => controller.window())
    }

    #[inline]
    fn gap_us(&self) -> u32 {
        each!(self, controller => controller.gap_us())
    }

    #[inline]
    fn signals(&self) -> Option<Signals> {
        each!(self, controller => controller.signals())
    }

    #[inline]
    fn admits(&self, in_flight: InFlight, bytes: u32) -> bool {
        each!(self, controller => controller.admits(in_flight, bytes))
    }
}
