//! Pilot's sessions.

use ascar_pilot::findings::Finding;
use ascar_pilot::goal::{Goal, Rule};
use ascar_pilot::indicator::{Indicator, Kind};
use ascar_pilot::measurement::Measurement;
use ascar_pilot::round::{Done, Round};
use ascar_pilot::session::{Ended, Limits, Plan, Session};
use ascar_pilot::speed;
use ascar_pilot::stopping;
use ascar_pilot::units::Units;
use ascar_pilot::work_amounts::{Schedule, WorkAmounts as Core};
use ascar_statistics::Error;
use ascar_statistics::work_per_second::WorkPerSecond;
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::convert::{Array, refuse, slice};

import_exception!(ascar.errors, InputError);

fn wrong_input(error: Error) -> PyErr {
    InputError::new_err(error.to_string())
}

/// Interval width, fewest readings, confidence, fewest rounds, limit on autocorrelation of the published rule.
type GoalValues = (f64, usize, f64, usize, Option<f64>);
/// Kind, share, measurement.
type UnitKindValues = (u32, f64, Option<MeasurementValues>);
/// Name, kind, goal.
type IndicatorValues = (String, String, Option<GoalValues>);
/// Mean, interval's ends, confidence, readings, independent samples, autocorrelation, subsession size, start and end of the
/// stable phase, change points, method, reason.
type MeasurementValues = (
    f64,
    (Option<f64>, Option<f64>),
    f64,
    (usize, usize),
    f64,
    usize,
    (usize, usize),
    Vec<usize>,
    String,
    String,
);
/// Measurement, basis, readings, removed, unstable rounds, whether the goal is reached, kinds of units.
type FindingValues = (
    Option<MeasurementValues>,
    &'static str,
    usize,
    usize,
    usize,
    bool,
    Vec<UnitKindValues>,
);

fn goal_of((interval_width, readings_min, confidence, rounds_min, limit): GoalValues) -> Goal {
    Goal {
        rule: limit.map_or(Rule::Corrected, |autocorrelation_limit| Rule::Published {
            autocorrelation_limit,
        }),
        interval_width,
        readings_min,
        confidence,
        rounds_min,
    }
}

fn indicator_of((name, kind, goal): IndicatorValues) -> PyResult<Indicator> {
    let Some(kind) = Kind::named(&kind) else {
        let all = Kind::NAMED.map(|it| it.0).join(", ");
        return Err(wrong_input(Error::new("kind", format!("{kind:?}"), all)));
    };
    Ok(Indicator {
        name,
        kind,
        goal: goal.map(goal_of),
    })
}

fn measurement_values(found: &Measurement) -> MeasurementValues {
    (
        found.mean,
        (
            found.limits.map(|limits| limits.0),
            found.limits.map(|limits| limits.1),
        ),
        found.confidence,
        (found.n, found.independent_samples),
        found.autocorrelation,
        found.subsession_size,
        (found.stable_start, found.stable_end),
        found.change_points.clone(),
        found.method.clone(),
        found.reason.clone(),
    )
}

fn finding_values(found: &Finding) -> FindingValues {
    (
        found.measurement.as_ref().map(measurement_values),
        found.basis.words(),
        found.readings,
        found.removed,
        found.rounds_unstable,
        found.reached(),
        found
            .kinds
            .iter()
            .map(|one| {
                let measured = one.measurement.as_ref().map(measurement_values);
                (one.kind, one.share, measured)
            })
            .collect(),
    )
}

fn goal_values(goal: Goal) -> GoalValues {
    (
        goal.interval_width,
        goal.readings_min,
        goal.confidence,
        goal.rounds_min,
        match goal.rule {
            Rule::Corrected => None,
            Rule::Published {
                autocorrelation_limit,
            } => Some(autocorrelation_limit),
        },
    )
}

/// The presets' goals by name.
#[pyfunction]
pub fn pilot_presets() -> Vec<(&'static str, GoalValues)> {
    let all = Goal::PRESETS.into_iter();
    all.map(|(name, goal)| (name, goal_values(goal))).collect()
}

/// The presets of the released Pilot: the goal and the shortest round of each, by name.
#[pyfunction]
pub fn pilot_published() -> Vec<(&'static str, GoalValues, f64)> {
    let all = Goal::PUBLISHED.into_iter();
    all.map(|one| (one.name, goal_values(one.goal), one.short_round_s))
        .collect()
}

/// One round's unit readings of an indicator on their own.
#[pyfunction]
pub fn pilot_analyze(
    py: Python<'_>,
    indicator: IndicatorValues,
    values: Array<'_>,
    confidence: f64,
) -> PyResult<MeasurementValues> {
    let indicator = indicator_of(indicator)?;
    let values = slice("values", &values)?;
    let found = py.detach(|| indicator.analyze(values, confidence, Rule::Corrected));
    found
        .map(|found| measurement_values(&found))
        .map_err(wrong_input)
}

/// Whether a series has grown enough since it was last looked at.
#[pyfunction]
pub fn pilot_look_is_due(readings: usize, looked_at: usize) -> bool {
    stopping::may_look(readings, looked_at, Rule::Corrected)
}

/// The speed of the stable phase.
#[pyclass(frozen, module = "ascar._core")]
pub struct Speed {
    found: WorkPerSecond,
    confidence: f64,
}

#[pymethods]
impl Speed {
    #[getter]
    fn work_per_s(&self) -> f64 {
        self.found.speed
    }

    #[getter]
    fn ci_low(&self) -> Option<f64> {
        self.found.limits.map(|limits| limits.0)
    }

    #[getter]
    fn ci_high(&self) -> Option<f64> {
        self.found.limits.map(|limits| limits.1)
    }

    #[getter]
    fn confidence(&self) -> f64 {
        self.confidence
    }

    #[getter]
    fn alpha_s(&self) -> f64 {
        self.found.overhead_s
    }

    #[getter]
    fn autocorrelation(&self) -> f64 {
        self.found.autocorrelation
    }

    #[getter]
    fn rounds(&self) -> usize {
        self.found.rounds
    }

    #[getter]
    fn reason(&self) -> &str {
        self.found.reason.as_deref().unwrap_or_default()
    }

    #[getter]
    fn ci_width_relative(&self) -> Option<f64> {
        speed::width_relative(&self.found)
    }

    #[getter]
    fn work_min(&self) -> f64 {
        speed::work_min(&self.found)
    }

    fn meets(&self, goal: &Bound<'_, PyAny>) -> PyResult<bool> {
        let goal = Goal {
            interval_width: goal.getattr("interval_width")?.extract()?,
            ..Goal::NORMAL
        };
        Ok(speed::meets(&self.found, &goal))
    }

    fn seconds_for(&self, work_amount: f64) -> f64 {
        self.found.predict_duration_s(work_amount)
    }
}

/// The speed that rounds of different work amounts tell; None where they make no rising line.
#[pyfunction]
pub fn speed_of(rounds: Vec<(f64, f64)>, confidence: f64) -> PyResult<Option<Speed>> {
    let rounds: Vec<Done> = rounds
        .into_iter()
        .map(|(work_amount, seconds)| Done {
            seconds,
            work_amount: Some(work_amount),
            used: true,
        })
        .collect();
    let found = speed::speed_of(rounds.iter(), confidence, Rule::Corrected).map_err(refuse)?;
    Ok(found.map(|found| Speed { found, confidence }))
}

/// The schedule of one session whose work can be adjusted.
#[pyclass(module = "ascar._core")]
pub struct WorkAmounts {
    rules: Schedule,
    schedule: Core,
}

#[pymethods]
impl WorkAmounts {
    #[new]
    #[pyo3(signature = (low, high, whole=false, short_round_s=1.0, longest_round_s=180.0, first_result_s=60.0,
                        first_rounds=50))]
    fn new(
        low: f64,
        high: f64,
        whole: bool,
        short_round_s: f64,
        longest_round_s: f64,
        first_result_s: f64,
        first_rounds: usize,
    ) -> PyResult<Self> {
        let rules = Schedule {
            low,
            high,
            whole,
            short_round_s,
            longest_round_s,
            first_result_s,
            first_rounds,
        };
        Ok(Self {
            rules,
            schedule: Core::new(rules).map_err(wrong_input)?,
        })
    }

    #[getter]
    fn low(&self) -> f64 {
        self.schedule.low()
    }

    fn next(&mut self) -> f64 {
        self.schedule.next_amount()
    }

    fn next_for(&mut self, seconds: f64) -> f64 {
        self.schedule.next_for(seconds)
    }

    fn learn(&mut self, done: &Bound<'_, PyAny>) -> PyResult<bool> {
        let work_amount = done.getattr("work_amount")?.extract()?;
        let seconds = done.getattr("seconds")?.extract()?;
        Ok(self.schedule.learn(work_amount, seconds))
    }

    fn avoid(&mut self, work_amount: f64) {
        self.schedule.avoid(work_amount);
    }
}

/// A session under way, or at its end.
#[pyclass(module = "ascar._core")]
pub struct PilotSession(Session);

#[pymethods]
impl PilotSession {
    #[new]
    #[pyo3(signature = (indicators, goal, work, session_s, rounds_max, speed=None))]
    fn new(
        indicators: Vec<IndicatorValues>,
        goal: GoalValues,
        work: Option<PyRef<'_, WorkAmounts>>,
        session_s: f64,
        rounds_max: usize,
        speed: Option<GoalValues>,
    ) -> PyResult<Self> {
        let indicators = indicators.into_iter().map(indicator_of);
        let plan = Plan {
            indicators: indicators.collect::<PyResult<_>>()?,
            goal: goal_of(goal),
            speed: speed.map(goal_of),
            work: work.map(|work| work.rules),
            limits: Limits {
                session_s,
                rounds_max,
            },
        };
        Session::new(plan).map(Self).map_err(wrong_input)
    }

    fn next_work(&mut self) -> Option<f64> {
        self.0.next_work()
    }

    #[pyo3(signature = (seconds, work_amount, readings, unit_readings, units=vec![]))]
    fn take(
        &mut self,
        py: Python<'_>,
        seconds: f64,
        work_amount: Option<f64>,
        readings: Vec<Option<f64>>,
        unit_readings: Vec<Bound<'_, PyAny>>,
        units: Vec<(Vec<u32>, Vec<f64>)>,
    ) -> PyResult<bool> {
        let read = unit_readings.iter().map(numbers);
        let units = units.into_iter().map(|(kinds, work)| Units { kinds, work });
        let round = Round {
            seconds,
            work_amount,
            readings,
            unit_readings: read.collect::<PyResult<_>>()?,
            units: units.collect(),
        };
        let session = &mut self.0;
        py.detach(|| session.take(&round)).map_err(wrong_input)
    }

    fn judge(&mut self, py: Python<'_>, elapsed_s: f64, out_of_time: bool) -> PyResult<bool> {
        let session = &mut self.0;
        let over = out_of_time.then_some(Ended::Time);
        let ended = py.detach(|| session.judge(elapsed_s, over));
        Ok(ended.map_err(wrong_input)?.is_some())
    }

    #[getter]
    fn findings(&self) -> Vec<FindingValues> {
        self.0.findings().iter().map(finding_values).collect()
    }

    #[getter]
    fn speed(&self) -> Option<Speed> {
        let confidence = self.0.speed_goal().confidence;
        let found = self.0.speed()?.clone();
        Some(Speed { found, confidence })
    }

    #[getter]
    fn speed_decides(&self) -> bool {
        self.0.speed_decides()
    }

    #[getter]
    fn reached(&self) -> bool {
        self.0.ended() == Some(Ended::Reached)
    }

    #[getter]
    fn why(&self) -> String {
        self.0.why()
    }

    #[getter]
    fn left_s(&self) -> Option<f64> {
        self.0.left_s()
    }
}

/// A list of numbers, or an array of them.
fn numbers(values: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    if values.is_instance_of::<PyList>() || values.is_instance_of::<PyTuple>() {
        return values.extract();
    }
    match values.extract::<Array<'_>>() {
        Ok(array) => Ok(array.as_array().to_vec()),
        Err(_) => values.extract(),
    }
}
