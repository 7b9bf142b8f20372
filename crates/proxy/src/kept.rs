//! The rules that are kept, in a file: a proxy that is started again goes on with them.
//!
//! Their time limit is there in the time of day, which alone goes on over a restart of the machine. That clock may be
//! wrong, so no rules are taken up for longer than they were given. What cannot be read with certainty is as good as
//! nothing: then no rules are in force.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ascar_congestion::RuleSet;
use ascar_plane::{Endpoint, KEPT_S_MAX, KeptRules, NamedRules, Plane, TimeLimit, token};
use serde::{Deserialize, Serialize};

use crate::LOG;
use crate::clock;

/// What the file begins with, before the version of the format and the checksum of what follows.
const MAGIC: &str = "ascar-kept-rules";

/// The version of the format that is written, and the newest that is read.
const VERSION: u32 = 1;

/// The longest file: more than the longest message.
const BYTES_MAX: usize = 4 << 20;

/// What is known of kept rules over a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    controller: String,
    workload: String,
    /// Their id.
    rules: String,
    /// The text of the rule file.
    text: String,
    limit: Option<RecordedLimit>,
}

/// A time limit by the time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedLimit {
    length_ms: u64,
    ends_unix_ms: u64,
}

/// Two clocks at one moment: the proxy's own, and the time of day since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// As [`clock::now`] counts.
    pub now: Duration,
    /// Since 1970.
    pub unix: Duration,
}

impl Moment {
    /// This moment.
    #[must_use]
    pub fn present() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            now: clock::now(),
            unix: unix.unwrap_or_default(),
        }
    }
}

impl Record {
    fn of(owner: &Owner, kept: &KeptRules, at: Moment) -> Self {
        let limit = kept.limit.map(|limit| RecordedLimit {
            length_ms: milliseconds(limit.length),
            ends_unix_ms: milliseconds(at.unix + limit.ends_at.saturating_sub(at.now)),
        });
        Self {
            controller: owner.controller.clone(),
            workload: owner.workload.clone(),
            rules: kept.named.id.clone(),
            text: kept.named.rules.to_text(),
            limit,
        }
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// In a line, what is wrong with them.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > BYTES_MAX {
            return Err(format!("more than {BYTES_MAX} bytes"));
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (head, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        let head = String::from_utf8_lossy(head);
        let words: Vec<&str> = head.split_ascii_whitespace().collect();
        let [MAGIC, version, checksum] = words[..] else {
            return Err("is no file of kept rules".to_owned());
        };
        if version != VERSION.to_string() {
            let shown: String = version.chars().take(20).collect();
            return Err(format!(
                "version = {shown:?}: this ascard reads version {VERSION}"
            ));
        }
        if checksum != checksum_of(rest) {
            return Err("its checksum is another: it was changed or damaged".to_owned());
        }
        serde_json::from_slice(rest).map_err(|error| error.to_string())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let body = serde_json::to_vec(self).expect("texts and whole numbers can be written");
        let head = format!("{MAGIC} {VERSION} {}\n", checksum_of(&body));
        [head.into_bytes(), body].concat()
    }

    /// The rules, as long as they still stay.
    ///
    /// # Errors
    /// In a line, when they are others', broken, or their time is over.
    pub fn kept(&self, owner: &Owner, at: Moment) -> Result<KeptRules, String> {
        for (key, found, own) in [
            ("controller", &self.controller, &owner.controller),
            ("workload", &self.workload, &owner.workload),
        ] {
            if found != own {
                let shown: String = found.chars().take(64).collect();
                return Err(format!("{key} = {shown:?}: this proxy's is {own:?}"));
            }
        }
        let id = token("rules", &self.rules)?;
        let rules = RuleSet::parse(&self.text).map_err(|fault| format!("text: {fault}"))?;
        let limit = self.limit.map(|limit| limit.at(at)).transpose()?;
        if limit.is_some_and(|limit| limit.ends_at <= at.now) {
            return Err(format!("rules {id}: their time is over"));
        }
        let named = NamedRules { id, rules };
        Ok(KeptRules { named, limit })
    }
}

impl RecordedLimit {
    fn at(self, at: Moment) -> Result<TimeLimit, String> {
        let length = Duration::from_millis(self.length_ms);
        let most = Duration::from_secs_f64(KEPT_S_MAX);
        if length.is_zero() || length > most {
            return Err(format!(
                "length_ms = {}: must be above 0, and at most {}",
                self.length_ms,
                most.as_millis()
            ));
        }
        let left = Duration::from_millis(self.ends_unix_ms).saturating_sub(at.unix);
        // A clock that was set back makes no rules stay longer than they were given.
        let ends_at = at.now + left.min(length);
        Ok(TimeLimit { length, ends_at })
    }
}

/// Whose rules they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The controller's name.
    pub controller: String,
    /// The workload of its clients.
    pub workload: String,
}

/// Writes down which rules are kept.
#[derive(Debug)]
pub struct Keeping {
    owner: Owner,
    path: PathBuf,
    /// The endpoint's number of what is in the file; None: the file tells another time.
    written: Option<u64>,
}

impl Keeping {
    /// In a folder, which is made if need be.
    ///
    /// # Errors
    /// When there is no such folder to be had.
    pub fn within(folder: &Path, owner: Owner) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made?,
        }
        if !folder.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        }
        let path = folder.join(format!("{}.kept-rules", owner.controller));
        Ok(Self {
            owner,
            path,
            written: Some(0),
        })
    }

    /// Puts rules in force that were kept before this start. What is not to be taken up is named and left alone.
    pub fn take_up<P: Plane>(&mut self, endpoint: &mut Endpoint<P>) {
        let at = Moment::present();
        let found = match read(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => Err(error.to_string()),
            Ok(bytes) => Record::parse(&bytes),
        };
        let taken = found
            .and_then(|record| record.kept(&self.owner, at))
            .and_then(|kept| {
                let id = kept.named.id.clone();
                let limit = kept.limit;
                endpoint.take_up(kept, at.now)?;
                Ok((id, limit))
            });
        // Each start under a clock that was set back would give them all of their time again.
        let is_all = |limit: TimeLimit| limit.ends_at >= at.now + limit.length;
        let has_all = matches!(taken, Ok((_, Some(limit))) if is_all(limit));
        self.written = (!has_all).then(|| endpoint.kept_changes());
        match taken {
            Ok((id, _)) => LOG.line(format_args!(
                "rules {id}: were kept before this start; in force again"
            )),
            Err(why) => LOG.line(format_args!(
                "{}: {why}; it is ignored: no rules are in force",
                self.path.display()
            )),
        }
    }

    /// Has what is kept now on disk, where it is something else than before.
    pub fn note<P: Plane>(&mut self, endpoint: &Endpoint<P>) {
        if self.written == Some(endpoint.kept_changes()) {
            return;
        }
        self.written = Some(endpoint.kept_changes());
        let written = match endpoint.kept() {
            Some(kept) => self.write(&Record::of(&self.owner, kept, Moment::present())),
            None => remove(&self.path),
        };
        if let Err(error) = written {
            // Rather none after a start than those from before.
            let _ = remove(&self.path);
            let _ = remove(&self.draft());
            LOG.line(format_args!(
                "{}: {error}; what is kept now does not outlast this process",
                self.path.display()
            ));
        }
    }

    fn draft(&self) -> PathBuf {
        self.path.with_extension("draft")
    }

    fn write(&self, record: &Record) -> io::Result<()> {
        let draft = self.draft();
        // What lies there may be another's file, or lead to one.
        remove(&draft)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(&record.to_bytes())?;
        file.sync_all()?;
        std::fs::rename(&draft, &self.path)?;
        sync_folder(&self.path)
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Not a FIFO that somebody put there: that would wait for a writer.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let found = file.metadata()?;
    // SAFETY: takes nothing, and cannot fail.
    let own = unsafe { libc::geteuid() };
    if ![0, own].contains(&found.uid()) || found.mode() & 0o022 != 0 {
        return Err(io::Error::other("others may write to it"));
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_folder(path),
    }
}

/// Has the names in a file's folder on the device as well.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Rounded up: of a length above 0 something stays.
fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// FNV-1a of 64 bits.
fn checksum_of(bytes: &[u8]) -> String {
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{sum:016x}")
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use ascar_congestion::Action;
    use ascar_plane::StreamIndicators;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn owner() -> Owner {
        Owner {
            controller: "client1".to_owned(),
            workload: "blocks".to_owned(),
        }
    }

    fn moment(now_s: u64, unix_s: u64) -> Moment {
        Moment {
            now: Duration::from_secs(now_s),
            unix: Duration::from_secs(unix_s),
        }
    }

    fn kept(ends_at_s: u64) -> KeptRules {
        let action = Action {
            m100: 100,
            b100: 50,
            tau_us: 7,
        };
        KeptRules {
            named: NamedRules {
                id: "a1".to_owned(),
                rules: RuleSet::uniform(action).with_active_files(2).unwrap(),
            },
            limit: Some(TimeLimit {
                length: HOUR,
                ends_at: Duration::from_secs(ends_at_s),
            }),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut kept = kept(5_000);
        let record = Record::of(&owner(), &kept, moment(2_000, 1_000_000));
        assert_eq!(Record::parse(&record.to_bytes()), Ok(record.clone()));
        // A process that was started 600 s later counts from there.
        let limit = kept.limit.as_mut().unwrap();
        limit.ends_at = Duration::from_secs(10 + 2_400);
        assert_eq!(record.kept(&owner(), moment(10, 1_000_600)), Ok(kept));
    }

    #[test]
    fn no_clock_makes_rules_stay_longer_than_they_were_given() {
        let record = Record::of(&owner(), &kept(5_000), moment(2_000, 1_000_000));
        for (unix_s, left_s) in [
            (1_000_000, 3_000),
            (1_002_999, 1),
            (999_900, 3_100),
            (0, 3_600),
        ] {
            let kept = record.kept(&owner(), moment(0, unix_s)).unwrap();
            let ends_at = kept.limit.unwrap().ends_at;
            assert_eq!(ends_at, Duration::from_secs(left_s), "{unix_s}");
        }
        for unix_s in [1_003_000, u64::from(u32::MAX)] {
            let said = record.kept(&owner(), moment(0, unix_s)).unwrap_err();
            assert_eq!(said, "rules a1: their time is over");
        }
    }

    /// Follows anything.
    #[derive(Debug)]
    struct Follower;

    impl Plane for Follower {
        fn follow(&mut self, _: Option<&RuleSet>) -> Result<(), String> {
            Ok(())
        }

        fn used(&self) -> Option<RuleSet> {
            None
        }

        fn observe(&self) -> Vec<StreamIndicators> {
            Vec::new()
        }
    }

    #[test]
    fn starts_under_a_clock_that_was_set_back_share_one_time() {
        let name = format!("ascar-kept-clock-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let mut keeping = Keeping::within(&folder, owner()).unwrap();
        let present = Moment::present();
        let later = Moment {
            now: Duration::ZERO,
            unix: present.unix + 1_000 * HOUR,
        };
        let record = Record::of(&owner(), &kept(3_600), later);
        keeping.write(&record).unwrap();
        let start = |keeping: &mut Keeping| {
            let mut endpoint = Endpoint::new("client1", "blocks", "i", Follower).unwrap();
            keeping.take_up(&mut endpoint);
            keeping.note(&endpoint);
            endpoint.kept().unwrap().limit.unwrap().ends_at
        };
        let ends_at = start(&mut keeping);
        assert!(ends_at >= present.now + HOUR);
        std::thread::sleep(Duration::from_millis(50));
        let again = start(&mut Keeping::within(&folder, owner()).unwrap());
        assert!(again < ends_at + Duration::from_millis(40), "{again:?}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_others_may_write_to_is_not_read_and_none_of_theirs_is_written_to() {
        let name = format!("ascar-kept-rules-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let keeping = Keeping::within(&folder, owner()).unwrap();
        let theirs = folder.join("theirs");
        std::fs::write(&theirs, "theirs").unwrap();
        std::fs::hard_link(&theirs, keeping.draft()).unwrap();
        let record = Record::of(&owner(), &kept(5_000), moment(2_000, 1_000_000));
        keeping.write(&record).unwrap();
        assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
        assert_eq!(read(&keeping.path).unwrap(), record.to_bytes());
        for mode in [0o620, 0o602] {
            let permissions = Permissions::from_mode(mode);
            std::fs::set_permissions(&keeping.path, permissions).unwrap();
            let why = read(&keeping.path).unwrap_err().to_string();
            assert_eq!(why, "others may write to it", "{mode:o}");
        }
        std::fs::remove_file(&keeping.path).unwrap();
        symlink(&theirs, &keeping.path).unwrap();
        assert!(read(&keeping.path).is_err());
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_broken_or_others_is_told() {
        let at = moment(0, 1_000_000);
        let record = Record::of(&owner(), &kept(5_000), moment(2_000, 1_000_000));
        let bytes = record.to_bytes();
        for place in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[place] ^= 1;
            assert!(Record::parse(&broken).is_err(), "{place}");
            assert!(Record::parse(&bytes[..place]).is_err());
        }
        let newer = String::from_utf8(bytes).unwrap().replacen(" 1 ", " 2 ", 1);
        let said = Record::parse(newer.as_bytes()).unwrap_err();
        assert_eq!(said, "version = \"2\": this ascard reads version 1");
        assert!(
            Record::parse(&vec![b'x'; BYTES_MAX + 1])
                .unwrap_err()
                .contains("bytes")
        );
        let mut other = record.clone();
        other.workload = "files".to_owned();
        let said = other.kept(&owner(), at).unwrap_err();
        assert_eq!(said, "workload = \"files\": this proxy's is \"blocks\"");
        let mut other = record.clone();
        other.text = "1,2\n".to_owned();
        assert!(
            other
                .kept(&owner(), at)
                .unwrap_err()
                .starts_with("text: line 1")
        );
        let mut other = record;
        other.limit.as_mut().unwrap().length_ms = u64::MAX;
        assert!(
            other
                .kept(&owner(), at)
                .unwrap_err()
                .starts_with("length_ms = 1844")
        );
    }
}
