//! File sets on disk: where each file lies, making them, keeping account of them, removing them.

pub mod directory;
pub mod fill;
pub mod layout;
pub mod removal;
pub mod tree;
