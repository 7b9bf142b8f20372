//! Keys of settings: `KNOB`, `KNOB@NODE`, `KNOB@NODE/STREAM`.

use serde::Deserialize;

/// Whom a value of a knob is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One value for all nodes, as in the published system.
    #[default]
    All,
    /// One a node.
    Node,
    /// One for each instance on each node.
    Stream,
}

impl Scope {
    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Node => "node",
            Self::Stream => "stream",
        }
    }
}

/// A key in its parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The knob's name.
    pub knob: String,
    /// Where.
    pub node: Option<String>,
    /// Which instance there.
    pub stream: Option<String>,
}

impl Key {
    /// Splits a key.
    pub fn parse(text: &str) -> Self {
        let Some((knob, place)) = text.split_once('@') else {
            return Self {
                knob: text.to_owned(),
                node: None,
                stream: None,
            };
        };
        let (node, stream) = match place.split_once('/') {
            Some((node, stream)) => (node, Some(stream.to_owned())),
            None => (place, None),
        };
        Self {
            knob: knob.to_owned(),
            node: Some(node.to_owned()),
            stream,
        }
    }

    /// Its scope by its form.
    pub fn scope(&self) -> Scope {
        match (&self.node, &self.stream) {
            (None, _) => Scope::All,
            (Some(_), None) => Scope::Node,
            (Some(_), Some(_)) => Scope::Stream,
        }
    }

    /// What the node itself calls it.
    pub fn local(&self) -> String {
        match &self.stream {
            Some(stream) => format!("{}/{stream}", self.knob),
            None => self.knob.clone(),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.knob)?;
        if let Some(node) = &self.node {
            write!(formatter, "@{node}")?;
        }
        if let Some(stream) = &self.stream {
            write!(formatter, "/{stream}")?;
        }
        Ok(())
    }
}

/// A knob's name as a formula can write it: `vm.dirty_ratio` is `vm_dirty_ratio`.
pub fn alias(knob: &str) -> String {
    let fine = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
    knob.chars().map(fine).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_split_and_joined() {
        for (text, scope, local) in [
            ("vm.dirty_ratio", Scope::All, "vm.dirty_ratio"),
            ("vm.dirty_ratio@a", Scope::Node, "vm.dirty_ratio"),
            (
                "lustre.osc.*.x@a/fs-OST0",
                Scope::Stream,
                "lustre.osc.*.x/fs-OST0",
            ),
            (
                "block.*.iosched/y@a/vda",
                Scope::Stream,
                "block.*.iosched/y/vda",
            ),
            ("block.*.iosched/y", Scope::All, "block.*.iosched/y"),
        ] {
            let key = Key::parse(text);
            assert_eq!(
                (key.scope(), key.local().as_str(), key.to_string().as_str()),
                (scope, local, text)
            );
        }
        assert_eq!(alias("block.*.iosched/y"), "block___iosched_y");
    }
}
