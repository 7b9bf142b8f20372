"""What `import ascar` offers as functions: each reads what the user means, calls a loop, and returns a value.

They show progress on a terminal and in a notebook, where their results draw themselves.
"""
