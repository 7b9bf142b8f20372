use std::collections::BTreeMap;
use std::path::Path;

use ascar_keeper::fault::Kind;
use ascar_keeper::format::{Command, command, naming};
use ascar_keeper::protocol::{FormatRequest, Scalar};
use proptest::prelude::*;

const UUID: &str = "61736361-7200-4000-8000-000000000001";

fn build(fs: &str, options: &[(&str, Scalar)], features: &[&str]) -> Result<Command, String> {
    let request = FormatRequest {
        fs: fs.to_owned(),
        options: options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        features: features
            .iter()
            .map(|feature| (*feature).to_owned())
            .collect(),
        device: None,
    };
    command(&request, Path::new("/dev/loop0"), UUID).map_err(|fault| {
        assert_eq!(fault.kind, Kind::Input);
        fault.message
    })
}

fn line(fs: &str, options: &[(&str, Scalar)], features: &[&str]) -> String {
    let command = build(fs, options, features).unwrap();
    format!("{} {}", command.program, command.arguments.join(" "))
}

#[test]
fn every_file_system_gets_our_label_and_nothing_lazy() {
    let ext = "-L ascar -E lazy_itable_init=0,lazy_journal_init=0,nodiscard,\
               hash_seed=61736361-7200-4000-8000-736565640000 /dev/loop0";
    for fs in ["ext2", "ext3", "ext4"] {
        assert_eq!(
            line(fs, &[], &[]),
            format!("mke2fs -F -q -t {fs} -U {UUID} {ext}")
        );
    }
    assert_eq!(
        line("xfs", &[], &[]),
        format!("mkfs.xfs -f -K -q -L ascar -m uuid={UUID} /dev/loop0")
    );
    assert_eq!(
        line("btrfs", &[], &[]),
        format!("mkfs.btrfs -f -K -q -U {UUID} -L ascar /dev/loop0")
    );
    assert_eq!(
        line("nilfs2", &[], &[]),
        "mkfs.nilfs2 -f -K -q -L ascar /dev/loop0"
    );
    assert_eq!(
        line("reiserfs", &[], &[]),
        format!("mkreiserfs -f -f -q -u {UUID} -l ascar /dev/loop0")
    );
}

#[test]
fn nilfs2_gets_our_uuid_afterwards() {
    let device = Path::new("/dev/loop0");
    let named = naming("nilfs2", device, UUID).unwrap();
    assert_eq!(named.program, "nilfs-tune");
    assert_eq!(named.arguments, ["-U", UUID, "/dev/loop0"]);
    assert_eq!(naming("reiserfs", device, UUID), None);
}

#[test]
fn options_become_words_in_their_places() {
    use Scalar::{Boolean, Integer, Text};
    let ext4 = line(
        "ext4",
        &[
            ("block_size_bytes", Integer(1024)),
            ("inode_size_bytes", Integer(128)),
            ("blocks_per_group", Integer(8192)),
            ("flex_bg", Boolean(false)),
            ("journal", Boolean(false)),
            ("stride_blocks", Integer(16)),
        ],
        &["^metadata_csum", "fast_commit"],
    );
    assert!(ext4.contains(" -b 1024 -g 8192 -I 128 "), "{ext4}");
    assert!(ext4.contains(" -E stride=16,lazy_itable_init=0,"), "{ext4}");
    assert!(
        ext4.contains(" -O fast_commit,^flex_bg,^has_journal,^metadata_csum "),
        "{ext4}"
    );
    let xfs = line(
        "xfs",
        &[
            ("crc", Boolean(false)),
            ("log_size_bytes", Integer(16 << 20)),
            ("log_version", Integer(1)),
        ],
        &[],
    );
    assert!(xfs.contains(" -l size=16777216,version=1 "), "{xfs}");
    assert!(xfs.contains(&format!(" -m crc=0,uuid={UUID} ")), "{xfs}");
    let btrfs = line(
        "btrfs",
        &[("csum", Text("xxhash".into())), ("mixed", Boolean(true))],
        &["^no-holes"],
    );
    assert!(btrfs.contains(" --csum xxhash -M -O ^no-holes "), "{btrfs}");
    let nilfs2 = line(
        "nilfs2",
        &[
            ("block_size_bytes", Integer(1024)),
            ("blocks_per_segment", Integer(4096)),
        ],
        &[],
    );
    assert!(nilfs2.contains(" -b 1024 -B 4096 "), "{nilfs2}");
    let reiserfs = line("reiserfs", &[("block_size_bytes", Integer(4096))], &[]);
    assert!(reiserfs.contains(" -b 4096 "), "{reiserfs}");
}

#[test]
fn what_a_file_system_does_not_know_is_refused_with_what_it_knows() {
    use Scalar::{Boolean, Integer, Text};
    for (fs, option, allowed) in [
        (
            "ext4",
            ("agcount", Integer(4)),
            "ext4 knows block_size_bytes",
        ),
        (
            "ext2",
            ("journal", Boolean(true)),
            "ext2 knows block_size_bytes",
        ),
        (
            "xfs",
            ("journal", Boolean(true)),
            "xfs knows block_size_bytes",
        ),
        (
            "ext4",
            ("block_size_bytes", Integer(4097)),
            "powers of two in [1024, 65536]",
        ),
        (
            "ext4",
            ("block_size_bytes", Integer(i64::MIN)),
            "powers of two in [1024, 65536]",
        ),
        (
            "ext4",
            ("block_size_bytes", Text("4096 -j".into())),
            "powers of two in [1024, 65536]",
        ),
        ("ext4", ("flex_bg", Integer(1)), "true, false"),
        (
            "ext4",
            ("journal_size_bytes", Integer((1 << 20) + 1)),
            "multiples of 1048576",
        ),
        (
            "xfs",
            ("agcount", Integer(0)),
            "whole numbers in [1, 1048576]",
        ),
        (
            "btrfs",
            ("csum", Text("md5".into())),
            "crc32c, xxhash, sha256, blake2",
        ),
        (
            "btrfs",
            ("data_profile", Text("raid0".into())),
            "single, dup",
        ),
        (
            "nilfs2",
            ("blocks_per_segment", Integer(8)),
            "powers of two in [16, 67108864]",
        ),
        (
            "reiserfs",
            ("block_size_bytes", Integer(16384)),
            "powers of two in [512, 8192]",
        ),
        (
            "ntfs",
            ("x", Integer(1)),
            "allowed are ext2, ext3, ext4, xfs, btrfs, nilfs2, reiserfs",
        ),
    ] {
        let message = build(fs, &[option], &[]).unwrap_err();
        assert!(message.contains(allowed), "{message}");
    }
    assert!(
        build("ext4", &[], &["encrypt"])
            .unwrap_err()
            .contains("ext4 knows 64bit")
    );
    assert!(build("ext4", &[], &["^^extent"]).is_err());
    assert!(build("ext4", &[], &["extent,quota"]).is_err());
    assert!(
        build("xfs", &[], &["reflink"])
            .unwrap_err()
            .contains("xfs knows none")
    );
    assert!(
        build("ext4", &[("flex_bg", Boolean(true))], &["^flex_bg"])
            .unwrap_err()
            .contains("choose one")
    );
}

proptest! {
    #[test]
    fn no_text_of_a_client_becomes_a_word(name in "[ -~]{0,20}", value in "[ -~]{0,20}", feature in "[ -~]{0,20}") {
        for fs in ["ext4", "xfs", "btrfs", "nilfs2", "reiserfs"] {
            let options = BTreeMap::from([(name.clone(), Scalar::Text(value.clone()))]);
            let request = FormatRequest { fs: fs.into(), options, features: vec![], device: None };
            let known = ["crc32c", "xxhash", "sha256", "blake2", "single", "dup"].contains(&value.as_str());
            prop_assert!(known || command(&request, Path::new("/dev/loop0"), UUID).is_err());
            let options = BTreeMap::new();
            let request = FormatRequest { fs: fs.into(), options, features: vec![feature.clone()], device: None };
            if let Ok(command) = command(&request, Path::new("/dev/loop0"), UUID) {
                let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
                prop_assert!(feature.trim_start_matches('^').chars().all(plain));
                prop_assert!(command.arguments.contains(&feature));
            }
        }
    }
}
