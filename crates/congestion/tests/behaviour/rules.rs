//! Rule sets: look-up, cover, text.

use crate::common::{MADE, Points, action, loose_rules, rule, split_rules};
use ascar_congestion::{
    AXES, Fault, INFINITY, Interval, Region, Rule, RuleSet, SPACE, Signals, THESIS_AXES,
};
use proptest::prelude::*;

/// 250 rule sets, 4,000 states each: a million states in all, of sets with and without overlaps.
const SETS: u32 = 125;
const STATES: usize = 4_000;

fn agree(set: &RuleSet, seed: u64) {
    let mut points = Points::new(set, seed);
    for _ in 0..STATES {
        let signals = points.signals();
        assert_eq!(
            set.lookup(&signals),
            set.lookup_by_scan(&signals),
            "{signals:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: SETS, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lookup_is_a_linear_scan_in_split_sets(rules in split_rules(0..THESIS_AXES, 30), seed in any::<u64>()) {
        agree(&RuleSet::new(rules, 2).expect("splits leave no gap"), seed);
    }

    #[test]
    fn lookup_is_a_linear_scan_in_sets_that_overlap(
        axes in THESIS_AXES..=AXES, mut rules in loose_rules(AXES, 1_000, 140), seed in any::<u64>(),
    ) {
        for rule in &mut rules {
            rule.region[axes..].copy_from_slice(&SPACE[axes..]);
        }
        rules.push(rule(SPACE, action(100, 0, 0)));
        agree(&RuleSet::new(rules, 2).expect("the last rule holds everywhere"), seed);
    }

    #[test]
    fn splits_along_all_axes_are_accepted(rules in split_rules(AXES - 5..AXES, 4), seed in any::<u64>()) {
        let set = RuleSet::new(rules, 2).expect("splits leave no gap");
        agree(&set, seed);
    }

    #[test]
    fn text_and_rules_are_the_same(rules in split_rules(AXES - 5..AXES, 4), updates in 1_u32..1_000_000) {
        let set = RuleSet::new(rules, updates).expect("splits leave no gap");
        let text = set.to_text();
        let read = RuleSet::parse(&text).expect("what was written can be read");
        prop_assert_eq!(&read, &set);
        prop_assert_eq!(read.to_text(), text);
    }
}

/// Whether any rule holds, asked of every cell of a small grid.
fn holes(rules: &[Rule], most: u32) -> Vec<[u32; THESIS_AXES]> {
    let mut holes = Vec::new();
    for ack in 0..=most {
        for send in 0..=most {
            for ratio in 100..=100 + most {
                let at = [ack, send, ratio];
                let holds =
                    |rule: &Rule| (0..THESIS_AXES).all(|axis| rule.region[axis].contains(at[axis]));
                if !rules.iter().any(holds) {
                    holes.push(at);
                }
            }
        }
    }
    holes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_gap_is_found_if_and_only_if_there_is_one(rules in loose_rules(THESIS_AXES, 4, 40)) {
        // Bounds are at most 9 (109 for ratios): the grid up to 12 sees everything.
        let holes = holes(&rules, 12);
        match RuleSet::new(rules.clone(), 2) {
            Ok(_) => prop_assert!(holes.is_empty(), "{:?} accepted", holes[0]),
            Err(Fault::Gap { region, .. }) => {
                let corner: Vec<u32> = region.iter().take(THESIS_AXES).map(|at| at.lo).collect();
                prop_assert!(holes.iter().any(|hole| hole[..] == corner[..]), "{region:?} is no gap");
                let meets = |rule: &Rule| {
                    (0..THESIS_AXES).all(|axis| {
                        rule.region[axis].lo < region[axis].hi && region[axis].lo < rule.region[axis].hi
                    })
                };
                prop_assert!(!rules.iter().any(meets), "a rule holds in part of {region:?}");
            }
            Err(fault) => prop_assert!(false, "{fault}"),
        }
    }

    #[test]
    fn a_split_set_with_a_rule_missing_has_just_that_gap(
        rules in split_rules(0..THESIS_AXES, 10), missing in any::<prop::sample::Index>(),
    ) {
        prop_assume!(rules.len() > 1);
        let mut rules = rules;
        let removed = rules.remove(missing.index(rules.len()));
        match RuleSet::new(rules, 2) {
            Err(Fault::Gap { region, .. }) => {
                for (gap, removed) in region.iter().zip(removed.region) {
                    prop_assert!(removed.lo <= gap.lo && gap.hi <= removed.hi);
                }
            }
            other => prop_assert!(false, "{other:?}"),
        }
    }
}

fn whole_but(axis: usize, lo: u32, hi: u32) -> Region {
    let mut region = SPACE;
    region[axis] = Interval { lo, hi };
    region
}

#[test]
fn a_gap_is_named() {
    let rules = vec![
        rule(whole_but(0, 0, 41), action(100, 0, 0)),
        rule(whole_but(0, 48, INFINITY), action(100, 0, 0)),
    ];
    let fault = RuleSet::new(rules, 2).expect_err("a gap");
    assert_eq!(
        fault.to_string(),
        "no rule holds for ack_ewma in [41, 48), send_ewma in [0, infinity), pt_ratio in [100, infinity); \
         add a rule that covers it"
    );
}

#[test]
fn intervals_are_half_open_and_the_first_match_wins() {
    let set = RuleSet::new(
        vec![
            rule(whole_but(0, 0, 41), action(100, 0, 1)),
            rule(whole_but(0, 30, 50), action(100, 0, 2)),
            rule(SPACE, action(100, 0, 3)),
        ],
        2,
    )
    .expect("the last rule holds everywhere");
    let tau_us = |ack_us| {
        let signals = Signals {
            ack_us,
            ratio100: 100,
            ..Signals::default()
        };
        set.action(&signals).tau_us
    };
    let found: Vec<u32> = [0, 29, 30, 40, 41, 49, 50, INFINITY - 1, INFINITY, u32::MAX]
        .map(tau_us)
        .into();
    assert_eq!(found, [1, 1, 1, 1, 2, 2, 3, 3, 3, 3]);
}

/// Boxes with bounds of their own on so many axes, over two that halve the space.
fn tangled(axes: usize, boxes: u32) -> Vec<Rule> {
    let boxes = (0..boxes).map(|number| {
        let mut region = SPACE;
        for (axis, interval) in region.iter_mut().enumerate().take(axes) {
            let lo = interval.lo + number * [7, 11, 13, 17, 19][axis] % 257;
            *interval = Interval { lo, hi: lo + 1_000 };
        }
        rule(region, action(100, 0, 0))
    });
    let halves = [(0, 500), (500, INFINITY)]
        .map(|(lo, hi)| rule(whole_but(axes - 1, lo, hi), action(100, 0, 0)));
    boxes.chain(halves).collect()
}

#[test]
fn only_rules_that_overlap_beyond_verification_are_too_complex() {
    RuleSet::new(tangled(3, 100), 2).expect("three axes can always be verified");
    assert_eq!(RuleSet::new(tangled(5, 254), 2), Err(Fault::TooComplex));
}

#[test]
fn a_made_set_is_read_and_written_to_the_letter() {
    let set = RuleSet::parse(MADE).expect("a set that a search made");
    assert_eq!(set.to_text(), MADE);
    assert_eq!(set.rules().len(), 8);
    assert_eq!(set.updates_per_second(), 2);
    let observed = set.rules()[6].observed.expect("statistics");
    assert_eq!(observed.used_times, 1960);
    assert_eq!(observed.means, [144_271, 144_560, 173, 0, 0, 0, 0, 0]);
    let without = MADE
        .replace(",1839,80926,81021,173", "")
        .replace("\n", "\r\n");
    assert_eq!(
        RuleSet::parse(&without)
            .expect("line ends of all kinds")
            .rules()[0]
            .observed,
        None
    );
}

#[test]
fn refusals_name_line_and_field() {
    let cases = [
        (
            "",
            "line 1, n_rules: found \"\"; allowed: a whole number from 1 to 256",
        ),
        ("0,2", "line 1, n_rules: found \"0\""),
        ("1", "line 1, updates_per_second: found \"\""),
        ("1,0", "line 1, updates_per_second: found \"0\""),
        (
            "1,2,speed",
            "line 1, indicator: found \"speed\"; allowed: nothing more, slow_ack_ewma, or active_files=",
        ),
        (
            "2,2\n0,9,0,9,100,900,100,0,0",
            "line 1, n_rules: found \"2\"; allowed: 1, the rules that follow",
        ),
        ("1,2\n0,x", "line 2, ack_hi: found \"x\""),
        (
            "1,2\n5,5",
            "line 2, ack_hi: found \"5\"; allowed: a whole number from 6 to 2147483647",
        ),
        ("1,2\n0,9,0,9,100,900,100,0", "line 2, tau_us: found \"\""),
        (
            "1,2\n0,9,0,9,100,900,100,0,-1",
            "line 2, tau_us: found \"-1\"",
        ),
        (
            "1,2\n0,9,0,9,100,900,99999999999,0,1",
            "line 2, m100: found \"99999999999\"",
        ),
        (
            "1,2\n0,9,0,9,100,900,100,0,1,7",
            "line 2, ack_avg: found \"\"",
        ),
        (
            "1,2\n0,9,0,9,100,900,100,0,1,7,1,1,1,8",
            "line 2, end of line: found \"8\"",
        ),
        (
            "1,2,active_files=0\n0,9,0,9,100,900,100,0,1",
            "line 1, active_files: found \"0\"; allowed: a whole number from 1 to 1000000",
        ),
        (
            "1,2,active_files=2,slow_ack_ewma\n0,9,0,9,100,900,100,0,1",
            "line 1, end of line: found \"slow_ack_ewma\"",
        ),
        (
            "1,2\n\n0,9,0,9,100,900,100,0,1\n0,1",
            "line 4, rule: found \"0,1\"; allowed: 1 rules",
        ),
        ("1,2\n0,9,0,9,100,900,100,0,1", "no rule holds for"),
    ];
    for (text, expected) in cases {
        let fault = RuleSet::parse(text).expect_err(text).to_string();
        assert!(fault.contains(expected), "{text:?}: {fault}");
    }
    let long = "1,2\n".repeat(100_000);
    let fault = RuleSet::parse(&long).expect_err("too long").to_string();
    assert!(fault.contains("400000 bytes"), "{fault}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(4_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(set) = RuleSet::parse(&text) {
            prop_assert_eq!(RuleSet::parse(&set.to_text()), Ok(set));
        }
    }

    #[test]
    fn text_of_the_right_letters_is_read_or_refused(text in "[0-9,\\-\n ]{0,200}") {
        if let Ok(set) = RuleSet::parse(&text) {
            prop_assert_eq!(RuleSet::parse(&set.to_text()), Ok(set));
        }
    }

    #[test]
    fn a_valid_file_that_was_damaged_is_read_or_refused_with_a_place(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..3, any::<u8>(), "[0-9,\\-\nx]"), 1..4),
    ) {
        let mut bytes = MADE.as_bytes().to_vec();
        for (index, kind, byte, letter) in edits {
            let at = index.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes[at] = letter.as_bytes()[0],
                _ => drop(bytes.remove(at)),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match RuleSet::parse(&text) {
            Ok(set) => prop_assert_eq!(RuleSet::parse(&set.to_text()), Ok(set)),
            Err(Fault::Field { line, field, .. }) => {
                prop_assert!(line >= 1 && line <= text.lines().count().max(1));
                prop_assert!(!field.is_empty());
            }
            Err(Fault::Gap { .. }) => {}
            Err(fault) => prop_assert!(false, "{fault}"),
        }
    }
}
