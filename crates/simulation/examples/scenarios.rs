//! Runs scenarios, one JSON object a line from standard input, and prints their outcomes, one a line:
//! `cargo run --release -p ascar-simulation --example scenarios -- [THREADS] < scenarios.jsonl`.

use std::io::Read;
use std::time::Instant;

use ascar_simulation::{Scenario, run_many};

fn main() {
    let threads = std::env::args()
        .nth(1)
        .map_or(1, |text| text.parse().expect("a number of threads"));
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .expect("scenarios on standard input");
    let scenarios: Vec<Scenario> = text
        .lines()
        .map(|line| Scenario::from_json(line).unwrap_or_else(|error| panic!("{error}")))
        .collect();
    let started = Instant::now();
    let outcomes = run_many(&scenarios, threads).unwrap_or_else(|error| panic!("{error}"));
    let wall_s = started.elapsed().as_secs_f64();
    for outcome in &outcomes {
        println!(
            "{}",
            serde_json::to_string(outcome).expect("an outcome is plain data")
        );
    }
    let events: u64 = outcomes.iter().map(|outcome| outcome.events).sum();
    eprintln!(
        "{} runs, {events} events, {wall_s:.3} s, {:.0} ns an event",
        outcomes.len(),
        wall_s * 1e9 / events as f64
    );
}
