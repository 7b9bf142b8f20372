//! The original controller: rules of three indicators, whole-number arithmetic, two window changes a second.

use std::sync::Arc;

use crate::controller::{Controller, Reply, Window};
use crate::pacer::Pacer;
use crate::rule_set::{Deployment, RuleSet};
use crate::signals::{Signals, Tracker};
use crate::window::{WINDOW_X100_DEFAULT, WINDOW_X100_MAX, WINDOW_X100_MIN, stepped};

/// All that is kept a stream.
#[derive(Clone, Copy, Debug)]
pub struct FaithfulState {
    tracker: Tracker,
    pacer: Pacer,
    /// When the window may change next.
    change_us: u64,
    tau_us: u32,
    window_x100: u16,
}

// The thesis' figure (3.2.1): "only 48 bytes per server".
const _: () = assert!(size_of::<FaithfulState>() <= 48);
const _: () = assert!(WINDOW_X100_MAX <= u16::MAX as u32);

impl FaithfulState {
    /// A stream without replies yet; the window in hundredths of requests, made to fit 1 to 256 requests.
    #[must_use]
    pub fn new(window_x100: u32) -> Self {
        Self {
            tracker: Tracker::default(),
            pacer: Pacer::default(),
            change_us: 0,
            tau_us: 0,
            window_x100: window_x100.clamp(WINDOW_X100_MIN, WINDOW_X100_MAX) as u16,
        }
    }

    /// What loading a rule set does: forgets averages, the shortest process time and tau, keeps the window.
    pub fn reset(&mut self) {
        *self = Self::new(self.window_x100.into());
    }

    /// Takes in a reply; the number of the rule that held, and where. The first reply only sets a baseline.
    #[inline]
    pub fn on_reply(&mut self, rules: &RuleSet, reply: &Reply) -> Option<(usize, Signals)> {
        if !self
            .tracker
            .on_reply(reply.sent_us, reply.now_us, reply.process_time_us())
        {
            return None;
        }
        let signals = self.tracker.signals();
        let rule = rules.lookup(&signals);
        let action = &rules.rules()[rule].action;
        self.tau_us = action.tau_us;
        if reply.now_us >= self.change_us {
            self.window_x100 = stepped(self.window_x100.into(), action) as u16;
            self.change_us = reply.now_us.saturating_add(rules.update_gap_us());
        }
        Some((rule, signals))
    }
}

/// The original controller over a shared rule set.
#[derive(Clone, Debug)]
pub struct Faithful {
    state: FaithfulState,
    deployment: Arc<Deployment>,
}

impl Faithful {
    /// A new stream with the default window of 8 requests.
    #[must_use]
    pub fn new(deployment: Arc<Deployment>) -> Self {
        Self::with_window(deployment, WINDOW_X100_DEFAULT)
    }

    /// A new stream with another window, in hundredths of requests.
    #[must_use]
    pub fn with_window(deployment: Arc<Deployment>, window_x100: u32) -> Self {
        Self {
            state: FaithfulState::new(window_x100),
            deployment,
        }
    }

    /// Puts other rules in force and forgets what was observed; the window stays.
    pub fn load(&mut self, deployment: Arc<Deployment>) {
        self.deployment = deployment;
        self.state.reset();
    }

    /// The rules in force.
    #[must_use]
    pub fn deployment(&self) -> &Arc<Deployment> {
        &self.deployment
    }
}

impl Controller for Faithful {
    #[inline]
    fn reserve(&mut self, now_us: u64, _bytes: u32) -> u64 {
        self.state.pacer.reserve(now_us, self.state.tau_us.into())
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        if let Some((rule, signals)) = self.state.on_reply(&self.deployment.rules, reply) {
            self.deployment.usage.record(rule, &signals);
        }
    }

    /// The original has no notion of time-outs.
    fn on_timeout(&mut self, _sent_us: u64, _now_us: u64) {}

    #[inline]
    fn window(&self) -> Window {
        Window::of_requests_x100(self.state.window_x100.into())
    }

    fn gap_us(&self) -> u32 {
        self.state.tau_us
    }

    fn signals(&self) -> Option<Signals> {
        Some(self.state.tracker.signals())
    }
}
