//! One tick's indicators: rates from totals, names in a stable order.

use std::collections::HashMap;
use std::time::Instant;

use ascar_messaging::limits::{INDICATORS_MAX, NAME_BYTES_MAX, NAMES_BYTES_MAX};

use crate::glob;

/// Collects what is read in a tick. Names keep their places; a name that was not read in a tick has no value.
#[derive(Debug)]
pub struct Sample {
    only: Vec<String>,
    not: Vec<String>,
    names: Vec<String>,
    name_bytes: usize,
    places: HashMap<String, Option<usize>>,
    values: Vec<f32>,
    totals: HashMap<String, (f64, Instant)>,
    /// Of totals that come at times of their own.
    rates: HashMap<String, f64>,
    now: Instant,
    digits: Option<u32>,
    changed: bool,
}

impl Sample {
    /// Takes the names that fit one of `only` (all, if there is none) and none of `not`.
    pub fn new(only: Vec<String>, not: Vec<String>, digits: Option<u32>) -> Self {
        Self {
            only,
            not,
            names: Vec::new(),
            name_bytes: 0,
            places: HashMap::new(),
            values: Vec::new(),
            totals: HashMap::new(),
            rates: HashMap::new(),
            now: Instant::now(),
            digits,
            changed: false,
        }
    }

    /// A new tick begins.
    pub fn begin(&mut self, now: Instant) {
        self.now = now;
        self.values.fill(f32::NAN);
        // What has not been read for long is gone.
        if self.totals.len() > 4 * INDICATORS_MAX {
            self.totals.clear();
            self.rates.clear();
        }
    }

    /// When the tick was sampled.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// A value as it is now.
    pub fn level(&mut self, name: &str, value: f64) {
        let Some(place) = self.place(name) else {
            return;
        };
        self.values[place] = self.rounded(value);
    }

    /// A total that grows: its growth per second is the indicator. One that fell was reset and says nothing.
    pub fn rate(&mut self, name: &str, total: f64) {
        self.scaled_rate(name, total, 1.0);
    }

    /// The same, times a factor.
    pub fn scaled_rate(&mut self, name: &str, total: f64, factor: f64) {
        if self.place(name).is_none() {
            return;
        }
        if let Some((growth, seconds)) = self.growth(name, total)
            && seconds > 0.0
        {
            self.level(name, growth * factor / seconds);
        }
    }

    /// The rate of a total that was read at another time than the tick's; the last one where it has not been read anew.
    pub fn rate_at(&mut self, name: &str, total: f64, at: Instant) {
        if self.place(name).is_none() {
            return;
        }
        let before = self.totals.insert(name.to_owned(), (total, at));
        if let Some((last, then)) = before
            && at > then
        {
            let rate = (total - last) / at.duration_since(then).as_secs_f64();
            self.rates
                .insert(name.to_owned(), if total < last { f64::NAN } else { rate });
        }
        if let Some(rate) = self.rates.get(name).copied() {
            self.level(name, rate);
        }
    }

    /// Growth of one total by growth of another, such as the time of a request; zero where nothing grew.
    pub fn ratio(&mut self, name: &str, above: f64, below: f64, factor: f64) {
        if self.place(name).is_none() {
            return;
        }
        let above = self.growth(&format!("{name}\u{0}above"), above);
        let below = self.growth(&format!("{name}\u{0}below"), below);
        if let (Some((above, _)), Some((below, _))) = (above, below) {
            let value = if below > 0.0 {
                above * factor / below
            } else {
                0.0
            };
            self.level(name, value);
        }
    }

    /// Growth since the last tick and the seconds since then; None the first time and after a reset.
    pub fn growth(&mut self, name: &str, total: f64) -> Option<(f64, f64)> {
        let now = self.now;
        match self.totals.get_mut(name) {
            None => {
                self.totals.insert(name.to_owned(), (total, now));
                None
            }
            Some(last) => {
                let (before, at) = std::mem::replace(last, (total, now));
                (total >= before).then(|| (total - before, now.duration_since(at).as_secs_f64()))
            }
        }
    }

    /// The value of a name in this tick; NaN where there is none.
    pub fn value(&self, name: &str) -> f32 {
        match self.places.get(name) {
            Some(Some(place)) => self.values[*place],
            _ => f32::NAN,
        }
    }

    /// All names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The values, one a name.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Whether names were added since this was asked last.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// A number for the list of names.
    pub fn layout(&self) -> u32 {
        layout(&self.names)
    }

    fn place(&mut self, name: &str) -> Option<usize> {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let is_wanted = glob::fits_any(&self.only, name)
            && !self.not.iter().any(|pattern| glob::fits(pattern, name))
            && name.len() <= NAME_BYTES_MAX
            && !name.contains(char::is_control);
        if self.places.len() > 16 * INDICATORS_MAX {
            return None;
        }
        let has_room =
            self.names.len() < INDICATORS_MAX && self.name_bytes + name.len() <= NAMES_BYTES_MAX;
        let place = (is_wanted && !name.is_empty() && has_room).then_some(self.names.len());
        if place.is_some() {
            self.name_bytes += name.len();
            self.names.push(name.to_owned());
            self.values.push(f32::NAN);
            self.changed = true;
        }
        self.places.insert(name.to_owned(), place);
        place
    }

    /// To so many significant digits: what is noise anyway need not be sent.
    fn rounded(&self, value: f64) -> f32 {
        let Some(digits) = self.digits else {
            return value as f32;
        };
        if value == 0.0 || !value.is_finite() {
            return value as f32;
        }
        let places = digits as i32 - 1 - value.abs().log10().floor() as i32;
        let unit = 10_f64.powi(places.abs());
        let rounded = if places >= 0 {
            (value * unit).round() / unit
        } else {
            (value / unit).round() * unit
        };
        rounded as f32
    }
}

/// FNV-1a over the names: the same list has the same number on every node.
pub fn layout(names: &[String]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    for byte in names.iter().flat_map(|name| name.bytes().chain([0])) {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use ascar_messaging::limits::check_indicators;
    use std::time::Duration;

    #[test]
    fn totals_become_rates_by_the_time_that_really_passed() {
        let mut sample = Sample::new(vec![], vec![], None);
        let start = Instant::now();
        sample.begin(start);
        sample.rate("a", 100.0);
        assert!(sample.value("a").is_nan());
        sample.begin(start + Duration::from_millis(500));
        sample.rate("a", 150.0);
        assert_eq!(sample.value("a"), 100.0);
        // A reset says nothing once.
        sample.begin(start + Duration::from_millis(1500));
        sample.rate("a", 0.0);
        assert!(sample.value("a").is_nan());
        sample.begin(start + Duration::from_millis(2500));
        sample.rate("a", 7.0);
        assert_eq!(sample.value("a"), 7.0);
    }

    #[test]
    fn what_is_not_read_has_no_value_and_keeps_its_place() {
        let mut sample = Sample::new(vec!["a*".to_owned()], vec!["ab".to_owned()], None);
        sample.begin(Instant::now());
        sample.level("a", 1.0);
        sample.level("ab", 1.0);
        sample.level("b", 1.0);
        sample.level("ac", 2.0);
        assert_eq!(sample.names(), ["a", "ac"]);
        assert!(sample.take_changed());
        sample.begin(Instant::now());
        sample.level("ac", 3.0);
        assert!(sample.values()[0].is_nan());
        assert_eq!(sample.values()[1], 3.0);
        assert!(!sample.take_changed());
    }

    #[test]
    fn a_ratio_is_of_growths() {
        let mut sample = Sample::new(vec![], vec![], None);
        for (above, below, expected) in [(5.0, 1.0, f32::NAN), (25.0, 3.0, 10.0), (25.0, 3.0, 0.0)]
        {
            sample.begin(Instant::now());
            sample.ratio("wait", above, below, 1.0);
            let value = sample.value("wait");
            assert!(
                value == expected || value.is_nan() && expected.is_nan(),
                "{value}"
            );
        }
    }

    #[test]
    fn digits_are_kept_as_told() {
        let sample = Sample::new(vec![], vec![], Some(3));
        for (value, expected) in [
            (123_456.0, 123_000.0),
            (0.012_345, 0.0123),
            (-5.555, -5.56),
            (0.0, 0.0),
        ] {
            assert_eq!(sample.rounded(value), expected as f32);
        }
    }

    #[test]
    fn names_are_bounded() {
        let mut sample = Sample::new(vec![], vec![], None);
        sample.begin(Instant::now());
        for index in 0..2 * INDICATORS_MAX {
            sample.level(&format!("i{index}"), 0.0);
        }
        sample.level(&"x".repeat(NAME_BYTES_MAX + 1), 0.0);
        assert_eq!(sample.names().len(), INDICATORS_MAX);
        // Also by what they take together.
        let mut sample = Sample::new(vec![], vec![], None);
        for index in 0..2 * INDICATORS_MAX {
            sample.level(&format!("{index:0>200}"), 0.0);
        }
        assert_eq!(check_indicators(sample.names()), Ok(()));
        assert_eq!(sample.names().len(), NAMES_BYTES_MAX / 200);
    }
}
