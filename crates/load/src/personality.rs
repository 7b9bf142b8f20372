//! The workloads that are built in, each a file of the language.

use crate::LoadError;

/// A built-in workload.
#[derive(Debug, Clone, Copy)]
pub struct Personality {
    /// Its name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// Its file.
    pub text: &'static str,
}

macro_rules! personalities {
    ($($name:literal [$($alias:literal),*]),* $(,)?) => {
        &[$(Personality {
            name: $name,
            aliases: &[$($alias),*],
            text: include_str!(concat!("../personalities/", $name, ".f")),
        }),*]
    };
}

/// Every built-in workload.
pub const ALL: &[Personality] = personalities![
    "fileserver-def" ["fileserver"],
    "fileserver-heavy" [],
    "mailserver-def" ["mailserver", "varmail"],
    "mailserver-heavy" [],
    "webserver-def" ["webserver"],
    "webserver-heavy" [],
    "dbserver-def" ["dbserver", "oltp"],
    "dbserver-heavy" [],
    "videoserver" [],
    "ascar-fileserver" [],
    "ascar-random-read" [],
    "ascar-random-write" [],
    "ascar-random-rw" [],
    "ascar-random-rw-shared" ["random-rw-shared"],
    "ascar-sequential-read" [],
    "ascar-sequential-write" ["hpc-checkpoint"],
    "btio-b" [],
    "btio-c" [],
    "capes-fileserver" [],
    "capes-fileserver-thesis" [],
    "capes-sequential-write" ["sequential-write"],
    "random-rw-9-1" [],
    "random-rw-4-1" [],
    "random-rw-1-1" ["random-rw"],
    "random-rw-1-4" [],
    "random-rw-1-9" [],
];

impl Personality {
    /// What it is: the comment that its file begins with.
    #[must_use]
    pub fn description(&self) -> String {
        let comment = self.text.lines().map_while(|line| line.strip_prefix('#'));
        comment.map(str::trim).collect::<Vec<_>>().join(" ")
    }
}

/// Find by name or alias.
///
/// # Errors
/// There is none of that name.
pub fn find(name: &str) -> Result<&'static Personality, LoadError> {
    ALL.iter()
        .find(|p| p.name == name || p.aliases.contains(&name))
        .ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|p| p.name).collect();
            LoadError::Input(format!(
                "--personality: there is no '{name}'; known: {}",
                names.join(", ")
            ))
        })
}
