//! The controllers in a thread of their own: a program that hangs, or a knob that cannot be read, holds up no tick.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use ascar_messaging::{Fault, ParameterState};
use serde_json::{Map, Value};

use super::Controllers;

/// Requests that may wait.
const WAITING_MAX: usize = 64;

/// What is asked of the controllers.
#[derive(Clone, Debug)]
pub enum Request {
    /// To set knobs: the order's id, keys and values.
    Set(String, Map<String, Value>),
    /// To put everything back; the order's id, if there is one.
    Restore(Option<String>),
    /// To look after their processes, and what is in force: as indicators, and as states where that is wanted.
    Look {
        /// Whether states are wanted; programs are asked for them.
        states: bool,
    },
}

/// What they have done.
#[derive(Debug)]
pub enum Done {
    /// What is in force now.
    Set(String, Result<Map<String, Value>, String>),
    /// The report of it.
    Restored(Option<String>, Result<Value, String>),
    /// What was seen.
    Looked(Seen),
}

/// What is in force.
#[derive(Debug, Default)]
pub struct Seen {
    /// Knobs as indicators.
    pub levels: Vec<(String, f64)>,
    /// Knobs with their ranges, where they were wanted.
    pub states: Option<Vec<ParameterState>>,
    /// What happened to processes.
    pub news: Option<String>,
}

/// The way to the thread.
#[derive(Debug)]
pub struct Worker {
    requests: Option<SyncSender<Request>>,
    done: Receiver<(Done, bool)>,
    thread: Option<std::thread::JoinHandle<()>>,
    /// Requests that are not done.
    outstanding: usize,
}

impl Worker {
    /// Starts it.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(mut controllers: Controllers) -> Result<Self, Fault> {
        let (requests, asked) = sync_channel(WAITING_MAX);
        let (sender, done) = sync_channel(2 * WAITING_MAX);
        let work = move || {
            while let Ok(request) = asked.recv() {
                let one = serve(&mut controllers, request);
                if sender.send((one, controllers.touched())).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("controllers".to_owned())
            .spawn(work)
            .map_err(|error| Fault(format!("start a thread: {error}")))?;
        Ok(Self {
            requests: Some(requests),
            done,
            thread: Some(thread),
            outstanding: 0,
        })
    }

    /// Asks for something. False where too much waits already, or the thread has ended.
    pub fn ask(&mut self, request: Request) -> bool {
        let requests = self.requests.as_ref();
        let taken = requests.is_some_and(|it| it.try_send(request).is_ok());
        self.outstanding += usize::from(taken);
        taken
    }

    /// Whether something is not done.
    pub fn is_busy(&self) -> bool {
        self.outstanding > 0
    }

    /// The next that was done, until a deadline, and whether a knob may differ from its initial value now.
    ///
    /// # Errors
    /// When the thread has ended by a mistake of ours.
    pub fn done(&mut self, deadline: Instant) -> Result<Option<(Done, bool)>, Fault> {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.done.recv_timeout(left) {
            Ok(one) => {
                self.outstanding -= 1;
                Ok(Some(one))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Fault(
                "the controllers have ended by a mistake; their knobs are put back".to_owned(),
            )),
        }
    }

    /// Ends the controllers' processes; waits for that at most so long.
    pub fn end(&mut self, patience: Duration) {
        self.requests = None;
        let started = Instant::now();
        while self.thread.as_ref().is_some_and(|it| !it.is_finished()) {
            if started.elapsed() > patience {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(controllers: &mut Controllers, request: Request) -> Done {
    match request {
        Request::Set(id, settings) => Done::Set(id, controllers.set(&settings)),
        Request::Restore(id) => Done::Restored(id, controllers.restore()),
        Request::Look { states } => {
            let news = controllers.watch();
            Done::Looked(Seen {
                states: (states || news.is_some()).then(|| controllers.states()),
                levels: controllers.levels(),
                news,
            })
        }
    }
}
