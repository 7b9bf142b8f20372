//! The options that a help text describes.

use std::fmt;

/// An option, as one line of a help text describes it.
///
/// Such a line is indented by two spaces: `  --seconds N   Run for N seconds.`, or `  -h, --help   Print this.`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// With both dashes.
    pub name: &'static str,
    /// With one dash; empty where there is none.
    pub short: &'static str,
    /// What its value stands for; empty where it takes none.
    pub metavar: &'static str,
}

impl Described {
    /// Whether a word names this option.
    pub fn is(&self, word: &str) -> bool {
        word == self.name || (!word.is_empty() && word == self.short)
    }
}

impl fmt::Display for Described {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)?;
        if !self.metavar.is_empty() {
            write!(formatter, " {}", self.metavar)?;
        }
        Ok(())
    }
}

/// Every option of a help text, in its order.
pub fn described(help: &'static str) -> Vec<Described> {
    help.lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with('-'))
        .filter_map(|line| {
            let words = line.split("  ").next()?;
            let (short, long) = match words.split_once(", ") {
                Some((short, long)) => (short, long),
                None => ("", words),
            };
            let (name, metavar) = long.split_once(' ').unwrap_or((long, ""));
            name.starts_with("--").then_some(Described {
                name,
                short,
                metavar,
            })
        })
        .collect()
}
