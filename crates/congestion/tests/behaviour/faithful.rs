//! The original's behaviour, by hand-computed examples; and its two defects, absent.

use std::sync::Arc;

use crate::common::{Server, action, rule, run};
use ascar_congestion::{
    Action, Controller, Deployment, Faithful, Fixed, INFINITY, InFlight, Interval, Pacer, Reply,
    RuleSet, SILENCE_MAX_US, SPACE, Signals, WINDOW_X100_MAX, WINDOW_X100_MIN, Window, stepped,
};
use proptest::prelude::*;

fn uniform(action: Action) -> Arc<Deployment> {
    Arc::new(Deployment::new(RuleSet::uniform(action)))
}

fn reply(sent_us: u64, now_us: u64) -> Reply {
    Reply {
        sent_us,
        now_us,
        bytes: 1 << 20,
        in_flight: InFlight {
            requests: 1,
            bytes: 1 << 20,
        },
        ..Reply::default()
    }
}

fn signals(ack_us: u32, send_us: u32, ratio100: u32) -> Signals {
    Signals {
        ack_us,
        send_us,
        ratio100,
        ..Signals::default()
    }
}

#[test]
fn indicators_window_and_gap_follow_the_original() {
    let deployment = uniform(action(150, -30, 1_000));
    let mut stream = Faithful::new(Arc::clone(&deployment));
    // The first reply is a baseline: no rule, no gap, the window as it was.
    stream.on_reply(&reply(0, 10_000));
    assert_eq!(stream.signals(), Some(signals(0, 0, 100)));
    assert_eq!(
        (stream.window(), stream.gap_us()),
        (Window::of_requests_x100(800), 0)
    );
    // 10,000 / 8 and 4,000 / 8; 16,000 over the shortest of 10,000; 800 * 1.5 - 30.
    stream.on_reply(&reply(4_000, 20_000));
    assert_eq!(stream.signals(), Some(signals(1_250, 500, 160)));
    assert_eq!(
        (stream.window(), stream.gap_us()),
        (Window::of_requests_x100(1_170), 1_000)
    );
    // (1,250 * 7 + 6,000) / 8 and (500 * 7 + 8,000) / 8, rounded down; too early to change the window again.
    stream.on_reply(&reply(12_000, 26_000));
    assert_eq!(stream.signals(), Some(signals(1_843, 1_437, 140)));
    assert_eq!(stream.window(), Window::of_requests_x100(1_170));
    // Half a second after the last change; a new shortest process time.
    stream.on_reply(&reply(519_000, 520_000));
    assert_eq!(stream.signals(), Some(signals(63_362, 64_632, 100)));
    assert_eq!(stream.window(), Window::of_requests_x100(1_725));
    // Three replies matched the one rule; means of (1250, 1843, 63362), (500, 1437, 64632), (160, 140, 100).
    let observed = deployment.usage.observed()[0];
    assert_eq!(observed.used_times, 3);
    assert_eq!(observed.means[..3], [22_151, 22_189, 133]);
    let text = deployment.observed_rules().to_text();
    assert!(
        text.ends_with(",150,-30,1000,3,22151,22189,133\n"),
        "{text}"
    );
}

#[test]
fn replies_out_of_order_count_gaps_by_their_size() {
    let mut stream = Faithful::new(uniform(action(100, 0, 0)));
    stream.on_reply(&reply(8_000, 10_000));
    stream.on_reply(&reply(0, 12_000));
    assert_eq!(stream.signals(), Some(signals(250, 1_000, 600)));
    // A clock that goes back is no reason to fail.
    stream.on_reply(&reply(20_000, 11_000));
    assert_eq!(stream.signals().map(|signals| signals.ratio100), Some(100));
}

#[test]
fn silence_begins_averages_anew_and_keeps_the_shortest_time() {
    let mut stream = Faithful::new(uniform(action(100, 0, 7)));
    stream.on_reply(&reply(0, 1_000));
    stream.on_reply(&reply(1_000, 5_000));
    assert_eq!(stream.signals(), Some(signals(500, 125, 400)));
    let late_us = 5_000 + SILENCE_MAX_US;
    stream.on_reply(&reply(late_us - 2_000, late_us));
    assert_ne!(
        stream.signals(),
        Some(signals(0, 0, 200)),
        "ten minutes are not more than ten minutes"
    );
    let later_us = late_us + SILENCE_MAX_US + 1;
    stream.on_reply(&reply(later_us - 2_000, later_us));
    assert_eq!(stream.signals(), Some(signals(0, 0, 200)));
}

#[test]
fn the_window_is_whole_hundredths_within_bounds() {
    // 1,037 * 87 / 100 = 902.19, less 59.
    assert_eq!(stepped(1_037, &action(87, -59, 0)), 843);
    assert_eq!(stepped(101, &action(87, -59, 0)), WINDOW_X100_MIN);
    assert_eq!(stepped(20_000, &action(200, 0, 0)), WINDOW_X100_MAX);
    assert_eq!(stepped(800, &action(-1, 90, 0)), 890);
    assert_eq!(stepped(800, &action(0, 0, 0)), WINDOW_X100_MIN);
    // Rounding is towards zero before b is added: 199 * 99 / 100 = 197.01.
    assert_eq!(stepped(199, &action(99, -1, 0)), 196);
    assert_eq!(
        stepped(25_600, &action(i32::MAX, i32::MAX, 0)),
        WINDOW_X100_MAX
    );
    assert_eq!(
        stepped(25_600, &action(i32::MIN, i32::MIN, 0)),
        WINDOW_X100_MIN
    );
}

#[test]
fn loading_rules_forgets_all_but_the_window() {
    let mut stream = Faithful::new(uniform(action(200, 0, 500)));
    for at in 1..10 {
        stream.on_reply(&reply(at * 1_000, at * 1_000 + 500));
    }
    assert_eq!(
        (stream.window(), stream.gap_us()),
        (Window::of_requests_x100(1_600), 500)
    );
    let next = uniform(action(100, 0, 900));
    stream.load(Arc::clone(&next));
    assert_eq!(
        (stream.window(), stream.gap_us()),
        (Window::of_requests_x100(1_600), 0)
    );
    stream.on_reply(&reply(20_000, 29_000));
    assert_eq!(stream.signals(), Some(signals(0, 0, 100)));
    assert_eq!(next.usage.observed()[0].used_times, 0);
}

#[test]
fn tau_is_set_at_every_match_and_the_window_twice_a_second() {
    let mut narrow = SPACE;
    narrow[2] = Interval { lo: 0, hi: 150 };
    let rules = vec![
        rule(narrow, action(100, 100, 10)),
        rule(SPACE, action(100, 50, 20)),
    ];
    let set = RuleSet::new(rules, 2).expect("the last rule holds everywhere");
    let mut stream = Faithful::new(Arc::new(Deployment::new(set)));
    let mut changes = 0;
    let mut before = stream.window();
    for at in 0..10_000_u64 {
        let process_time_us = if at % 2 == 0 { 100 } else { 200 };
        stream.on_reply(&reply(at * 1_000, at * 1_000 + process_time_us));
        if at > 0 {
            assert_eq!(stream.gap_us(), if at % 2 == 0 { 10 } else { 20 });
        }
        changes += u32::from(stream.window() != before);
        before = stream.window();
    }
    assert_eq!(changes, 20, "ten seconds");
}

#[test]
fn a_window_of_hundredths_admits_whole_requests() {
    let window = Window::of_requests_x100(250);
    let admits = |requests| window.admits(InFlight { requests, bytes: 0 }, 1);
    assert_eq!([0, 1, 2, 3].map(admits), [true, true, false, false]);
    assert!(
        Window::of_bytes(10).admits(InFlight::default(), 20),
        "an idle stream may always send"
    );
    assert!(!Window::of_bytes(10).admits(
        InFlight {
            requests: 1,
            bytes: 5
        },
        6
    ));
    assert!(Window::of_bytes(10).admits(
        InFlight {
            requests: 9,
            bytes: 5
        },
        5
    ));
}

#[test]
fn a_standing_queue_leaves_tau_apart_every_time() {
    // Defect 1 of the prototype: stamping before the wait gave gaps of tau, 0, tau, 0.
    let mut pacer = Pacer::default();
    let left: Vec<u64> = (0..6).map(|_| pacer.reserve(1_000, 250)).collect();
    assert_eq!(left, [1_000, 1_250, 1_500, 1_750, 2_000, 2_250]);
    // An idle stream saves nothing up.
    assert_eq!(pacer.reserve(9_000, 250), 9_000);
    assert_eq!(pacer.reserve(9_000, 250), 9_250);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_saturated_stream_has_a_mean_gap_of_tau(tau_us in 1_u32..50_000, window in 1_u32..256, share in 0.01..0.9_f64) {
        // The server is faster than the pacer, and the window large enough for it.
        let service_us = ((f64::from(tau_us) * share) as u64).max(1);
        let mut stream = Fixed::new(window.max(4) * 100, tau_us);
        let trace = run(&mut stream, &mut Server::new(0, service_us), u64::from(tau_us) * 2_000, u32::MAX);
        let gaps = trace.sent_us.len() as f64 - 1.0;
        let mean_us = (trace.sent_us[trace.sent_us.len() - 1] - trace.sent_us[0]) as f64 / gaps;
        prop_assert!((mean_us / f64::from(tau_us) - 1.0).abs() < 0.01, "{mean_us} for {tau_us}");
        let least_us = trace.sent_us.windows(2).map(|pair| pair[1] - pair[0]).min();
        prop_assert!(least_us >= Some(u64::from(tau_us)));
    }
}

#[test]
fn the_gap_does_not_leak_into_signals() {
    // Defect 2: sending times taken before the wait made tau part of process times, and hid it from send gaps.
    let tau_us = 20_000;
    let mut stream = Faithful::new(uniform(action(100, 0, tau_us)));
    let trace = run(
        &mut stream,
        &mut Server::new(100, 1_000),
        10_000_000,
        u32::MAX,
    );
    let steady = &trace.replies[trace.replies.len() / 2..];
    assert!(
        steady.iter().all(|reply| reply.process_time_us() == 1_100),
        "the server's own time alone"
    );
    let signals = stream.signals().expect("a faithful stream keeps signals");
    assert_eq!(signals.ratio100, 100);
    assert!(signals.send_us.abs_diff(tau_us) <= 10, "{signals:?}");
    assert!(signals.ack_us.abs_diff(tau_us) <= 10, "{signals:?}");
}

#[test]
fn extreme_times_break_nothing() {
    let mut stream = Faithful::new(uniform(action(100, 0, INFINITY)));
    for (sent_us, now_us) in [
        (0, u64::MAX),
        (u64::MAX, u64::MAX),
        (u64::MAX, 0),
        (5, 4),
        (0, 0),
    ] {
        stream.on_reply(&reply(sent_us, now_us));
        let at_us = stream.reserve(now_us, u32::MAX);
        assert!(at_us >= now_us);
    }
}
