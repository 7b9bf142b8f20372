use ascar_messaging::file::ConfigFile;
use serde_json::json;

use super::*;
use crate::nodes::Hello;

const FILE: &str = "
    connection = 'c.toml'
    database = 'd'
    [[knob]]
    name = 'vm.dirty_ratio'
    minimum = 5
    maximum = 60
    change_max = 10
    interval_ticks = 5
    [[knob]]
    name = 'vm.swappiness'
    minimum = 0
    maximum = 100
    [[knob]]
    name = 'q.*.depth'
    scope = 'stream'
    minimum = 1
    maximum = 256
    [[knob]]
    name = 'sched'
    scope = 'node'
    choices = ['none', 'bfq']
    [[metric]]
    name = 'load'
    indicators = ['cpu.load']
    [[rule]]
    forbid = 'vm_dirty_ratio > 40 and vm_swappiness > 50'
    why = 'both'
    [[rule]]
    forbid = \"sched == 'bfq' and vm_swappiness < 10\"
    why = 'odd'
    [[rule]]
    forbid = 'q___depth > 100 and load > 2'
    why = 'busy'
";

struct World {
    checker: Checker,
    nodes: Nodes,
    current: Values,
    last_change: HashMap<String, i64>,
    metrics: BTreeMap<String, f64>,
    local: (usize, u32),
}

fn world(file: &str) -> World {
    let mut nodes = Nodes::new(9);
    for (name, monitor_only) in [("a", false), ("b", false), ("watched", true)] {
        let place = nodes.place(name).unwrap();
        let hello: Hello = serde_json::from_value(json!({
            "version": 1, "layout": "0", "monitor_only": monitor_only, "knobs": [
                {"name": "vm.dirty_ratio", "value": 20}, {"name": "vm.swappiness", "value": 60},
                {"name": "sched", "value": "none"}, {"name": "q.*.depth", "value": 8, "streams": {"x": 8}},
            ]}))
        .unwrap();
        nodes.hello(place, hello, 0).unwrap();
        nodes.node(place).here = true;
    }
    let current = json!({"vm.dirty_ratio": 40, "vm.swappiness": 60, "sched@a": "none", "sched@b": "none", "q.*.depth@a/x": 8});
    World {
        checker: Checker::new(&Config::parse(file).unwrap()).unwrap(),
        nodes,
        current: serde_json::from_value(current).unwrap(),
        last_change: HashMap::from([("vm.dirty_ratio".to_owned(), 90)]),
        metrics: BTreeMap::from([("load".to_owned(), 1.0)]),
        local: (0, 0),
    }
}

fn check(world: &World, set: Value) -> Result<Targets, String> {
    let situation = Situation {
        tick: 100,
        current: &world.current,
        last_change: &world.last_change,
        metrics: &world.metrics,
        nodes: &world.nodes,
        local: world.local,
    };
    world
        .checker
        .check(&serde_json::from_value(set).unwrap(), &situation)
}

#[test]
fn keys_are_routed_by_their_scope() {
    let world = world(FILE);
    let targets = check(
        &world,
        json!({"vm.dirty_ratio": 35, "sched@b": "bfq", "q.*.depth@a/x": 16}),
    )
    .unwrap();
    let expected = json!({
        "a": {"vm.dirty_ratio": 35, "q.*.depth/x": 16},
        "b": {"vm.dirty_ratio": 35, "sched": "bfq"},
    });
    assert_eq!(serde_json::to_value(&targets).unwrap(), expected);
    assert!(check(&world, json!({})).unwrap().is_empty());
}

#[test]
fn every_kind_of_rule_refuses_with_its_reason() {
    let mut world = world(FILE);
    for (set, reason) in [
        (json!({"vm.dirty": 1}), "unknown: vm.dirty"),
        (json!({"vm.dirty_ratio@a": 30}), "scope: vm.dirty_ratio@a"),
        (json!({"sched": "bfq"}), "scope: sched"),
        (json!({"vm.dirty_ratio": 61}), "range: vm.dirty_ratio = 61"),
        (json!({"sched@a": "cfq"}), "range: sched = \"cfq\""),
        (
            json!({"vm.dirty_ratio": 20}),
            "rate: vm.dirty_ratio from 40 to 20",
        ),
        (json!({"vm.dirty_ratio": 45}), "rule: vm_dirty_ratio > 40"),
        (
            json!({"sched@b": "bfq", "vm.swappiness": 5}),
            "rule: sched == 'bfq'",
        ),
        (json!({"sched@gone": "bfq"}), "node: sched@gone"),
        (json!({"sched@watched": "bfq"}), "node: sched@watched"),
        (json!({"q.*.depth@a/y": 9}), "node: q.*.depth@a/y"),
        (json!({"vm.swappiness": null}), "range: vm.swappiness"),
    ] {
        let found = check(&world, set.clone()).unwrap_err();
        assert!(found.starts_with(reason), "{set}: {found}");
    }
    assert!(check(&world, json!({"q.*.depth@a/x": 128})).is_ok());
    world.metrics.insert("load".to_owned(), 3.0);
    assert!(
        check(&world, json!({"q.*.depth@a/x": 128}))
            .unwrap_err()
            .starts_with("rule: q___depth")
    );
    world.last_change.insert("vm.dirty_ratio".to_owned(), 97);
    assert!(
        check(&world, json!({"vm.dirty_ratio": 35}))
            .unwrap_err()
            .contains("3 ticks ago")
    );
    // What is in force already is no change.
    assert!(check(&world, json!({"vm.dirty_ratio": 40.0})).is_ok());
}

#[test]
fn a_knob_for_all_is_judged_with_each_nodes_own() {
    let mut world = world(FILE);
    world.current.insert("sched@b".to_owned(), json!("bfq"));
    assert!(
        check(&world, json!({"vm.swappiness": 5}))
            .unwrap_err()
            .starts_with("rule: sched")
    );
}

#[test]
fn outside_its_windows_nothing_is_changed() {
    let mut world = world(&format!(
        "{FILE}\n[[window]]\nfrom = '22:00'\nto = '23:00'\n"
    ));
    assert!(
        check(&world, json!({"vm.dirty_ratio": 35}))
            .unwrap_err()
            .starts_with("window:")
    );
    assert!(check(&world, json!({})).is_ok());
    world.local = (3, 22 * 60 + 30);
    assert!(check(&world, json!({"vm.dirty_ratio": 35})).is_ok());
}

#[test]
fn rules_name_what_is_known() {
    let file = FILE.replace("load > 2", "laod > 2");
    let fault = Checker::new(&Config::parse(&file).unwrap()).unwrap_err();
    assert!(fault.0.contains("laod"), "{fault}");
}
