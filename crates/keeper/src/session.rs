//! One client's session: what it owns, and what each operation does.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use serde::Serialize;
use serde_json::{Value, json};

use crate::catalogue;
use crate::cgroup::{self, Cgroup};
use crate::devices;
use crate::fault::{Doing, Fault, Result};
use crate::file_id::FileId;
use crate::format;
use crate::images;
use crate::interrupt::{Interrupt, Limit};
use crate::invoker::Invoker;
use crate::journal::{Change, Journal};
use crate::kernel;
use crate::knobs;
use crate::locks::Locks;
use crate::loops;
use crate::mount_options;
use crate::mounts;
use crate::program;
use crate::protocol::{self, FormatRequest, MountRequest, Operation, Request};
use crate::report::Report;
use crate::restore;

/// Where mountpoints are made.
const MOUNTPOINTS: &str = "/run/ascar/mnt";
/// Longest name of a study.
const OWNER_CHARACTERS_MAX: usize = 200;
/// Most devices and images of one session.
const DEVICES_MAX: usize = 64;

/// An image file of this session.
#[derive(Debug)]
struct Image {
    path: PathBuf,
    file: File,
    id: FileId,
}

/// A saved copy of an image, and the file system in it.
#[derive(Debug)]
struct Saved {
    image: Image,
    fs: Option<String>,
}

/// A block device this session may write.
#[derive(Debug)]
struct Device {
    path: PathBuf,
    name: String,
    /// `major:minor`.
    number: String,
    /// None for a device of the machine.
    image: Option<Image>,
    saved: BTreeMap<String, Saved>,
    /// The file system that this session made on it.
    fs: Option<String>,
    mountpoint: Option<PathBuf>,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    /// Unique on this machine.
    name: String,
    hold: bool,
    invoker: Arc<Invoker>,
    journal: Arc<Mutex<Journal>>,
    interrupt: Arc<Interrupt>,
    /// What dead keepers had left.
    stale: Report,
    locks: Option<Locks>,
    images: BTreeMap<PathBuf, Image>,
    devices: BTreeMap<PathBuf, Device>,
    cgroup: Option<Cgroup>,
}

/// What a session is made from.
#[derive(Debug)]
pub struct Setup {
    /// Unique on this machine.
    pub name: String,
    /// Whether a proper end keeps the knobs as they are.
    pub hold: bool,
    /// On whose behalf.
    pub invoker: Arc<Invoker>,
    /// Shared with whoever restores when the session is interrupted.
    pub journal: Arc<Mutex<Journal>>,
    /// Raised when the session ends.
    pub interrupt: Arc<Interrupt>,
    /// What dead keepers had left.
    pub stale: Report,
}

impl Session {
    /// A session that has touched nothing.
    pub fn new(setup: Setup) -> Self {
        Self {
            name: setup.name,
            hold: setup.hold,
            invoker: setup.invoker,
            journal: setup.journal,
            interrupt: setup.interrupt,
            stale: setup.stale,
            locks: None,
            images: BTreeMap::new(),
            devices: BTreeMap::new(),
            cgroup: None,
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
            Operation::DeviceClaim { path, confirmed } => self.device_claim(&path, confirmed, limit),
            Operation::Format(request) => self.format(&request, limit),
            Operation::Mount(request) => self.mount(&request),
            Operation::Remount { options, device } => self.remount(&options, device),
            Operation::Unmount { device } => self.unmount(device, limit),
            Operation::SyncFs { device } => self.sync_fs(device, limit),
            Operation::DropCaches { level } => self.drop_caches(level, limit),
            Operation::CgroupCreate { memory_bytes } => self.cgroup_create(memory_bytes),
            Operation::CgroupAdd { pid } => self.cgroup_add(pid),
            Operation::CgroupRead {} => reply(self.cgroup()?.usage()),
            Operation::CgroupKill {} => self.cgroup_kill(),
            Operation::CgroupRemove {} => self.cgroup_remove(),
            Operation::Status {} => self.status(),
            Operation::Restore {} => reply(self.restore()),
            Operation::Shutdown {} => self.shutdown(),
        }
    }

    /// A session speaks its protocol's version first; one that holds its changes may only set knobs, which
    /// alone can outlive it.
    fn check_allowed(&self, operation: &Operation) -> Result<()> {
        if self.locks.is_none() && !matches!(operation, Operation::Hello { .. }) {
            return Err(Fault::input("the first request must be hello"));
        }
        let lasting = matches!(
            operation,
            Operation::Hello { .. }
                | Operation::Lock { .. }
                | Operation::KnobRead { .. }
                | Operation::KnobWrite { .. }
                | Operation::Status {}
                | Operation::Restore {}
                | Operation::Shutdown {}
        );
        if self.hold && !lasting {
            return Err(Fault::refused("a keeper started with --hold only sets knobs: start one without it"));
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
        if owner.is_empty() || owner.chars().count() > OWNER_CHARACTERS_MAX || owner.chars().any(char::is_control) {
            return Err(Fault::input(format!(
                "owner = {owner:?}: allowed are 1 to {OWNER_CHARACTERS_MAX} printable characters"
            )));
        }
        self.journal().set_owner(owner);
        self.locks = Some(Locks::new(owner));
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

    fn image_create(&mut self, path: PathBuf, size_bytes: u64) -> Result<Value> {
        if self.images.len() + self.devices.len() >= DEVICES_MAX {
            return Err(Fault::input(format!("path = {path:?}: more than {DEVICES_MAX} images in one session")));
        }
        let (file, id) = images::create(&mut self.journal(), &self.invoker, &path, size_bytes)?;
        let answer = json!({"path": path, "size_bytes": size_bytes});
        self.images.insert(path.clone(), Image { path, file, id });
        Ok(answer)
    }

    fn image_attach(&mut self, path: PathBuf, direct_io: bool, limit: &Limit) -> Result<Value> {
        let image = match self.images.remove(&path) {
            Some(image) => image,
            None => self.foreign_image(path, limit)?,
        };
        let attached = self.attach(&image, direct_io);
        match attached {
            Ok((path, number)) => {
                let name = base_name(&path);
                let answer = json!({"device": path, "name": name, "direct_io": direct_io});
                let device = Device {
                    path: path.clone(),
                    name,
                    number,
                    image: Some(image),
                    saved: BTreeMap::new(),
                    fs: None,
                    mountpoint: None,
                };
                self.devices.insert(path, device);
                Ok(answer)
            }
            Err(fault) => {
                self.images.insert(image.path.clone(), image);
                Err(fault)
            }
        }
    }

    /// An image that this session did not make: only root may bring one, and only if nobody can miss what is on it.
    fn foreign_image(&self, path: PathBuf, limit: &Limit) -> Result<Image> {
        if let Some(device) = self.devices.values().find(|it| it.image.as_ref().is_some_and(|it| it.path == path)) {
            return Err(Fault::input(format!("path = {path:?}: is attached to {} already", device.path.display())));
        }
        if self.invoker.uid != 0 {
            return Err(Fault::refused(format!("path = {path:?}: this session has not made it: use image_create")));
        }
        if !path.is_absolute() {
            return Err(Fault::input(format!("path = {path:?}: must be absolute")));
        }
        let file = images::open(&path)?;
        let metadata = file.metadata().doing("look at the image")?;
        if !metadata.is_file() {
            return Err(Fault::input(format!("path = {path:?}: is not a regular file")));
        }
        devices::check_blank(&path, limit)?;
        let id = FileId::of(&metadata);
        if let Some(device) = loops::backed_by(&id).first() {
            return Err(Fault::refused(format!("path = {path:?}: is attached to {} already", device.display())));
        }
        Ok(Image { path, file, id })
    }

    fn attach(&self, image: &Image, direct_io: bool) -> Result<(PathBuf, String)> {
        let mut journal = self.journal();
        let numbers = journal.record(vec![Change::Attach { target: image.path.clone(), expected: image.id }])?;
        let attached = loops::attach(&image.file, direct_io).and_then(|device| {
            if direct_io && !loops::is_direct(&device) {
                return Err(Fault::failed(format!(
                    "direct_io: the file system of {} cannot do it: leave it out",
                    image.path.display()
                )));
            }
            let number = std::fs::read_to_string(Path::new("/sys/block").join(base_name(&device)).join("dev"));
            Ok((device, number.doing("read the device's number")?.trim().to_owned()))
        });
        if attached.is_err() {
            for device in loops::backed_by(&image.id) {
                loops::detach(&device, &image.id)?;
            }
            journal.undone(&numbers)?;
        }
        attached
    }

    fn image_detach(&mut self, device: Option<PathBuf>) -> Result<Value> {
        let device = self.device(device)?;
        let (path, mounted) = (device.path.clone(), device.mountpoint.clone());
        let Some(id) = device.image.as_ref().map(|image| image.id) else {
            return Err(Fault::input(format!("device = {path:?}: is not an image")));
        };
        if let Some(mountpoint) = mounted {
            return Err(Fault::refused(format!("{path:?} is mounted at {}: unmount it first", mountpoint.display())));
        }
        if !loops::detach(&path, &id)? {
            return Err(Fault::failed(format!("{} is still in use", path.display())));
        }
        self.journal().undone_where(|it| matches!(it, Change::Attach { expected, .. } if *expected == id))?;
        if let Some(device) = self.devices.remove(&path) {
            for saved in device.saved.into_values() {
                self.remove_file(&saved.image)?;
            }
            self.images.extend(device.image.map(|image| (image.path.clone(), image)));
        }
        Ok(json!({}))
    }

    fn remove_file(&self, image: &Image) -> Result<()> {
        images::remove(&image.path, &image.id, false)?;
        self.journal().undone_where(|it| matches!(it, Change::File { expected, .. } if *expected == image.id))
    }

    fn image_save(&mut self, name: String, device: Option<PathBuf>, limit: &Limit) -> Result<Value> {
        let journal = Arc::clone(&self.journal);
        let device = self.device(device)?;
        check_copy_name(&name)?;
        let image = device.quiet_image()?;
        if device.saved.contains_key(&name) {
            return Err(Fault::input(format!("name = {name:?}: is saved already: forget it first")));
        }
        if device.saved.len() >= DEVICES_MAX {
            return Err(Fault::input(format!("name = {name:?}: more than {DEVICES_MAX} copies of one image")));
        }
        let mut path = image.path.clone().into_os_string();
        path.push(format!(".{name}"));
        let path = PathBuf::from(path);
        let (file, id, copied) = images::save(&mut lock(&journal), &image.file, &path, limit)?;
        let saved = Saved { image: Image { path, file, id }, fs: device.fs.clone() };
        device.saved.insert(name, saved);
        reply(copied)
    }

    fn image_load(&mut self, name: &str, device: Option<PathBuf>, limit: &Limit) -> Result<Value> {
        let device = self.device(device)?;
        let saved = device.saved(name)?;
        let fs = saved.fs.clone();
        let image = device.quiet_image()?;
        let copied = images::load(&saved.image.file, &image.file, limit);
        // Even a part of it makes what the page cache has of the device stale.
        let opened = devices::check_unused(&device.path, &device.number)?;
        loops::flush_buffers(&opened)?;
        device.fs = None;
        let copied = copied?;
        device.fs = fs;
        reply(copied)
    }

    fn image_forget(&mut self, name: &str, device: Option<PathBuf>) -> Result<Value> {
        let device = self.device(device)?;
        device.saved(name)?;
        if let Some(saved) = device.saved.remove(name) {
            self.remove_file(&saved.image)?;
        }
        Ok(json!({}))
    }

    fn device_claim(&mut self, path: &Path, confirmed: bool, limit: &Limit) -> Result<Value> {
        if self.devices.len() >= DEVICES_MAX {
            return Err(Fault::input(format!("path = {path:?}: more than {DEVICES_MAX} devices in one session")));
        }
        let claimed = devices::claim(path, confirmed, limit)?;
        self.locks()?.take(&format!("device.{}", claimed.number))?;
        let name = base_name(&claimed.path);
        let answer = json!({"device": claimed.path, "name": name, "size_bytes": claimed.size_bytes});
        let device = Device {
            path: claimed.path.clone(),
            name,
            number: claimed.number,
            image: None,
            saved: BTreeMap::new(),
            fs: None,
            mountpoint: None,
        };
        self.devices.entry(claimed.path).or_insert(device);
        Ok(answer)
    }

    fn format(&mut self, request: &FormatRequest, limit: &Limit) -> Result<Value> {
        let started = Instant::now();
        let uuid = self.uuid();
        let device = self.device(request.device.clone())?;
        let command = format::command(request, &device.path, &uuid)?;
        if program::find(command.program).is_none() {
            return Err(program::not_installed(command.program));
        }
        device.check_unmounted()?;
        let opened = devices::check_unused(&device.path, &device.number)?;
        device.fs = None;
        match &device.image {
            Some(image) => {
                images::punch(&image.file)?;
                loops::flush_buffers(&opened)?;
                drop(opened);
            }
            None => {
                drop(opened);
                let path = device.path.as_os_str();
                program::run("wipefs", &["-a".as_ref(), "--".as_ref(), path], limit)?.success("wipefs")?;
                // Not every device can discard; what it keeps then is as good as any other content.
                let _ = program::run("blkdiscard", &["-f".as_ref(), "--".as_ref(), path], limit)?;
            }
        }
        let finished = program::run(command.program, &command.arguments, limit)?.success(command.program)?;
        device.fs = Some(request.fs.clone());
        let words: Vec<String> = std::iter::once(command.program.to_owned()).chain(command.arguments).collect();
        let output = [finished.stdout, finished.stderr].join("\n").trim().to_owned();
        Ok(json!({"seconds": started.elapsed().as_secs_f64(), "command": words, "output": output}))
    }

    fn mount(&mut self, request: &MountRequest) -> Result<Value> {
        let started = Instant::now();
        let options = mount_options::parse(&request.fs, &request.options)?;
        let (own_uid, own_gid) = (self.invoker.uid, self.invoker.gid);
        let (uid, gid) = (request.uid.unwrap_or(own_uid), request.gid.unwrap_or(own_gid));
        if own_uid != 0 && (uid, gid) != (own_uid, own_gid) {
            return Err(Fault::refused(format!("uid = {uid}, gid = {gid}: allowed are your own {own_uid}, {own_gid}")));
        }
        let (session, journal) = (self.name.clone(), Arc::clone(&self.journal));
        let device = self.device(request.device.clone())?;
        device.check_unmounted()?;
        if device.fs.as_deref() != Some(&request.fs) {
            let has = device.fs.as_deref().unwrap_or("nothing");
            return Err(Fault::input(format!(
                "fs = {:?}: this session has made {has} on {}: format it first",
                request.fs,
                device.path.display()
            )));
        }
        drop(devices::check_unused(&device.path, &device.number)?);
        let mountpoint = PathBuf::from(MOUNTPOINTS).join(format!("{session}-{}", device.name));
        let mut journal = lock(&journal);
        make_mountpoint(&mut journal, &mountpoint)?;
        let change = Change::Mount { target: mountpoint.clone(), expected: device.path.clone(), scratch: true };
        let numbers = journal.record(vec![change])?;
        let messages = kernel::Messages::watch();
        let data = Some(options.data.as_str()).filter(|data| !data.is_empty());
        if let Err(error) = mount(Some(&device.path), &mountpoint, Some(request.fs.as_str()), options.flags, data) {
            let words = messages.about(&device.name);
            journal.undone(&numbers)?;
            drop_mountpoint(&mut journal, &mountpoint)?;
            return Err(cannot_mount("mount", &device.path, &options.data, error, words));
        }
        device.mountpoint = Some(mountpoint.clone());
        std::os::unix::fs::chown(&mountpoint, Some(uid), Some(gid)).doing("give the root directory away")?;
        mounted(&mountpoint, started)
    }

    fn remount(&mut self, options: &[String], device: Option<PathBuf>) -> Result<Value> {
        let started = Instant::now();
        let device = self.device(device)?;
        let (fs, mountpoint) = device.mounted()?;
        let options = mount_options::parse(&fs, options)?;
        let messages = kernel::Messages::watch();
        let flags = options.flags | MsFlags::MS_REMOUNT;
        if let Err(error) = mount(Some(&device.path), &mountpoint, None::<&str>, flags, Some(options.data.as_str())) {
            return Err(cannot_mount("remount", &device.path, &options.data, error, messages.about(&device.name)));
        }
        mounted(&mountpoint, started)
    }

    fn unmount(&mut self, device: Option<PathBuf>, limit: &Limit) -> Result<Value> {
        let started = Instant::now();
        let journal = Arc::clone(&self.journal);
        let device = self.device(device)?;
        let (_, mountpoint) = device.mounted()?;
        // Unmounting cannot be stopped, syncing can: so that little is left to do for the former.
        sync(&mountpoint, limit)?;
        mounts::unmount(&mountpoint, limit)?;
        device.mountpoint = None;
        let mut journal = lock(&journal);
        journal.undone_where(|it| matches!(it, Change::Mount { target, .. } if *target == mountpoint))?;
        drop_mountpoint(&mut journal, &mountpoint)?;
        done(started)
    }

    fn sync_fs(&mut self, device: Option<PathBuf>, limit: &Limit) -> Result<Value> {
        let started = Instant::now();
        let (_, mountpoint) = self.device(device)?.mounted()?;
        sync(&mountpoint, limit)?;
        done(started)
    }

    fn drop_caches(&mut self, level: u8, limit: &Limit) -> Result<Value> {
        if !(1..=3).contains(&level) {
            return Err(Fault::input(format!("level = {level}: allowed are 1 (pages), 2 (inodes, dentries), 3 (both)")));
        }
        let started = Instant::now();
        self.locks()?.take("vm.drop_caches")?;
        bounded("dropping caches", limit, move || std::fs::write("/proc/sys/vm/drop_caches", level.to_string()))?;
        done(started)
    }

    fn cgroup_create(&mut self, memory_bytes: u64) -> Result<Value> {
        cgroup::check_memory(memory_bytes)?;
        if self.cgroup.is_some() {
            return Err(Fault::input("this session has a control group already: remove it first"));
        }
        let hierarchy = cgroup::discover()
            .ok_or_else(|| Fault::input("this machine has no control groups for memory: leave the limit out"))?;
        let name = format!("ascar-{}", self.name);
        let group = Cgroup::create(&mut self.journal(), &hierarchy, &name, memory_bytes)?;
        let answer = json!({"path": group.path, "version": group.version, "memory_bytes": memory_bytes});
        self.cgroup = Some(group);
        Ok(answer)
    }

    fn cgroup_add(&mut self, pid: i32) -> Result<Value> {
        let group = self.cgroup()?;
        if pid <= 1 || !self.invoker.may_limit(nix::unistd::Pid::from_raw(pid)) {
            return Err(Fault::refused(format!("pid = {pid}: is no process of yours")));
        }
        group.add(pid)?;
        Ok(json!({}))
    }

    fn cgroup_kill(&mut self) -> Result<Value> {
        let group = self.cgroup()?;
        if !group.kill() {
            return Err(Fault::failed(format!("processes in {} do not die", group.path.display())));
        }
        reply(group.usage())
    }

    fn cgroup_remove(&mut self) -> Result<Value> {
        let group = self.cgroup()?;
        let usage = group.usage();
        let path = group.path.clone();
        if !group.kill() {
            return Err(Fault::failed(format!("processes in {} do not die", path.display())));
        }
        group.remove()?;
        self.journal().undone_where(|it| matches!(it, Change::Cgroup { target } if *target == path))?;
        self.cgroup = None;
        reply(usage)
    }

    fn status(&self) -> Result<Value> {
        let changes: Result<Vec<Value>> = self.journal().entries().iter().map(|it| reply(&it.change)).collect();
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

    fn restore(&mut self) -> Report {
        self.images.clear();
        self.devices.clear();
        self.cgroup = None;
        restore::restore(&mut self.journal())
    }

    fn shutdown(&mut self) -> Result<Value> {
        if self.hold {
            self.journal().hold()?;
            return reply(Report::default());
        }
        reply(self.restore())
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        lock(&self.journal)
    }

    fn locks(&mut self) -> Result<&mut Locks> {
        self.locks.as_mut().ok_or_else(|| Fault::input("the first request must be hello"))
    }

    fn cgroup(&self) -> Result<&Cgroup> {
        self.cgroup.as_ref().ok_or_else(|| Fault::input("this session has no control group: make one first"))
    }

    /// The device that is meant: the named one, or the only one.
    fn device(&mut self, named: Option<PathBuf>) -> Result<&mut Device> {
        let paths: Vec<String> = self.devices.keys().map(|path| path.display().to_string()).collect();
        let path = match (named, paths.as_slice()) {
            (Some(path), _) => path,
            (None, [path]) => PathBuf::from(path),
            (None, []) => return Err(Fault::input("this session has no device: attach an image or claim a device")),
            (None, _) => return Err(Fault::input(format!("device: is missing; allowed are {}", paths.join(", ")))),
        };
        let unknown = || Fault::refused(format!("device = {path:?}: is not this session's; allowed are {paths:?}"));
        self.devices.get_mut(&path).ok_or_else(unknown)
    }

    /// Identifies the file systems of this session: two of one UUID cannot be mounted at once.
    fn uuid(&self) -> String {
        let digits: String = self.name.chars().filter(char::is_ascii_hexdigit).collect();
        format!("{}00-4000-8000-{:0>12}", devices::UUID_PREFIX, &digits[digits.len().saturating_sub(12)..])
    }
}

impl Device {
    fn check_unmounted(&self) -> Result<()> {
        match &self.mountpoint {
            Some(place) => {
                Err(Fault::input(format!("{} is mounted at {}: unmount it first", self.path.display(), place.display())))
            }
            None => Ok(()),
        }
    }

    fn mounted(&self) -> Result<(String, PathBuf)> {
        let place = self.mountpoint.clone();
        let place = place.ok_or_else(|| Fault::input(format!("{} is not mounted", self.path.display())))?;
        Ok((self.fs.clone().unwrap_or_default(), place))
    }

    /// The image, while nothing is mounted from it.
    fn quiet_image(&self) -> Result<&Image> {
        self.check_unmounted()?;
        let opened = devices::check_unused(&self.path, &self.number)?;
        let image = self.image.as_ref();
        let image = image.ok_or_else(|| Fault::input(format!("device = {:?}: is not an image", self.path)))?;
        loops::flush_buffers(&opened)?;
        Ok(image)
    }

    fn saved(&self, name: &str) -> Result<&Saved> {
        let names: Vec<_> = self.saved.keys().collect();
        let unknown = || Fault::input(format!("name = {name:?}: is not saved; allowed are {names:?}"));
        self.saved.get(name).ok_or_else(unknown)
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

fn base_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn check_copy_name(name: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(allowed) {
        return Err(Fault::input(format!("name = {name:?}: allowed are 1 to 64 of A-Z a-z 0-9 _ -")));
    }
    Ok(())
}

fn make_mountpoint(journal: &mut Journal, path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let doing = format!("make {}", path.display());
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(MOUNTPOINTS).doing(&doing)?;
    let numbers = journal.record(vec![Change::Directory { target: path.to_owned() }])?;
    if let Err(error) = std::fs::DirBuilder::new().mode(0o700).create(path) {
        journal.undone(&numbers)?;
        return Err(error).doing(&doing);
    }
    Ok(())
}

fn drop_mountpoint(journal: &mut Journal, path: &Path) -> Result<()> {
    std::fs::remove_dir(path).doing(format!("remove {}", path.display()))?;
    journal.undone_where(|it| matches!(it, Change::Directory { target } if target == path))
}

fn mounted(mountpoint: &Path, started: Instant) -> Result<Value> {
    let info = mounts::at(mountpoint)?.ok_or_else(|| Fault::failed(format!("{mountpoint:?} vanished")))?;
    let space = nix::sys::statvfs::statvfs(mountpoint).doing("ask for free space")?;
    let unit = space.fragment_size() as u64;
    Ok(json!({
        "mountpoint": mountpoint,
        "options": info.options,
        "capacity_bytes": space.blocks() as u64 * unit,
        "available_bytes": space.blocks_available() as u64 * unit,
        "seconds": started.elapsed().as_secs_f64(),
    }))
}

fn cannot_mount(what: &str, device: &Path, data: &str, error: nix::Error, words: String) -> Fault {
    let options = if data.is_empty() { "no options" } else { data };
    Fault::failed(format!("cannot {what} {} with {options}: {error}", device.display())).with_stderr(words)
}

fn sync(mountpoint: &Path, limit: &Limit) -> Result<()> {
    let root = File::open(mountpoint).doing(format!("open {}", mountpoint.display()))?;
    bounded("writing back", limit, move || nix::unistd::syncfs(&root).map_err(Into::into))
}

/// Does what the kernel lets nobody stop, and gives up waiting when the limit is reached.
fn bounded(
    doing: &'static str,
    limit: &Limit,
    work: impl FnOnce() -> std::io::Result<()> + Send + 'static,
) -> Result<()> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(work());
    });
    loop {
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok(outcome) => return outcome.doing(doing),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => limit.check(doing)?,
            Err(error) => return Err(Fault::failed(format!("{doing}: {error}"))),
        }
    }
}
