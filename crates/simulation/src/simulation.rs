//! One run: to its end, or tick by tick.

use std::sync::Arc;

use ascar_congestion::Deployment;

use crate::cluster::{Cluster, Series, build, nanos, warm_ns};
use crate::disk::Turned;
use crate::events::Nanos;
use crate::outcome::{Indicators, Outcome, ServerReport, StreamSeries};
use crate::record::Recorded;
use crate::scenario::{Scenario, ScenarioError};

/// Dirty data that fills no request leaves after so long at most.
const FLUSH_NS: Nanos = 1_000_000_000;

/// A scenario that runs tick by tick.
#[derive(Debug)]
pub struct Simulation {
    cluster: Cluster,
    seed: u64,
    tick_s: f64,
    tick_ns: Nanos,
    warm_ns: Nanos,
    end_ns: Nanos,
    flush_ns: Nanos,
    record_streams: bool,
    /// When `indicators` were taken, and what each stream had read and written by then.
    observed_ns: Nanos,
    /// Whether no time has passed since.
    fresh: bool,
    indicators: Vec<Indicators>,
    stream_bytes: Vec<(u64, u64)>,
    client_mb_per_s: Vec<f64>,
    series: Series,
}

impl Simulation {
    /// A cluster at the start of its warm-up.
    ///
    /// # Errors
    /// The first key of the scenario that is out of range or names something that is not there.
    pub fn new(scenario: &Scenario) -> Result<Simulation, ScenarioError> {
        Simulation::build(scenario, true)
    }

    fn build(scenario: &Scenario, observed: bool) -> Result<Simulation, ScenarioError> {
        scenario.check()?;
        let cluster = build(scenario)?;
        let streams = cluster.stream_count();
        let observed = observed || scenario.record_streams;
        let kept = if observed { streams } else { 0 };
        let servers = scenario.server_count();
        let recorded = |number: usize| StreamSeries {
            client: (number / servers) as u32,
            server: (number % servers) as u32,
            ticks: Vec::new(),
        };
        Ok(Simulation {
            seed: scenario.seed,
            tick_s: scenario.tick_s,
            tick_ns: nanos(scenario.tick_s),
            warm_ns: warm_ns(scenario),
            end_ns: warm_ns(scenario) + nanos(scenario.duration_s),
            flush_ns: FLUSH_NS,
            record_streams: scenario.record_streams,
            observed_ns: 0,
            fresh: true,
            indicators: (0..kept)
                .map(|stream| cluster.indicators(stream, (0, 0), scenario.tick_s))
                .collect(),
            stream_bytes: vec![(0, 0); kept],
            client_mb_per_s: vec![0.0; scenario.client_count()],
            series: Series {
                clients: vec![Vec::new(); scenario.client_count()],
                streams: if scenario.record_streams {
                    (0..streams).map(recorded).collect()
                } else {
                    Vec::new()
                },
            },
            cluster,
        })
    }

    /// Streams: clients times servers; stream `client * servers + server` is that pair.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.cluster.stream_count()
    }

    /// Virtual seconds that have passed, warm-up included.
    #[must_use]
    pub fn time_s(&self) -> f64 {
        self.cluster.now as f64 / 1e9
    }

    /// Whether warm-up and duration have passed. Stepping on is allowed; what follows is counted, too.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.cluster.now >= self.end_ns
    }

    /// Let warm-up pass, without ticks, if it has not.
    pub fn warm_up(&mut self) {
        if self.cluster.now >= self.warm_ns {
            return;
        }
        self.pass_until(self.warm_ns);
        self.begin_counting();
    }

    fn begin_counting(&mut self) {
        self.observed_ns = self.cluster.now;
        for number in 0..self.stream_bytes.len() {
            self.stream_bytes[number] = self.cluster.stream_bytes(number);
        }
        self.cluster.take_client_bytes().for_each(drop);
        self.cluster.reset_counters();
    }

    /// Let one tick pass; the first also lets the warm-up pass.
    pub fn step(&mut self) {
        if self.cluster.now == 0 && self.warm_ns == 0 {
            self.begin_counting();
        }
        self.warm_up();
        self.pass_until(self.cluster.now + self.tick_ns);
        let tick_s = self.tick_s;
        let bytes = self.cluster.take_client_bytes();
        for (bytes, (rate, series)) in bytes.zip(
            self.client_mb_per_s
                .iter_mut()
                .zip(&mut self.series.clients),
        ) {
            *rate = bytes as f64 / 1e6 / tick_s;
            series.push(*rate);
        }
        if self.record_streams {
            self.observe();
            let streams = self.series.streams.iter_mut().zip(&self.indicators);
            streams.for_each(|(series, indicators)| series.ticks.push(*indicators));
        }
    }

    fn pass_until(&mut self, until: Nanos) {
        while self.flush_ns <= until {
            self.cluster.run_until(self.flush_ns);
            self.cluster.flush_all();
            self.flush_ns += FLUSH_NS;
        }
        self.cluster.run_until(until);
        self.fresh = false;
    }

    /// Every stream as it is now; its rates are those since the last observation, or since the end of the warm-up.
    pub fn observe(&mut self) -> &[Indicators] {
        let now = self.cluster.now;
        if !self.fresh {
            // Right after the warm-up nothing has been read or written, in however little time.
            let seconds = now.saturating_sub(self.observed_ns).max(1) as f64 / 1e9;
            for number in 0..self.indicators.len() {
                let before = self.stream_bytes[number];
                self.stream_bytes[number] = self.cluster.stream_bytes(number);
                self.indicators[number] = self.cluster.indicators(number, before, seconds);
            }
            self.observed_ns = now;
            self.fresh = true;
        }
        &self.indicators
    }

    /// Throughput of each client's threads in the last tick.
    #[must_use]
    pub fn client_mb_per_s(&self) -> &[f64] {
        &self.client_mb_per_s
    }

    /// Set a stream's window and gap, from now on. False for a stream that does not exist, for one under a controller
    /// that decides itself, and for values that are no numbers.
    pub fn set(&mut self, stream: usize, window: f64, tau_us: f64) -> bool {
        let known = stream < self.streams() && window.is_finite() && tau_us.is_finite();
        known && self.cluster.set_stream(stream, window, tau_us)
    }

    /// Turn a server's queue, from now on. False for a server that does not exist, and for numbers out of range.
    pub fn turn_queue(&mut self, server: usize, turned: Turned) -> bool {
        let Turned {
            slots,
            device_depth,
            writes_starved,
            batch,
        } = turned;
        let known = server < self.cluster.server_count()
            && writes_starved <= Turned::MOST
            && [slots, device_depth, batch]
                .iter()
                .all(|one| (1..=Turned::MOST).contains(one));
        if known {
            self.cluster.turn_queue(server as u32, turned);
        }
        known
    }

    /// Every server since it was last asked for, or since the end of the warm-up.
    pub fn look_at_servers(&mut self) -> Vec<ServerReport> {
        self.cluster.look_at_servers()
    }

    /// Put rules in force on the streams of a client group from now on, or the scenario's own control again (`None`).
    /// The number after the last group is that of the metadata streams, where the scenario controls them. How many
    /// streams took it: none of a rogue's.
    ///
    /// # Errors
    /// There is no such group, or the text is not a rule set.
    pub fn deploy(&mut self, group: usize, rules: Option<&str>) -> Result<usize, ScenarioError> {
        self.fresh = false;
        self.cluster.deploy(group, rules)
    }

    /// Keep threads' operations and streams' requests one by one from now on, up to so many of each; 0 keeps none, and
    /// forgets those kept.
    pub fn record(&mut self, most: usize) {
        self.cluster.record(most);
    }

    /// The operations kept since [`Simulation::record`], in the order of beginning.
    #[must_use]
    pub fn recorded(&self) -> &[Recorded] {
        self.cluster.recorded()
    }

    /// The requests kept since [`Simulation::record`], in the order in which they left their clients.
    #[must_use]
    pub fn recorded_requests(&self) -> &[Recorded] {
        self.cluster.recorded_requests()
    }

    /// Rule sets in force, by client group, and then of controlled metadata streams, with the use that streams have made of their rules.
    #[must_use]
    pub fn deployments(&self) -> &[Option<Arc<Deployment>>] {
        self.cluster.deployments()
    }

    /// The figures of what has been counted so far.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.cluster.outcome(self.seed, self.tick_s, &self.series)
    }
}

/// Run a scenario to its end.
///
/// # Errors
/// The first key of the scenario that is out of range or names something that is not there.
pub fn run(scenario: &Scenario) -> Result<Outcome, ScenarioError> {
    let mut simulation = Simulation::build(scenario, false)?;
    while !simulation.finished() {
        simulation.step();
    }
    Ok(simulation.outcome())
}
