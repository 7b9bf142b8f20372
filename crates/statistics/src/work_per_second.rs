//! Work-per-second: the stable speed from the durations of rounds of different lengths.
//!
//! ASCAR thesis, section 4.2.1, eq. 4.1-4.4: the duration of a round of w units is t = alpha + w / v, where v is
//! the stable speed and alpha the time that set-up, warm-up and cool-down take beyond what their share of the work
//! would. The line is fitted by least squares. Two departures from ordinary least squares keep its standard error
//! right: rounds are weighted by a power of their expected duration where long rounds scatter more (Carroll and
//! Ruppert 1988, Transformation and Weighting in Regression, chapter 2), and residuals that correlate from round
//! to round are whitened (Prais and Winsten 1954).

use crate::autocorrelation::{check_limit, coefficient};
use crate::distributions::student_t;
use crate::error::{Error, Result, check_level, check_values};

/// One round: how much work, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Units of work.
    pub work: f64,
    /// Duration in seconds.
    pub duration_s: f64,
}

/// What rounds of different lengths say about the stable speed.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkPerSecond {
    /// Stable speed v of eq. 4.4, units of work per second; NaN where durations do not grow with work.
    pub speed: f64,
    /// Limits of the speed; None where there is no honest interval.
    pub limits: Option<(f64, f64)>,
    /// alpha of eq. 4.4: seconds that a round takes beyond its work.
    pub overhead_s: f64,
    /// Degrees of freedom of the interval.
    pub dof: f64,
    /// Rounds used: those not dominated by the overhead.
    pub rounds: usize,
    /// Lag-1 autocorrelation of the residuals, in order of execution.
    pub autocorrelation: f64,
    /// Why there is no interval; None where there is one.
    pub reason: Option<String>,
}

impl WorkPerSecond {
    /// Predicted duration of a round, eq. 4.4.
    pub fn predict_duration_s(&self, work: f64) -> f64 {
        self.overhead_s + work / self.speed
    }
}

/// Fewer rounds leave no scatter to judge by.
const ROUNDS_MIN: usize = 4;
/// Powers of the expected duration to which a round's standard deviation may be proportional: constant noise of
/// the clock, independent units of work, a speed that varies from round to round.
const POWERS: [f64; 3] = [0.0, 0.5, 1.0];
/// The chosen power counts as a fitted parameter; by simulation this keeps ten rounds' intervals at 94-97%.
const POWER_PARAMETERS: f64 = 1.0;

/// Fits eq. 4.4 to rounds in order of execution.
///
/// Rounds whose work is less than alpha times the speed (the work that the overhead's time would have done) are
/// set aside, and the rest fitted again, until none is. Refused where a round has no work or no duration.
pub fn work_per_second(
    rounds: &[Round],
    confidence: f64,
    autocorrelation_limit: f64,
) -> Result<WorkPerSecond> {
    check_level("confidence", confidence)?;
    check_limit(autocorrelation_limit)?;
    let works: Vec<f64> = rounds.iter().map(|round| round.work).collect();
    let durations: Vec<f64> = rounds.iter().map(|round| round.duration_s).collect();
    check_values("work", &works, 1)?;
    check_values("duration_s", &durations, 1)?;
    for (name, values) in [("work", &works), ("duration_s", &durations)] {
        if let Some(index) = values.iter().position(|&value| value <= 0.0) {
            return Err(Error::new(
                name,
                format!("{} at index {index}", values[index]),
                "a number above 0",
            ));
        }
    }
    let mut kept = rounds.to_vec();
    loop {
        let Some(fit) = Fit::best(&kept, autocorrelation_limit) else {
            return Ok(without(
                &kept,
                "all rounds have the same work amount; vary it",
            ));
        };
        let worthy = |round: &Round| fit.slope <= 0.0 || round.work >= fit.intercept / fit.slope;
        let count = kept.iter().filter(|round| worthy(round)).count();
        if count == kept.len() || count < ROUNDS_MIN {
            return Ok(judge(&fit, kept.len(), confidence));
        }
        kept.retain(worthy);
    }
}

fn without(rounds: &[Round], reason: &str) -> WorkPerSecond {
    WorkPerSecond {
        speed: f64::NAN,
        limits: None,
        overhead_s: f64::NAN,
        dof: 0.0,
        rounds: rounds.len(),
        autocorrelation: 0.0,
        reason: Some(reason.to_owned()),
    }
}

/// Turns the interval of the slope into one of the speed.
fn judge(fit: &Fit, rounds: usize, confidence: f64) -> WorkPerSecond {
    let mut found = WorkPerSecond {
        speed: 1.0 / fit.slope,
        limits: None,
        overhead_s: fit.intercept,
        dof: fit.dof,
        rounds,
        autocorrelation: fit.autocorrelation,
        reason: None,
    };
    if rounds < ROUNDS_MIN {
        found.reason = Some(format!("{rounds} rounds; at least {ROUNDS_MIN} are needed"));
        return found;
    }
    if fit.slope <= 0.0 {
        found.speed = f64::NAN;
        found.reason = Some("durations do not grow with the work amount".to_owned());
        return found;
    }
    let half = student_t::quantile(0.5 + 0.5 * confidence, fit.dof) * fit.slope_variance.sqrt();
    if half < fit.slope {
        found.limits = Some((1.0 / (fit.slope + half), 1.0 / (fit.slope - half)));
    } else {
        found.reason = Some(
            "the duration per unit of work is not told from 0: more or longer rounds".to_owned(),
        );
    }
    found
}

/// One observation of a line through two columns, scaled by its expected scatter.
#[derive(Clone, Copy, Debug)]
struct Row {
    one: f64,
    work: f64,
    duration: f64,
}

impl Row {
    fn minus(self, other: Self, share: f64) -> Self {
        Self {
            one: self.one - share * other.one,
            work: self.work - share * other.work,
            duration: self.duration - share * other.duration,
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            one: self.one * factor,
            work: self.work * factor,
            duration: self.duration * factor,
        }
    }
}

/// A least-squares line through rounds.
#[derive(Clone, Copy, Debug)]
struct Fit {
    intercept: f64,
    slope: f64,
    slope_variance: f64,
    residual_variance: f64,
    dof: f64,
    autocorrelation: f64,
}

impl Fit {
    /// The fit with the likeliest power of the duration, whitened if its residuals correlate.
    fn best(rounds: &[Round], autocorrelation_limit: f64) -> Option<Self> {
        let plain = scaled(rounds, &vec![1.0; rounds.len()]);
        let first = Self::line(&plain, 2.0)?;
        let shortest = rounds
            .iter()
            .map(|round| round.duration_s)
            .fold(f64::INFINITY, f64::min);
        let expected: Vec<f64> = rounds
            .iter()
            .map(|round| (first.intercept + first.slope * round.work).max(shortest))
            .collect();
        let count = rounds.len() as f64;
        let mut best: Option<(f64, Vec<Row>, Self)> = None;
        for power in POWERS {
            let scales: Vec<f64> = expected
                .iter()
                .map(|duration| duration.powf(power))
                .collect();
            let rows = scaled(rounds, &scales);
            let fit = Self::line(&rows, 2.0 + POWER_PARAMETERS)?;
            let deviance = count * fit.residual_variance.ln()
                + 2.0 * scales.iter().map(|scale| scale.ln()).sum::<f64>();
            if best.as_ref().is_none_or(|(least, _, _)| deviance < *least) {
                best = Some((deviance, rows, fit));
            }
        }
        let (_, rows, fit) = best?;
        // The lag-1 coefficient is too small by about (1 + 4 phi) / h for each fitted parameter (Kendall 1954,
        // "Note on bias in the estimation of autocorrelation", for a mean). By simulation counting the power too
        // lifts coverage with speeds that drift from 91% to 94% (`benchmarks/pilot_coverage.py`).
        let bias = (1.0 + 4.0 * fit.autocorrelation.max(0.0)) / count;
        let phi = (fit.autocorrelation + (2.0 + POWER_PARAMETERS) * bias).min(0.9);
        if phi <= autocorrelation_limit || rounds.len() <= ROUNDS_MIN {
            return Some(fit);
        }
        let mut whitened = vec![rows[0].times((1.0 - phi * phi).sqrt())];
        whitened.extend(rows.windows(2).map(|pair| pair[1].minus(pair[0], phi)));
        Some(Self {
            autocorrelation: fit.autocorrelation,
            ..Self::line(&whitened, 3.0 + POWER_PARAMETERS)?
        })
    }

    /// Least squares of duration on the columns one and work; None where they are proportional.
    fn line(rows: &[Row], parameters: f64) -> Option<Self> {
        let (mut oo, mut ow, mut ww) = (0.0, 0.0, 0.0);
        for row in rows {
            oo += row.one * row.one;
            ow += row.one * row.work;
            ww += row.work * row.work;
        }
        // The part of the work column that the ones cannot explain carries the slope.
        let shift = ow / oo;
        let (mut spread, mut product, mut level) = (0.0, 0.0, 0.0);
        for row in rows {
            let free = row.work - shift * row.one;
            spread += free * free;
            product += free * row.duration;
            level += row.one * row.duration;
        }
        if spread.is_nan() || spread <= 1e-24 * ww {
            return None;
        }
        let slope = product / spread;
        let intercept = level / oo - slope * shift;
        let residuals: Vec<f64> = rows
            .iter()
            .map(|row| row.duration - intercept * row.one - slope * row.work)
            .collect();
        let dof = (rows.len() as f64 - parameters).max(1.0);
        let residual_variance = residuals.iter().map(|value| value * value).sum::<f64>() / dof;
        Some(Self {
            intercept,
            slope,
            slope_variance: residual_variance / spread,
            residual_variance,
            dof,
            autocorrelation: coefficient(&residuals, 1),
        })
    }
}

fn scaled(rounds: &[Round], scales: &[f64]) -> Vec<Row> {
    let row = |round: &Round| Row {
        one: 1.0,
        work: round.work,
        duration: round.duration_s,
    };
    rounds
        .iter()
        .zip(scales)
        .map(|(round, scale)| row(round).times(1.0 / scale))
        .collect()
}
