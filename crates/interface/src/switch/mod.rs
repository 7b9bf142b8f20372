//! The kill switch and the mode, in force and on disk. Pure: the disk, the thread that waits for it and the time are
//! somebody else's.
//!
//! What makes the session more careful is in force before it is written, and where it cannot be written the next start
//! is killed ([`Slots::keep`](crate::state::Slots::keep)). What makes it less careful is written before it is in force.
//! Either is told as done when it is on disk: the switch makes drafts ([`Switch::draft`]), hears in the order of the
//! writes what came of them ([`Switch::kept`]), and says then which deeds have ended. A draft stands for all before
//! it, so that those may be left out while the disk is busy.
//!
//! A deed that could not be written is told as refused after the next draft: a write that failed may have been done all the
//! same, and is written over by then.

mod remembered;
mod wish;

pub use self::wish::{Deed, Ended};

use serde_json::{Value, json};

use self::remembered::Remembered;
use self::wish::Wish;
use crate::config::Mode;
use crate::fallback::{Event, Fallback};
use crate::kill::Kill;
use crate::state::{Caution, Draft, Outcome, Recalled};

/// The switch.
#[derive(Debug)]
pub struct Switch {
    mode: Mode,
    /// Whether the setting may be changed.
    pub fallback: Fallback,
    /// While the session is killed: who has confirmed it.
    pub kill: Option<Kill>,
    wishes: Vec<Wish>,
    tickets: u64,
    /// Number of the last draft, and of the last one that is on disk.
    drafted: u64,
    stored: u64,
    /// Of the first draft that tells of the kill.
    kill_number: u64,
    /// What is on disk may be less careful than what is in force.
    is_draft_due: bool,
    /// Why the state is not on disk.
    fault: Option<String>,
}

/// What a start finds besides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The other parts of the state: an object.
    pub rest: Value,
    /// What cannot be read.
    pub damage: Option<String>,
}

impl Switch {
    /// Takes up what is on disk. `mode` is the file's: of both modes the more careful one holds. `former` is the state of
    /// an earlier version, and may be unreadable. The session is killed, and only observes, unless everything that is
    /// there can be read.
    pub fn start(
        recalled: Recalled,
        mode: Mode,
        former: Option<Result<String, String>>,
        is_right: impl Fn(&Value) -> bool,
    ) -> (Self, Found) {
        let Recalled { text, mut damage } = recalled;
        let mut switch = Self {
            mode,
            fallback: Fallback::default(),
            kill: None,
            wishes: Vec::new(),
            tickets: 0,
            drafted: 0,
            stored: 0,
            kill_number: 0,
            is_draft_due: false,
            fault: None,
        };
        let mut rest = None;
        for text in text.map(Ok).into_iter().chain(former) {
            let state = text.and_then(|text| {
                Remembered::parse(&text, &is_right).ok_or("a part is missing or wrong".to_owned())
            });
            match state {
                Err(why) => {
                    damage.get_or_insert(why);
                }
                Ok(state) => {
                    if state.killed {
                        switch.fallback.on(Event::Kill);
                        switch.kill = switch.kill.or(state.kill);
                    }
                    switch.mode = switch.mode.min(state.mode);
                    rest.get_or_insert(state.rest);
                }
            }
        }
        if damage.is_some() {
            // What was chosen last may be what cannot be read.
            switch.fallback.on(Event::Kill);
            switch.mode = Mode::Observe;
        }
        let rest = rest.unwrap_or_else(|| json!({}));
        (switch, Found { rest, damage })
    }

    /// The mode in force.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether the session is killed.
    pub fn killed(&self) -> bool {
        self.fallback.killed()
    }

    /// Why the state is not on disk; none also while it is being written.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Why a new start might not know of the kill; none where it will.
    pub fn not_stored(&self) -> Option<&str> {
        let is_waiting = self.stored < self.kill_number;
        self.fault().or(is_waiting.then_some("it is being written"))
    }

    /// Whether [`Switch::draft`] is to be called without any other cause.
    pub fn is_draft_due(&self) -> bool {
        self.is_draft_due
    }

    /// The state as it is to be written now. `rest`: its other parts.
    pub fn draft(&mut self, rest: &Value) -> Draft {
        let wanted = |wish: &&Wish| wish.refused.is_none();
        let is_revived = self
            .wishes
            .iter()
            .filter(wanted)
            .any(|it| it.deed == Deed::Revive);
        let killed = self.killed() && !is_revived;
        let mut modes = self
            .wishes
            .iter()
            .filter(wanted)
            .filter_map(|it| match it.deed {
                Deed::Mode(mode) => Some(mode),
                Deed::Revive => None,
            });
        let mode = modes.next_back().unwrap_or(self.mode);
        let mut state = rest.clone();
        state["version"] = json!(1);
        state["killed"] = json!(killed);
        state["kill"] = if killed {
            json!(self.kill)
        } else {
            Value::Null
        };
        state["mode"] = json!(mode);
        self.drafted += 1;
        self.is_draft_due = false;
        Draft {
            number: self.drafted,
            text: state.to_string(),
            caution: Caution { killed, mode },
        }
    }

    /// Takes in what came of a draft. Returns the deeds that have ended with it.
    pub fn kept(&mut self, outcome: Outcome) -> Vec<Ended> {
        let Outcome { number, kept } = outcome;
        self.fault = kept.as_ref().err().cloned();
        let next = self.drafted + 1;
        match kept {
            Ok(()) => self.stored = number,
            Err(why) => {
                for wish in self.wishes.iter_mut().filter(|it| it.number <= number) {
                    let is_in_force = wish.deed == Deed::Mode(self.mode);
                    if wish.refused.is_none() && !is_in_force {
                        wish.refuse(next, &why);
                        self.is_draft_due = true;
                    }
                }
            }
        }
        let (ended, waiting) = std::mem::take(&mut self.wishes)
            .into_iter()
            .partition(|it| it.number <= number);
        self.wishes = waiting;
        let ended: Vec<Wish> = ended;
        ended.into_iter().map(|wish| self.end(wish)).collect()
    }

    fn end(&mut self, wish: Wish) -> Ended {
        let Wish {
            ticket,
            deed,
            refused,
            ..
        } = wish;
        match (&refused, deed) {
            (Some(_), _) => {}
            (None, Deed::Mode(mode)) => self.mode = mode,
            (None, Deed::Revive) => {
                self.fallback.on(Event::Revive);
                self.kill = None;
            }
        }
        let done = refused.map_or(Ok(()), Err);
        Ended { ticket, deed, done }
    }

    /// Pulls the switch: it is in force at once, and to be drafted.
    pub fn kill(&mut self, kill: Kill) {
        self.fallback.on(Event::Kill);
        self.kill = Some(kill);
        self.kill_number = self.drafted + 1;
        let is_other = |deed: Deed| deed == Deed::Revive;
        self.supersede(is_other, "the session was killed again meanwhile");
    }

    /// Wants a deed, which is to be drafted. Returns the ticket by which its end is told. A more careful mode is in force at
    /// once.
    pub fn want(&mut self, deed: Deed) -> u64 {
        if let Deed::Mode(mode) = deed {
            self.mode = self.mode.min(mode);
            let is_other = |deed: Deed| matches!(deed, Deed::Mode(_));
            self.supersede(is_other, "another mode was chosen meanwhile");
        }
        self.tickets += 1;
        self.wishes.push(Wish {
            ticket: self.tickets,
            deed,
            number: self.drafted + 1,
            refused: None,
        });
        self.tickets
    }

    /// Deeds that are not done yet end undone, with the next draft.
    fn supersede(&mut self, is_other: impl Fn(Deed) -> bool, why: &str) {
        let number = self.drafted + 1;
        let others = self.wishes.iter_mut().filter(|it| is_other(it.deed));
        others.for_each(|it| it.refuse(number, why));
    }
}
