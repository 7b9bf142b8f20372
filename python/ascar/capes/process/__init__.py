"""The learner's process: what it is told, what it looks at, how it acts and what it keeps."""
