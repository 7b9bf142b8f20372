//! The devices and images of a session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::devices::{self, DeviceId};
use crate::fault::{Fault, Result};
use crate::images::Image;
use crate::loops;

/// A saved copy of an image, and the file system in it.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) image: Image,
    pub(super) fs: Option<String>,
}

/// A block device this session may write.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) id: DeviceId,
    /// None for a device of the machine.
    pub(super) image: Option<Image>,
    pub(super) saved: BTreeMap<String, Saved>,
    /// The file system that this session made on it.
    pub(super) fs: Option<String>,
    /// Whether this session began to make one and did not end: what is there then is its own, without a label.
    pub(super) unfinished: bool,
    pub(super) mountpoint: Option<PathBuf>,
}

impl Device {
    /// A device with nothing of ours on it yet; the image it is backed by, if it is one.
    pub(super) fn new(path: PathBuf, id: DeviceId, image: Option<Image>) -> Self {
        let name = base_name(&path);
        Self {
            path,
            name,
            id,
            image,
            saved: BTreeMap::new(),
            fs: None,
            unfinished: false,
            mountpoint: None,
        }
    }

    pub(super) fn check_unmounted(&self) -> Result<()> {
        match &self.mountpoint {
            Some(place) => Err(Fault::input(format!(
                "{} is mounted at {}: unmount it first",
                self.path.display(),
                place.display()
            ))),
            None => Ok(()),
        }
    }

    pub(super) fn mounted(&self) -> Result<(String, PathBuf)> {
        let place = self.mountpoint.clone();
        let place =
            place.ok_or_else(|| Fault::input(format!("{} is not mounted", self.path.display())))?;
        Ok((self.fs.clone().unwrap_or_default(), place))
    }

    /// The image, while nothing is mounted from it.
    pub(super) fn quiet_image(&self) -> Result<&Image> {
        self.check_unmounted()?;
        let opened = devices::check_unused(&self.path, &self.id)?;
        let image = self.image.as_ref();
        let image = image
            .ok_or_else(|| Fault::input(format!("device = {:?}: is not an image", self.path)))?;
        loops::flush_buffers(&opened)?;
        Ok(image)
    }

    pub(super) fn saved(&self, name: &str) -> Result<&Saved> {
        let names: Vec<_> = self.saved.keys().collect();
        let unknown = || {
            Fault::input(format!(
                "name = {name:?}: is not saved; allowed are {names:?}"
            ))
        };
        self.saved.get(name).ok_or_else(unknown)
    }
}

pub(super) fn base_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
