//! Seeded random numbers: small, fast, and the same on every machine.

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): one multiplication chain a number, any seed is good.
///
/// Streams are split by [`Random::of`], so that each thread and purpose draws from its own sequence and
/// no draw depends on what another thread did.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's output function: a bijection that spreads every input bit.
#[inline]
#[must_use]
pub fn mix(value: u64) -> u64 {
    let mut z = value;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Random {
    /// The stream of `seed` for a purpose told by `path` (thread number, file set, ...).
    #[must_use]
    pub fn of(seed: u64, path: &[u64]) -> Random {
        let mut state = mix(seed.wrapping_add(GOLDEN));
        for part in path {
            state = mix(state ^ mix(part.wrapping_add(GOLDEN)).wrapping_mul(GOLDEN));
        }
        Random { state }
    }

    /// 64 uniform bits.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Uniform in 0..bound; 0 when the bound is 0. The bias is below bound / 2^64.
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

    /// A gamma number of the given shape, scaled to the given mean (Marsaglia and Tsang, TOMS 2000).
    pub fn gamma(&mut self, shape: f64, mean: f64) -> f64 {
        debug_assert!(shape > 0.0 && mean >= 0.0);
        let scale = mean / shape;
        if shape < 1.0 {
            // A gamma of shape k is one of shape k + 1 times U^(1/k).
            let boost = self.unit().powf(1.0 / shape);
            return self.gamma_standard(shape + 1.0) * boost * scale;
        }
        self.gamma_standard(shape) * scale
    }

    fn gamma_standard(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

/// A 64-bit draw brought into 0..bound by multiplication (Lemire, TOMACS 2019).
#[inline]
#[must_use]
pub fn below(draw: u64, bound: u64) -> u64 {
    ((u128::from(draw) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_has_the_mean_and_variance_asked_for() {
        for (shape, mean) in [(1.5, 131_072.0), (0.5, 10.0), (9.0, 3.0)] {
            let mut random = Random::of(7, &[1]);
            let n = 200_000;
            let values: Vec<f64> = (0..n).map(|_| random.gamma(shape, mean)).collect();
            let average = values.iter().sum::<f64>() / f64::from(n);
            let variance = values.iter().map(|v| (v - average).powi(2)).sum::<f64>() / f64::from(n);
            assert!(
                (average / mean - 1.0).abs() < 0.02,
                "shape {shape}: mean {average}"
            );
            assert!(
                (variance / (mean * mean / shape) - 1.0).abs() < 0.05,
                "shape {shape}"
            );
        }
    }

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let draw = |path: &[u64]| Random::of(42, path).draw();
        assert_eq!(draw(&[1, 2]), draw(&[1, 2]));
        assert_ne!(draw(&[1, 2]), draw(&[2, 1]));
        assert_ne!(draw(&[1]), draw(&[1, 0]));
    }

    #[test]
    fn below_is_even_over_its_range() {
        let mut random = Random::of(3, &[]);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(
            counts.iter().all(|c| (9_500..10_500).contains(c)),
            "{counts:?}"
        );
        assert_eq!(random.below(0), 0);
    }
}
