//! Ticks as the learner gets them: JSON, in parts where many nodes or values make one too long.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::layouts::Layout;
use crate::ticks::Row;

/// Nodes that are told to be missing; it may be thousands.
const MISSING_MAX: usize = 2000;

/// Nodes that are told to be cut off.
const CUT_OFF_MAX: usize = 100;

/// What is the same in all parts of a tick.
#[derive(Debug)]
pub struct Common<'a> {
    /// The tick.
    pub tick: i64,
    /// Whether it is on disk.
    pub stored: bool,
    /// Who is known and sent nothing.
    pub missing: Vec<&'a str>,
    /// Who is not listened to, and why.
    pub cut_off: BTreeMap<&'a str, &'a str>,
    /// Names and values.
    pub metrics: Value,
    /// The setting in force, in objects: one is in all parts, of several each is in one, and none says that it is as
    /// it was told last.
    pub setting: &'a [String],
    /// Mode.
    pub mode: Value,
    /// Why nothing may be changed.
    pub holding: Option<String>,
    /// The workload that was announced.
    pub workload: Option<&'a str>,
}

/// Nodes of one part.
#[derive(Debug, Default)]
struct Nodes {
    layouts: BTreeMap<u32, Arc<Layout>>,
    text: String,
    bytes: usize,
}

impl Nodes {
    /// What a row adds, with its names where the part has none of them; None where it has others by their number.
    fn cost(&self, row: &Row, text: &str) -> Option<usize> {
        match self.layouts.get(&row.layout.number) {
            None => Some(text.len() + row.layout.json.len() + 16),
            Some(known) => (known.serial == row.layout.serial).then_some(text.len() + 1),
        }
    }
}

/// The messages of a tick, of at most `bytes_max` if pieces of the setting have a quarter of that.
pub fn messages(common: &Common, rows: &BTreeMap<usize, Row>, bytes_max: usize) -> Vec<String> {
    let mut bodies = vec![Nodes::default()];
    for row in rows.values() {
        let text = text_of(row);
        let last = bodies.last().expect("there is one");
        let cost = last.cost(row, &text);
        let fits =
            cost.is_some_and(|cost| last.text.is_empty() || last.bytes + cost <= bytes_max / 2);
        if !fits {
            bodies.push(Nodes::default());
        }
        let body = bodies.last_mut().expect("there is one");
        body.bytes += body.cost(row, &text).unwrap_or_default();
        if !body.text.is_empty() {
            body.text.push(',');
        }
        body.text.push_str(&text);
        let layout = || Arc::clone(&row.layout);
        body.layouts.entry(row.layout.number).or_insert_with(layout);
    }
    bodies.resize_with(bodies.len().max(common.setting.len()), Nodes::default);
    let parts = bodies.len();
    let bodies = bodies.into_iter().enumerate();
    bodies
        .map(|(part, body)| part_of(common, part, parts, &body))
        .collect()
}

fn text_of(row: &Row) -> String {
    let mut text = String::with_capacity(16 + row.values.len() * 12);
    let _ = write!(text, "\"{}\":[\"{}\",[", row.node, row.layout.id);
    for (index, value) in row.values.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        if value.is_finite() {
            let _ = write!(text, "{value:?}");
        } else {
            text.push_str("null");
        }
    }
    text.push_str("]]");
    text
}

fn part_of(common: &Common, part: usize, parts: usize, body: &Nodes) -> String {
    let setting = match common.setting {
        [] => "null",
        [whole] => whole,
        pieces => pieces.get(part).map_or("{}", String::as_str),
    };
    let missing = if part == 0 {
        common.missing.len().min(MISSING_MAX)
    } else {
        0
    };
    let cut_off: BTreeMap<_, _> = if part == 0 {
        common.cut_off.iter().take(CUT_OFF_MAX).collect()
    } else {
        BTreeMap::new()
    };
    let head = json!({
        "version": 1, "tick": common.tick, "part": part, "parts": parts, "stored": common.stored,
        "missing": common.missing[..missing], "cut_off": cut_off, "metrics": common.metrics,
        "mode": common.mode, "holding": common.holding, "workload": common.workload,
    })
    .to_string();
    let layouts: Vec<String> = body
        .layouts
        .values()
        .map(|layout| format!("\"{}\":{}", layout.id, layout.json))
        .collect();
    format!(
        "{},\"layouts\":{{{}}},\"setting\":{setting},\"nodes\":{{{}}}}}",
        &head[..head.len() - 1],
        layouts.join(","),
        body.text
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_messages() {
        let layout = Arc::new(Layout::new(10, vec!["x".to_owned(), "y".to_owned()]));
        let row = |node: usize| Row {
            node: format!("n{node}").into(),
            layout: Arc::clone(&layout),
            values: vec![node as f32 * 0.5, f32::NAN],
        };
        let rows: BTreeMap<usize, Row> = (0..50).map(|node| (node, row(node))).collect();
        let whole = ["{}".to_owned()];
        let common = Common {
            tick: 7,
            stored: true,
            missing: vec!["z"],
            cut_off: BTreeMap::new(),
            metrics: json!({"m": 1.5}),
            setting: &whole,
            mode: json!("observe"),
            holding: None,
            workload: None,
        };
        for (bytes_max, is_one) in [(1_000_000, true), (1000, false)] {
            let messages = messages(&common, &rows, bytes_max);
            assert_eq!(messages.len() == 1, is_one);
            assert!(messages.iter().all(|it| it.len() <= bytes_max));
            let mut count = 0;
            for text in messages {
                let message: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(message["layouts"]["0000000a"], json!(["x", "y"]));
                count += message["nodes"].as_object().unwrap().len();
                assert!(
                    message["nodes"]
                        .as_object()
                        .unwrap()
                        .values()
                        .all(|it| it[1][1].is_null())
                );
            }
            assert_eq!(count, 50);
        }
    }

    #[test]
    fn long_settings_and_many_layouts_are_cut_too() {
        // All chose the same number: no part may give one node's names to another.
        let row = |node: usize| Row {
            node: format!("n{node}").into(),
            layout: Arc::new(Layout::new(
                7 + node as u32 % 2,
                vec![format!("name{node}{}", "x".repeat(150))],
            )),
            values: vec![node as f32],
        };
        let rows: BTreeMap<usize, Row> = (0..40).map(|node| (node, row(node))).collect();
        let setting: BTreeMap<String, Value> = (0..900)
            .map(|at| (format!("k@n/{at}"), json!(at)))
            .collect();
        let bytes_max = 2000;
        let pieces = crate::pieces::of_map(&setting, bytes_max / 4);
        let mut common = Common {
            tick: 7,
            stored: true,
            missing: vec![],
            cut_off: BTreeMap::new(),
            metrics: json!({}),
            setting: &pieces,
            mode: json!("observe"),
            holding: None,
            workload: None,
        };
        let parts = messages(&common, &rows, bytes_max);
        let mut told = serde_json::Map::new();
        let mut count = 0;
        for text in &parts {
            assert!(text.len() <= bytes_max, "{}", text.len());
            let part: Value = serde_json::from_str(text).unwrap();
            assert_eq!(part["parts"], json!(parts.len()));
            told.extend(part["setting"].as_object().unwrap().clone());
            for (node, row) in part["nodes"].as_object().unwrap() {
                let name = part["layouts"][row[0].as_str().unwrap()][0]
                    .as_str()
                    .unwrap();
                assert!(
                    name.starts_with(&format!("name{}x", &node[1..])),
                    "{node}: {name}"
                );
                count += 1;
            }
        }
        assert_eq!((json!(told), count), (json!(setting), 40));
        common.setting = &[];
        let part: Value = serde_json::from_str(&messages(&common, &rows, bytes_max)[0]).unwrap();
        assert!(part["setting"].is_null());
    }
}
