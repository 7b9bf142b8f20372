//! Image files: making, copying, removing.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, PosixFadviseAdvice, copy_file_range, fallocate, posix_fadvise};
use nix::libc;
use nix::unistd::{Whence, lseek};
use serde::Serialize;

use crate::fault::{Doing, Fault, Result};
use crate::file_id::FileId;
use crate::interrupt::Limit;
use crate::invoker::Invoker;
use crate::journal::{Change, Journal};
use crate::place::Place;

/// Smallest image: no file system fits into less.
pub const SIZE_BYTES_MIN: u64 = 1 << 20;
/// Largest image, a quarter of what the largest of our file systems can hold.
pub const SIZE_BYTES_MAX: u64 = 1 << 52;
/// Copied between two looks at the limit.
const CHUNK_BYTES: usize = 32 << 20;

/// What a copy took.
#[derive(Debug, Serialize)]
pub struct Copied {
    seconds: f64,
    copied_bytes: u64,
    method: &'static str,
}

/// An image file: where it is, and which file it is.
#[derive(Debug)]
pub struct Image {
    /// Its name, in a directory that is held as long as the image: copies lie beside it, wherever its path leads by then.
    pub place: Place,
    /// Itself.
    pub file: File,
    /// Which file it is.
    pub id: FileId,
}

/// Makes a sparse image file that only root may read or write, in a directory of the invoking user.
///
/// The file gets its name only after it is in the journal: until then it has none, and is gone with us.
pub fn create(
    journal: &mut Journal,
    invoker: &Invoker,
    path: &Path,
    size_bytes: u64,
) -> Result<Image> {
    if !(SIZE_BYTES_MIN..=SIZE_BYTES_MAX).contains(&size_bytes) || !size_bytes.is_multiple_of(4096)
    {
        return Err(Fault::input(format!(
            "size_bytes = {size_bytes}: allowed are multiples of 4096 in [{SIZE_BYTES_MIN}, {SIZE_BYTES_MAX}]"
        )));
    }
    let place = Place::open(path)?;
    place.check_owner(invoker)?;
    place.check_absent()?;
    place.check_space(size_bytes)?;
    let file = place.nameless()?;
    file.set_len(size_bytes)
        .doing(format!("make {} {size_bytes} bytes long", path.display()))?;
    named(journal, place, file)
}

/// Copies the image's data to a new file beside it, whose name ends in `.` and this name.
pub fn save(
    journal: &Mutex<Journal>,
    invoker: &Invoker,
    image: &Image,
    name: &str,
    limit: &Limit,
) -> Result<(Image, Copied)> {
    let started = Instant::now();
    let place = image.place.beside("", &format!(".{name}"))?;
    let image = &image.file;
    place.check_owner(invoker)?;
    place.check_absent()?;
    let metadata = image.metadata().doing("look at the image")?;
    let copy = place.nameless()?;
    copy.set_len(metadata.len()).doing(format!(
        "make {} as long as the image",
        place.path().display()
    ))?;
    let (method, copied_bytes) = match reflink(image, &copy) {
        Ok(()) => ("reflink", 0),
        Err(_) => {
            forget_cache(image)?;
            let data = data_of(image)?;
            place.check_space(data.iter().map(|range| range.end - range.start).sum())?;
            ("copy", copy_data(image, &data, &copy, limit)?)
        }
    };
    let saved = named(
        &mut journal.lock().unwrap_or_else(PoisonError::into_inner),
        place,
        copy,
    )?;
    Ok((
        saved,
        Copied {
            seconds: started.elapsed().as_secs_f64(),
            copied_bytes,
            method,
        },
    ))
}

/// Makes the image's content that of a saved copy, in place and on disk when it returns: a load that follows
/// does not share the device with its own restoration.
pub fn load(saved: &File, image: &File, limit: &Limit) -> Result<Copied> {
    let started = Instant::now();
    let (method, copied_bytes) = match reflink(saved, image) {
        Ok(()) => ("reflink", 0),
        Err(_) => {
            blank(image)?;
            ("copy", copy_data(saved, &data_of(saved)?, image, limit)?)
        }
    };
    image.sync_data().doing("write the image back")?;
    Ok(Copied {
        seconds: started.elapsed().as_secs_f64(),
        copied_bytes,
        method,
    })
}

/// Makes the image read as zeros with all of its blocks allocated: whatever was in it before, a file system made
/// on it starts from the same state. Keeping the blocks is also much faster than giving them back where the
/// disk below discards what is freed.
pub fn blank(image: &File) -> Result<()> {
    let length = image.metadata().doing("look at the image")?.len() as libc::off_t;
    match fallocate(image, FallocateFlags::FALLOC_FL_ZERO_RANGE, 0, length) {
        Err(Errno::EOPNOTSUPP) => {
            let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            fallocate(image, flags, 0, length).doing("empty the image")
        }
        outcome => outcome.doing("empty the image"),
    }
}

/// Journals a nameless file, then gives it its name. Comes back opened by that name, which the kernel remembers and
/// shows to those who list loop devices.
fn named(journal: &mut Journal, place: Place, file: File) -> Result<Image> {
    let id = FileId::of(&file.metadata().doing("look at a new file")?);
    let numbers = journal.record(vec![Change::File {
        target: place.path().to_owned(),
        expected: id,
    }])?;
    if let Err(fault) = place.name(&file) {
        journal.undone(&numbers)?;
        return Err(fault);
    }
    let file = place.open_file()?;
    if FileId::of(&file.metadata().doing("look at a new file")?) != id {
        return Err(Fault::failed(format!(
            "{}: was replaced while it was made",
            place.path().display()
        )));
    }
    Ok(Image { place, file, id })
}

/// Removes a file of ours unless another one has taken its name. Returns what is left of it: giving its blocks
/// back may take seconds, and happens when that is dropped.
pub fn remove(path: &Path, expected: &FileId, rebooted: bool) -> Result<Option<File>> {
    match Place::find(path)? {
        Some(place) => remove_at(&place, expected, rebooted),
        None => Ok(None),
    }
}

/// The same in a directory that is held.
pub fn remove_at(place: &Place, expected: &FileId, rebooted: bool) -> Result<Option<File>> {
    match place.present()? {
        Some(file)
            if FileId::of(&file.metadata().doing("look at a file")?).is(expected, rebooted) =>
        {
            place.remove()?;
            Ok(Some(file))
        }
        _ => Ok(None),
    }
}

/// Opens an existing image for attaching.
pub fn open(path: &Path) -> Result<Image> {
    let place = Place::open(path)?;
    let file = place.open_file()?;
    let metadata = file.metadata().doing("look at the image")?;
    if !metadata.is_file() {
        return Err(Fault::input(format!(
            "path = {path:?}: is not a regular file"
        )));
    }
    let id = FileId::of(&metadata);
    Ok(Image { place, file, id })
}

/// Drops what the page cache has of a file. The kernel takes cached zeros of blocks that were never written for
/// data, which would be copied too.
fn forget_cache(file: &File) -> Result<()> {
    file.sync_data().doing("write the image back")?;
    let advice = PosixFadviseAdvice::POSIX_FADV_DONTNEED;
    posix_fadvise(file, 0, 0, advice).doing("drop the image from the page cache")
}

fn reflink(from: &File, to: &File) -> nix::Result<()> {
    const FICLONE: libc::c_ulong = 0x4004_9409;
    // SAFETY: the argument is a descriptor that lives through the call.
    Errno::result(unsafe { libc::ioctl(to.as_raw_fd(), FICLONE, from.as_raw_fd()) }).map(|_| ())
}

/// Where a file has data.
fn data_of(file: &File) -> Result<Vec<Range<u64>>> {
    let mut ranges = Vec::new();
    let mut end = 0;
    loop {
        let start = match lseek(file, end, Whence::SeekData) {
            Ok(start) => start,
            Err(Errno::ENXIO) => return Ok(ranges),
            Err(error) => return Err(error).doing("find the data of an image"),
        };
        end = lseek(file, start, Whence::SeekHole).doing("find the holes of an image")?;
        ranges.push(start as u64..end as u64);
    }
}

/// Copies these ranges, and writes them back piece by piece so that it can be stopped at any time.
fn copy_data(from: &File, ranges: &[Range<u64>], to: &File, limit: &Limit) -> Result<u64> {
    let mut copied = 0;
    for range in ranges {
        let (mut source, mut target, end) =
            (range.start as i64, range.start as i64, range.end as i64);
        while source < end {
            limit.check("copying the image")?;
            let wanted = CHUNK_BYTES.min((end - source) as usize);
            let done = copy_file_range(from, Some(&mut source), to, Some(&mut target), wanted)
                .doing("copy an image")?;
            if done == 0 {
                return Err(Fault::failed(
                    "copying the image: it became shorter meanwhile",
                ));
            }
            write_back(to, target - done as i64, done as i64);
            copied += done as u64;
        }
    }
    Ok(copied)
}

fn write_back(file: &File, offset: i64, length: i64) {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: integers only. An error shows at the fdatasync that follows.
    let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, flags) };
}
