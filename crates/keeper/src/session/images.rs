//! Operations on image files.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::device::{Device, Saved};
use super::{DEVICES_MAX, Session, reply};
use crate::devices::{self, DeviceId};
use crate::fault::{Doing, Fault, Result};
use crate::images::{self, Image};
use crate::interrupt::Limit;
use crate::journal::Change;
use crate::loops;

impl Session {
    pub(super) fn image_create(&mut self, path: PathBuf, size_bytes: u64) -> Result<Value> {
        if self.images.len() + self.devices.len() >= DEVICES_MAX {
            return Err(Fault::input(format!(
                "path = {path:?}: more than {DEVICES_MAX} images in one session"
            )));
        }
        let image = images::create(&mut self.journal(), &self.invoker, &path, size_bytes)?;
        let answer = json!({"path": path, "size_bytes": size_bytes});
        self.images.insert(path, image);
        Ok(answer)
    }

    pub(super) fn image_attach(
        &mut self,
        path: PathBuf,
        direct_io: bool,
        limit: &Limit,
    ) -> Result<Value> {
        let image = match self.images.remove(&path) {
            Some(image) => image,
            None => self.foreign_image(path, limit)?,
        };
        let attached = self.attach(&image, direct_io);
        match attached {
            Ok((path, id)) => {
                let device = Device::new(path.clone(), id, Some(image));
                let answer = json!({"device": path, "name": device.name, "direct_io": direct_io});
                self.devices.insert(path, device);
                Ok(answer)
            }
            Err(fault) => {
                self.images.insert(image.place.path().to_owned(), image);
                Err(fault)
            }
        }
    }

    /// An image that this session did not make: only root may bring one, and only if nobody can miss what is on it.
    pub(super) fn foreign_image(&self, path: PathBuf, limit: &Limit) -> Result<Image> {
        if let Some(device) = self
            .devices
            .values()
            .find(|it| it.image.as_ref().is_some_and(|it| it.place.path() == path))
        {
            return Err(Fault::input(format!(
                "path = {path:?}: is attached to {} already",
                device.path.display()
            )));
        }
        if self.invoker.uid != 0 {
            return Err(Fault::refused(format!(
                "path = {path:?}: this session has not made it: use image_create"
            )));
        }
        let image = images::open(&path)?;
        devices::check_blank(&image.file, &path, limit)?;
        if let Some(device) = loops::backed_by(&image.id).first() {
            return Err(Fault::refused(format!(
                "path = {path:?}: is attached to {} already",
                device.display()
            )));
        }
        Ok(image)
    }

    pub(super) fn attach(&self, image: &Image, direct_io: bool) -> Result<(PathBuf, DeviceId)> {
        let mut journal = self.journal();
        let numbers = journal.record(vec![Change::Attach {
            target: image.place.path().to_owned(),
            expected: image.id,
        }])?;
        let attached = loops::attach(&image.file, direct_io).and_then(|device| {
            if direct_io && !loops::is_direct(&device) {
                return Err(Fault::failed(format!(
                    "direct_io: the file system of {} cannot do it: leave it out",
                    image.place.path().display()
                )));
            }
            let opened = File::open(&device).doing(format!("open {}", device.display()))?;
            let id = DeviceId::of(&opened)?;
            Ok((device, id))
        });
        if attached.is_err() {
            for device in loops::backed_by(&image.id) {
                loops::detach(&device, &image.id)?;
            }
            journal.undone(&numbers)?;
        }
        attached
    }

    pub(super) fn image_detach(&mut self, device: Option<PathBuf>) -> Result<Value> {
        let device = self.device(device)?;
        let (path, mounted) = (device.path.clone(), device.mountpoint.clone());
        let Some(id) = device.image.as_ref().map(|image| image.id) else {
            return Err(Fault::input(format!("device = {path:?}: is not an image")));
        };
        if let Some(mountpoint) = mounted {
            return Err(Fault::refused(format!(
                "{path:?} is mounted at {}: unmount it first",
                mountpoint.display()
            )));
        }
        if !loops::detach(&path, &id)? {
            return Err(Fault::failed(format!("{} is still in use", path.display())));
        }
        self.journal()
            .undone_where(|it| matches!(it, Change::Attach { expected, .. } if *expected == id))?;
        if let Some(device) = self.devices.remove(&path) {
            for saved in device.saved.into_values() {
                self.remove_file(&saved.image)?;
            }
            self.images.extend(
                device
                    .image
                    .map(|image| (image.place.path().to_owned(), image)),
            );
        }
        Ok(json!({}))
    }

    pub(super) fn remove_file(&self, image: &Image) -> Result<()> {
        images::remove_at(&image.place, &image.id, false)?;
        self.journal()
            .undone_where(|it| matches!(it, Change::File { expected, .. } if *expected == image.id))
    }

    pub(super) fn image_save(
        &mut self,
        name: String,
        device: Option<PathBuf>,
        limit: &Limit,
    ) -> Result<Value> {
        let (journal, invoker) = (Arc::clone(&self.journal), Arc::clone(&self.invoker));
        let device = self.device(device)?;
        check_copy_name(&name)?;
        let image = device.quiet_image()?;
        if device.saved.contains_key(&name) {
            return Err(Fault::input(format!(
                "name = {name:?}: is saved already: forget it first"
            )));
        }
        if device.saved.len() >= DEVICES_MAX {
            return Err(Fault::input(format!(
                "name = {name:?}: more than {DEVICES_MAX} copies of one image"
            )));
        }
        let (image, copied) = images::save(&journal, &invoker, image, &name, limit)?;
        let fs = device.fs.clone();
        let saved = Saved { image, fs };
        device.saved.insert(name, saved);
        reply(copied)
    }

    pub(super) fn image_load(
        &mut self,
        name: &str,
        device: Option<PathBuf>,
        limit: &Limit,
    ) -> Result<Value> {
        let device = self.device(device)?;
        let saved = device.saved(name)?;
        let fs = saved.fs.clone();
        let image = device.quiet_image()?;
        let copied = images::load(&saved.image.file, &image.file, limit);
        // Even a part of it makes what the page cache has of the device stale.
        let opened = devices::check_unused(&device.path, &device.id)?;
        loops::flush_buffers(&opened)?;
        device.fs = None;
        let copied = copied?;
        device.fs = fs;
        reply(copied)
    }

    pub(super) fn image_forget(&mut self, name: &str, device: Option<PathBuf>) -> Result<Value> {
        let device = self.device(device)?;
        device.saved(name)?;
        if let Some(saved) = device.saved.remove(name) {
            self.remove_file(&saved.image)?;
        }
        Ok(json!({}))
    }
}

fn check_copy_name(name: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if name.is_empty() || name.len() > 64 || !name.bytes().all(allowed) {
        return Err(Fault::input(format!(
            "name = {name:?}: allowed are 1 to 64 of A-Z a-z 0-9 _ -"
        )));
    }
    Ok(())
}
