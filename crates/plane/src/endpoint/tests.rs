//! Schedules of a manager, on a plane that notes what it follows.

use super::*;
use crate::plane::StreamIndicators;

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
        Asked::Keep { rules: named("a") },
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
    let keep = |id: &str| Asked::Keep {
        rules: id.to_owned(),
    };
    endpoint.answer(&load("a", TEXT, 30.0), at(0));
    assert_eq!(
        in_force(endpoint.answer(&keep("a"), at(1))),
        Some(named("a"))
    );
    assert_eq!(endpoint.expire(at(100)), None);
    // The answer was lost, and it is said again.
    assert_eq!(
        in_force(endpoint.answer(&keep("a"), at(2))),
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
fn back_undoes_a_trial_or_what_was_kept_last() {
    let mut endpoint = endpoint();
    let back = |id: &str| Asked::Back {
        rules: id.to_owned(),
    };
    endpoint.answer(&load("a", TEXT, 30.0), at(0));
    assert_eq!(in_force(endpoint.answer(&back("a"), at(1))), None);
    endpoint.answer(&load("a", TEXT, 30.0), at(2));
    endpoint.answer(&Asked::Keep { rules: named("a") }, at(3));
    assert_eq!(
        in_force(endpoint.answer(&back("b"), at(4))),
        Some(named("a"))
    );
    assert_eq!(in_force(endpoint.answer(&back("a"), at(5))), None);
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
    endpoint.answer(&Asked::Keep { rules: named("a") }, at(1));
    let thirteen = TEXT.replace(",100,0,0\n", ",100,0,13\n");
    for (asked, word) in [
        (load("b", &thirteen, 30.0), "13 is refused"),
        (load("b", "1,2\n", 30.0), "text: line 1"),
        (load("b", TEXT, -1.0), "within_s = -1"),
        (load("b", TEXT, f64::NAN), "within_s = NaN"),
        (load("b", TEXT, 3601.0), "within_s = 3601"),
        (load("b c", TEXT, 30.0), "rules = \"b c\""),
        (Asked::Keep { rules: named("b") }, "not on trial"),
        (Asked::Record { seconds: 1.0 }, "records nothing"),
    ] {
        assert!(refused(endpoint.answer(&asked, at(2))).contains(word));
        assert_eq!(endpoint.rules(), Some("a"));
    }
    assert_eq!(endpoint.trial_ends_at(), None);
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
