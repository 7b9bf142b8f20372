//! What holds of every queueing system, and of this one in particular.

use crate::common::{
    all, bursts, bursts_of_ranks, fileserver, random, scenario, sequential, shared, shared_ranges,
};
use ascar_simulation::{Outcome, run, run_many};
use serde_json::{Value, json};

fn outcome(value: &Value) -> Outcome {
    run(&scenario(value)).unwrap_or_else(|error| panic!("{error}"))
}

/// A copy with one value changed, at a path as of JSON pointers; objects on the way are made.
fn with(value: &Value, path: &str, new: Value) -> Value {
    let mut changed = value.clone();
    let mut place = &mut changed;
    for key in path.split('/') {
        place = match key.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[key],
        };
    }
    *place = new;
    changed
}

#[test]
fn no_byte_is_lost_or_made_up() {
    // Work begins and ends within the run, so that at the end nothing is under way.
    for mut value in [
        random("read"),
        random("write"),
        shared(),
        shared_ranges(),
        fileserver(),
        bursts(),
        bursts_of_ranks(),
    ] {
        value["warmup_s"] = json!(0.0);
        value["clients"][0]["stop_s"] = json!(10.0);
        value["duration_s"] = json!(40.0);
        let result = outcome(&value);
        let asked = result.throughput_mb_per_s - result.cache_hit_mb_per_s;
        let device: f64 = result
            .servers
            .iter()
            .map(|server| server.read_mb_per_s + server.write_mb_per_s)
            .sum();
        assert!(result.requests > 0);
        // Exactly, but for the last digits of floating point: threads, servers and devices count the same bytes.
        assert!(
            (result.served_mb_per_s / device - 1.0).abs() < 1e-9,
            "{}: {device}",
            value["name"]
        );
        if value["workloads"][0]["threads"][0]["flowops"][0]["op"] != "createfile" {
            assert!(
                (asked / device - 1.0).abs() < 1e-9,
                "{}: {asked} {device}",
                value["name"]
            );
        } else {
            // Readers ask for whole requests ahead of what they use of a file.
            assert!((asked / device - 1.0).abs() < 0.05, "{asked} {device}");
        }
    }
}

#[test]
fn requests_in_flight_are_rate_times_latency() {
    for mut value in all() {
        value["duration_s"] = json!(120.0);
        let result = outcome(&value);
        let rate_per_s = result.requests as f64 / result.virtual_seconds;
        let expected = rate_per_s * result.service_time.latency_ms_mean / 1e3;
        assert!(
            (result.in_flight_mean / expected - 1.0).abs() < 0.01,
            "{}: {} in flight, {expected} by Little's law",
            value["name"],
            result.in_flight_mean
        );
    }
}

#[test]
fn a_device_rests_only_when_nothing_waits_for_it() {
    // 5 clients with 8 requests each at every server: there is always work.
    for operation in ["read", "write"] {
        let result = outcome(&random(operation));
        for server in &result.servers {
            assert!(server.requests_mean > 20.0);
            assert!(
                server.device_busy_percent > 99.0,
                "{operation}: {}",
                server.device_busy_percent
            );
        }
    }
}

#[test]
fn the_same_seed_brings_the_same_bits() {
    for value in all() {
        assert_eq!(outcome(&value), outcome(&value));
        assert_ne!(outcome(&value), outcome(&with(&value, "seed", json!(2))));
    }
}

#[test]
fn any_number_of_threads_brings_the_same_bits() {
    let scenarios: Vec<_> = (0..6)
        .flat_map(|seed| {
            all()
                .into_iter()
                .map(move |value| with(&value, "seed", json!(seed)))
        })
        .map(|mut value| {
            value["duration_s"] = json!(3.0);
            value["record_streams"] = json!(true);
            scenario(&value)
        })
        .collect();
    let alone: Vec<Outcome> = scenarios
        .iter()
        .map(|scenario| run(scenario).unwrap())
        .collect();
    for threads in [0, 1, 2, 3, 8, 1000] {
        assert_eq!(
            run_many(&scenarios, threads).unwrap(),
            alone,
            "{threads} threads"
        );
    }
}

#[test]
fn faster_parts_do_not_slow_work_down() {
    let disk = |field: &str, value: f64| {
        let mut device = json!({ "kind": "mechanical" });
        device[field] = json!(value);
        json!([{ "count": 4, "device": device }])
    };
    // Chance moves every figure a little; what is compared differs by far more.
    let rises = |base: &Value, path: &str, values: [Value; 3]| {
        let rates = values.map(|value| outcome(&with(base, path, value)).throughput_mb_per_s);
        assert!(
            rates[0] < rates[1] * 1.01 && rates[1] < rates[2] * 1.01,
            "{path}: {rates:?}"
        );
        assert!(rates[0] < rates[2] * 0.97, "{path}: {rates:?}");
    };
    for base in [random("read"), random("write")] {
        rises(
            &base,
            "servers",
            [5400.0, 7200.0, 15_000.0].map(|rpm| disk("rpm", rpm)),
        );
        rises(
            &base,
            "servers",
            [30.0, 20.0, 8.0].map(|full| disk("seek_full_ms", full)),
        );
        rises(
            &base,
            "network",
            [20.0, 40.0, 80.0].map(|rate| json!({ "link": { "bandwidth_mb_per_s": rate } })),
        );
        rises(
            &base,
            "servers",
            [1, 2, 4].map(|count| json!([{ "count": count }])),
        );
    }
    rises(
        &sequential("write"),
        "servers",
        [60.0, 80.0, 106.0].map(|rate| disk("write_mb_per_s", rate)),
    );
    rises(
        &sequential("read"),
        "servers",
        [60.0, 80.0, 113.0].map(|rate| disk("read_mb_per_s", rate)),
    );
}

#[test]
fn sequential_work_stays_below_the_disks_and_near_them() {
    for (operation, limit) in [("read", 4.0 * 113.0), ("write", 4.0 * 106.0)] {
        let rate = outcome(&sequential(operation)).throughput_mb_per_s;
        assert!(
            rate < limit && rate > 0.85 * limit,
            "{operation}: {rate} of {limit}"
        );
    }
}

#[test]
fn memory_is_limited_by_the_network() {
    let fast = json!([{ "count": 4, "device": { "kind": "memory" } }]);
    let rate = outcome(&with(&random("read"), "servers", fast)).throughput_mb_per_s;
    assert!((rate / (4.0 * 117.5) - 1.0).abs() < 0.05, "{rate}");
}

#[test]
fn an_idle_network_takes_latency_and_transfer_alone() {
    // One request at a time from one client, on memory: message, processor, copying, transfer, nothing else.
    let mut value = random("read");
    value["clients"][0]["count"] = json!(1);
    value["workloads"][0]["threads"][0]["instances"] = json!(1);
    value["servers"] = json!([{ "count": 1, "request_cpu_us": 40.0,
        "device": { "kind": "memory", "copy_mb_per_s": 4000.0, "request_us": 10.0 } }]);
    value["network"] = json!({ "latency_us": 60.0, "link": { "bandwidth_mb_per_s": 117.5 } });
    let found = outcome(&value).latency.latency_ms_mean;
    let mib = 1_048_576.0;
    let expected = 0.060 + 0.040 + 0.010 + mib / 4000e3 + 0.060 + mib / 117.5e3;
    assert!((found - expected).abs() < 0.001, "{found} for {expected}");
}

/// One client and one server in memory, which copies 1 MiB in 10.5 ms, one request after the other.
fn one_copier() -> Value {
    let mut value = random("read");
    value["clients"][0]["count"] = json!(1);
    value["servers"] = json!([{ "count": 1, "request_cpu_us": 0.0, "queue": { "piece_kib": 1024 },
        "device": { "kind": "memory", "copy_mb_per_s": 100.0, "request_us": 0.0 } }]);
    value["network"] = json!({ "latency_us": 1.0, "link": { "bandwidth_mb_per_s": 100_000.0 } });
    value
}

#[test]
fn a_window_moves_the_wait_to_the_client_and_does_not_shorten_it() {
    // In a closed system each of 64 threads always has one request asked for: rate times response time is 64.
    for window in [1, 2, 8, 64] {
        let mut value = one_copier();
        value["duration_s"] = json!(120.0);
        value["control"] = json!({ "window": window });
        let result = outcome(&value);
        let rate_per_s = result.requests as f64 / result.virtual_seconds;
        let asked_for = rate_per_s * result.latency.latency_ms_mean / 1e3;
        let sent = rate_per_s * result.service_time.latency_ms_mean / 1e3;
        assert!(
            (asked_for / 64.0 - 1.0).abs() < 0.01,
            "{window}: {asked_for}"
        );
        assert!(
            (sent / f64::from(window) - 1.0).abs() < 0.01,
            "{window}: {sent}"
        );
        let operations = result.operation_latency;
        assert!((operations.latency_ms_mean / result.latency.latency_ms_mean - 1.0).abs() < 1e-3);
    }
}

#[test]
fn arrivals_wait_as_queueing_theory_has_it() {
    // M/D/1: the mean wait is rho / (2 (1 - rho)) service times, wherever it is spent.
    let service_ms = 1_048_576.0 / 100e3;
    for (load, tolerance) in [(0.5, 0.02), (0.8, 0.05)] {
        for window in [1, 8] {
            let mut value = one_copier();
            value["duration_s"] = json!(6000.0);
            value["control"] = json!({ "window": window });
            value["workloads"][0]["threads"][0]["instances"] = json!(400);
            value["workloads"][0]["threads"][0]["rate_per_s"] = json!(load / service_ms * 1e3);
            let result = outcome(&value);
            let expected = service_ms * (1.0 + load / (2.0 * (1.0 - load)));
            let found = result.operation_latency.latency_ms_mean;
            assert!(
                (found / expected - 1.0).abs() < tolerance,
                "load {load}, window {window}: {found} for {expected}"
            );
            let rate = result.throughput_mb_per_s / 100.0;
            assert!((rate / load - 1.0).abs() < 0.01, "{rate} for {load}");
        }
    }
}

#[test]
fn what_cannot_be_served_in_time_is_late_from_its_arrival() {
    // More arrives than is served: each minute the late ones are later by the rest, though a thread waits for its turn.
    let mut value = one_copier();
    value["workloads"][0]["threads"][0]["instances"] = json!(4);
    value["workloads"][0]["threads"][0]["rate_per_s"] = json!(1.1 * 100e6 / 1_048_576.0);
    value["warmup_s"] = json!(590.0);
    value["duration_s"] = json!(10.0);
    let result = outcome(&value);
    assert!(result.latency.latency_ms_p99 < 60.0, "{:?}", result.latency);
    let late_s = result.operation_latency.latency_ms_p50 / 1e3;
    assert!((late_s / (595.0 * 0.1 / 1.1) - 1.0).abs() < 0.2, "{late_s}");
}

/// One client with one thread and a file of 4 GiB, through a page cache.
fn through_a_cache(step: &Value, page_cache_mib: u64) -> Outcome {
    let mut value = random("read");
    value["clients"] = json!([
        { "count": 1, "workload": "w", "cache": { "page_cache_mib": page_cache_mib } }
    ]);
    value["workloads"][0]["filesets"][0]["size_mib"] = json!(4096);
    value["workloads"][0]["threads"][0] = json!({ "flowops": [step] });
    outcome(&value)
}

#[test]
fn a_file_four_times_the_page_cache_hits_a_quarter_of_the_time() {
    let step = json!({ "op": "read", "random": true });
    let none = through_a_cache(&step, 0);
    let quarter = through_a_cache(&step, 1024);
    assert!(none.cache_hit_mb_per_s == 0.0);
    let share = quarter.cache_hit_mb_per_s / quarter.throughput_mb_per_s;
    assert!((share - 0.25).abs() < 0.03, "{share}");
    // By hand, ms an operation of 1 MiB: always the copy at 2,500 MB/s, three times out of four the servers.
    let (mib, copy_ms) = (1_048.576, 1_048.576 / 2_500.0);
    let missed_ms = mib / none.throughput_mb_per_s - copy_ms;
    let expected = mib / (copy_ms + 0.75 * missed_ms);
    assert!(
        (quarter.throughput_mb_per_s / expected - 1.0).abs() < 0.05,
        "{} {expected}",
        quarter.throughput_mb_per_s
    );
    // A cache that holds it all: only the copy.
    let whole = through_a_cache(&step, 4096);
    assert!((whole.throughput_mb_per_s / (mib / copy_ms) - 1.0).abs() < 0.001);
}

#[test]
fn passes_over_a_file_that_does_not_fit_find_nothing() {
    for op in ["read", "readwholefile"] {
        let step = json!({ "op": op });
        let none = through_a_cache(&step, 0);
        let most = through_a_cache(&step, 4095);
        assert!(
            most.throughput_mb_per_s > 50.0 && most.cache_hit_mb_per_s == 0.0,
            "{op}"
        );
        assert_eq!(
            most.throughput_mb_per_s.to_bits(),
            none.throughput_mb_per_s.to_bits()
        );
        let whole = through_a_cache(&step, 4096);
        assert_eq!(
            whole.throughput_mb_per_s.to_bits(),
            whole.cache_hit_mb_per_s.to_bits()
        );
    }
}

/// One client with one thread that reads files of a set through a page cache, each as a whole or at random places.
fn through_a_common_cache(
    step: &Value,
    (files, size_mib): (u32, u64),
    page_cache_mib: u64,
) -> Outcome {
    let mut value = random("read");
    value["clients"] = json!([
        { "count": 1, "workload": "w", "cache": { "page_cache_mib": page_cache_mib } }
    ]);
    let set = json!({ "name": "files", "entries": files, "size_mib": size_mib });
    value["workloads"][0]["filesets"] = json!([set]);
    value["workloads"][0]["threads"][0] = json!({ "flowops": [step] });
    value["duration_s"] = json!(200.0);
    outcome(&value)
}

#[test]
fn files_that_fit_one_by_one_share_the_page_cache() {
    // Three files of 2 GiB, a cache of 3: half of the places are there, though each file would fit.
    let step = json!({ "op": "read", "random": true });
    let none = through_a_common_cache(&step, (3, 2048), 0);
    let half = through_a_common_cache(&step, (3, 2048), 3072);
    let share = half.cache_hit_mb_per_s / half.throughput_mb_per_s;
    assert!((share - 0.5).abs() < 0.03, "{share}");
    let (mib, copy_ms) = (1_048.576, 1_048.576 / 2_500.0);
    let missed_ms = mib / none.throughput_mb_per_s - copy_ms;
    let expected = mib / (copy_ms + 0.5 * missed_ms);
    assert!(
        (half.throughput_mb_per_s / expected - 1.0).abs() < 0.05,
        "{} {expected}",
        half.throughput_mb_per_s
    );
    let whole = through_a_common_cache(&step, (3, 2048), 6144);
    assert!((whole.throughput_mb_per_s / (mib / copy_ms) - 1.0).abs() < 0.001);
}

#[test]
fn whole_files_share_the_page_cache() {
    // Three files of 40 MiB, a cache of 100: the two read last are there, so that two of three reads find theirs.
    let step = json!({ "op": "readwholefile" });
    let two = through_a_common_cache(&step, (3, 40), 100);
    let share = two.cache_hit_mb_per_s / two.throughput_mb_per_s;
    assert!((share - 2.0 / 3.0).abs() < 0.07, "{share}");
    // In a cache of 79 there is only the one read last.
    let one = through_a_common_cache(&step, (3, 40), 79);
    let share = one.cache_hit_mb_per_s / one.throughput_mb_per_s;
    assert!((share - 1.0 / 3.0).abs() < 0.07, "{share}");
    let all = through_a_common_cache(&step, (3, 40), 120);
    assert_eq!(
        all.throughput_mb_per_s.to_bits(),
        all.cache_hit_mb_per_s.to_bits()
    );
}
