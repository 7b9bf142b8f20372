//! Envoy's gradient: the median process time against one measured now and then with hardly anything in flight.
//!
//! Source: Envoy's adaptive concurrency filter, gradient controller (envoyproxy.io, "Adaptive Concurrency"): every
//! 100 ms `g = clamp(1.25 * ideal / median, 0.5, 2)`, `limit = g * limit + sqrt(g * limit)`; the ideal time is the
//! median of 50 replies with 3 requests in flight, measured at the start, every 60 s plus up to 15%, and after the
//! limit was at its least for 5 samples. There requests above the limit are refused, here they wait.

use super::histogram::Histogram;
use super::limit::Limit;
use crate::controller::{Controller, Reply, Window};
use crate::jitter::Jitter;

const SAMPLE_US: u64 = 100_000;
const IDEAL_INTERVAL_US: u64 = 60_000_000;
const IDEAL_REPLIES: u32 = 50;
const IDEAL_LIMIT: f64 = 3.0;
const BUFFER: f64 = 1.25;
const AT_LEAST_SAMPLES: u8 = 5;

/// What is being measured.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The ideal process time, of requests sent since; then the limit goes back.
    Ideal { since_us: u64, limit: Limit },
    /// The present one.
    Sample { end_us: u64 },
}

/// Envoy's gradient controller.
#[derive(Clone, Debug)]
pub struct EnvoyGradient {
    limit: Limit,
    phase: Phase,
    histogram: Histogram,
    ideal_us: f64,
    next_ideal_us: u64,
    samples_at_least: u8,
    jitter: Jitter,
}

impl EnvoyGradient {
    /// A new stream; the seed tells streams' measurements apart.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut envoy = Self {
            limit: Limit::default(),
            phase: Phase::Sample { end_us: 0 },
            histogram: Histogram::default(),
            ideal_us: 0.0,
            next_ideal_us: 0,
            samples_at_least: 0,
            jitter: Jitter::new(seed),
        };
        envoy.limit.set(IDEAL_LIMIT);
        envoy.measure_ideal(0);
        envoy
    }

    fn measure_ideal(&mut self, now_us: u64) {
        self.phase = Phase::Ideal {
            since_us: now_us,
            limit: self.limit,
        };
        self.limit.set(IDEAL_LIMIT);
        self.samples_at_least = 0;
        self.histogram.clear();
    }

    fn end_ideal(&mut self, now_us: u64, limit: Limit) {
        self.ideal_us = self.histogram.median();
        self.histogram.clear();
        self.limit = limit;
        let longest_us = IDEAL_INTERVAL_US * 115 / 100;
        self.next_ideal_us = now_us + self.jitter.shortened(longest_us, 87);
        self.phase = Phase::Sample {
            end_us: now_us + SAMPLE_US,
        };
    }

    fn end_sample(&mut self, now_us: u64) {
        let gradient = (BUFFER * self.ideal_us / self.histogram.median()).clamp(0.5, 2.0);
        self.histogram.clear();
        let scaled = gradient * self.limit.get();
        self.limit
            .set((scaled + scaled.sqrt()).floor().max(IDEAL_LIMIT));
        let at_least = self.limit.get() <= IDEAL_LIMIT;
        self.samples_at_least = if at_least {
            self.samples_at_least + 1
        } else {
            0
        };
        self.phase = Phase::Sample {
            end_us: now_us + SAMPLE_US,
        };
        if now_us >= self.next_ideal_us || self.samples_at_least >= AT_LEAST_SAMPLES {
            self.measure_ideal(now_us);
        }
    }
}

impl Controller for EnvoyGradient {
    fn reserve(&mut self, now_us: u64, _bytes: u32) -> u64 {
        now_us
    }

    #[inline]
    fn on_reply(&mut self, reply: &Reply) {
        match self.phase {
            Phase::Ideal { since_us, limit } => {
                // What was sent before found a queue of its own making.
                if reply.sent_us >= since_us {
                    self.histogram.add(reply.process_time_us());
                }
                if self.histogram.total() >= IDEAL_REPLIES {
                    self.end_ideal(reply.now_us, limit);
                }
            }
            Phase::Sample { end_us } => {
                self.histogram.add(reply.process_time_us());
                if reply.now_us >= end_us {
                    self.end_sample(reply.now_us);
                }
            }
        }
    }

    /// Envoy counts no latency for requests that were reset.
    fn on_timeout(&mut self, _sent_us: u64, _now_us: u64) {}

    #[inline]
    fn window(&self) -> Window {
        self.limit.window()
    }

    fn gap_us(&self) -> u32 {
        0
    }
}
