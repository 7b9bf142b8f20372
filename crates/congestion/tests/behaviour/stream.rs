//! A stream as its client holds it: places, times, what is in flight, and calls that do not fit.

use crate::common::MADE;
use ascar_congestion::{
    Admission, AnyController, Controller, Following, InFlight, Misuse, NOW_US_MAX, RIVAL_NAMES,
    RivalSettings, RuleSet, Sending, Stream, hundredths,
};
use proptest::prelude::*;

fn fixed(window_x100: u32, gap_us: u32) -> Stream {
    let mut stream = Stream::default();
    stream.fix(window_x100, gap_us).unwrap();
    stream
}

fn sending(bytes: u32) -> Sending {
    Sending {
        bytes,
        ..Sending::default()
    }
}

#[test]
fn no_more_than_the_window_is_in_flight() {
    let mut stream = fixed(250, 0);
    assert_eq!(stream.ask(10, 4096), Ok(Admission::Now));
    let first = stream.sent(10, &sending(4096)).unwrap();
    assert_eq!(stream.ask(11, 8192), Ok(Admission::Now));
    stream.sent(11, &sending(8192)).unwrap();
    assert_eq!(stream.ask(12, 0), Ok(Admission::Full));
    let in_flight = |requests, bytes| InFlight { requests, bytes };
    assert_eq!(stream.in_flight(), in_flight(2, 12_288));
    stream.replied(&first, 30).unwrap();
    assert_eq!(stream.in_flight(), in_flight(1, 8192));
    assert_eq!(stream.ask(30, 0), Ok(Admission::Now));
    assert_eq!((stream.replies(), stream.timeouts()), (1, 0));
}

#[test]
fn a_request_keeps_its_place_however_often_it_asks() {
    let mut stream = fixed(800, 100);
    assert_eq!(stream.ask(1_000, 1), Ok(Admission::Now));
    assert_eq!(stream.ask(1_050, 1), Ok(Admission::Now));
    stream.sent(1_050, &sending(1)).unwrap();
    for now_us in [1_050, 1_060, 1_099] {
        assert_eq!(stream.ask(now_us, 1), Ok(Admission::At(1_100)));
    }
    assert_eq!(stream.in_flight().requests, 2);
    assert_eq!(stream.ask(1_130, 1), Ok(Admission::Now));
    stream.sent(1_130, &sending(1)).unwrap();
    // The one before left late; the pace did not move.
    assert_eq!(stream.ask(1_130, 1), Ok(Admission::At(1_200)));
    stream.give_back();
    stream.give_back();
    assert_eq!(stream.in_flight().requests, 2);
}

#[test]
fn those_that_give_up_put_nobody_off() {
    let mut stream = fixed(800, 100);
    stream.ask(0, 1).unwrap();
    stream.sent(0, &sending(1)).unwrap();
    for now_us in 1..100 {
        assert_eq!(stream.ask(now_us, 1), Ok(Admission::At(100)), "{now_us}");
        stream.give_back();
        stream.give_back();
    }
    assert_eq!(stream.ask(130, 1), Ok(Admission::Now));
    stream.sent(130, &sending(1)).unwrap();
    assert_eq!(stream.ask(130, 1), Ok(Admission::At(200)));
    stream.give_back();
    // Nothing is saved up.
    for at_us in [1_000, 1_100] {
        assert_eq!(stream.ask(at_us, 1), Ok(Admission::Now));
        stream.sent(at_us, &sending(1)).unwrap();
        assert_eq!(stream.ask(at_us, 1), Ok(Admission::At(at_us + 100)));
    }
    stream.give_back();
    stream.fix(800, 7).unwrap();
    assert_eq!(stream.ask(1_101, 1), Ok(Admission::Now), "another pace");
}

#[test]
fn a_place_passes_to_another_size_that_fits() {
    let mut stream = fixed(800, 100);
    stream.ask(0, 10).unwrap();
    stream.sent(0, &sending(10)).unwrap();
    assert_eq!(stream.ask(1, 10), Ok(Admission::At(100)));
    assert_eq!(stream.ask(2, 70), Ok(Admission::At(100)));
    assert_eq!(stream.in_flight().bytes, 80);
    let refused = Misuse::OtherSize {
        bytes: 10,
        asked_bytes: 70,
    };
    assert_eq!(stream.sent(100, &sending(10)), Err(refused));
    assert!(stream.sent(100, &sending(70)).is_ok());
}

#[test]
fn calls_that_do_not_fit_change_nothing() {
    let mut stream = fixed(800, 100);
    let before = |stream: &Stream| (stream.in_flight(), stream.replies(), stream.timeouts());
    assert_eq!(stream.sent(5, &sending(1)), Err(Misuse::NoPlace));
    stream.ask(10, 1).unwrap();
    let sent = stream.sent(10, &sending(1)).unwrap();
    let told = before(&stream);
    let early = Misuse::TimeWentBack {
        now_us: 9,
        last_us: 10,
    };
    assert_eq!(stream.ask(9, 1), Err(early));
    assert_eq!(stream.replied(&sent, 9), Err(early));
    let late = Misuse::TimeTooLate {
        now_us: NOW_US_MAX + 1,
    };
    assert_eq!(stream.ask(NOW_US_MAX + 1, 1), Err(late));
    let mut other = sent;
    other.sent_us = 11;
    assert_eq!(stream.replied(&other, 20), Err(Misuse::NotInFlight));
    other = sent;
    other.bytes = 2;
    assert_eq!(stream.timed_out(&other, 20), Err(Misuse::NotInFlight));
    assert_eq!(before(&stream), told);
    assert_eq!(stream.ask(20, 1), Ok(Admission::At(110)));
    let too_early = Misuse::TooEarly {
        now_us: 109,
        at_us: 110,
    };
    assert_eq!(stream.sent(109, &sending(1)), Err(too_early));
    stream.replied(&sent, 110).unwrap();
    // The one that has its place has not left: no reply is its.
    assert_eq!(stream.replied(&sent, 111), Err(Misuse::NotInFlight));
    assert_eq!(stream.cancelled(&sent), Err(Misuse::NotInFlight));
    assert_eq!(stream.in_flight().requests, 1);
    for misuse in [early, late, too_early, refused_size(), Misuse::NotInFlight] {
        assert!(!misuse.to_string().is_empty());
    }
    assert!(Misuse::NoPlace.is_of_order() && !late.is_of_order());
}

fn refused_size() -> Misuse {
    Misuse::OtherSize {
        bytes: 1,
        asked_bytes: 2,
    }
}

#[test]
fn a_new_controller_says_anew_when_a_request_leaves() {
    let mut stream = fixed(100, 1_000_000);
    stream.ask(0, 1).unwrap();
    let sent = stream.sent(0, &sending(1)).unwrap();
    stream.replied(&sent, 400).unwrap();
    assert_eq!(stream.ask(400, 1), Ok(Admission::At(1_000_000)));
    stream.fix(300, 0).unwrap();
    assert_eq!(stream.ask(401, 1), Ok(Admission::Now));
    // Told to leave, it may, whatever is put in force between.
    stream.fix(300, 500).unwrap();
    stream.sent(402, &sending(1)).unwrap();
    assert_eq!(stream.ask(402, 1), Ok(Admission::At(902)));
    assert_eq!(stream.in_flight().requests, 2);
}

#[test]
fn rules_keep_the_window_and_count_their_use() {
    let rules = || RuleSet::parse(MADE).unwrap();
    let mut stream = fixed(3_300, 0);
    stream.follow(rules(), &Following::default()).unwrap();
    assert!(matches!(stream.controller(), AnyController::Faithful(_)));
    assert_eq!(stream.window().requests_x100, 3_300);
    for at in 1..=10_u64 {
        stream.ask(at * 100_000, 1).unwrap();
        let sent = stream.sent(at * 100_000, &sending(1)).unwrap();
        stream.replied(&sent, at * 100_000 + 500).unwrap();
    }
    let observed = stream.deployment().unwrap().usage.observed();
    let used: u64 = observed.iter().map(|rule| rule.used_times).sum();
    assert_eq!(used, 9, "the first reply only sets a baseline");
    let following = Following {
        window_x100: Some(200),
        extended: true,
        seed: 1,
    };
    stream.follow(rules(), &following).unwrap();
    assert!(matches!(stream.controller(), AnyController::Extended(_)));
    assert_eq!(stream.window().requests_x100, 200);
    assert_eq!(stream.replies(), 10);
    let wrong = Following {
        window_x100: Some(99),
        ..following
    };
    let said = stream.follow(rules(), &wrong).unwrap_err().to_string();
    assert_eq!(said, "window is 0.99; allowed: 1 to 256 requests");
    let files = rules().with_active_files(2).unwrap();
    let said = stream.follow(files, &following).unwrap_err().to_string();
    assert!(
        said.starts_with("active_files is 2; allowed: none"),
        "{said}"
    );
}

#[test]
fn rivals_have_names_and_settings_within_ranges() {
    let mut stream = Stream::default();
    let own = RivalSettings::default();
    for name in RIVAL_NAMES {
        stream.rival(name, 1, &own).unwrap();
        assert!(stream.deployment().is_none());
    }
    let said = stream.rival("tahoe", 1, &own).unwrap_err().to_string();
    assert!(said.starts_with("controller is \"tahoe\"; allowed: fixed, aimd,"));
    type Change = fn(&mut RivalSettings);
    let wrong: [(&str, Change); 6] = [
        ("latency_us_max", |it| it.latency_us_max = 0),
        ("aimd_decrease", |it| it.aimd_decrease = f64::NAN),
        ("cubic_growth", |it| it.cubic_growth = f64::INFINITY),
        ("vegas_beta", |it| it.vegas_beta = 1.0),
        ("copa_delta", |it| it.copa_delta = 0.0),
        ("bbr_probe_gain", |it| it.bbr_probe_gain = 2.0),
    ];
    for (name, change) in wrong {
        let mut settings = own;
        change(&mut settings);
        let said = stream.rival("aimd", 1, &settings).unwrap_err().to_string();
        assert!(said.starts_with(&format!("{name} is ")), "{said}");
    }
    for window in [f64::NAN, 0.999, 256.1, f64::INFINITY, -1.0] {
        assert!(hundredths(window).is_err());
    }
    assert_eq!(hundredths(2.499), Ok(250));
}

#[test]
fn indicators_are_kept_whatever_controls() {
    let mut stream = Stream::default();
    stream.rival("aimd", 1, &RivalSettings::default()).unwrap();
    assert!(stream.controller().signals().is_none());
    for at in 1..=20_u64 {
        stream.ask(at * 1_000, 1).unwrap();
        let sent = stream.sent(at * 1_000, &sending(1)).unwrap();
        stream.replied(&sent, at * 1_000 + 10 * at).unwrap();
    }
    let signals = stream.signals();
    assert!(signals.ack_us > 800 && signals.send_us > 800, "{signals:?}");
    assert_eq!(signals.ratio100, 2_000);
}

fn any_stream() -> impl Strategy<Value = Stream> {
    (0..RIVAL_NAMES.len() + 2, any::<u64>()).prop_map(|(kind, seed)| {
        let mut stream = Stream::default();
        let following = Following {
            extended: kind > RIVAL_NAMES.len(),
            seed,
            ..Following::default()
        };
        match RIVAL_NAMES.get(kind) {
            Some(name) => stream.rival(name, seed, &RivalSettings::default()),
            None => stream.follow(RuleSet::parse(MADE).unwrap(), &following),
        }
        .unwrap();
        stream
    })
}

/// Times that pass: a little, or so much that sums must not overflow.
fn elapsed() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => 0..5_000_u64,
        2 => 0..10_000_000_u64,
        1 => 0..NOW_US_MAX,
    ]
}

proptest! {
    /// Whatever is called in which order, counts fit and nothing panics; overflows would.
    #[test]
    fn any_calls_in_any_order(
        mut stream in any_stream(),
        calls in prop::collection::vec((0..6_u8, elapsed(), 0..4_usize, any::<u64>()), 1..400),
    ) {
        let (mut now_us, mut flying, mut placed) = (0_u64, Vec::new(), false);
        for (call, elapsed_us, size, offset_bytes) in calls {
            now_us = now_us.saturating_add(elapsed_us).min(NOW_US_MAX);
            let bytes = [0, 1, 4096, u32::MAX][size];
            match call {
                0 | 1 => {
                    let asked = stream.ask(now_us, bytes).unwrap();
                    placed = asked != Admission::Full;
                    prop_assert!(placed || !flying.is_empty());
                    let sending = Sending { file: 0, offset_bytes, bytes, write: call == 1 };
                    if let Ok(sent) = stream.sent(now_us, &sending) {
                        prop_assert_eq!(asked, Admission::Now);
                        placed = false;
                        flying.push(sent);
                    }
                }
                2 => { stream.give_back(); placed = false; }
                3 => if let Some(sent) = flying.pop() { stream.replied(&sent, now_us).unwrap(); },
                4 => if let Some(sent) = flying.pop() { stream.timed_out(&sent, now_us).unwrap(); },
                _ => if !flying.is_empty() {
                    stream.cancelled(&flying.swap_remove(0)).unwrap();
                },
            }
            let bytes: u64 = flying.iter().map(|sent| u64::from(sent.bytes)).sum();
            let in_flight = stream.in_flight();
            prop_assert_eq!(in_flight.requests as usize, flying.len() + usize::from(placed));
            prop_assert!(in_flight.bytes >= bytes);
            prop_assert!((100..=25_600).contains(&stream.window().requests_x100));
            let _ = (stream.gap_us(), stream.signals());
        }
    }
}

#[test]
fn extended_streams_tell_sequences_and_writes() {
    let mut stream = Stream::default();
    let rules = RuleSet::parse(MADE).unwrap();
    let following = Following {
        extended: true,
        ..Following::default()
    };
    stream.follow(rules, &following).unwrap();
    let mut told = |offset_bytes, bytes, write| {
        let now_us = 1_000_000 * (1 + offset_bytes);
        let mut at_us = now_us;
        while let Ok(Admission::At(later_us)) = stream.ask(at_us, bytes) {
            at_us = later_us;
        }
        let sending = Sending {
            file: 0,
            offset_bytes,
            bytes,
            write,
        };
        let sent = stream.sent(at_us, &sending).unwrap();
        stream.cancelled(&sent).unwrap();
        (sent.sequential, sent.write)
    };
    assert_eq!(told(10, 10, false), (false, false));
    assert_eq!(told(20, 10, true), (true, true));
    assert_eq!(told(40, 0, true), (false, false));
}
