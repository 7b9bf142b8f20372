//! Builds the command that makes a file system. Clients name options; the words of the command are ours.

use std::collections::BTreeMap;
use std::path::Path;

use crate::devices::LABEL;
use crate::fault::{Fault, Result};
use crate::protocol::{FormatRequest, Scalar};

/// The file systems we make.
pub const FILE_SYSTEMS: [&str; 7] = ["ext2", "ext3", "ext4", "xfs", "btrfs", "nilfs2", "reiserfs"];
/// Seeds the hash of directory entries: the same names land in the same blocks in every trial (Cao, section 6.6).
const HASH_SEED: &str = "61736361-7200-4000-8000-736565640000";

/// What an option may be set to.
#[derive(Clone, Copy, Debug)]
enum Form {
    Boolean,
    Number(i64, i64),
    PowerOfTwo(i64, i64),
    Word(&'static [&'static str]),
}

/// Where an option goes on the command line.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A switch of its own: `-b 4096`.
    Switch(&'static str),
    /// A switch of its own, in MiB.
    SwitchMebibytes(&'static str, &'static str),
    /// Part of a switch's comma-separated list: `-m crc=1`.
    Part(&'static str, &'static str),
    /// A feature to switch on or off: `-O bigalloc`, `-O ^flex_bg`.
    Feature(&'static str),
    /// A switch without a value, when true.
    Bare(&'static str),
}

use Form::{Boolean, Number, PowerOfTwo, Word};
use Place::{Bare, Feature, Part, Switch, SwitchMebibytes};

type Table = &'static [(&'static str, Form, Place)];

const MI: i64 = 1 << 20;

const EXT: Table = &[
    ("block_size_bytes", PowerOfTwo(1024, 65536), Switch("-b")),
    ("inode_size_bytes", PowerOfTwo(128, 65536), Switch("-I")),
    ("bytes_per_inode", Number(1024, 64 * MI), Switch("-i")),
    ("inodes", Number(16, u32::MAX as i64), Switch("-N")),
    ("blocks_per_group", Number(256, 524_280), Switch("-g")),
    ("reserved_percent", Number(0, 50), Switch("-m")),
    ("flex_bg", Boolean, Feature("flex_bg")),
    ("flex_bg_groups", PowerOfTwo(1, 1 << 16), Switch("-G")),
    ("bigalloc", Boolean, Feature("bigalloc")),
    (
        "cluster_size_bytes",
        PowerOfTwo(2048, 256 * MI),
        Switch("-C"),
    ),
    ("stride_blocks", Number(1, 1 << 30), Part("-E", "stride")),
    (
        "stripe_width_blocks",
        Number(1, 1 << 30),
        Part("-E", "stripe_width"),
    ),
];

const EXT_JOURNAL: Table = &[
    ("journal", Boolean, Feature("has_journal")),
    (
        "journal_size_bytes",
        Number(MI, 40_960 * MI),
        SwitchMebibytes("-J", "size"),
    ),
];

const XFS: Table = &[
    (
        "block_size_bytes",
        PowerOfTwo(512, 65536),
        Part("-b", "size"),
    ),
    (
        "inode_size_bytes",
        PowerOfTwo(256, 2048),
        Part("-i", "size"),
    ),
    (
        "sector_size_bytes",
        PowerOfTwo(512, 32768),
        Part("-s", "size"),
    ),
    (
        "dir_block_size_bytes",
        PowerOfTwo(512, 65536),
        Part("-n", "size"),
    ),
    ("agcount", Number(1, 1 << 20), Part("-d", "agcount")),
    ("su_bytes", Number(512, 1 << 30), Part("-d", "su")),
    ("sw", Number(1, 1 << 16), Part("-d", "sw")),
    ("log_size_bytes", Number(MI, 2047 * MI), Part("-l", "size")),
    ("log_version", Number(1, 2), Part("-l", "version")),
    ("log_su_bytes", Number(4096, 256 << 10), Part("-l", "su")),
    ("lazy_count", Boolean, Part("-l", "lazy-count")),
    ("max_inode_percent", Number(0, 100), Part("-i", "maxpct")),
    ("sparse_inodes", Boolean, Part("-i", "sparse")),
    ("crc", Boolean, Part("-m", "crc")),
    ("finobt", Boolean, Part("-m", "finobt")),
    ("inobtcount", Boolean, Part("-m", "inobtcount")),
    ("rmapbt", Boolean, Part("-m", "rmapbt")),
    ("reflink", Boolean, Part("-m", "reflink")),
    ("bigtime", Boolean, Part("-m", "bigtime")),
];

const BTRFS: Table = &[
    ("node_size_bytes", PowerOfTwo(4096, 65536), Switch("-n")),
    ("sector_size_bytes", PowerOfTwo(4096, 65536), Switch("-s")),
    (
        "csum",
        Word(&["crc32c", "xxhash", "sha256", "blake2"]),
        Switch("--csum"),
    ),
    ("data_profile", Word(&["single", "dup"]), Switch("-d")),
    ("metadata_profile", Word(&["single", "dup"]), Switch("-m")),
    ("mixed", Boolean, Bare("-M")),
];

const NILFS2: Table = &[
    ("block_size_bytes", PowerOfTwo(1024, 65536), Switch("-b")),
    ("blocks_per_segment", PowerOfTwo(16, 64 * MI), Switch("-B")),
];

const REISERFS: Table = &[("block_size_bytes", PowerOfTwo(512, 8192), Switch("-b"))];

const EXT_FEATURES: &[&str] = &[
    "64bit",
    "bigalloc",
    "dir_index",
    "dir_nlink",
    "ext_attr",
    "extent",
    "extra_isize",
    "fast_commit",
    "filetype",
    "flex_bg",
    "has_journal",
    "huge_file",
    "inline_data",
    "large_dir",
    "large_file",
    "meta_bg",
    "metadata_csum",
    "metadata_csum_seed",
    "resize_inode",
    "sparse_super",
    "sparse_super2",
    "uninit_bg",
];

const BTRFS_FEATURES: &[&str] = &[
    "block-group-tree",
    "extref",
    "free-space-tree",
    "mixed-bg",
    "no-holes",
    "skinny-metadata",
];

/// A command that makes a file system on the device, which the caller has emptied.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    /// The program.
    pub program: &'static str,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// The command that gives a new file system its UUID, where the program that makes it cannot.
pub fn naming(fs: &str, device: &Path, uuid: &str) -> Option<Command> {
    (fs == "nilfs2").then(|| Command {
        program: "nilfs-tune",
        arguments: vec![
            "-U".to_owned(),
            uuid.to_owned(),
            device.display().to_string(),
        ],
    })
}

/// Checks the request and builds the command. `uuid` identifies the file systems of this session.
///
/// # Errors
/// Input, naming the options, features and values that the file system has.
pub fn command(request: &FormatRequest, device: &Path, uuid: &str) -> Result<Command> {
    let (program, tables, features): (_, Vec<Table>, &[&str]) = match request.fs.as_str() {
        "ext2" => ("mke2fs", vec![EXT], EXT_FEATURES),
        "ext3" | "ext4" => ("mke2fs", vec![EXT, EXT_JOURNAL], EXT_FEATURES),
        "xfs" => ("mkfs.xfs", vec![XFS], &[]),
        "btrfs" => ("mkfs.btrfs", vec![BTRFS], BTRFS_FEATURES),
        "nilfs2" => ("mkfs.nilfs2", vec![NILFS2], &[]),
        "reiserfs" => ("mkreiserfs", vec![REISERFS], &[]),
        fs => {
            return Err(Fault::input(format!(
                "fs = {fs:?}: allowed are {}",
                FILE_SYSTEMS.join(", ")
            )));
        }
    };
    let mut words = Words::default();
    for (name, value) in &request.options {
        let row = tables
            .iter()
            .flat_map(|table| table.iter())
            .find(|row| row.0 == name);
        let Some((_, form, place)) = row else {
            let known: Vec<_> = tables
                .iter()
                .flat_map(|table| table.iter().map(|row| row.0))
                .collect();
            return Err(Fault::input(format!(
                "option = {name:?}: {} knows {}",
                request.fs,
                known.join(", ")
            )));
        };
        form.check(value)
            .map_err(|allowed| Fault::input(format!("{name} = {value}: allowed are {allowed}")))?;
        words.add(name, value, *place)?;
    }
    for feature in &request.features {
        let name = feature.strip_prefix('^').unwrap_or(feature);
        if !features.contains(&name) {
            let known = if features.is_empty() {
                "none".to_owned()
            } else {
                features.join(", ")
            };
            return Err(Fault::input(format!(
                "feature = {feature:?}: {} knows {known}, each also with ^",
                request.fs
            )));
        }
        words.feature(name, !feature.starts_with('^'))?;
    }
    let mut arguments = words.fixed(&request.fs, uuid);
    arguments.push(device.display().to_string());
    Ok(Command { program, arguments })
}

impl Form {
    fn check(self, value: &Scalar) -> std::result::Result<(), String> {
        match (self, value) {
            (Boolean, Scalar::Boolean(_)) => Ok(()),
            (Boolean, _) => Err("true, false".to_owned()),
            (Number(low, high), Scalar::Integer(number)) if (low..=high).contains(number) => Ok(()),
            (Number(low, high), _) => Err(format!("whole numbers in [{low}, {high}]")),
            (PowerOfTwo(low, high), Scalar::Integer(number))
                if (low..=high).contains(number) && number.count_ones() == 1 =>
            {
                Ok(())
            }
            (PowerOfTwo(low, high), _) => Err(format!("powers of two in [{low}, {high}]")),
            (Word(words), Scalar::Text(word)) if words.contains(&word.as_str()) => Ok(()),
            (Word(words), _) => Err(words.join(", ")),
        }
    }
}

/// The words of a command while they are collected.
#[derive(Default)]
struct Words {
    switches: Vec<String>,
    parts: BTreeMap<&'static str, Vec<String>>,
    features: BTreeMap<String, bool>,
}

impl Words {
    fn add(&mut self, name: &str, value: &Scalar, place: Place) -> Result<()> {
        let text = match value {
            Scalar::Boolean(value) => u8::from(*value).to_string(),
            Scalar::Integer(value) => value.to_string(),
            Scalar::Text(value) => value.clone(),
        };
        match place {
            Switch(switch) => self.switches.extend([switch.to_owned(), text]),
            SwitchMebibytes(switch, key) => {
                let bytes: i64 = text.parse().unwrap_or_default();
                if bytes % MI != 0 {
                    return Err(Fault::input(format!(
                        "{name} = {value}: allowed are multiples of {MI}"
                    )));
                }
                self.switches
                    .extend([switch.to_owned(), format!("{key}={}", bytes / MI)]);
            }
            Part(switch, key) => self
                .parts
                .entry(switch)
                .or_default()
                .push(format!("{key}={text}")),
            Feature(feature) => self.feature(feature, *value == Scalar::Boolean(true))?,
            Bare(switch) if *value == Scalar::Boolean(true) => {
                self.switches.push(switch.to_owned())
            }
            Bare(_) => {}
        }
        Ok(())
    }

    fn feature(&mut self, name: &str, on: bool) -> Result<()> {
        match self.features.insert(name.to_owned(), on) {
            Some(before) if before != on => Err(Fault::input(format!(
                "feature {name} is switched both on and off: choose one"
            ))),
            _ => Ok(()),
        }
    }

    /// All words, with those that every file system of ours gets: our label, no discarding (the device has been
    /// emptied already), no work left for later (Cao, section 6.6), the same hashes every time.
    fn fixed(mut self, fs: &str, uuid: &str) -> Vec<String> {
        let mut words: Vec<String> = match fs {
            "xfs" => {
                self.parts
                    .entry("-m")
                    .or_default()
                    .push(format!("uuid={uuid}"));
                ["-f", "-K", "-q"].map(Into::into).to_vec()
            }
            "btrfs" => ["-f", "-K", "-q", "-U", uuid].map(Into::into).to_vec(),
            "nilfs2" => ["-f", "-K", "-q"].map(Into::into).to_vec(),
            // Twice: it does not ask.
            "reiserfs" => ["-f", "-f", "-q", "-u", uuid].map(Into::into).to_vec(),
            _ => {
                let extended = self.parts.entry("-E").or_default();
                extended.extend(
                    ["lazy_itable_init=0", "lazy_journal_init=0", "nodiscard"].map(Into::into),
                );
                extended.push(format!("hash_seed={HASH_SEED}"));
                ["-F", "-q", "-t", fs, "-U", uuid].map(Into::into).to_vec()
            }
        };
        let label = if fs == "reiserfs" { "-l" } else { "-L" };
        words.extend([label.to_owned(), LABEL.to_owned()]);
        words.append(&mut self.switches);
        for (switch, parts) in self.parts {
            words.extend([switch.to_owned(), parts.join(",")]);
        }
        if !self.features.is_empty() {
            let names = self.features.iter().map(|(name, on)| {
                if *on {
                    name.clone()
                } else {
                    format!("^{name}")
                }
            });
            words.extend(["-O".to_owned(), names.collect::<Vec<_>>().join(",")]);
        }
        words
    }
}
