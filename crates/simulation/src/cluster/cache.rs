//! A client's cache: write-back with a limit of dirty data a stream, and read-ahead.

use super::threads::Activity;
use super::{Cluster, Partial};
use crate::files::Piece;
use crate::lists::NONE;
use crate::requests::{Place, Purpose, Request};

/// Chunks that a reader may have under way: as many as a word has bits.
const CHUNKS_AHEAD: u32 = u64::BITS;

impl Cluster {
    /// Put a unit into the cache: waits for locks and for room under the limit of dirty data.
    pub(super) fn fill(&mut self, index: u32) -> bool {
        loop {
            let transfer = self.threads[index].transfer;
            if transfer.cursor >= transfer.unit_end {
                return self.copy(index);
            }
            let (piece, object, lock_number) = self.next_piece(index);
            let Some(lock) = self.lock_for(index, lock_number, &piece, true) else {
                return false;
            };
            let client = self.threads[index].client;
            let number = client * self.servers.len() as u32 + piece.server;
            let limit = self.clients[client as usize].dirty_limit;
            let stream = &mut self.streams[number as usize];
            if stream.dirty > 0 && stream.dirty + u64::from(piece.length) > limit {
                stream.dirty_waiters.push(&mut self.threads, index);
                // What is not on its way can not make room.
                self.flush_partial(number);
                return false;
            }
            self.threads[index].transfer.cursor += u64::from(piece.length);
            self.add_dirty(number, piece, object, lock);
        }
    }

    fn add_dirty(&mut self, number: u32, piece: Piece, object: u32, lock: u32) {
        let client = self.client_of(number) as usize;
        let length = u64::from(piece.length);
        self.clients[client].dirty += length;
        if lock != NONE {
            self.locks.add_dirty(lock, length);
        }
        let request_bytes = self.clients[client].request_bytes;
        let stream = &mut self.streams[number as usize];
        stream.dirty += length;
        let end = piece.offset + length;
        let follows = stream.partial.is_some_and(|partial| {
            partial.object == object
                && partial.lock == lock
                && partial.offset + u64::from(partial.length) == piece.offset
        });
        if follows {
            if let Some(partial) = &mut stream.partial {
                partial.length += piece.length;
            }
        } else {
            self.flush_partial(number);
            let partial = Partial {
                object,
                offset: piece.offset,
                length: piece.length,
                lock,
            };
            self.streams[number as usize].partial = Some(partial);
        }
        if end.is_multiple_of(request_bytes) || end.is_multiple_of(self.files.stripes.size) {
            self.flush_partial(number);
        } else if !follows {
            self.held_back.push(number);
        }
    }

    /// Send what does not fill a request.
    pub(super) fn flush_partial(&mut self, number: u32) {
        let Some(partial) = self.streams[number as usize].partial.take() else {
            return;
        };
        if self.joined(number, &partial) {
            return;
        }
        self.enqueue(Request {
            stream: number,
            server: number % self.servers.len() as u32,
            thread: NONE,
            object: partial.object,
            offset: partial.offset,
            length: partial.length,
            write: true,
            sequential: false,
            purpose: Purpose::WriteBack,
            place: Place::Client,
            generation: 0,
            chunk: 0,
            lock: partial.lock,
            asked_ns: self.now,
            sent_ns: 0,
            next: NONE,
        });
    }

    /// Send all that a client holds back.
    pub(super) fn flush_client(&mut self, client: u32) {
        let servers = self.servers.len() as u32;
        for number in client * servers..(client + 1) * servers {
            self.flush_partial(number);
        }
    }

    /// Send all that any client holds back: what Linux' flusher does once a second or so.
    pub fn flush_all(&mut self) {
        let mut held_back = std::mem::take(&mut self.held_back);
        for number in held_back.drain(..) {
            self.flush_partial(number);
        }
        self.held_back = held_back;
    }

    /// Dirty data has been written: writers that waited for room go on.
    pub(super) fn written_back(&mut self, number: u32, length: u32) {
        let index = self.client_of(number) as usize;
        let client = &mut self.clients[index];
        client.dirty -= u64::from(length);
        if client.dirty == 0 {
            while let Some(thread) = self.clients[index].sync_waiters.pop(&mut self.threads) {
                self.proceed(thread);
            }
        }
        let (limit, request) = (
            self.clients[index].dirty_limit,
            self.clients[index].request_bytes,
        );
        let stream = &mut self.streams[number as usize];
        stream.dirty -= u64::from(length);
        while self.streams[number as usize].dirty + request <= limit {
            let stream = &mut self.streams[number as usize];
            let Some(thread) = stream.dirty_waiters.pop(&mut self.threads) else {
                break;
            };
            self.proceed(thread);
        }
    }

    /// Take a unit out of the cache: asks for what is missing, and ahead, and waits for it.
    pub(super) fn fetch(&mut self, index: u32) -> bool {
        let thread = &mut self.threads[index];
        let client = &self.clients[thread.client as usize];
        let transfer = &mut thread.transfer;
        if transfer.cached {
            transfer.cursor = transfer.unit_end;
            return self.copy(index);
        }
        let chunk = client.request_bytes.min(self.files.stripes.size);
        let ahead = &mut thread.ahead;
        let at = (transfer.cursor / chunk) as u32;
        if ahead.file != transfer.file || ahead.base != at {
            *ahead = super::threads::ReadAhead {
                file: transfer.file,
                generation: ahead.generation.wrapping_add(1),
                base: at,
                issued: 0,
                arrived: 0,
            };
        }
        while ahead.arrived & 1 == 1 && transfer.cursor < transfer.unit_end {
            let chunk_end = (u64::from(ahead.base) + 1) * chunk;
            transfer.cursor = chunk_end.min(transfer.unit_end);
            if transfer.cursor == chunk_end {
                ahead.arrived >>= 1;
                ahead.base += 1;
                ahead.issued -= 1;
            }
        }
        let file_size = self.files.files[transfer.file as usize].size;
        let wanted = if transfer.ahead {
            transfer.cursor + client.read_ahead
        } else {
            0
        };
        let limit = wanted.min(file_size).max(transfer.unit_end);
        while self.threads[index].ahead.issued < CHUNKS_AHEAD {
            let ahead = self.threads[index].ahead;
            let number = ahead.base + ahead.issued;
            if u64::from(number) * chunk >= limit {
                break;
            }
            self.threads[index].ahead.issued += 1;
            self.ask(index, number, (chunk, limit));
        }
        let transfer = &self.threads[index].transfer;
        if transfer.cursor >= transfer.unit_end {
            self.copy(index)
        } else {
            false
        }
    }

    /// Ask for one chunk of a reader's file.
    fn ask(&mut self, index: u32, number: u32, (chunk, limit): (u64, u64)) {
        let thread = &self.threads[index];
        let file = &self.files.files[thread.transfer.file as usize];
        let begin = u64::from(number) * chunk;
        let end = (begin + chunk).min(limit.max(begin + 1));
        // A reader at random places wants no more than it asked for.
        let begin = if thread.transfer.ahead {
            begin
        } else {
            begin.max(thread.transfer.cursor)
        };
        let piece = self.files.stripes.piece(file, begin, end, chunk);
        let request = Request {
            stream: thread.client * self.servers.len() as u32 + piece.server,
            server: piece.server,
            thread: index,
            object: file.object_base + piece.stripe,
            offset: piece.offset,
            length: piece.length,
            write: false,
            sequential: false,
            purpose: Purpose::ReadAhead,
            place: Place::Client,
            generation: thread.ahead.generation,
            chunk: number,
            lock: NONE,
            asked_ns: self.now,
            sent_ns: 0,
            next: NONE,
        };
        self.enqueue(request);
    }

    /// A chunk has come: a reader that waits for it goes on.
    pub(super) fn chunk_arrived(&mut self, index: u32, generation: u8, number: u32) {
        let thread = &mut self.threads[index];
        if thread.ahead.generation != generation {
            return;
        }
        thread.ahead.arrived |= 1 << (number - thread.ahead.base);
        if thread.activity == Activity::Fetch {
            self.proceed(index);
        }
    }
}
