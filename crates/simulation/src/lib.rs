//! A storage cluster in virtual time: clients, network, servers, disks.
//!
//! Pure: the seed is an argument, time is virtual, nothing is read or written. The same scenario and seed bring the
//! same outcome, bit for bit, on every run and with any number of threads.
//!
//! `run(&Scenario) -> Result<Outcome, ScenarioError>` runs a scenario to its end; `run_many(&[Scenario], threads)`
//! runs many at once. `Simulation::new(&Scenario)` is the step interface: `step()` runs to the end of the next tick,
//! `observe() -> &[Indicators]` shows every stream (index `client * servers + server`), `set(stream, window, tau_us)`
//! sets its window and gap, `turn_queue(server, turned)` turns a server's queue, `deploy(group, rules)` puts rules in force or takes them back, `record(most)` keeps threads'
//! operations one by one from then on, `outcome()` sums up what has been counted so far.

mod cluster;
pub mod disk;
mod events;
mod extents;
mod files;
mod histogram;
mod lists;
mod many;
mod network;
pub mod outcome;
mod page_cache;
mod prefetch;
mod program;
mod record;
mod requests;
pub mod scenario;
mod simulation;

pub use many::run_many;
pub use outcome::{GroupReport, Indicators, Latency, Outcome, ServerReport, StreamSeries};
pub use record::Recorded;
pub use scenario::{Scenario, ScenarioError};
pub use simulation::{Simulation, run};
