//! A stream as its client holds it: what may be sent, and when.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ascar_congestion::{
    Admission, Fault, Following, Misuse, RivalSettings, RuleSet, Sending, Sent, Stream as Core,
    hundredths,
};
use pyo3::import_exception;
use pyo3::prelude::*;
use pyo3::types::PyDict;

import_exception!(ascar.errors, InputError);

/// Tells streams apart: whose a request is.
static MADE: AtomicU64 = AtomicU64::new(0);

fn wrong(fault: Fault) -> PyErr {
    InputError::new_err(fault.to_string())
}

fn misused(misuse: Misuse) -> PyErr {
    InputError::new_err(misuse.to_string())
}

/// One client's requests to one server: says when a request may leave, and learns from the replies.
///
/// For each request: `ask` until the answer is at most the present time, `sent` just before it is sent, and `replied`,
/// `timed_out` or `cancelled` when it is over. Times are microseconds of a clock that never goes back
/// (`time.monotonic_ns() // 1000`). Threads that share a stream read the clock and make their calls under one lock.
///
/// Args:
///     window: requests in flight, 1 to 256; 2.5 lets two be in flight.
///     pace_us: the least time between two requests; 0: none.
///
/// Raises:
///     InputError: an argument is out of its range, a time went back, or a call does not fit: a request that has no place,
///         or that is not in flight. The stream stays as it was.
///     OverflowError: a number is negative, or too large for any stream.
#[pyclass(frozen, module = "ascar._core")]
pub struct Stream {
    number: u64,
    core: Mutex<Core>,
}

/// A request that has left, until it is over.
///
/// Attributes:
///     sent_us: when it left.
///     size_bytes: what it reads or writes.
#[pyclass(frozen, module = "ascar._core")]
pub struct StreamRequest {
    stream: u64,
    sent: Sent,
    is_over: AtomicBool,
}

/// A stream at present.
///
/// Attributes:
///     window: requests that may be in flight.
///     pace_us: the least time between two requests (tau).
///     requests_in_flight: with the one that has its place and has not left.
///     bytes_in_flight: of these requests.
///     replies: requests answered so far.
///     timeouts: requests given up so far.
///     ack_ewma_us: moving average of gaps between replies.
///     send_ewma_us: the same between the sending times of the requests answered.
///     pt_ratio: the last process time over the shortest; 0 before the first reply.
///     slow_ack_ewma_us: as ack_ewma_us, slower. It and what follows is 0 unless rules are followed by the extended controller.
///     timeouts_per_1000: time-outs among 1000 requests.
///     writes_per_1000: writes among 1000 requests.
///     sequential_per_1000: requests among 1000 that went on where another had ended.
///     request_kib: mean size of a request.
#[pyclass(frozen, get_all, module = "ascar._core")]
pub struct StreamState {
    window: f64,
    pace_us: u32,
    requests_in_flight: u32,
    bytes_in_flight: u64,
    replies: u64,
    timeouts: u64,
    ack_ewma_us: u32,
    send_ewma_us: u32,
    pt_ratio: f64,
    slow_ack_ewma_us: u32,
    timeouts_per_1000: u32,
    writes_per_1000: u32,
    sequential_per_1000: u32,
    request_kib: u32,
}

#[pymethods]
impl StreamRequest {
    /// When it left.
    #[getter]
    fn sent_us(&self) -> u64 {
        self.sent.sent_us
    }

    /// Bytes that it reads or writes.
    #[getter]
    fn size_bytes(&self) -> u32 {
        self.sent.bytes
    }
}

impl Stream {
    fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a request once.
    fn end(
        &self,
        request: &StreamRequest,
        act: impl FnOnce(&mut Core, &Sent) -> Result<(), Misuse>,
    ) -> PyResult<()> {
        let mut core = self.core();
        if request.stream != self.number {
            return Err(InputError::new_err(
                "the request is another stream's; give what this stream's `sent` returned",
            ));
        }
        if request.is_over.load(Ordering::Relaxed) {
            return Err(misused(Misuse::NotInFlight));
        }
        act(&mut core, &request.sent).map_err(misused)?;
        request.is_over.store(true, Ordering::Relaxed);
        Ok(())
    }
}

#[pymethods]
impl Stream {
    #[new]
    #[pyo3(signature = (window=8.0, pace_us=0))]
    fn new(window: f64, pace_us: u32) -> PyResult<Self> {
        let mut core = Core::default();
        core.fix(hundredths(window).map_err(wrong)?, pace_us)
            .map_err(wrong)?;
        Ok(Self {
            number: MADE.fetch_add(1, Ordering::Relaxed),
            core: Mutex::new(core),
        })
    }

    /// Hold it to a fixed window and a fixed pace from now on; what is in flight stays so.
    #[pyo3(signature = (window, pace_us=0))]
    fn set_fixed(&self, window: f64, pace_us: u32) -> PyResult<()> {
        let window_x100 = hundredths(window).map_err(wrong)?;
        self.core().fix(window_x100, pace_us).map_err(wrong)
    }

    /// Follow congestion rules from now on, given as the text of a rule file; what is in flight stays so.
    #[pyo3(signature = (rules, *, window=None, extended=false, seed=0))]
    fn set_rules(
        &self,
        rules: &str,
        window: Option<f64>,
        extended: bool,
        seed: u64,
    ) -> PyResult<()> {
        let following = Following {
            window_x100: window.map(hundredths).transpose().map_err(wrong)?,
            extended,
            seed,
        };
        let rules = RuleSet::parse(rules)
            .map_err(|fault| InputError::new_err(format!("rules: {fault}")))?;
        self.core().follow(rules, &following).map_err(wrong)
    }

    /// Follow a published controller from now on, with settings of its own where they are named.
    #[pyo3(signature = (name, seed=0, **settings))]
    fn set_rival(
        &self,
        name: &str,
        seed: u64,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let settings = settings.map_or_else(|| Ok(RivalSettings::default()), settings_of)?;
        self.core().rival(name, seed, &settings).map_err(wrong)
    }

    /// When a request of so many bytes may leave: now if that is at most `now_us`; None: when a request is over.
    fn ask(&self, now_us: u64, size_bytes: u32) -> PyResult<Option<u64>> {
        let asked = self.core().ask(now_us, size_bytes).map_err(misused)?;
        Ok(match asked {
            Admission::Now => Some(now_us),
            Admission::At(at_us) => Some(at_us),
            Admission::Full => None,
        })
    }

    /// The request that has its place is not sent: give the place back, to the one that asks next.
    fn give_back(&self) {
        self.core().give_back();
    }

    /// The request that may leave now does.
    #[pyo3(signature = (now_us, size_bytes, *, offset_bytes=0, file=0, writes=false))]
    fn sent(
        &self,
        now_us: u64,
        size_bytes: u32,
        offset_bytes: u64,
        file: u32,
        writes: bool,
    ) -> PyResult<StreamRequest> {
        let sending = Sending {
            file,
            offset_bytes,
            bytes: size_bytes,
            write: writes,
        };
        let sent = self.core().sent(now_us, &sending).map_err(misused)?;
        Ok(StreamRequest {
            stream: self.number,
            sent,
            is_over: AtomicBool::new(false),
        })
    }

    /// Its reply came, of success or of an error.
    fn replied(&self, request: &StreamRequest, now_us: u64) -> PyResult<()> {
        self.end(request, |core, sent| core.replied(sent, now_us))
    }

    /// Its reply did not come in time, and is waited for no more.
    fn timed_out(&self, request: &StreamRequest, now_us: u64) -> PyResult<()> {
        self.end(request, |core, sent| core.timed_out(sent, now_us))
    }

    /// It could not be sent after all, or its connection ended: it says nothing of the server.
    fn cancelled(&self, request: &StreamRequest) -> PyResult<()> {
        self.end(request, Core::cancelled)
    }

    /// Window, pace, what is in flight, indicators.
    #[getter]
    fn state(&self) -> StreamState {
        let core = self.core();
        let (in_flight, signals) = (core.in_flight(), core.signals());
        StreamState {
            window: f64::from(core.window().requests_x100) / 100.0,
            pace_us: core.gap_us(),
            requests_in_flight: in_flight.requests,
            bytes_in_flight: in_flight.bytes,
            replies: core.replies(),
            timeouts: core.timeouts(),
            ack_ewma_us: signals.ack_us,
            send_ewma_us: signals.send_us,
            pt_ratio: f64::from(signals.ratio100) / 100.0,
            slow_ack_ewma_us: signals.slow_ack_us,
            timeouts_per_1000: signals.timeouts_per_1000,
            writes_per_1000: signals.writes_per_1000,
            sequential_per_1000: signals.sequential_per_1000,
            request_kib: signals.request_kib,
        }
    }

    /// The text of the rules in force with the use of each; None where no rules decide.
    #[getter]
    fn rules(&self) -> Option<String> {
        let core = self.core();
        core.deployment().map(|it| it.observed_rules().to_text())
    }
}

/// Settings by their names.
fn settings_of(named: &Bound<'_, PyDict>) -> PyResult<RivalSettings> {
    let mut settings = RivalSettings::default();
    for (key, value) in named {
        let key: String = key.extract()?;
        if key == "latency_us_max" {
            settings.latency_us_max = value.extract()?;
            continue;
        }
        let place = match key.as_str() {
            "aimd_decrease" => &mut settings.aimd_decrease,
            "cubic_decrease" => &mut settings.cubic_decrease,
            "cubic_growth" => &mut settings.cubic_growth,
            "vegas_alpha" => &mut settings.vegas_alpha,
            "vegas_beta" => &mut settings.vegas_beta,
            "copa_delta" => &mut settings.copa_delta,
            "gradient2_queue" => &mut settings.gradient2_queue,
            "gradient2_smoothing" => &mut settings.gradient2_smoothing,
            "bbr_window_gain" => &mut settings.bbr_window_gain,
            "bbr_probe_gain" => &mut settings.bbr_probe_gain,
            _ => {
                return Err(InputError::new_err(format!(
                    "{key} is no setting of a controller; allowed: latency_us_max, aimd_decrease, cubic_decrease, \
                     cubic_growth, vegas_alpha, vegas_beta, copa_delta, gradient2_queue, gradient2_smoothing, \
                     bbr_window_gain, bbr_probe_gain"
                )));
            }
        };
        *place = value.extract()?;
    }
    Ok(settings)
}
