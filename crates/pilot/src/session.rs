//! A session: rounds until every performance indicator is known well enough (ASCAR thesis, section 4.2.3).
//!
//! The caller carries out the rounds and knows the time:
//!
//! ```text
//! loop { work = session.next_work(); round = run(work); session.take(round); session.judge(elapsed) }
//! ```

use ascar_statistics::work_per_second::WorkPerSecond;

use crate::findings::{Finding, Ledger};
use crate::goal::{Goal, Rule};
use crate::indicator::Indicator;
use crate::outlook::{findings_left_s, speed_left_s};
use crate::round::{Done, Round};
use crate::speed;
use crate::stopping::may_look;
use crate::work_amounts::{Schedule, WorkAmounts};
use crate::{Error, Result};

/// When a session ends at the latest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Seconds of the session.
    pub session_s: f64,
    /// No more rounds than this.
    pub rounds_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            session_s: 3600.0,
            rounds_max: 10_000,
        }
    }
}

/// What a session measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// May be empty where only the speed of adjustable work is wanted.
    pub indicators: Vec<Indicator>,
    /// How many rounds there are at least, and what the speed must reach where it decides.
    pub goal: Goal,
    /// What the speed must reach also where unit readings decide; None: it then decides nothing.
    pub speed: Option<Goal>,
    /// The schedule of work amounts; None where the work cannot be adjusted.
    pub work: Option<Schedule>,
    /// When to end at the latest.
    pub limits: Limits,
}

impl Plan {
    /// Refuses a plan that measures nothing, names an indicator twice, or has numbers out of their ranges.
    pub fn check(&self) -> Result<()> {
        self.goal.check()?;
        let names: Vec<&str> = self
            .indicators
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        if names.is_empty() && self.work.is_none() {
            let allowed = "an indicator, or work amounts that can be adjusted";
            return Err(Error::new(
                "the session",
                "without anything to measure",
                allowed,
            ));
        }
        for (index, name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(Error::new(
                    "indicator",
                    "without a name",
                    "a name of its own",
                ));
            }
            if names[..index].contains(name) {
                let value = format!("{name:?} a second time");
                return Err(Error::new("indicator", value, "a name of its own"));
            }
        }
        for indicator in &self.indicators {
            indicator.goal.map_or(Ok(()), |goal| goal.check())?;
        }
        if !(self.limits.session_s > 0.0 && self.limits.session_s.is_finite()) {
            let value = format!("{} s", self.limits.session_s);
            return Err(Error::new("session limit", value, "seconds, above 0"));
        }
        if self.limits.rounds_max < 1 {
            return Err(Error::new("rounds_max", 0, "at least 1"));
        }
        if self.speed.is_some() && self.work.is_none() {
            let allowed = "none, or work amounts that can be adjusted";
            return Err(Error::new("goal", "of the speed of fixed work", allowed));
        }
        self.speed.map_or(Ok(()), |goal| goal.check())?;
        self.work.map_or(Ok(()), |work| work.check())
    }
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every goal is reached.
    Reached,
    /// The limit of time was reached.
    Time,
    /// The limit of rounds was reached.
    Rounds,
    /// It was asked to end.
    Stopped,
}

/// A session under way, or at its end.
#[derive(Clone, Debug)]
pub struct Session {
    plan: Plan,
    ledgers: Vec<Ledger>,
    work: Option<WorkAmounts>,
    rounds: Vec<Done>,
    findings: Vec<Finding>,
    speed: Option<WorkPerSecond>,
    looked_at: usize,
    speed_met: bool,
    met_before: bool,
    ended: Option<Ended>,
    seconds: f64,
}

impl Session {
    /// A session before its first round.
    pub fn new(plan: Plan) -> Result<Self> {
        plan.check()?;
        let ledgers: Vec<Ledger> = plan
            .indicators
            .iter()
            .map(|indicator| Ledger::new(indicator.clone(), plan.goal))
            .collect();
        let mut session = Self {
            work: plan.work.map(WorkAmounts::new).transpose()?,
            plan,
            ledgers,
            rounds: Vec::new(),
            findings: Vec::new(),
            speed: None,
            looked_at: 0,
            speed_met: false,
            met_before: false,
            ended: None,
            seconds: 0.0,
        };
        session.findings = session.look(false)?;
        Ok(session)
    }

    /// What is measured.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// All rounds, in order.
    pub fn rounds(&self) -> &[Done] {
        &self.rounds
    }

    /// What is known of each indicator since the last look.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Work per second by the WPS method; None where it is not known.
    pub fn speed(&self) -> Option<&WorkPerSecond> {
        self.speed.as_ref()
    }

    /// Why the session ended; None while it goes on.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Why the session ended, one line; empty while it goes on.
    pub fn why(&self) -> String {
        let limits = self.plan.limits;
        match self.ended {
            None => String::new(),
            Some(Ended::Reached) => "every goal is reached".to_owned(),
            Some(Ended::Time) => format!("the limit of {} s was reached", limits.session_s),
            Some(Ended::Rounds) => format!("the limit of {} rounds was reached", limits.rounds_max),
            Some(Ended::Stopped) => "it was asked to stop".to_owned(),
        }
    }

    /// Seconds at the last judgement.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Whether the goal is the speed's, because there are no unit readings.
    pub fn speed_decides(&self) -> bool {
        self.work.is_some() && !self.ledgers.iter().any(Ledger::has_units)
    }

    /// What the speed must reach where it decides.
    pub fn speed_goal(&self) -> Goal {
        self.plan.speed.unwrap_or(self.plan.goal)
    }

    /// The work amount of the next round; None where the work cannot be adjusted.
    pub fn next_work(&mut self) -> Option<f64> {
        let speed_decides = self.speed_decides() || self.plan.speed.is_some() && !self.speed_met;
        let spent_s: f64 = self.used().map(|done| done.seconds).sum();
        let work = self.work.as_mut()?;
        if speed_decides {
            return Some(work.next_amount());
        }
        let left_s = findings_left_s(&self.findings, spent_s).filter(|&left_s| left_s > 0.0);
        Some(work.next_for(left_s.unwrap_or(spent_s)))
    }

    /// Takes in a round; a short one is kept but not used. Says whether it is used.
    ///
    /// Refused, and the session left as it was, where a number cannot be.
    pub fn take(&mut self, round: &Round) -> Result<bool> {
        // The speed divides by the duration of what adjusts its work.
        let is_long = round.seconds > 0.0 || self.work.is_none() && round.seconds == 0.0;
        if !(is_long && round.seconds <= 1e100) {
            let allowed = "a duration above 0";
            return Err(Error::new("round", format!("{} s", round.seconds), allowed));
        }
        if self.work.is_some() != round.work_amount.is_some()
            || round
                .work_amount
                .is_some_and(|work| !(work > 0.0 && work <= 1e100))
        {
            let allowed = "a work amount above 0 where work is adjustable, else none";
            return Err(Error::new(
                "round",
                format!("{:?}", round.work_amount),
                allowed,
            ));
        }
        for (index, indicator) in self.plan.indicators.iter().enumerate() {
            let units = round.units.get(index);
            units.map_or(Ok(()), |units| units.check(indicator, round, index))?;
            indicator.check(round.unit_readings.get(index).map_or(&[], Vec::as_slice))?;
            indicator.check(round.readings.get(index).copied().flatten().as_slice())?;
        }
        let used = match (&mut self.work, round.work_amount) {
            (Some(work), Some(amount)) => work.learn(amount, round.seconds),
            _ => true,
        };
        self.rounds.push(Done {
            seconds: round.seconds,
            work_amount: round.work_amount,
            used,
        });
        if !used {
            return Ok(false);
        }
        for (index, ledger) in self.ledgers.iter_mut().enumerate() {
            ledger.add(round, index)?;
        }
        if self.work.is_some() {
            let speed_goal = self.speed_goal();
            self.speed = speed::speed_of(self.used(), speed_goal.confidence, speed_goal.rule)?;
            let avoid = self.speed.as_ref().filter(|found| found.limits.is_some());
            let decides = self.speed_decides() || self.plan.speed.is_some();
            if let (Some(found), true) = (avoid, decides) {
                let least = speed::work_min(found);
                if let Some(work) = &mut self.work {
                    work.avoid(least);
                }
            }
        }
        Ok(true)
    }

    /// Looks at what is known and says whether the session ends.
    ///
    /// `elapsed_s` are the seconds since its start; `over` says why no more rounds come, whatever is known.
    pub fn judge(&mut self, elapsed_s: f64, over: Option<Ended>) -> Result<Option<Ended>> {
        self.seconds = elapsed_s;
        self.findings = self.look(false)?;
        let limits = self.plan.limits;
        self.ended = if self.reached() {
            Some(Ended::Reached)
        } else if over.is_some() {
            over
        } else if elapsed_s >= limits.session_s {
            Some(Ended::Time)
        } else if self.rounds.len() >= limits.rounds_max {
            Some(Ended::Rounds)
        } else {
            None
        };
        // At the end nothing is left out; when a goal was reached, what is reported is what was looked at.
        if self.ended.is_some_and(|why| why != Ended::Reached) {
            self.findings = self.look(true)?;
        }
        Ok(self.ended)
    }

    /// Seconds that the session may still take, as far as the intervals tell; None while they tell nothing.
    pub fn left_s(&self) -> Option<f64> {
        if self.ended.is_some() {
            return None;
        }
        let speed_left_s = || speed_left_s(self.speed.as_ref(), &self.speed_goal(), self.seconds);
        let left_s = if self.speed_decides() {
            speed_left_s()
        } else if self.plan.speed.is_some() && !self.speed_met {
            let findings_s = findings_left_s(&self.findings, self.seconds);
            speed_left_s().map(|left_s| left_s.max(findings_s.unwrap_or(left_s)))
        } else {
            findings_left_s(&self.findings, self.seconds)
        };
        let most_s = (self.plan.limits.session_s - self.seconds).max(0.0);
        left_s.map(|left_s| left_s.min(most_s))
    }

    fn used(&self) -> impl Iterator<Item = &Done> {
        self.rounds.iter().filter(|done| done.used)
    }

    fn look(&mut self, last: bool) -> Result<Vec<Finding>> {
        self.ledgers
            .iter_mut()
            .map(|ledger| ledger.finding(last))
            .collect()
    }

    /// Whether every goal is reached.
    ///
    /// Where the speed decides, readings that come one a round do not: rounds differ in their work amount.
    fn reached(&mut self) -> bool {
        let used = self.used().count();
        if used < self.plan.goal.rounds_min {
            return false;
        }
        if self.speed_decides() {
            return self.speed_reached(used);
        }
        let mut wanted = self
            .findings
            .iter()
            .filter(|finding| finding.goal.is_some())
            .peekable();
        let found = match self.plan.speed {
            None => wanted.peek().is_some(),
            Some(_) => true,
        };
        found
            && wanted.all(Finding::reached)
            && (self.plan.speed.is_none() || self.speed_reached(used))
    }

    /// Whether the speed's goal is reached; once it is, it stays so: looks are few, for the same reason as those at
    /// readings.
    fn speed_reached(&mut self, used: usize) -> bool {
        if may_look(used, self.looked_at, self.plan.goal.rule)
            && let Some(found) = &self.speed
        {
            self.looked_at = used;
            // One narrow interval may be an underestimate; a second one on more rounds seldom is.
            let meets = speed::meets(found, &self.speed_goal());
            let published = self.plan.goal.rule != Rule::Corrected;
            self.speed_met = meets && (self.met_before || published);
            self.met_before = meets;
        }
        self.speed_met
    }
}
