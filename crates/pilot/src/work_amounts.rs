//! How much work each round does (ASCAR thesis, sections 4.2.1 and 4.2.3).
//!
//! A session starts with trial rounds and doubles them until one is long enough to mean something. Where there are
//! unit readings, rounds then become as long as those that are still missing need. Where there are none, each
//! round is a fixed slice longer than the last (eq. 4.5), so that the first result comes early; then work amounts
//! follow the halving sequence of Fig. 4.3, which spreads any number of them evenly over the range.

use std::collections::VecDeque;

use crate::{Error, Result};

/// Half of the time to the first result is left for rounds to grow in.
const GROWTH_SHARE: f64 = 0.5;
const WORKING_RATIO: f64 = 1.5;
/// Smaller changes of the least work amount are no reason to begin the halving sequence again.
const LOW_CHANGE: f64 = 1.2;
/// Rounds of the halving sequence before its range doubles: four levels of Fig. 4.3.
const STAGE_ROUNDS: u64 = 15;
/// The most work and the longest round that can be computed with.
const MOST: f64 = 1e100;

/// The n-th (from 1) of the midpoints of (low, high), then of its halves from left to right, and so on (Fig. 4.3).
pub fn halving(low: f64, high: f64, n: u64) -> f64 {
    let level = n.ilog2();
    let odd = 2 * (n - (1 << level)) + 1;
    let parts = 2_u64 << level;
    low + (high - low) * odd as f64 / parts as f64
}

/// By how much each round outlasts the one before, so that `rounds` (2 or more) take `first_result_s` (eq. 4.5).
///
/// k = (2t - 2sn) / (n^2 - n); not above zero where so many rounds cannot fit.
pub fn slice_seconds(first_result_s: f64, shortest_s: f64, rounds: usize) -> f64 {
    assert!(rounds >= 2, "a slope needs two rounds");
    let n = rounds as f64;
    (2.0 * first_result_s - 2.0 * shortest_s * n) / (n * n - n)
}

/// What a schedule may be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Least work amount allowed, above zero.
    pub low: f64,
    /// Most work amount allowed.
    pub high: f64,
    /// Work amounts are whole numbers.
    pub whole: bool,
    /// Shorter rounds are set aside, and the next does twice as much.
    pub short_round_s: f64,
    /// No round is planned longer than this, however much work is allowed.
    pub longest_round_s: f64,
    /// Seconds after which a first result is wanted (60 in the thesis).
    pub first_result_s: f64,
    /// Rounds in that time (50 in the thesis); fewer where the shortest round does not leave room for so many.
    pub first_rounds: usize,
}

impl Schedule {
    /// The thesis's schedule over a range of work amounts, with rounds of at least a second.
    pub fn over(low: f64, high: f64) -> Self {
        Self {
            low,
            high,
            whole: false,
            short_round_s: 1.0,
            longest_round_s: 180.0,
            first_result_s: 60.0,
            first_rounds: 50,
        }
    }

    /// Refuses an empty range and times that leave room for nothing.
    pub fn check(&self) -> Result<()> {
        let (low, high) = (self.low, self.high);
        if !(0.0 < low && low <= high && high <= MOST) {
            let allowed = format!("0 < least <= most <= {MOST:e}, e.g. 1 to 1000");
            return Err(Error::new(
                "work amount",
                format!("{low} to {high}"),
                allowed,
            ));
        }
        if self.whole && low.ceil() > high.floor() {
            let allowed = "a range with a whole number in it";
            return Err(Error::new(
                "work amount",
                format!("{low} to {high}"),
                allowed,
            ));
        }
        for (name, value, least) in [
            ("short round", self.short_round_s, 0.0),
            ("longest round", self.longest_round_s, f64::MIN_POSITIVE),
            ("first result", self.first_result_s, f64::MIN_POSITIVE),
        ] {
            if !(least..=MOST).contains(&value) {
                let sign = if least > 0.0 { "above 0" } else { "0 or more" };
                return Err(Error::new(
                    name,
                    format!("{value} s"),
                    format!("seconds, {sign}"),
                ));
            }
        }
        if self.longest_round_s < self.short_round_s {
            let allowed = format!("no less than a short round, {} s", self.short_round_s);
            let value = format!("{} s", self.longest_round_s);
            return Err(Error::new("longest round", value, allowed));
        }
        if self.first_rounds < 2 {
            return Err(Error::new(
                "first rounds",
                self.first_rounds,
                "2 or more: a slope needs two rounds",
            ));
        }
        Ok(())
    }
}

/// Where in the halving sequence a session is.
#[derive(Clone, Copy, Debug)]
struct Halving {
    low: f64,
    top: f64,
    taken: u64,
}

/// The schedule of one session under way.
#[derive(Clone, Debug)]
pub struct WorkAmounts {
    rules: Schedule,
    /// Least work amount now: raised by what trial rounds and the speed show.
    low: f64,
    trial: f64,
    /// Work and seconds of the trial round before.
    before: Option<(f64, f64)>,
    line: Option<Line>,
    growing: VecDeque<f64>,
    halving: Option<Halving>,
    stage: i32,
    widest: f64,
}

impl WorkAmounts {
    /// A schedule at its start.
    pub fn new(mut rules: Schedule) -> Result<Self> {
        rules.check()?;
        if rules.whole {
            (rules.low, rules.high) = (rules.low.ceil(), rules.high.floor());
        }
        Ok(Self {
            rules,
            low: rules.low,
            trial: rules.low,
            before: None,
            line: None,
            growing: VecDeque::new(),
            halving: None,
            stage: 1,
            widest: 0.0,
        })
    }

    /// Least work amount now.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The work amount of the next round.
    pub fn next_amount(&mut self) -> f64 {
        let Some(line) = self.line else {
            return self.allowed(self.trial);
        };
        if let Some(amount) = self.growing.pop_front() {
            return self.allowed(amount);
        }
        if self
            .halving
            .is_some_and(|halving| halving.taken == STAGE_ROUNDS)
        {
            (self.stage, self.halving) = (self.stage + 1, None);
        }
        let mut halving = self.halving.unwrap_or_else(|| Halving {
            low: self.low,
            top: self.top(&line),
            taken: 0,
        });
        halving.taken += 1;
        self.halving = Some(halving);
        self.allowed(self::halving(halving.low, halving.top, halving.taken))
    }

    /// The work amount of the next round where unit readings of so many more seconds are wanted.
    ///
    /// At most twice the longest so far: what is known does not tell what a much longer round would do.
    pub fn next_for(&mut self, seconds: f64) -> f64 {
        let Some(line) = self.line else {
            return self.allowed(self.trial);
        };
        let wanted = (seconds * line.work_per_s)
            .max(self.low)
            .min(2.0 * self.trial)
            .min(self.most(&line));
        self.trial = self.trial.max(wanted);
        self.allowed(wanted)
    }

    /// Takes note of a round; says whether it is to be used.
    ///
    /// Trial rounds are set aside until one is not short, and does not spend most of its time on what is no work:
    /// that is so once twice the work takes half as long again (eq. 4.4: t(2w) >= 1.5 t(w) means that w is at
    /// least alpha times the speed).
    pub fn learn(&mut self, work: f64, seconds: f64) -> bool {
        let long_enough = seconds >= self.rules.short_round_s;
        let at_end = work >= self.rules.high;
        if self.line.is_some() {
            return long_enough || at_end;
        }
        let before = self.before.replace((work, seconds));
        let working = before.is_some_and(|(_, less_s)| seconds >= WORKING_RATIO * less_s);
        if !(at_end || long_enough && working) {
            self.trial = (2.0 * work).min(self.rules.high);
            return false;
        }
        let mut line = Line::through(before, work, seconds);
        if let Some(before) = before.filter(|_| long_enough && !working) {
            // Not even the most work outweighs what is no work: rounds differ as far as the range lets them.
            line = line.back_to(before, self.rules.short_round_s);
        }
        (self.low, self.trial) = (line.work, work);
        self.line = Some(line);
        self.growing = self.grown(&line);
        self.widest = self
            .growing
            .iter()
            .copied()
            .reduce(f64::max)
            .unwrap_or(2.0 * work);
        true
    }

    /// Plans no round of less work than this (end of section 4.2.1): too little of it would be stable.
    ///
    /// Followed up to the middle of what is planned, and taken back when the next estimate is lower: one wrong
    /// estimate must not make one round of the rest of the session.
    pub fn avoid(&mut self, work_amount: f64) {
        let Some(line) = self.line else { return };
        let middle = (line.work + self.top(&line)) / 2.0;
        let low = work_amount.max(line.work).min(middle);
        if !(self.low / LOW_CHANGE <= low && low <= self.low * LOW_CHANGE) {
            (self.low, self.halving) = (low, None);
        }
    }

    /// The most work that is planned for one round.
    fn most(&self, line: &Line) -> f64 {
        let fitting = line.work + line.work_per_s * (self.rules.longest_round_s - line.seconds);
        self.low.max(line.work).max(self.rules.high.min(fitting))
    }

    /// The end of the range of the halving sequence now.
    ///
    /// It doubles from stage to stage up to the most: the whole range at once would make the first of its rounds
    /// long ones, and the result late.
    fn top(&self, line: &Line) -> f64 {
        self.most(line).min(self.widest * 2.0_f64.powi(self.stage))
    }

    fn allowed(&self, wanted: f64) -> f64 {
        let amount = wanted.max(self.low).min(self.rules.high);
        if self.rules.whole {
            amount.round_ties_even()
        } else {
            amount
        }
    }

    /// Rounds that outlast each other by eq. 4.5's slice, up to the range's end.
    fn grown(&self, line: &Line) -> VecDeque<f64> {
        let rules = &self.rules;
        let fitting = (rules.first_result_s * (1.0 - GROWTH_SHARE) / line.seconds) as usize;
        let rounds = rules.first_rounds.min(fitting).max(2);
        let mut slice_s = slice_seconds(rules.first_result_s, line.seconds, rounds);
        if slice_s <= 0.0 {
            slice_s = line.seconds / 2.0;
        }
        let most = self.most(line);
        (1..rounds)
            .map(|step| line.work + line.work_per_s * slice_s * step as f64)
            .take_while(|&amount| amount <= most)
            .collect()
    }
}

/// What trial rounds tell: eq. 4.4 through the last two.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Of the last trial round.
    work: f64,
    /// That it took.
    seconds: f64,
    /// What each second more would do.
    work_per_s: f64,
}

impl Line {
    /// The line through two rounds; through one and the origin where there are no two that differ.
    fn through(before: Option<(f64, f64)>, work: f64, seconds: f64) -> Self {
        let positive_s = seconds.max(1e-9);
        let work_per_s = match before {
            Some((less, less_s)) if seconds > less_s && work > less => {
                (work - less) / (seconds - less_s)
            }
            _ => work / positive_s,
        };
        Self {
            work,
            seconds: positive_s,
            work_per_s,
        }
    }
    /// The same line from the round before on, or from where rounds take so many seconds.
    fn back_to(self, (work, seconds): (f64, f64), seconds_min: f64) -> Self {
        let seconds = seconds.max(seconds_min).min(self.seconds);
        let less = self.work - (self.seconds - seconds) * self.work_per_s;
        Self {
            work: work.max(less),
            seconds,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_halving_sequence_is_that_of_figure_4_3() {
        let found: Vec<f64> = (1..=15).map(|n| halving(0.0, 16.0, n)).collect();
        let expected = [8, 4, 12, 2, 6, 10, 14, 1, 3, 5, 7, 9, 11, 13, 15];
        assert_eq!(found, expected.map(f64::from));
        assert_eq!(halving(10.0, 20.0, 1), 15.0);
        assert_eq!(halving(10.0, 20.0, 8), 10.625);
    }

    #[test]
    fn rounds_a_slice_longer_than_the_last_take_the_time_to_the_first_result() {
        let slice_s = slice_seconds(60.0, 0.5, 50);
        let total_s: f64 = (0..50).map(|step| 0.5 + slice_s * f64::from(step)).sum();
        assert!((total_s - 60.0).abs() < 1e-9, "{total_s}");
        assert!(slice_seconds(10.0, 1.0, 50) < 0.0);
    }

    fn session(rules: Schedule, seconds: impl Fn(f64) -> f64, rounds: usize) -> Vec<(f64, bool)> {
        let mut schedule = WorkAmounts::new(rules).unwrap();
        (0..rounds)
            .map(|_| {
                let work = schedule.next_amount();
                (work, schedule.learn(work, seconds(work)))
            })
            .collect()
    }

    #[test]
    fn trial_rounds_double_until_one_is_long_and_works() {
        let rules = Schedule::over(1.0, 1e6);
        // Three seconds of set-up: long enough at once, working only once the work takes as long.
        let told = session(rules, |work| 3.0 + work / 10.0, 8);
        let trials: Vec<f64> = told
            .iter()
            .take_while(|(_, used)| !used)
            .map(|(work, _)| *work)
            .collect();
        assert_eq!(trials, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
        assert_eq!(told[6], (64.0, true));
        assert!(told[7].0 > 64.0);
    }

    #[test]
    fn rounds_differ_where_set_up_outweighs_the_whole_range() {
        let told = session(Schedule::over(1.0, 16.0), |work| 3.0 + work / 10.0, 20);
        assert_eq!(told[4], (16.0, true));
        let amounts: Vec<f64> = told[4..].iter().map(|(work, _)| *work).collect();
        assert!(amounts.iter().all(|work| (8.0..=16.0).contains(work)));
        assert!(
            amounts.iter().any(|&work| work < 10.0)
                && amounts[1..].windows(2).any(|two| two[0] != two[1])
        );
    }

    #[test]
    fn work_stays_in_its_range_and_whole() {
        let rules = Schedule {
            whole: true,
            ..Schedule::over(1.5, 900.9)
        };
        for (work, _) in session(rules, |work| 0.1 + work / 7.3, 200) {
            assert!(
                (2.0..=900.0).contains(&work) && work.fract() == 0.0,
                "{work}"
            );
        }
    }

    #[test]
    fn a_range_that_is_none_is_refused() {
        for (low, high) in [
            (0.0, 1.0),
            (-1.0, 1.0),
            (2.0, 1.0),
            (f64::NAN, 1.0),
            (1.0, f64::NAN),
            (1.0, f64::INFINITY),
        ] {
            assert!(WorkAmounts::new(Schedule::over(low, high)).is_err());
        }
        let rules = Schedule {
            whole: true,
            ..Schedule::over(1.2, 1.8)
        };
        assert!(WorkAmounts::new(rules).is_err());
    }
}
