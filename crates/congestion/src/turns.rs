//! Turns: how many files of a stream, or streams to a server, may have requests under way at once.
//!
//! A disk reads on behind as many sequential readers as its buffer has segments. Beyond that a window on requests wins
//! nothing back, for the requests of many files still interleave; a window on files does. Files take turns as processes
//! do under the kernel's budget fair queueing (Valente and Checconi, "High Throughput Disk Scheduling with Fair Bandwidth
//! Distribution", IEEE Transactions on Computers 59(9), 2010): a file keeps its turn until its time is over or it has
//! asked for nothing for a while, and only while others wait.

/// Time from any beginning that stays the same.
pub type Nanos = u64;

/// A file whose requests may be under way.
#[derive(Debug, Clone, Copy)]
struct Turn {
    object: u32,
    ends_ns: Nanos,
    in_flight: u32,
    /// Since when nothing of it is under way, and nothing waits.
    idle_since_ns: Nanos,
}

/// The turns of a stream's files; or of a server's streams, each of which is an object here.
#[derive(Debug)]
pub struct Turns {
    most: usize,
    turn_ns: Nanos,
    idle_ns: Nanos,
    patience_ns: Nanos,
    turns: Vec<Turn>,
    /// When the stream is woken because a turn ends.
    pub due_ns: Option<Nanos>,
}

impl Turns {
    /// Turns of so long for so many files at once; one that asks for nothing for `idle_ns` gives its turn away.
    #[must_use]
    pub fn new(most: u32, turn_ns: Nanos, idle_ns: Nanos) -> Turns {
        Turns {
            most: most as usize,
            turn_ns,
            idle_ns,
            patience_ns: Nanos::MAX,
            turns: Vec::new(),
            due_ns: None,
        }
    }

    /// Requests under way hold a turn that is over for no longer than this; without it, until they are answered.
    #[must_use]
    pub fn with_patience(self, patience_ns: Nanos) -> Turns {
        Turns {
            patience_ns,
            ..self
        }
    }

    /// Whether a file has a turn, over or not.
    #[must_use]
    pub fn has(&self, object: u32) -> bool {
        self.turns.iter().any(|turn| turn.object == object)
    }

    /// Takes the turns away that others may have now.
    pub fn give_away(&mut self, now: Nanos) {
        let (idle_ns, patience_ns) = (self.idle_ns, self.patience_ns);
        self.turns
            .retain(|turn| now < turn.given_away_ns(idle_ns, patience_ns));
    }

    /// A file asks for nothing any more.
    pub fn end(&mut self, object: u32) {
        self.turns.retain(|turn| turn.object != object);
    }

    /// So many requests of a file are under way now.
    pub fn note(&mut self, object: u32, in_flight: u32, now: Nanos) {
        if let Some(turn) = self.turns.iter_mut().find(|turn| turn.object == object) {
            turn.in_flight = in_flight;
            turn.idle_since_ns = now;
        }
    }

    /// A request of a file waits: whether the file has a turn, over or not. It is not idle, whatever holds it back.
    pub fn waits(&mut self, object: u32, now: Nanos) -> bool {
        let turn = self.turns.iter_mut().find(|turn| turn.object == object);
        turn.is_some_and(|turn| {
            turn.idle_since_ns = now;
            true
        })
    }

    /// Whether a request of this file may leave now; it has a turn then.
    ///
    /// `others_wait` says whether requests of files without a turn wait.
    pub fn admits(&mut self, object: u32, now: Nanos, others_wait: bool) -> bool {
        let ends_ns = now + self.turn_ns;
        if let Some(turn) = self.turns.iter_mut().find(|turn| turn.object == object) {
            if now >= turn.ends_ns && !others_wait {
                turn.ends_ns = ends_ns;
            }
            if now < turn.ends_ns {
                return true;
            }
            // Its turn is over: whoever waits without one takes the place.
            return false;
        }
        if self.turns.len() == self.most {
            self.give_away(now);
        }
        if self.turns.len() == self.most {
            return false;
        }
        self.turns.push(Turn {
            object,
            ends_ns,
            in_flight: 0,
            idle_since_ns: now,
        });
        true
    }

    /// A request of a file with a turn is under way.
    pub fn sent(&mut self, object: u32) {
        if let Some(turn) = self.turns.iter_mut().find(|turn| turn.object == object) {
            turn.in_flight += 1;
        }
    }

    /// A request of a file has been answered.
    pub fn answered(&mut self, object: u32, now: Nanos) {
        if let Some(turn) = self.turns.iter_mut().find(|turn| turn.object == object) {
            // Of requests that left before there were turns nothing was noted.
            turn.in_flight = turn.in_flight.saturating_sub(1);
            turn.idle_since_ns = now;
        }
    }

    /// When a turn is given away next, if nothing is asked for or answered until then.
    #[must_use]
    pub fn next_ns(&self) -> Option<Nanos> {
        let ends = self.turns.iter();
        ends.map(|turn| turn.given_away_ns(self.idle_ns, self.patience_ns))
            .filter(|at| *at < Nanos::MAX)
            .min()
    }
}

impl Turn {
    /// When others get its turn, if nothing is asked for or answered until then.
    fn given_away_ns(&self, idle_ns: Nanos, patience_ns: Nanos) -> Nanos {
        if self.in_flight > 0 {
            return self.ends_ns.saturating_add(patience_ns);
        }
        self.ends_ns.min(self.idle_since_ns + idle_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_turn_until_its_time_is_over_or_it_is_idle() {
        let mut turns = Turns::new(1, 100, 10);
        assert!(turns.admits(7, 0, false));
        turns.sent(7);
        assert!(!turns.admits(8, 5, true), "the only turn is taken");
        turns.answered(7, 20);
        assert!(!turns.admits(8, 29, true) && turns.next_ns() == Some(30));
        assert!(turns.admits(7, 29, true), "it asks again in time");
        turns.sent(7);
        turns.answered(7, 98);
        assert!(turns.admits(7, 99, true) && !turns.admits(7, 100, true));
        assert!(turns.admits(8, 100, true) && !turns.waits(7, 100));
    }

    #[test]
    fn requests_under_way_hold_a_turn_that_is_over() {
        let mut turns = Turns::new(1, 100, 10);
        assert!(turns.admits(7, 0, false));
        turns.sent(7);
        assert!(!turns.admits(7, 150, true) && !turns.admits(8, 150, true));
        assert_eq!(turns.next_ns(), None, "the answer wakes the stream");
        turns.answered(7, 160);
        assert!(turns.admits(8, 160, true));
    }

    #[test]
    fn requests_that_nobody_answers_hold_a_turn_for_no_longer_than_the_patience() {
        let mut turns = Turns::new(1, 100, 10).with_patience(40);
        assert!(turns.admits(7, 0, false));
        turns.note(7, 3, 0);
        assert_eq!(turns.next_ns(), Some(140));
        assert!(!turns.admits(8, 139, true) && turns.has(7));
        assert!(turns.admits(8, 140, true) && !turns.has(7));
        turns.note(7, 2, 150);
        turns.end(8);
        assert!(turns.admits(7, 150, false), "what ends makes room at once");
    }

    #[test]
    fn a_turn_goes_on_where_nobody_waits() {
        let mut turns = Turns::new(2, 100, 10);
        assert!(
            turns.admits(7, 0, false) && turns.admits(7, 500, false) && turns.admits(8, 500, false)
        );
        assert!(
            turns.admits(9, 900, false),
            "a file that has stopped makes room"
        );
    }
}
