//! `[[window]]`: when something may be changed.

use serde::Deserialize;

/// `[[window]]`: local time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// mon, tue, ...; every day where there is none.
    #[serde(default)]
    pub days: Vec<String>,
    /// `HH:MM`.
    pub from: String,
    /// `HH:MM`, not included; earlier than `from` it is the next day's.
    pub to: String,
}

impl Window {
    /// Whether it makes sense.
    ///
    /// # Errors
    /// The key, and what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        for day in &self.days {
            if !DAYS.contains(&day.as_str()) {
                return Err(format!("days: {day:?}: allowed are {}", DAYS.join(", ")));
            }
        }
        for (key, text) in [("from", &self.from), ("to", &self.to)] {
            if minutes(text).is_none() {
                return Err(format!("{key} = {text:?}: must be HH:MM"));
            }
        }
        Ok(())
    }

    /// Whether a moment is inside: the day of the week, Sunday being 0, and the minute of the day.
    pub fn contains(&self, day: usize, minute: u32) -> bool {
        let (Some(from), Some(to)) = (minutes(&self.from), minutes(&self.to)) else {
            return false;
        };
        let is_day =
            |day: usize| self.days.is_empty() || self.days.iter().any(|it| it == DAYS[day % 7]);
        if from < to {
            return is_day(day) && (from..to).contains(&minute);
        }
        is_day(day) && minute >= from || is_day(day + 6) && minute < to
    }
}

/// Whether something may be changed at a moment: in any window, or always where there is none.
pub fn is_open(windows: &[Window], day: usize, minute: u32) -> bool {
    windows.is_empty() || windows.iter().any(|window| window.contains(day, minute))
}

/// Minutes from a moment to the next one at which something may be changed; none where there never is one.
pub fn opens_in_minutes(windows: &[Window], day: usize, minute: u32) -> Option<u32> {
    (0..=7 * DAY_MINUTES).find(|later| {
        let at = minute + later;
        is_open(windows, day + (at / DAY_MINUTES) as usize, at % DAY_MINUTES)
    })
}

const DAY_MINUTES: u32 = 24 * 60;
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

fn minutes(text: &str) -> Option<u32> {
    let (hours, minutes) = text.split_once(':')?;
    let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}
