use std::path::Path;

use ascar_keeper::mounts;

#[test]
fn the_list_of_mounts_is_read() {
    let line = r"36 35 98:0 /mnt1 /mnt/a\040b\134c rw,noatime master:1 - ext4 /dev/loop3 rw,noatime,data=ordered";
    let mount = mounts::parse(line).unwrap();
    assert_eq!(mount.mountpoint, Path::new("/mnt/a b\\c"));
    assert_eq!(mount.device, "98:0");
    assert_eq!(mount.source, "/dev/loop3");
    assert_eq!(mount.options, ["rw", "noatime", "data=ordered"]);
    assert_eq!(mounts::parse("garbage"), None);
    assert_eq!(mounts::parse(" - "), None);
}

#[test]
fn the_root_is_mounted() {
    assert!(mounts::at(Path::new("/")).unwrap().is_some());
    assert_eq!(mounts::at(Path::new("/nowhere")).unwrap(), None);
}
