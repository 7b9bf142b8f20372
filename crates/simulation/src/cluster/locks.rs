//! Locks on shared files, as Lustre's: a client keeps a lock until another wants one that conflicts. Then the server
//! calls it back; the client lets what it has under way end and writes its dirty data, and only then gives it up.

use std::collections::VecDeque;

use super::Cluster;
use super::extents::ExtentLocks;
use crate::events::{Kind, Nanos};
use crate::files::Piece;
use crate::lists::{List, NONE};
use crate::requests::{Purpose, Request};
use crate::scenario::Locks;

/// What a lock allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Mode {
    /// Nothing.
    #[default]
    None,
    /// Reading, beside other readers.
    Read,
    /// Reading and writing, alone.
    Write,
}

/// A lock as the server has it.
#[derive(Debug, Default)]
struct Lock {
    /// Clients that want it, in order.
    queue: VecDeque<(u32, Mode)>,
    /// Clients that hold it.
    holders: Vec<u32>,
    writing: bool,
    /// Clients called back that have not given it up.
    called_back: u32,
}

/// A lock as a client has it.
#[derive(Debug, Default)]
struct Held {
    mode: Mode,
    /// Requests under way under it.
    users: u32,
    /// Dirty bytes under it.
    dirty: u64,
    /// Threads that wait for it.
    waiting: List,
    /// What was asked for.
    requested: Mode,
    called_back: bool,
}

#[derive(Debug, Clone, Copy)]
enum Word {
    Request(Mode),
    CallBack,
    GiveUp,
    Grant(Mode),
}

#[derive(Debug, Clone, Copy)]
struct Message {
    word: Word,
    lock: u32,
    client: u32,
}

/// All locks, and messages about them that are under way.
#[derive(Debug, Default)]
pub(super) struct LockTable {
    locks: Vec<Lock>,
    held: Vec<Held>,
    clients: u32,
    whole_file: bool,
    handover_ns: Nanos,
    messages: Vec<Message>,
    free: Vec<u32>,
    /// Locks on ranges instead of these, where the scenario has them.
    pub extents: Option<Box<ExtentLocks>>,
}

impl LockTable {
    /// So many locks for so many clients.
    pub fn new(parameters: &Locks, locks: u32, clients: u32) -> LockTable {
        let whole = if parameters.extents { 0 } else { locks };
        LockTable {
            locks: (0..whole).map(|_| Lock::default()).collect(),
            held: (0..whole * clients).map(|_| Held::default()).collect(),
            extents: parameters
                .extents
                .then(|| Box::new(ExtentLocks::new(parameters, locks, clients))),
            clients,
            whole_file: parameters.whole_file,
            handover_ns: (parameters.handover_us * 1e3) as Nanos,
            messages: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The lock of a file's object; [`NONE`] where the file has none.
    #[inline]
    pub fn number(&self, lock_base: u32, stripe: u32) -> u32 {
        if lock_base == NONE || self.whole_file {
            lock_base
        } else {
            lock_base + stripe
        }
    }

    /// A request begins under a lock, whose number it carries.
    #[inline]
    pub fn begin_use(&mut self, held: u32) {
        match &mut self.extents {
            Some(extents) => extents.begin_use(held),
            None => self.held[held as usize].users += 1,
        }
    }

    /// More is dirty under a lock.
    #[inline]
    pub fn add_dirty(&mut self, held: u32, bytes: u64) {
        match &mut self.extents {
            Some(extents) => extents.add_dirty(held, bytes),
            None => self.held[held as usize].dirty += bytes,
        }
    }

    fn held_mut(&mut self, held: u32) -> &mut Held {
        &mut self.held[held as usize]
    }

    fn slot(&mut self, message: Message) -> u32 {
        if let Some(index) = self.free.pop() {
            self.messages[index as usize] = message;
            index
        } else {
            self.messages.push(message);
            (self.messages.len() - 1) as u32
        }
    }
}

impl Cluster {
    /// Whether a thread may go on with a piece under a lock: its number among those held, or [`NONE`] where none is
    /// needed. Without an answer the thread waits in line for it.
    #[inline]
    pub(super) fn lock_for(
        &mut self,
        thread: u32,
        lock: u32,
        piece: &Piece,
        write: bool,
    ) -> Option<u32> {
        if lock == NONE {
            return Some(NONE);
        }
        if self.locks.extents.is_some() {
            return self.extent_for((thread, lock), piece, write);
        }
        let client = self.threads[thread].client;
        let number = lock * self.locks.clients + client;
        let mode = if write { Mode::Write } else { Mode::Read };
        let held = self.locks.held_mut(number);
        if held.mode >= mode && !held.called_back {
            return Some(number);
        }
        held.waiting.push(&mut self.threads, thread);
        if held.requested < mode {
            held.requested = mode;
            self.say(
                Message {
                    word: Word::Request(mode),
                    lock,
                    client,
                },
                0,
            );
        }
        None
    }

    fn say(&mut self, message: Message, after_ns: Nanos) {
        let index = self.locks.slot(message);
        let at = self.network.message_at(self.now) + after_ns;
        self.events.push(at, Kind::Lock, index);
    }

    pub(super) fn lock_message(&mut self, index: u32) {
        if self.locks.extents.is_some() {
            return self.extent_message(index);
        }
        let Message { word, lock, client } = self.locks.messages[index as usize];
        self.locks.free.push(index);
        match word {
            Word::Request(mode) => {
                self.locks.locks[lock as usize]
                    .queue
                    .push_back((client, mode));
                self.serve_lock(lock);
            }
            Word::GiveUp => {
                let entry = &mut self.locks.locks[lock as usize];
                entry.holders.retain(|&holder| holder != client);
                entry.called_back -= 1;
                entry.writing = false;
                self.serve_lock(lock);
            }
            Word::CallBack => {
                let number = lock * self.locks.clients + client;
                self.locks.held_mut(number).called_back = true;
                self.give_up(number);
            }
            Word::Grant(mode) => self.granted(lock, client, mode),
        }
    }

    /// Grant a lock to those first in line, or call it back from those who hold it.
    fn serve_lock(&mut self, lock: u32) {
        let handover_ns = self.locks.handover_ns;
        loop {
            let entry = &mut self.locks.locks[lock as usize];
            if entry.called_back > 0 {
                return;
            }
            let Some(&(client, mode)) = entry.queue.front() else {
                return;
            };
            let conflicts =
                |holder: &&u32| **holder != client && (entry.writing || mode == Mode::Write);
            let others: Vec<u32> = entry.holders.iter().filter(conflicts).copied().collect();
            if others.is_empty() {
                entry.queue.pop_front();
                if !entry.holders.contains(&client) {
                    entry.holders.push(client);
                }
                entry.writing |= mode == Mode::Write;
                self.say(
                    Message {
                        word: Word::Grant(mode),
                        lock,
                        client,
                    },
                    handover_ns,
                );
                continue;
            }
            entry.called_back = others.len() as u32;
            for client in others {
                // Behind a grant to the same client that may still be under way.
                self.say(
                    Message {
                        word: Word::CallBack,
                        lock,
                        client,
                    },
                    handover_ns,
                );
            }
            return;
        }
    }

    fn granted(&mut self, lock: u32, client: u32, mode: Mode) {
        let number = lock * self.locks.clients + client;
        let held = self.locks.held_mut(number);
        held.mode = held.mode.max(mode);
        if held.requested <= mode {
            held.requested = Mode::None;
        }
        let mut waiting = std::mem::take(&mut held.waiting);
        while let Some(thread) = waiting.pop(&mut self.threads) {
            self.proceed(thread);
        }
    }

    /// Give a lock up that was called back, once nothing is under way under it.
    fn give_up(&mut self, number: u32) {
        let held = self.locks.held_mut(number);
        if !held.called_back || held.users > 0 {
            return;
        }
        if held.dirty > 0 {
            self.flush_lock(number, number % self.locks.clients);
            return;
        }
        held.mode = Mode::None;
        held.called_back = false;
        let (lock, client) = (number / self.locks.clients, number % self.locks.clients);
        self.say(
            Message {
                word: Word::GiveUp,
                lock,
                client,
            },
            0,
        );
    }

    /// Send what a client holds back under a lock.
    pub(super) fn flush_lock(&mut self, number: u32, client: u32) {
        let servers = self.servers.len() as u32;
        for stream in client * servers..(client + 1) * servers {
            if self.streams[stream as usize]
                .partial
                .is_some_and(|partial| partial.lock == number)
            {
                self.flush_partial(stream);
            }
        }
    }

    /// A request under a lock has been answered.
    pub(super) fn done_under_lock(&mut self, request: &Request) {
        if self.locks.extents.is_some() {
            let written_back = request.purpose == Purpose::WriteBack;
            return self.done_under_extent(request.lock, written_back.then_some(request.length));
        }
        let held = self.locks.held_mut(request.lock);
        if request.purpose == Purpose::WriteBack {
            held.dirty -= u64::from(request.length);
        } else {
            held.users -= 1;
        }
        self.give_up(request.lock);
    }
}
