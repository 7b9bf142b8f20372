//! A server whose data lies in memory: one copying engine, and a fixed time beside it.

use super::NS_PER_US;
use super::work::Span;
use crate::scenario::Memory;

/// Copies one request after the other; the fixed times of several requests pass side by side.
#[derive(Clone, Debug)]
pub(super) struct Copier {
    capacity_bytes: u64,
    ns_per_byte: f64,
    request_ns: f64,
    free_ns: f64,
}

impl Copier {
    pub(super) fn new(spec: &Memory) -> Self {
        Self {
            capacity_bytes: (spec.capacity_gb * 1e9) as u64,
            ns_per_byte: 1e3 / spec.copy_mb_per_s,
            request_ns: spec.request_us * NS_PER_US,
            free_ns: 0.0,
        }
    }

    pub(super) fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// The time from `now_ns` until `span` is copied, `factor` times as slowly as usual.
    pub(super) fn serve(&mut self, now_ns: f64, span: Span, factor: f64) -> f64 {
        self.free_ns = self.free_ns.max(now_ns) + span.bytes as f64 * self.ns_per_byte * factor;
        self.free_ns - now_ns + self.request_ns * factor
    }
}
