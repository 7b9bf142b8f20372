//! What a burst of writes into one shared file is made of, each piece beside a calculation by hand: nodes with ranks,
//! locks on ranges, requests that take in what comes while they wait, time-outs.

use crate::common::{bursts_of_ranks, random, scenario, shared_ranges};
use ascar_simulation::{Outcome, run};
use serde_json::{Value, json};

fn outcome(value: &Value) -> Outcome {
    run(&scenario(value)).unwrap_or_else(|error| panic!("{error}"))
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found / expected - 1.0).abs() < tolerance,
        "{found} for {expected}"
    );
}

/// A server that takes no time, behind a network of 1 ms one way that carries any amount at once.
fn nothing_but_latency(value: &mut Value) {
    value["servers"] = json!([{ "count": 1, "request_cpu_us": 0.0,
        "device": { "kind": "memory", "copy_mb_per_s": 1e6, "request_us": 0.0 } }]);
    value["network"] = json!({ "latency_us": 1000.0, "link": { "bandwidth_mb_per_s": 1e6 } });
    value["clients"][0]["cache"] = json!({ "copy_mb_per_s": 1e6 });
}

#[test]
fn ranks_of_a_node_share_its_link() {
    // 25 ranks that write without a pause: what they get is what the links of their nodes carry, 10 MB/s each.
    for (nodes, ranks) in [(5, 5), (25, 1)] {
        let mut value = random("write");
        value["clients"][0]["count"] = json!(nodes);
        value["clients"][0]["link"] = json!({ "bandwidth_mb_per_s": 10.0 });
        value["workloads"][0]["threads"][0]["instances"] = json!(ranks * 4);
        value["servers"] = json!([{ "count": 4, "device": { "kind": "memory" } }]);
        near(
            outcome(&value).throughput_mb_per_s,
            10.0 * f64::from(nodes),
            0.02,
        );
    }
}

/// A burst of 64 KiB from each client into one shared file every second, and how long it takes.
fn burst_ms(clients: u32, locks: Value) -> f64 {
    let mut value = random("write");
    nothing_but_latency(&mut value);
    value["clients"][0]["count"] = json!(clients);
    value["locks"] = locks;
    value["workloads"][0] = json!({
        "name": "w",
        "filesets": [{ "name": "f", "size_mib": 100, "shared": true }],
        "threads": [{ "flowops": [
            { "op": "delay", "value_s": 1.0 }, { "op": "barrier" },
            { "op": "appendfile", "iosize_kib": 64 }, { "op": "sync" }, { "op": "barrier" }
        ] }]
    });
    let result = outcome(&value);
    f64::from(clients) * 65_536.0 / 1e3 / result.throughput_while_active_mb_per_s
}

#[test]
fn a_range_that_has_grown_is_called_back_while_its_holder_writes() {
    // One client holds all that follows. The other asks (1 ms), the server calls back (1 ms), the holder ends its write,
    // which takes 3 ms from the begin of the burst (message, data, reply), and gives up (1 ms); the grant (1 ms), and
    // the other's own write (3 ms).
    let free = json!({ "extents": true, "handover_us": 0.0 });
    near(burst_ms(2, free), 3.0 + 1.0 + 1.0 + 3.0, 0.01);
    // With 10 ms of work before each call-back and each grant, the call-back comes after 12 ms: the holder is done.
    let slow = json!({ "extents": true, "handover_us": 10_000.0 });
    near(burst_ms(2, slow), 12.0 + 1.0 + 11.0 + 3.0, 0.01);
}

#[test]
fn clients_write_side_by_side_in_ranges_and_in_turns_in_objects() {
    // Whoever waits is granted at once up to the next one that does: three more write as fast as one.
    let ranges = json!({ "extents": true, "handover_us": 10_000.0 });
    near(burst_ms(5, ranges), 27.0, 0.01);
    // One lock for all that lies on the server goes round: each further client waits for a write (3 ms), the lock
    // given up (1 ms) and granted (11 ms).
    let objects = json!({ "handover_us": 10_000.0 });
    near(burst_ms(5, objects), 27.0 + 3.0 * 15.0, 0.01);
}

#[test]
fn ranges_that_do_not_grow_are_never_called_back() {
    // Each asks (1 ms) and is granted (11 ms) just what it writes (3 ms).
    let exact = json!({ "extents": true, "extent_growth_mib": 0.0, "handover_us": 10_000.0 });
    near(burst_ms(5, exact), 1.0 + 11.0 + 3.0, 0.01);
}

/// One thread adds 64 KiB to one of two files every 20 ms, in turn, so that nothing is put together in the cache.
fn alternating(coalesce: bool, tau_us: f64) -> Outcome {
    let mut value = random("write");
    nothing_but_latency(&mut value);
    value["duration_s"] = json!(200.0);
    value["clients"][0]["count"] = json!(1);
    value["clients"][0]["cache"]["coalesce"] = json!(coalesce);
    value["clients"][0]["cache"]["dirty_limit_mib"] = json!(2.0);
    value["control"] = json!({ "tau_us": tau_us });
    let add = |name: &str| json!({ "op": "appendfile", "iosize_kib": 64, "fileset": name });
    let pause = json!({ "op": "delay", "value_s": 0.02 });
    value["workloads"][0] = json!({
        "name": "w",
        "filesets": [{ "name": "a", "size_mib": 1 }, { "name": "b", "size_mib": 1 }],
        "threads": [{ "flowops": [add("a"), pause, add("b"), pause] }]
    });
    outcome(&value)
}

#[test]
fn requests_grow_with_the_restraint_of_their_stream() {
    let mb_per_s = 65_536.0 / 20e3;
    for tau_ms in [50.0, 100.0, 200.0] {
        let joined = alternating(true, tau_ms * 1e3);
        // One request each gap, with all that has come meanwhile.
        near(joined.served_mb_per_s, mb_per_s, 0.01);
        near(
            joined.requests as f64,
            joined.virtual_seconds * 1e3 / tau_ms,
            0.01,
        );
        // Without, each carries what it was made with.
        let alone = alternating(false, tau_ms * 1e3);
        near(alone.served_mb_per_s, 65_536.0 / 1e3 / tau_ms, 0.01);
    }
    // Nothing waits: nothing joins.
    let free = alternating(true, 0.0);
    assert_eq!(free, alternating(false, 0.0));
    near(free.requests as f64, free.virtual_seconds / 0.02, 0.01);
}

#[test]
fn a_late_request_counts_once_each_time_out() {
    // 64 requests of 10.5 ms each, one after the other: 671 ms each, that is two time-outs of 250 ms.
    let mut value = random("write");
    nothing_but_latency(&mut value);
    value["clients"][0]["count"] = json!(1);
    value["servers"] = json!([{ "count": 1, "request_cpu_us": 0.0, "queue": { "piece_kib": 1024 },
        "device": { "kind": "memory", "copy_mb_per_s": 100.0, "request_us": 0.0 } }]);
    value["control"] = json!({ "window": 64, "timeout_s": 0.25 });
    value["duration_s"] = json!(120.0);
    let result = outcome(&value);
    near(result.service_time.latency_ms_mean, 64.0 * 10.48576, 0.01);
    near(result.timeouts as f64 / result.requests as f64, 2.0, 0.01);
}

#[test]
fn ranges_are_passed_on_after_failures() {
    // Whatever is lost, slowed or held up, and whoever ignores its window: at the end all work again.
    for mut value in [bursts_of_ranks(), shared_ranges()] {
        value["warmup_s"] = json!(0.0);
        value["duration_s"] = json!(40.0);
        value["control"]["timeout_s"] = json!(1.0);
        value["failures"] = json!([
            { "kind": "dead-server", "server": 1, "at_s": 3, "for_s": 5 },
            { "kind": "network-pause", "at_s": 10, "for_s": 2 },
            { "kind": "slow-server", "server": 2, "at_s": 14, "for_s": 4, "factor": 20 },
        ]);
        let mut rogue = value["clients"][0].clone();
        rogue["rogue"] = json!(true);
        rogue["count"] = json!(2);
        value["clients"] = json!([value["clients"][0], rogue]);
        let result = outcome(&value);
        let late: f64 = result.total_mb_per_s[30..].iter().sum::<f64>() / 10.0;
        assert!(
            late > 10.0,
            "{}: {:?}",
            value["name"],
            result.total_mb_per_s
        );
        for (client, ticks) in result.clients_mb_per_s.iter().enumerate() {
            assert!(ticks[30..].iter().sum::<f64>() > 0.0, "client {client}");
        }
        assert!(result.timeouts > 0);
    }
}
