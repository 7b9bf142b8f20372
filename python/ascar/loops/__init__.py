"""The three loops, a file each: they call stages in order, and do no work of their own."""
