//! What threads of their own hear between samples, from programs and endpoints that keep their own time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Collector;
use crate::LOG;
use crate::sample::Sample;

/// Most names of one source.
pub const NAMES_MAX: usize = 1024;
/// Threads of the agent need little.
pub const STACK_BYTES: usize = 64 * 1024;

/// What was said last, and when. A name that ends in `_total` is a total.
#[derive(Clone, Debug, Default)]
pub struct Latest(Arc<Mutex<HashMap<String, (f64, Instant)>>>);

impl Latest {
    /// Takes what was said at one time in; names beyond the most are passed over.
    pub fn put(&self, said: impl IntoIterator<Item = (String, f64)>, now: Instant) {
        let mut known = self.lock();
        for (name, value) in said {
            if known.len() < NAMES_MAX || known.contains_key(&name) {
                known.insert(name, (value, now));
            }
        }
    }

    /// Adds what is not too old.
    fn tell(&self, prefix: &str, stale: Duration, sample: &mut Sample) {
        let known = self.lock();
        let mut names: Vec<&String> = known.keys().collect();
        names.sort();
        for name in names {
            let (value, at) = known[name];
            if at.elapsed() > stale {
                continue;
            }
            let full = format!("{prefix}.{name}");
            match full.strip_suffix("_total") {
                Some(short) => sample.rate_at(&format!("{short}_per_s"), value, at),
                None => sample.level(&full, value),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (f64, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The values, by name.
    #[cfg(test)]
    pub fn values(&self) -> std::collections::BTreeMap<String, f64> {
        let known = self.lock();
        known
            .iter()
            .map(|(name, it)| (name.clone(), it.0))
            .collect()
    }
}

/// The collector of one source.
#[derive(Debug)]
pub struct Heard {
    name: String,
    stale: Duration,
    latest: Latest,
}

impl Heard {
    /// Starts the thread that listens; what it says is told for `stale_s` seconds.
    pub fn of(name: String, stale_s: f64, listen: impl FnOnce(&Latest) + Send + 'static) -> Self {
        let latest = Latest::default();
        let shared = latest.clone();
        let started = std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .name(name.clone())
            .spawn(move || listen(&shared));
        if let Err(error) = started {
            LOG.line(format_args!("collector {name}: {error}"));
        }
        let stale = Duration::from_secs_f64(stale_s);
        Self {
            name,
            stale,
            latest,
        }
    }
}

impl Collector for Heard {
    fn sample(&mut self, sample: &mut Sample) {
        self.latest.tell(&self.name, self.stale, sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_become_rates_and_what_is_old_is_left_out() {
        let latest = Latest::default();
        let mut sample = Sample::new(vec![], vec![], None);
        let start = Instant::now() - Duration::from_secs(1);
        for (second, total) in [(0, 10.0), (1, 15.0)] {
            let now = start + Duration::from_secs(second);
            let said = [("ops_total", total), ("depth", 3.0)];
            latest.put(said.map(|(name, value)| (name.to_owned(), value)), now);
            sample.begin(now);
            latest.tell("app", Duration::from_secs(60), &mut sample);
        }
        assert_eq!(sample.value("app.ops_per_s"), 5.0);
        assert_eq!(sample.value("app.depth"), 3.0);
        assert_eq!(sample.names().len(), 2);
        sample.begin(start + Duration::from_secs(2));
        latest.tell("app", Duration::ZERO, &mut sample);
        assert!(sample.value("app.depth").is_nan());
    }

    #[test]
    fn names_are_bounded() {
        let latest = Latest::default();
        let names = (0..2 * NAMES_MAX).map(|index| (format!("n{index}"), 1.0));
        latest.put(names, Instant::now());
        assert_eq!(latest.values().len(), NAMES_MAX);
    }
}
