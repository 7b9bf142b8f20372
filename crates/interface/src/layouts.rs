//! Lists of indicators' names, shared by all nodes that have the same; one that no node has is forgotten.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use serde_json::json;

/// A list of names.
#[derive(Debug)]
pub struct Layout {
    /// Another for each list, for whoever keeps something of it: the number is chosen by nodes.
    pub serial: u64,
    /// Eight hexadecimal digits.
    pub id: String,
    /// The same as a number.
    pub number: u32,
    /// The names.
    pub names: Vec<String>,
    /// The names as JSON.
    pub json: String,
}

impl Layout {
    /// A list of its own.
    pub fn new(number: u32, names: Vec<String>) -> Self {
        static SERIALS: AtomicU64 = AtomicU64::new(0);
        Self {
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
            id: format!("{number:08x}"),
            number,
            json: json!(names).to_string(),
            names,
        }
    }
}

/// All lists that nodes have.
#[derive(Debug, Default)]
pub struct Layouts {
    known: HashMap<u64, Weak<Layout>>,
    hasher: RandomState,
    /// How many are known before those that no node has are looked for.
    full: usize,
}

impl Layouts {
    /// The shared list of these names with this number.
    pub fn shared(&mut self, number: u32, names: Vec<String>) -> Arc<Layout> {
        // The hash has a secret, so that no node can make another's list its own.
        let key = self.hasher.hash_one((number, &names));
        let known = self.known.get(&key).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|it| it.number == number && it.names == names) {
            return known;
        }
        if self.known.len() >= self.full {
            self.known.retain(|_, it| it.strong_count() > 0);
            self.full = 2 * self.known.len() + 64;
        }
        let layout = Arc::new(Layout::new(number, names));
        self.known.insert(key, Arc::downgrade(&layout));
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_node_has_takes_no_room() {
        let mut layouts = Layouts::default();
        let names = |at: usize| vec![format!("indicator{at}")];
        let kept = layouts.shared(7, names(0));
        assert!(Arc::ptr_eq(&kept, &layouts.shared(7, names(0))));
        for at in 1..10_000 {
            // The number of another list does not make it that list.
            assert_ne!(layouts.shared(7, names(at)).serial, kept.serial);
        }
        assert!(layouts.known.len() < 200, "{}", layouts.known.len());
        assert!(Arc::ptr_eq(&kept, &layouts.shared(7, names(0))));
    }
}
