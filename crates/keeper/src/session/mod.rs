//! One client's session: what it owns, and what each operation does.

mod device;
mod file_systems;
mod groups;
mod images;

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use self::device::Device;
use crate::catalogue;
use crate::cgroup::Cgroup;
use crate::confirmation;
use crate::content::Content;
use crate::fault::{Doing, Fault, Result};
use crate::files;
use crate::images::Image;
use crate::interrupt::{Interrupt, Limit};
use crate::invoker::Invoker;
use crate::journal::{self, Alone, Deadline, Journal, Unconfirmed};
use crate::kernel;
use crate::knobs;
use crate::locks::{Held, Locks};
use crate::protocol::{self, Operation, Request};
use crate::report::{Pending, Report};
use crate::restore;
use crate::reverted;

/// Longest name of a study.
const OWNER_CHARACTERS_MAX: usize = 200;
/// Most devices and images of one session.
const DEVICES_MAX: usize = 64;

/// A session.
#[derive(Debug)]
pub struct Session {
    /// Unique on this machine.
    name: String,
    hold: bool,
    user: bool,
    invoker: Arc<Invoker>,
    journal: Arc<Mutex<Journal>>,
    interrupt: Arc<Interrupt>,
    /// What dead keepers had left.
    stale: Report,
    held: Held,
    lock_directory: PathBuf,
    locks: Option<Locks>,
    images: BTreeMap<PathBuf, Image>,
    devices: BTreeMap<PathBuf, Device>,
    cgroup: Option<Cgroup>,
    /// How many file systems were made.
    formats: u32,
}

/// What a session is made from.
#[derive(Debug)]
pub struct Setup {
    /// Unique on this machine.
    pub name: String,
    /// Whether a proper end keeps the changes as they are.
    pub hold: bool,
    /// Whether it runs as the user, for the user's files.
    pub user: bool,
    /// On whose behalf.
    pub invoker: Arc<Invoker>,
    /// Shared with whoever restores when the session is interrupted.
    pub journal: Arc<Mutex<Journal>>,
    /// Raised when the session ends.
    pub interrupt: Arc<Interrupt>,
    /// What dead keepers had left.
    pub stale: Report,
    /// Its locks, shared with whoever restores.
    pub held: Held,
    /// Where lock files are.
    pub lock_directory: PathBuf,
}

impl Session {
    /// A session that has touched nothing.
    pub fn new(setup: Setup) -> Self {
        Self {
            name: setup.name,
            hold: setup.hold,
            user: setup.user,
            invoker: setup.invoker,
            journal: setup.journal,
            interrupt: setup.interrupt,
            stale: setup.stale,
            held: setup.held,
            lock_directory: setup.lock_directory,
            locks: None,
            images: BTreeMap::new(),
            devices: BTreeMap::new(),
            cgroup: None,
            formats: 0,
        }
    }

    /// Does what a request asks for.
    pub fn serve(&mut self, request: Request) -> Result<Value> {
        let interrupt = Arc::clone(&self.interrupt);
        let limit = &Limit::new(&interrupt, request.timeout);
        limit.check("request")?;
        self.check_allowed(&request.operation)?;
        match request.operation {
            Operation::Hello { version, owner } => self.hello(version, &owner),
            Operation::Lock { resources } => self.lock(&resources),
            Operation::KnobRead { knob } => reply(knobs::read(&knob)?),
            Operation::KnobWrite { knob, value } => {
                let knob = catalogue::resolve(&knob)?;
                knob.present()?;
                knob.check(&value)?;
                self.locks()?.take(&knob.name)?;
                reply(knobs::write(&mut self.journal(), &knob, &value)?)
            }
            Operation::ImageCreate { path, size_bytes } => self.image_create(path, size_bytes),
            Operation::ImageAttach { path, direct_io } => self.image_attach(path, direct_io, limit),
            Operation::ImageDetach { device } => self.image_detach(device),
            Operation::ImageSave { name, device } => self.image_save(name, device, limit),
            Operation::ImageLoad { name, device } => self.image_load(&name, device, limit),
            Operation::ImageForget { name, device } => self.image_forget(&name, device),
            Operation::DeviceClaim { path, confirmed } => {
                self.device_claim(&path, confirmed, limit)
            }
            Operation::Format(request) => self.format(&request, limit),
            Operation::Mount(request) => self.mount(&request, limit),
            Operation::Remount { options, device } => self.remount(&options, device, limit),
            Operation::Unmount { device } => self.unmount(device, limit),
            Operation::SyncFs { device } => self.sync_fs(device, limit),
            Operation::DropCaches { level } => self.drop_caches(level, limit),
            Operation::CgroupCreate { memory_bytes } => self.cgroup_create(memory_bytes),
            Operation::CgroupAdd { pid } => self.cgroup_add(pid),
            Operation::CgroupRead {} => reply(self.cgroup()?.usage()),
            Operation::CgroupKill {} => self.cgroup_kill(),
            Operation::CgroupRemove {} => self.cgroup_remove(),
            Operation::FileReplace { path, content } => self.file_replace(&path, &content),
            Operation::UndoCommand {
                argv,
                limit_s,
                stdin,
            } => {
                files::undo_by(&mut self.journal(), &argv, limit_s, stdin)?;
                Ok(json!({}))
            }
            Operation::UndoForget { argv, stdin } => {
                self.journal().forget(&argv, stdin.as_deref())?;
                Ok(json!({}))
            }
            Operation::Status {} => self.status(),
            Operation::Restore {} => reply(self.restore()),
            Operation::Shutdown {} => self.shutdown(),
            Operation::AwaitConfirmation { seconds } => self.await_confirmation(seconds),
            Operation::Confirmation {} => self.confirmation(),
            Operation::Confirm { owner } => self.confirm(&owner),
        }
    }

    /// A session speaks its protocol's version first; one that holds its changes may only set knobs, which
    /// alone can outlive it.
    fn check_allowed(&self, operation: &Operation) -> Result<()> {
        if self.locks.is_none() && !matches!(operation, Operation::Hello { .. }) {
            return Err(Fault::input("the first request must be hello"));
        }
        let is_users = matches!(
            operation,
            Operation::FileReplace { .. }
                | Operation::UndoCommand { .. }
                | Operation::UndoForget { .. }
        );
        let is_common = matches!(
            operation,
            Operation::Hello { .. }
                | Operation::Lock { .. }
                | Operation::Status {}
                | Operation::Restore {}
                | Operation::Shutdown {}
                | Operation::AwaitConfirmation { .. }
                | Operation::Confirmation {}
                | Operation::Confirm { .. }
        );
        if is_users && !self.user {
            return Err(Fault::refused(
                "a keeper that runs as root changes no files of users: start one with --user",
            ));
        }
        if self.user && !is_users && !is_common {
            return Err(Fault::refused(
                "a keeper started with --user only changes files: start one as root without it",
            ));
        }
        let lasting = is_users
            || matches!(
                operation,
                Operation::Hello { .. }
                    | Operation::Lock { .. }
                    | Operation::KnobRead { .. }
                    | Operation::KnobWrite { .. }
                    | Operation::Status {}
                    | Operation::Restore {}
                    | Operation::Shutdown {}
                    | Operation::AwaitConfirmation { .. }
            );
        if self.hold && !lasting {
            return Err(Fault::refused(
                "a keeper started with --hold only sets knobs: start one without it",
            ));
        }
        Ok(())
    }

    fn hello(&mut self, version: u64, owner: &str) -> Result<Value> {
        if version != protocol::VERSION {
            return Err(Fault::input(format!(
                "version = {version}: this ascard speaks {}: install matching versions of ascar and ascard",
                protocol::VERSION
            )));
        }
        if self.locks.is_some() {
            return Err(Fault::input("hello was said already"));
        }
        if owner.is_empty()
            || owner.chars().count() > OWNER_CHARACTERS_MAX
            || owner.chars().any(char::is_control)
        {
            return Err(Fault::input(format!(
                "owner = {owner:?}: allowed are 1 to {OWNER_CHARACTERS_MAX} printable characters"
            )));
        }
        if self.hold {
            self.check_nothing_waits()?;
        }
        self.journal().set_owner(owner);
        let journals = self.journal().directory().to_owned();
        self.locks = Some(Locks::new(
            owner,
            &self.lock_directory,
            &journals,
            Arc::clone(&self.held),
        ));
        Ok(json!({
            "version": protocol::VERSION,
            "boot_id": kernel::boot_id(),
            "pid": std::process::id(),
            "uid": self.invoker.uid,
            "gid": self.invoker.gid,
            "capabilities": kernel::capabilities(),
            "restored": std::mem::take(&mut self.stale),
        }))
    }

    fn lock(&mut self, resources: &[String]) -> Result<Value> {
        for resource in resources {
            self.locks()?.take(resource)?;
        }
        Ok(json!({}))
    }

    fn status(&self) -> Result<Value> {
        let changes: Result<Vec<Value>> = self
            .journal()
            .entries()
            .iter()
            .map(|it| reply(&it.change))
            .collect();
        let part = |change: &Value, name: &str| match change.get(name) {
            None | Some(Value::Null) => Value::Null,
            Some(Value::String(text)) => json!(text),
            Some(other) => json!(other.to_string()),
        };
        let changes = changes?.into_iter().map(|it| {
            let (old, expected) = (part(&it, "old"), part(&it, "expected"));
            json!({"kind": part(&it, "kind"), "target": part(&it, "target"), "old": old, "expected": expected})
        });
        Ok(json!({"changes": changes.collect::<Vec<_>>()}))
    }

    fn file_replace(&mut self, path: &std::path::Path, content: &Content) -> Result<Value> {
        let lock = format!("file:{:016x}", files::hash(path.as_os_str().as_bytes()));
        self.locks()?.take(&lock)?;
        let target = files::replace(&mut self.journal(), path, content)?;
        Ok(json!({"path": target}))
    }

    fn restore(&mut self) -> Report {
        self.images.clear();
        self.devices.clear();
        self.cgroup = None;
        restore::restore(&mut self.journal())
    }

    fn shutdown(&mut self) -> Result<Value> {
        if self.hold {
            self.journal().hold()?;
            reverted::forget(self.journal().directory());
            return reply(Report::default());
        }
        reply(self.restore())
    }

    /// Ends the session with its changes in force until they are confirmed; without any, there is nothing to wait for.
    fn await_confirmation(&mut self, seconds: f64) -> Result<Value> {
        if !self.hold {
            return Err(Fault::input(
                "await_confirmation: is only allowed with --hold",
            ));
        }
        if !(seconds > 0.0 && seconds <= confirmation::SECONDS_MAX) {
            return Err(Fault::input(format!(
                "seconds = {seconds}: allowed are (0, {}]",
                confirmation::SECONDS_MAX
            )));
        }
        if self.journal().entries().is_empty() {
            return reply(Report::default());
        }
        let left = self.leave_unconfirmed(Duration::from_secs_f64(seconds));
        if left.is_err() {
            self.restore();
        }
        reply(Report {
            unconfirmed: left?,
            ..Report::default()
        })
    }

    fn leave_unconfirmed(&self, time: Duration) -> Result<Vec<Pending>> {
        let directory = self.journal().directory().to_owned();
        confirmation::start(&directory, self.user)?;
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let unconfirmed = Unconfirmed {
            until: Deadline::after(time),
            locks: held.keys().cloned().collect(),
        };
        let _alone = Alone::wait(&directory)?;
        self.check_nothing_waits()?;
        self.journal().leave_unconfirmed(unconfirmed)?;
        reverted::forget(&directory);
        let waiting = journal::waiting(&directory);
        Ok(waiting.iter().filter_map(Pending::of).collect())
    }

    /// What is to stay is not built on what may go.
    fn check_nothing_waits(&self) -> Result<()> {
        match journal::waiting(self.journal().directory()).first() {
            None => Ok(()),
            Some(other) => Err(Fault::refused(format!(
                "{}: confirm it, or put it back with `ascar restore`, before something else is put in force",
                other.described()
            ))),
        }
    }

    fn confirmation(&self) -> Result<Value> {
        let directory = self.journal().directory().to_owned();
        let waiting = journal::waiting(&directory);
        let unconfirmed: Vec<Pending> = waiting.iter().filter_map(Pending::of).collect();
        Ok(json!({"unconfirmed": unconfirmed, "reverted": reverted::last(&directory)}))
    }

    fn confirm(&self, owner: &str) -> Result<Value> {
        let directory = self.journal().directory().to_owned();
        Ok(json!({"changes": confirmation::confirm(&directory, owner)?}))
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        lock(&self.journal)
    }

    fn locks(&mut self) -> Result<&mut Locks> {
        self.locks
            .as_mut()
            .ok_or_else(|| Fault::input("the first request must be hello"))
    }

    /// The device that is meant: the named one, or the only one.
    fn device(&mut self, named: Option<PathBuf>) -> Result<&mut Device> {
        let paths: Vec<String> = self
            .devices
            .keys()
            .map(|path| path.display().to_string())
            .collect();
        let path = match (named, paths.as_slice()) {
            (Some(path), _) => path,
            (None, [path]) => PathBuf::from(path),
            (None, []) => {
                return Err(Fault::input(
                    "this session has no device: attach an image or claim a device",
                ));
            }
            (None, _) => {
                return Err(Fault::input(format!(
                    "device: is missing; allowed are {}",
                    paths.join(", ")
                )));
            }
        };
        let unknown = || {
            Fault::refused(format!(
                "device = {path:?}: is not this session's; allowed are {paths:?}"
            ))
        };
        self.devices.get_mut(&path).ok_or_else(unknown)
    }
}

fn lock(journal: &Mutex<Journal>) -> MutexGuard<'_, Journal> {
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reply(value: impl Serialize) -> Result<Value> {
    serde_json::to_value(value).doing("write the reply")
}

fn done(started: Instant) -> Result<Value> {
    Ok(json!({"seconds": started.elapsed().as_secs_f64()}))
}
