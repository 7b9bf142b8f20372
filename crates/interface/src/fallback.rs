//! Falling back: whether the setting may be changed, and to what it goes back when it may not. Pure.
//!
//! An interface is in one of four states. Three causes lead out of `tuning`; each has an event that begins it and one
//! that ends it (a hold ends by itself). The strongest cause present is the state.
//!
//! | state     | begins with                   | the setting                    | ends with              |
//! |-----------|-------------------------------|--------------------------------|------------------------|
//! | `tuning`  | no cause                      | follows the accepted actions   | any cause              |
//! | `storage` | ticks could not be stored     | stays                          | a tick stored          |
//! | `holding` | a floor was violated          | last good one                  | `hold_ticks` later     |
//! | `killed`  | the kill switch               | initial one                    | revive                 |

/// What the interface does with actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Judges them.
    Tuning,
    /// Refuses them, because what comes of them could not be stored.
    Storage,
    /// Refuses them, because the last setting violated a floor.
    Holding,
    /// Refuses them until somebody revives the session.
    Killed,
}

/// What happens to an interface.
#[derive(Clone, Debug)]
pub enum Event {
    /// A floor was violated in a tick.
    Violated {
        /// The tick.
        tick: i64,
        /// For so long nothing is changed.
        hold_ticks: u64,
        /// Of the hold.
        why: String,
    },
    /// Somebody used the kill switch.
    Kill,
    /// Somebody switched it off again.
    Revive,
    /// Ticks could not be stored.
    Unstored(String),
    /// A tick was stored.
    Stored,
}

/// What an event puts back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restore {
    /// Nothing.
    Nothing,
    /// The last setting that kept every floor.
    LastGood,
    /// What was in force before the session.
    Initial,
}

/// The state, by its causes.
#[derive(Clone, Debug, Default)]
pub struct Fallback {
    killed: bool,
    hold: Option<(i64, String)>,
    unstored: Option<String>,
}

impl Fallback {
    /// The state in a tick.
    pub fn state(&self, tick: i64) -> State {
        let held = self.hold.as_ref().is_some_and(|(until, _)| tick < *until);
        match (self.killed, held, &self.unstored) {
            (true, _, _) => State::Killed,
            (false, true, _) => State::Holding,
            (false, false, Some(_)) => State::Storage,
            (false, false, None) => State::Tuning,
        }
    }

    /// Takes an event in.
    pub fn on(&mut self, event: Event) -> Restore {
        match event {
            Event::Violated {
                tick,
                hold_ticks,
                why,
            } => {
                let until = tick.saturating_add_unsigned(hold_ticks);
                self.hold = Some((until, format!("holding until tick {until}: {why}")));
                // What the kill switch has put back stays.
                if self.killed {
                    Restore::Nothing
                } else {
                    Restore::LastGood
                }
            }
            Event::Kill => {
                self.killed = true;
                Restore::Initial
            }
            Event::Revive => {
                self.killed = false;
                Restore::Nothing
            }
            Event::Unstored(why) => {
                self.unstored = Some(format!("storage: {why}"));
                Restore::Nothing
            }
            Event::Stored => {
                self.unstored = None;
                Restore::Nothing
            }
        }
    }

    /// Why actions are refused in a tick, the state's name first; none while tuning.
    pub fn reason(&self, tick: i64) -> Option<&str> {
        match self.state(tick) {
            State::Killed => Some("killed"),
            _ => self.reason_unless_killed(tick),
        }
    }

    /// The same, as if the kill switch had not been used.
    pub fn reason_unless_killed(&self, tick: i64) -> Option<&str> {
        let held = self.hold.as_ref().filter(|(until, _)| tick < *until);
        held.map(|(_, why)| why)
            .or(self.unstored.as_ref())
            .map(String::as_str)
    }

    /// Whether the kill switch is on.
    pub fn killed(&self) -> bool {
        self.killed
    }

    /// Whether the last ticks are on disk.
    pub fn stored(&self) -> bool {
        self.unstored.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::State::{Holding, Killed, Storage, Tuning};
    use super::*;

    const HOLD: u64 = 2;

    fn events(tick: i64) -> [Option<Event>; 6] {
        let violated = Event::Violated {
            tick,
            hold_ticks: HOLD,
            why: "the mean of m was 1, less than 2".to_owned(),
        };
        [
            None,
            Some(violated),
            Some(Event::Kill),
            Some(Event::Revive),
            Some(Event::Unstored("full".to_owned())),
            Some(Event::Stored),
        ]
    }

    /// A state that only one cause explains.
    fn at(state: State) -> Fallback {
        let mut found = Fallback::default();
        let [_, violated, kill, _, unstored, _] = events(0);
        let cause = match state {
            Tuning => None,
            Storage => unstored,
            Holding => violated,
            Killed => kill,
        };
        if let Some(event) = cause {
            found.on(event);
        }
        found
    }

    #[test]
    fn every_event_leads_from_every_state_where_the_table_says() {
        use Restore::{Initial, LastGood, Nothing};
        // Nothing, violated, kill, revive, unstored, stored: one tick later, while a hold lasts.
        let table = [
            (Tuning, [Tuning, Holding, Killed, Tuning, Storage, Tuning]),
            (
                Storage,
                [Storage, Holding, Killed, Storage, Storage, Tuning],
            ),
            (
                Holding,
                [Holding, Holding, Killed, Holding, Holding, Holding],
            ),
            (Killed, [Killed, Killed, Killed, Tuning, Killed, Killed]),
        ];
        for (from, into) in table {
            for (event, wanted) in events(1).into_iter().zip(into) {
                let mut found = at(from);
                let restores = match (&event, from) {
                    (Some(Event::Violated { .. }), Killed) => Nothing,
                    (Some(Event::Violated { .. }), _) => LastGood,
                    (Some(Event::Kill), _) => Initial,
                    _ => Nothing,
                };
                let restored = event.clone().map_or(Nothing, |event| found.on(event));
                assert_eq!(found.state(1), wanted, "{from:?}, {event:?}");
                assert_eq!(restored, restores, "{from:?}, {event:?}");
            }
        }
    }

    #[test]
    fn after_any_six_events_the_state_is_the_strongest_cause_present() {
        for mut number in 0..6_usize.pow(6) {
            let mut fallback = Fallback::default();
            let (mut killed, mut until, mut unstored) = (false, i64::MIN, false);
            for tick in 0..6 {
                let kind = number % 6;
                number /= 6;
                if let Some(event) = events(tick)[kind].clone() {
                    fallback.on(event);
                }
                match kind {
                    1 => until = tick + HOLD as i64,
                    2 => killed = true,
                    3 => killed = false,
                    4 => unstored = true,
                    5 => unstored = false,
                    _ => {}
                }
                let causes = [
                    (killed, Killed),
                    (tick < until, Holding),
                    (unstored, Storage),
                ];
                let strongest = causes.into_iter().find(|it| it.0).map_or(Tuning, |it| it.1);
                assert_eq!(fallback.state(tick), strongest);
                let reason = fallback.reason(tick);
                let name = format!("{strongest:?}").to_lowercase();
                assert_eq!(reason.is_none(), strongest == Tuning);
                assert!(reason.is_none_or(|it| it.starts_with(&name)));
            }
        }
    }
}
