//! An ordered index over slots: insert, remove and "the first at or after" in O(log n), without allocation.

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    left: u32,
    right: u32,
    priority: u32,
}

/// Where the number of a node is written.
#[derive(Clone, Copy)]
enum Link {
    Root,
    Left(u32),
    Right(u32),
}

/// A treap (Seidel and Aragon, "Randomized search trees", 1996) whose nodes are the caller's slots; equal keys lie in
/// the order of their slots. The priorities are a hash of a counter: the same calls always give the same tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Ordered {
    nodes: Vec<Node>,
    root: Option<u32>,
    inserted: u64,
}

impl Ordered {
    /// An index that holds slots below `slots` without allocating.
    pub(super) fn with_capacity(slots: usize) -> Self {
        Self {
            nodes: Vec::with_capacity(slots),
            root: None,
            inserted: 0,
        }
    }

    fn read(&self, link: Link) -> u32 {
        match link {
            Link::Root => self.root.unwrap_or(NONE),
            Link::Left(node) => self.nodes[node as usize].left,
            Link::Right(node) => self.nodes[node as usize].right,
        }
    }

    fn write(&mut self, link: Link, to: u32) {
        match link {
            Link::Root => self.root = (to != NONE).then_some(to),
            Link::Left(node) => self.nodes[node as usize].left = to,
            Link::Right(node) => self.nodes[node as usize].right = to,
        }
    }

    fn before(&self, node: u32, key: u64, slot: u32) -> bool {
        (self.nodes[node as usize].key, node) < (key, slot)
    }

    /// Adds `slot`, which is not in the index, under `key`.
    pub(super) fn insert(&mut self, slot: u32, key: u64) {
        let priority = (ascar_random::spread(self.inserted) >> 32) as u32;
        self.inserted += 1;
        if self.nodes.len() <= slot as usize {
            self.nodes.resize(
                slot as usize + 1,
                Node {
                    key: 0,
                    left: NONE,
                    right: NONE,
                    priority: 0,
                },
            );
        }
        self.nodes[slot as usize] = Node {
            key,
            left: NONE,
            right: NONE,
            priority,
        };
        let mut link = Link::Root;
        let mut node = self.read(link);
        while node != NONE && self.nodes[node as usize].priority >= priority {
            link = if self.before(node, key, slot) {
                Link::Right(node)
            } else {
                Link::Left(node)
            };
            node = self.read(link);
        }
        self.write(link, slot);
        // What was below is split at the key: the smaller to the left of the slot, the larger to its right.
        let (mut smaller, mut larger) = (Link::Left(slot), Link::Right(slot));
        while node != NONE {
            if self.before(node, key, slot) {
                self.write(smaller, node);
                smaller = Link::Right(node);
                node = self.nodes[node as usize].right;
            } else {
                self.write(larger, node);
                larger = Link::Left(node);
                node = self.nodes[node as usize].left;
            }
        }
        self.write(smaller, NONE);
        self.write(larger, NONE);
    }

    /// Takes `slot`, which is in the index, out of it.
    pub(super) fn remove(&mut self, slot: u32) {
        let Node {
            key,
            mut left,
            mut right,
            ..
        } = self.nodes[slot as usize];
        let mut link = Link::Root;
        let mut node = self.read(link);
        while node != slot {
            assert!(node != NONE, "slot {slot} is not in the index");
            link = if self.before(node, key, slot) {
                Link::Right(node)
            } else {
                Link::Left(node)
            };
            node = self.read(link);
        }
        while left != NONE && right != NONE {
            if self.nodes[left as usize].priority >= self.nodes[right as usize].priority {
                self.write(link, left);
                link = Link::Right(left);
                left = self.nodes[left as usize].right;
            } else {
                self.write(link, right);
                link = Link::Left(right);
                right = self.nodes[right as usize].left;
            }
        }
        self.write(link, if left == NONE { right } else { left });
    }

    /// The slot of the smallest key that is at least `key`.
    pub(super) fn at_or_after(&self, key: u64) -> Option<u32> {
        let mut found = NONE;
        let mut node = self.read(Link::Root);
        while node != NONE {
            if self.nodes[node as usize].key < key {
                node = self.nodes[node as usize].right;
            } else {
                found = node;
                node = self.nodes[node as usize].left;
            }
        }
        (found != NONE).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_an_ordered_set(steps in proptest::collection::vec((0_u32..64, 0_u64..40), 0..400)) {
            let mut index = Ordered::with_capacity(64);
            let mut model = BTreeSet::new();
            let mut keys = [None; 64];
            for (slot, key) in steps {
                match keys[slot as usize].take() {
                    Some(old) => {
                        index.remove(slot);
                        model.remove(&(old, slot));
                    }
                    None => {
                        index.insert(slot, key);
                        model.insert((key, slot));
                        keys[slot as usize] = Some(key);
                    }
                }
                let expected = model.range((key, 0)..).next().map(|found: &(u64, u32)| found.1);
                prop_assert_eq!(index.at_or_after(key), expected);
                prop_assert_eq!(index.at_or_after(0), model.first().map(|found| found.1));
            }
        }
    }

    #[test]
    fn keys_in_order_make_no_deep_tree() {
        let mut index = Ordered::with_capacity(100_000);
        (0..100_000_u32).for_each(|slot| index.insert(slot, u64::from(slot)));
        let mut deepest = 0;
        let mut open = vec![(index.root.unwrap(), 1)];
        while let Some((node, depth)) = open.pop() {
            deepest = deepest.max(depth);
            let Node { left, right, .. } = index.nodes[node as usize];
            open.extend(
                [left, right]
                    .into_iter()
                    .filter(|child| *child != NONE)
                    .map(|child| (child, depth + 1)),
            );
        }
        assert!(deepest < 60, "{deepest}");
    }
}
