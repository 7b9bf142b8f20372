//! Slots, order, merging, ages: the queue before a device.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Linux' deadline elevator with its defaults.
fn linux() -> Queue {
    Queue {
        write_order: Order::Elevator,
        batch: 16,
        write_expire_ms: 5_000.0,
        ..Queue::default()
    }
}

/// Five files of 1.25 GB, a fiftieth of the disk apart: what a server of the thesis' test bed holds.
const FILES: Load = Load {
    write_percent: 100,
    streams: 5,
    window: 8,
    stretch_bytes: 1_250_000_000,
    step_bytes: 10_000_000_000,
    ..LOAD
};

fn disk() -> Mechanical {
    Mechanical::default()
}

#[test]
fn the_elevator_gains_from_a_deeper_queue() {
    let rates = [1, 2, 4, 8].map(|window| run(Load { window, ..FILES }, disk(), &linux()).mb_per_s);
    assert!(rates.windows(2).all(|pair| pair[0] < pair[1]), "{rates:?}");
    assert!(rates[3] > 1.1 * rates[0], "{rates:?}");
}

#[test]
fn reads_in_their_order_gain_nothing_from_a_deeper_queue() {
    let rates = [1, 2, 4, 8].map(|window| {
        let load = Load {
            window,
            write_percent: 0,
            seconds: 300.0,
            ..FILES
        };
        run(load, disk(), &linux()).mb_per_s
    });
    assert!(
        rates.iter().all(|rate| close(*rate, rates[0], 0.02)),
        "{rates:?}"
    );
}

#[test]
fn a_drive_that_chooses_gains_from_every_command_more() {
    let rates = [1, 2, 4, 8, 16, 31].map(|device_depth| {
        let queue = Queue {
            read_order: Order::Nearest,
            device_depth,
            ..linux()
        };
        run(
            Load {
                write_percent: 0,
                ..FILES
            },
            disk(),
            &queue,
        )
        .mb_per_s
    });
    assert!(rates.windows(2).all(|pair| pair[0] < pair[1]), "{rates:?}");
    assert!(rates[5] > 1.25 * rates[0], "{rates:?}");
}

#[test]
fn a_queue_that_is_full_tears_requests_apart() {
    // 5 x 64 requests of two pieces do not fit into 128 slots.
    let rate = |slots, window| {
        run(
            Load { window, ..FILES },
            disk(),
            &Queue { slots, ..linux() },
        )
        .mb_per_s
    };
    assert!(
        rate(128, 64) < 0.85 * rate(128, 8),
        "{} {}",
        rate(128, 64),
        rate(128, 8)
    );
    assert!(
        rate(1024, 64) > rate(128, 8),
        "{} {}",
        rate(1024, 64),
        rate(128, 8)
    );
}

#[test]
fn a_queue_in_which_everything_is_over_age_is_served_in_order_of_arrival() {
    let roomy = Queue {
        slots: 1024,
        ..linux()
    };
    let aged = Queue {
        write_expire_ms: 300.0,
        batch: 1,
        ..roomy.clone()
    };
    let rate = |window, queue: &Queue| run(Load { window, ..FILES }, disk(), queue).mb_per_s;
    let arrival = rate(
        12,
        &Queue {
            write_order: Order::Arrival,
            ..roomy.clone()
        },
    );
    assert!(
        close(rate(12, &aged), arrival, 0.08),
        "{} {arrival}",
        rate(12, &aged)
    );
    assert!(
        rate(3, &aged) > 1.02 * rate(12, &aged),
        "{} {}",
        rate(3, &aged),
        rate(12, &aged)
    );
}

#[test]
fn sequential_streams_are_merged_into_long_runs() {
    let load = Load {
        random: false,
        request_bytes: 65_536,
        window: 16,
        seconds: 20.0,
        ..FILES
    };
    let merged = run(load, disk(), &linux());
    let single = run(
        load,
        disk(),
        &Queue {
            merge: false,
            ..linux()
        },
    );
    assert!(merged.mb_per_s > 90.0, "{}", merged.mb_per_s);
    assert!(
        single.mb_per_s < 0.2 * merged.mb_per_s,
        "{} {}",
        single.mb_per_s,
        merged.mb_per_s
    );
    let followed = merged.counters.sequential_pieces as f64 / merged.counters.pieces as f64;
    assert!(followed > 0.9, "{followed}");
}

/// In which order a device that holds one entry serves requests (whether each writes, its place in MiB) that come while
/// it serves the first of them.
fn served(requests: &[(bool, u64)], queue: Queue) -> Vec<u64> {
    let queue = Queue {
        device_depth: 1,
        read_order: Order::Elevator,
        ..queue
    };
    let mut storage = station(&Memory::default().into(), &queue);
    for (number, (write, mib)) in requests.iter().enumerate() {
        let request = DeviceRequest {
            tag: number as u32,
            write: *write,
            position_bytes: mib << 20,
            length_bytes: 65_536,
        };
        storage.submit(number as u64, request);
        storage.advance(number as u64, &mut Vec::new());
    }
    let (tags, _) = drain(storage.as_mut(), requests.len() as u64);
    tags.iter().map(|tag| requests[*tag as usize].1).collect()
}

#[test]
fn a_sweep_that_has_ended_begins_again_with_the_oldest() {
    let writes = [50, 70, 20, 10, 90, 30].map(|mib| (true, mib));
    assert_eq!(served(&writes, linux()), [50, 70, 90, 20, 30, 10]);
}

#[test]
fn a_batch_ends_where_its_sweep_ends() {
    let requests = [(true, 50), (true, 10), (true, 60), (false, 95)];
    assert_eq!(served(&requests, linux()), [50, 60, 95, 10]);
}

#[test]
fn each_direction_goes_on_with_its_own_sweep() {
    let queue = Queue {
        batch: 1,
        writes_starved: 1,
        ..linux()
    };
    let requests = [(true, 50), (true, 10), (true, 60), (false, 90), (false, 91)];
    assert_eq!(served(&requests, queue), [50, 90, 60, 91, 10]);
}

#[test]
fn nothing_starves() {
    // A stream of writes that always adjoin, and others far away.
    let load = Load {
        random: false,
        window: 25,
        seconds: 120.0,
        ..FILES
    };
    for (write_order, write_expire_ms) in [
        (Order::Elevator, 500.0),
        (Order::Nearest, 500.0),
        (Order::Arrival, 500.0),
    ] {
        let queue = Queue {
            write_order,
            write_expire_ms,
            slots: 1024,
            ..linux()
        };
        let outcome = run(
            Load {
                random: true,
                ..load
            },
            disk(),
            &queue,
        );
        // Everything before it, in batches of 16 pieces from the oldest each: 125 requests of at most 45 ms.
        assert!(
            outcome.latency_ms_max < 500.0 + 2.0 * 125.0 * 45.0,
            "{write_order:?} {}",
            outcome.latency_ms_max
        );
        let outcome = run(load, disk(), &queue);
        assert!(
            outcome.latency_ms_max < 500.0 + 2.0 * 125.0 * 45.0,
            "{write_order:?} {}",
            outcome.latency_ms_max
        );
    }
}

#[test]
fn reads_do_not_starve_writes_nor_writes_reads() {
    for write_percent in [2, 98] {
        let load = Load {
            write_percent,
            window: 16,
            seconds: 120.0,
            ..FILES
        };
        let outcome = run(load, disk(), &linux());
        assert!(
            outcome.latency_ms_max < 15_000.0,
            "{write_percent}% {}",
            outcome.latency_ms_max
        );
        assert!(outcome.counters.read_bytes > 0 && outcome.counters.written_bytes > 0);
    }
}

#[test]
fn as_many_are_at_the_device_as_come_in_the_time_that_each_stays() {
    for write_percent in [0, 50, 100] {
        let outcome = run(
            Load {
                write_percent,
                ..FILES
            },
            disk(),
            &linux(),
        );
        let expected = outcome.requests_per_s * outcome.latency_ms_mean / 1e3;
        assert!(
            close(outcome.requests_mean, expected, 0.05),
            "{} {expected}",
            outcome.requests_mean
        );
        assert!(
            close(outcome.counters.busy_ns as f64 / 60e9, 1.0, 0.01),
            "{}",
            outcome.counters.busy_ns
        );
    }
}

fn devices() -> impl Strategy<Value = Device> {
    prop_oneof![
        Just(Device::from(disk())),
        Just(Device::from(Mechanical {
            write_cache_kib: 2048,
            read_ahead_segments: 2,
            ..disk()
        })),
        Just(Device::from(Flash::default())),
        Just(Device::from(Memory::default())),
    ]
}

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![
        Just(Order::Arrival),
        Just(Order::Elevator),
        Just(Order::Nearest)
    ]
}

fn queues() -> impl Strategy<Value = Queue> {
    (
        1_u32..12,
        1_u32..200,
        any::<bool>(),
        (orders(), orders()),
        (1_u32..40, 0_u32..4, 1_u32..20, 0.0_f64..100.0),
    )
        .prop_map(
            |(
                slots,
                piece_kib,
                merge,
                (read_order, write_order),
                (device_depth, writes_starved, batch, write_expire_ms),
            )| Queue {
                slots,
                piece_kib,
                merge,
                read_order,
                write_order,
                device_depth,
                writes_starved,
                batch,
                write_expire_ms,
            },
        )
}

/// Gap before it in microseconds, whether it writes, its place in 32 KiB, its length.
type Call = (u64, bool, u64, u32);

fn calls() -> impl Strategy<Value = Vec<Call>> {
    proptest::collection::vec(
        (0_u64..3000, any::<bool>(), 0_u64..64, 1_u32..400_000),
        1..80,
    )
}

fn play(storage: &mut dyn Storage, calls: &[Call]) -> (Vec<u32>, u64) {
    let (mut done, mut now_ns) = (Vec::new(), 0);
    for (tag, (gap_us, write, place, length_bytes)) in calls.iter().enumerate() {
        let sent_ns = now_ns + gap_us * 1000;
        while let Some(next_ns) = storage
            .advance(now_ns, &mut done)
            .filter(|next_ns| *next_ns <= sent_ns)
        {
            now_ns = next_ns;
        }
        now_ns = sent_ns;
        storage.advance(now_ns, &mut done);
        let position_bytes = place * 32_768;
        storage.submit(
            now_ns,
            DeviceRequest {
                tag: tag as u32,
                write: *write,
                position_bytes,
                length_bytes: *length_bytes,
            },
        );
    }
    let (rest, ended_ns) = drain(storage, now_ns);
    done.extend(rest);
    (done, ended_ns)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_goes_in_comes_out_once((device, queue) in (devices(), queues()), calls in calls()) {
        let mut storage = station(&device, &queue);
        let (mut done, ended_ns) = play(storage.as_mut(), &calls);
        done.sort_unstable();
        prop_assert_eq!(done, (0..calls.len() as u32).collect::<Vec<_>>());
        let counters = storage.counters();
        let bytes = |wanted: bool| -> u64 {
            calls.iter().filter(|call| call.1 == wanted).map(|call| u64::from(call.3)).sum()
        };
        prop_assert_eq!((counters.read_bytes, counters.written_bytes), (bytes(false), bytes(true)));
        prop_assert_eq!((counters.submitted, counters.completed), (calls.len() as u64, calls.len() as u64));
        let piece_bytes = queue.piece_kib * 1024;
        let pieces: u64 = calls.iter().map(|call| u64::from(call.3.div_ceil(piece_bytes))).sum();
        prop_assert_eq!(counters.pieces, pieces);
        prop_assert!(counters.sequential_pieces <= pieces);
        prop_assert!(counters.positioning_ns <= counters.busy_ns && counters.busy_ns <= ended_ns);
    }

    #[test]
    fn the_same_seed_makes_the_same_run((device, queue) in (devices(), queues()), calls in calls(), seed in any::<u64>()) {
        let noise = Noise { service_sd_percent: 20.0, ..quiet() };
        let [first, second] = [(); 2].map(|()| {
            let mut storage = build(StorageParts { device: &device, queue: &queue, noise: &noise, seed });
            (play(storage.as_mut(), &calls), storage.counters())
        });
        prop_assert_eq!(first, second);
    }

    #[test]
    fn a_device_with_work_is_never_idle((device, queue) in (devices(), queues()), calls in calls()) {
        // All at once: the device is busy from the first to the last.
        let mut storage = station(&device, &queue);
        let at_once: Vec<Call> = calls.into_iter().map(|(_, write, place, length)| (0, write, place, length)).collect();
        let (_, ended_ns) = play(storage.as_mut(), &at_once);
        let cached = matches!(&device, Device::Mechanical(spec) if spec.write_cache_kib > 0);
        // The answer of a cached write may come after the last operation.
        prop_assert!(cached || storage.counters().busy_ns == ended_ns);
    }

    #[test]
    fn sorted_writes_are_one_sweep(places in proptest::collection::btree_set(0_u64..1000, 1..60)) {
        let queue = Queue { write_expire_ms: 1e9, ..linux() };
        let mut storage = station(&disk().into(), &queue);
        let mut order: Vec<u64> = places.into_iter().collect();
        let sorted = order.clone();
        order.reverse();
        let tags: BTreeMap<u64, u32> = sorted.iter().copied().zip(0..).collect();
        for place in order {
            let position_bytes = place * 100_000_000;
            storage.submit(0, DeviceRequest { tag: tags[&place], write: true, position_bytes, length_bytes: 4096 });
        }
        prop_assert_eq!(drain(storage.as_mut(), 0).0, (0..sorted.len() as u32).collect::<Vec<_>>());
    }
}
