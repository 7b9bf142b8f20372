"""Online tuning: agents observe, a learner chooses actions, the interface checks them."""
