//! Whole sessions of made-up systems.

use ascar_pilot::findings::Basis;
use ascar_pilot::goal::Goal;
use ascar_pilot::indicator::{Indicator, Kind};
use ascar_pilot::round::Round;
use ascar_pilot::session::{Ended, Limits, Plan, Session};
use ascar_pilot::work_amounts::Schedule;

/// Uniform numbers in (-1, 1), the same every time (Steele, Lea and Flood 2014, SplitMix).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

fn indicator(name: &str, kind: Kind, goal: Goal) -> Indicator {
    Indicator {
        name: name.to_owned(),
        kind,
        goal: Some(goal),
    }
}

fn plan(indicators: Vec<Indicator>, work: Option<Schedule>, rounds_max: usize) -> Plan {
    Plan {
        indicators,
        goal: Goal::NORMAL,
        work,
        limits: Limits {
            session_s: 1e6,
            rounds_max,
        },
    }
}

/// Runs a session whose clock is the sum of its rounds.
fn run(plan: Plan, mut round: impl FnMut(Option<f64>) -> Round) -> Session {
    let mut session = Session::new(plan).unwrap();
    let mut elapsed_s = 0.0;
    loop {
        let done = round(session.next_work());
        elapsed_s += done.seconds;
        session.take(&done).unwrap();
        if session.judge(elapsed_s, None).unwrap().is_some() {
            return session;
        }
    }
}

#[test]
fn the_speed_of_adjustable_work_is_found_beside_its_set_up() {
    let mut noise = Noise(1);
    let session = run(
        plan(vec![], Some(Schedule::over(1.0, 1e9)), 10_000),
        |work| Round {
            seconds: (3.0 + work.unwrap() / 50.0) * (1.0 + 0.02 * noise.next()),
            work_amount: work,
            ..Round::default()
        },
    );
    assert_eq!(session.ended(), Some(Ended::Reached));
    assert!(session.speed_decides());
    let (low, high) = session.speed().unwrap().limits.unwrap();
    assert!(low < 50.0 && 50.0 < high, "{low} to {high}");
    assert!(session.rounds().iter().any(|done| !done.used));
}

#[test]
fn unit_readings_decide_where_there_are_any() {
    let mut noise = Noise(2);
    let goal = Goal::NORMAL;
    let indicators = vec![indicator("latency_ms", Kind::Ordinary, goal)];
    let session = run(
        plan(indicators, Some(Schedule::over(10.0, 1e5)), 1000),
        |work| {
            let units = (0..work.unwrap() as usize).map(|_| 20.0 + 12.0 * noise.next());
            Round {
                seconds: work.unwrap() / 20.0,
                work_amount: work,
                unit_readings: vec![units.collect()],
                ..Round::default()
            }
        },
    );
    assert_eq!(session.ended(), Some(Ended::Reached));
    assert!(!session.speed_decides());
    let found = session.findings()[0].measurement.clone().unwrap();
    assert!(found.width_relative().unwrap() <= 0.1);
    assert!(found.n >= goal.readings_min && found.independent_samples >= 20);
}

#[test]
fn rounds_that_differ_are_the_samples_themselves() {
    let mut noise = Noise(3);
    let goal = Goal {
        interval_width: 0.01,
        ..Goal::QUICK
    };
    let session = run(
        plan(vec![indicator("ops", Kind::Ordinary, goal)], None, 30),
        |_| {
            let level = 100.0 + 20.0 * noise.next();
            let units = (0..100).map(|_| level + noise.next());
            Round {
                seconds: 1.0,
                unit_readings: vec![units.collect()],
                ..Round::default()
            }
        },
    );
    assert_eq!(session.ended(), Some(Ended::Rounds));
    let finding = &session.findings()[0];
    assert_eq!(finding.basis, Basis::Rounds);
    let found = finding.measurement.clone().unwrap();
    assert!((10..=30).contains(&found.independent_samples), "{found:?}");
    assert!(found.width_relative().unwrap() > 0.05);
}

#[test]
fn ratios_have_harmonic_means_and_outcomes_proportions() {
    let mut noise = Noise(4);
    let indicators = vec![
        indicator("mb_per_s", Kind::Ratio, Goal::QUICK),
        indicator("hits", Kind::Binary, Goal::QUICK),
    ];
    let mut times = Vec::new();
    let session = run(plan(indicators, None, 5000), |_| {
        times.push(1.0 + 0.3 * noise.next());
        let hit = f64::from(u8::from(noise.next() < 0.6));
        Round {
            seconds: 0.5,
            readings: vec![Some(1.0 / times[times.len() - 1]), Some(hit)],
            ..Round::default()
        }
    });
    assert_eq!(session.ended(), Some(Ended::Reached));
    let speed = session.findings()[0].measurement.clone().unwrap();
    assert!(speed.method.starts_with("harmonic"));
    let (low, high) = speed.limits.unwrap();
    assert!(low < 1.0 && 1.0 < high);
    let hits = session.findings()[1].measurement.clone().unwrap();
    assert_eq!(
        (hits.method.as_str(), hits.n),
        ("Wilson", session.findings()[1].readings)
    );
    assert!((hits.mean - 0.8).abs() < 0.1);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let indicators = vec![indicator("mb_per_s", Kind::Ratio, Goal::QUICK)];
    let mut session = Session::new(plan(indicators.clone(), None, 10)).unwrap();
    let round = |seconds, reading| Round {
        seconds,
        readings: vec![Some(reading)],
        ..Round::default()
    };
    for wrong in [
        round(1.0, f64::NAN),
        round(1.0, 0.0),
        round(1.0, f64::INFINITY),
        round(-1.0, 1.0),
        round(f64::NAN, 1.0),
        Round {
            work_amount: Some(1.0),
            ..round(1.0, 1.0)
        },
    ] {
        assert!(session.take(&wrong).is_err(), "{wrong:?}");
    }
    assert!(session.rounds().is_empty());
    let stopped = Some(Ended::Stopped);
    assert_eq!(session.judge(0.0, stopped).unwrap(), stopped);
    assert_eq!(session.why(), "it was asked to stop");
    assert!(session.findings()[0].measurement.is_none());
    assert!(Session::new(plan(vec![], None, 10)).is_err());
    assert!(Session::new(plan([indicators.clone(), indicators].concat(), None, 10)).is_err());
}
