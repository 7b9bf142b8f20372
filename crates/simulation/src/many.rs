//! Many runs at once, on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::outcome::Outcome;
use crate::scenario::{Scenario, ScenarioError};
use crate::simulation::run;

/// Run scenarios on so many threads; outcomes come in the order of the scenarios and do not depend on the number of
/// threads.
///
/// # Errors
/// That of the first scenario that cannot be run; the others are run all the same.
pub fn run_many(scenarios: &[Scenario], threads: usize) -> Result<Vec<Outcome>, ScenarioError> {
    let next = AtomicUsize::new(0);
    let outcomes: Vec<Mutex<Option<Result<Outcome, ScenarioError>>>> =
        scenarios.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(scenario) = scenarios.get(index) else {
                break;
            };
            *outcomes[index].lock().expect("no thread panics with it") = Some(run(scenario));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, scenarios.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    outcomes
        .into_iter()
        .map(|outcome| {
            outcome
                .into_inner()
                .expect("no thread panics with it")
                .expect("every scenario was run")
        })
        .collect()
}
