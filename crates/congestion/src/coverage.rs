//! Whether rules cover the congestion state space without a gap.
//!
//! Axis by axis: the bounds of the rules still in question cut the axis into slabs, and what covers a slab must cover
//! the rest of the axes too. On the last axis a sweep over intervals in ascending order decides.

use crate::bits::RuleBits;
use crate::fault::{Fault, Result};
use crate::index::cuts;
use crate::rule::{Interval, Region, Rule, SPACE};

/// Rules looked at before giving up: under a second. 256 rules on three axes take at most about 50 million.
const VISITS_MAX: u64 = 1 << 27;

/// Refuses rules that leave a region of the space out, and names one.
pub(crate) fn check(rules: &[Rule], axes: usize) -> Result<()> {
    let mut search = Search {
        rules,
        axes,
        visits: 0,
        region: SPACE,
    };
    let mut all = RuleBits::default();
    (0..rules.len()).for_each(|rule| all.insert(rule));
    if search.covered(&all, 0)? {
        return Ok(());
    }
    Err(Fault::Gap {
        region: search.region,
        axes,
    })
}

struct Search<'a> {
    rules: &'a [Rule],
    axes: usize,
    visits: u64,
    /// What is being looked at; the gap, once one is found.
    region: Region,
}

impl Search<'_> {
    /// Whether the candidates, that cover `region` on the axes before `axis`, cover all of it.
    fn covered(&mut self, candidates: &RuleBits, axis: usize) -> Result<bool> {
        self.visit(candidates.len())?;
        if candidates.is_empty() {
            return Ok(false);
        }
        if candidates.iter().any(|rule| self.spans(rule, axis)) {
            return Ok(true);
        }
        if axis + 1 == self.axes {
            return Ok(self.swept(candidates, axis));
        }
        let whole = self.region[axis];
        let mut before: Option<RuleBits> = None;
        let slabs = slabs(whole, &self.cuts(candidates, axis));
        self.visit(slabs.len() * candidates.len())?;
        for slab in slabs {
            let holding = self.holding(candidates, axis, slab.lo);
            if before == Some(holding) {
                continue;
            }
            self.region[axis] = slab;
            if !self.covered(&holding, axis + 1)? {
                return Ok(false);
            }
            before = Some(holding);
        }
        self.region[axis] = whole;
        Ok(true)
    }

    fn visit(&mut self, rules: usize) -> Result<()> {
        self.visits += rules as u64 + 1;
        if self.visits > VISITS_MAX {
            return Err(Fault::TooComplex);
        }
        Ok(())
    }

    /// Whether one rule covers all that is left from this axis on.
    fn spans(&self, rule: usize, axis: usize) -> bool {
        let region = &self.rules[rule].region;
        (axis..self.axes).all(|axis| {
            region[axis].lo <= self.region[axis].lo && region[axis].hi >= self.region[axis].hi
        })
    }

    fn cuts(&self, candidates: &RuleBits, axis: usize) -> Vec<u32> {
        cuts(candidates.iter().map(|rule| {
            let interval = self.rules[rule].region[axis];
            (interval.lo, interval.hi)
        }))
    }

    fn holding(&self, candidates: &RuleBits, axis: usize, value: u32) -> RuleBits {
        let mut holding = RuleBits::default();
        candidates
            .iter()
            .filter(|&rule| self.rules[rule].region[axis].contains(value))
            .for_each(|rule| holding.insert(rule));
        holding
    }

    /// Whether intervals cover the last axis; leaves the gap in `region` where they do not.
    fn swept(&mut self, candidates: &RuleBits, axis: usize) -> bool {
        let whole = self.region[axis];
        let mut intervals: Vec<Interval> = candidates
            .iter()
            .map(|rule| self.rules[rule].region[axis])
            .collect();
        intervals.sort_unstable_by_key(|interval| interval.lo);
        let mut reached = whole.lo;
        for interval in intervals {
            if interval.lo > reached {
                self.region[axis] = Interval {
                    lo: reached,
                    hi: interval.lo.min(whole.hi),
                };
                return false;
            }
            reached = reached.max(interval.hi);
        }
        if reached < whole.hi {
            self.region[axis].lo = reached;
            return false;
        }
        true
    }
}

/// An interval in pieces, cut at what lies inside.
fn slabs(whole: Interval, cuts: &[u32]) -> Vec<Interval> {
    let mut slabs = Vec::with_capacity(cuts.len() + 1);
    let mut lo = whole.lo;
    for &hi in cuts.iter().filter(|&&cut| cut > whole.lo && cut < whole.hi) {
        slabs.push(Interval { lo, hi });
        lo = hi;
    }
    slabs.push(Interval { lo, hi: whole.hi });
    slabs
}
