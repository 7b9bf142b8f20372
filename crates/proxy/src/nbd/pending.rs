//! Requests of one connection that were sent and not answered.

use crate::protocol::Sent;

/// What is kept of a request until its last reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// When it left, and how much it reads or writes.
    pub sent: Sent,
    /// Whether its data comes with the reply.
    pub reads: bool,
    /// Whether the server has said that it fails: then it has moved nothing.
    pub has_failed: bool,
}

/// Those in flight. Their order says nothing: a server may answer in any.
#[derive(Debug, Default)]
pub struct Pending {
    /// Apart from the rest, so that looking for one touches few cache lines.
    cookies: Vec<u64>,
    waiting: Vec<Waiting>,
    /// The cookie of the one that was sent last.
    latest: Option<u64>,
}

impl Pending {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.cookies.len()
    }

    /// One more, unless another with its cookie is in flight: then nobody could tell their replies apart.
    #[inline]
    pub fn add(&mut self, cookie: u64, waiting: Waiting) -> bool {
        if self.cookies.contains(&cookie) {
            return false;
        }
        self.cookies.push(cookie);
        self.waiting.push(waiting);
        self.latest = Some(cookie);
        true
    }

    /// The one of a cookie.
    #[inline]
    pub fn get(&self, cookie: u64) -> Option<Waiting> {
        self.place(cookie).map(|place| self.waiting[place])
    }

    /// The server says that the one of a cookie fails.
    pub fn fail(&mut self, cookie: u64) {
        if let Some(place) = self.place(cookie) {
            self.waiting[place].has_failed = true;
        }
    }

    /// Takes out the one of a cookie.
    #[inline]
    pub fn take(&mut self, cookie: u64) -> Option<Waiting> {
        let place = self.place(cookie)?;
        self.cookies.swap_remove(place);
        Some(self.waiting.swap_remove(place))
    }

    /// When the one left that has waited longest, of those that a server can answer: without the latest where `is_partial`,
    /// its client has not sent all of its data yet. None without any.
    #[must_use]
    pub fn oldest_us(&self, is_partial: bool) -> Option<u64> {
        let partial = self.latest.filter(|_| is_partial);
        let each = self.cookies.iter().zip(&self.waiting);
        each.filter(|(cookie, _)| Some(**cookie) != partial)
            .map(|(_, one)| one.sent.at_us)
            .min()
    }

    /// How many there are, and how many bytes they move: what their stream has in flight less once they are given up.
    #[must_use]
    pub fn total(&self) -> (u32, u64) {
        let bytes = self
            .waiting
            .iter()
            .map(|one| u64::from(one.sent.bytes))
            .sum();
        (self.waiting.len() as u32, bytes)
    }

    fn place(&self, cookie: u64) -> Option<usize> {
        self.cookies.iter().position(|one| *one == cookie)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Place;

    fn sent(bytes: u32) -> Waiting {
        let sent = Sent {
            at_us: 5,
            bytes,
            is_sequential: false,
            is_held: true,
            record: Place::default(),
        };
        Waiting {
            sent,
            reads: true,
            has_failed: false,
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
