//! The line search of Moré and Thuente: "Line search algorithms with guaranteed sufficient decrease", ACM
//! Transactions on Mathematical Software 20 (1994), with the constants that L-BFGS-B has.

/// Of the slope at the start: the decrease that suffices, the slope that is flat enough.
const DECREASE: f64 = 1e-3;
const FLAT: f64 = 0.9;
/// An interval as narrow as this, beside its end, is not searched further.
const NARROW: f64 = 0.1;
/// How far beyond the last step the next may lie while no minimum is enclosed.
const BEYOND: (f64, f64) = (1.1, 4.0);

/// The value and the slope of the function at a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At {
    pub(crate) step: f64,
    pub(crate) value: f64,
    pub(crate) slope: f64,
}

impl At {
    /// The function less a line, which is ψ of the paper but for a constant.
    fn less(self, slope: f64) -> At {
        At {
            step: self.step,
            value: self.value - self.step * slope,
            slope: self.slope - slope,
        }
    }

    fn plus(self, slope: f64) -> At {
        self.less(-slope)
    }
}

/// A search along one direction.
#[derive(Debug)]
pub(crate) struct LineSearch {
    start: At,
    /// The best step, and the other end of the interval.
    best: At,
    other: At,
    enclosed: bool,
    /// Whether ψ, not the function, is what is searched.
    first_stage: bool,
    /// Where the next step may lie.
    low: f64,
    high: f64,
    step_max: f64,
    width: f64,
    width_before: f64,
}

impl LineSearch {
    /// The search from a start with a negative slope; the first step is the caller's.
    pub(crate) fn new(value: f64, slope: f64, first: f64, step_max: f64) -> LineSearch {
        let start = At {
            step: 0.0,
            value,
            slope,
        };
        LineSearch {
            start,
            best: start,
            other: start,
            enclosed: false,
            first_stage: true,
            low: 0.0,
            high: first + BEYOND.1 * first,
            step_max,
            width: step_max,
            width_before: 2.0 * step_max,
        }
    }

    /// The next step to try after one; None: it is to be taken.
    pub(crate) fn next(&mut self, at: At) -> Option<f64> {
        let slope_enough = DECREASE * self.start.slope;
        let enough = self.start.value + at.step * slope_enough;
        if self.first_stage && at.value <= enough && at.slope >= 0.0 {
            self.first_stage = false;
        }
        if self.is_over(at, enough, slope_enough) {
            return None;
        }
        let step = if self.first_stage && at.value <= self.best.value && at.value > enough {
            let (mut best, mut other) =
                (self.best.less(slope_enough), self.other.less(slope_enough));
            let step = self.trial(&mut best, &mut other, at.less(slope_enough));
            (self.best, self.other) = (best.plus(slope_enough), other.plus(slope_enough));
            step
        } else {
            let (mut best, mut other) = (self.best, self.other);
            let step = self.trial(&mut best, &mut other, at);
            (self.best, self.other) = (best, other);
            step
        };
        Some(self.within(step))
    }

    /// Whether the step is good enough, or none better can be found.
    fn is_over(&self, at: At, enough: f64, slope_enough: f64) -> bool {
        let stuck = self.enclosed
            && (at.step <= self.low
                || at.step >= self.high
                || self.high - self.low <= NARROW * self.high);
        let farthest = at.step == self.step_max && at.value <= enough && at.slope <= slope_enough;
        let nearest = at.step == 0.0 && (at.value > enough || at.slope >= slope_enough);
        let good = at.value <= enough && at.slope.abs() <= -FLAT * self.start.slope;
        stuck || farthest || nearest || good
    }

    /// The step, halving the interval where it shrinks too slowly, kept where it may lie.
    fn within(&mut self, step: f64) -> f64 {
        let mut step = step;
        if self.enclosed {
            let width = (self.other.step - self.best.step).abs();
            if width >= 0.66 * self.width_before {
                step = self.best.step + 0.5 * (self.other.step - self.best.step);
            }
            (self.width_before, self.width) = (self.width, width);
            self.low = self.best.step.min(self.other.step);
            self.high = self.best.step.max(self.other.step);
        } else {
            self.low = step + BEYOND.0 * (step - self.best.step);
            self.high = step + BEYOND.1 * (step - self.best.step);
        }
        let step = step.max(0.0).min(self.step_max);
        let stuck =
            step <= self.low || step >= self.high || self.high - self.low <= NARROW * self.high;
        if self.enclosed && stuck {
            self.best.step
        } else {
            step
        }
    }

    /// The trial value of section 4, and the interval updated by algorithm 2.
    fn trial(&mut self, best: &mut At, other: &mut At, at: At) -> f64 {
        let opposite = at.slope * (best.slope / best.slope.abs()) < 0.0;
        let step = if at.value > best.value {
            // Case 1: a higher value, so that a minimum is enclosed.
            self.enclosed = true;
            let (cubic, quadratic) = (cubic_higher(*best, at), quadratic_by_value(*best, at));
            if (cubic - best.step).abs() < (quadratic - best.step).abs() {
                cubic
            } else {
                cubic + 0.5 * (quadratic - cubic)
            }
        } else if opposite {
            // Case 2: slopes of opposite signs.
            self.enclosed = true;
            let (cubic, secant) = (cubic_opposite(*best, at), secant(*best, at));
            if (cubic - at.step).abs() > (secant - at.step).abs() {
                cubic
            } else {
                secant
            }
        } else if at.slope.abs() < best.slope.abs() {
            // Case 3: the same sign, and flatter.
            self.flatter(*best, *other, at)
        } else if self.enclosed {
            // Case 4: the same sign, and not flatter.
            cubic_opposite(*other, at)
        } else if at.step > best.step {
            self.high
        } else {
            self.low
        };
        if at.value > best.value {
            *other = at;
        } else {
            if opposite {
                *other = *best;
            }
            *best = at;
        }
        step
    }

    fn flatter(&self, best: At, other: At, at: At) -> f64 {
        let (cubic, secant) = (
            cubic_beyond(best, at, self.low, self.high),
            secant(best, at),
        );
        let cubic_is_nearer = (cubic - at.step).abs() < (secant - at.step).abs();
        if self.enclosed {
            let step = if cubic_is_nearer { cubic } else { secant };
            let limit = at.step + 0.66 * (other.step - at.step);
            if at.step > best.step {
                step.min(limit)
            } else {
                step.max(limit)
            }
        } else {
            let step = if cubic_is_nearer { secant } else { cubic };
            step.min(self.high).max(self.low)
        }
    }
}

/// θ of a cubic through two points, and the scale against overflow.
fn cubic_terms(a: At, b: At) -> (f64, f64) {
    let theta = 3.0 * (a.value - b.value) / (b.step - a.step) + a.slope + b.slope;
    (theta, theta.abs().max(a.slope.abs()).max(b.slope.abs()))
}

fn discriminant(theta: f64, scale: f64, a: At, b: At) -> f64 {
    (theta / scale) * (theta / scale) - (a.slope / scale) * (b.slope / scale)
}

/// The minimum of the cubic, where the value has risen.
fn cubic_higher(best: At, at: At) -> f64 {
    let (theta, scale) = cubic_terms(best, at);
    let root = scale * discriminant(theta, scale, best, at).sqrt();
    let gamma = if at.step < best.step { -root } else { root };
    let share = ((gamma - best.slope) + theta) / (((gamma - best.slope) + gamma) + at.slope);
    best.step + share * (at.step - best.step)
}

/// The minimum of the cubic between slopes of opposite signs; that with the other end of the interval is the same.
fn cubic_opposite(known: At, at: At) -> f64 {
    let (theta, scale) = cubic_terms(known, at);
    let root = scale * discriminant(theta, scale, known, at).sqrt();
    let gamma = if at.step > known.step { -root } else { root };
    let share = ((gamma - at.slope) + theta) / (((gamma - at.slope) + gamma) + known.slope);
    at.step + share * (known.step - at.step)
}

/// The minimum of the cubic beyond the step, or as far as is allowed where there is none.
fn cubic_beyond(best: At, at: At, low: f64, high: f64) -> f64 {
    let (theta, scale) = cubic_terms(best, at);
    let root = scale * discriminant(theta, scale, best, at).max(0.0).sqrt();
    let gamma = if at.step > best.step { -root } else { root };
    let share = ((gamma - at.slope) + theta) / ((gamma + (best.slope - at.slope)) + gamma);
    if share < 0.0 && gamma != 0.0 {
        at.step + share * (best.step - at.step)
    } else if at.step > best.step {
        high
    } else {
        low
    }
}

fn quadratic_by_value(best: At, at: At) -> f64 {
    let width = at.step - best.step;
    let fall = (best.value - at.value) / width + best.slope;
    best.step + ((best.slope / fall) / 2.0) * width
}

fn secant(best: At, at: At) -> f64 {
    at.step + (at.slope / (at.slope - best.slope)) * (best.step - at.step)
}
