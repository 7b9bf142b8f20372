//! A number of the workload file: fixed, or drawn anew each time it is used.

use ascar_random::Random;

/// The shape of a random variable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// Gamma with this shape parameter and mean.
    Gamma {
        /// Shape parameter; Filebench's `gamma` (1.5, or 1500 in thousandths in `define randvar`).
        shape: f64,
        /// Mean of the distribution.
        mean: f64,
    },
    /// Uniform between two ends, both included.
    Uniform {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
}

/// A random variable with optional limits and rounding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variable {
    /// Distribution.
    pub shape: Shape,
    /// Smaller draws become this.
    pub min: f64,
    /// Larger draws become this.
    pub max: f64,
    /// Draws are rounded to a multiple of this; 0 leaves them.
    pub round: f64,
}

/// A fixed number or a random variable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// Always the same.
    Fixed(f64),
    /// Drawn anew each time.
    Drawn(Variable),
}

impl Quantity {
    /// A value: the number, or the next draw.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> f64 {
        match self {
            Quantity::Fixed(value) => *value,
            Quantity::Drawn(variable) => variable.draw(random),
        }
    }

    /// The mean, limits and rounding left aside.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Quantity::Fixed(value) => *value,
            Quantity::Drawn(variable) => match variable.shape {
                Shape::Gamma { mean, .. } => mean,
                Shape::Uniform { low, high } => f64::midpoint(low, high),
            },
        }
    }

    /// The largest value that can be drawn; gamma's tail is cut at 100 times its mean.
    #[must_use]
    pub fn largest(&self) -> f64 {
        match self {
            Quantity::Fixed(value) => *value,
            Quantity::Drawn(variable) => variable.max.min(match variable.shape {
                Shape::Gamma { mean, .. } => 100.0 * mean,
                Shape::Uniform { high, .. } => high,
            }),
        }
    }

    /// The same quantity times a factor.
    #[must_use]
    pub fn times(&self, factor: f64) -> Quantity {
        match *self {
            Quantity::Fixed(value) => Quantity::Fixed(value * factor),
            Quantity::Drawn(v) => Quantity::Drawn(Variable {
                shape: match v.shape {
                    Shape::Gamma { shape, mean } => Shape::Gamma {
                        shape,
                        mean: mean * factor,
                    },
                    Shape::Uniform { low, high } => Shape::Uniform {
                        low: low * factor,
                        high: high * factor,
                    },
                },
                min: v.min * factor,
                max: v.max * factor,
                round: v.round,
            }),
        }
    }
}

impl Variable {
    /// The next draw.
    pub fn draw(&self, random: &mut Random) -> f64 {
        let raw = match self.shape {
            Shape::Gamma { shape, mean } => random.gamma(shape, mean).min(100.0 * mean),
            Shape::Uniform { low, high } => low + (high - low) * random.unit(),
        };
        let rounded = if self.round > 0.0 {
            (raw / self.round).round() * self.round
        } else {
            raw
        };
        rounded.max(self.min).min(self.max)
    }
}
