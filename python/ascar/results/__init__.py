"""Results of commands: one frozen struct each; a command's JSON is its struct, encoded.

A struct's tag is the name and the version of its JSON Schema, which `ascar.results.schema` derives from it.
A change that a reader could notice raises the version.
"""
