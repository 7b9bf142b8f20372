//! What a reply costs: signals, look-up in 29 rules, window, counters. Prints one JSON document.
//!
//!     cargo run --release --package ascar-congestion --example reply_cost
//!
//! Replies go to streams that lie apart in memory, in batches of 64 timed as one (the clock itself costs about 25 ns);
//! a percentile is that of the batches' means. Look-ups alone are compared with trying one rule after the other.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use ascar_congestion::{
    AXES, Action, AnyController, Controller, Deployment, Extended, Extensions, Faithful, InFlight,
    RIVAL_NAMES, Region, Reply, Rule, RuleSet, SPACE, Signals,
};

const BATCH: usize = 64;
const BATCHES: usize = 100_000;
const STREAMS: usize = 400;
const RULES: usize = 29;

/// Reproducible numbers (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Four splits into eight of one rule that holds everywhere: 29 rules, as most sets of the thesis have at most (3.1.6).
fn rules() -> RuleSet {
    let splits = [
        [7_000, 7_000, 400],
        [3_000, 3_000, 250],
        [11_000, 11_000, 700],
        [2_000, 8_000, 150],
    ];
    let mut regions: Vec<Region> = vec![SPACE];
    for at in splits {
        let splittable = |region: &Region| {
            (0..3).all(|axis| region[axis].lo < at[axis] && at[axis] < region[axis].hi)
        };
        let found = regions
            .iter()
            .position(splittable)
            .expect("a rule around the point");
        let region = regions.remove(found);
        for part in 0..8 {
            let mut piece = region;
            for (axis, interval) in piece.iter_mut().enumerate().take(3) {
                match part >> axis & 1 {
                    0 => interval.hi = at[axis],
                    _ => interval.lo = at[axis],
                }
            }
            regions.push(piece);
        }
    }
    let numbered = regions.into_iter().enumerate();
    let rules: Vec<Rule> = numbered
        .map(|(number, region)| Rule {
            region,
            action: Action {
                m100: 95 + number as i32 % 11,
                b100: number as i32 % 7 - 3,
                tau_us: number as u32 * 10,
            },
            observed: None,
        })
        .collect();
    assert_eq!(rules.len(), RULES);
    RuleSet::new(rules, 2).expect("splits leave no gap")
}

/// Mean and percentiles of batches, in nanoseconds each.
struct Cost {
    mean_ns: f64,
    p50_ns: f64,
    p99_ns: f64,
}

fn measure(mut batch: impl FnMut()) -> Cost {
    (0..BATCHES / 10).for_each(|_| batch());
    let mut each_ns: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let begun = Instant::now();
            batch();
            begun.elapsed().as_nanos() as f64 / BATCH as f64
        })
        .collect();
    each_ns.sort_by(f64::total_cmp);
    Cost {
        mean_ns: each_ns.iter().sum::<f64>() / BATCHES as f64,
        p50_ns: each_ns[BATCHES / 2],
        p99_ns: each_ns[BATCHES * 99 / 100],
    }
}

/// Replies as a busy server gives them, made beforehand.
fn replies(numbers: &mut Numbers) -> Vec<(usize, Reply)> {
    let mut now_us = 1_000_000;
    (0..BATCH * 1_024)
        .map(|_| {
            now_us += numbers.below(40);
            let process_time_us = 1_000 + numbers.below(12_000);
            let reply = Reply {
                sent_us: now_us - process_time_us,
                now_us,
                bytes: 1 << 20,
                in_flight: InFlight {
                    requests: 8,
                    bytes: 8 << 20,
                },
                ..Reply::default()
            };
            (numbers.below(STREAMS as u64) as usize, reply)
        })
        .collect()
}

fn reply_cost(controller: &AnyController, numbers: &mut Numbers) -> Cost {
    let mut streams = vec![controller.clone(); STREAMS];
    let mut replies = replies(numbers);
    let round_us = replies[replies.len() - 1].1.now_us - replies[0].1.now_us + 20;
    let mut at = 0;
    measure(|| {
        for (stream, reply) in &mut replies[at..at + BATCH] {
            streams[*stream].on_reply(black_box(reply));
            // The same reply comes again next round, later.
            reply.now_us += round_us;
            reply.sent_us += round_us;
        }
        at = (at + BATCH) % (BATCH * 1_024);
    })
}

fn lookup_cost(
    set: &RuleSet,
    numbers: &mut Numbers,
    lookup: impl Fn(&RuleSet, &Signals) -> usize,
) -> Cost {
    let points: Vec<Signals> = (0..BATCH * 1_024)
        .map(|_| Signals {
            ack_us: numbers.below(15_000) as u32,
            send_us: numbers.below(15_000) as u32,
            ratio100: 100 + numbers.below(900) as u32,
            ..Signals::default()
        })
        .collect();
    let mut at = 0;
    measure(|| {
        for signals in &points[at..at + BATCH] {
            black_box(lookup(set, black_box(signals)));
        }
        at = (at + BATCH) % points.len();
    })
}

fn main() {
    let numbers = &mut Numbers(88_172_645_463_325_252);
    let set = rules();
    let deployment = Arc::new(Deployment::new(set.clone()));
    let extended = Extended::new(Arc::clone(&deployment), Arc::new(Extensions::default()), 1);
    let mut rows = vec![
        ("lookup", lookup_cost(&set, numbers, RuleSet::lookup)),
        (
            "lookup_by_scan",
            lookup_cost(&set, numbers, RuleSet::lookup_by_scan),
        ),
    ];
    let faithful = AnyController::Faithful(Faithful::new(Arc::clone(&deployment)));
    rows.push(("faithful", reply_cost(&faithful, numbers)));
    rows.push((
        "extended",
        reply_cost(
            &AnyController::Extended(extended.expect("the defaults")),
            numbers,
        ),
    ));
    for name in RIVAL_NAMES {
        let rival = AnyController::rival(name, 1).expect("a rival of that name");
        rows.push((name, reply_cost(&rival, numbers)));
    }
    let used = deployment
        .usage
        .observed()
        .iter()
        .filter(|rule| rule.used_times > 0)
        .count();
    let costs: Vec<String> = rows
        .iter()
        .map(|(name, cost)| {
            format!(
                "    \"{name}\": {{\"mean_ns\": {:.1}, \"p50_ns\": {:.1}, \"p99_ns\": {:.1}}}",
                cost.mean_ns, cost.p50_ns, cost.p99_ns
            )
        })
        .collect();
    println!(
        "{{\n  \"rules\": {RULES},\n  \"rules_used\": {used},\n  \"indicators\": {AXES},\n  \"batch\": {BATCH},\n  \
         \"batches\": {BATCHES},\n  \"streams\": {STREAMS},\n  \"cost\": {{\n{}\n  }}\n}}",
        costs.join(",\n")
    );
}
