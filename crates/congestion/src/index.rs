//! Finding the first rule that holds at a point, faster than trying one after the other.
//!
//! Along each axis the bounds of all rules cut the space into slabs; each slab has the set of rules that cover it, as
//! bits. The rules that hold at a point are the intersection of its slabs' sets, and the first is its lowest bit. Of
//! n rules: 2n + 1 slabs an axis at most, so never more than about 6 n^2 bits, however the rules lie.

use crate::bits::RuleBits;
use crate::rule::Rule;
use crate::signals::{AXES, INFINITY};

/// One axis: where it is cut, and the rules of each slab.
#[derive(Clone, Debug)]
struct Cuts {
    /// Ascending; slab i lies below `at[i]` and not below `at[i - 1]`.
    at: Box<[u32]>,
    /// `words` words a slab.
    slabs: Box<[u64]>,
}

impl Cuts {
    fn new(rules: &[Rule], axis: usize, words: usize) -> Self {
        let at = cuts(
            rules
                .iter()
                .map(|rule| (rule.region[axis].lo, rule.region[axis].hi)),
        );
        let mut slabs = Vec::with_capacity((at.len() + 1) * words);
        for slab in 0..=at.len() {
            let lowest = if slab == 0 { 0 } else { at[slab - 1] };
            let mut holding = RuleBits::default();
            for (number, rule) in rules.iter().enumerate() {
                if rule.region[axis].contains(lowest) {
                    holding.insert(number);
                }
            }
            slabs.extend((0..words).map(|word| holding.word(word)));
        }
        Self {
            at: at.into(),
            slabs: slabs.into(),
        }
    }

    /// Which slab a value is in.
    #[inline]
    fn slab(&self, value: u32) -> usize {
        self.at.partition_point(|&cut| cut <= value)
    }
}

/// Bounds that divide an axis: ascending, each once, neither zero nor infinity.
pub(crate) fn cuts(bounds: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut at: Vec<u32> = bounds
        .flat_map(|(lo, hi)| [lo, hi])
        .filter(|&bound| bound != 0 && bound != INFINITY)
        .collect();
    at.sort_unstable();
    at.dedup();
    at
}

/// The index of a rule set.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    axes: Box<[Cuts]>,
    words: usize,
}

impl Index {
    pub(crate) fn new(rules: &[Rule], axes: usize) -> Self {
        let words = rules.len().div_ceil(64);
        Self {
            axes: (0..axes)
                .map(|axis| Cuts::new(rules, axis, words))
                .collect(),
            words,
        }
    }

    /// The first rule that holds at a point.
    #[inline]
    pub(crate) fn first(&self, point: &[u32; AXES]) -> Option<usize> {
        let mut slabs = [0; AXES];
        for ((slab, axis), &value) in slabs.iter_mut().zip(&self.axes).zip(point) {
            *slab = axis.slab(value) * self.words;
        }
        for word in 0..self.words {
            let holding = self
                .axes
                .iter()
                .zip(&slabs)
                .fold(u64::MAX, |all, (axis, slab)| all & axis.slabs[slab + word]);
            if holding != 0 {
                return Some(word * 64 + holding.trailing_zeros() as usize);
            }
        }
        None
    }
}
