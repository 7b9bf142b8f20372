//! Whole sessions of made-up systems.

use ascar_pilot::findings::Basis;
use ascar_pilot::goal::{Goal, Rule};
use ascar_pilot::indicator::{Indicator, Kind};
use ascar_pilot::round::Round;
use ascar_pilot::session::{Ended, Limits, Plan, Session};
use ascar_pilot::units::Units;
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
        speed: None,
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

#[test]
fn every_indicator_has_a_goal_of_its_own() {
    let goal = |interval_width| Goal {
        interval_width,
        ..Goal::QUICK
    };
    let mut noise = Noise(5);
    let indicators = vec![
        indicator("throughput", Kind::Ordinary, goal(0.03)),
        indicator("latency_p99", Kind::Ordinary, goal(0.10)),
    ];
    let session = run(plan(indicators, None, 100_000), |_| Round {
        seconds: 1.0,
        readings: vec![
            Some(100.0 + 10.0 * noise.next()),
            Some(20.0 + 10.0 * noise.next()),
        ],
        ..Round::default()
    });
    assert_eq!(session.ended(), Some(Ended::Reached));
    let widths: Vec<f64> = session
        .findings()
        .iter()
        .map(|found| {
            found
                .measurement
                .as_ref()
                .unwrap()
                .width_relative()
                .unwrap()
        })
        .collect();
    assert!(widths[0] <= 0.03 && widths[1] <= 0.10, "{widths:?}");
    assert!(
        widths[1] > 0.05,
        "the wider goal asks for no more: {widths:?}"
    );
}

#[test]
fn a_goal_of_the_speed_counts_beside_unit_readings() {
    let rounds = |speed: Option<Goal>| {
        let mut noise = Noise(7);
        let indicators = vec![indicator("latency_ms", Kind::Ordinary, Goal::QUICK)];
        let plan = Plan {
            speed,
            ..plan(indicators, Some(Schedule::over(10.0, 1e5)), 1000)
        };
        run(plan, |work| {
            let units = (0..work.unwrap() as usize).map(|_| 20.0 + noise.next());
            Round {
                unit_readings: vec![units.collect()],
                seconds: (2.0 + work.unwrap() / 20.0) * (1.0 + 0.05 * noise.next()),
                work_amount: work,
                ..Round::default()
            }
        })
    };
    let alone = rounds(None);
    let goal = Goal {
        interval_width: 0.03,
        ..Goal::QUICK
    };
    let both = rounds(Some(goal));
    assert_eq!(
        (alone.ended(), both.ended()),
        (Some(Ended::Reached), Some(Ended::Reached))
    );
    assert!(both.rounds().len() > alone.rounds().len());
    let speed = both.speed().unwrap();
    let (low, high) = speed.limits.unwrap();
    assert!(
        (high - low) / speed.speed <= 0.03 && low < 20.0 && 20.0 < high,
        "{low} to {high}"
    );
    let fixed = Plan {
        speed: Some(goal),
        ..plan(vec![indicator("x", Kind::Ordinary, goal)], None, 10)
    };
    assert!(
        Session::new(fixed)
            .unwrap_err()
            .to_string()
            .contains("adjusted")
    );
}

#[test]
fn the_published_rule_stops_at_the_first_narrow_interval_on_its_minimum_of_subsessions() {
    for published in Goal::PUBLISHED {
        let mut noise = Noise(7);
        let plan = Plan {
            goal: published.goal,
            ..plan(
                vec![indicator("ops", Kind::Ordinary, published.goal)],
                None,
                100_000,
            )
        };
        let mut level = 0.0;
        let session = run(plan, |_| {
            level = 0.4 * level + noise.next();
            Round {
                seconds: 1.0,
                readings: vec![Some(100.0 + 3.0 * level)],
                ..Round::default()
            }
        });
        assert_eq!(session.ended(), Some(Ended::Reached), "{}", published.name);
        let found = session.findings()[0].measurement.clone().unwrap();
        assert_eq!(found.method, "faithful");
        let Rule::Published {
            autocorrelation_limit,
        } = published.goal.rule
        else {
            panic!("{:?}", published.goal);
        };
        // Correlation of 0.4 is within the limit of quick, and needs merging by those of normal and strict.
        assert_eq!(
            found.subsession_size == 1,
            autocorrelation_limit > 0.4,
            "{}",
            published.name
        );
        assert!(found.subsessions() >= published.goal.readings_min);
    }
    let wrong = Goal {
        rule: Rule::Published {
            autocorrelation_limit: 1.0,
        },
        ..Goal::QUICK
    };
    assert!(wrong.check().is_err());
}

/// A round of requests of two kinds: small ones first, then large ones, which are ten times as slow.
fn mixed_round(noise: &mut Noise, each: usize) -> Round {
    let kinds: Vec<u32> = (0..2 * each).map(|unit| u32::from(unit >= each)).collect();
    let work: Vec<f64> = (0..2 * each).map(|unit| 1.0 + (unit % 3) as f64).collect();
    let warm = each / 5;
    let mut level = 0.0;
    let values = kinds.iter().enumerate().map(|(unit, &kind)| {
        level = 0.5 * level + 0.05 * noise.next();
        let slow = if unit < warm { 1.5 } else { 1.0 };
        [2.0, 20.0][kind as usize] * (1.0 + level) * slow
    });
    Round {
        seconds: 1.0,
        unit_readings: vec![values.collect()],
        units: vec![Units { kinds, work }],
        ..Round::default()
    }
}

#[test]
fn units_that_differ_are_told_apart() {
    let indicators = || vec![indicator("latency_ms", Kind::Ordinary, Goal::QUICK)];
    let mut noise = Noise(8);
    let alike = run(plan(indicators(), None, 5), |_| Round {
        units: Vec::new(),
        ..mixed_round(&mut noise, 200)
    });
    assert_ne!(
        alike.ended(),
        Some(Ended::Reached),
        "a change of kind looks like a change of level, and neither is steady"
    );
    let mut noise = Noise(8);
    let session = run(plan(indicators(), None, 50), |_| {
        mixed_round(&mut noise, 200)
    });
    assert_eq!(session.ended(), Some(Ended::Reached));
    let finding = &session.findings()[0];
    let found = finding.measurement.clone().unwrap();
    let (low, high) = found.limits.unwrap();
    assert!(
        low < 11.0 && 11.0 < high && high - low < 0.8,
        "{low} to {high}"
    );
    assert!(
        finding.removed >= 3 * 35,
        "the warm-up is removed: {}",
        finding.removed
    );
    let means: Vec<f64> = finding
        .kinds
        .iter()
        .map(|kind| kind.measurement.as_ref().unwrap().mean)
        .collect();
    assert!(
        (means[0] / 2.0 - 1.0).abs() < 0.05 && (means[1] / 20.0 - 1.0).abs() < 0.05,
        "{means:?}"
    );
    assert!(
        finding
            .kinds
            .iter()
            .all(|kind| (kind.share - 0.5).abs() < 0.01)
    );
}

#[test]
fn the_mean_speed_of_units_of_different_work_is_all_work_over_all_time() {
    let mut noise = Noise(10);
    let (mut work_sum, mut time_sum) = (0.0, 0.0);
    let session = run(
        plan(
            vec![indicator("mb_per_s", Kind::Ratio, Goal::QUICK)],
            None,
            30,
        ),
        |_| {
            let work: Vec<f64> = (0..100).map(|unit| [1.0, 16.0, 4.0][unit % 3]).collect();
            let speeds: Vec<f64> = work.iter().map(|_| 100.0 + 20.0 * noise.next()).collect();
            work_sum += work.iter().sum::<f64>();
            time_sum += work.iter().zip(&speeds).map(|(w, v)| w / v).sum::<f64>();
            Round {
                seconds: 1.0,
                unit_readings: vec![speeds],
                units: vec![Units {
                    kinds: vec![],
                    work,
                }],
                ..Round::default()
            }
        },
    );
    let found = session.findings()[0].measurement.clone().unwrap();
    assert_eq!(session.findings()[0].removed, 0);
    assert!(
        (found.mean / (work_sum / time_sum) - 1.0).abs() < 1e-9,
        "{found:?}"
    );
}

#[test]
fn intervals_of_units_that_differ_cover_the_mean_as_often_as_they_say() {
    let mut covered = 0;
    let sessions = 200;
    for seed in 0..sessions {
        let mut random = ascar_random::Random::new(seed);
        let session = run(
            plan(
                vec![indicator("latency_ms", Kind::Ordinary, Goal::NORMAL)],
                None,
                3,
            ),
            |_| {
                let mut level = random.normal();
                let mut units = Units::default();
                let mut values = Vec::new();
                for _ in 0..300 {
                    level = 0.6 * level + 0.8 * random.normal();
                    let kind = u32::from(random.unit() < 0.3);
                    units.kinds.push(kind);
                    units.work.push([1.0, 8.0][kind as usize]);
                    values.push([4.0, 30.0][kind as usize] + [0.5, 6.0][kind as usize] * level);
                }
                Round {
                    seconds: 1.0,
                    unit_readings: vec![values],
                    units: vec![units],
                    ..Round::default()
                }
            },
        );
        // The mix is what was measured: 30% of the units, of eight times the work, by chance a little more or less.
        let finding = &session.findings()[0];
        let mean: f64 = finding
            .kinds
            .iter()
            .map(|kind| kind.share * [4.0, 30.0][kind.kind as usize])
            .sum();
        let (low, high) = finding.measurement.as_ref().unwrap().limits.unwrap();
        covered += u64::from(low <= mean && mean <= high);
    }
    let share = covered as f64 / sessions as f64;
    assert!((0.92..=0.99).contains(&share), "{share}");
}

#[test]
fn units_that_cannot_be_are_refused() {
    let start =
        |kind| Session::new(plan(vec![indicator("x", kind, Goal::QUICK)], None, 10)).unwrap();
    let round = |kinds: Vec<u32>, work: Vec<f64>| Round {
        seconds: 1.0,
        unit_readings: vec![vec![1.0, 1.0, 1.0]],
        units: vec![Units { kinds, work }],
        ..Round::default()
    };
    for (wrong, told) in [
        (
            round(vec![1, 2], vec![]),
            "kinds of 2 units for 3 readings of x",
        ),
        (
            round(vec![], vec![1.0; 4]),
            "work of 4 units for 3 readings of x",
        ),
        (round(vec![], vec![1.0, 0.0, 1.0]), "of work 0 of x"),
        (round(vec![], vec![1.0, f64::NAN, 1.0]), "of work NaN of x"),
        (
            round(vec![], vec![1.0, f64::INFINITY, 1.0]),
            "of work inf of x",
        ),
    ] {
        let mut session = start(Kind::Ordinary);
        let error = session.take(&wrong).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
        assert!(session.rounds().is_empty());
    }
    let binary = start(Kind::Binary)
        .take(&round(vec![0, 1, 0], vec![]))
        .unwrap_err();
    assert!(binary.to_string().contains("binary"), "{binary}");
    // A kind of which no two are stable has no interval, and says so.
    let mut session = start(Kind::Ordinary);
    session.take(&round(vec![0, 0, 1], vec![])).unwrap();
    session.judge(1.0, Some(Ended::Stopped)).unwrap();
    let found = session.findings()[0].measurement.clone().unwrap();
    assert!(
        found.limits.is_none() && found.reason.contains("kind 1"),
        "{}",
        found.reason
    );
}
