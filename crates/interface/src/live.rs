//! Ticks as the learner gets them: JSON, in parts where many nodes make one too long.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::ticks::Row;

/// What is the same in all parts of a tick.
#[derive(Debug)]
pub struct Common<'a> {
    /// The tick.
    pub tick: i64,
    /// Whether it is on disk.
    pub stored: bool,
    /// Who is known and sent nothing.
    pub missing: Vec<&'a str>,
    /// Names and values.
    pub metrics: Value,
    /// The setting in force.
    pub setting: Value,
    /// Mode.
    pub mode: Value,
    /// Why nothing may be changed.
    pub holding: Option<String>,
    /// The workload that was announced.
    pub workload: Option<&'a str>,
}

/// The messages of a tick, each of about `bytes_max` at most.
pub fn messages(common: &Common, rows: &BTreeMap<usize, Row>, bytes_max: usize) -> Vec<String> {
    let mut bodies: Vec<(BTreeMap<String, Value>, String)> = vec![Default::default()];
    // An answer for each node, and what it costs to name its indicators once a part.
    for row in rows.values() {
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
        let last = bodies.last_mut().expect("there is one");
        if !last.1.is_empty() && last.1.len() + text.len() > bytes_max / 2 {
            bodies.push(Default::default());
        }
        let (layouts, body) = bodies.last_mut().expect("there is one");
        if !body.is_empty() {
            body.push(',');
        }
        body.push_str(&text);
        layouts
            .entry(row.layout.id.clone())
            .or_insert_with(|| json!(row.layout.names));
    }
    let parts = bodies.len();
    let whole = |(part, (layouts, body)): (usize, (BTreeMap<String, Value>, String))| {
        // Whom to miss is told once; it may be thousands.
        let missing: &[&str] = if part == 0 {
            &common.missing[..common.missing.len().min(2000)]
        } else {
            &[]
        };
        let head = json!({
            "version": 1, "tick": common.tick, "part": part, "parts": parts, "stored": common.stored,
            "layouts": layouts, "missing": missing, "metrics": common.metrics, "setting": common.setting,
            "mode": common.mode, "holding": common.holding, "workload": common.workload,
        })
        .to_string();
        format!("{},\"nodes\":{{{body}}}}}", &head[..head.len() - 1])
    };
    bodies.into_iter().enumerate().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::Layout;
    use std::sync::Arc;

    #[test]
    fn parts_are_whole_messages() {
        let layout = Arc::new(Layout {
            id: "0000000a".to_owned(),
            number: 10,
            names: vec!["x".to_owned(), "y".to_owned()],
        });
        let row = |node: usize| Row {
            node: format!("n{node}").into(),
            layout: Arc::clone(&layout),
            values: vec![node as f32 * 0.5, f32::NAN],
        };
        let rows: BTreeMap<usize, Row> = (0..50).map(|node| (node, row(node))).collect();
        let common = Common {
            tick: 7,
            stored: true,
            missing: vec!["z"],
            metrics: json!({"m": 1.5}),
            setting: json!({}),
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
}
