//! Which mount options there are, as data.

use nix::mount::MsFlags;

use crate::fault::{Fault, Result};

/// What may follow the option's name.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Nothing.
    Flag,
    /// `=` and a whole number in this range.
    Number(u64, u64),
    /// `=` and a power of two in this range; the suffixes k, m, g are understood.
    Size(u64, u64),
    /// `=` and one of these words.
    Word(&'static [&'static str]),
    /// Nothing, or `=` and one of these words.
    FlagOrWord(&'static [&'static str]),
}

use Form::{Flag, FlagOrWord, Number, Size, Word};

/// Options that the kernel takes as flags of the mount itself.
const GENERIC: &[(&str, MsFlags)] = &[
    ("noatime", MsFlags::MS_NOATIME),
    ("relatime", MsFlags::MS_RELATIME),
    ("strictatime", MsFlags::MS_STRICTATIME),
    ("nodiratime", MsFlags::MS_NODIRATIME),
    ("lazytime", MsFlags::MS_LAZYTIME),
    ("sync", MsFlags::MS_SYNCHRONOUS),
    ("dirsync", MsFlags::MS_DIRSYNC),
];

const EXT2: &[(&str, Form)] = &[
    ("acl", Flag),
    ("noacl", Flag),
    ("user_xattr", Flag),
    ("nouser_xattr", Flag),
    ("inode_readahead_blks", Size(0, 1 << 30)),
    ("delalloc", Flag),
    ("nodelalloc", Flag),
    ("stripe", Number(0, 2_097_152)),
    ("max_batch_time", Number(0, 1_000_000)),
    ("min_batch_time", Number(0, 1_000_000)),
    ("discard", Flag),
    ("nodiscard", Flag),
    ("dioread_lock", Flag),
    ("dioread_nolock", Flag),
    ("max_dir_size_kb", Number(0, 1 << 20)),
    ("block_validity", Flag),
    ("noblock_validity", Flag),
    ("prefetch_block_bitmaps", Flag),
    ("no_prefetch_block_bitmaps", Flag),
    ("mb_optimize_scan", Number(0, 1)),
    ("grpid", Flag),
    ("nogrpid", Flag),
];

const EXT3: &[(&str, Form)] = &[
    ("data", Word(&["journal", "ordered", "writeback"])),
    ("commit", Number(1, 300)),
    ("barrier", FlagOrWord(&["0", "1"])),
    ("nobarrier", Flag),
    ("journal_async_commit", Flag),
    ("journal_checksum", Flag),
    ("nojournal_checksum", Flag),
    ("journal_ioprio", Number(0, 7)),
    ("auto_da_alloc", FlagOrWord(&["0", "1"])),
    ("noauto_da_alloc", Flag),
    ("noload", Flag),
];

const XFS: &[(&str, Form)] = &[
    ("allocsize", Size(4096, 1 << 30)),
    ("discard", Flag),
    ("nodiscard", Flag),
    ("logbufs", Number(2, 8)),
    ("logbsize", Size(16 << 10, 256 << 10)),
    ("largeio", Flag),
    ("nolargeio", Flag),
    ("inode32", Flag),
    ("inode64", Flag),
    ("filestreams", Flag),
    ("swalloc", Flag),
    ("noalign", Flag),
    ("sunit", Number(0, 1 << 20)),
    ("swidth", Number(0, 1 << 24)),
    ("ikeep", Flag),
    ("noikeep", Flag),
    ("wsync", Flag),
    ("attr2", Flag),
    ("noquota", Flag),
];

const BTRFS_COMPRESS: &[&str] = &[
    "no", "none", "zlib", "lzo", "zstd", "zlib:1", "zlib:2", "zlib:3", "zlib:4", "zlib:5",
    "zlib:6", "zlib:7", "zlib:8", "zlib:9", "zstd:1", "zstd:2", "zstd:3", "zstd:4", "zstd:5",
    "zstd:6", "zstd:7", "zstd:8", "zstd:9", "zstd:10", "zstd:11", "zstd:12", "zstd:13", "zstd:14",
    "zstd:15",
];

const BTRFS: &[(&str, Form)] = &[
    ("acl", Flag),
    ("noacl", Flag),
    ("autodefrag", Flag),
    ("noautodefrag", Flag),
    ("barrier", Flag),
    ("nobarrier", Flag),
    ("commit", Number(1, 300)),
    ("compress", FlagOrWord(BTRFS_COMPRESS)),
    ("compress-force", FlagOrWord(BTRFS_COMPRESS)),
    ("datacow", Flag),
    ("nodatacow", Flag),
    ("datasum", Flag),
    ("nodatasum", Flag),
    ("discard", FlagOrWord(&["sync", "async"])),
    ("nodiscard", Flag),
    ("flushoncommit", Flag),
    ("noflushoncommit", Flag),
    ("max_inline", Number(0, 4096)),
    ("metadata_ratio", Number(0, 100)),
    ("notreelog", Flag),
    ("treelog", Flag),
    ("space_cache", FlagOrWord(&["v1", "v2"])),
    ("nospace_cache", Flag),
    ("ssd", Flag),
    ("ssd_spread", Flag),
    ("nossd", Flag),
    ("nossd_spread", Flag),
    ("thread_pool", Number(1, 1024)),
];

const NILFS2: &[(&str, Form)] = &[("order", Word(&["strict", "relaxed"]))];

const REISERFS: &[(&str, Form)] = &[
    ("data", Word(&["journal", "ordered", "writeback"])),
    ("notail", Flag),
];

/// Checked options: flags of the mount, and the text for the file system.
#[derive(Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// Never without nosuid and nodev: what is on the device is not to be trusted.
    pub flags: MsFlags,
    /// Comma-separated.
    pub data: String,
}

fn tables(fs: &str) -> Result<Vec<&'static [(&'static str, Form)]>> {
    Ok(match fs {
        "ext2" => vec![EXT2],
        "ext3" | "ext4" => vec![EXT2, EXT3],
        "xfs" => vec![XFS],
        "btrfs" => vec![BTRFS],
        "nilfs2" => vec![NILFS2],
        "reiserfs" => vec![REISERFS],
        _ => {
            return Err(Fault::input(format!(
                "fs = {fs:?}: allowed are {}",
                crate::format::FILE_SYSTEMS.join(", ")
            )));
        }
    })
}

/// Checks option tokens such as `noatime` or `commit=30`.
///
/// # Errors
/// Input, naming what the file system allows.
pub fn parse(fs: &str, tokens: &[String]) -> Result<MountOptions> {
    let tables = tables(fs)?;
    let mut flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let mut data: Vec<&str> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for token in tokens {
        let (name, value) = match token.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (token.as_str(), None),
        };
        if seen.contains(&name) {
            return Err(Fault::input(format!(
                "options: {name} is given twice: give it once"
            )));
        }
        seen.push(name);
        if let Some((_, flag)) = GENERIC.iter().find(|(known, _)| *known == token) {
            flags |= *flag;
            continue;
        }
        let form = tables
            .iter()
            .flat_map(|table| table.iter())
            .find(|(known, _)| *known == name);
        let Some((_, form)) = form else {
            let own = tables
                .iter()
                .flat_map(|table| table.iter().map(|(name, _)| *name));
            let names: Vec<_> = GENERIC.iter().map(|(name, _)| *name).chain(own).collect();
            return Err(Fault::input(format!(
                "option = {token:?}: {fs} knows {}",
                names.join(", ")
            )));
        };
        form.check(value).map_err(|allowed| {
            Fault::input(format!("option = {token:?}: allowed is {name}{allowed}"))
        })?;
        data.push(token);
    }
    Ok(MountOptions {
        flags,
        data: data.join(","),
    })
}

impl Form {
    fn check(self, value: Option<&str>) -> std::result::Result<(), String> {
        match (self, value) {
            (Flag | FlagOrWord(_), None) => Ok(()),
            (Flag, Some(_)) => Err(" alone".to_owned()),
            (Word(words) | FlagOrWord(words), Some(value)) if words.contains(&value) => Ok(()),
            (Word(words) | FlagOrWord(words), _) => Err(format!("= one of {}", words.join(", "))),
            (Number(low, high), value) => match value.and_then(digits) {
                Some(number) if (low..=high).contains(&number) => Ok(()),
                _ => Err(format!("= a whole number in [{low}, {high}]")),
            },
            (Size(low, high), value) => match value.and_then(size) {
                Some(number)
                    if (low..=high).contains(&number)
                        && (number == 0 || number.is_power_of_two()) =>
                {
                    Ok(())
                }
                _ => Err(format!(
                    "= a power of two in [{low}, {high}], also with k, m or g"
                )),
            },
        }
    }
}

/// Plain decimal digits: no sign, no blanks.
fn digits(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        None
    } else {
        text.parse().ok()
    }
}

fn size(text: &str) -> Option<u64> {
    let (number, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'm' | b'M' => (&text[..text.len() - 1], 20),
        b'g' | b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits(number)?.checked_mul(1 << shift)
}
