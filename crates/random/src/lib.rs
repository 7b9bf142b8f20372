//! Seeded random numbers: small, fast, and any seed is good.
//!
//! Every crate that draws (load, simulation, forest) draws from here. None of them reads a clock or the system's
//! entropy: what is random takes its seed.

#[cfg(test)]
mod tests;

/// SplitMix64's increment: 2^64 over the golden ratio, made odd.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's output function: a bijection in which one bit of the input changes half of the output. It keeps 0.
#[inline]
#[must_use]
pub fn mix(value: u64) -> u64 {
    let mut z = value;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// [`mix`] of a number that may well be 0, a count or an index: the first draw of the generator with that seed.
#[inline]
#[must_use]
pub fn spread(value: u64) -> u64 {
    mix(value.wrapping_add(GOLDEN))
}

/// A 64-bit draw brought into `0..bound` by multiplication (Lemire, TOMACS 2019); 0 when the bound is 0. The bias is
/// below bound / 2^64.
#[inline]
#[must_use]
pub fn below(draw: u64, bound: u64) -> u64 {
    ((u128::from(draw) * u128::from(bound)) >> 64) as u64
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, figure 17): one chain of multiplications a number.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator of a seed.
    #[inline]
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The stream of `seed` for a purpose told by `path` (part, number, ...). Each thread and part draws from a
    /// stream of its own, so that no draw depends on what another did.
    #[must_use]
    pub fn of(seed: u64, path: &[u64]) -> Random {
        let mut state = spread(seed);
        for &part in path {
            state = mix(state ^ spread(part).wrapping_mul(GOLDEN));
        }
        Random { state }
    }

    /// 64 uniform bits.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Uniform in `0..bound`; 0 when the bound is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        below(self.draw(), bound)
    }

    /// Uniform in the open interval (0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.draw() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
    }

    /// A standard normal number (Marsaglia's polar method).
    #[inline]
    pub fn normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * self.unit() - 1.0;
            let y = 2.0 * self.unit() - 1.0;
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// An exponential number of the given mean.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -self.unit().ln() * mean
    }

    /// A gamma number of the given shape, above zero, scaled to the given mean (Marsaglia and Tsang, TOMS 2000).
    #[inline]
    pub fn gamma(&mut self, shape: f64, mean: f64) -> f64 {
        debug_assert!(shape > 0.0 && mean >= 0.0);
        // A gamma of shape k is one of shape k + 1 times U^(1/k).
        let (boosted, boost) = if shape < 1.0 {
            (shape + 1.0, self.unit().powf(1.0 / shape))
        } else {
            (shape, 1.0)
        };
        let d = boosted - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v * boost * mean / shape;
            }
        }
    }
}
