//! What the disk is made of: the storage of a scenario's first server.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ascar_log::Fault;
use ascar_simulation::Scenario;
use ascar_simulation::disk::array::{ArrayParts, Level, build_array};
use ascar_simulation::disk::{Storage, StorageParts, build};
use ascar_simulation::scenario::{Device, Noise, ServerGroup};

use crate::presets;

/// A longer file is none that somebody wrote.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What a file may leave out that describes a disk alone; without it a scenario says nothing.
const CLIENTS: &str = "
[[clients]]
count = 1
workload = \"none\"

[[workloads]]
name = \"none\"
filesets = [{ name = \"none\", size_mib = 1 }]

[[workloads.threads]]
flowops = [{ op = \"read\" }]
";

/// A disk, or an array of alike ones.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    server: ServerGroup,
    noise: Noise,
    seed: u64,
    chunk_bytes: u64,
    level: Option<Level>,
}

impl Model {
    /// Reads what a user names: a file in TOML (.toml, or with a slash in it), or a preset. With a level, `count` of the
    /// first server's group is the number of members, and `striping.size_kib` the bytes in a row on each.
    ///
    /// # Errors
    /// A file that cannot be read, a preset that does not exist, a key that is wrong, or too few members.
    pub(crate) fn read(named: &Path, level: Option<Level>) -> Result<Self, Fault> {
        let wrong =
            |what: &dyn std::fmt::Display| Fault(format!("--scenario {}: {what}", named.display()));
        let is_file = named.extension().is_some_and(|it| it == "toml")
            || named.as_os_str().as_encoded_bytes().contains(&b'/');
        let text = if is_file {
            read_text(named)
        } else {
            let preset = named.to_str().and_then(presets::find).map(str::to_owned);
            preset.ok_or_else(|| {
                Fault(format!(
                    "must be a file (.toml) or one of {}",
                    presets::names()
                ))
            })
        };
        text.and_then(|text| Self::parse(&text, level))
            .map_err(|fault| wrong(&fault))
    }

    fn parse(text: &str, level: Option<Level>) -> Result<Self, Fault> {
        let table: toml::Table = toml::from_str(text).map_err(|error| located(text, 0, &error))?;
        let mut whole = String::new();
        let mut lines_before = 0;
        if !table.contains_key("name") {
            whole.push_str("name = \"disk\"\n");
            lines_before = 1;
        }
        whole.push_str(text);
        if !table.contains_key("clients") && !table.contains_key("workloads") {
            whole.push_str(CLIENTS);
        }
        let scenario: Scenario =
            toml::from_str(&whole).map_err(|error| located(&whole, lines_before, &error))?;
        scenario.check().map_err(|error| Fault(error.to_string()))?;
        let server = scenario.servers[0].clone();
        let members = server.count as usize;
        if let Some(level) = level
            && members < level.members_min()
        {
            return Err(Fault(format!(
                "servers[0].count = {members}: an array of this level has at least {} members",
                level.members_min()
            )));
        }
        Ok(Self {
            server,
            noise: scenario.noise,
            seed: scenario.seed,
            chunk_bytes: u64::from(scenario.striping.size_kib) * 1024,
            level,
        })
    }

    /// The model, idle at time 0; it notes what reaches the medium.
    pub(crate) fn build(&self) -> Box<dyn Storage> {
        let member = StorageParts {
            device: &self.server.device,
            queue: &self.server.queue,
            noise: &self.noise,
            seed: self.seed,
        };
        let mut storage = match self.level {
            None => build(member),
            Some(level) => build_array(ArrayParts {
                member,
                members: self.server.count as usize,
                level,
                chunk_bytes: self.chunk_bytes,
            }),
        };
        storage.note_landings();
        storage
    }

    /// Whether there are platters that turn.
    pub(crate) fn is_rotational(&self) -> bool {
        matches!(self.server.device, Device::Mechanical(_))
    }

    /// In words, for clients that ask.
    pub(crate) fn description(&self) -> String {
        let kind = match &self.server.device {
            Device::Mechanical(spec) => format!("a mechanical disk of {} rpm", spec.rpm),
            Device::Flash(spec) => format!("a flash drive of {} channels", spec.channels),
            Device::Memory(_) => "memory".to_owned(),
        };
        match self.level {
            None => format!("{kind}, modelled"),
            Some(level) => {
                let layout = match level {
                    Level::Stripes => "RAID 0",
                    Level::Mirrors => "RAID 1",
                    Level::Parity => "RAID 5",
                };
                format!("{layout} of {}, each {kind}, modelled", self.server.count)
            }
        }
    }
}

/// A file that somebody wrote; anything else might wait for a writer, or never end.
fn read_text(path: &Path) -> Result<String, Fault> {
    let wrong = |error: std::io::Error| Fault(error.to_string());
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(wrong)?;
    let found = file.metadata().map_err(wrong)?;
    if !found.is_file() {
        return Err(Fault("is not a regular file".to_owned()));
    }
    let length = found.len();
    if length > FILE_BYTES_MAX {
        return Err(Fault(format!(
            "has {length} bytes; at most {FILE_BYTES_MAX} are read"
        )));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(wrong)?;
    Ok(text)
}

/// The parser's words, with the line that they mean.
fn located(text: &str, lines_before: usize, error: &toml::de::Error) -> Fault {
    let line = error.span().map(|span| {
        let before = &text.as_bytes()[..span.start.min(text.len())];
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    });
    let message = error.message().replace('\n', " ");
    Fault(match line {
        Some(line) if line > lines_before => format!("line {}: {message}", line - lines_before),
        _ => message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_scenario_and_a_disk_alone_are_read() {
        let cliff = Model::read(Path::new("read-ahead-cliff"), None).unwrap();
        assert!(cliff.is_rotational());
        let unknown = Model::read(Path::new("read-ahead"), None).unwrap_err().0;
        assert!(unknown.contains("one of btio-b, "), "{unknown}");
        assert_eq!(cliff.build().capacity_bytes(), 12_000_000_000);
        let flash = "[[servers]]\ncount = 4\ndevice = { kind = \"flash\", capacity_gb = 10 }\n";
        let alone = Model::parse(flash, None).unwrap();
        assert_eq!(alone.build().capacity_bytes(), 10_000_000_000);
        let mirrored = Model::parse(flash, Some(Level::Mirrors)).unwrap();
        assert_eq!(
            mirrored.description(),
            "RAID 1 of 4, each a flash drive of 8 channels, modelled"
        );
        assert!(mirrored.build().capacity_bytes() <= 10_000_000_000);
    }

    #[test]
    fn a_wrong_key_is_named_with_its_line() {
        let unknown = "seed = 3\n\n[[servers]]\ndevice = { kind = \"mechanical\", rmp = 7200 }\n";
        let fault = Model::parse(unknown, None).unwrap_err().0;
        assert!(fault.contains("rmp") && fault.contains("rpm"), "{fault}");
        let syntax = Model::parse("seed = \n", None).unwrap_err().0;
        assert!(syntax.starts_with("line 1: "), "{syntax}");
        let typed = Model::parse("seed = 1\nstriping = { count = \"x\" }\n", None)
            .unwrap_err()
            .0;
        assert!(typed.starts_with("line 2: "), "{typed}");
        let range = "[[servers]]\ndevice = { kind = \"mechanical\", rpm = -1 }\n";
        let fault = Model::parse(range, None).unwrap_err().0;
        assert!(fault.starts_with("servers[0].device.rpm"), "{fault}");
        let alone = Model::parse("[[servers]]\n", Some(Level::Parity)).unwrap_err();
        assert!(alone.0.contains("at least 3"), "{alone}");
    }
}
