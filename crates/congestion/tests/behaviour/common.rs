//! What tests share: rule sets as a search makes them, points where rules meet, a server in virtual time.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::ops::Range;

use ascar_congestion::{
    AXES, Action, Controller, INFINITY, InFlight, Interval, Region, Reply, Rule, RuleSet, SPACE,
    Signals,
};
use proptest::prelude::*;

/// A rule set that a search for rules made: 8 rules, each used.
pub const MADE: &str = "\
8,2
0,107193,0,107448,0,411,157,-29,23319,1839,80926,81021,173
0,107193,0,107448,411,2147483647,87,-59,25916,153,83910,84083,2092
0,107193,107448,2147483647,0,411,87,-59,25916,22,106273,109143,180
0,107193,107448,2147483647,411,2147483647,87,-59,25916,2,106526,111891,1957
107193,2147483647,0,107448,0,411,87,-59,25916,27,108285,106752,226
107193,2147483647,0,107448,411,2147483647,87,-59,25916,4,108526,106813,1656
107193,2147483647,107448,2147483647,0,411,99,-29,28512,1960,144271,144560,173
107193,2147483647,107448,2147483647,411,2147483647,87,-59,25916,263,143655,143959,2476
";

pub fn rule(region: Region, action: Action) -> Rule {
    Rule {
        region,
        action,
        observed: None,
    }
}

pub fn action(m100: i32, b100: i32, tau_us: u32) -> Action {
    Action { m100, b100, tau_us }
}

/// A rule set as SHARP makes it: again and again one rule is split at a point into two along each axis.
pub fn split_rules(axes: Range<usize>, splits: usize) -> impl Strategy<Value = Vec<Rule>> {
    let split = (
        any::<prop::sample::Index>(),
        prop::array::uniform8(0.0..1.0_f64),
    );
    prop::collection::vec(split, 0..=splits).prop_map(move |splits| {
        let mut regions = vec![SPACE];
        for (index, at) in splits {
            let region = regions.remove(index.index(regions.len()));
            regions.extend(split_region(region, axes.clone(), &at));
        }
        let numbered = regions.into_iter().enumerate();
        numbered
            .map(|(number, region)| rule(region, action(100, 0, number as u32)))
            .collect()
    })
}

fn split_region(region: Region, axes: Range<usize>, at: &[f64; AXES]) -> Vec<Region> {
    let mut parts = vec![region];
    for axis in axes {
        let Interval { lo, hi } = region[axis];
        // Most bounds of real sets are small numbers: the cube puts them there.
        let cut = lo + ((f64::from(hi - lo)) * at[axis].powi(3)) as u32;
        if cut <= lo || cut >= hi {
            continue;
        }
        parts = parts
            .into_iter()
            .flat_map(|part| {
                let (mut below, mut above) = (part, part);
                below[axis].hi = cut;
                above[axis].lo = cut;
                [below, above]
            })
            .collect();
    }
    parts
}

/// Boxes anywhere, that overlap and leave gaps; bounds below `most` or infinite.
pub fn loose_rules(axes: usize, most: u32, rules: usize) -> impl Strategy<Value = Vec<Rule>> {
    let interval = (0..most, 1..=most + 1, any::<bool>()).prop_map(move |(lo, width, open)| {
        let hi = if open { INFINITY } else { lo + width };
        Interval { lo, hi }
    });
    let region = prop::collection::vec(interval, axes).prop_map(|intervals| {
        let mut region = SPACE;
        for (axis, interval) in intervals.into_iter().enumerate() {
            region[axis] = interval;
        }
        region[2].lo = region[2].lo + 100 - (region[2].lo % 3) * 100 / 2;
        region[2].hi = region[2].hi.saturating_add(100).min(INFINITY);
        region
    });
    let rules = prop::collection::vec(region, 1..=rules);
    rules.prop_map(|regions| {
        let numbered = regions.into_iter().enumerate();
        numbered
            .map(|(number, region)| rule(region, action(100, 0, number as u32)))
            .collect()
    })
}

/// Reproducible points, most of them where rules meet.
pub struct Points {
    state: u64,
    cuts: Vec<Vec<u32>>,
}

impl Points {
    pub fn new(set: &RuleSet, seed: u64) -> Self {
        let cuts = (0..AXES)
            .map(|axis| {
                let bounds = set
                    .rules()
                    .iter()
                    .flat_map(|rule| [rule.region[axis].lo, rule.region[axis].hi]);
                bounds.collect()
            })
            .collect();
        Self {
            state: seed | 1,
            cuts,
        }
    }

    pub fn number(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    fn coordinate(&mut self, axis: usize) -> u32 {
        let random = self.number();
        let cut = self.cuts[axis][(random >> 8) as usize % self.cuts[axis].len()];
        match random % 5 {
            0 => cut,
            1 => cut.saturating_sub(1),
            2 => cut.saturating_add(1),
            3 => (random >> 32) as u32,
            _ => (random >> 40) as u32 % 1_000,
        }
    }

    pub fn signals(&mut self) -> Signals {
        Signals {
            ack_us: self.coordinate(0),
            send_us: self.coordinate(1),
            ratio100: self.coordinate(2),
            slow_ack_us: self.coordinate(3),
            timeouts_per_1000: self.coordinate(4),
            writes_per_1000: self.coordinate(5),
            sequential_per_1000: self.coordinate(6),
            request_kib: self.coordinate(7),
        }
    }
}

/// One server that works on one request after the other, behind a wire that takes time.
pub struct Server {
    pub wire_us: u64,
    pub service_us: u64,
    free_us: u64,
}

impl Server {
    pub fn new(wire_us: u64, service_us: u64) -> Self {
        Self {
            wire_us,
            service_us,
            free_us: 0,
        }
    }

    /// When the reply to a request sent at `sent_us` comes.
    pub fn reply_us(&mut self, sent_us: u64) -> u64 {
        let arrived_us = sent_us + self.wire_us / 2;
        self.free_us = arrived_us.max(self.free_us) + self.service_us;
        self.free_us + self.wire_us.div_ceil(2)
    }
}

/// What a stream did.
#[derive(Default)]
pub struct Trace {
    pub sent_us: Vec<u64>,
    pub replies: Vec<Reply>,
    pub windows_x100: Vec<u32>,
}

impl Trace {
    pub fn mean_in_flight(&self) -> f64 {
        let half = &self.replies[self.replies.len() / 2..];
        half.iter()
            .map(|reply| f64::from(reply.in_flight.requests))
            .sum::<f64>()
            / half.len() as f64
    }
}

/// Runs a stream that always has a request to send, but never more than `demand` at a time.
pub fn run(
    controller: &mut impl Controller,
    server: &mut Server,
    until_us: u64,
    demand: u32,
) -> Trace {
    const BYTES: u32 = 1 << 20;
    let mut trace = Trace::default();
    let mut waiting: VecDeque<(u64, u64)> = VecDeque::new();
    let mut now_us = 0;
    while now_us < until_us {
        loop {
            let in_flight = in_flight(waiting.len(), BYTES);
            if in_flight.requests >= demand || !controller.admits(in_flight, BYTES) {
                break;
            }
            let sent_us = controller.reserve(now_us, BYTES);
            controller.on_send(sent_us, BYTES);
            waiting.push_back((sent_us, server.reply_us(sent_us)));
            trace.sent_us.push(sent_us);
        }
        let in_flight = in_flight(waiting.len(), BYTES);
        let (sent_us, reply_us) = waiting.pop_front().expect("an idle stream may send");
        now_us = reply_us;
        let reply = Reply {
            sent_us,
            now_us,
            bytes: BYTES,
            in_flight,
            ..Reply::default()
        };
        controller.on_reply(&reply);
        trace.replies.push(reply);
        trace.windows_x100.push(controller.window().requests_x100);
    }
    trace
}

fn in_flight(requests: usize, bytes: u32) -> InFlight {
    InFlight {
        requests: requests as u32,
        bytes: requests as u64 * u64::from(bytes),
    }
}
