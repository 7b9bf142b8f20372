//! A stream whose replies nobody sees one by one: the kernel only counts them. Pure; times are arguments.
//!
//! The replies between two looks are taken to have come at equal gaps, and as many requests as were sent meanwhile to have left
//! at equal gaps, so that the moving averages (Li, 3.1.3) are those after that many replies.

use ascar_congestion::{
    RuleSet, SILENCE_MAX_US, Signals, WINDOW_X100_MAX, WINDOW_X100_MIN, stepped,
};

/// What is left of an average after one reply.
const KEPT: f64 = 7.0 / 8.0;
/// After so many replies nothing of it is.
const REPLIES_MAX: u64 = 1_000;
const SECTOR_BYTES: u64 = 512;

/// What the kernel has counted of a block device: its `stat` (Documentation/block/stat.rst).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads and writes that were answered.
    pub replies: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// What the answered ones have taken, together.
    pub taken_ms: u64,
    /// Requests that the driver has.
    pub in_flight: u64,
}

impl Counters {
    /// What a device's `stat` says; None where that is none.
    pub fn of(text: &str) -> Option<Self> {
        let numbers = text.split_ascii_whitespace().map(str::parse);
        let fields: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
        let [
            reads,
            _,
            read_sectors,
            read_ms,
            writes,
            _,
            written_sectors,
            write_ms,
            in_flight,
            ..,
        ] = fields[..]
        else {
            return None;
        };
        Some(Self {
            replies: reads.saturating_add(writes),
            read_bytes: read_sectors.saturating_mul(SECTOR_BYTES),
            written_bytes: written_sectors.saturating_mul(SECTOR_BYTES),
            taken_ms: read_ms.saturating_add(write_ms),
            in_flight,
        })
    }
}

/// The windows that a device may have, in hundredths of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub least_x100: u32,
    /// The greatest.
    pub most_x100: u32,
}

impl Range {
    /// From so many requests to so many.
    pub fn of(least: u32, most: u32) -> Self {
        let within = |requests: u32| {
            let x100 = requests.saturating_mul(100);
            x100.clamp(WINDOW_X100_MIN, WINDOW_X100_MAX)
        };
        Self {
            least_x100: within(least),
            most_x100: within(most),
        }
    }

    /// The nearest window that is in it.
    pub fn nearest(self, window_x100: u32) -> u32 {
        window_x100.clamp(self.least_x100, self.most_x100)
    }
}

/// The congestion state of a device, and its window.
#[derive(Clone, Debug)]
pub struct CountedStream {
    /// The last look that saw replies: when, and what was counted.
    before: Option<(u64, Counters)>,
    ack_us: f64,
    send_us: f64,
    process_us: Option<u64>,
    shortest_us: Option<u64>,
    window_x100: u32,
    change_us: u64,
}

impl CountedStream {
    /// One that nothing is known of yet, with this window in hundredths of requests.
    pub fn new(window_x100: u32) -> Self {
        Self {
            before: None,
            ack_us: 0.0,
            send_us: 0.0,
            process_us: None,
            shortest_us: None,
            window_x100,
            change_us: 0,
        }
    }

    /// The window, in hundredths of requests.
    pub fn window_x100(&self) -> u32 {
        self.window_x100
    }

    /// The present congestion state. Process times are means of those between two looks; the kernel adds them up in milliseconds.
    pub fn signals(&self) -> Signals {
        let ratio100 = match (self.process_us, self.shortest_us) {
            (Some(process), Some(shortest)) => process.saturating_mul(100) / shortest.max(1),
            _ => 100,
        };
        Signals {
            ack_us: self.ack_us as u32,
            send_us: self.send_us as u32,
            ratio100: u32::try_from(ratio100).unwrap_or(u32::MAX),
            ..Signals::default()
        }
    }

    /// Takes in what is counted now; the number of the rule that holds, and where. None where no replies came: gaps go on.
    ///
    /// The first look only sets what growth is counted from, and so does one after a counter fell or ten minutes of silence.
    pub fn look(
        &mut self,
        rules: &RuleSet,
        range: Range,
        now_us: u64,
        counted: Counters,
    ) -> Option<(usize, Signals)> {
        let Some((then_us, before)) = self.before else {
            self.before = Some((now_us, counted));
            return None;
        };
        let has_fallen = counted.replies < before.replies || counted.taken_ms < before.taken_ms;
        let elapsed_us = now_us.saturating_sub(then_us);
        if has_fallen || elapsed_us > SILENCE_MAX_US {
            let change_us = self.change_us;
            *self = Self::new(self.window_x100);
            (self.before, self.change_us) = (Some((now_us, counted)), change_us);
            return None;
        }
        let replies = counted.replies - before.replies;
        if replies == 0 || elapsed_us == 0 {
            return None;
        }
        self.before = Some((now_us, counted));
        self.ack_us = averaged(self.ack_us, elapsed_us as f64 / replies as f64, replies);
        let sent = (replies + counted.in_flight).saturating_sub(before.in_flight);
        if sent > 0 {
            self.send_us = averaged(self.send_us, elapsed_us as f64 / sent as f64, replies);
        }
        let process_us = (counted.taken_ms - before.taken_ms).saturating_mul(1_000) / replies;
        if process_us > 0 {
            let shortest = self.shortest_us.map_or(process_us, |it| it.min(process_us));
            (self.process_us, self.shortest_us) = (Some(process_us), Some(shortest));
        }
        let signals = self.signals();
        let rule = rules.lookup(&signals);
        if now_us >= self.change_us {
            let stepped = stepped(self.window_x100, &rules.rules()[rule].action);
            self.window_x100 = range.nearest(stepped);
            self.change_us = now_us.saturating_add(rules.update_gap_us());
        }
        Some((rule, signals))
    }
}

/// An average after so many equal gaps, each of which counts for an eighth.
fn averaged(average_us: f64, gap_us: f64, replies: u64) -> f64 {
    let kept = KEPT.powi(replies.min(REPLIES_MAX) as i32);
    gap_us + (average_us - gap_us) * kept
}

#[cfg(test)]
mod tests {
    use ascar_congestion::Action;

    use super::*;

    const RANGE: Range = Range {
        least_x100: 400,
        most_x100: 12_800,
    };
    const MS: u64 = 1_000;

    fn uniform(m100: i32, b100: i32) -> RuleSet {
        RuleSet::uniform(Action {
            m100,
            b100,
            tau_us: 0,
        })
    }

    fn counted(replies: u64, taken_ms: u64, in_flight: u64) -> Counters {
        Counters {
            replies,
            taken_ms,
            in_flight,
            ..Counters::default()
        }
    }

    #[test]
    fn what_the_kernel_writes_is_read() {
        let text = "     100        5     2000       50       10        1       80       30        3       40       80        0        0        0        0        0        0\n";
        let found = Counters::of(text).unwrap();
        assert_eq!(
            (found.replies, found.taken_ms, found.in_flight),
            (110, 80, 3)
        );
        assert_eq!((found.read_bytes, found.written_bytes), (1_024_000, 40_960));
        for text in [
            "",
            "1 2 3 4 5 6 7 8",
            "1 2 3 4 5 6 7 8 -9",
            "a b c d e f g h i",
        ] {
            assert_eq!(Counters::of(text), None, "{text}");
        }
        let most = u64::MAX.to_string();
        let all = [most.as_str(); 11].join(" ");
        assert_eq!(Counters::of(&all).unwrap().replies, u64::MAX);
    }

    #[test]
    fn a_window_is_reached_with_the_first_replies_and_kept_within_its_range() {
        for (b100, window) in [(600, 600), (200, 400), (25_600, 12_800)] {
            let (rules, mut stream) = (uniform(0, b100), CountedStream::new(12_800));
            assert_eq!(stream.look(&rules, RANGE, 0, counted(0, 0, 0)), None);
            assert_eq!(stream.look(&rules, RANGE, 100 * MS, counted(0, 0, 9)), None);
            assert_eq!(stream.window_x100(), 12_800);
            let (rule, _) = stream
                .look(&rules, RANGE, 200 * MS, counted(10, 40, 9))
                .unwrap();
            assert_eq!((rule, stream.window_x100()), (0, window));
        }
    }

    #[test]
    fn a_window_changes_as_often_as_the_rules_say() {
        let (rules, mut stream) = (uniform(100, 100), CountedStream::new(400));
        for look in 0..=20 {
            stream.look(&rules, RANGE, look * 100 * MS, counted(look * 10, look, 0));
        }
        // The first look sets the baseline, the others are 1.9 s apart: at 0.1, 0.6, 1.1, 1.6.
        assert_eq!(stream.window_x100(), 800);
    }

    #[test]
    fn averages_are_those_after_as_many_replies() {
        let (rules, mut stream) = (uniform(-100, 0), CountedStream::new(800));
        stream.look(&rules, RANGE, 0, counted(0, 0, 0));
        stream.look(&rules, RANGE, 100 * MS, counted(10, 50, 10));
        let mut one_by_one = 0.0;
        for _ in 0..10 {
            one_by_one += (10_000.0 - one_by_one) / 8.0;
        }
        let signals = stream.signals();
        assert_eq!(signals.ack_us, one_by_one as u32);
        // Twice as many left as were answered: half the gap.
        assert_eq!(signals.send_us, (one_by_one / 2.0) as u32);
        assert_eq!(signals.ratio100, 100);
        stream.look(&rules, RANGE, 200 * MS, counted(20, 250, 0));
        assert_eq!(stream.signals().ratio100, 400);
    }

    #[test]
    fn gaps_go_on_while_nothing_comes_and_counters_that_fell_begin_anew() {
        let (rules, mut stream) = (uniform(-100, 0), CountedStream::new(800));
        stream.look(&rules, RANGE, 0, counted(0, 0, 0));
        stream.look(&rules, RANGE, 500 * MS, counted(0, 0, 1));
        stream.look(&rules, RANGE, 1_000 * MS, counted(1, 1_000, 0));
        assert_eq!(stream.signals().ack_us, 125_000);
        assert_eq!(
            stream.look(&rules, RANGE, 1_100 * MS, counted(0, 0, 0)),
            None
        );
        assert_eq!((stream.signals().ack_us, stream.window_x100()), (0, 800));
        let late = 1_100 * MS + SILENCE_MAX_US + 1;
        assert_eq!(stream.look(&rules, RANGE, late, counted(5, 5, 0)), None);
        assert_eq!(stream.signals().ack_us, 0);
        // A clock that stands still says nothing.
        assert_eq!(stream.look(&rules, RANGE, late, counted(9, 9, 0)), None);
    }
}
