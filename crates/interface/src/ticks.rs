//! Frames gathered into ticks.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::layouts::Layout;

/// A node's clock may be off by so many ticks; by more, the time of arrival counts.
const SKEW_TICKS_MAX: i64 = 2;

/// What one node sent in one tick.
#[derive(Clone, Debug)]
pub struct Row {
    /// Who.
    pub node: Arc<str>,
    /// Which names.
    pub layout: Arc<Layout>,
    /// The values.
    pub values: Vec<f32>,
}

/// A closed tick: what comes for it later is only stored.
#[derive(Debug)]
pub struct Tick {
    /// Its number.
    pub tick: i64,
    /// What came, by the node's place.
    pub rows: BTreeMap<usize, Row>,
}

/// The open ticks.
#[derive(Debug, Default)]
pub struct Ticks {
    open: BTreeMap<i64, BTreeMap<usize, Row>>,
    closed: Option<i64>,
}

/// What became of a row.
#[derive(Clone, Debug)]
pub enum Taken {
    /// It is in this tick.
    Into(i64),
    /// Its node's clock is wrong: it is in the present tick.
    Skewed(i64),
    /// Its tick is closed: it can only be stored.
    Late(i64, Row),
}

impl Ticks {
    /// Begins with all ticks up to one closed.
    pub fn begin(&mut self, closed: i64) {
        self.closed = Some(closed);
    }

    /// Takes a row into the tick that its node names, or the present one.
    pub fn take(&mut self, place: usize, named: i64, now: i64, row: Row) -> Taken {
        let is_near = (now - SKEW_TICKS_MAX..=now + SKEW_TICKS_MAX).contains(&named);
        let mut tick = if is_near { named } else { now };
        if !is_near {
            // Two frames of a node in one tick are two ticks.
            while self
                .open
                .get(&tick)
                .is_some_and(|rows| rows.contains_key(&place))
                && tick < now + SKEW_TICKS_MAX
            {
                tick += 1;
            }
        }
        if self.closed.is_some_and(|closed| tick <= closed) {
            return Taken::Late(tick, row);
        }
        self.open.entry(tick).or_default().insert(place, row);
        if is_near {
            Taken::Into(tick)
        } else {
            Taken::Skewed(tick)
        }
    }

    /// The places of the nodes that have sent a tick.
    pub fn places(&self, tick: i64) -> impl Iterator<Item = usize> {
        self.open
            .get(&tick)
            .into_iter()
            .flat_map(|rows| rows.keys().copied())
    }

    /// The oldest open tick.
    pub fn oldest(&self, now: i64) -> i64 {
        self.closed.map_or(now, |closed| closed + 1).min(now)
    }

    /// Closes the oldest tick, also one in which nothing came.
    pub fn close(&mut self, tick: i64) -> Tick {
        self.closed = Some(self.closed.map_or(tick, |closed| closed.max(tick)));
        let rows = self.open.remove(&tick).unwrap_or_default();
        // Nothing is left before it.
        self.open = self.open.split_off(&tick);
        Tick { tick, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: f32) -> Row {
        let layout = Layout::new(0, vec!["x".to_owned()]);
        Row {
            node: "a".into(),
            layout: Arc::new(layout),
            values: vec![value],
        }
    }

    #[test]
    fn rows_come_to_the_tick_that_they_name() {
        let mut ticks = Ticks::default();
        ticks.begin(9);
        assert!(matches!(ticks.take(0, 10, 10, row(1.0)), Taken::Into(10)));
        assert!(matches!(ticks.take(1, 11, 10, row(1.0)), Taken::Into(11)));
        assert_eq!(ticks.places(10).collect::<Vec<_>>(), [0]);
        assert_eq!(ticks.oldest(11), 10);
        assert_eq!(ticks.close(10).rows.len(), 1);
        assert!(matches!(
            ticks.take(2, 10, 11, row(1.0)),
            Taken::Late(10, _)
        ));
        assert_eq!(ticks.close(11).rows.len(), 1);
        assert_eq!(ticks.close(12).rows.len(), 0);
    }

    #[test]
    fn a_clock_that_is_years_off_loses_nothing() {
        let mut ticks = Ticks::default();
        ticks.begin(9);
        for (named, now) in [(1_000_000, 10), (1_000_001, 11), (-5, 12)] {
            assert!(
                matches!(ticks.take(0, named, now, row(1.0)), Taken::Skewed(tick) if tick == now)
            );
        }
        // Two that arrive in one tick.
        assert!(matches!(ticks.take(0, -4, 12, row(1.0)), Taken::Skewed(13)));
    }
}
