//! What is taken of a limited amount, and given back when it is let go.

use std::sync::{Arc, Condvar, Mutex};

use crate::locked;

/// An amount that many take a share of.
#[derive(Debug)]
pub(crate) struct Amount {
    left: Mutex<u64>,
    more: Condvar,
}

/// A share; letting go of it gives it back.
#[derive(Debug)]
pub(crate) struct Lease {
    of: Arc<Amount>,
    share: u64,
}

impl Amount {
    /// An amount of which nothing is taken.
    pub(crate) fn new(whole: u64) -> Arc<Self> {
        Arc::new(Self {
            left: Mutex::new(whole),
            more: Condvar::new(),
        })
    }

    /// Takes a share once so much is left. One larger than the whole is never given; the caller sees to that.
    pub(crate) fn take(self: &Arc<Self>, share: u64) -> Lease {
        let mut left = locked(&self.left);
        while *left < share {
            left = self
                .more
                .wait(left)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        *left -= share;
        Lease {
            of: self.clone(),
            share,
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *locked(&self.of.left) += self.share;
        self.of.more.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn who_comes_late_waits_for_what_is_given_back() {
        let amount = Amount::new(10);
        let first = amount.take(8);
        let late = std::thread::spawn({
            let amount = amount.clone();
            move || drop(amount.take(5))
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!late.is_finished());
        drop(first);
        late.join().unwrap();
        drop(amount.take(10));
    }
}
