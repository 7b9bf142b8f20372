use proptest::prelude::*;

use super::*;

fn refusal(text: &str) -> String {
    Guard::from_json(text).map(drop).expect_err(text)
}

#[test]
fn every_mistake_is_named_by_its_key() {
    for (text, said) in [
        (r#"{"flour": []}"#, "guard.flour: unknown field `flour`"),
        (
            r#"{"floor": [{"metric": "m"}]}"#,
            "guard.floor[0]: missing field `minimum`",
        ),
        (
            r#"{"floor": [{"metric": "m", "minimum": "1"}]}"#,
            "guard.floor[0].minimum: invalid type: string \"1\"",
        ),
        (
            r#"{"ceiling": [{"metric": "m", "maximum": 1, "window_ticks": 0}]}"#,
            "guard.ceiling[0].window_ticks = 0",
        ),
        (
            r#"{"ceiling": [{"metric": "m", "maximum": 1e999}]}"#,
            "guard.ceiling[0].maximum: number out of range",
        ),
        (
            r#"{"rule": [{"forbid": "a <", "why": ""}]}"#,
            "guard.rule[0].forbid: ",
        ),
        (
            r#"{"window": [{"from": "25:00", "to": "6:00"}]}"#,
            "guard.window[0].from = \"25:00\": must be HH:MM",
        ),
        (
            r#"{"window": [{"days": ["noday"], "from": "5:00", "to": "6:00"}]}"#,
            "guard.window[0].days: \"noday\"",
        ),
        (
            r#"{"pace": {"k": {"change_max": 0}}}"#,
            "guard.pace.k.change_max = 0: must be above 0",
        ),
        ("[", "guard."),
    ] {
        let found = refusal(text);
        assert!(found.starts_with(said), "{text}: {found}");
        assert!(!found.contains("at line"), "{found}");
    }
}

#[test]
fn a_limit_is_also_a_formula() {
    let guard = Guard::from_json(
        r#"{"floor": [{"metric": "a", "minimum": 1.5}], "ceiling": [{"metric": "b", "maximum": 20}]}"#,
    )
    .expect("a guard");
    let formulas: Vec<String> = guard.limits().iter().map(Limit::formula).collect();
    assert_eq!(formulas, ["a >= 1.5", "b <= 20"]);
}

#[test]
fn a_window_over_midnight_belongs_to_the_day_it_begins() {
    let night = Window {
        days: vec!["sat".to_owned()],
        from: "22:00".to_owned(),
        to: "06:00".to_owned(),
    };
    let windows = [night];
    for (day, minute, later) in [
        (6, 22 * 60, 0),
        (6, 21 * 60 + 59, 1),
        (0, 5 * 60 + 59, 0),
        (0, 6 * 60, 6 * 1440 + 16 * 60),
        (6, 60, 21 * 60),
    ] {
        assert_eq!(
            opens_in_minutes(&windows, day, minute),
            Some(later),
            "{day} {minute}"
        );
        assert_eq!(is_open(&windows, day, minute), later == 0);
    }
    assert_eq!(opens_in_minutes(&[], 3, 7), Some(0));
}

proptest! {
    #[test]
    fn it_is_open_when_it_is_said_to_open(day in 0usize..7, minute in 0u32..1440, from in 0u32..1440, to in 0u32..1440, only in 0usize..7) {
        let text = |at: u32| format!("{:02}:{:02}", at / 60, at % 60);
        let days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
        let windows = [Window { days: vec![days[only].to_owned()], from: text(from), to: text(to) }];
        let later = opens_in_minutes(&windows, day, minute).expect("once a week");
        let at = minute + later;
        prop_assert!(is_open(&windows, day + (at / 1440) as usize, at % 1440));
    }

    #[test]
    fn a_pace_is_kept_by_every_change_it_allows(from in -1e6f64..1e6, to in -1e6f64..1e6, most in 1e-3f64..1e6, ticks in 0u64..100, interval in 0u64..100) {
        let pace = Pace { change_max: Some(most), interval_ticks: interval };
        let allowed = pace.allows(Some((from, to)), Some(ticks)).is_ok();
        prop_assert_eq!(allowed, (to - from).abs() <= most && ticks >= interval);
        prop_assert!(pace.allows(None, None).is_ok());
    }
}
