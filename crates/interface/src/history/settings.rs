//! Settings as they were stored: whole where they are short, else in pieces and by what has changed.

use ascar_messaging::limits::{KEY_BYTES_MAX, check_text, check_value};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{PART_BYTES, Reply, in_force};
use crate::pieces::of_map;
use crate::setting::Values;

/// Longest JSON of a setting that is one entry.
const SETTING_BYTES: usize = PART_BYTES / 4;

/// The last setting at or before the first tick, and those after it. Of one that is too long for an entry the first
/// entry is whole, the next ones of its tick have the rest, and those of later ticks what has changed.
pub(super) fn read(
    connection: &Connection,
    from: i64,
    to: i64,
    reply: &mut Reply,
) -> rusqlite::Result<()> {
    let mut before: Option<Values> = None;
    let mut entries = Vec::new();
    let row = |row: &rusqlite::Row| Ok((row.get::<_, i64>(0)?.max(from), row.get::<_, String>(1)?));
    in_force(
        connection,
        ("settings", "tick, content"),
        (from, to),
        row,
        |(tick, content)| {
            let mut setting: Values = serde_json::from_str(&content).unwrap_or_default();
            // An interface without limits may have stored anything.
            let fits = |key: &str, value: &Value| {
                check_text("key", key, KEY_BYTES_MAX)
                    .and_then(|()| check_value(key, value))
                    .is_ok()
            };
            setting.retain(|key, value| fits(key, value));
            if content.len() <= SETTING_BYTES {
                entries.push(json!({"tick": tick, "setting": setting}));
                before = Some(setting);
                return;
            }
            reply.list("settings", &std::mem::take(&mut entries));
            let told = match &before {
                Some(before) => changes(before, &setting),
                None => setting.clone(),
            };
            for (at, piece) in of_map(&told, PART_BYTES).into_iter().enumerate() {
                let whole = before.is_none() && at == 0;
                let entry = format!(
                    "\"settings\":[{{\"tick\":{tick},\"whole\":{whole},\"setting\":{piece}}}]"
                );
                reply.send_text(&entry, false, &[]);
            }
            before = Some(setting);
        },
    )?;
    reply.list("settings", &entries);
    Ok(())
}

/// What has changed from one setting to the next; null where there is no value any more.
fn changes(before: &Values, after: &Values) -> Values {
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    let changed = after
        .iter()
        .filter(|(key, value)| before.get(*key) != Some(value));
    let changed = changed.map(|(key, value)| (key.clone(), value.clone()));
    gone.map(|key| (key.clone(), Value::Null))
        .chain(changed)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_name_what_is_other_and_what_is_gone() {
        let values = |value: Value| serde_json::from_value::<Values>(value).unwrap();
        let before = values(json!({"a": 1, "b": 2, "c": 3}));
        let after = values(json!({"a": 1, "b": 4, "d": 5}));
        let told = changes(&before, &after);
        assert_eq!(json!(told), json!({"b": 4, "c": null, "d": 5}));
        assert!(changes(&after, &after).is_empty());
    }
}
