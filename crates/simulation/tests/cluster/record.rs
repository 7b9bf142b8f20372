//! Operations recorded one by one, and rules put in force while a cluster runs.

use ascar_simulation::scenario::Operation;
use ascar_simulation::{Scenario, Simulation};

use crate::common::random;

const RULES: &str = "1,2\n0,2147483647,0,2147483647,100,2147483647,0,300,0\n";

fn simulation() -> Simulation {
    let mut value = random("write");
    value["duration_s"] = serde_json::json!(6.0);
    Simulation::new(&Scenario::from_json(&value.to_string()).unwrap()).unwrap()
}

#[test]
fn a_record_holds_every_operation_and_changes_nothing() {
    let (mut plain, mut watched) = (simulation(), simulation());
    watched.warm_up();
    watched.record(1_000_000);
    while !plain.finished() {
        plain.step();
        watched.step();
    }
    assert_eq!(plain.outcome(), watched.outcome());
    let kept = watched.recorded();
    let ended = kept.iter().filter(|one| one.latency_ns.is_some()).count() as u64;
    // Those under way when recording began are counted when they end, and not kept.
    assert!((1..=5 * 64).contains(&(watched.outcome().operations - ended)));
    assert!(kept.is_sorted_by_key(|one| one.begun_ns));
    assert!(kept.iter().all(|one| one.operation == Operation::Write
        && one.bytes == 1 << 20
        && one.offset % (1 << 20) == 0
        && one.thread < 5 * 64));
    let requests = watched.recorded_requests();
    // A megabyte lies on one server, so each operation is one request.
    let answered = requests.iter().filter(|one| one.latency_ns.is_some());
    assert!((1..=20 * 8).contains(&(watched.outcome().requests as usize - answered.count())));
    assert!(requests.is_sorted_by_key(|one| one.begun_ns));
    assert!(
        requests.iter().all(|one| one.operation == Operation::Write
            && one.bytes == 1 << 20
            && one.thread < 20)
    );
    watched.record(10);
    watched.step();
    assert_eq!(watched.recorded().len(), 10);
    watched.record(0);
    assert!(watched.recorded().is_empty());
}

#[test]
fn rules_are_put_in_force_and_taken_back_while_it_runs() {
    let mut running = simulation();
    running.warm_up();
    assert_eq!(running.deploy(0, Some(RULES)).unwrap(), 20);
    for _ in 0..20 {
        running.step();
    }
    assert!(running.observe().iter().all(|one| one.window == 3.0));
    let used = running.deployments()[0].as_ref().unwrap().observed_rules();
    assert!(used.to_text().contains(','));
    let before = running.outcome().throughput_mb_per_s;
    assert_eq!(running.deploy(0, None).unwrap(), 20);
    running.step();
    assert!(running.observe().iter().all(|one| one.window == 8.0));
    assert!(running.deployments()[0].is_none());
    assert!(before > 240.0, "{before}");
    assert!(running.deploy(1, None).is_err());
    assert!(running.deploy(0, Some("rubbish")).is_err());
}
