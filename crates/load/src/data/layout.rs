//! The tree of a file set: its directories, and each file's directory, size and presence before the run.
//!
//! As in Filebench, the mean depth is ln(entries) / ln(dirwidth), and width and depth of each directory are gamma
//! numbers of shape `dirgamma` (1.5). A set that fits into one directory of the mean width is flat.

use ascar_random::Random;

use crate::LoadError;
use crate::definition::FileSet;

/// Directories whose path is longer hold files only; a tree of 10^8 files of width 2 has a mean of 190.
const LONGEST_PATH: usize = 210;
/// Most directories of a set. A narrow tree of many files would ask for as many, and take minutes to make and remove.
pub const MOST_DIRECTORIES: usize = 200_000;

/// A file set's tree, fully determined by the set, its place in the workload, and the seed.
#[derive(Debug)]
pub struct Layout {
    /// Directories below the set's own, parents first, as paths relative to it; the first is "" (itself).
    pub directories: Vec<String>,
    /// Directory of each file.
    pub directory: Vec<u32>,
    /// Size of each file in bytes.
    pub size_bytes: Vec<u64>,
    /// Whether each file exists before the run.
    pub prealloc: Vec<bool>,
}

impl Layout {
    /// Lay out a file set.
    ///
    /// # Errors
    /// It comes to more than [`MOST_DIRECTORIES`].
    pub fn of(set: &FileSet, place: usize, seed: u64) -> Result<Layout, LoadError> {
        let random = |purpose| Random::of(seed, &[0xF11E, place as u64, purpose]);
        let (directories, directory) = tree(set, &mut random(0))?;
        let mut sizes = random(1);
        let size_bytes = (0..set.entries)
            .map(|_| set.size_bytes.draw(&mut sizes).round() as u64)
            .collect();
        Ok(Layout {
            directories,
            directory,
            size_bytes,
            prealloc: choose(set, &mut random(2)),
        })
    }

    /// Bytes of the files that exist before the run.
    #[must_use]
    pub fn prealloc_bytes(&self) -> u64 {
        self.size_bytes
            .iter()
            .zip(&self.prealloc)
            .filter(|(_, exists)| **exists)
            .map(|(size, _)| size)
            .sum()
    }

    /// Files that exist before the run.
    #[must_use]
    pub fn prealloc_files(&self) -> u64 {
        self.prealloc.iter().filter(|exists| **exists).count() as u64
    }

    /// Write a file's path relative to its set, ending with NUL, into `path`.
    #[inline]
    pub fn path<'a>(&self, entry: u32, path: &'a mut PathBuffer) -> &'a std::ffi::CStr {
        let directory = self.directories[self.directory[entry as usize] as usize].as_bytes();
        let mut length = directory.len();
        path.0[..length].copy_from_slice(directory);
        if length > 0 {
            path.0[length] = b'/';
            length += 1;
        }
        let mut rest = entry;
        for digit in (0..9).rev() {
            path.0[length + digit] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        path.0[length + 9] = 0;
        std::ffi::CStr::from_bytes_with_nul(&path.0[..length + 10]).expect("paths hold no NUL")
    }
}

/// Room for the longest relative path: `LONGEST_PATH`, one more directory, and a file's nine digits.
pub struct PathBuffer([u8; 256]);

impl PathBuffer {
    /// An empty one.
    #[must_use]
    pub fn new() -> PathBuffer {
        PathBuffer([0; 256])
    }
}

impl Default for PathBuffer {
    fn default() -> PathBuffer {
        PathBuffer::new()
    }
}

/// The file number that a name made by [`Layout::path`] stands for.
#[must_use]
pub fn entry_of(name: &str) -> Option<u32> {
    if name.len() == 9 {
        name.parse().ok()
    } else {
        None
    }
}

/// A directory that is still being given children.
struct Branch {
    place: usize,
    depth: u32,
    left: u64,
    serial: u32,
}

fn tree(set: &FileSet, random: &mut Random) -> Result<(Vec<String>, Vec<u32>), LoadError> {
    let mut directories = vec![String::new()];
    if set.dirwidth == 0.0 || set.entries as f64 <= set.dirwidth {
        return Ok((directories, vec![0; set.entries as usize]));
    }
    let width_mean = set.dirwidth.max(2.0);
    let depth_mean = (set.entries as f64).ln() / width_mean.ln();
    let mut directory = Vec::with_capacity(set.entries as usize);
    let mut draw = |mean: f64| {
        if set.dirgamma > 0.0 {
            random.gamma(set.dirgamma, mean)
        } else {
            mean
        }
    };
    // The set's own directory takes children until all files have a place.
    let mut branches = vec![Branch {
        place: 0,
        depth: 0,
        left: u64::MAX,
        serial: 0,
    }];
    while directory.len() < set.entries as usize {
        let branch = branches.last_mut().expect("the first branch never ends");
        if branch.left == 0 {
            branches.pop();
            continue;
        }
        branch.left -= 1;
        branch.serial += 1;
        if directories.len() == MOST_DIRECTORIES {
            return Err(LoadError::Input(format!(
                "file set '{}': dirwidth {} puts its {} files into more than {MOST_DIRECTORIES} directories; raise \
                 dirwidth, or lower entries or --scale",
                set.name, set.dirwidth, set.entries
            )));
        }
        let (depth, parent) = (branch.depth + 1, &directories[branch.place]);
        let separator = if parent.is_empty() { "" } else { "/" };
        directories.push(format!("{parent}{separator}{:06}", branch.serial));
        let place = directories.len() - 1;
        let is_leaf =
            f64::from(depth) >= draw(depth_mean).floor() || directories[place].len() > LONGEST_PATH;
        let width = (draw(width_mean).round() as u64).max(1);
        if is_leaf {
            let end = (directory.len() as u64 + width).min(set.entries) as usize;
            directory.resize(end, place as u32);
        } else {
            branches.push(Branch {
                place,
                depth,
                left: width,
                serial: 0,
            });
        }
    }
    Ok((directories, directory))
}

/// Exactly the share asked for, chosen at random (Knuth's algorithm S).
fn choose(set: &FileSet, random: &mut Random) -> Vec<bool> {
    let mut left = set.prealloc_files();
    (0..set.entries)
        .map(|passed| {
            let chosen = random.below(set.entries - passed) < left;
            left -= u64::from(chosen);
            chosen
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::{Quantity, Shape, Variable};

    fn set(entries: u64, dirwidth: f64) -> FileSet {
        let shape = Shape::Gamma {
            shape: 1.5,
            mean: 131_072.0,
        };
        FileSet {
            name: "f".into(),
            size_bytes: Quantity::Drawn(Variable {
                shape,
                min: 0.0,
                max: f64::MAX,
                round: 0.0,
            }),
            entries,
            dirwidth,
            dirgamma: 1.5,
            prealloc_percent: 80.0,
            reuse: false,
            readonly: false,
            writeonly: false,
        }
    }

    #[test]
    fn a_set_that_fits_one_directory_is_flat() {
        let layout = Layout::of(&set(1000, 1_000_000.0), 0, 1).unwrap();
        assert_eq!(layout.directories, [""]);
    }

    #[test]
    fn width_and_depth_have_their_means() {
        let layout = Layout::of(&set(10_000, 20.0), 0, 1).unwrap();
        let leaves = layout
            .directory
            .iter()
            .collect::<std::collections::HashSet<_>>()
            .len() as f64;
        let width = 10_000.0 / leaves;
        assert!((14.0..26.0).contains(&width), "mean width {width}");
        let depths = layout
            .directory
            .iter()
            .map(|d| layout.directories[*d as usize].matches('/').count() + 1);
        let depth = depths.sum::<usize>() as f64 / 10_000.0;
        // Files lie deeper than directories: the mean over files exceeds ln(n)/ln(w) = 3.07.
        assert!((2.0..8.0).contains(&depth), "mean depth {depth}");
    }

    #[test]
    fn the_share_and_size_asked_for_are_met_and_repeat() {
        let layout = Layout::of(&set(10_000, 20.0), 0, 1).unwrap();
        assert_eq!(layout.prealloc_files(), 8000);
        let mean = layout.size_bytes.iter().sum::<u64>() as f64 / 10_000.0;
        assert!((mean / 131_072.0 - 1.0).abs() < 0.05, "{mean}");
        let again = Layout::of(&set(10_000, 20.0), 0, 1).unwrap();
        assert_eq!(
            (again.directory, again.size_bytes, again.prealloc),
            (layout.directory, layout.size_bytes, layout.prealloc)
        );
        assert_ne!(
            Layout::of(&set(10_000, 20.0), 0, 2).unwrap().prealloc,
            again_prealloc()
        );
        fn again_prealloc() -> Vec<bool> {
            Layout::of(&set(10_000, 20.0), 0, 1).unwrap().prealloc
        }
    }

    #[test]
    fn paths_are_unique_and_read_back() {
        let layout = Layout::of(&set(3000, 3.0), 0, 5).unwrap();
        let mut seen = std::collections::HashSet::new();
        let mut buffer = PathBuffer::new();
        for entry in 0..3000 {
            let path = layout.path(entry, &mut buffer).to_str().unwrap().to_owned();
            assert_eq!(entry_of(path.rsplit('/').next().unwrap()), Some(entry));
            assert!(seen.insert(path));
        }
    }

    #[test]
    fn a_narrow_tree_of_many_files_is_refused() {
        let refused = |set: &FileSet| Layout::of(set, 0, 1).unwrap_err().to_string();
        for width in [1.0, 1.000_000_1, 2.0, 3.0] {
            assert!(refused(&set(1_000_000, width)).contains("'f': dirwidth"));
        }
        let mut flat = set(1_000_000, 2.0);
        flat.dirgamma = 1e-6;
        assert!(refused(&flat).contains("more than 200000 directories"));
        assert!(
            Layout::of(&set(1_000_000, 20.0), 0, 1)
                .unwrap()
                .directories
                .len()
                < 100_000
        );
    }

    #[test]
    fn extreme_widths_end() {
        for width in [1.0, 2.0, 3.5] {
            let layout = Layout::of(&set(2000, width), 0, 9).unwrap();
            assert_eq!(layout.directory.len(), 2000);
            let mut buffer = PathBuffer::new();
            for entry in 0..2000 {
                layout.path(entry, &mut buffer);
            }
        }
    }
}
