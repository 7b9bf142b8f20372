//! Sets of rules as bits, one a rule: the first rule of a set is its lowest bit.

/// Rules a set can have.
pub const RULES_MAX: usize = 256;

const WORDS: usize = RULES_MAX / 64;

/// A set of rule numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RuleBits([u64; WORDS]);

impl RuleBits {
    pub(crate) fn insert(&mut self, rule: usize) {
        self.0[rule / 64] |= 1 << (rule % 64);
    }

    pub(crate) fn word(&self, index: usize) -> u64 {
        self.0[index]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// The rules in it, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(index, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                if left == 0 {
                    return None;
                }
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                Some(index * 64 + bit)
            })
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}
