//! Requests from clients to servers: a slab of them.

use crate::events::Nanos;
use crate::lists::{Linked, NONE};

/// Why a request is sent: who waits for its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A thread waits for it (direct I/O).
    Direct,
    /// Dirty data of the cache.
    WriteBack,
    /// Data that a reader will want.
    ReadAhead,
}

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At its client.
    Client,
    /// On its way to the server or there.
    Server,
    /// It, or its reply, was lost on a dead server.
    Lost,
}

/// A request from a client to a server.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Its stream: client and server.
    pub stream: u32,
    /// Its server.
    pub server: u32,
    /// The thread that waits or reads ahead; [`NONE`] for write-back.
    pub thread: u32,
    /// The object that it works on.
    pub object: u32,
    /// Where in the object.
    pub offset: u64,
    /// How much.
    pub length: u32,
    /// Whether data is written; otherwise read.
    pub write: bool,
    /// Whether it goes on where one before it ended, where its stream asks.
    pub sequential: bool,
    /// Who waits for it.
    pub purpose: Purpose,
    /// Where it is.
    pub place: Place,
    /// For read-ahead: which file of its thread, so that late data of a file left behind is told apart.
    pub generation: u8,
    /// For read-ahead: the chunk of the file.
    pub chunk: u32,
    /// The lock it works under; [`NONE`] where none is needed.
    pub lock: u32,
    /// When it was asked for: then it began to wait for its stream's window and pace.
    pub asked_ns: Nanos,
    /// When it left its client.
    pub sent_ns: Nanos,
    /// The next one in the list that it is in.
    pub next: u32,
}

/// All requests under way.
#[derive(Debug, Default)]
pub struct Requests {
    slab: Vec<Request>,
    free: Vec<u32>,
}

impl Requests {
    /// Take in a request.
    #[inline]
    pub fn add(&mut self, request: Request) -> u32 {
        if let Some(index) = self.free.pop() {
            self.slab[index as usize] = request;
            index
        } else {
            self.slab.push(request);
            (self.slab.len() - 1) as u32
        }
    }

    /// A request is needed soon.
    #[inline]
    pub fn prefetch(&self, index: u32) {
        crate::prefetch::prefetch(&self.slab, index);
    }

    /// Forget a request; its number may be given to another.
    #[inline]
    pub fn remove(&mut self, index: u32) {
        self.slab[index as usize].stream = NONE;
        self.free.push(index);
    }

    /// Numbers of all that are under way.
    pub fn live(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.slab.len() as u32).filter(|&index| self.slab[index as usize].stream != NONE)
    }
}

impl std::ops::Index<u32> for Requests {
    type Output = Request;
    #[inline]
    fn index(&self, index: u32) -> &Request {
        &self.slab[index as usize]
    }
}

impl std::ops::IndexMut<u32> for Requests {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Request {
        &mut self.slab[index as usize]
    }
}

impl Linked for Requests {
    #[inline]
    fn next(&mut self, entry: u32) -> &mut u32 {
        &mut self.slab[entry as usize].next
    }
}
