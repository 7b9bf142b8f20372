//! Rates of a storage device against the number of requests at it:
//! `cargo run --release -p ascar-simulation --example service_rates`.
//!
//! Five streams, each on a file of its own of 1.25 GB, the files a `spread` of the device apart: what one server of
//! the thesis' test bed sees (section 3.2.2: five clients, a file of 5 GB each, four servers).
//! An argument is a JSON object `{"device": .., "queue": .., "spread_percent": .., "seconds": .., "windows": [..],
//! "kib": [..]}`; all of it is optional.

use ascar_simulation::disk::{DeviceCounters, DeviceRequest, Storage, StorageParts, build};
use ascar_simulation::scenario::{Device, Noise, Queue};
use closed_loop::Load;

#[path = "../src/disk/tests/closed_loop.rs"]
mod closed_loop;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Bench {
    device: Device,
    queue: Queue,
    spread_percent: f64,
    seconds: f64,
    windows: Vec<u64>,
    kib: Vec<u32>,
}

impl Default for Bench {
    fn default() -> Bench {
        Bench {
            device: Device::default(),
            queue: Queue::default(),
            spread_percent: 10.0,
            seconds: 30.0,
            windows: vec![1, 2, 4, 8, 16, 32, 64, 128],
            kib: vec![4, 64, 256, 1024],
        }
    }
}

const STREAMS: u64 = 5;

fn main() {
    let bench: Bench = std::env::args().nth(1).map_or_else(Bench::default, |text| {
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("the argument cannot be read: {error}"))
    });
    println!("MB/s of one device, {STREAMS} streams with a window each of:");
    print!("{:>24}", "");
    bench
        .windows
        .iter()
        .for_each(|window| print!("{window:>8}"));
    println!();
    let started = std::time::Instant::now();
    let mut requests = 0;
    for random in [false, true] {
        for write_percent in [0, 100, 50] {
            for &kib in &bench.kib {
                let order = if random { "random" } else { "sequential" };
                let kind = match write_percent {
                    0 => "read",
                    100 => "write",
                    _ => "mixed",
                };
                print!("{:>24}", format!("{order} {kind} {kib} KiB"));
                for &window in &bench.windows {
                    requests += measure(&bench, random, (write_percent, kib, window));
                }
                println!();
            }
        }
    }
    let ns = started.elapsed().as_nanos() as f64 / requests as f64;
    println!("{requests} requests, {ns:.0} ns of computing each");
}

fn measure(bench: &Bench, random: bool, (write_percent, kib, window): (u64, u32, u64)) -> u64 {
    let noise = Noise::default();
    let parts = StorageParts {
        device: &bench.device,
        queue: &bench.queue,
        noise: &noise,
        seed: 1,
    };
    let mut storage = build(parts);
    let spread_bytes = storage.capacity_bytes() as f64 * bench.spread_percent / 100.0;
    let stretch_bytes = 1_250_000_000 / 1_048_576 * 1_048_576;
    let load = Load {
        write_percent,
        random,
        request_bytes: kib * 1024,
        streams: STREAMS,
        window,
        stretch_bytes,
        step_bytes: stretch_bytes.max(spread_bytes as u64 / STREAMS / 4096 * 4096),
        seconds: bench.seconds,
    };
    let outcome = load.run(storage.as_mut(), 1);
    print!("{:>8.1}", outcome.mb_per_s);
    outcome.counters.completed
}
