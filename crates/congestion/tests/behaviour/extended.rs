//! What extended controllers do beyond the original, each on its own.

use std::sync::Arc;

use crate::common::{MADE, Server, action, run};
use ascar_congestion::{
    AXIS_NAMES, Action, Bounds, Controller, Deployment, Extended, Extensions, Faithful, Fault,
    InFlight, Probe, Reply, RuleSet, Sequences, Unit, Window,
};

const MIB: u32 = 1 << 20;

fn uniform(action: Action) -> Arc<Deployment> {
    Arc::new(Deployment::new(RuleSet::uniform(action)))
}

fn stream(action: Action, options: Extensions) -> Extended {
    Extended::new(uniform(action), Arc::new(options), 1).expect("options in range")
}

fn reply(sent_us: u64, now_us: u64, bytes: u32, requests: u32) -> Reply {
    Reply {
        sent_us,
        now_us,
        bytes,
        in_flight: InFlight {
            requests,
            bytes: u64::from(requests) * u64::from(bytes),
        },
        ..Reply::default()
    }
}

/// Replies one after the other, a request in flight each.
fn feed(stream: &mut impl Controller, from_us: u64, count: u64, process_time_us: u64) -> u64 {
    for at in 0..count {
        let now_us = from_us + at * 10_000;
        stream.on_reply(&reply(now_us - process_time_us, now_us, MIB, 1));
    }
    from_us + count * 10_000
}

#[test]
fn with_no_extension_the_same_rules_come_to_the_same_window() {
    let deployment = Arc::new(Deployment::new(
        RuleSet::parse(MADE).expect("a set that a search made"),
    ));
    let mut faithful = Faithful::new(Arc::clone(&deployment));
    let mut extended = Extended::new(Arc::clone(&deployment), Arc::new(Extensions::NONE), 1)
        .expect("options in range");
    let until_us = 120_000_000;
    let one = run(
        &mut faithful,
        &mut Server::new(500, 9_000),
        until_us,
        u32::MAX,
    );
    let two = run(
        &mut extended,
        &mut Server::new(500, 9_000),
        until_us,
        u32::MAX,
    );
    assert!((one.mean_in_flight() - two.mean_in_flight()).abs() < 0.2);
    assert_eq!(faithful.gap_us(), extended.gap_us());
}

#[test]
fn a_stale_minimum_is_forgotten() {
    let options = |minimum_period_us| Extensions {
        minimum_period_us,
        ..Extensions::NONE
    };
    let ratio_after = |options| {
        let mut stream = stream(action(100, 0, 0), options);
        let at_us = feed(&mut stream, 1_000_000, 10, 1_000);
        feed(&mut stream, at_us, 300, 4_000);
        stream.signals().expect("signals").ratio100
    };
    assert_eq!(ratio_after(options(None)), 400, "of all time");
    assert_eq!(
        ratio_after(options(Some(1_000_000))),
        100,
        "of the last two seconds"
    );
    assert_eq!(
        ratio_after(options(Some(10_000_000))),
        400,
        "of the last twenty seconds"
    );
}

#[test]
fn probing_finds_the_time_without_a_queue_again() {
    // A slow wire from the middle on: without probes the standing queue hides it, with them it does not.
    let probe = Probe {
        interval_us: 2_000_000,
        window_x100: 100,
        replies: 4,
    };
    let shortest_ratio = |probe| {
        let options = Extensions {
            probe,
            minimum_period_us: Some(2_000_000),
            ..Extensions::NONE
        };
        let mut stream = stream(action(100, 0, 0), options);
        let trace = run(
            &mut stream,
            &mut Server::new(1_000, 1_000),
            30_000_000,
            u32::MAX,
        );
        let probing = trace
            .windows_x100
            .iter()
            .filter(|&&window| window == 100)
            .count();
        (stream.signals().expect("signals").ratio100, probing)
    };
    // Eight in flight make a queue of 8 ms, over 2 ms without; without probes the queue is all there is to see.
    assert_eq!(shortest_ratio(None), (100, 0));
    let (ratio100, probing) = shortest_ratio(Some(probe));
    assert_eq!(ratio100, 400);
    // Every 1.6 to 2 s four replies and what was in flight before: a small share of 30,000 replies.
    assert!((15 * 4..15 * 20).contains(&probing), "{probing}");
}

#[test]
fn probes_of_streams_come_apart() {
    let first_probe = |seed| {
        let options = Arc::new(Extensions::default());
        let mut stream =
            Extended::new(uniform(action(100, 0, 0)), options, seed).expect("options in range");
        let mut at_us = 1_000_000;
        while !stream.is_probing() {
            at_us = feed(&mut stream, at_us, 1, 1_000);
        }
        at_us
    };
    let mut times: Vec<u64> = (0..20).map(first_probe).collect();
    assert_eq!(first_probe(3), times[3], "a seed has one outcome");
    assert!(
        times
            .iter()
            .all(|time| (24_000_000..=31_100_000).contains(time)),
        "{times:?}"
    );
    times.sort_unstable();
    times.dedup();
    assert!(times.len() >= 18, "{times:?}");
}

#[test]
fn large_requests_are_not_mistaken_for_congestion() {
    let ratio_of = |size_fixed_bytes| {
        let options = Extensions {
            size_fixed_bytes,
            ..Extensions::NONE
        };
        let mut stream = stream(action(100, 0, 0), options);
        // 5 ms and 5 ms a mebibyte: 10 ms for one, 25 ms for four.
        stream.on_reply(&reply(0, 10_000, MIB, 1));
        stream.on_reply(&reply(100_000, 125_000, 4 * MIB, 1));
        stream.signals().expect("signals").ratio100
    };
    assert_eq!(ratio_of(None), 250);
    assert_eq!(ratio_of(Some(MIB)), 100);
}

#[test]
fn the_window_grows_only_if_it_was_full() {
    let window_after = |gate_growth, demand| {
        let options = Extensions {
            gate_growth,
            ..Extensions::NONE
        };
        let mut stream = stream(action(100, 100, 0), options);
        run(&mut stream, &mut Server::new(0, 1_000), 10_000_000, demand);
        stream.window().requests_x100
    };
    assert_eq!(
        window_after(false, 3),
        2_800,
        "twenty changes in ten seconds"
    );
    assert_eq!(window_after(true, 3), 800);
    assert_eq!(window_after(true, u32::MAX), 2_800);
    // Shrinking needs no reason.
    let gate = Extensions {
        gate_growth: true,
        ..Extensions::NONE
    };
    let mut shrinking = stream(action(100, -100, 0), gate);
    run(&mut shrinking, &mut Server::new(0, 1_000), 10_000_000, 1);
    assert_eq!(shrinking.window().requests_x100, 100);
}

#[test]
fn time_outs_shrink_the_window_and_are_a_signal() {
    let options = Extensions {
        timeout_m100: 50,
        ..Extensions::NONE
    };
    let mut stream = stream(action(100, 0, 0), options);
    let at_us = feed(&mut stream, 1_000_000, 100, 1_000) + 1_000_000;
    stream.on_timeout(0, at_us);
    assert_eq!(stream.window().requests_x100, 400);
    assert_eq!(stream.signals().expect("signals").timeouts_per_1000, 125);
    stream.on_timeout(0, at_us + 1);
    assert_eq!(
        stream.window().requests_x100,
        400,
        "as often as the window may change"
    );
    for step in 1..10 {
        stream.on_timeout(0, at_us + step * 1_000_000);
    }
    assert_eq!(stream.window().requests_x100, 100);
    assert!(stream.signals().expect("signals").timeouts_per_1000 > 600);
    feed(&mut stream, at_us + 20_000_000, 60, 1_000);
    assert_eq!(stream.signals().expect("signals").timeouts_per_1000, 0);
}

#[test]
fn rules_may_ask_for_further_indicators() {
    let text = "2,2,slow_ack_ewma,timeout_rate
0,2147483647,0,2147483647,0,2147483647,0,2147483647,100,1001,50,0,900
0,2147483647,0,2147483647,0,2147483647,0,2147483647,0,2147483647,100,0,1
";
    let set = RuleSet::parse(text).expect("an extended set");
    assert_eq!((set.axes(), set.to_text().as_str()), (5, text));
    let deployment = Arc::new(Deployment::new(set));
    let mut stream = Extended::new(Arc::clone(&deployment), Arc::new(Extensions::NONE), 1)
        .expect("options in range");
    let at_us = feed(&mut stream, 1_000_000, 3, 1_000);
    assert_eq!(stream.gap_us(), 1);
    stream.on_timeout(0, at_us);
    let at_us = feed(&mut stream, at_us, 1, 1_000);
    assert_eq!(stream.gap_us(), 900, "109 time-outs a thousand");
    feed(&mut stream, at_us, 1, 1_000);
    assert_eq!(stream.gap_us(), 1, "95 a thousand");
    let used: Vec<u64> = deployment
        .usage
        .observed()
        .iter()
        .map(|rule| rule.used_times)
        .collect();
    assert_eq!(used, [1, 3]);
    assert_eq!(
        deployment.usage.observed()[0].means[..5],
        [10_000, 10_000, 100, 10_000, 109]
    );
}

#[test]
fn the_slow_average_is_slow() {
    let mut stream = stream(action(100, 0, 0), Extensions::NONE);
    let mut now_us = 1_000_000;
    for at in 0..400 {
        now_us += if at < 200 { 1_000 } else { 9_000 };
        stream.on_reply(&reply(now_us - 100, now_us, MIB, 1));
    }
    let signals = stream.signals().expect("signals");
    assert!(signals.ack_us > 8_900, "{signals:?}");
    assert!((4_500..6_000).contains(&signals.slow_ack_us), "{signals:?}");
}

#[test]
fn bytes_take_place_and_time_by_their_number() {
    let options = Extensions {
        unit: Unit::Bytes(MIB),
        ..Extensions::NONE
    };
    let mut stream = stream(action(100, 0, 1_000), options);
    feed(&mut stream, 1_000_000, 3, 1_000);
    assert_eq!(stream.window(), Window::of_bytes(8 * u64::from(MIB)));
    let in_flight = InFlight {
        requests: 1,
        bytes: 6 * u64::from(MIB),
    };
    assert!(stream.admits(in_flight, 2 * MIB));
    assert!(!stream.admits(in_flight, 2 * MIB + 1));
    let start_us = 9_000_000;
    let left: Vec<u64> = [4 * MIB, MIB / 2, MIB]
        .map(|bytes| stream.reserve(start_us, bytes))
        .into();
    assert_eq!(left, [start_us, start_us + 4_000, start_us + 4_500]);
}

#[test]
fn the_most_throughput_is_kept_to_the_byte() {
    let bounds = Bounds::new(0, 50_000_000).expect("bounds in range");
    let mut stream = stream(action(100, 0, 0), Extensions::NONE).with_bounds(bounds);
    let trace = run(&mut stream, &mut Server::new(0, 100), 60_000_000, u32::MAX);
    let span_us = trace.sent_us.last().unwrap() - trace.sent_us[0];
    let bytes = (trace.sent_us.len() as u64 - 1) * u64::from(MIB);
    let rate = bytes as f64 / span_us as f64 * 1e6;
    assert!(rate <= 50_000_000.0 && rate > 49_990_000.0, "{rate}");
}

#[test]
fn the_least_throughput_overrules_the_rules() {
    // The rules would have one request in flight and ten a second; the servers could do a thousand.
    let strangling = action(0, 0, 100_000);
    let rate = |bounds| {
        let mut stream = stream(strangling, Extensions::NONE).with_bounds(bounds);
        let trace = run(
            &mut stream,
            &mut Server::new(20_000, 1_000),
            60_000_000,
            u32::MAX,
        );
        trace.replies.len() as f64 * f64::from(MIB) / 60.0
    };
    let free = rate(Bounds::NONE);
    assert!((free / f64::from(MIB) - 10.0).abs() < 0.2, "{free}");
    let least = 200_000_000;
    let bound = rate(Bounds::new(least, u64::MAX).expect("bounds in range"));
    assert!(bound >= 0.99 * least as f64, "{bound}");
    assert!(bound <= 1.3 * least as f64, "{bound}");
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let refusal = |options: Extensions| {
        let refused = Extended::new(uniform(action(100, 0, 0)), Arc::new(options), 1);
        refused.expect_err("out of range").to_string()
    };
    let none = Extensions::NONE;
    let bytes = Extensions {
        unit: Unit::Bytes(0),
        ..none
    };
    assert_eq!(refusal(bytes), "unit is 0; allowed: 1 byte or more");
    let shift = Extensions {
        slow_weight_shift: 17,
        ..none
    };
    assert_eq!(refusal(shift), "slow_weight_shift is 17; allowed: 1 to 16");
    assert!(matches!(
        Bounds::new(2, 1),
        Err(Fault::Setting {
            name: "least_bytes_per_s",
            ..
        })
    ));
    assert!(matches!(
        Bounds::new(0, 0),
        Err(Fault::Setting {
            name: "most_bytes_per_s",
            ..
        })
    ));
}

#[test]
fn extreme_replies_break_nothing() {
    for unit in [Unit::Requests, Unit::Bytes(1), Unit::Bytes(u32::MAX)] {
        let options = Extensions {
            unit,
            size_fixed_bytes: Some(u32::MAX),
            ..Extensions::default()
        };
        let bounds = Bounds::new(u64::MAX, u64::MAX).expect("bounds in range");
        let mut stream =
            stream(action(i32::MAX, i32::MAX, 2_147_483_647), options).with_bounds(bounds);
        for (sent_us, now_us, bytes) in [
            (0, u64::MAX, u32::MAX),
            (u64::MAX, 0, 0),
            (0, 0, 1),
            (9, 1 << 40, u32::MAX),
        ] {
            stream.on_reply(&reply(sent_us, now_us, bytes, u32::MAX));
            stream.on_timeout(sent_us, now_us);
            assert!(stream.reserve(now_us, bytes) >= now_us);
            assert!(stream.admits(InFlight::default(), bytes));
        }
    }
}

#[test]
fn shares_follow_what_is_requested() {
    let mut stream = stream(action(100, 0, 0), Extensions::NONE);
    let mut at_us = 1_000_000;
    let mut replies = |count: u32, write: bool, sequential: bool, bytes: u32| {
        for _ in 0..count {
            at_us += 10_000;
            stream.on_reply(&Reply {
                write,
                sequential,
                ..reply(at_us - 1_000, at_us, bytes, 1)
            });
        }
        stream.signals().expect("signals")
    };
    let first = replies(1, true, false, MIB);
    assert_eq!(
        (first.writes_per_1000, first.sequential_per_1000),
        (1000, 0)
    );
    assert_eq!(first.request_kib, 1024);
    let then = replies(60, false, true, 64 << 10);
    assert_eq!(then.writes_per_1000, 0);
    assert!(
        then.sequential_per_1000 >= 993,
        "{}",
        then.sequential_per_1000
    );
    assert!(
        (64..=66).contains(&then.request_kib),
        "{}",
        then.request_kib
    );
    let back = replies(60, true, true, 1);
    assert!(back.writes_per_1000 >= 993 && back.writes_per_1000 <= 1000);
    // What is not empty counts as one KiB.
    assert!(back.request_kib >= 1);
}

#[test]
fn rules_tell_writers_from_readers() {
    let text = format!(
        "2,2,{},{},{}\n0,2147483647,0,2147483647,100,2147483647,0,2147483647,0,2147483647,0,500,0,1600,0\n\
         0,2147483647,0,2147483647,100,2147483647,0,2147483647,0,2147483647,500,2147483647,0,300,0\n",
        AXIS_NAMES[3], AXIS_NAMES[4], AXIS_NAMES[5]
    );
    let deployment = Arc::new(Deployment::new(RuleSet::parse(&text).expect("two rules")));
    let window = |write: bool| {
        let mut stream = Extended::new(Arc::clone(&deployment), Arc::new(Extensions::NONE), 1)
            .expect("options in range");
        for at_us in (1..100).map(|at| at * 1_000_000) {
            stream.on_reply(&Reply {
                write,
                ..reply(at_us - 1_000, at_us, MIB, 1)
            });
        }
        stream.window().requests_x100
    };
    assert_eq!((window(false), window(true)), (1_600, 300));
}

#[test]
fn sixteen_files_read_in_sequence_are_told_from_random_reads() {
    let mut sequences = Sequences::default();
    for turn in 0..4_u64 {
        for file in 0..16 {
            let follows = sequences.on_send(file, turn * u64::from(MIB), MIB);
            assert_eq!(follows, turn > 0, "file {file}, turn {turn}");
        }
    }
    // A seventeenth drives the oldest out, and so on: none is told any more.
    for turn in 4..6_u64 {
        let told = (0..17).filter(|file| sequences.on_send(*file, turn * u64::from(MIB), MIB));
        assert!(told.count() <= 16, "turn {turn}");
    }
    assert!(!sequences.on_send(3, 7_777, MIB));
    // Random requests between those in sequence drive out what is older than these.
    let mut sequences = Sequences::default();
    for turn in 0..100_u64 {
        let follows = sequences.on_send(1, turn * u64::from(MIB), MIB);
        assert_eq!(follows, turn > 0, "turn {turn}");
        for other in 0..14 {
            assert!(!sequences.on_send(2, (turn * 14 + other) * 2 * u64::from(MIB) + 7, MIB));
        }
    }
    // Back at the start, and at the end of all numbers.
    assert!(!sequences.on_send(5, 0, MIB));
    assert!(!sequences.on_send(5, u64::MAX - 1, MIB));
    assert!(sequences.on_send(5, u64::MAX, 0));
}
