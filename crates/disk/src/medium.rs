//! The thread that writes to the medium, in the order in which the model's disk does: what leaves the cache, and what was
//! never in it. No client holds it up.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ascar_nbd::ErrorCode;

use crate::LOG;
use crate::replies::{Said, Ticket};
use crate::store::{Change, Store, Turn};

/// What the medium did not take is tried again so often.
const RETRY: Duration = Duration::from_secs(1);

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Order {
    /// A write leaves the cache.
    Land {
        /// What came after what.
        turn: Turn,
        /// How often power had been cut before it came.
        cuts: u64,
        /// Who waits for it, where somebody does.
        ticket: Option<Ticket>,
    },
    /// A write that never was in the cache.
    Put {
        /// What came after what.
        turn: Turn,
        /// The write.
        change: Arc<Change>,
        /// Who waits for it.
        ticket: Ticket,
    },
    /// All that has left the cache is to outlast this machine.
    Sync {
        /// How often power had been cut before it was asked for.
        cuts: u64,
        /// Who waits for it.
        ticket: Ticket,
    },
}

/// Carries out orders until nobody gives any.
pub(crate) fn run(store: &Store, orders: Receiver<Order>) {
    let mut medium = Medium {
        store,
        stuck: Vec::new(),
        tried: Instant::now(),
    };
    loop {
        match medium.next(&orders) {
            Ok(order) => medium.carry_out(order),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if !medium.stuck.is_empty() && medium.tried.elapsed() >= RETRY {
            medium.try_again();
        }
    }
}

struct Medium<'a> {
    store: &'a Store,
    /// Writes that the medium did not take. They stay in the cache, which takes no others, and flushes fail until it
    /// does.
    stuck: Vec<u64>,
    /// When they were tried.
    tried: Instant,
}

impl Medium<'_> {
    fn next(&self, orders: &Receiver<Order>) -> Result<Order, RecvTimeoutError> {
        if self.stuck.is_empty() {
            return orders.recv().map_err(|_| RecvTimeoutError::Disconnected);
        }
        orders.recv_timeout(RETRY.saturating_sub(self.tried.elapsed()))
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Land { turn, cuts, ticket } => {
                if let Err(error) = self.store.land(turn) {
                    self.keep(turn.number, &error);
                }
                if let Some(ticket) = ticket {
                    ticket.answer(self.synced(cuts));
                }
            }
            Order::Put {
                turn,
                change,
                ticket,
            } => {
                let said = self.put(turn, &change);
                // Its memory is free before the client can know.
                drop(change);
                ticket.answer(said);
            }
            Order::Sync { cuts, ticket } => ticket.answer(self.synced(cuts)),
        }
    }

    fn put(&self, turn: Turn, change: &Change) -> Said {
        let put = self.store.put(turn, change).and_then(|()| {
            if change.fua {
                self.store.sync()?;
                self.store.powered_since(change.cuts)?;
            }
            Ok(())
        });
        match put {
            Ok(()) => Said::Done,
            Err(error) => {
                LOG.line(format_args!("a write fails: {error}"));
                Said::Refused(code(&error))
            }
        }
    }

    /// The medium does not take a write. Nothing more is acknowledged that would have to be kept, too.
    fn keep(&mut self, number: u64, error: &io::Error) {
        if self.stuck.is_empty() {
            LOG.line(format_args!("writes do not reach the medium: {error}"));
            self.tried = Instant::now();
        }
        self.stuck.push(number);
        self.store.refuse_for(number, code(error));
    }

    /// Writes what is stuck, as far as it can be; the first error of what cannot.
    fn try_again(&mut self) -> Option<io::Error> {
        let mut first = None;
        let store = self.store;
        self.stuck.retain(|number| {
            let failed = store.land(Turn::again(*number)).err();
            let is_stuck = failed.is_some();
            first = first.take().or(failed);
            is_stuck
        });
        self.tried = Instant::now();
        if self.stuck.is_empty() {
            LOG.line("no write waits for the medium any more");
            self.store.refuse_no_more();
        }
        first
    }

    fn synced(&mut self, cuts: u64) -> Said {
        let failed = if self.stuck.is_empty() {
            None
        } else {
            self.try_again()
        };
        let synced = match failed {
            Some(error) => Err(error),
            None => self.store.sync(),
        };
        match synced.and_then(|()| self.store.powered_since(cuts)) {
            Ok(()) => Said::Done,
            Err(error) => {
                LOG.line(format_args!("a flush fails: {error}"));
                Said::Refused(ErrorCode::InputOutput)
            }
        }
    }
}

/// The medium's error as clients know it.
fn code(error: &io::Error) -> ErrorCode {
    match error.raw_os_error() {
        Some(libc::ENOSPC) => ErrorCode::NoSpace,
        _ => ErrorCode::InputOutput,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Data;

    fn zeroes(position: u64) -> Arc<Change> {
        Arc::new(Change {
            position,
            data: Data::Zeroes {
                count: 512,
                may_be_hole: false,
            },
            cuts: 0,
            fua: false,
        })
    }

    #[test]
    fn nothing_is_acknowledged_while_the_medium_takes_nothing() {
        // No file takes what is so far out.
        let out_of_reach = 1 << 63;
        let store = Store::in_memory(4096).unwrap();
        let mut medium = Medium {
            store: &store,
            stuck: Vec::new(),
            tried: Instant::now(),
        };
        store.hold(1, zeroes(out_of_reach)).unwrap();
        store.hold(2, zeroes(0)).unwrap();
        for number in [1, 2] {
            medium.carry_out(Order::Land {
                turn: Turn {
                    number,
                    oldest: number,
                },
                cuts: 0,
                ticket: None,
            });
        }
        assert_eq!(medium.stuck, [1]);
        let refused = store.hold(3, zeroes(0));
        assert_eq!(refused, Err(ErrorCode::InputOutput));
        assert!(matches!(medium.synced(0), Said::Refused(_)));
        // The power takes it.
        store.cut();
        assert!(medium.try_again().is_none());
        assert!(medium.stuck.is_empty());
        let powered = Change {
            cuts: 1,
            ..Arc::into_inner(zeroes(0)).unwrap()
        };
        assert_eq!(store.hold(4, Arc::new(powered)), Ok(()));
    }
}
