"""The study files that `ascar init` writes, from the structs that read studies."""
