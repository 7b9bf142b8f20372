//! Every parser of the node binary and of the extension that reads what comes from outside.
//!
//! [`PARSERS`] lists them by name. A function takes any bytes and must neither panic nor hang nor take more than 256 MiB.
//! The program of this crate feeds one with libFuzzer, which looks for bytes that reach new code; the tests read the
//! corpora beside it, small inputs that each reach some code of their own.

mod conversations;
mod http;
mod keeper;
mod messages;
mod network_blocks;
mod replay;
mod resp;
mod texts;
mod tls;

use std::path::PathBuf;

/// Feeds a parser with bytes.
pub type Feed = fn(&[u8]);

/// The parsers, by the names of their corpora.
pub const PARSERS: &[(&str, Feed)] = &[
    ("agent-file", texts::agent_file),
    ("connection-file", texts::connection_file),
    ("conversations", conversations::conversations),
    ("credentials", texts::credentials),
    ("expression", texts::expression),
    ("frames", messages::frames),
    ("guard", texts::guard),
    ("http", http::http),
    ("interface-file", texts::interface_file),
    ("interface-messages", messages::interface_messages),
    ("keeper-journal", keeper::journal),
    ("keeper-requests", keeper::requests),
    ("kept-rules", texts::kept_rules),
    ("mounts", keeper::mounts),
    ("mountstats", messages::mountstats),
    ("nats", messages::nats),
    ("network-blocks", network_blocks::network_blocks),
    ("program-lines", messages::program_lines),
    ("prometheus", messages::prometheus),
    ("proxy-file", texts::proxy_file),
    ("replay", replay::database),
    ("resp", resp::resp),
    ("rule-requests", messages::rule_requests),
    ("rules", texts::rules),
    ("scenario", texts::scenario),
    ("tls-files", tls::files),
    ("tls-peer", tls::peer),
    ("wml", texts::wml),
];

/// The parser of a name.
#[must_use]
pub fn find(name: &str) -> Option<Feed> {
    PARSERS.iter().find(|it| it.0 == name).map(|it| it.1)
}

/// The folder of this process, for what is read from files alone. Whoever starts the process removes it.
#[must_use]
pub fn scratch() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ascar-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}
