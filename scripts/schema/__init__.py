"""JSON Schemas of what commands and daemons print and send, by noun; `scripts/schemas.py` writes them."""
