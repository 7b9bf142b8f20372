use super::*;
use serde_json::json;

const GOOD: &str = "
    connection = 'c.toml'
    database = 'replay.sqlite'
    mode = 'automatic'
    [[knob]]
    name = 'vm.dirty_ratio'
    minimum = 5
    maximum = 60
    change_max = 10
    [[rule]]
    forbid = 'vm_dirty_ratio > 40 and vm_swappiness > 50'
    why = 'both fill memory'
    [[window]]
    days = ['fri']
    from = '22:00'
    to = '06:00'
    [[metric]]
    name = 'bytes_per_s'
    indicators = ['block.*.bytes_per_s']
    [[floor]]
    metric = 'bytes_per_s'
    minimum = 1000
";

#[test]
fn a_file_is_read() {
    let config = Config::parse(GOOD).unwrap();
    assert_eq!(config.mode, Mode::Automatic);
    assert_eq!(config.floors[0].window_ticks, 30);
}

#[test]
fn days_are_kept_whatever_a_tick_lasts() {
    for (interval, ticks) in [("0.5", 172_800), ("1", 86_400), ("10", 8_640)] {
        let file = format!("interval_s = {interval}\n{GOOD}[retention]\ndays = 1\n");
        assert_eq!(Config::parse(&file).unwrap().limits().ticks, ticks);
    }
}

#[test]
fn mistakes_are_named() {
    for (from, to, word) in [
        ("'automatic'", "'auto'", "auto"),
        ("minimum = 5", "minimum = 500", "minimum"),
        ("40 and", "40 nd", "rule[0].forbid"),
        ("'fri'", "'friday'", "friday"),
        ("22:00", "24:00", "window[0].from"),
        ("metric = 'bytes_per_s'", "metric = 'bytes'", "floor.metric"),
        ("connection = 'c.toml'", "", "connection"),
        ("change_max = 10", "change_max = 0", "change_max"),
    ] {
        let fault = Config::parse(&GOOD.replace(from, to)).unwrap_err();
        assert!(fault.0.contains(word), "{from}: {fault}");
    }
}

#[test]
fn values_are_within_their_range_or_among_their_words() {
    let mut knob = Config::parse(GOOD).unwrap().knobs.remove(0);
    assert!(knob.allows(&json!(5)).is_ok());
    for wrong in [
        json!(4),
        json!(61),
        json!("x"),
        json!(true),
        json!(null),
        json!([5]),
    ] {
        assert!(
            knob.allows(&wrong).unwrap_err().contains("vm.dirty_ratio"),
            "{wrong}"
        );
    }
    knob.choices = vec!["none".into(), "bfq".into()];
    assert!(knob.allows(&json!("bfq")).is_ok());
    assert!(knob.allows(&json!(5)).is_err());
}

#[test]
fn windows_may_cross_midnight() {
    let window = Config::parse(GOOD).unwrap().windows.remove(0);
    for (day, minute, inside) in [
        (5, 22 * 60, true),
        (5, 21 * 60, false),
        (6, 5 * 60, true),
        (5, 5 * 60, false),
        (6, 6 * 60, false),
    ] {
        assert_eq!(window.contains(day, minute), inside, "{day} {minute}");
    }
}
