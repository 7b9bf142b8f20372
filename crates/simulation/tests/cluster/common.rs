//! Scenarios that the tests share.

use ascar_simulation::Scenario;
use serde_json::{Value, json};

/// The seeds' random workload: 5 clients, 4 servers, a file of 5 GB each, 1 MiB past the cache.
pub fn random(operation: &str) -> Value {
    json!({
        "name": operation,
        "warmup_s": 2.0,
        "duration_s": 20.0,
        "clients": [{ "count": 5, "workload": "w" }],
        "workloads": [{
            "name": "w",
            "filesets": [{ "name": "file", "size_mib": 5120 }],
            "threads": [{
                "instances": 64,
                "flowops": [{ "op": operation, "random": true, "directio": true }]
            }]
        }]
    })
}

/// Writing in sequence through the cache.
pub fn sequential(operation: &str) -> Value {
    let mut scenario = random(operation);
    scenario["workloads"][0]["threads"] = json!([{ "flowops": [{ "op": operation }] }]);
    scenario["clients"][0]["cache"] = json!({ "page_cache_mib": 0 });
    scenario
}

/// A file server in small: whole files, appends, metadata, page cache.
pub fn fileserver() -> Value {
    let mut scenario = random("read");
    scenario["workloads"][0] = json!({
        "name": "w",
        "filesets": [{ "name": "f", "entries": 200, "size_mib": 5, "size_gamma": 1.5, "prealloc_percent": 80 }],
        "threads": [{ "instances": 10, "flowops": [
            { "op": "createfile" }, { "op": "writewholefile" }, { "op": "closefile" },
            { "op": "openfile" }, { "op": "appendfilerand", "iosize_kib": 10240 }, { "op": "closefile" },
            { "op": "openfile" }, { "op": "readwholefile" }, { "op": "closefile" },
            { "op": "deletefile" }, { "op": "statfile" }
        ] }]
    });
    scenario["clients"][0]["cache"] = json!({ "page_cache_mib": 300 });
    scenario
}

/// Reads and writes of one file that all clients share, under locks.
pub fn shared() -> Value {
    let mut scenario = random("read");
    scenario["workloads"][0]["filesets"][0]["shared"] = json!(true);
    scenario["workloads"][0]["threads"][0] = json!({
        "instances": 4,
        "flowops": [
            { "op": "read", "random": true, "directio": true },
            { "op": "write", "random": true, "directio": true }
        ]
    });
    scenario
}

/// Bursts into one shared file, with a barrier and a flush around each.
pub fn bursts() -> Value {
    let mut scenario = random("read");
    scenario["workloads"][0] = json!({
        "name": "w",
        "filesets": [{ "name": "f", "size_mib": 1600, "shared": true }],
        "threads": [{ "flowops": [
            { "op": "delay", "value_s": 0.2 }, { "op": "barrier" },
            { "op": "appendfile", "iosize_kib": 2075.2 }, { "op": "sync" }, { "op": "barrier" }
        ] }]
    });
    scenario
}

/// The same as Lustre has it: ranks on nodes, locks on ranges, requests that take in what comes while they wait.
pub fn bursts_of_ranks() -> Value {
    let mut scenario = bursts();
    scenario["workloads"][0]["threads"][0]["instances"] = json!(5);
    scenario["workloads"][0]["threads"][0]["flowops"][2]["iosize_kib"] = json!(700);
    scenario["clients"][0]["cache"] = json!({ "coalesce": true });
    scenario["locks"] = json!({ "extents": true });
    scenario["control"] = json!({ "window": 1, "tau_us": 3000 });
    scenario
}

/// Reads and writes of one shared file at random places, under locks on ranges.
pub fn shared_ranges() -> Value {
    let mut scenario = shared();
    scenario["locks"] = json!({ "extents": true });
    scenario
}

/// Every kind of workload there is here.
pub fn all() -> Vec<Value> {
    vec![
        random("read"),
        random("write"),
        sequential("read"),
        sequential("write"),
        fileserver(),
        shared(),
        shared_ranges(),
        bursts(),
        bursts_of_ranks(),
    ]
}

/// A checked scenario.
pub fn scenario(value: &Value) -> Scenario {
    Scenario::from_json(&value.to_string()).unwrap_or_else(|error| panic!("{error}"))
}
