//! Seek, rotation, zones, buffer.

use super::super::mechanical::Disk;
use super::super::random::Random;
use super::super::unit::Conduct;
use super::super::work::{Direction, Span};
use super::*;
use proptest::prelude::*;

fn sheet() -> Mechanical {
    Mechanical::default()
}

const USUAL: Conduct = Conduct {
    streamed: true,
    factor: 1.0,
};

#[test]
fn a_random_access_waits_half_a_turn() {
    let spec = Mechanical {
        seek_track_ms: 0.0,
        seek_full_ms: 0.0,
        write_settle_ms: 0.0,
        ..sheet()
    };
    let (mut disk, mut random) = (Disk::new(&spec), Random::new(3));
    let (mut now_ns, mut waited_ns) = (0.0, 0.0);
    let count = 200_000;
    for _ in 0..count {
        let position = (random.unit() * 499e9) as u64;
        let span = Span {
            direction: Direction::Read,
            position,
            bytes: 4096,
        };
        let service = disk.serve(now_ns, span, USUAL);
        waited_ns += service.positioning_ns;
        now_ns += service.time_ns;
    }
    let turn_ns = 60e9 / 7200.0;
    assert!(
        close(waited_ns / f64::from(count), turn_ns / 2.0, 0.01),
        "{}",
        waited_ns / f64::from(count)
    );
}

#[test]
fn a_random_read_takes_command_seek_half_a_turn_and_transfer() {
    // Of one rate everywhere, so that places are as evenly spread over cylinders as over bytes.
    let spec = Mechanical {
        inner_speed: 1.0,
        ..sheet()
    };
    let load = Load {
        request_bytes: 4096,
        stretch_bytes: 499_000_000_000,
        seconds: 600.0,
        ..LOAD
    };
    let outcome = run(load, spec, &Queue::default());
    let expected_ms = 0.1 + 12.0 + 60e3 / 7200.0 / 2.0 + 4096.0 / 113e3;
    assert!(
        close(outcome.latency_ms_mean, expected_ms, 0.015),
        "{} {expected_ms}",
        outcome.latency_ms_mean
    );
}

#[test]
fn a_sequential_stream_has_its_zones_rate() {
    let rate = |write_percent, position_bytes: u64| {
        let mut storage = station(&sheet().into(), &Queue::default());
        let mut done = Vec::new();
        let (mut now_ns, mut bytes, mut next) = (0, 0_u64, position_bytes);
        let mut send = |storage: &mut dyn Storage, now_ns| {
            let write = write_percent > 0;
            storage.submit(
                now_ns,
                DeviceRequest {
                    tag: 0,
                    write,
                    position_bytes: next,
                    length_bytes: 1 << 20,
                },
            );
            next += 1 << 20;
        };
        (0..4).for_each(|_| send(storage.as_mut(), 0));
        while now_ns < 20_000_000_000 {
            now_ns = storage.advance(now_ns, &mut done).unwrap();
            storage.advance(now_ns, &mut done);
            bytes += done.len() as u64 * (1 << 20);
            done.drain(..).for_each(|_| send(storage.as_mut(), now_ns));
        }
        bytes as f64 * 1e3 / now_ns as f64
    };
    assert!(close(rate(0, 0), 113.0, 0.01), "{}", rate(0, 0));
    assert!(close(rate(100, 0), 106.0, 0.01), "{}", rate(100, 0));
    // The last zone holds the last 14 GB and more.
    assert!(
        close(rate(0, 490_000_000_000), 56.5, 0.01),
        "{}",
        rate(0, 490_000_000_000)
    );
    assert!(
        close(rate(100, 490_000_000_000), 53.0, 0.01),
        "{}",
        rate(100, 490_000_000_000)
    );
}

#[test]
fn a_write_that_comes_after_its_place_has_passed_waits_for_the_next_turn() {
    // One at a time and written through: each write is sent when the one before has been answered.
    let load = Load {
        write_percent: 100,
        random: false,
        ..LOAD
    };
    let through = run(load, sheet(), &Queue::default());
    let settled_ms = 1_048_576.0 / 106e3 + 60e3 / 7200.0;
    assert!(
        close(through.latency_ms_mean, settled_ms, 0.06),
        "{}",
        through.latency_ms_mean
    );
    let cached = run(
        load,
        Mechanical {
            write_cache_kib: 16_384,
            ..sheet()
        },
        &Queue::default(),
    );
    assert!(cached.mb_per_s > 104.0, "{}", cached.mb_per_s);
}

#[test]
fn a_slow_reader_finds_its_data_read_ahead() {
    let mut storage = station(&sheet().into(), &Queue::default());
    let mut times_ms = Vec::new();
    for index in 0..20_u64 {
        let sent_ns = index * 50_000_000;
        let position_bytes = 1_000_000_000 + index * 262_144;
        storage.submit(
            sent_ns,
            DeviceRequest {
                tag: 0,
                write: false,
                position_bytes,
                length_bytes: 262_144,
            },
        );
        let (done, ended_ns) = drain(storage.as_mut(), sent_ns);
        assert_eq!(done.len(), 1);
        times_ms.push((ended_ns - sent_ns) as f64 / 1e6);
    }
    assert!(times_ms[0] > 3.0, "{times_ms:?}");
    assert!(
        times_ms[1..].iter().all(|time_ms| *time_ms < 1.0),
        "{times_ms:?}"
    );
}

#[test]
fn streams_beyond_the_buffers_segments_lose_their_read_ahead() {
    let rate = |streams| {
        let load = Load {
            random: false,
            streams,
            window: 2,
            stretch_bytes: 1 << 30,
            step_bytes: 5_000_000_000,
            seconds: 30.0,
            ..LOAD
        };
        run(load, sheet(), &Queue::default()).mb_per_s
    };
    let [one, six, seven] = [1, 6, 7].map(rate);
    assert!(one > 111.0 && six > 85.0, "{one} {six}");
    assert!(seven < 0.75 * six, "{six} {seven}");
}

#[test]
fn a_write_drops_what_was_read_ahead_there() {
    let mut disk = Disk::new(&sheet());
    let read = |position| Span {
        direction: Direction::Read,
        position,
        bytes: 65_536,
    };
    let first = disk.serve(0.0, read(0), USUAL);
    let later_ns = first.time_ns + 1e9;
    assert_eq!(disk.access_ns(later_ns, read(0), disk.place(0)), 0.0);
    let write = Span {
        direction: Direction::Write,
        position: 32_768,
        bytes: 4096,
    };
    let second = disk.serve(later_ns, write, USUAL);
    assert!(disk.access_ns(later_ns + second.time_ns, read(0), disk.place(0)) > 0.0);
}

#[test]
fn a_slow_server_takes_so_many_times_as_long() {
    let rate = |factor| {
        let mut storage = station(&sheet().into(), &Queue::default());
        storage.set_slowdown(factor);
        LOAD.run(storage.as_mut(), 7).mb_per_s
    };
    assert!(
        close(rate(1.0) / rate(3.0), 3.0, 0.01),
        "{} {}",
        rate(1.0),
        rate(3.0)
    );
}

#[test]
fn noise_leaves_the_mean_as_it_is() {
    let device = Device::from(sheet());
    let load = Load {
        seconds: 600.0,
        ..LOAD
    };
    let run = |service_sd_percent, seed| {
        let noise = Noise {
            service_sd_percent,
            ..quiet()
        };
        let queue = Queue::default();
        load.run(
            build(StorageParts {
                device: &device,
                queue: &queue,
                noise: &noise,
                seed,
            })
            .as_mut(),
            7,
        )
    };
    let [none, some] = [run(0.0, 1), run(25.0, 1)];
    assert!(
        close(some.mb_per_s, none.mb_per_s, 0.01),
        "{} {}",
        none.mb_per_s,
        some.mb_per_s
    );
    assert_eq!(some, run(25.0, 1));
    assert_ne!(some, run(25.0, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn faster_parts_make_no_slower_disk(
        (seek, turn, rate) in (0.5_f64..1.0, 1.0_f64..2.0, 1.0_f64..2.0),
        write_percent in prop_oneof![Just(0_u64), Just(100)],
    ) {
        let usual = sheet();
        let load = Load { write_percent, seconds: 60.0, ..LOAD };
        let slow = run(load, usual.clone(), &Queue::default());
        let quick = Mechanical {
            seek_track_ms: usual.seek_track_ms * seek,
            seek_full_ms: usual.seek_full_ms * seek,
            rpm: usual.rpm * turn,
            read_mb_per_s: usual.read_mb_per_s * rate,
            write_mb_per_s: usual.write_mb_per_s * rate,
            ..usual
        };
        // Two runs of a minute differ by the waits they draw.
        prop_assert!(run(load, quick, &Queue::default()).mb_per_s >= 0.99 * slow.mb_per_s);
    }
}
