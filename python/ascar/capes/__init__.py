"""Online tuning: agents measure, a learner decides, the action checker has the last word."""
