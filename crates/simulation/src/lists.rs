//! Lists threaded through tables: queues of requests and of threads that allocate nothing.

/// No entry.
pub const NONE: u32 = u32::MAX;

/// A first-in, first-out list of table entries; each entry is in one list at most.
#[derive(Debug, Clone, Copy)]
pub struct List {
    head: u32,
    tail: u32,
}

impl Default for List {
    fn default() -> List {
        List {
            head: NONE,
            tail: NONE,
        }
    }
}

/// A table whose entries can be linked.
pub trait Linked {
    /// The entry behind `entry`.
    fn next(&mut self, entry: u32) -> &mut u32;
}

impl List {
    /// Whether nothing is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// The first entry.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    /// Put an entry at the end.
    #[inline]
    pub fn push(&mut self, table: &mut impl Linked, entry: u32) {
        *table.next(entry) = NONE;
        if self.tail == NONE {
            self.head = entry;
        } else {
            *table.next(self.tail) = entry;
        }
        self.tail = entry;
    }

    /// Take the entry behind `previous`, which is in the list; `None`: the first.
    pub fn take_behind(&mut self, table: &mut impl Linked, previous: Option<u32>) -> Option<u32> {
        let Some(previous) = previous else {
            return self.pop(table);
        };
        let entry = *table.next(previous);
        if entry == NONE {
            return None;
        }
        *table.next(previous) = *table.next(entry);
        if self.tail == entry {
            self.tail = previous;
        }
        Some(entry)
    }

    /// Take the first entry.
    #[inline]
    pub fn pop(&mut self, table: &mut impl Linked) -> Option<u32> {
        let entry = self.first()?;
        self.head = *table.next(entry);
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(entry)
    }
}
