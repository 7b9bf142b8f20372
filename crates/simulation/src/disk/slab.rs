//! Numbered places that are used again.

use std::ops::{Index, IndexMut};

/// Values by number. Room is asked for only when more values are held at once than ever before.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            values: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
        }
    }

    /// Keeps a value; its number.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.values[number as usize] = value;
            return number;
        }
        self.values.push(value);
        // Giving all of them back needs no room later.
        self.free.reserve(self.values.capacity());
        (self.values.len() - 1) as u32
    }

    /// Gives a value back; its number may stand for another from now on.
    pub(super) fn remove(&mut self, number: u32) -> T {
        self.free.push(number);
        self.values[number as usize]
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.values[number as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.values[number as usize]
    }
}
