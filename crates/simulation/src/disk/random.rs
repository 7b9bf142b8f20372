//! Seeded numbers of devices, the same on every machine: what is not plain arithmetic comes from `libm`.

use ascar_random::{GOLDEN, spread};

/// A stream of numbers of a device's own.
#[derive(Clone, Debug)]
pub(super) struct Random(ascar_random::Random);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        // One step in: a device's numbers stay those of the figures that are published.
        Self(ascar_random::Random::new(spread(seed).wrapping_add(GOLDEN)))
    }

    /// A number from 0 up to, not including, 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A standard normal number (Box and Muller, 1958).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}
