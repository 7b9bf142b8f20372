//! Streams of metadata operations: their window and pace, and a server whose threads slow each other down.

use crate::common::scenario;
use ascar_simulation::{Outcome, Simulation, run};
use serde_json::{Value, json};

/// So many clients of so many threads each look at files, one after the other; nothing else takes time.
fn looking(clients: u32, threads: u32, metadata: &Value) -> Value {
    json!({
        "name": "looking",
        "warmup_s": 1.0,
        "duration_s": 10.0,
        "network": {"latency_us": 0.0},
        "metadata": metadata,
        "clients": [{"count": clients, "workload": "looking"}],
        "workloads": [{
            "name": "looking",
            "filesets": [{"name": "files", "entries": 100, "size_mib": 0.004}],
            "threads": [{"instances": threads, "flowops": [{"op": "statfile"}]}],
        }],
    })
}

fn outcome(value: &Value) -> Outcome {
    run(&scenario(value)).unwrap_or_else(|error| panic!("{error}"))
}

/// Gunther's law: what n operations at work do a second where each takes so long alone.
fn law(n: f64, alone_s: f64, contention: f64, coherence: f64) -> f64 {
    n / (alone_s * (1.0 + contention * (n - 1.0) + coherence * n * (n - 1.0)))
}

#[test]
fn throughput_is_what_the_scalability_law_says() {
    for (threads, contention, coherence) in [
        (1, 0.5, 0.5),
        (16, 0.0, 0.0),
        (16, 0.05, 0.0),
        (16, 0.05, 0.01),
        (48, 0.02, 0.001),
    ] {
        let metadata = json!({
            "threads": 64, "stat_us": 1000.0, "contention": contention, "coherence": coherence,
        });
        let found = outcome(&looking(1, threads, &metadata)).metadata_operations_per_s;
        let expected = law(f64::from(threads), 1e-3, contention, coherence);
        assert!(
            (found / expected - 1.0).abs() < 0.01,
            "{threads} threads: {found} a second, {expected} by the law"
        );
    }
}

#[test]
fn a_window_holds_operations_back_at_their_client() {
    let window = |window: u32| {
        let control = json!({"window": window});
        let metadata = json!({"threads": 64, "stat_us": 1000.0, "control": control});
        outcome(&looking(2, 24, &metadata))
    };
    for limit in [1, 3, 24, 100] {
        let at_work = f64::from(2 * limit.min(24));
        let found = window(limit).metadata_operations_per_s;
        assert!(
            (found / (at_work * 1e3) - 1.0).abs() < 0.01,
            "{limit}: {found}"
        );
    }
    // Who waits for the window waits: the latency is that of the application (Little's law with its 48 threads).
    let found = window(3);
    let expected_ms = 48.0 / found.metadata_operations_per_s * 1e3;
    assert!((found.metadata_latency.latency_ms_mean / expected_ms - 1.0).abs() < 0.02);
    assert_eq!(found.latency.requests, 0);
    assert!((found.jain_index - 1.0).abs() < 0.01);
}

#[test]
fn a_gap_paces_each_client() {
    let control = json!({"window": 100, "tau_us": 4000});
    let metadata = json!({"threads": 64, "stat_us": 1000.0, "control": control});
    let found = outcome(&looking(3, 24, &metadata)).metadata_operations_per_s;
    assert!((found / 750.0 - 1.0).abs() < 0.01, "{found}");
}

#[test]
fn less_is_more_where_threads_slow_each_other_down() {
    let of = |window: u32| {
        let metadata = json!({
            "threads": 64, "stat_us": 1000.0, "contention": 0.02, "coherence": 0.001,
            "control": {"window": window},
        });
        outcome(&looking(20, 8, &metadata)).metadata_operations_per_s
    };
    let (usual, less, least) = (of(8), of(2), of(1));
    assert!(
        less > 1.15 * usual && less > 1.05 * least,
        "{usual} {less} {least}"
    );
}

#[test]
fn a_rogue_is_not_held_back() {
    let metadata = json!({"threads": 64, "stat_us": 1000.0, "control": {"window": 2}});
    let mut value = looking(1, 24, &metadata);
    value["clients"] = json!([
        {"count": 1, "workload": "looking"},
        {"count": 1, "workload": "looking", "rogue": true, "rogue_window": 4},
    ]);
    let found = outcome(&value).clients_metadata_per_s;
    assert!((found[0] / 2e3 - 1.0).abs() < 0.01, "{found:?}");
    assert!((found[1] / 24e3 - 1.0).abs() < 0.01, "{found:?}");
}

#[test]
fn rules_take_over_and_give_back_while_it_runs() {
    let metadata = json!({"threads": 64, "stat_us": 1000.0, "control": {"window": 8}});
    let value = looking(2, 24, &metadata);
    let mut running = Simulation::new(&scenario(&value)).expect("a scenario");
    let halved = "1,1000000\n0,2147483647,0,2147483647,100,2147483647,0,200,0\n";
    let mut rate = |rules: Option<Option<&str>>| {
        if let Some(rules) = rules {
            assert_eq!(running.deploy(1, rules).expect("metadata streams"), 2);
        }
        let before = running.outcome();
        let count = |it: &Outcome| it.metadata_operations_per_s * it.virtual_seconds;
        (0..4).for_each(|_| running.step());
        let after = running.outcome();
        let passed_s = after.virtual_seconds
            - if count(&before) > 0.0 {
                before.virtual_seconds
            } else {
                0.0
            };
        (count(&after) - count(&before)) / passed_s
    };
    let (before, under, after) = (rate(None), rate(Some(Some(halved))), rate(Some(None)));
    assert!((before / 16e3 - 1.0).abs() < 0.02, "{before}");
    assert!((under / 4e3 - 1.0).abs() < 0.02, "{under}");
    assert!((after / 16e3 - 1.0).abs() < 0.02, "{after}");
    assert!(running.deployments().len() == 2 && running.deploy(2, None).is_err());
}

#[test]
fn what_has_no_meaning_for_metadata_is_refused() {
    for key in ["active_files", "least_mb_per_s", "most_mb_per_s"] {
        let value = looking(1, 1, &json!({"control": {key: 1}}));
        let refused =
            run(&serde_json::from_value(value).expect("a scenario")).expect_err("refused");
        assert!(
            refused
                .to_string()
                .contains(&format!("metadata.control.{key}")),
            "{refused}"
        );
    }
    let value = looking(1, 1, &json!({"coherence": 1.5}));
    let refused = run(&serde_json::from_value(value).expect("a scenario")).expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "metadata.coherence: 1.5 is not between 0 and 1"
    );
}
