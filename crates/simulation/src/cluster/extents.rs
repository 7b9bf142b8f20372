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
    /// The ranges held, with their numbers.
    held: Vec<(Claim, u32)>,
    /// Asks in the order of their arrival, with the number of ranges held and of asks before them that they conflict
    /// with.
    waiting: Vec<(Claim, usize)>,
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
    /// What the server at work has to say; empty between events.
    words: Vec<Word>,
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
            words: Vec::new(),
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
        let held = self.objects[object as usize].held.iter();
        let usable = |number: &u32| {
            let held = &self.held[*number as usize];
            held.arrived && !held.given_up
        };
        held.filter(|(claim, _)| claim.allows(ask))
            .map(|(_, number)| *number)
            .find(usable)
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

    /// An ask arrives: what conflicts with it is called back.
    fn take_ask(&mut self, object: u32, ask: Claim) {
        let Object { held, waiting, .. } = &mut self.objects[object as usize];
        let mut blockers = 0;
        for (_, number) in held.iter().filter(|(claim, _)| claim.conflicts(&ask)) {
            blockers += 1;
            let held = &mut self.held[*number as usize];
            if !held.called_back {
                held.called_back = true;
                self.words.push(Word::CallBack(*number));
            }
        }
        let before = waiting.iter().filter(|(other, _)| other.conflicts(&ask));
        blockers += before.count();
        waiting.push((ask, blockers));
        self.answer_asks(object);
    }

    /// A range is free again.
    fn take_back(&mut self, object: u32, number: u32) {
        let Object { held, waiting, .. } = &mut self.objects[object as usize];
        held.retain(|(_, other)| *other != number);
        self.free.push(number);
        let claim = self.held[number as usize].claim;
        for (ask, blockers) in waiting {
            *blockers -= usize::from(claim.conflicts(ask));
        }
        self.answer_asks(object);
    }

    /// Grant what nothing stands in the way of any more, and call it back where others wait for some of it.
    fn answer_asks(&mut self, object: u32) {
        let (mut place, mut granted) = (0, Vec::new());
        while let Some(&(ask, blockers)) = self.objects[object as usize].waiting.get(place) {
            if blockers == 0 {
                self.objects[object as usize].waiting.remove(place);
                // Who has waited behind it waits for what is granted now.
                let number = self.grant(object, ask);
                granted.push(number);
                self.words.push(Word::Grant(number, ask));
                continue;
            }
            for &number in &granted {
                let held = &mut self.held[number as usize];
                if !held.called_back && held.claim.conflicts(&ask) {
                    held.called_back = true;
                    self.words.push(Word::CallBack(number));
                }
            }
            place += 1;
        }
    }

    /// The range that answers an ask: one that its client holds already, or a new one.
    fn grant(&mut self, object: u32, ask: Claim) -> u32 {
        let Object { held, waiting, .. } = &self.objects[object as usize];
        let suits = |(claim, number): &&(Claim, u32)| {
            claim.allows(&ask) && !self.held[*number as usize].called_back
        };
        if let Some((_, number)) = held.iter().find(suits) {
            return *number;
        }
        let claims = held.iter().map(|(claim, _)| claim);
        let asks = waiting.iter().map(|(other, _)| other);
        let claim = Claim {
            range: ask.grown(self.most_growth, claims, asks),
            ..ask
        };
        let made = Held {
            object,
            claim,
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
        self.objects[object as usize].held.push((claim, number));
        number
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
                extents.take_ask(object, ask);
                self.tell_words(object);
            }
            Word::GiveUp(number) => {
                extents.take_back(object, number);
                self.tell_words(object);
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

    /// Tell clients what a server has decided about an object.
    fn tell_words(&mut self, object: u32) {
        let Some(extents) = &mut self.locks.extents else {
            return;
        };
        let handover_ns = extents.handover_ns;
        let mut words = std::mem::take(&mut extents.words);
        for word in words.drain(..) {
            // A call-back comes behind the grant of the same range, that may still be under way.
            self.tell(Message { object, word }, handover_ns);
        }
        if let Some(extents) = &mut self.locks.extents {
            extents.words = words;
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
