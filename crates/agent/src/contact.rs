//! The dead man's switch: when everything is put back because the interface is silent, or has been killed. Pure; times
//! are since the machine was started.

use std::time::Duration;

/// How long the controllers may take to put everything back before their lease is ended.
pub const RESTORE_LIMIT: Duration = Duration::from_secs(5);
/// Until the controllers are asked again where something could not be put back.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// The lease outlasts the agent's own patience by this, or by two ticks.
const MARGIN: Duration = Duration::from_secs(2);

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The controllers are to put everything back.
    Restore,
    /// They do not answer: their lease is to end, so that everything is put back without them.
    End,
}

/// What an agent knows of the interface and of its own knobs.
#[derive(Clone, Debug)]
pub struct Contact {
    patience: Duration,
    margin: Duration,
    heard: Duration,
    /// The interface says that the session is killed.
    killed: bool,
    touched: bool,
    /// Since when the controllers are at it.
    restoring: Option<Duration>,
    /// Something is to be set after that.
    sets_after: bool,
    /// Not everything could be put back: when they are asked again.
    again_at: Duration,
}

impl Contact {
    /// The interface was heard just now.
    pub fn new(patience: Duration, interval: Duration, now: Duration) -> Self {
        Self {
            patience,
            margin: MARGIN.max(2 * interval),
            heard: now,
            killed: false,
            touched: false,
            restoring: None,
            sets_after: false,
            again_at: Duration::ZERO,
        }
    }

    /// The interface was heard.
    pub fn heard(&mut self, now: Duration) {
        self.heard = self.heard.max(now);
    }

    /// The interface was heard, and says whether the session is killed.
    pub fn beat(&mut self, now: Duration, killed: bool) {
        self.heard(now);
        self.killed = killed;
    }

    /// Whether the session is killed, as far as is known here.
    pub fn killed(&self) -> bool {
        self.killed
    }

    /// When the lease runs out.
    pub fn lease(&self) -> Duration {
        self.heard + self.patience + self.margin
    }

    /// Whether a knob may differ from its initial value.
    pub fn touched(&self) -> bool {
        self.touched
    }

    /// The controllers are asked to set something.
    pub fn sets(&mut self) {
        self.touched = true;
        self.sets_after = true;
    }

    /// The controllers are asked to put everything back.
    pub fn restores(&mut self, now: Duration) {
        self.restoring.get_or_insert(now);
        self.sets_after = false;
    }

    /// The controllers have done all that they were asked for.
    pub fn settled(&mut self, touched: bool, now: Duration) {
        self.touched = touched;
        // What was set after it is no sign that it has failed.
        if self.restoring.take().is_some() && touched && !self.sets_after {
            self.again_at = now + RETRY_AFTER;
        }
    }

    /// Whether the silence has lasted too long.
    pub fn is_forgotten(&self, now: Duration) -> bool {
        self.touched && now.saturating_sub(self.heard) > self.patience
    }

    /// What is due.
    pub fn due(&mut self, now: Duration) -> Option<Step> {
        match self.restoring {
            Some(since) if now.saturating_sub(since) > RESTORE_LIMIT => {
                // Once more in as long, if they still do not answer.
                self.restoring = Some(now);
                Some(Step::End)
            }
            Some(_) => None,
            None if now < self.again_at => None,
            None if self.is_forgotten(now) || (self.killed && self.touched) => Some(Step::Restore),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn contact() -> Contact {
        Contact::new(30 * S, S, 100 * S)
    }

    #[test]
    fn a_silent_interface_has_changed_knobs_put_back() {
        let mut contact = contact();
        assert_eq!(contact.due(1000 * S), None);
        contact.sets();
        contact.heard(110 * S);
        assert_eq!(contact.due(140 * S), None);
        assert_eq!(contact.due(141 * S), Some(Step::Restore));
        assert_eq!(contact.lease(), 142 * S);
        contact.restores(141 * S);
        assert_eq!(contact.due(142 * S), None);
        contact.settled(false, 143 * S);
        assert_eq!(contact.due(500 * S), None);
    }

    #[test]
    fn an_interface_that_says_it_was_killed_has_changed_knobs_put_back_at_once() {
        let mut contact = contact();
        contact.sets();
        contact.beat(100 * S, false);
        assert_eq!(contact.due(100 * S), None);
        contact.beat(100 * S, true);
        assert_eq!(contact.due(100 * S), Some(Step::Restore));
        // What could not be put back is tried again, later.
        contact.restores(100 * S);
        contact.settled(true, 101 * S);
        assert_eq!(contact.due(102 * S), None);
        assert_eq!(contact.due(111 * S), Some(Step::Restore));
    }

    #[test]
    fn what_was_set_after_everything_was_put_back_is_put_back_at_once() {
        let mut contact = contact();
        contact.sets();
        contact.beat(100 * S, true);
        contact.restores(100 * S);
        // An order that was late.
        contact.sets();
        contact.settled(true, 101 * S);
        assert_eq!(contact.due(101 * S), Some(Step::Restore));
    }

    #[test]
    fn controllers_that_do_not_answer_lose_their_lease() {
        let mut contact = contact();
        contact.sets();
        contact.restores(100 * S);
        contact.restores(104 * S);
        assert_eq!(contact.due(105 * S), None);
        assert_eq!(contact.due(106 * S), Some(Step::End));
        assert_eq!(contact.due(107 * S), None);
        assert!(contact.touched());
    }
}
