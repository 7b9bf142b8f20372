use ascar_keeper::fault::Kind;
use ascar_keeper::mount_options::{MountOptions, parse};
use nix::mount::MsFlags;
use proptest::prelude::*;

fn options(fs: &str, tokens: &[&str]) -> Result<MountOptions, String> {
    let tokens: Vec<String> = tokens.iter().map(|token| (*token).to_owned()).collect();
    parse(fs, &tokens).map_err(|fault| {
        assert_eq!(fault.kind, Kind::Input);
        fault.message
    })
}

#[test]
fn flags_and_data_are_told_apart() {
    let parsed = options(
        "ext4",
        &["noatime", "data=writeback", "commit=30", "nodelalloc"],
    )
    .unwrap();
    assert_eq!(parsed.data, "data=writeback,commit=30,nodelalloc");
    assert_eq!(
        parsed.flags,
        MsFlags::MS_NOATIME | MsFlags::MS_NOSUID | MsFlags::MS_NODEV
    );
    assert_eq!(
        options("xfs", &["logbsize=256k", "allocsize=1m"])
            .unwrap()
            .data,
        "logbsize=256k,allocsize=1m"
    );
    assert_eq!(
        options("btrfs", &["compress=zstd:3", "discard"])
            .unwrap()
            .data,
        "compress=zstd:3,discard"
    );
    assert_eq!(
        options("nilfs2", &["relatime", "order=strict"])
            .unwrap()
            .data,
        "order=strict"
    );
    assert_eq!(
        options("reiserfs", &["noatime", "data=journal", "notail"])
            .unwrap()
            .data,
        "data=journal,notail"
    );
}

#[test]
fn nothing_takes_nosuid_and_nodev_away() {
    for token in [
        "suid", "dev", "exec", "noexec", "remount", "bind", "rw", "ro", "defaults", "loop", "user",
    ] {
        for fs in ["ext2", "ext3", "ext4", "xfs", "btrfs", "nilfs2", "reiserfs"] {
            assert!(options(fs, &[token]).is_err(), "{fs} {token}");
        }
    }
}

#[test]
fn wrong_values_are_refused_with_the_allowed_ones() {
    for (fs, token, allowed) in [
        ("ext4", "commit=0", "commit= a whole number in [1, 300]"),
        ("ext4", "commit=+5", "commit= a whole number in [1, 300]"),
        ("ext4", "commit", "commit= a whole number in [1, 300]"),
        (
            "ext4",
            "data=none",
            "data= one of journal, ordered, writeback",
        ),
        ("ext4", "noatime=1", "ext4 knows"),
        ("ext4", "nodelalloc=1", "nodelalloc alone"),
        ("ext2", "data=ordered", "ext2 knows"),
        ("xfs", "logbsize=300k", "logbsize= a power of two"),
        (
            "xfs",
            "allocsize=99999999999999999999g",
            "allocsize= a power of two",
        ),
        ("xfs", "commit=5", "xfs knows"),
        ("btrfs", "thread_pool=0", "thread_pool= a whole number"),
        ("btrfs", "compress=zstd:99", "compress= one of"),
        ("btrfs", "device=/dev/vda", "btrfs knows"),
        ("btrfs", "subvol=/", "btrfs knows"),
        ("nilfs2", "order=any", "order= one of strict, relaxed"),
        ("nilfs2", "cp=1", "nilfs2 knows"),
        ("reiserfs", "data=none", "data= one of journal"),
        ("reiserfs", "jdev=/dev/vda", "reiserfs knows"),
        ("ext4", "commit=5,errors=panic", "commit= a whole number"),
        ("ext4", "noatime,suid", "ext4 knows"),
        ("ext4", "", "ext4 knows"),
        ("ext4", "=", "ext4 knows"),
        (
            "ntfs",
            "noatime",
            "allowed are ext2, ext3, ext4, xfs, btrfs, nilfs2, reiserfs",
        ),
    ] {
        let message = options(fs, &[token]).unwrap_err();
        assert!(message.contains(allowed), "{fs} {token}: {message}");
    }
}

#[test]
fn an_option_is_given_once() {
    assert!(
        options("ext4", &["commit=5", "commit=6"])
            .unwrap_err()
            .contains("given twice")
    );
}

proptest! {
    #[test]
    fn no_token_smuggles_in_another(token in "[ -~]{1,30}", value in "[ -~]{0,20}") {
        for fs in ["ext4", "xfs", "btrfs", "nilfs2", "reiserfs"] {
            for token in [token.clone(), format!("commit={value}"), format!("compress={value}"), format!("{token}={value}")] {
                if let Ok(parsed) = parse(fs, &[token]) {
                    prop_assert!(!parsed.data.contains(','));
                    prop_assert!(parsed.flags.contains(MsFlags::MS_NOSUID | MsFlags::MS_NODEV));
                }
            }
        }
    }
}
