//! Locks on ranges of the objects of shared files. A client asks for what it is about to use, the server grants as much
//! as nobody else holds or waits for ([`crate::extents`]), and calls back what conflicts with another's ask, also while
//! its holder is still at work under it; the holder ends that, writes its dirty data, and gives the whole range up.

use super::Cluster;
use crate::events::{Kind, Nanos};
use crate::extents::{Claim, Range};
use crate::files::Piece;
use crate::lists::List;
use crate::scenario::Locks;

/// A range that a client holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    object: u32,
    claim: Claim,
    /// Requests under way under it.
    users: u32,
    /// Dirty bytes under it.
    dirty: u64,
    /// Whether the client knows of the grant.
    arrived: bool,
    /// Whether the server has called it back.
    called_back: bool,
    /// Whether the client knows of that.
    given_up: bool,
}

/// What a server has of an object.
#[derive(Debug, Default)]
struct Object {
    /// Numbers of the ranges held.
    held: Vec<u32>,
    /// Asks that conflict with what is held or with those before them, in the order of their arrival.
    waiting: Vec<Claim>,
    /// Asks of clients that are not answered, waiting or on their way.
    asked: Vec<Claim>,
}

#[derive(Debug, Clone, Copy)]
enum Word {
    Ask(Claim),
    CallBack(u32),
    GiveUp(u32),
    Grant(u32, Claim),
}

#[derive(Debug, Clone, Copy)]
struct Message {
    object: u32,
    word: Word,
}

/// All ranges, and messages about them that are under way.
#[derive(Debug)]
pub(super) struct ExtentLocks {
    objects: Vec<Object>,
    held: Vec<Held>,
    free: Vec<u32>,
    /// Threads that wait for a range, by object and client.
    threads: Vec<List>,
    clients: u32,
    most_growth: u64,
    handover_ns: Nanos,
    messages: Vec<Message>,
    free_messages: Vec<u32>,
}

impl ExtentLocks {
    /// Of so many objects and clients.
    pub fn new(parameters: &Locks, objects: u32, clients: u32) -> ExtentLocks {
        ExtentLocks {
            objects: (0..objects).map(|_| Object::default()).collect(),
            held: Vec::new(),
            free: Vec::new(),
            threads: vec![List::default(); (objects * clients) as usize],
            clients,
            most_growth: parameters
                .extent_growth_mib
                .map_or(u64::MAX, |mib| (mib * f64::from(1 << 20)) as u64),
            handover_ns: (parameters.handover_us * 1e3) as Nanos,
            messages: Vec::new(),
            free_messages: Vec::new(),
        }
    }

    /// A request begins under a range.
    pub fn begin_use(&mut self, held: u32) {
        self.held[held as usize].users += 1;
    }

    /// More is dirty under a range.
    pub fn add_dirty(&mut self, held: u32, bytes: u64) {
        self.held[held as usize].dirty += bytes;
    }

    /// A range that its client may begin work under.
    fn usable(&self, object: u32, ask: &Claim) -> Option<u32> {
        let held = &self.objects[object as usize].held;
        held.iter().copied().find(|&number| {
            let held = &self.held[number as usize];
            held.arrived && !held.given_up && held.claim.allows(ask)
        })
    }

    /// Note a thread's ask, unless the client has asked for as much already; whether it is new.
    fn note_ask(&mut self, object: u32, ask: Claim) -> bool {
        let asked = &mut self.objects[object as usize].asked;
        let is_new = !asked.iter().any(|other| other.allows(&ask));
        if is_new {
            asked.push(ask);
        }
        is_new
    }

    fn slot(&mut self, message: Message) -> u32 {
        if let Some(index) = self.free_messages.pop() {
            self.messages[index as usize] = message;
            index
        } else {
            self.messages.push(message);
            (self.messages.len() - 1) as u32
        }
    }

    /// Answer the first ask that can be: its place among those waiting, whether what it wants has to be called back.
    fn next_word(&mut self, object: u32) -> Option<Word> {
        let ExtentLocks {
            objects, held: all, ..
        } = self;
        let Object { held, waiting, .. } = &mut objects[object as usize];
        for place in 0..waiting.len() {
            let ask = waiting[place];
            let mut free = !waiting[..place].iter().any(|before| before.conflicts(&ask));
            for &number in held.iter() {
                let held = &mut all[number as usize];
                if held.claim.conflicts(&ask) {
                    free = false;
                    if !held.called_back {
                        held.called_back = true;
                        return Some(Word::CallBack(number));
                    }
                }
            }
            if free {
                waiting.remove(place);
                return Some(Word::Grant(self.grant(object, ask), ask));
            }
        }
        None
    }

    /// The range that answers an ask: one that its client holds already, or a new one.
    fn grant(&mut self, object: u32, ask: Claim) -> u32 {
        let entry = &self.objects[object as usize];
        let claims = |number: &u32| &self.held[*number as usize];
        let suits = |number: &&u32| {
            let held = claims(number);
            !held.called_back && held.claim.allows(&ask)
        };
        if let Some(&number) = entry.held.iter().find(suits) {
            return number;
        }
        let held = entry.held.iter().map(|number| &claims(number).claim);
        let range = ask.grown(self.most_growth, held, entry.waiting.iter());
        let made = Held {
            object,
            claim: Claim { range, ..ask },
            users: 0,
            dirty: 0,
            arrived: false,
            called_back: false,
            given_up: false,
        };
        let number = if let Some(number) = self.free.pop() {
            self.held[number as usize] = made;
            number
        } else {
            self.held.push(made);
            (self.held.len() - 1) as u32
        };
        self.objects[object as usize].held.push(number);
        number
    }

    /// A range is free again.
    fn forget(&mut self, object: u32, number: u32) {
        self.objects[object as usize]
            .held
            .retain(|&held| held != number);
        self.free.push(number);
    }
}

impl Cluster {
    /// Whether a thread may go on with a piece: the range that it works under. Otherwise the thread waits for one.
    pub(super) fn extent_for(
        &mut self,
        (thread, object): (u32, u32),
        piece: &Piece,
        write: bool,
    ) -> Option<u32> {
        let client = self.threads[thread].client;
        let range = Range {
            begin: piece.offset,
            end: piece.offset + u64::from(piece.length),
        };
        let ask = Claim {
            client,
            write,
            range,
        };
        let extents = self.locks.extents.as_mut()?;
        if let Some(held) = extents.usable(object, &ask) {
            return Some(held);
        }
        extents.threads[(object * extents.clients + client) as usize]
            .push(&mut self.threads, thread);
        if extents.note_ask(object, ask) {
            let word = Word::Ask(ask);
            self.tell(Message { object, word }, 0);
        }
        None
    }

    fn tell(&mut self, message: Message, after_ns: Nanos) {
        let at = self.network.message_at(self.now) + after_ns;
        if let Some(extents) = &mut self.locks.extents {
            let index = extents.slot(message);
            self.events.push(at, Kind::Lock, index);
        }
    }

    /// A message about a range arrives.
    pub(super) fn extent_message(&mut self, index: u32) {
        let Some(extents) = &mut self.locks.extents else {
            return;
        };
        let Message { object, word } = extents.messages[index as usize];
        extents.free_messages.push(index);
        match word {
            Word::Ask(ask) => {
                extents.objects[object as usize].waiting.push(ask);
                self.answer_asks(object);
            }
            Word::GiveUp(number) => {
                extents.forget(object, number);
                self.answer_asks(object);
            }
            Word::CallBack(number) => {
                extents.held[number as usize].given_up = true;
                self.give_up_extent(number);
            }
            Word::Grant(number, ask) => {
                extents.held[number as usize].arrived = true;
                let asked = &mut extents.objects[object as usize].asked;
                asked.retain(|other| *other != ask);
                let list = (object * extents.clients + ask.client) as usize;
                let mut waiting = std::mem::take(&mut extents.threads[list]);
                while let Some(thread) = waiting.pop(&mut self.threads) {
                    self.proceed(thread);
                }
            }
        }
    }

    fn answer_asks(&mut self, object: u32) {
        while let Some(extents) = &mut self.locks.extents {
            let handover_ns = extents.handover_ns;
            let Some(word) = extents.next_word(object) else {
                return;
            };
            // A call-back comes behind the grant of the same range, that may still be under way.
            self.tell(Message { object, word }, handover_ns);
        }
    }

    /// A request under a range has been answered.
    pub(super) fn done_under_extent(&mut self, number: u32, written_back: Option<u32>) {
        if let Some(extents) = &mut self.locks.extents {
            let held = &mut extents.held[number as usize];
            match written_back {
                Some(length) => held.dirty -= u64::from(length),
                None => held.users -= 1,
            }
            self.give_up_extent(number);
        }
    }

    /// Give a range up that was called back, once nothing is under way under it.
    fn give_up_extent(&mut self, number: u32) {
        let Some(extents) = &self.locks.extents else {
            return;
        };
        let held = extents.held[number as usize];
        if !held.given_up || held.users > 0 {
            return;
        }
        if held.dirty > 0 {
            self.flush_lock(number, held.claim.client);
            return;
        }
        let (object, word) = (held.object, Word::GiveUp(number));
        self.tell(Message { object, word }, 0);
    }
}
