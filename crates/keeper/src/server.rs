//! The keeper's life: restore what others left, serve one client, put everything back.

use std::io::{Read, Stdout};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use serde_json::Value;

use crate::fault::{Doing, Fault, Result};
use crate::interrupt::Interrupt;
use crate::invoker::Invoker;
use crate::journal::{Header, Journal, SCHEMA};
use crate::kernel;
use crate::locks::{self, Held};
use crate::protocol::{Lines, Operation, Replies, Request};
use crate::report::Report;
use crate::restore::{self, Scope};
use crate::session::{Session, Setup};

/// Requests that may wait while one is worked on.
const WAITING_MAX: usize = 16;
/// How long the end of a session waits for the request at work before it takes harder measures.
const GRACE: Duration = Duration::from_millis(50);
/// How long it waits after those.
const PATIENCE: Duration = Duration::from_secs(15);

/// Serves the client on stdin and stdout until it is gone. Returns what could not be put back at the end.
pub fn serve(state_directory: &Path, hold: bool, user: bool) -> Result<Report> {
    let signals = block_signals()?;
    outlive_others();
    let invoker = Arc::new(Invoker::discover());
    let stale = restore::restore_stale(state_directory, Scope::Left)?;
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let header = Header {
        schema: SCHEMA,
        boot_id: kernel::boot_id(),
        owner: String::new(),
        pid: std::process::id(),
        uid: invoker.uid,
        started_unix_s: started.as_secs(),
        machine: kernel::machine_id().filter(|_| user),
    };
    let journal = Arc::new(Mutex::new(Journal::new(state_directory, header)));
    let interrupt = Arc::new(Interrupt::new()?);
    // Kept until the knobs are back: another session would take a changed value for the old one.
    let held = Held::default();
    let mut session = Session::new(Setup {
        name: format!("{:x}-{}", started.as_micros(), std::process::id()),
        hold,
        user,
        invoker: Arc::clone(&invoker),
        journal: Arc::clone(&journal),
        interrupt: Arc::clone(&interrupt),
        stale,
        held: Arc::clone(&held),
        lock_directory: if user {
            state_directory.join("locks")
        } else {
            locks::DIRECTORY.into()
        },
    });
    let mut worker = Worker::start(move |request| session.serve(request))?;
    let listening = AssertUnwindSafe(|| listen(&worker, &signals, &invoker));
    let listened =
        catch_unwind(listening).unwrap_or_else(|_| Err(Fault::failed("the keeper made a mistake")));
    if !worker.ended() {
        interrupt.raise();
        worker.close();
        // A request at work notices within milliseconds, unless it waits for the kernel.
        if !worker.wait(GRACE)
            && let Ok(mut journal) = try_lock(&journal, GRACE)
        {
            restore::stop(&mut journal);
        }
        worker.wait(PATIENCE);
    }
    if worker.ended() && hold && worker.shut_down() {
        return listened.map(|()| Report::default());
    }
    let mut journal = try_lock(&journal, PATIENCE)?;
    journal.seal();
    if !worker.ended() {
        // Its request may still change something when we have looked already.
        journal.freeze();
    }
    let report = restore::restore_under(held, &mut journal);
    listened.map(|()| report)
}

/// The journal, also when its last holder panicked, but not when its holder is stuck in the kernel.
fn try_lock(journal: &Mutex<Journal>, patience: Duration) -> Result<MutexGuard<'_, Journal>> {
    let started = Instant::now();
    loop {
        match journal.try_lock() {
            Ok(journal) => return Ok(journal),
            Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if started.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Fault::failed(
                    "a request does not end: its changes stay in the journal: restore them later",
                ));
            }
        }
    }
}

/// When memory is short, others go first: who else would put things back?
pub(crate) fn outlive_others() {
    let _ = std::fs::write("/proc/self/oom_score_adj", "-900");
}

/// Signals that end a session come through a descriptor; all threads started later inherit the block.
pub(crate) fn block_signals() -> Result<SignalFd> {
    let mut set = SigSet::empty();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        set.add(signal);
    }
    set.thread_block().doing("block signals")?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC).doing("make a signalfd")
}

/// Passes requests on until the client is gone, a signal comes, or the worker has ended.
fn listen(worker: &Worker, signals: &SignalFd, invoker: &Invoker) -> Result<()> {
    let mut stdin = std::io::stdin().lock();
    let mut lines = Lines::default();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let descriptor = std::io::stdin();
        let mut watched = vec![
            PollFd::new(descriptor.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(worker.ended.as_fd(), PollFlags::POLLIN),
        ];
        if let Some(client) = &invoker.client {
            watched.push(PollFd::new(client.ended.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut watched, PollTimeout::NONE) {
            Ok(_) => {}
            Err(nix::Error::EINTR) => continue,
            Err(error) => return Err(error).doing("wait for requests"),
        }
        let is_ready = |index: usize| {
            watched
                .get(index)
                .is_some_and(|it| it.any().unwrap_or(true))
        };
        if is_ready(1) || is_ready(2) || is_ready(3) {
            return Ok(());
        }
        match stdin.read(&mut piece) {
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) => lines.feed(&piece[..count], |line| worker.take(line)),
        }
    }
}

/// The thread that does the work.
struct Worker {
    /// None when no more requests will be taken.
    requests: Option<SyncSender<Request>>,
    replies: Arc<Replies<Stdout>>,
    ended: Arc<EventFd>,
    shut_down: Arc<Mutex<bool>>,
}

impl Worker {
    fn start(serve: impl FnMut(Request) -> Result<Value> + Send + 'static) -> Result<Self> {
        let (requests, receiver) = sync_channel(WAITING_MAX);
        let replies = Arc::new(Replies::new(std::io::stdout()));
        let ended = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .doing("make an eventfd")?;
        let worker = Self {
            requests: Some(requests),
            replies: Arc::clone(&replies),
            ended: Arc::new(ended),
            shut_down: Arc::default(),
        };
        let (ended, shut_down) = (
            Ended(Arc::clone(&worker.ended)),
            Arc::clone(&worker.shut_down),
        );
        let work = move || {
            let _ended = ended;
            if serve_all(serve, &receiver, &replies) {
                *shut_down.lock().unwrap_or_else(PoisonError::into_inner) = true;
            }
        };
        std::thread::Builder::new()
            .name("worker".to_owned())
            .spawn(work)
            .doing("start a thread")?;
        Ok(worker)
    }

    fn take(&self, line: Result<&[u8]>) {
        let request = match line {
            Ok(line) => Request::parse(line),
            Err(fault) => Err((None, fault)),
        };
        match request {
            Err((id, fault)) => self.replies.send(id, &Err(fault)),
            Ok(request) => {
                let id = request.id;
                let is_full = |requests: &SyncSender<Request>| {
                    matches!(requests.try_send(request), Err(TrySendError::Full(_)))
                };
                if self.requests.as_ref().is_some_and(is_full) {
                    let fault = Fault::input(format!(
                        "more than {WAITING_MAX} requests wait: read the replies first"
                    ));
                    self.replies.send(Some(id), &Err(fault));
                }
            }
        }
    }

    /// An idle worker ends at once, a busy one with its request.
    fn close(&mut self) {
        self.requests = None;
    }

    fn ended(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    /// Whether the worker has ended, after at most this time.
    fn wait(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline
                .saturating_duration_since(Instant::now())
                .as_millis() as u16;
            match poll(
                &mut [PollFd::new(self.ended.as_fd(), PollFlags::POLLIN)],
                left,
            ) {
                Err(nix::Error::EINTR) => {}
                ready => return ready.is_ok_and(|count| count > 0),
            }
        }
    }

    fn shut_down(&self) -> bool {
        *self
            .shut_down
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says so when the worker ends, also by a panic.
struct Ended(Arc<EventFd>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.write(1);
    }
}

/// Serves request after request. Returns whether the client ended the session properly.
fn serve_all(
    mut serve: impl FnMut(Request) -> Result<Value>,
    requests: &Receiver<Request>,
    replies: &Replies<Stdout>,
) -> bool {
    while let Ok(request) = requests.recv() {
        let id = request.id;
        let last = matches!(
            request.operation,
            Operation::Shutdown {} | Operation::AwaitConfirmation { .. }
        );
        let outcome = serve(request);
        replies.send(Some(id), &outcome);
        if last && outcome.is_ok() {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &[u8] = br#"{"id": 1, "op": "status"}"#;

    #[test]
    fn a_worker_that_panics_has_ended() {
        let worker = Worker::start(|_| panic!("on purpose")).unwrap();
        assert!(!worker.ended());
        worker.take(Ok(STATUS));
        assert!(worker.wait(Duration::from_secs(60)));
        assert!(!worker.shut_down());
    }

    #[test]
    fn an_idle_worker_ends_when_it_is_closed() {
        let mut worker = Worker::start(|_| Ok(Value::Null)).unwrap();
        assert!(!worker.wait(Duration::from_millis(20)));
        worker.close();
        assert!(worker.wait(Duration::from_secs(60)));
    }

    #[test]
    fn a_journal_in_use_is_waited_for_but_not_forever() {
        let header = Header {
            schema: SCHEMA,
            boot_id: String::new(),
            owner: String::new(),
            pid: 0,
            uid: 0,
            started_unix_s: 0,
            machine: None,
        };
        let journal = Mutex::new(Journal::new(Path::new("/nowhere"), header));
        let held = journal.lock().unwrap();
        assert!(try_lock(&journal, Duration::from_millis(10)).is_err());
        drop(held);
        assert!(try_lock(&journal, Duration::ZERO).is_ok());
    }
}
