//! The kill switch and the mode, in force and on disk. Pure: the disk and the time are arguments.
//!
//! What makes the session more careful is in force before it is written, and where it cannot be written the next start
//! is killed ([`Slots::keep`]). What makes it less careful is written before it is in force.

use serde_json::{Value, json};

use crate::config::Mode;
use crate::fallback::{Event, Fallback};
use crate::kill::Kill;
use crate::state::{Disk, Recalled, Slots};

/// The switch.
#[derive(Debug)]
pub struct Switch<D> {
    mode: Mode,
    /// Whether the setting may be changed.
    pub fallback: Fallback,
    /// While the session is killed: who has confirmed it.
    pub kill: Option<Kill>,
    slots: Slots<D>,
    /// The mode on disk.
    stored_mode: Mode,
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

/// A state's own parts.
struct Remembered {
    killed: bool,
    mode: Mode,
    kill: Option<Kill>,
    rest: Value,
}

impl Remembered {
    /// None where a part is missing or wrong; `is_right` judges the other parts.
    fn parse(text: &str, is_right: impl Fn(&Value) -> bool) -> Option<Self> {
        let mut state: Value = serde_json::from_str(text).ok()?;
        let mut part = |key: &str| state.get_mut(key).map(Value::take);
        let found = Self {
            killed: part("killed")?.as_bool()?,
            mode: serde_json::from_value(part("mode")?).ok()?,
            // Earlier versions had none.
            kill: serde_json::from_value(part("kill").unwrap_or_default()).ok()?,
            rest: state,
        };
        is_right(&found.rest).then_some(found)
    }
}

impl<D: Disk> Switch<D> {
    /// Reads the state. `mode` is the file's: of both modes the more careful one holds. `former` is the state of an
    /// earlier version, and may be unreadable. The session is killed, and only observes, unless everything that is there
    /// can be read.
    pub fn start(
        disk: D,
        mode: Mode,
        former: Option<Result<String, String>>,
        is_right: impl Fn(&Value) -> bool,
    ) -> (Self, Found) {
        let (slots, Recalled { text, mut damage }) = Slots::open(disk);
        let mut switch = Self {
            mode,
            fallback: Fallback::default(),
            kill: None,
            slots,
            stored_mode: mode,
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

    /// Why the state is not on disk.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Writes the state. `rest`: its other parts.
    ///
    /// # Errors
    /// Why it could not be written.
    pub fn keep(&mut self, rest: &Value) -> Result<(), String> {
        let killed = self.killed();
        let mut state = rest.clone();
        state["version"] = json!(1);
        state["killed"] = json!(killed);
        state["kill"] = json!(self.kill);
        state["mode"] = json!(self.mode);
        let is_more_careful = killed || self.mode < self.stored_mode;
        let kept = self.slots.keep(&state.to_string(), is_more_careful);
        if kept.is_ok() {
            self.stored_mode = self.mode;
        }
        self.fault = kept.as_ref().err().cloned();
        kept
    }

    /// Where the state lies.
    pub fn disk(&mut self) -> &mut D {
        self.slots.disk()
    }

    /// The same, when the interface has ended.
    pub fn into_disk(self) -> D {
        self.slots.into_disk()
    }

    /// Pulls the switch: it is in force at once, and to be kept.
    pub fn kill(&mut self, kill: Kill) {
        self.fallback.on(Event::Kill);
        self.kill = Some(kill);
    }

    /// Ends a kill, once that is on disk.
    ///
    /// # Errors
    /// Why the session stays killed.
    pub fn revive(&mut self, rest: &Value) -> Result<(), String> {
        self.fallback.on(Event::Revive);
        let kill = self.kill.take();
        self.keep(rest).inspect_err(|_| {
            self.fallback.on(Event::Kill);
            self.kill = kill;
        })
    }

    /// Sets the mode; a less careful one once it is on disk.
    ///
    /// # Errors
    /// Why it is not on disk; then a more careful one is in force, and another is not.
    pub fn set_mode(&mut self, mode: Mode, rest: &Value) -> Result<(), String> {
        let before = std::mem::replace(&mut self.mode, mode);
        self.keep(rest).inspect_err(|_| {
            self.mode = self.mode.min(before);
        })
    }
}
