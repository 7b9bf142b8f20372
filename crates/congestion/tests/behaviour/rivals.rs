//! What every controller must do, and what each rival is known for.

use std::sync::Arc;

use crate::common::{MADE, Server, Trace, run};
use ascar_congestion::{
    Aimd, AnyController, Bbr, Controller, Cubic, Deployment, Extended, Extensions, Faithful,
    InFlight, RIVAL_NAMES, Reply, RivalSettings, RuleSet, WINDOW_X100_MAX, WINDOW_X100_MIN,
};
use proptest::prelude::*;

/// Each controller, by name.
fn controllers(seed: u64) -> Vec<(&'static str, AnyController)> {
    let rules = || RuleSet::parse(MADE).expect("a set that a search made");
    let deployment = || Arc::new(Deployment::new(rules()));
    let extended =
        Extended::new(deployment(), Arc::new(Extensions::default()), seed).expect("the defaults");
    let mut all: Vec<(&str, AnyController)> = RIVAL_NAMES
        .iter()
        .map(|&name| {
            (
                name,
                AnyController::rival(name, seed).expect("a rival of that name"),
            )
        })
        .collect();
    all.push((
        "faithful",
        AnyController::Faithful(Faithful::new(deployment())),
    ));
    all.push(("extended", AnyController::Extended(extended)));
    all
}

fn rival(name: &str) -> AnyController {
    AnyController::rival(name, 1).expect("a rival of that name")
}

/// A server that takes 10 ms on the wire and 1 ms to work: 11 requests in flight keep it busy.
fn server() -> Server {
    Server::new(10_000, 1_000)
}

fn throughput(trace: &Trace, until_us: u64) -> f64 {
    let late = trace
        .replies
        .iter()
        .filter(|reply| reply.now_us > until_us / 2 && reply.now_us <= until_us);
    late.count() as f64 / (until_us as f64 / 2e6)
}

#[test]
fn no_other_name_is_a_rival() {
    assert!(AnyController::rival("reno", 1).is_none());
}

#[test]
fn windows_stay_within_bounds_and_outcomes_repeat() {
    for ((name, mut one), (_, mut two)) in controllers(5).into_iter().zip(controllers(5)) {
        let first = run(&mut one, &mut server(), 20_000_000, u32::MAX);
        let second = run(&mut two, &mut server(), 20_000_000, u32::MAX);
        assert_eq!(first.replies, second.replies, "{name}");
        let within = |window: &u32| (WINDOW_X100_MIN..=WINDOW_X100_MAX).contains(window);
        assert!(first.windows_x100.iter().all(within), "{name}");
        assert!(
            first.replies.len() > 100,
            "{name} starves: {} replies",
            first.replies.len()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_may_happen(events in prop::collection::vec((any::<u8>(), 0_u64..3_000_000, any::<u32>(), 0_u32..300), 0..200)) {
        for (name, mut controller) in controllers(9) {
            let mut now_us = 0_u64;
            for &(kind, step_us, bytes, requests) in &events {
                now_us += step_us;
                let sent_us = now_us.saturating_sub(u64::from(bytes) % 5_000_000);
                match kind % 4 {
                    0 => prop_assert!(controller.reserve(now_us, bytes) >= now_us, "{}", name),
                    1 => controller.on_timeout(sent_us, now_us),
                    _ => {
                        let in_flight = InFlight { requests, bytes: u64::from(requests) * u64::from(bytes) };
                        controller.on_reply(&Reply { sent_us, now_us, bytes, in_flight, ..Reply::default() });
                    }
                }
                let window = controller.window().requests_x100;
                prop_assert!((WINDOW_X100_MIN..=WINDOW_X100_MAX).contains(&window), "{} has {}", name, window);
                prop_assert!(controller.admits(InFlight::default(), bytes), "{}", name);
            }
        }
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for name in [
        "aimd",
        "cubic",
        "bbr",
        "bbr3",
        "vegas",
        "gradient2",
        "copa",
        "iopathtune",
    ] {
        let mut controller = rival(name);
        run(&mut controller, &mut server(), 20_000_000, 1);
        assert!(
            controller.window().requests_x100 <= 800,
            "{name}: {:?}",
            controller.window()
        );
    }
}

#[test]
fn aimd_saws_at_its_bound() {
    // 30 ms are reached with 30 requests in flight.
    let settings = RivalSettings {
        latency_us_max: 30_000,
        ..RivalSettings::default()
    };
    let mut controller = Aimd::new(&settings);
    let trace = run(&mut controller, &mut server(), 60_000_000, u32::MAX);
    let late = &trace.windows_x100[trace.windows_x100.len() / 2..];
    let (low, high) = (late.iter().min().unwrap(), late.iter().max().unwrap());
    assert!((2_900..3_400).contains(high), "{high}");
    assert!((1_400..1_750).contains(low), "{low}");
    assert!(throughput(&trace, 60_000_000) > 990.0);
}

#[test]
fn cubic_grows_slowly_near_the_window_at_which_congestion_came() {
    // 30 ms are reached with 30 requests in flight.
    let settings = RivalSettings {
        latency_us_max: 30_000,
        ..RivalSettings::default()
    };
    let mut controller = Cubic::new(&settings);
    let trace = run(&mut controller, &mut server(), 60_000_000, u32::MAX);
    let late = &trace.windows_x100[trace.windows_x100.len() / 2..];
    let (low, high) = (late.iter().min().unwrap(), late.iter().max().unwrap());
    assert!((2_900..3_700).contains(high), "{high}");
    assert!((2_000..2_600).contains(low), "{low}");
    // The plateau of the cube: most of the time is spent in the upper half of the saw.
    let upper = late.iter().filter(|window| **window > 2_500).count();
    assert!(upper * 2 > late.len(), "{upper} of {}", late.len());
    assert!(throughput(&trace, 60_000_000) > 990.0);
}

#[test]
fn bbr_finds_the_rate_and_what_the_path_holds() {
    // 1,000 requests a second times 11 ms: 11 requests, and a window of twice as many, those that wait for the pace included.
    for name in ["bbr", "bbr3"] {
        let mut controller = rival(name);
        let trace = run(&mut controller, &mut server(), 60_000_000, u32::MAX);
        let mean = trace.mean_in_flight();
        assert!((9.0..25.0).contains(&mean), "{name}: {mean}");
        let found = throughput(&trace, 60_000_000);
        assert!(found > 930.0, "{name}: {found}");
    }
}

#[test]
fn the_third_bbr_keeps_below_its_bound() {
    // With 15 requests in flight 15 ms are reached; the first version takes no notice.
    let settings = RivalSettings {
        latency_us_max: 15_000,
        ..RivalSettings::default()
    };
    let mean = |third| {
        let mut controller = Bbr::new(&settings, third, 1);
        run(&mut controller, &mut server(), 60_000_000, u32::MAX).mean_in_flight()
    };
    assert!(mean(true) < 15.0, "{}", mean(true));
    assert!(mean(true) < mean(false));
}

#[test]
fn vegas_keeps_a_few_requests_queued() {
    let mut controller = rival("vegas");
    let trace = run(&mut controller, &mut server(), 60_000_000, u32::MAX);
    // 11 keep the server busy; alpha to beta more are queued. Probes cost a few percent.
    let mean = trace.mean_in_flight();
    assert!((12.0..16.0).contains(&mean), "{mean}");
    assert!(throughput(&trace, 60_000_000) > 940.0);
}

#[test]
fn copa_keeps_the_server_busy_with_a_short_queue() {
    let mut controller = rival("copa");
    let trace = run(&mut controller, &mut server(), 60_000_000, u32::MAX);
    let mean = trace.mean_in_flight();
    assert!((9.0..18.0).contains(&mean), "{mean}");
    let rate = throughput(&trace, 60_000_000);
    assert!(rate > 900.0, "{rate}");
}

#[test]
fn gradient2_steps_as_published() {
    // Process times are the same all the time: the gradient is 1, and each second adds 0.2 * 4.
    let mut controller = rival("gradient2");
    for at in 1..=5_000_u64 {
        let now_us = at * 1_000;
        let in_flight = InFlight {
            requests: 100,
            bytes: 0,
        };
        controller.on_reply(&Reply {
            sent_us: now_us - 500,
            now_us,
            bytes: 4096,
            in_flight,
            ..Reply::default()
        });
    }
    // Windows of 1,001 replies: four have ended.
    assert_eq!(controller.window().requests_x100, 1_120);
    // The fifth window is like the first four: 12. The sixth has 999 replies of 500 us and one of 1 s, on average
    // 1,499.5 us; the mean of all six is 666.6, the gradient not below a half: 12 + 0.2 * (0.5 * 12 + 4 - 12) = 11.6.
    for (process_time_us, now_us) in
        (5_001..6_005_u64).map(|at| (if at == 5_500 { 1_000_000 } else { 500 }, at * 1_000))
    {
        let in_flight = InFlight {
            requests: 100,
            bytes: 0,
        };
        controller.on_reply(&Reply {
            sent_us: now_us - process_time_us,
            now_us,
            bytes: 4096,
            in_flight,
            ..Reply::default()
        });
    }
    assert_eq!(controller.window().requests_x100, 1_160);
}

#[test]
fn envoy_measures_the_ideal_and_lets_a_quarter_more_be() {
    let mut controller = rival("envoy");
    assert_eq!(
        controller.window().requests_x100,
        300,
        "the ideal is measured first, with three in flight"
    );
    let trace = run(&mut controller, &mut server(), 50_000_000, u32::MAX);
    // In balance the gradient g has g w + sqrt(g w) = w: process times some way above 1.25 * 11 ms.
    let mean = trace.mean_in_flight();
    assert!((13.0..30.0).contains(&mean), "{mean}");
    assert!(throughput(&trace, 50_000_000) > 990.0);
    // It measures again between 60 and 69 s.
    let trace = run(&mut rival("envoy"), &mut server(), 75_000_000, u32::MAX);
    let again = trace
        .replies
        .iter()
        .zip(&trace.windows_x100)
        .any(|(reply, &window)| (60_000_000..70_000_000).contains(&reply.now_us) && window == 300);
    assert!(again);
}

#[test]
fn io_path_tune_climbs_to_a_busy_server_and_stays() {
    // 21 in flight keep this server busy: 8 are too few, 16 nearly enough.
    let mut controller = rival("iopathtune");
    let trace = run(
        &mut controller,
        &mut Server::new(20_000, 1_000),
        60_000_000,
        u32::MAX,
    );
    let rate = throughput(&trace, 60_000_000);
    assert!(rate > 900.0, "{rate}");
}

#[test]
fn time_outs_shrink_the_windows_of_those_who_listen() {
    for name in ["aimd", "vegas", "copa"] {
        let mut controller = rival(name);
        controller.on_timeout(0, 1_000_000);
        assert!(controller.window().requests_x100 < 800, "{name}");
    }
}
