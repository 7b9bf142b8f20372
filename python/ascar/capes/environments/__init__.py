"""Systems to learn on that need no machine: a game and a simulated cluster, and contests at them."""
