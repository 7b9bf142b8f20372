//! The thread that writes states: whoever hands one over does not wait for the disk.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::{Disk, Draft, Slots};

/// What has come of a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its number; those before it that were never written are as good as written with it.
    pub number: u64,
    /// Whether it is on the device, or why not.
    pub kept: Result<(), String>,
}

/// The newest state alone waits: it says all that the ones before it said.
type Waiting = Arc<Mutex<Option<Draft>>>;

/// The way to the thread.
#[derive(Debug)]
pub struct StateWriter {
    waiting: Waiting,
    /// Its end is the thread's.
    wake: Option<SyncSender<()>>,
    /// What the thread tells, in the order of its writes.
    pub outcomes: Receiver<Outcome>,
    thread: Option<JoinHandle<()>>,
}

impl StateWriter {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub fn start<D: Disk + Send + 'static>(slots: Slots<D>) -> Result<Self, String> {
        let waiting = Waiting::default();
        let (wake, woken) = sync_channel(1);
        let (sender, outcomes) = channel();
        let drafts = Arc::clone(&waiting);
        let thread = std::thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || write(slots, &drafts, &woken, &sender))
            .map_err(|error| format!("start a thread: {error}"))?;
        Ok(Self {
            waiting,
            wake: Some(wake),
            outcomes,
            thread: Some(thread),
        })
    }

    /// Hands a state over, in place of one that waits still.
    pub fn send(&self, draft: Draft) {
        *lock(&self.waiting) = Some(draft);
        if let Some(wake) = &self.wake {
            // Where it is to wake up already, it finds this one.
            let _ = wake.try_send(());
        }
    }

    /// Waits until everything is written, and ends.
    pub fn stop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(waiting: &Waiting) -> std::sync::MutexGuard<'_, Option<Draft>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Until nobody can wake it any more.
fn write<D: Disk>(
    mut slots: Slots<D>,
    waiting: &Waiting,
    woken: &Receiver<()>,
    outcomes: &Sender<Outcome>,
) {
    let next = || lock(waiting).take();
    while woken.recv().is_ok() {
        while let Some(draft) = next() {
            let (number, kept) = (draft.number, slots.keep(&draft));
            let _ = outcomes.send(Outcome { number, kept });
        }
    }
}
