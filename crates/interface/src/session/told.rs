//! The setting in force as it is told: JSON in pieces, made anew only when it has changed.

use std::sync::Arc;

use crate::pieces;
use crate::setting::Setting;

/// A setting of several pieces is told when it has changed, and after so many ticks for those who came later.
const AGAIN_TICKS: i64 = 16;

/// What is told.
#[derive(Debug)]
pub(super) struct Told {
    pieces: Arc<[String]>,
    /// Of which setting, and how long a piece may be.
    made_of: (u64, usize),
    /// Told last, and when.
    last: (Arc<[String]>, i64),
}

impl Default for Told {
    fn default() -> Self {
        let pieces: Arc<[String]> = vec!["{}".to_owned()].into();
        Self {
            last: (Arc::clone(&pieces), i64::MIN),
            pieces,
            made_of: (0, 0),
        }
    }
}

impl Told {
    /// Makes the pieces anew where the setting is another. Returns whether it is.
    pub(super) fn keep_up(&mut self, setting: &Setting, piece_bytes: usize) -> bool {
        let made_of = (setting.revision(), piece_bytes);
        if self.made_of == made_of {
            return false;
        }
        self.made_of = made_of;
        let pieces: Arc<[String]> = pieces::of_map(setting.current(), piece_bytes).into();
        let is_other = pieces != self.pieces;
        if is_other {
            self.pieces = pieces;
        }
        is_other
    }

    /// Its pieces.
    pub(super) fn pieces(&self) -> Arc<[String]> {
        Arc::clone(&self.pieces)
    }

    /// The pieces that a tick needs: none where its setting is long and was told already.
    pub(super) fn for_tick<'a>(&mut self, pieces: &'a Arc<[String]>, tick: i64) -> &'a [String] {
        let is_known = Arc::ptr_eq(pieces, &self.last.0);
        if pieces.len() > 1 && is_known && tick < self.last.1.saturating_add(AGAIN_TICKS) {
            return &[];
        }
        self.last = (Arc::clone(pieces), tick);
        pieces
    }

    /// All of it as one object.
    pub(super) fn whole(&self) -> String {
        let inside: Vec<&str> = self.pieces.iter().map(|it| &it[1..it.len() - 1]).collect();
        format!("{{{}}}", inside.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::Values;
    use serde_json::{Value, json};

    #[test]
    fn a_long_setting_is_told_when_it_has_changed_and_now_and_then() {
        let mut setting = Setting::default();
        let values: Values = (0..100).map(|at| (format!("k{at}"), json!(at))).collect();
        setting.take(&values);
        let mut told = Told::default();
        assert!(told.keep_up(&setting, 200) && !told.keep_up(&setting, 200));
        let whole: Value = serde_json::from_str(&told.whole()).unwrap();
        assert_eq!(whole, json!(setting.current()));
        let pieces = told.pieces();
        assert!(pieces.len() > 1);
        let times = |told: &mut Told, ticks: std::ops::Range<i64>| {
            ticks
                .filter(|tick| !told.for_tick(&pieces, *tick).is_empty())
                .collect::<Vec<_>>()
        };
        assert_eq!(times(&mut told, 0..40), [0, 16, 32]);
        setting.take(&Values::from([("k7".to_owned(), json!(8))]));
        assert!(told.keep_up(&setting, 200));
        assert_eq!(told.for_tick(&told.pieces(), 40).len(), pieces.len());
        // A short one is in every tick.
        assert!(told.keep_up(&setting, 100_000));
        assert!((41..44).all(|tick| told.for_tick(&told.pieces(), tick).len() == 1));
    }
}
