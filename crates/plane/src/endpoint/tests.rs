//! Schedules of a manager, on a plane that notes what it follows.

use super::*;
use crate::plane::StreamIndicators;
use crate::recording::Recording;

const TEXT: &str = "1,2\n0,2147483647,0,2147483647,100,2147483647,100,0,0\n";
const OTHER: &str = "1,2\n0,2147483647,0,2147483647,100,2147483647,100,0,7\n";

/// Follows anything but rules with a gap of 13.
#[derive(Debug, Default)]
struct Noted {
    followed: Vec<Option<u32>>,
}

impl Plane for Noted {
    fn follow(&mut self, rules: Option<&RuleSet>) -> Result<(), String> {
        let tau_us = rules.map(|it| it.rules()[0].action.tau_us);
        if tau_us == Some(13) {
            return Err("13 is refused".to_owned());
        }
        self.followed.push(tau_us);
        Ok(())
    }

    fn used(&self) -> Option<RuleSet> {
        None
    }

    fn observe(&self) -> Vec<StreamIndicators> {
        Vec::new()
    }
}

fn endpoint() -> Endpoint<Noted> {
    Endpoint::new("client1", "files", "1f", Noted::default()).unwrap()
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn load(id: &str, text: &str, within_s: f64) -> Asked {
    Asked::Load {
        rules: id.to_owned(),
        text: text.to_owned(),
        within_s,
    }
}

fn keep(id: &str, within_s: Option<f64>) -> Asked {
    Asked::Keep {
        rules: id.to_owned(),
        within_s,
    }
}

fn refused(told: Option<Told>) -> String {
    match told {
        Some(Told::Refusal { reason }) => reason,
        other => panic!("no refusal: {other:?}"),
    }
}

fn in_force(told: Option<Told>) -> Option<String> {
    match told {
        Some(Told::InForce { rules, .. }) => rules,
        other => panic!("nothing in force: {other:?}"),
    }
}

fn named(id: &str) -> String {
    id.to_owned()
}

#[test]
fn rules_that_are_not_kept_in_time_are_put_back() {
    let mut endpoint = endpoint();
    assert_eq!(
        in_force(endpoint.answer(&load("a", TEXT, 30.0), at(0))),
        Some(named("a"))
    );
    assert_eq!(endpoint.expire(at(29)), None);
    assert_eq!(endpoint.rules(), Some("a"));
    assert_eq!(
        endpoint.expire(at(30)).as_deref(),
        Some("rules a: their time is over; in force: none")
    );
    assert_eq!(endpoint.rules(), None);
    assert_eq!(endpoint.plane().followed, [Some(0), None]);
}

#[test]
fn a_trial_goes_on_when_it_is_renewed() {
    let mut endpoint = endpoint();
    endpoint.answer(&load("a", TEXT, 30.0), at(0));
    let renew = |id: &str, within_s| Asked::Renew {
        rules: id.to_owned(),
        within_s,
    };
    endpoint.answer(&renew("a", 30.0), at(20));
    assert_eq!(endpoint.expire(at(49)), None);
    assert!(refused(endpoint.answer(&renew("b", 30.0), at(49))).contains("\"b\""));
    assert!(refused(endpoint.answer(&renew("a", 0.0), at(49))).contains("within_s = 0"));
    assert!(endpoint.expire(at(50)).is_some());
    assert_eq!(endpoint.plane().followed, [Some(0), None]);
}

#[test]
fn a_trial_whose_time_is_over_is_neither_kept_nor_renewed() {
    for late in [
        keep("a", None),
        Asked::Renew {
            rules: named("a"),
            within_s: 30.0,
        },
    ] {
        let mut endpoint = endpoint();
        endpoint.answer(&load("a", TEXT, 30.0), at(0));
        assert!(refused(endpoint.answer(&late, at(30))).contains("not on trial"));
        assert_eq!(endpoint.rules(), None);
        assert_eq!(endpoint.plane().followed, [Some(0), None]);
        assert_eq!(
            endpoint.expire(at(31)).as_deref(),
            Some("rules a: their time is over; in force: none")
        );
        assert_eq!(endpoint.expire(at(32)), None);
    }
}

#[test]
fn kept_rules_stay_and_are_what_is_put_back() {
    let mut endpoint = endpoint();
    endpoint.answer(&load("a", TEXT, 30.0), at(0));
    assert_eq!(
        in_force(endpoint.answer(&keep("a", None), at(1))),
        Some(named("a"))
    );
    assert_eq!(endpoint.expire(at(100)), None);
    // The answer was lost, and it is said again.
    assert_eq!(
        in_force(endpoint.answer(&keep("a", None), at(2))),
        Some(named("a"))
    );
    endpoint.answer(&load("b", OTHER, 30.0), at(100));
    assert_eq!(
        endpoint.expire(at(131)).as_deref(),
        Some("rules b: their time is over; in force: a")
    );
    assert_eq!(endpoint.plane().followed, [Some(0), Some(7), Some(0)]);
}

#[test]
fn kept_rules_end_at_their_limit_and_nothing_is_in_force_then() {
    let mut endpoint = endpoint();
    endpoint.answer(&load("a", TEXT, 30.0), at(0));
    let changes = endpoint.kept_changes();
    endpoint.answer(&keep("a", Some(100.0)), at(10));
    assert_ne!(endpoint.kept_changes(), changes);
    assert_eq!(endpoint.ends_at(), Some(at(110)));
    assert_eq!(endpoint.left(at(109)), Some(at(1)));
    assert_eq!(endpoint.expire(at(109)), None);
    // What was kept before it does not come again either.
    endpoint.answer(&load("b", OTHER, 30.0), at(20));
    endpoint.answer(&keep("b", Some(60.0)), at(21));
    assert_eq!(
        endpoint.expire(at(81)).as_deref(),
        Some("rules b: their time is over; in force: none")
    );
    assert_eq!((endpoint.expire(at(200)), endpoint.ends_at()), (None, None));
    assert_eq!(endpoint.plane().followed, [Some(0), Some(7), None]);
    assert_eq!((endpoint.rules(), endpoint.kept()), (None, None));
}

#[test]
fn the_time_of_kept_rules_begins_anew_when_they_are_kept_again() {
    let mut endpoint = endpoint();
    endpoint.answer(&load("a", TEXT, 30.0), at(0));
    endpoint.answer(&keep("a", Some(100.0)), at(0));
    endpoint.answer(&keep("a", Some(100.0)), at(90));
    assert_eq!(endpoint.expire(at(189)), None);
    assert_eq!(endpoint.rules(), Some("a"));
    endpoint.answer(&keep("a", None), at(189));
    assert_eq!(endpoint.expire(at(1_000_000)), None);
    endpoint.answer(&keep("a", Some(1.0)), at(1_000_000));
    // Even the manager's own word is too late.
    let late = endpoint.answer(&keep("a", None), at(1_000_001));
    assert!(refused(late).contains("not on trial"));
    assert_eq!(endpoint.plane().followed, [Some(0), None]);
}

#[test]
fn a_trial_goes_on_over_the_end_of_what_was_kept() {
    let mut endpoint = endpoint();
    endpoint.answer(&load("a", TEXT, 30.0), at(0));
    endpoint.answer(&keep("a", Some(10.0)), at(0));
    endpoint.answer(&load("b", OTHER, 30.0), at(5));
    assert_eq!(endpoint.ends_at(), Some(at(10)));
    assert_eq!(
        endpoint.expire(at(10)).as_deref(),
        Some("rules a: their time is over; in force: b")
    );
    assert_eq!(endpoint.expire(at(10)), None);
    assert!(endpoint.expire(at(35)).unwrap().ends_with("none"));
    // A clock that has stood still: both at once, and both are said.
    endpoint.answer(&load("a", TEXT, 30.0), at(100));
    endpoint.answer(&keep("a", Some(10.0)), at(100));
    endpoint.answer(&load("b", OTHER, 30.0), at(101));
    assert!(endpoint.expire(at(9_999)).unwrap().starts_with("rules a"));
    assert!(endpoint.expire(at(9_999)).unwrap().starts_with("rules b"));
    assert_eq!(endpoint.rules(), None);
}

#[test]
fn what_was_kept_before_is_not_put_back_after_its_limit() {
    let mut endpoint = endpoint();
    endpoint.answer(&load("a", TEXT, 30.0), at(0));
    endpoint.answer(&keep("a", Some(10.0)), at(0));
    endpoint.answer(&load("b", OTHER, 30.0), at(1));
    endpoint.answer(&keep("b", None), at(2));
    assert_eq!(in_force(endpoint.answer(&back("b"), at(11))), None);
    assert_eq!(endpoint.plane().followed, [Some(0), Some(7), None]);
}

#[test]
fn an_endpoint_goes_on_with_what_another_has_kept() {
    let mut first = endpoint();
    first.answer(&load("a", TEXT, 30.0), at(0));
    first.answer(&keep("a", Some(100.0)), at(0));
    let kept = first.kept().unwrap().clone();
    let mut second = endpoint();
    second.take_up(kept.clone(), at(99)).unwrap();
    assert_eq!(
        (second.rules(), second.ends_at()),
        (Some("a"), Some(at(100)))
    );
    assert!(second.expire(at(100)).is_some());
    let mut third = endpoint();
    assert!(
        third
            .take_up(kept.clone(), at(100))
            .unwrap_err()
            .contains("time is over")
    );
    let mut wrong = kept;
    wrong.named.id = "a b".to_owned();
    assert!(
        third
            .take_up(wrong, at(0))
            .unwrap_err()
            .contains("rules = \"a b\"")
    );
    assert!(third.plane().followed.is_empty());
}

#[test]
fn back_undoes_a_trial_or_what_was_kept_last() {
    let mut endpoint = endpoint();
    endpoint.answer(&load("a", TEXT, 30.0), at(0));
    assert_eq!(in_force(endpoint.answer(&back("a"), at(1))), None);
    endpoint.answer(&load("a", TEXT, 30.0), at(2));
    endpoint.answer(&keep("a", None), at(3));
    assert_eq!(
        in_force(endpoint.answer(&back("b"), at(4))),
        Some(named("a"))
    );
    assert_eq!(in_force(endpoint.answer(&back("a"), at(5))), None);
}

fn back(id: &str) -> Asked {
    Asked::Back {
        rules: id.to_owned(),
    }
}

/// Rules b are kept after rules a.
fn with_two_kept() -> Endpoint<Noted> {
    let mut endpoint = endpoint();
    for (id, text) in [("a", TEXT), ("b", OTHER)] {
        endpoint.answer(&load(id, text, 30.0), at(0));
        endpoint.answer(&keep(id, Some(100.0)), at(1));
    }
    endpoint
}

#[test]
fn rules_that_are_deployed_again_and_taken_back_are_as_they_were() {
    let mut endpoint = with_two_kept();
    endpoint.answer(&load("b", OTHER, 30.0), at(50));
    endpoint.answer(&keep("b", Some(1_000.0)), at(51));
    assert_eq!(endpoint.left(at(51)), Some(at(1_000)));
    // The manager says it to all, and to all again: one of them did not keep them.
    for _ in 0..2 {
        let told = endpoint.answer(&back("b"), at(52));
        assert_eq!(in_force(told), Some(named("b")));
        assert_eq!(
            endpoint.left(at(52)),
            Some(at(49)),
            "their time is that of before"
        );
    }
    assert!(endpoint.expire(at(101)).unwrap().ends_with("none"));
}

#[test]
fn rules_whose_second_trial_was_taken_back_stay_kept() {
    let mut endpoint = with_two_kept();
    endpoint.answer(&load("b", OTHER, 30.0), at(50));
    for _ in 0..2 {
        let told = endpoint.answer(&back("b"), at(52));
        assert_eq!(in_force(told), Some(named("b")));
    }
    // So do they where it ended by itself.
    endpoint.answer(&load("b", OTHER, 5.0), at(60));
    assert!(endpoint.expire(at(65)).is_some());
    assert_eq!(
        in_force(endpoint.answer(&back("b"), at(66))),
        Some(named("b"))
    );
}

#[test]
fn rules_whose_second_deployment_is_refused_stay_kept() {
    let mut endpoint = with_two_kept();
    refused(endpoint.answer(&load("b", OTHER, -1.0), at(50)));
    assert_eq!(
        in_force(endpoint.answer(&back("b"), at(51))),
        Some(named("b"))
    );
}

#[test]
fn a_deployment_is_taken_back_once() {
    let mut endpoint = with_two_kept();
    assert_eq!(
        in_force(endpoint.answer(&back("b"), at(2))),
        Some(named("a"))
    );
    assert_eq!(
        in_force(endpoint.answer(&back("a"), at(2))),
        Some(named("a"))
    );
    assert_eq!(endpoint.plane().followed, [Some(0), Some(7), Some(0)]);
}

#[test]
fn what_rules_from_before_a_restart_took_the_place_of_is_not_known() {
    let kept = with_two_kept().kept().unwrap().clone();
    let mut endpoint = endpoint();
    endpoint.take_up(kept, at(10)).unwrap();
    assert_eq!(in_force(endpoint.answer(&back("b"), at(11))), None);
}

#[test]
fn other_rules_are_refused_while_some_are_on_trial() {
    let mut endpoint = endpoint();
    endpoint.answer(&load("a", TEXT, 30.0), at(0));
    assert!(refused(endpoint.answer(&load("b", OTHER, 30.0), at(1))).contains("rules a"));
    assert_eq!(endpoint.rules(), Some("a"));
    assert_eq!(in_force(endpoint.answer(&Asked::Stop {}, at(2))), None);
}

#[test]
fn what_cannot_be_followed_changes_nothing() {
    let mut endpoint = endpoint();
    endpoint.answer(&load("a", TEXT, 30.0), at(0));
    endpoint.answer(&keep("a", None), at(1));
    let thirteen = TEXT.replace(",100,0,0\n", ",100,0,13\n");
    for (asked, word) in [
        (load("b", &thirteen, 30.0), "13 is refused"),
        (load("b", "1,2\n", 30.0), "text: line 1"),
        (load("b", TEXT, -1.0), "within_s = -1"),
        (load("b", TEXT, f64::NAN), "within_s = NaN"),
        (load("b", TEXT, 3601.0), "within_s = 3601"),
        (load("b c", TEXT, 30.0), "rules = \"b c\""),
        (keep("b", None), "not on trial"),
        (keep("a", Some(0.0)), "within_s = 0"),
        (keep("a", Some(f64::NAN)), "within_s = NaN"),
        (keep("a", Some(31_536_001.0)), "at most 31536000"),
        (Asked::Record { seconds: 1.0 }, "records nothing"),
    ] {
        assert!(refused(endpoint.answer(&asked, at(2))).contains(word));
        assert_eq!(endpoint.rules(), Some("a"));
    }
    assert_eq!(endpoint.ends_at(), None);
}

#[test]
fn only_the_controllers_of_a_workload_are_found() {
    let mut endpoint = endpoint();
    let find = |workload: Option<&str>| Asked::Find {
        workload: workload.map(str::to_owned),
    };
    assert!(endpoint.answer(&find(None), at(0)).is_some());
    assert!(endpoint.answer(&find(Some("files")), at(0)).is_some());
    assert_eq!(endpoint.answer(&find(Some("other")), at(0)), None);
}

#[test]
fn a_tick_in_which_rules_changed_names_none() {
    let mut endpoint = endpoint();
    let rules_of = |told: Told| match told {
        Told::Beat { rules, tick, .. } => (tick, rules),
        other => panic!("no beat: {other:?}"),
    };
    endpoint.answer(&load("a", TEXT, 30.0), at(0));
    assert_eq!(rules_of(endpoint.beat(1.0, 5.0)), (1, None));
    assert_eq!(rules_of(endpoint.beat(1.0, 5.0)), (2, Some(named("a"))));
    endpoint.answer(&load("a", TEXT, 30.0), at(1));
    assert_eq!(rules_of(endpoint.beat(1.0, 5.0)), (3, None));
    endpoint.expire(at(60));
    assert_eq!(rules_of(endpoint.beat(1.0, 5.0)), (4, None));
}

#[test]
fn names_are_tokens() {
    for name in ["", "a.b", "a b", &"x".repeat(65)] {
        assert!(Endpoint::new(name, "files", "1f", Noted::default()).is_err());
        assert!(Endpoint::new("client1", name, "1f", Noted::default()).is_err());
    }
}

/// Can write down what clients do.
#[derive(Debug, Default)]
struct Writing {
    begun: u32,
    taken: u32,
}

impl Plane for Writing {
    fn follow(&mut self, _: Option<&RuleSet>) -> Result<(), String> {
        Ok(())
    }

    fn used(&self) -> Option<RuleSet> {
        None
    }

    fn observe(&self) -> Vec<StreamIndicators> {
        Vec::new()
    }

    fn record(&mut self, _: Duration) -> Result<(), String> {
        self.begun += 1;
        Ok(())
    }

    fn take_recorded(&mut self) -> Recording {
        self.taken += 1;
        Recording::default()
    }
}

fn read(number: u64, part: u64) -> Asked {
    Asked::Read { number, part }
}

fn parts(told: Option<Told>) -> Option<usize> {
    match told {
        Some(Told::Part(part)) => part.parts,
        other => panic!("no part: {other:?}"),
    }
}

#[test]
fn a_recording_is_read_once_it_is_over_as_often_as_it_is_asked_for() {
    let mut endpoint = Endpoint::new("client1", "files", "1f", Writing::default()).unwrap();
    for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 3_601.0] {
        let asked = Asked::Record { seconds };
        assert!(refused(endpoint.answer(&asked, at(0))).contains("must be above 0"));
    }
    assert!(refused(endpoint.answer(&read(0, 0), at(0))).contains("no such recording"));
    let record = Asked::Record { seconds: 10.0 };
    for number in 1..3 {
        let told = endpoint.answer(&record, at(1));
        assert!(matches!(told, Some(Told::Recording { number: it, .. }) if it == number));
    }
    assert!(refused(endpoint.answer(&read(1, 0), at(2))).contains("no such recording"));
    assert_eq!(parts(endpoint.answer(&read(2, 0), at(10))), None);
    for second in [11, 40, 70] {
        assert_eq!(parts(endpoint.answer(&read(2, 0), at(second))), Some(1));
    }
    assert!(refused(endpoint.answer(&read(2, 1), at(70))).contains("from 0 to 0"));
    assert_eq!((endpoint.plane().begun, endpoint.plane().taken), (2, 1));
    assert_eq!(endpoint.expire(at(71)), None);
    assert!(refused(endpoint.answer(&read(2, 0), at(71))).contains("no such recording"));
}

#[test]
fn what_nobody_reads_is_forgotten() {
    let mut endpoint = Endpoint::new("client1", "files", "1f", Writing::default()).unwrap();
    endpoint.answer(&Asked::Record { seconds: 10.0 }, at(0));
    endpoint.expire(at(69));
    assert_eq!(endpoint.plane().taken, 0);
    endpoint.expire(at(70));
    assert_eq!(endpoint.plane().taken, 1);
}
