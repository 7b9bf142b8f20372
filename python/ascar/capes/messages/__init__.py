"""The messages of a session: connection, requests, ticks, and the state folded from them."""
