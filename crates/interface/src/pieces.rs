//! JSON cut into pieces of bounded length, for a message is never longer than the server takes.

use serde::Serialize;
use serde_json::Value;

/// Objects that together are the map; one at least.
pub fn of_map<'a>(
    entries: impl IntoIterator<Item = (&'a String, &'a Value)>,
    bytes_max: usize,
) -> Vec<String> {
    cut(entries, ['{', '}'], bytes_max, |(key, value), piece| {
        write(key, piece);
        piece.push(b':');
        write(value, piece);
    })
}

/// Lists that together are the list; one at least.
pub fn of_list<T: Serialize>(
    entries: impl IntoIterator<Item = T>,
    bytes_max: usize,
) -> Vec<String> {
    cut(entries, ['[', ']'], bytes_max, |entry, piece| {
        write(&entry, piece)
    })
}

/// Objects with one piece of each field in each, as long as there are any; the first has the head's keys as well.
pub fn together(head: &Value, fields: &[(&str, Vec<String>)]) -> Vec<String> {
    let count = fields.iter().map(|field| field.1.len()).max().unwrap_or(1);
    let whole = |part: usize| {
        let mut text = if part == 0 {
            head.to_string()
        } else {
            "{}".to_owned()
        };
        text.pop();
        for (name, pieces) in fields {
            if let Some(piece) = pieces.get(part) {
                let comma = if text.len() > 1 { "," } else { "" };
                text.push_str(&format!("{comma}\"{name}\":{piece}"));
            }
        }
        text + "}"
    };
    (0..count).map(whole).collect()
}

fn cut<T>(
    entries: impl IntoIterator<Item = T>,
    [open, close]: [char; 2],
    bytes_max: usize,
    write: impl Fn(T, &mut Vec<u8>),
) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = vec![open as u8];
    let mut end = |piece: Vec<u8>| {
        let mut text = String::from_utf8(piece).unwrap_or_default();
        text.push(close);
        pieces.push(text);
    };
    for entry in entries {
        let before = piece.len();
        if before > 1 {
            piece.push(b',');
        }
        write(entry, &mut piece);
        // The last one goes to the next piece, unless it is the only one.
        if piece.len() >= bytes_max && before > 1 {
            let last = piece.split_off(before);
            end(std::mem::replace(&mut piece, vec![open as u8]));
            piece.extend_from_slice(&last[1..]);
        }
    }
    end(piece);
    pieces
}

fn write(value: &impl Serialize, piece: &mut Vec<u8>) {
    // Nothing here fails: keys are strings, and memory takes all.
    let _ = serde_json::to_writer(piece, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    #[test]
    fn pieces_are_short_and_together_they_are_everything() {
        let map: std::collections::BTreeMap<String, Value> = (0..100)
            .map(|at| {
                (
                    format!("key{at} \"\u{e9}\""),
                    json!({"at": at, "word": "x".repeat(at)}),
                )
            })
            .collect();
        for bytes_max in [1, 150, 1000, 100_000] {
            let pieces = of_map(&map, bytes_max);
            assert!(bytes_max < 150 || pieces.iter().all(|it| it.len() <= bytes_max));
            let mut all = Map::new();
            for piece in &pieces {
                all.extend(serde_json::from_str::<Map<String, Value>>(piece).unwrap());
            }
            assert_eq!(json!(all), json!(map));
            let lists = of_list(map.keys(), bytes_max);
            let fields = [("map", pieces.clone()), ("list", lists)];
            let parts = together(&json!({"tick": 7}), &fields);
            assert_eq!(parts.len() > 1, bytes_max < 100_000);
            let mut list = Vec::new();
            for (at, text) in parts.iter().enumerate() {
                let part: Value = serde_json::from_str(text).unwrap();
                assert_eq!(part["tick"] == 7, at == 0);
                list.extend(part["list"].as_array().into_iter().flatten().cloned());
            }
            assert_eq!(json!(list), json!(map.keys().collect::<Vec<_>>()));
        }
        assert_eq!(of_map([], 10), ["{}"]);
        assert_eq!(
            together(&json!({}), &[("a", of_list([0; 0], 9))]),
            ["{\"a\":[]}"]
        );
    }
}
