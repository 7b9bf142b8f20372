//! The same requests and replies through the C interface and to controllers alone: the same windows, gaps and indicators.

use std::collections::VecDeque;
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use ascar_congestion::{
    AnyController, Controller, Deployment, Extended, Extensions, Faithful, Fixed, InFlight,
    RIVAL_NAMES, Reply, RivalSettings, RuleSet, Sequences, Signals,
};

use crate::status::{OK, ascar_last_error};
use crate::stream::*;
use crate::stream_control::*;
use crate::stream_state::*;

/// A rule set that a search for rules made: 8 rules.
const THESIS: &str = "\
8,2
0,107193,0,107448,0,411,157,-29,2331
0,107193,0,107448,411,2147483647,87,-59,2591
0,107193,107448,2147483647,0,411,87,-59,2591
0,107193,107448,2147483647,411,2147483647,87,-59,2591
107193,2147483647,0,107448,0,411,87,-59,2591
107193,2147483647,0,107448,411,2147483647,87,-59,2591
107193,2147483647,107448,2147483647,0,411,99,-29,2851
107193,2147483647,107448,2147483647,411,2147483647,87,-59,2591
";

/// Rules that bound all indicators.
const EXTENDED: &str = "\
3,50,slow_ack_ewma,timeout_rate,write_share,sequential_share,request_kib
0,2147483647,0,2147483647,100,2147483647,0,2147483647,0,2147483647,0,500,0,2147483647,0,2147483647,105,20,40
0,2147483647,0,2147483647,100,2147483647,0,2147483647,0,2147483647,0,2147483647,300,2147483647,0,2147483647,-1,700,10
0,2147483647,0,2147483647,100,2147483647,0,2147483647,0,2147483647,0,2147483647,0,2147483647,0,2147483647,90,-10,90
";

fn last_error() -> String {
    // SAFETY: a C string of this thread.
    unsafe { CStr::from_ptr(ascar_last_error()) }
        .to_string_lossy()
        .into_owned()
}

/// A stream through the C interface.
struct Held(*mut StreamHandle);

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: it is from `ascar_stream_create`.
        assert_eq!(unsafe { ascar_stream_free(self.0) }, OK);
    }
}

impl Held {
    fn new() -> Self {
        let mut stream = null_mut();
        // SAFETY: there is room for a pointer.
        assert_eq!(unsafe { ascar_stream_create(&raw mut stream) }, OK);
        Self(stream)
    }

    fn rules(&self, text: &str, options: *const CRuleOptions) {
        let text = CString::new(text).unwrap();
        // SAFETY: a stream, a C string, NULL or a structure.
        let status = unsafe { ascar_stream_set_rules(self.0, text.as_ptr(), options) };
        assert_eq!(status, OK, "{}", last_error());
    }

    fn state(&self) -> CStreamState {
        let mut state = CStreamState::default();
        // SAFETY: a stream, and room for the structure.
        assert_eq!(unsafe { ascar_stream_state(self.0, &raw mut state) }, OK);
        state
    }

    fn ask(&self, now_us: u64, bytes: u32) -> u64 {
        let mut at_us = 0;
        // SAFETY: a stream, and room for a number.
        let status = unsafe { ascar_stream_ask(self.0, now_us, bytes, &raw mut at_us) };
        assert_eq!(status, OK, "{}", last_error());
        at_us
    }

    fn sent(&self, now_us: u64, sending: &CSending) -> CRequest {
        let mut request = CRequest {
            sent_us: 0,
            stream: 0,
            bytes: 0,
            traits: 0,
        };
        // SAFETY: a stream, a structure, and room for one.
        let status = unsafe { ascar_stream_sent(self.0, now_us, sending, &raw mut request) };
        assert_eq!(status, OK, "{}", last_error());
        request
    }
}

/// A controller as a client without the library holds it.
struct Alone {
    controller: AnyController,
    in_flight: InFlight,
    sequences: Sequences,
    place_us: Option<u64>,
}

impl Alone {
    fn ask(&mut self, now_us: u64, bytes: u32) -> u64 {
        if self.place_us.is_none() && self.controller.admits(self.in_flight, bytes) {
            self.in_flight.requests += 1;
            self.in_flight.bytes += u64::from(bytes);
            self.place_us = Some(self.controller.reserve(now_us, bytes));
        }
        self.place_us.map_or(u64::MAX, |at_us| at_us.max(now_us))
    }

    fn replied(&mut self, flying: &Flying, now_us: u64) {
        let sending = &flying.sending;
        self.controller.on_reply(&Reply {
            sent_us: flying.sent_us,
            now_us,
            bytes: sending.bytes,
            in_flight: self.in_flight,
            write: sending.writes != 0,
            sequential: flying.sequential,
        });
        self.release(sending.bytes);
    }

    fn timed_out(&mut self, flying: &Flying, now_us: u64) {
        self.controller.on_timeout(flying.sent_us, now_us);
        self.release(flying.sending.bytes);
    }

    fn release(&mut self, bytes: u32) {
        self.in_flight.requests -= 1;
        self.in_flight.bytes -= u64::from(bytes);
    }
}

/// A request in flight, as both sides know it.
struct Flying {
    over_us: u64,
    sent_us: u64,
    sequential: bool,
    sending: CSending,
    request: CRequest,
}

/// Reproducible numbers (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Requests of several sizes, places and kinds; a server whose times grow with the queue, and that now and then is silent.
struct Run {
    held: Held,
    alone: Alone,
    numbers: Numbers,
    now_us: u64,
    server_free_us: u64,
    flying: VecDeque<Flying>,
    next: CSending,
    windows_seen: Vec<u32>,
}

impl Run {
    fn new(held: Held, controller: AnyController) -> Self {
        let mut run = Self {
            held,
            alone: Alone {
                controller,
                in_flight: InFlight::default(),
                sequences: Sequences::default(),
                place_us: None,
            },
            numbers: Numbers(88_172_645_463_325_252),
            now_us: 1_000,
            server_free_us: 0,
            flying: VecDeque::new(),
            next: CSending {
                offset_bytes: 0,
                bytes: 4096,
                file: 0,
                writes: 0,
            },
            windows_seen: Vec::new(),
        };
        run.plan();
        run
    }

    fn plan(&mut self) {
        let goes_on = self.numbers.below(3) > 0;
        let offset_bytes = self.next.offset_bytes + u64::from(self.next.bytes);
        self.next = CSending {
            offset_bytes: if goes_on {
                offset_bytes
            } else {
                self.numbers.below(1 << 40)
            },
            bytes: [0, 512, 4096, 65_536, 1 << 20][self.numbers.below(5) as usize],
            file: self.numbers.below(2) as u32,
            writes: self.numbers.below(2) as i32,
        };
    }

    /// One more request leaves, or one is over, or time passes.
    fn step(&mut self) {
        let bytes = self.next.bytes;
        let at_us = self.held.ask(self.now_us, bytes);
        assert_eq!(at_us, self.alone.ask(self.now_us, bytes));
        if at_us <= self.now_us {
            return self.send();
        }
        let over_us = self.flying.front().map_or(u64::MAX, |one| one.over_us);
        self.now_us = at_us.min(over_us);
        if over_us <= at_us {
            self.end();
        }
        self.compare();
    }

    fn send(&mut self) {
        let (now_us, sending) = (self.now_us, self.next);
        let request = self.held.sent(now_us, &sending);
        let alone = &mut self.alone;
        alone.place_us = None;
        alone.controller.on_send(now_us, sending.bytes);
        let is_extended = matches!(alone.controller, AnyController::Extended(_));
        let sequential = is_extended
            && sending.bytes > 0
            && alone
                .sequences
                .on_send(sending.file, sending.offset_bytes, sending.bytes);
        let service_us = 200 + self.numbers.below(900);
        self.server_free_us = self.server_free_us.max(now_us) + service_us;
        self.flying.push_back(Flying {
            over_us: self.server_free_us + 300,
            sent_us: now_us,
            sequential,
            sending,
            request,
        });
        self.plan();
    }

    fn end(&mut self) {
        let mut one = self.flying.pop_front().expect("one is in flight");
        let request = &raw mut one.request;
        if self.numbers.below(40) == 0 {
            // SAFETY: a stream and a request of its own.
            let status = unsafe { ascar_stream_timed_out(self.held.0, request, self.now_us) };
            assert_eq!(status, OK, "{}", last_error());
            self.alone.timed_out(&one, self.now_us);
        } else {
            // SAFETY: a stream and a request of its own.
            let status = unsafe { ascar_stream_replied(self.held.0, request, self.now_us) };
            assert_eq!(status, OK, "{}", last_error());
            if one.sending.bytes == 0 {
                one.sending.writes = 0;
            }
            self.alone.replied(&one, self.now_us);
        }
        assert_eq!(one.request.stream, 0);
    }

    fn compare(&mut self) {
        let (state, alone) = (self.held.state(), &self.alone);
        let window = alone.controller.window();
        assert_eq!(
            state.window.to_bits(),
            (f64::from(window.requests_x100) / 100.0).to_bits()
        );
        assert_eq!(state.pace_us, alone.controller.gap_us());
        assert_eq!(state.requests_in_flight, alone.in_flight.requests);
        assert_eq!(state.bytes_in_flight, alone.in_flight.bytes);
        if let Some(signals) = alone.controller.signals() {
            assert_eq!(signals, signals_of(&state));
        } else if state.replies > 0 {
            assert!(state.pt_ratio >= 1.0);
        }
        if self.windows_seen.last() != Some(&window.requests_x100) {
            self.windows_seen.push(window.requests_x100);
        }
    }
}

fn signals_of(state: &CStreamState) -> Signals {
    Signals {
        ack_us: state.ack_ewma_us,
        send_us: state.send_ewma_us,
        ratio100: (state.pt_ratio * 100.0).round() as u32,
        slow_ack_us: state.slow_ack_ewma_us,
        timeouts_per_1000: state.timeouts_per_1000,
        writes_per_1000: state.writes_per_1000,
        sequential_per_1000: state.sequential_per_1000,
        request_kib: state.request_kib,
    }
}

fn deployment(text: &str) -> Arc<Deployment> {
    Arc::new(Deployment::new(RuleSet::parse(text).unwrap()))
}

fn extended(text: &str, seed: u64, window_x100: u32) -> Extended {
    let options = Arc::new(Extensions::default());
    let extended = Extended::new(deployment(text), options, seed).unwrap();
    extended.with_window(window_x100)
}

#[test]
fn rivals_do_what_they_do_alone() {
    for name in RIVAL_NAMES {
        let held = Held::new();
        let c_name = CString::new(name).unwrap();
        // SAFETY: a stream, a C string, and NULL, which is allowed.
        let status = unsafe { ascar_stream_set_rival(held.0, c_name.as_ptr(), 7, null()) };
        assert_eq!(status, OK, "{}", last_error());
        let controller = AnyController::rival(name, 7).unwrap();
        let mut run = Run::new(held, controller);
        (0..30_000).for_each(|_| run.step());
        assert!(run.held.state().replies > 5_000, "{name}");
        assert_eq!(run.windows_seen.len() > 1, name != "fixed", "{name}");
    }
}

#[test]
fn rules_do_what_they_do_alone_and_are_counted() {
    let options = CRuleOptions {
        window: 12.5,
        extended: 0,
        seed: 3,
    };
    for text in [THESIS, EXTENDED] {
        let held = Held::new();
        held.rules(text, &raw const options);
        let controller = match text {
            THESIS => AnyController::Faithful(Faithful::with_window(deployment(text), 1250)),
            _ => AnyController::Extended(extended(text, 3, 1250)),
        };
        let mut run = Run::new(held, controller);
        (0..40_000).for_each(|_| run.step());
        assert!(run.windows_seen.len() > 3);
        let alone = match &run.alone.controller {
            AnyController::Faithful(faithful) => faithful.deployment(),
            AnyController::Extended(extended) => extended.deployment(),
            _ => unreachable!("rules are in force"),
        };
        let observed = alone.usage.observed();
        let (mut uses, mut found) = ([0; 8], 0);
        // SAFETY: a stream, room for eight counts and for a number.
        let status =
            unsafe { ascar_stream_rule_uses(run.held.0, uses.as_mut_ptr(), 8, &raw mut found) };
        assert_eq!((status, found), (OK, observed.len()));
        let expected: Vec<u64> = observed.iter().map(|rule| rule.used_times).collect();
        assert_eq!(uses[..found], expected);
        assert!(expected.iter().filter(|uses| **uses > 0).count() > 1);
        let mut written = vec![1; 4096];
        // SAFETY: a stream, room for 4096 bytes and for a number.
        let status =
            unsafe { ascar_stream_rules(run.held.0, written.as_mut_ptr(), 4096, &raw mut found) };
        assert_eq!(status, OK);
        let written: Vec<u8> = written[..found].iter().map(|byte| *byte as u8).collect();
        let text = CStr::from_bytes_with_nul(&written).unwrap();
        assert_eq!(text.to_str().unwrap(), alone.observed_rules().to_text());
    }
}

#[test]
fn what_is_in_flight_stays_when_the_controller_changes() {
    let held = Held::new();
    let fixed = AnyController::Fixed(Fixed::new(3_200, 5_000_000));
    // SAFETY: a stream.
    assert_eq!(unsafe { ascar_stream_set_fixed(held.0, 32.0, 100) }, OK);
    let mut run = Run::new(held, AnyController::Fixed(Fixed::new(3_200, 100)));
    (0..2_000).for_each(|_| run.step());
    // A long pace: the next request would wait for five seconds.
    // SAFETY: a stream.
    assert_eq!(
        unsafe { ascar_stream_set_fixed(run.held.0, 32.0, 5_000_000) },
        OK
    );
    let waits = |run: &mut Run, controller| {
        run.alone.controller = controller;
        if run.alone.place_us.is_some() {
            let reserved_us = run.alone.controller.reserve(run.now_us, run.next.bytes);
            run.alone.place_us = Some(reserved_us);
        }
    };
    waits(&mut run, fixed);
    (0..20).for_each(|_| run.step());
    let before = run.held.state();
    assert!(before.requests_in_flight > 0);
    run.held.rules(THESIS, null());
    let faithful = Faithful::with_window(deployment(THESIS), 3_200);
    waits(&mut run, AnyController::Faithful(faithful));
    run.compare();
    assert_eq!(
        run.held.state().requests_in_flight,
        before.requests_in_flight
    );
    assert_eq!(run.held.state().window.to_bits(), 32.0_f64.to_bits());
    (0..20_000).for_each(|_| run.step());
    assert!(run.held.state().replies > before.replies + 1_000);
}

#[test]
fn the_defaults_of_the_header_are_those_of_the_crate() {
    let header = include_str!("../include/congestion.h");
    let line = header
        .lines()
        .find_map(|line| line.strip_prefix("#define ASCAR_RIVAL_DEFAULTS {"))
        .unwrap();
    let told: Vec<f64> = line
        .trim_end_matches('}')
        .split(',')
        .map(|number| number.trim().parse().unwrap())
        .collect();
    let own = RivalSettings::default();
    let expected = [
        f64::from(own.latency_us_max),
        own.aimd_decrease,
        own.cubic_decrease,
        own.cubic_growth,
        own.vegas_alpha,
        own.vegas_beta,
        own.copa_delta,
        own.gradient2_queue,
        own.gradient2_smoothing,
        own.bbr_window_gain,
        own.bbr_probe_gain,
    ];
    assert_eq!(told, expected);
    for name in RIVAL_NAMES {
        assert!(header.contains(name), "{name}");
    }
}
