//! The simulated cluster: scenarios and outcomes as JSON, indicators and settings as arrays.

use std::sync::{Mutex, PoisonError};

use ascar_simulation::disk::Turned;
use ascar_simulation::{Indicators, Recorded, Scenario, ServerReport, Simulation as Core};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::{Array, slice};

type Floats<'py> = Bound<'py, PyArray1<f64>>;
type Whole<'py> = Bound<'py, PyArray1<i64>>;
/// Columns of recorded operations.
type Columns<'py> = (
    Floats<'py>,
    Vec<&'static str>,
    Whole<'py>,
    Whole<'py>,
    Whole<'py>,
    Whole<'py>,
    Floats<'py>,
);

/// Columns of an observation.
const COLUMNS: usize = 12;
/// Columns of a look at servers.
const SERVER_COLUMNS: usize = 8;

/// A cluster that is stepped from outside. Its lock is taken without the interpreter's, so that neither waits for the
/// other.
#[pyclass(frozen, module = "ascar._core")]
pub struct Simulation(Mutex<Core>);

impl Simulation {
    /// Work on the cluster while other Python threads go on.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Core) -> T + Send) -> T {
        py.detach(|| work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl Simulation {
    /// Build a cluster from a scenario's JSON.
    #[new]
    fn new(py: Python<'_>, scenario: &str) -> PyResult<Self> {
        py.detach(|| Scenario::from_json(scenario).and_then(|scenario| Core::new(&scenario)))
            .map(|core| Self(Mutex::new(core)))
            .map_err(refuse)
    }

    /// Virtual seconds that have passed, warm-up included.
    #[getter]
    fn time_s(&self, py: Python<'_>) -> f64 {
        self.with(py, |core| core.time_s())
    }

    /// Whether warm-up and duration have passed.
    #[getter]
    fn finished(&self, py: Python<'_>) -> bool {
        self.with(py, |core| core.finished())
    }

    /// Let the warm-up pass, if it has not.
    fn warm_up(&self, py: Python<'_>) {
        self.with(py, Core::warm_up);
    }

    /// Let one tick pass; the first also lets the warm-up pass.
    fn step(&self, py: Python<'_>) {
        self.with(py, Core::step);
    }

    /// Every stream's indicators, a row a stream (index `client * servers + server`).
    fn observe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let seen: Vec<f64> = self.with(py, |core| core.observe().iter().flat_map(row).collect());
        let rows = seen.len() / COLUMNS;
        PyArray1::from_vec(py, seen).reshape([rows, COLUMNS])
    }

    /// Set every stream's window and gap; an entry a stream. How many streams' controllers took it.
    fn set(&self, py: Python<'_>, window: Array<'_>, tau_us: Array<'_>) -> PyResult<usize> {
        let (window, tau_us) = (slice("window", &window)?, slice("tau_us", &tau_us)?);
        self.with(py, |core| {
            let streams = core.streams();
            for (name, values) in [("window", window), ("tau_us", tau_us)] {
                if values.len() != streams {
                    return Err(PyValueError::new_err(format!(
                        "{name} has {} entries; allowed: one a stream, {streams}",
                        values.len()
                    )));
                }
            }
            let settings = window.iter().zip(tau_us).enumerate();
            Ok(settings
                .filter(|(stream, (window, tau_us))| core.set(*stream, **window, **tau_us))
                .count())
        })
    }

    /// Every server since the last call, a row a server: columns as the fields of its report.
    fn look_at_servers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let seen = self.with(py, Core::look_at_servers);
        let values: Vec<f64> = seen.iter().flat_map(server_row).collect();
        PyArray1::from_vec(py, values).reshape([seen.len(), SERVER_COLUMNS])
    }

    /// Turn every server's queue; an entry a server. How many servers took it.
    fn turn_queues(
        &self,
        py: Python<'_>,
        slots: Vec<u32>,
        device_depth: Vec<u32>,
        writes_starved: Vec<u32>,
        batch: Vec<u32>,
    ) -> usize {
        let rows = slots
            .into_iter()
            .zip(device_depth)
            .zip(writes_starved)
            .zip(batch);
        self.with(py, |core| {
            let turned = rows.map(|(((slots, device_depth), writes_starved), batch)| Turned {
                slots,
                device_depth,
                writes_starved,
                batch,
            });
            turned
                .enumerate()
                .filter(|(server, turned)| core.turn_queue(*server, *turned))
                .count()
        })
    }

    /// Rule sets in force with the use of their rules, as text, a client group each; None where no rules decide.
    fn rules(&self, py: Python<'_>) -> Vec<Option<String>> {
        self.with(py, |core| {
            let deployed = core.deployments().iter();
            deployed
                .map(|one| one.as_ref().map(|one| one.observed_rules().to_text()))
                .collect()
        })
    }

    /// Put a rule set in force on a client group's streams, or its own control again (None); how many took it.
    #[pyo3(signature = (group, rules))]
    fn deploy(&self, py: Python<'_>, group: usize, rules: Option<&str>) -> PyResult<usize> {
        self.with(py, |core| core.deploy(group, rules))
            .map_err(refuse)
    }

    /// Keep threads' operations and streams' requests one by one from now on, up to so many of each; 0 keeps none.
    fn record(&self, py: Python<'_>, most: usize) {
        self.with(py, |core| core.record(most));
    }

    /// The operations kept: columns begun_s, kind (as a scenario names it), thread, file, offset, bytes, latency_s
    /// (nan while under way).
    fn recorded<'py>(&self, py: Python<'py>) -> Columns<'py> {
        columns(py, &self.with(py, |core| core.recorded().to_vec()))
    }

    /// The requests kept, in the same columns: a stream is the thread, the part of a file on its server the file.
    fn recorded_requests<'py>(&self, py: Python<'py>) -> Columns<'py> {
        columns(py, &self.with(py, |core| core.recorded_requests().to_vec()))
    }

    /// What has been counted so far, as JSON.
    fn outcome(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |core| serde_json::to_string(&core.outcome()))
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

fn columns<'py>(py: Python<'py>, kept: &[Recorded]) -> Columns<'py> {
    let whole = |field: fn(&Recorded) -> i64| PyArray1::from_iter(py, kept.iter().map(field));
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    (
        PyArray1::from_iter(py, kept.iter().map(|one| seconds(one.begun_ns))),
        kept.iter().map(|one| one.operation.name()).collect(),
        whole(|one| i64::from(one.thread)),
        whole(|one| i64::from(one.file)),
        whole(|one| one.offset as i64),
        whole(|one| one.bytes as i64),
        PyArray1::from_iter(
            py,
            kept.iter()
                .map(|one| one.latency_ns.map_or(f64::NAN, seconds)),
        ),
    )
}

/// In the order of the fields.
fn row(seen: &Indicators) -> [f64; COLUMNS] {
    [
        seen.window,
        seen.tau_us,
        seen.ack_ewma_us,
        seen.send_ewma_us,
        seen.pt_ratio,
        seen.read_mb_per_s,
        seen.write_mb_per_s,
        seen.dirty_bytes as f64,
        seen.dirty_limit_bytes as f64,
        f64::from(seen.in_flight),
        f64::from(seen.waiting),
        seen.ping_us,
    ]
}

/// In the order of the fields.
fn server_row(seen: &ServerReport) -> [f64; SERVER_COLUMNS] {
    [
        seen.read_mb_per_s,
        seen.write_mb_per_s,
        seen.device_busy_percent,
        seen.device_positioning_percent,
        seen.device_sequential_percent,
        seen.link_in_busy_percent,
        seen.link_out_busy_percent,
        seen.requests_mean,
    ]
}

/// A scenario's JSON, checked and complete: every default in its place.
#[pyfunction]
pub fn check_scenario(py: Python<'_>, scenario: &str) -> PyResult<String> {
    let checked = py
        .detach(|| Scenario::from_json(scenario))
        .map_err(refuse)?;
    serde_json::to_string(&checked).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Every section of a scenario file as JSON: keys, types, defaults, meanings.
#[pyfunction]
pub fn describe_scenario() -> PyResult<String> {
    serde_json::to_string(&Scenario::section())
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The crate's refusal as a ValueError that names the key and what is allowed.
fn refuse(error: ascar_simulation::ScenarioError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
