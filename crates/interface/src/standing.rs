//! Whether a node is listened to. One that breaks a limit is cut off: it is named, what is known of it is forgotten,
//! and for a while nothing of it is read. Then its next hello decides.

/// A message counts as one for each so many bytes that it has.
const MESSAGE_BYTES: usize = 4096;
/// So many messages of a node are read in a tick, over a time;
const MESSAGES_A_TICK: i64 = 8;
/// and so many at once, for a node whose messages were held up.
const MESSAGES_MAX: i64 = 512;
/// So many ticks between two layouts, over a time: each is stored for good;
const TICKS_A_LAYOUT: i64 = 600;
/// and so many at once.
const LAYOUTS_MAX: i64 = 64;
/// A node that was cut off is looked at again after so many ticks.
const AGAIN_TICKS: i64 = 30;

/// How a node has behaved.
#[derive(Debug)]
pub struct Standing {
    cut_off: Option<CutOff>,
    was_named: bool,
    messages: Allowance,
    layouts: Allowance,
}

/// What may be used now; it grows from tick to tick.
#[derive(Debug)]
struct Allowance {
    left: i64,
    most: i64,
    a_tick: i64,
    tick: i64,
}

impl Allowance {
    fn new(most: i64, a_tick: i64) -> Self {
        Self {
            left: most,
            most,
            a_tick,
            tick: i64::MIN,
        }
    }

    /// Takes so much, if it is there.
    fn take(&mut self, cost: i64, tick: i64) -> bool {
        let passed = tick.saturating_sub(self.tick).clamp(0, self.most);
        self.tick = self.tick.max(tick);
        self.left = (self.left + passed * self.a_tick).min(self.most);
        let is_there = self.left >= cost;
        self.left -= if is_there { cost } else { 0 };
        is_there
    }
}

#[derive(Debug)]
struct CutOff {
    reason: String,
    /// From then on a hello is looked at.
    again_tick: i64,
    /// From then on it is asked for one.
    ask_tick: i64,
}

/// What is to be done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// Read it.
    Read,
    /// Pass over it.
    PassOver,
    /// Pass over it, and ask the node for a hello, which may set things right.
    Ask,
    /// There are too many: cut the node off.
    TooMany,
}

impl Default for Standing {
    fn default() -> Self {
        Self {
            cut_off: None,
            was_named: false,
            messages: Allowance::new(MESSAGES_MAX, MESSAGES_A_TICK),
            layouts: Allowance::new(LAYOUTS_MAX * TICKS_A_LAYOUT, 1),
        }
    }
}

impl Standing {
    /// Why it is cut off.
    pub fn reason(&self) -> Option<&str> {
        self.cut_off.as_ref().map(|it| it.reason.as_str())
    }

    /// What is to be done with a message that comes in this tick.
    pub fn hear(&mut self, is_hello: bool, bytes: usize, tick: i64) -> Hearing {
        if let Some(cut_off) = &mut self.cut_off {
            let after = tick.saturating_add(AGAIN_TICKS);
            if tick < cut_off.again_tick {
                return Hearing::PassOver;
            }
            if is_hello {
                cut_off.again_tick = after;
                return Hearing::Read;
            }
            if tick < cut_off.ask_tick {
                return Hearing::PassOver;
            }
            cut_off.ask_tick = after;
            return Hearing::Ask;
        }
        let cost = (1 + bytes / MESSAGE_BYTES) as i64;
        if self.messages.take(cost.min(MESSAGES_MAX / 2), tick) {
            Hearing::Read
        } else {
            Hearing::TooMany
        }
    }

    /// It has another layout.
    ///
    /// # Errors
    /// When it had too many.
    pub fn take_layout(&mut self, tick: i64) -> Result<(), String> {
        if self.layouts.take(TICKS_A_LAYOUT, tick) {
            return Ok(());
        }
        Err(format!(
            "layouts: another one again: allowed are {LAYOUTS_MAX} at once, and one in {TICKS_A_LAYOUT} ticks"
        ))
    }

    /// Cuts it off. Returns whether that is said in the log: once for each node.
    pub fn cut_off(&mut self, reason: String, tick: i64) -> bool {
        self.cut_off = Some(CutOff {
            reason,
            again_tick: tick.saturating_add(AGAIN_TICKS),
            ask_tick: tick,
        });
        !std::mem::replace(&mut self.was_named, true)
    }

    /// It keeps its limits again.
    pub fn let_in(&mut self) {
        self.cut_off = None;
    }

    /// What is said of too many messages.
    pub fn too_many() -> String {
        format!(
            "messages of {MESSAGE_BYTES} bytes: more than {MESSAGES_A_TICK} a tick: allowed are {MESSAGES_MAX} at once"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_off_and_a_hello_lets_in_again() {
        let mut standing = Standing::default();
        let read = (0..10_000).take_while(|_| standing.hear(false, 100, 100) == Hearing::Read);
        assert_eq!(read.count() as i64, MESSAGES_MAX);
        assert_eq!(standing.hear(false, 100, 100), Hearing::TooMany);
        assert!(standing.cut_off(Standing::too_many(), 100));
        assert!((100..130).all(|tick| standing.hear(true, 100, tick) == Hearing::PassOver));
        assert_eq!(standing.hear(false, 100, 130), Hearing::Ask);
        assert_eq!(standing.hear(false, 100, 130), Hearing::PassOver);
        assert_eq!(standing.hear(true, 100, 130), Hearing::Read);
        // That hello was no better, and is not said again.
        assert!(!standing.cut_off("names".to_owned(), 130));
        assert_eq!(standing.hear(true, 100, 131), Hearing::PassOver);
        assert_eq!(standing.hear(true, 100, 160), Hearing::Read);
        standing.let_in();
        assert_eq!(
            (standing.hear(false, 100, 160), standing.reason()),
            (Hearing::Read, None)
        );
    }

    #[test]
    fn what_was_held_up_may_come_at_once() {
        let mut standing = Standing::default();
        assert!((0..300).all(|_| standing.hear(false, 100, 300) == Hearing::Read));
        let mut long = Standing::default();
        let read = (0..1000).take_while(|_| long.hear(true, 60_000, 300) == Hearing::Read);
        assert_eq!(read.count() as i64, MESSAGES_MAX / 15);
        assert!((0..LAYOUTS_MAX).all(|_| standing.take_layout(300).is_ok()));
        assert!(standing.take_layout(300).is_err());
        assert!(standing.take_layout(300 + TICKS_A_LAYOUT).is_ok());
        assert!(
            (301..10_000)
                .all(|tick| (0..8).all(|_| standing.hear(false, 100, tick) == Hearing::Read))
        );
    }
}
