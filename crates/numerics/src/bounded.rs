//! The minimum of a smooth function within bounds: L-BFGS-B.
//!
//! Byrd, Lu, Nocedal and Zhu, "A limited memory algorithm for bound constrained optimization", SIAM Journal on
//! Scientific Computing 16 (1995), with the projection of Morales and Nocedal, "Remark on Algorithm 778", ACM
//! Transactions on Mathematical Software 38 (2011). Constants, tests and safeguards are those of its version 3.0, so
//! that steps are the same but for rounding. Variables are few here (parameters of a kernel), so that the Hessian's
//! approximation is kept as a matrix in place of its compact form.

use ndarray::{Array1, Array2, Axis};

use crate::cholesky;
use crate::line_search::{At, LineSearch};

/// Steps whose curvature is remembered.
const REMEMBERED: usize = 10;
/// Evaluations of one line search.
const TRIES: usize = 20;
/// The end: no component of the projected gradient is larger, or the value falls by less relative to it.
const GRADIENT: f64 = 1e-5;
const FALL: f64 = 2.220_446_049_250_313e-9;
const STEP_MAX: f64 = 1e10;

/// The bounds of each variable; infinite where there is none.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    /// The lowest values.
    pub low: &'a [f64],
    /// The highest values, not below the lowest.
    pub high: &'a [f64],
}

/// The best place found.
#[derive(Debug, Clone, PartialEq)]
pub struct Minimum {
    /// The function there.
    pub value: f64,
    /// Within the bounds.
    pub place: Vec<f64>,
    /// Steps taken.
    pub iterations: usize,
    /// How often the function was asked.
    pub evaluations: usize,
}

/// Search from a start, which is brought within the bounds; the function tells its value and its gradient.
///
/// # Errors
///
/// Those of the function.
///
/// # Panics
///
/// Start, bounds and gradient differ in length, or a bound is above the other.
pub fn minimize<E>(
    start: &[f64],
    bounds: Bounds<'_>,
    iterations_max: usize,
    function: impl FnMut(&[f64]) -> Result<(f64, Vec<f64>), E>,
) -> Result<Minimum, E> {
    let mut search = Search::new(start, bounds, function)?;
    while search.gradient_is_left() && search.iterations < iterations_max {
        match search.step()? {
            Step::Taken if search.fall_is_over() => break,
            Step::Taken => search.learn(),
            // Nothing that is remembered is wrong if nothing is remembered.
            Step::Impossible if search.curvature.is_empty() => break,
            Step::Impossible => search.curvature.clear(),
        }
    }
    Ok(Minimum {
        value: search.now.value,
        place: search.now.x.to_vec(),
        iterations: search.iterations,
        evaluations: search.evaluations,
    })
}

enum Step {
    Taken,
    Impossible,
}

/// A place, with what the function says of it.
#[derive(Debug, Clone)]
struct Place {
    x: Array1<f64>,
    value: f64,
    gradient: Array1<f64>,
}

/// What changed by a step: the place, the gradient.
#[derive(Debug)]
struct Curvature {
    moved: Array1<f64>,
    bent: Array1<f64>,
}

struct Search<'a, F> {
    bounds: Bounds<'a>,
    function: F,
    now: Place,
    before: Place,
    curvature: Vec<Curvature>,
    iterations: usize,
    evaluations: usize,
}

/// The generalised Cauchy point: the first minimum along the projected gradient, and the variables free there.
struct Cauchy {
    x: Array1<f64>,
    free: Vec<usize>,
}

impl<'a, E, F: FnMut(&[f64]) -> Result<(f64, Vec<f64>), E>> Search<'a, F> {
    fn new(start: &[f64], bounds: Bounds<'a>, mut function: F) -> Result<Self, E> {
        assert!(
            start.len() == bounds.low.len() && start.len() == bounds.high.len(),
            "bounds for every variable"
        );
        let x: Array1<f64> = start
            .iter()
            .zip(bounds.low.iter().zip(bounds.high))
            .map(|(&value, (&low, &high))| {
                assert!(low <= high, "a bound is above the other");
                value.max(low).min(high)
            })
            .collect();
        let now = ask(&mut function, x)?;
        Ok(Search {
            bounds,
            function,
            before: now.clone(),
            now,
            curvature: Vec::new(),
            iterations: 0,
            evaluations: 1,
        })
    }

    /// Whether the projected gradient is larger than the tolerance; false where it is not a number.
    fn gradient_is_left(&self) -> bool {
        let mut largest: f64 = 0.0;
        for (index, &slope) in self.now.gradient.iter().enumerate() {
            if slope.is_nan() {
                return false;
            }
            let x = self.now.x[index];
            let projected = if slope < 0.0 {
                slope.max(x - self.bounds.high[index])
            } else {
                slope.min(x - self.bounds.low[index])
            };
            largest = largest.max(projected.abs());
        }
        largest > GRADIENT
    }

    fn fall_is_over(&self) -> bool {
        let (now, before) = (self.now.value, self.before.value);
        before - now <= FALL * now.abs().max(before.abs()).max(1.0)
    }

    /// One iteration: the Cauchy point, the minimum among the variables free there, a line search to it.
    fn step(&mut self) -> Result<Step, E> {
        let hessian = self.hessian();
        let cauchy = self.cauchy(&hessian);
        let aim = if cauchy.free.is_empty() || self.curvature.is_empty() {
            Some(cauchy.x)
        } else {
            self.subspace_minimum(&hessian, &cauchy)
        };
        match aim {
            Some(aim) => self.search_line(&aim),
            None => Ok(Step::Impossible),
        }
    }

    /// θ, by which the Hessian's approximation begins.
    fn scale(&self) -> f64 {
        self.curvature.last().map_or(1.0, |last| {
            last.bent.dot(&last.bent) / last.moved.dot(&last.bent)
        })
    }

    /// B of the quadratic model: a multiple of one, changed by each step that is remembered (section 3).
    fn hessian(&self) -> Array2<f64> {
        let mut hessian = Array2::eye(self.now.x.len()) * self.scale();
        for Curvature { moved, bent } in &self.curvature {
            let image = hessian.dot(moved);
            add_outer(&mut hessian, -1.0 / moved.dot(&image), &image);
            add_outer(&mut hessian, 1.0 / moved.dot(bent), bent);
        }
        hessian
    }

    /// Algorithm CP, section 4.
    fn cauchy(&self, hessian: &Array2<f64>) -> Cauchy {
        let (x, gradient) = (&self.now.x, &self.now.gradient);
        let mut direction = -gradient;
        let mut breaks: Vec<(f64, usize)> = Vec::new();
        let mut fixed = vec![false; x.len()];
        let mut bounded = true;
        for (index, way) in direction.iter_mut().enumerate() {
            let (low, high) = (self.bounds.low[index], self.bounds.high[index]);
            let room = if *way < 0.0 {
                x[index] - low
            } else {
                high - x[index]
            };
            let held = low == high
                || (x[index] <= low && *way <= 0.0)
                || (x[index] >= high && *way >= 0.0);
            if held {
                fixed[index] = true;
                *way = 0.0;
            } else if *way != 0.0 && room.is_finite() {
                breaks.push((room / way.abs(), index));
            } else if *way != 0.0 {
                bounded = false;
            }
        }
        breaks.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut point = x.clone();
        let mut slope = -direction.dot(&direction);
        let mut image = hessian.dot(&direction);
        let mut bend = direction.dot(&image);
        let bend_least = f64::EPSILON * -slope * self.scale();
        let mut passed = 0.0;
        let mut further = -slope / bend;
        for (place, &(at, index)) in breaks.iter().enumerate() {
            if further < at - passed {
                break;
            }
            point.scaled_add(at - passed, &direction);
            passed = at;
            let up = direction[index] > 0.0;
            point[index] = if up {
                self.bounds.high
            } else {
                self.bounds.low
            }[index];
            fixed[index] = true;
            direction[index] = 0.0;
            if place + 1 == breaks.len() && bounded {
                further = 0.0;
                break;
            }
            image = hessian.dot(&direction);
            slope = gradient.dot(&direction) + (&point - x).dot(&image);
            bend = direction.dot(&image).max(bend_least);
            further = -slope / bend;
        }
        if further > 0.0 {
            point.scaled_add(further, &direction);
        }
        Cauchy {
            x: point,
            free: (0..x.len()).filter(|&index| !fixed[index]).collect(),
        }
    }

    /// The minimum of the model where the other variables stay at the Cauchy point (section 5), projected; None: the
    /// model is not convex enough to have one.
    fn subspace_minimum(&self, hessian: &Array2<f64>, cauchy: &Cauchy) -> Option<Array1<f64>> {
        let gradient = &self.now.gradient + &hessian.dot(&(&cauchy.x - &self.now.x));
        let right: Vec<f64> = cauchy.free.iter().map(|&index| -gradient[index]).collect();
        let mut reduced = hessian
            .select(Axis(0), &cauchy.free)
            .select(Axis(1), &cauchy.free);
        if !cholesky::factor(&mut reduced.view_mut()) {
            return None;
        }
        let newton = cholesky::solve(&reduced.view(), &right);
        let (low, high) = (self.bounds.low, self.bounds.high);
        let mut aim = cauchy.x.clone();
        let mut meets_bound = false;
        for (&index, way) in cauchy.free.iter().zip(&newton) {
            aim[index] = (aim[index] + way).max(low[index]).min(high[index]);
            meets_bound |= aim[index] == low[index] || aim[index] == high[index];
        }
        if !meets_bound || (&aim - &self.now.x).dot(&self.now.gradient) <= 0.0 {
            return Some(aim);
        }
        // The projection is no descent: as far as the first bound on the way instead.
        let mut aim = cauchy.x.clone();
        let (mut share, mut first) = (1.0, None);
        for (&index, &way) in cauchy.free.iter().zip(&newton) {
            let bound = if way < 0.0 { low[index] } else { high[index] };
            let here = (bound - aim[index]) / way;
            if way != 0.0 && here < share {
                (share, first) = (here.max(0.0), Some((index, bound)));
            }
        }
        for (&index, way) in cauchy.free.iter().zip(&newton) {
            aim[index] += share * way;
        }
        if let Some((index, bound)) = first {
            aim[index] = bound;
        }
        Some(aim)
    }

    /// A step towards a place; nothing has changed where none is possible.
    fn search_line(&mut self, aim: &Array1<f64>) -> Result<Step, E> {
        let direction = aim - &self.now.x;
        let slope = self.now.gradient.dot(&direction);
        if slope.is_nan() || slope >= 0.0 {
            return Ok(Step::Impossible);
        }
        let step_max = self.step_max(&direction);
        let mut step = if self.iterations == 0 && !self.is_boxed() {
            step_max.min(1.0 / direction.dot(&direction).sqrt())
        } else {
            1.0
        };
        let mut line = LineSearch::new(self.now.value, slope, step, step_max);
        for _ in 0..TRIES {
            let x = if step == 1.0 {
                aim.clone()
            } else {
                self.along(&direction, step)
            };
            let place = ask(&mut self.function, x)?;
            self.evaluations += 1;
            let at = At {
                step,
                value: place.value,
                slope: place.gradient.dot(&direction),
            };
            match line.next(at) {
                Some(next) => step = next,
                None => {
                    self.before = std::mem::replace(&mut self.now, place);
                    self.iterations += 1;
                    return Ok(Step::Taken);
                }
            }
        }
        Ok(Step::Impossible)
    }

    /// How far a line search may go.
    fn step_max(&self, direction: &Array1<f64>) -> f64 {
        let Bounds { low, high } = self.bounds;
        let is_free = |index: usize| low[index].is_infinite() && high[index].is_infinite();
        if (0..direction.len()).all(is_free) {
            return STEP_MAX;
        }
        if self.iterations == 0 {
            return 1.0;
        }
        let mut most = STEP_MAX;
        for (index, &way) in direction.iter().enumerate() {
            let bound = if way < 0.0 { low[index] } else { high[index] };
            if way != 0.0 {
                most = most.min(((bound - self.now.x[index]) / way).max(0.0));
            }
        }
        most
    }

    fn is_boxed(&self) -> bool {
        let mut all = self.bounds.low.iter().chain(self.bounds.high);
        all.all(|bound| bound.is_finite())
    }

    /// A place on the way; rounding does not take it out of the bounds.
    fn along(&self, direction: &Array1<f64>, step: f64) -> Array1<f64> {
        let mut x = &self.now.x + &(direction * step);
        for (index, value) in x.iter_mut().enumerate() {
            *value = value
                .max(self.bounds.low[index])
                .min(self.bounds.high[index]);
        }
        x
    }

    /// Remember the curvature along the step, if it is convex.
    fn learn(&mut self) {
        let moved = &self.now.x - &self.before.x;
        let bent = &self.now.gradient - &self.before.gradient;
        let convex = moved.dot(&bent) > -f64::EPSILON * self.before.gradient.dot(&moved);
        if convex {
            if self.curvature.len() == REMEMBERED {
                self.curvature.remove(0);
            }
            self.curvature.push(Curvature { moved, bent });
        }
    }
}

/// What the function says of a place.
fn ask<E>(
    function: &mut impl FnMut(&[f64]) -> Result<(f64, Vec<f64>), E>,
    x: Array1<f64>,
) -> Result<Place, E> {
    let (value, gradient) = function(x.as_slice().expect("one row of numbers"))?;
    assert_eq!(gradient.len(), x.len(), "a slope for every variable");
    Ok(Place {
        x,
        value,
        gradient: gradient.into(),
    })
}

/// matrix + scale v vᵀ.
fn add_outer(matrix: &mut Array2<f64>, scale: f64, vector: &Array1<f64>) {
    for (mut row, &own) in matrix.rows_mut().into_iter().zip(vector) {
        row.scaled_add(scale * own, vector);
    }
}
