//! What all nodes may use together: to each its share for certain, and what it needs beyond that from one stock. So what
//! is kept is bounded, and no node can use up what is another's.

/// Of one kind of thing.
#[derive(Debug)]
pub struct Stock {
    what: &'static str,
    share: usize,
    left: usize,
}

impl Stock {
    /// For so many nodes: twice the share of each, and enough for some that need the most that is allowed.
    pub fn of(what: &'static str, share: usize, most: usize, nodes: usize) -> Self {
        Self::new(what, share, (nodes.saturating_mul(share)).max(16 * most))
    }

    fn new(what: &'static str, share: usize, left: usize) -> Self {
        Self { what, share, left }
    }

    /// A node gives back what it had and takes what it needs now.
    ///
    /// # Errors
    /// When that is more than there is; it keeps what it had.
    pub fn exchange(&mut self, had: usize, needs: usize) -> Result<(), String> {
        let beyond = |count: usize| count.saturating_sub(self.share);
        let left = self.left + beyond(had);
        if beyond(needs) > left {
            return Err(format!(
                "{}: {needs}: other nodes have all but {left} of what is there beyond {} a node",
                self.what, self.share
            ));
        }
        self.left = left - beyond(needs);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_needs_much_takes_nothing_from_who_needs_little() {
        let mut stock = Stock::new("streams", 10, 100);
        assert!(stock.exchange(0, 90).is_ok());
        assert!(stock.exchange(0, 31).is_err());
        assert!(stock.exchange(0, 30).is_ok());
        assert!((0..1000).all(|_| stock.exchange(0, 10).is_ok()));
        assert!(stock.exchange(0, 11).is_err());
        assert!(stock.exchange(90, 0).is_ok());
        assert!(stock.exchange(0, 90).is_ok());
    }
}
