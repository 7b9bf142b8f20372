"""A Lustre client: what `lctl` tells and sets, and what puts it back."""
