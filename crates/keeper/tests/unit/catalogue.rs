use std::path::{Component, Path};

use ascar_keeper::catalogue::{RULES, Values, resolve};
use ascar_keeper::fault::Kind;
use ascar_keeper::protocol::Scalar;
use proptest::prelude::*;

#[test]
fn every_rule_resolves_to_itself_and_to_its_own_file() {
    for rule in RULES {
        let name = rule.pattern.replace("<dev>", "sda");
        let knob = resolve(&name).unwrap();
        assert_eq!(knob.rule, rule);
        assert_eq!(knob.name, name);
        assert_eq!(knob.path, Path::new(&rule.path.replace("<dev>", "sda")));
    }
}

#[test]
fn rules_are_unique_and_ranges_are_not_empty() {
    for (index, rule) in RULES.iter().enumerate() {
        assert!(
            RULES[..index]
                .iter()
                .all(|other| other.pattern != rule.pattern),
            "{}",
            rule.pattern
        );
        if let Values::Range(low, high) | Values::PowersOfTwo(low, high) = rule.values {
            assert!(low < high, "{}", rule.pattern);
        }
    }
}

#[test]
fn unknown_and_hostile_names_are_refused_with_what_is_allowed() {
    let names = [
        "",
        "vm",
        "vm.",
        "vm.dirty_ratio ",
        "vm.DIRTY_RATIO",
        "kernel.core_pattern",
        "vm.dirty_ratio\n",
        "vm/dirty_ratio",
        "block..scheduler",
        "block.sda.",
        "block.../../etc.scheduler",
        "block.a/b.scheduler",
        "block.a.b.scheduler",
        "block.sda.queue/scheduler",
        "block.sda.iosched/../scheduler",
        "block.\0.scheduler",
        "ext4...mb_stats",
        "block.é.scheduler",
        "vm.drop_caches",
    ];
    for name in names {
        let fault = resolve(name).unwrap_err();
        assert_eq!(fault.kind, Kind::Input, "{name:?}");
        assert!(
            fault.message.contains("allowed are"),
            "{name:?}: {}",
            fault.message
        );
    }
    assert!(
        resolve("vm.dirty")
            .unwrap_err()
            .message
            .contains("vm.dirty_ratio")
    );
    assert!(!resolve("vm.dirty").unwrap_err().message.contains("block."));
}

#[test]
fn numbers_are_checked_against_both_ends() {
    let knob = resolve("vm.swappiness").unwrap();
    for allowed in [0, 200] {
        assert_eq!(
            knob.check(&Scalar::Integer(allowed)).unwrap(),
            allowed.to_string()
        );
    }
    for wrong in [
        Scalar::Integer(-1),
        Scalar::Integer(201),
        Scalar::Integer(i64::MIN),
        Scalar::Text("10".into()),
        Scalar::Text("10; reboot".into()),
        Scalar::Boolean(true),
    ] {
        let fault = knob.check(&wrong).unwrap_err();
        assert_eq!(fault.kind, Kind::Input);
        assert!(
            fault.message.starts_with("vm.swappiness = "),
            "{}",
            fault.message
        );
        assert!(
            fault
                .message
                .ends_with("allowed are whole numbers in [0, 200]"),
            "{}",
            fault.message
        );
    }
}

#[test]
fn powers_of_two_are_checked() {
    let knob = resolve("ext4.sda.inode_readahead_blks").unwrap();
    for allowed in [0, 1, 32, 1 << 30] {
        assert!(knob.check(&Scalar::Integer(allowed)).is_ok(), "{allowed}");
    }
    for wrong in [-1, 3, 33, 1 << 31, i64::MIN] {
        assert!(knob.check(&Scalar::Integer(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn coupled_knobs_are_one_cluster() {
    let cluster = |name: &str| resolve(name).unwrap().cluster();
    assert_eq!(cluster("vm.dirty_ratio"), cluster("vm.dirty_bytes"));
    assert_eq!(
        cluster("vm.dirty_background_ratio"),
        cluster("vm.dirty_background_bytes")
    );
    assert_ne!(
        cluster("vm.dirty_ratio"),
        cluster("vm.dirty_background_ratio")
    );
    let scheduler = cluster("block.sda.scheduler");
    for name in [
        "nr_requests",
        "wbt_lat_usec",
        "iosched/fifo_batch",
        "iosched/low_latency",
    ] {
        assert_eq!(cluster(&format!("block.sda.{name}")), scheduler);
    }
    assert_ne!(cluster("block.sda.read_ahead_kb"), scheduler);
    assert_eq!(
        cluster("block.sda.read_ahead_kb"),
        cluster("block.sda.max_sectors_kb")
    );
    assert!(
        resolve("block.sda.max_sectors_kb").unwrap().rank()
            < resolve("block.sda.read_ahead_kb").unwrap().rank()
    );
    assert_ne!(cluster("block.sdb.scheduler"), scheduler);
    assert!(
        resolve("block.sda.scheduler").unwrap().rank()
            < resolve("block.sda.nr_requests").unwrap().rank()
    );
    assert!(
        resolve("block.sda.nr_requests").unwrap().rank()
            < resolve("block.sda.iosched/async_depth").unwrap().rank()
    );
}

proptest! {
    #[test]
    fn whatever_the_name_the_file_stays_in_its_directory(device in "[ -~]{0,40}", rule in 0..RULES.len()) {
        let rule = &RULES[rule];
        if let Ok(knob) = resolve(&rule.pattern.replace("<dev>", &device)) {
            prop_assert!(knob.path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_))));
            prop_assert_eq!(knob.path.components().count(), Path::new(knob.rule.path).components().count());
            let root = Path::new("/").join(knob.rule.path.split('/').nth(1).unwrap());
            prop_assert!(knob.path.starts_with(root));
        }
    }

    #[test]
    fn no_name_makes_it_panic(name in "\\PC{0,60}") {
        let _ = resolve(&name);
    }
}
