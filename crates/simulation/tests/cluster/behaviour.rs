//! What controllers, failures, locks and outsiders do to a cluster; refusals.

use crate::common::{bursts, random, scenario, sequential, shared};
use ascar_simulation::{Outcome, Scenario, Simulation, run};
use serde_json::{Value, json};

fn outcome(value: &Value) -> Outcome {
    run(&scenario(value)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn stepping_is_running() {
    for value in [random("write"), sequential("read"), shared()] {
        let scenario = scenario(&value);
        let mut simulation = Simulation::new(&scenario).unwrap();
        while !simulation.finished() {
            simulation.step();
        }
        assert_eq!(simulation.outcome(), run(&scenario).unwrap());
    }
}

#[test]
fn streams_are_observed_and_set() {
    let mut simulation = Simulation::new(&scenario(&random("write"))).unwrap();
    assert_eq!(simulation.streams(), 20);
    simulation.warm_up();
    assert!(
        simulation
            .observe()
            .iter()
            .all(|stream| stream.write_mb_per_s == 0.0 && stream.in_flight == 8)
    );
    simulation.step();
    for indicators in simulation.observe() {
        assert_eq!(
            (indicators.window, indicators.tau_us, indicators.in_flight),
            (8.0, 0.0, 8)
        );
        assert!(
            indicators.ack_ewma_us > 0.0
                && indicators.pt_ratio >= 1.0
                && indicators.ping_us >= 120.0
        );
    }
    let total: f64 = simulation
        .observe()
        .iter()
        .map(|stream| stream.write_mb_per_s)
        .sum();
    let clients: f64 = simulation.client_mb_per_s().iter().sum();
    assert!((total / clients - 1.0).abs() < 0.02, "{total} {clients}");
    for stream in 0..20 {
        assert!(simulation.set(stream, 2.0, 50_000.0));
    }
    assert!(!simulation.set(20, 2.0, 0.0));
    assert!(!simulation.set(0, f64::NAN, 0.0));
    simulation.step();
    simulation.observe();
    simulation.step();
    for indicators in simulation.observe() {
        assert!(indicators.in_flight <= 2);
        // 20 requests a second of 1 MiB.
        assert!(
            indicators.write_mb_per_s <= 22.1,
            "{}",
            indicators.write_mb_per_s
        );
    }
}

#[test]
fn every_controller_keeps_a_cluster_at_work() {
    let rules = "1,2\n0,2147483647,0,2147483647,0,2147483647,100,10,0\n";
    for name in [
        "fixed",
        "rules",
        "aimd",
        "cubic",
        "bbr",
        "bbr3",
        "vegas",
        "gradient2",
        "envoy-gradient",
        "copa",
        "io-path-tune",
    ] {
        for faithful in [true, false] {
            let mut value = random("write");
            value["control"] = json!({ "controller": name, "faithful": faithful });
            if name == "rules" {
                value["control"]["rules"] = json!(rules);
            }
            let result = outcome(&value);
            assert!(
                result.throughput_mb_per_s > 100.0,
                "{name}: {}",
                result.throughput_mb_per_s
            );
            assert!(result.jain_index > 0.9, "{name}: {}", result.jain_index);
        }
    }
}

#[test]
fn bounds_of_a_stream_hold_whatever_the_rules_say() {
    let with = |b100: i32, bounds: serde_json::Value| {
        let mut value = random("write");
        value["control"] = json!({
            "controller": "rules",
            "faithful": false,
            "rules": format!("1,2\n0,2147483647,0,2147483647,0,2147483647,100,{b100},200000\n"),
        });
        for (key, bound) in bounds.as_object().unwrap() {
            value["control"][key] = bound.clone();
        }
        outcome(&value).throughput_mb_per_s
    };
    // 20 streams, each with a request of 1 MiB every 0.2 s at most.
    let slow = with(0, json!({}));
    assert!((95.0..106.0).contains(&slow), "{slow}");
    let bounded = with(0, json!({ "most_mb_per_s": 2.5 }));
    assert!((45.0..50.5).contains(&bounded), "{bounded}");
    let lifted = with(-100, json!({ "least_mb_per_s": 7.0 }));
    assert!(lifted > 1.25 * slow, "{lifted} and {slow}");
}

#[test]
fn extensions_are_the_scenarios() {
    let of = |extensions: serde_json::Value| {
        let mut value = random("write");
        value["control"] = json!({
            "controller": "rules",
            "faithful": false,
            "extensions": extensions,
            "rules": "1,2\n0,2147483647,0,2147483647,0,2147483647,100,10,0\n",
        });
        outcome(&value)
    };
    let plain = of(json!({}));
    assert_eq!(
        plain.requests,
        of(json!({ "minimum_period_s": 30.0 })).requests
    );
    // Pieces of 256 KiB: a window of 8 holds two requests.
    assert!(of(json!({ "piece_kib": 256 })).in_flight_mean < 0.5 * plain.in_flight_mean);
    assert_ne!(
        plain.requests,
        of(json!({ "probe_interval_s": 2.0 })).requests
    );
}

#[test]
fn rules_are_used_and_counted() {
    let mut value = random("write");
    value["control"] = json!({
        "controller": "rules",
        "rules": "2,2\n0,2147483647,0,2147483647,0,200,100,50,0\n0,2147483647,0,2147483647,200,2147483647,100,-50,0\n"
    });
    let mut simulation = Simulation::new(&scenario(&value)).unwrap();
    simulation.step();
    assert!(!simulation.set(0, 4.0, 0.0), "rules decide themselves");
    let deployment = simulation.deployments()[0]
        .clone()
        .expect("rules are in force");
    assert_eq!(deployment.rules.rules().len(), 2);
}

#[test]
fn a_window_bounds_what_is_in_flight() {
    for window in [1.0, 3.0, 20.0] {
        let mut value = random("write");
        value["control"] = json!({ "window": window });
        let result = outcome(&value);
        assert!(result.in_flight_mean <= 20.0 * window);
        if window < 5.0 {
            assert!(
                result.in_flight_mean > 0.9 * 20.0 * window,
                "{}",
                result.in_flight_mean
            );
        }
    }
}

#[test]
fn a_rogue_takes_more_than_its_share() {
    let mut value = random("write");
    let fair = outcome(&value).jain_index;
    value["clients"] = json!([
        { "count": 4, "workload": "w" },
        { "count": 1, "workload": "w", "rogue": true, "rogue_window": 64 }
    ]);
    value["control"] = json!({ "window": 2 });
    let result = outcome(&value);
    let rates: Vec<f64> = result
        .clients_mb_per_s
        .iter()
        .map(|ticks| ticks.iter().sum())
        .collect();
    assert!(rates[4] > 2.0 * rates[0], "{rates:?}");
    assert!(result.jain_index < 0.8 && fair > 0.99);
}

#[test]
fn a_slow_server_slows_what_lies_on_it() {
    let mut value = sequential("write");
    value["warmup_s"] = json!(0.0);
    value["failures"] =
        json!([{ "kind": "slow-server", "server": 1, "at_s": 6, "for_s": 6, "factor": 5 }]);
    let result = outcome(&value);
    let total =
        |ticks: std::ops::Range<usize>| ticks.map(|tick| result.total_mb_per_s[tick]).sum::<f64>();
    assert!(
        total(8..12) < 0.5 * total(2..6),
        "{:?}",
        result.total_mb_per_s
    );
    assert!(
        total(15..19) > 0.8 * total(2..6),
        "{:?}",
        result.total_mb_per_s
    );
}

#[test]
fn a_dead_server_is_waited_for_and_comes_back() {
    let mut value = random("write");
    value["warmup_s"] = json!(0.0);
    value["control"] = json!({ "timeout_s": 2.0 });
    value["failures"] = json!([{ "kind": "dead-server", "server": 2, "at_s": 5, "for_s": 12 }]);
    value["duration_s"] = json!(26.0);
    let result = outcome(&value);
    // All threads end up waiting for the one server.
    assert!(
        result.total_mb_per_s[15] < 1.0,
        "{:?}",
        result.total_mb_per_s
    );
    assert!(
        result.total_mb_per_s[22] > 100.0,
        "{:?}",
        result.total_mb_per_s
    );
    assert!(result.timeouts > 0);
}

#[test]
fn time_outs_fire_under_overload_and_no_operation_is_counted_twice() {
    let mut value = random("write");
    value["clients"][0]["count"] = json!(40);
    value["servers"] = json!([{ "count": 1 }]);
    value["duration_s"] = json!(20.0);
    let late = |controller: &str, timeout_s: f64| {
        let mut value = value.clone();
        // Nothing but a time-out is congestion to it.
        value["control"] = json!({
            "controller": controller,
            "timeout_s": timeout_s,
            "window": 64.0,
            "rivals": { "latency_ms_max": 1e6 },
        });
        outcome(&value)
    };
    let (patient, hasty) = (late("fixed", 1_000.0), late("fixed", 1.0));
    assert_eq!(patient.timeouts, 0);
    // 2,560 requests wait for some 45 s, and each is late once a second.
    assert!(hasty.timeouts > 20_000, "{}", hasty.timeouts);
    for result in [&patient, &hasty] {
        let written = result.write_mb_per_s * result.virtual_seconds;
        let counted = result.operations as f64 * 1_048_576.0 / 1e6;
        assert!((written - counted).abs() < 1.0, "{written} {counted}");
    }
    // The server drops copies of what it has: its work is the same.
    assert_eq!(patient.operations, hasty.operations);
    let (careless, careful) = (late("aimd", 1_000.0), late("aimd", 1.0));
    let means = [&careful, &careless].map(|one| one.service_time.latency_ms_mean);
    assert!(means[0] < 0.6 * means[1], "{means:?}");
    assert!(careful.throughput_mb_per_s > 0.9 * careless.throughput_mb_per_s);
}

#[test]
fn groups_add_up_to_the_whole() {
    let mut value = random("write");
    value["workloads"][0]["threads"] = json!([
        { "instances": 2, "flowops": [{ "op": "write", "iosize_kib": 1024, "random": true, "directio": true }] },
        { "instances": 3, "flowops": [{ "op": "read", "iosize_kib": 512, "random": true, "directio": true }] },
    ]);
    let group = value["clients"][0].clone();
    value["clients"] = json!([group, group]);
    let result = outcome(&value);
    let numbers: Vec<(u32, u32)> = result
        .groups
        .iter()
        .map(|group| (group.clients, group.threads))
        .collect();
    assert_eq!(numbers, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    let operations: u64 = result.groups.iter().map(|group| group.operations).sum();
    assert_eq!(operations, result.operations);
    let read: f64 = result.groups.iter().map(|group| group.read_mb_per_s).sum();
    assert!((read - result.read_mb_per_s).abs() < 1e-6);
    for group in &result.groups {
        let reads = group.threads == 1;
        assert_eq!(group.read_mb_per_s > 0.0, reads, "{group:?}");
        assert_eq!(group.write_mb_per_s > 0.0, !reads, "{group:?}");
        assert_eq!(group.passes, group.operations, "{group:?}");
    }
}

#[test]
fn a_pause_of_the_network_stops_everything() {
    let mut value = random("read");
    value["warmup_s"] = json!(0.0);
    value["failures"] = json!([{ "kind": "network-pause", "at_s": 5, "for_s": 3 }]);
    let result = outcome(&value);
    assert!(
        result.total_mb_per_s[6] < 1.0,
        "{:?}",
        result.total_mb_per_s
    );
    assert!(
        result.total_mb_per_s[12] > 100.0,
        "{:?}",
        result.total_mb_per_s
    );
}

#[test]
fn too_many_senders_lose_segments() {
    let mut value = random("read");
    value["servers"] = json!([{ "count": 64, "device": { "kind": "memory" } }]);
    value["clients"][0]["count"] = json!(1);
    value["workloads"][0]["threads"][0]["instances"] = json!(128);
    value["striping"] = json!({ "count": 64 });
    let many = outcome(&value);
    assert!(many.incast_losses > 0);
    value["network"] = json!({ "port_buffer_kib": 4096 });
    let few = outcome(&value);
    assert_eq!(few.incast_losses, 0);
    assert!(many.latency.latency_ms_p99 > few.latency.latency_ms_p99 + 150.0);
}

#[test]
fn locks_on_a_shared_file_cost() {
    let mut value = shared();
    let locked = outcome(&value).throughput_mb_per_s;
    value["locks"] = json!({ "whole_file": true });
    let whole = outcome(&value).throughput_mb_per_s;
    value["locks"] = json!({ "enabled": false });
    let free = outcome(&value).throughput_mb_per_s;
    assert!(
        whole < locked && locked < 0.9 * free,
        "{whole} {locked} {free}"
    );
    assert!(whole > 5.0, "{whole}");
}

#[test]
fn bursts_take_turns_and_end_together() {
    let result = outcome(&bursts());
    // Each second holds bursts and pauses: the rate while active is above the mean rate.
    assert!(result.throughput_while_active_mb_per_s > 1.5 * result.throughput_mb_per_s);
    assert!(result.jain_index > 0.999, "{}", result.jain_index);
}

#[test]
fn noise_disturbs_but_does_not_stop() {
    let mut value = random("write");
    let quiet = outcome(&value);
    value["noise"] =
        json!({ "service_sd_percent": 30, "disk_requests_per_s": 10, "network_bursts_per_s": 20 });
    let noisy = outcome(&value);
    assert!(noisy.throughput_mb_per_s < quiet.throughput_mb_per_s);
    assert!(noisy.throughput_mb_per_s > 0.5 * quiet.throughput_mb_per_s);
}

#[test]
fn the_page_cache_serves_what_it_holds() {
    let mut value = crate::common::fileserver();
    let small = outcome(&value);
    value["clients"][0]["cache"] = json!({ "page_cache_mib": 100_000 });
    let large = outcome(&value);
    assert!(large.cache_hit_mb_per_s > small.cache_hit_mb_per_s);
    assert!(large.throughput_mb_per_s > small.throughput_mb_per_s);
    // A file that was created but is not written yet may be read.
    assert!(10 * large.read_latency.requests < small.read_latency.requests);
}

#[test]
fn groups_begin_and_stop_when_told() {
    let mut value = random("read");
    value["warmup_s"] = json!(0.0);
    value["clients"] = json!([
        { "count": 2, "workload": "w", "stop_s": 8 },
        { "count": 2, "workload": "w", "start_s": 12 }
    ]);
    let result = outcome(&value);
    let at = |client: usize, tick: usize| result.clients_mb_per_s[client][tick];
    assert!(at(0, 5) > 1.0 && at(0, 13) == 0.0);
    assert!(at(2, 5) == 0.0 && at(2, 15) > 1.0);
}

#[test]
fn a_scenario_that_cannot_be_run_is_refused_by_its_key() {
    let base = random("write");
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value = base.clone();
        change(&mut value);
        Scenario::from_json(&value.to_string())
            .expect_err("it can not be run")
            .to_string()
    };
    for (change, word) in [
        (
            &(|value: &mut Value| value["clients"][0]["workload"] = json!("x"))
                as &dyn Fn(&mut Value),
            "clients[0].workload",
        ),
        (&|value| value["clients"][0]["count"] = json!(0), "clients"),
        (&|value| value["duration_s"] = json!(0), "duration_s"),
        (&|value| value["duration_s"] = json!(1e300), "duration_s"),
        (&|value| value["colour"] = json!(1), "colour"),
        (
            &|value| value["control"] = json!({ "window": 0 }),
            "control.window",
        ),
        (
            &|value| value["control"] = json!({ "controller": "rules" }),
            "control.rules",
        ),
        (
            &|value| value["control"] = json!({ "controller": "rules", "rules": "1,2\nx" }),
            "control.rules",
        ),
        (
            &|value| value["workloads"][0]["threads"][0]["flowops"][0]["op"] = json!("dance"),
            "dance",
        ),
        (
            &|value| value["workloads"][0]["threads"][0]["flowops"][0]["fileset"] = json!("x"),
            "fileset",
        ),
        (
            &|value| {
                value["workloads"][0]["threads"][0]["flowops"][0]["probability_percent"] = json!(0)
            },
            "flowops",
        ),
        (
            &|value| value["servers"] = json!([{ "count": 1, "device": { "kind": "tape" } }]),
            "tape",
        ),
        (
            &|value| {
                value["servers"] =
                    json!([{ "count": 1, "device": { "kind": "mechanical", "rpm": -1 } }])
            },
            "rpm",
        ),
        (
            &|value| {
                value["failures"] =
                    json!([{ "kind": "dead-server", "server": 9, "at_s": 1, "for_s": 1 }])
            },
            "server",
        ),
        (
            &|value| value["locks"] = json!({ "extents": true, "whole_file": true }),
            "locks.extents",
        ),
        (
            &|value| value["locks"] = json!({ "extent_growth_mib": 1 }),
            "locks.extent_growth_mib",
        ),
        (
            &|value| value["locks"] = json!({ "extents": true, "extent_growth_mib": -1 }),
            "locks.extent_growth_mib",
        ),
    ] {
        let message = changed(change);
        assert!(message.contains(word), "{word}: {message}");
    }
    assert!(Scenario::from_json("{").is_err());
}
