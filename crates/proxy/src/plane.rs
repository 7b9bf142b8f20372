//! Rules act on the proxy's streams.

use std::sync::Arc;
use std::time::Duration;

use ascar_congestion::RuleSet;
use ascar_plane::{GoneStreams, Plane, Recording, StreamIndicators};

use crate::streams::Streams;

/// The streams, as a rule manager sees them.
#[derive(Debug)]
pub struct ProxyPlane {
    streams: Arc<Streams>,
}

impl ProxyPlane {
    /// The plane of these streams.
    #[must_use]
    pub fn new(streams: Arc<Streams>) -> Self {
        Self { streams }
    }
}

impl Plane for ProxyPlane {
    fn follow(&mut self, rules: Option<&RuleSet>) -> Result<(), String> {
        self.streams.follow(rules.cloned());
        Ok(())
    }

    fn used(&self) -> Option<RuleSet> {
        self.streams.used()
    }

    fn observe(&self) -> Vec<StreamIndicators> {
        self.streams.observe()
    }

    fn gone(&self) -> Vec<GoneStreams> {
        self.streams.gone()
    }

    fn record(&mut self, length: Duration) -> Result<(), String> {
        self.streams.recorder().begin(length);
        Ok(())
    }

    fn take_recorded(&mut self) -> Recording {
        self.streams.recorder().take()
    }
}
