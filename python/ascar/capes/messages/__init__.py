"""A session's messages, read, and folded into its state."""
