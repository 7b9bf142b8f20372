//! `define fileset`: its attributes, typed and in range.

use super::attribute::Attributes;
use super::error::WmlError;
use super::syntax::Statement;
use super::variable::Value;
use crate::data::layout::MOST_DIRECTORIES;
use crate::definition::FileSet;
use crate::quantity::{Quantity, Shape, Variable};

/// Most files of one set.
const MOST_ENTRIES: u64 = 100_000_000;
/// Largest file, and largest operation: 1 PiB.
pub(super) const LARGEST_BYTES: f64 = 1_125_899_906_842_624.0;

pub(super) fn fileset(statement: Statement) -> Result<FileSet, WmlError> {
    // define file: a set of one.
    let alone = statement.word == "file";
    let owner = if alone { "file" } else { "fileset" };
    let mut attributes = Attributes::new(statement.attributes, owner, statement.line)?;
    attributes.rename("filesize", "size")?;
    let name = attributes.name()?;
    if let Some(path) = attributes.text("path")?
        && !path.starts_with('$')
    {
        let text = "files are made under --dir only; write path=$dir, or leave path out";
        return Err(WmlError::new(statement.line, &path, text));
    }
    let mut size_bytes = attributes
        .quantity("size", LARGEST_BYTES)?
        .unwrap_or(Quantity::Fixed(1024.0));
    if let (Some(gamma), Quantity::Fixed(mean)) =
        (attributes.number("filesizegamma", 0.0, 1e9)?, size_bytes)
        && gamma > 0.0
    {
        let shape = Shape::Gamma {
            shape: gamma / 1000.0,
            mean,
        };
        size_bytes = Quantity::Drawn(Variable {
            shape,
            min: 0.0,
            max: f64::MAX,
            round: 0.0,
        });
    }
    let set = FileSet {
        name,
        size_bytes,
        entries: if alone {
            1
        } else {
            attributes.whole("entries", 1, MOST_ENTRIES)?.unwrap_or(1)
        },
        dirwidth: attributes.number("dirwidth", 0.0, 1e9)?.unwrap_or(0.0),
        dirgamma: attributes.number("dirgamma", 0.0, 1e6)?.unwrap_or(1500.0) / 1000.0,
        prealloc_percent: prealloc(&mut attributes)?,
        reuse: attributes.flag("reuse")?,
        readonly: attributes.flag("readonly")?,
        writeonly: attributes.flag("writeonly")?,
    };
    // Understood, and without effect here: the fill is always parallel, never trusts, and leaves the cache alone.
    for key in ["paralloc", "cached", "trusttree"] {
        attributes.flag(key)?;
    }
    attributes.done()?;
    if set.entries as f64 * set.size_bytes.mean() > 1024.0 * LARGEST_BYTES {
        return Err(WmlError::new(
            statement.line,
            &set.name,
            "the file set is larger than 1 EiB",
        ));
    }
    let width = set.dirwidth.max(2.0);
    if set.dirwidth > 0.0 && set.entries as f64 / width > MOST_DIRECTORIES as f64 {
        let text = format!(
            "{} puts {} files into more than {MOST_DIRECTORIES} directories; raise it, or lower entries",
            set.dirwidth, set.entries
        );
        return Err(WmlError::new(statement.line, "dirwidth", text));
    }
    Ok(set)
}

/// `prealloc` alone and `prealloc=true` mean all files, `prealloc=80` most of them, absent none.
fn prealloc(attributes: &mut Attributes) -> Result<f64, WmlError> {
    match attributes.take("prealloc") {
        None => Ok(0.0),
        Some(attribute) => match attribute.value {
            None | Some(Value::Flag(true)) => Ok(100.0),
            Some(Value::Flag(false)) => Ok(0.0),
            Some(Value::Number(percent)) if (0.0..=100.0).contains(&percent) => Ok(percent),
            _ => Err(WmlError::new(
                attribute.line,
                "prealloc",
                "needs a percentage between 0 and 100, true or false",
            )),
        },
    }
}
