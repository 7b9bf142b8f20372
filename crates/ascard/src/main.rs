//! `ascard`: the node binary.
fn main() {}
