//! Requests of one connection that were sent and not answered.

use ascar_nbd::{Command, Request};

use crate::recorder::Place;

/// Requests of a connection in flight at most, also where no window holds them: what is kept of them is bounded.
pub const PENDING_MAX: usize = 1024;

/// What is kept of a request until its last reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When it left.
    pub at_us: u64,
    /// How much it reads or writes; 0 for those that move nothing.
    pub bytes: u32,
    /// Whether its data comes with the reply.
    pub reads: bool,
    /// Whether it goes on where one of the latest ended.
    pub is_sequential: bool,
    /// Whether the server has said that it fails: then it has moved nothing.
    pub has_failed: bool,
    /// Where it is written down, if it is.
    pub record: Place,
}

/// How much a request reads or writes.
#[must_use]
#[inline]
pub fn moved_bytes(request: &Request) -> u32 {
    match request.command {
        Command::Read | Command::Write => request.length_bytes,
        _ => 0,
    }
}

/// Those in flight. Their order says nothing: a server may answer in any.
#[derive(Debug, Default)]
pub struct Pending {
    /// Apart from the rest, so that looking for one touches few cache lines.
    cookies: Vec<u64>,
    sent: Vec<Sent>,
    /// The cookie of the one that was sent last.
    latest: Option<u64>,
}

impl Pending {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.cookies.len()
    }

    /// Whether one more would be too many.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.count() >= PENDING_MAX
    }

    /// One more, unless another with its cookie is in flight: then nobody could tell their replies apart.
    #[inline]
    pub fn add(&mut self, cookie: u64, sent: Sent) -> bool {
        if self.cookies.contains(&cookie) {
            return false;
        }
        self.cookies.push(cookie);
        self.sent.push(sent);
        self.latest = Some(cookie);
        true
    }

    /// The one of a cookie.
    #[inline]
    pub fn get(&self, cookie: u64) -> Option<Sent> {
        self.place(cookie).map(|place| self.sent[place])
    }

    /// The server says that the one of a cookie fails.
    pub fn fail(&mut self, cookie: u64) {
        if let Some(place) = self.place(cookie) {
            self.sent[place].has_failed = true;
        }
    }

    /// Takes out the one of a cookie.
    #[inline]
    pub fn take(&mut self, cookie: u64) -> Option<Sent> {
        let place = self.place(cookie)?;
        self.cookies.swap_remove(place);
        Some(self.sent.swap_remove(place))
    }

    /// When the one left that has waited longest, of those that a server can answer: without the latest where `is_partial`,
    /// its client has not sent all of its data yet. None without any.
    #[must_use]
    pub fn oldest_us(&self, is_partial: bool) -> Option<u64> {
        let partial = self.latest.filter(|_| is_partial);
        let each = self.cookies.iter().zip(&self.sent);
        each.filter(|(cookie, _)| Some(**cookie) != partial)
            .map(|(_, one)| one.at_us)
            .min()
    }

    /// How many there are, and how many bytes they move: what their stream has in flight less once they are given up.
    #[must_use]
    pub fn total(&self) -> (u32, u64) {
        let bytes = self.sent.iter().map(|one| u64::from(one.bytes)).sum();
        (self.sent.len() as u32, bytes)
    }

    fn place(&self, cookie: u64) -> Option<usize> {
        self.cookies.iter().position(|one| *one == cookie)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bytes: u32) -> Sent {
        Sent {
            at_us: 5,
            bytes,
            reads: true,
            is_sequential: false,
            has_failed: false,
            record: Place::default(),
        }
    }

    #[test]
    fn replies_in_any_order_find_their_requests() {
        let mut pending = Pending::default();
        for cookie in 0..100 {
            assert!(pending.add(cookie, sent(cookie as u32)));
        }
        for cookie in (0..100).rev().step_by(2).chain((0..100).step_by(2)) {
            assert_eq!(pending.get(cookie), Some(sent(cookie as u32)));
            assert_eq!(pending.take(cookie), Some(sent(cookie as u32)));
            assert_eq!(pending.take(cookie), None);
        }
        assert_eq!((pending.count(), pending.total()), (0, (0, 0)));
    }

    #[test]
    fn what_its_client_has_not_sent_whole_is_owed_by_nobody() {
        let mut pending = Pending::default();
        assert_eq!(pending.oldest_us(true), None);
        pending.add(7, sent(1));
        assert_eq!(
            (pending.oldest_us(false), pending.oldest_us(true)),
            (Some(5), None)
        );
        pending.add(8, sent(1));
        assert_eq!(pending.oldest_us(true), Some(5), "the one before it is");
    }

    #[test]
    fn a_cookie_is_in_flight_once() {
        let mut pending = Pending::default();
        assert!(pending.add(7, sent(1)));
        assert!(!pending.add(7, sent(2)));
        assert_eq!(pending.total(), (1, 1));
        pending.take(7);
        assert!(pending.add(7, sent(2)));
    }
}
