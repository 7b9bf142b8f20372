//! A rule set: every congestion state mapped to an action (Li, 3.1.4).

use crate::bits::RULES_MAX;
use crate::coverage;
use crate::fault::{Fault, Result};
use crate::index::Index;
use crate::rule::{Action, Observed, Rule, SPACE};
use crate::signals::{AXES, Signals, THESIS_AXES};
use crate::text;
use crate::usage::Usage;

/// Window changes a second when a set does not say otherwise (Li, 3.1.4).
pub const UPDATES_PER_SECOND_DEFAULT: u32 = 2;

/// Window changes a second that a set may ask for.
pub const UPDATES_PER_SECOND_MAX: u32 = 1_000_000;

/// Files of a stream that a set may let have requests in flight at once.
pub const ACTIVE_FILES_MAX: u32 = 1_000_000;

/// Rules that cover the congestion state space; of those that hold at a point the first counts.
#[derive(Clone, Debug)]
pub struct RuleSet {
    rules: Box<[Rule]>,
    axes: usize,
    updates_per_second: u32,
    active_files: u32,
    index: Index,
}

impl PartialEq for RuleSet {
    fn eq(&self, other: &Self) -> bool {
        let plain = |set: &Self| (set.axes, set.updates_per_second, set.active_files);
        self.rules == other.rules && plain(self) == plain(other)
    }
}

impl Eq for RuleSet {}

impl RuleSet {
    /// Puts rules together; refuses none, too many, an empty region and a gap.
    ///
    /// The indicators that count are the three of the thesis, and those beyond them that any rule bounds.
    pub fn new(rules: Vec<Rule>, updates_per_second: u32) -> Result<Self> {
        let bounded = |axis: usize| rules.iter().any(|rule| rule.region[axis] != SPACE[axis]);
        let axes = (THESIS_AXES..AXES)
            .rev()
            .find(|&axis| bounded(axis))
            .map_or(THESIS_AXES, |axis| axis + 1);
        Self::with_axes(rules, axes, updates_per_second)
    }

    /// Puts rules together of which the first `axes` indicators count, whether or not a rule bounds them.
    pub fn with_axes(rules: Vec<Rule>, axes: usize, updates_per_second: u32) -> Result<Self> {
        if rules.is_empty() || rules.len() > RULES_MAX {
            return Err(Fault::setting("rules", rules.len(), "1 to 256 rules"));
        }
        if updates_per_second == 0 || updates_per_second > UPDATES_PER_SECOND_MAX {
            let allowed = "1 to 1000000 window changes a second";
            return Err(Fault::setting(
                "updates_per_second",
                updates_per_second,
                allowed,
            ));
        }
        if let Some(interval) = rules
            .iter()
            .flat_map(|rule| rule.region)
            .find(|at| at.lo >= at.hi)
        {
            let found = format!("[{}, {})", interval.lo, interval.hi);
            return Err(Fault::setting("interval", found, "lo below hi"));
        }
        coverage::check(&rules, axes)?;
        let index = Index::new(&rules, axes);
        Ok(Self {
            rules: rules.into(),
            axes,
            updates_per_second,
            active_files: 0,
            index,
        })
    }

    /// The same rules with a limit on the files of a stream that may have requests in flight at once, in turns; 0: none.
    pub fn with_active_files(mut self, active_files: u32) -> Result<Self> {
        if active_files > ACTIVE_FILES_MAX {
            let allowed = "0 (any number) to 1000000 files";
            return Err(Fault::setting("active_files", active_files, allowed));
        }
        self.active_files = active_files;
        Ok(self)
    }

    /// One rule that holds everywhere: where a search for rules begins (Li, algorithm 1, line 4).
    #[must_use]
    pub fn uniform(action: Action) -> Self {
        let rule = Rule {
            region: SPACE,
            action,
            observed: None,
        };
        Self::new(vec![rule], UPDATES_PER_SECOND_DEFAULT).expect("one rule that holds everywhere")
    }

    /// Reads the text of a rule file; every refusal names line and field, or the region left out.
    pub fn parse(text: &str) -> Result<Self> {
        text::read(text)
    }

    /// The text of the rule file, with statistics where rules have them.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::write(self)
    }

    /// The rules, in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// How many indicators the rules bound: 3, or more of extended sets.
    #[must_use]
    pub fn axes(&self) -> usize {
        self.axes
    }

    /// Window changes a second at most.
    #[must_use]
    pub fn updates_per_second(&self) -> u32 {
        self.updates_per_second
    }

    /// Files of a stream that may have requests in flight at once, in turns; 0: any number.
    #[must_use]
    pub fn active_files(&self) -> u32 {
        self.active_files
    }

    /// Microseconds between two window changes at least.
    #[must_use]
    #[inline]
    pub fn update_gap_us(&self) -> u64 {
        u64::from(1_000_000 / self.updates_per_second)
    }

    /// The number of the first rule that holds.
    #[must_use]
    #[inline]
    pub fn lookup(&self, signals: &Signals) -> usize {
        let found = self.index.first(&signals.point());
        found.expect("a rule set covers the space: that was checked when it was made")
    }

    /// Like [`RuleSet::lookup`], by trying one rule after the other: what it is tested against.
    #[must_use]
    pub fn lookup_by_scan(&self, signals: &Signals) -> usize {
        let point = signals.point();
        let holds =
            |rule: &Rule| (0..self.axes).all(|axis| rule.region[axis].contains(point[axis]));
        let found = self.rules.iter().position(holds);
        found.expect("a rule set covers the space: that was checked when it was made")
    }

    /// The action at a congestion state.
    #[must_use]
    #[inline]
    pub fn action(&self, signals: &Signals) -> &Action {
        &self.rules[self.lookup(signals)].action
    }

    /// The same rules with these statistics, one a rule.
    #[must_use]
    pub fn with_statistics(&self, observed: &[Observed]) -> Self {
        assert_eq!(
            observed.len(),
            self.rules.len(),
            "statistics are one a rule"
        );
        let mut set = self.clone();
        for (rule, observed) in set.rules.iter_mut().zip(observed) {
            rule.observed = Some(*observed);
        }
        set
    }
}

/// A rule set in force, and the counters of its rules: what streams share.
#[derive(Debug)]
pub struct Deployment {
    /// The rules.
    pub rules: RuleSet,
    /// Their use since deployment.
    pub usage: Usage,
}

impl Deployment {
    /// Puts a set in force, with counters at zero.
    #[must_use]
    pub fn new(rules: RuleSet) -> Self {
        let usage = Usage::new(rules.rules().len(), rules.axes());
        Self { rules, usage }
    }

    /// The rules with what was counted since deployment.
    #[must_use]
    pub fn observed_rules(&self) -> RuleSet {
        self.rules.with_statistics(&self.usage.observed())
    }
}
