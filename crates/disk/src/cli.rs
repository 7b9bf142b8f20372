//! `ascard disk`: arguments -> model, data, address -> server.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ascar_arguments::{Arguments, Mistake, Word, show};
use ascar_log::Fault;
use ascar_simulation::disk::array::Level;

use crate::file::Found;
use crate::listening::{Listening, Place};
use crate::model::Model;
use crate::server::Server;
use crate::store::Store;
use crate::{LOG, exports, file, quantity, signals};

/// What `ascard disk --help` prints; its lines are the options.
pub const HELP: &str = "\
Serve a modelled disk over the network (NBD): its requests take as long as the simulator says, in real time.

Usage: ascard disk --scenario SCENARIO (--socket PATH | --listen ADDRESS) [OPTIONS]

The disk is the storage of the scenario's first server: seeks, rotation, read-ahead and queue of a mechanical disk,
channels of a flash drive. It ends on SIGTERM or Ctrl-C, with all of its cache on the medium; SIGUSR1 cuts its power:
what was neither flushed nor written from the cache is lost, and clients have to connect again. Exit status: 0 ended
as told; 1 its cache could not be written; 2 wrong arguments or a wrong file.

Options:
  --scenario SCENARIO  Take the disk from this scenario; a file (TOML) or a preset of the simulator.
  --raid LEVEL         Make an array of the server group's `count` disks: 0 stripes, 1 mirrors, 5 stripes with parity.
  --socket PATH        Listen on a Unix socket at PATH.
  --listen ADDRESS     Listen on ADDRESS, a host and a port.
  --exports NAMES      Offer the disk in equal parts under these names, separated by commas [default: disk].
  --size SIZE          Make each export this large [default: the file's size or the model's, divided by their number].
  --file FILE          Keep the data in FILE; with --size it is made where it is missing [default: in memory].
  --check              Only check the arguments and files, and end.
  -h, --help           Print this help.

Examples:
  ascard disk --scenario read-ahead-cliff --socket /tmp/disk.sock
  ascard disk --scenario flash.toml --listen 127.0.0.1:10809 --exports a,b --size 4GiB --file flash.img
  ascard disk --scenario array.toml --raid 5 --socket /tmp/disk.sock --check
";

#[derive(Debug, Default)]
struct Options {
    help: bool,
    check: bool,
    scenario: Option<PathBuf>,
    raid: Option<Level>,
    socket: Option<PathBuf>,
    listen: Option<String>,
    exports: Option<Vec<String>>,
    size_bytes: Option<u64>,
    file: Option<PathBuf>,
}

fn parse(words: impl Iterator<Item = OsString>) -> Result<Options, Fault> {
    let mut parsed = Options::default();
    let mut words = Arguments::new(HELP, words);
    while let Some(word) = words.next_word().map_err(said)? {
        match word {
            Word::Option("--help") => parsed.help = true,
            Word::Option("--check") => parsed.check = true,
            Word::Option("--scenario") => parsed.scenario = Some(words.path().map_err(said)?),
            Word::Option("--raid") => parsed.raid = Some(level(&words.text().map_err(said)?)?),
            Word::Option("--socket") => parsed.socket = Some(words.path().map_err(said)?),
            Word::Option("--listen") => parsed.listen = Some(words.text().map_err(said)?),
            Word::Option("--exports") => {
                parsed.exports = Some(exports::names(&words.text().map_err(said)?)?);
            }
            Word::Option("--size") => {
                let text = words.text().map_err(said)?;
                parsed.size_bytes = Some(quantity::bytes("--size", &text)?);
            }
            Word::Option("--file") => parsed.file = Some(words.path().map_err(said)?),
            Word::Option(other) => return Err(said(words.unknown(other))),
            Word::Value(other) => return Err(said(words.unknown(other))),
        }
    }
    Ok(parsed)
}

fn said(mistake: Mistake) -> Fault {
    Fault(mistake.0)
}

fn level(text: &str) -> Result<Level, Fault> {
    match text {
        "0" => Ok(Level::Stripes),
        "1" => Ok(Level::Mirrors),
        "5" => Ok(Level::Parity),
        _ => Err(Fault(format!("--raid = {text:?}: allowed are 0, 1, 5"))),
    }
}

/// What is to be served.
struct Prepared {
    model: Model,
    place: Place,
    names: Vec<String>,
    found: Option<Found>,
    whole_bytes: u64,
    size_bytes: u64,
}

impl Prepared {
    /// Lets clients in, and makes the file where it is missing.
    fn open(self) -> Result<(Model, Listening, Server), Fault> {
        let listening = self.place.open()?;
        // Last of all, so that what is refused leaves no file behind.
        let store = match self.found {
            Some(found) => found.make().map(Store::in_file),
            None => Store::in_memory(self.whole_bytes),
        };
        let store = store.inspect_err(|_| listening.remove())?;
        let offered = exports::describe(&self.model, &self.names, self.size_bytes);
        let server = Server::new(offered, self.size_bytes, store);
        Ok((self.model, listening, server))
    }
}

/// Everything that can be wrong is found here, before anybody is let in, and nothing is touched. A signal ends it at once,
/// whatever it waits for.
fn prepare(options: Options) -> Result<Option<Prepared>, Fault> {
    let path = options.scenario.ok_or_else(|| missing("--scenario"))?;
    let model = Model::read(&path, options.raid)?;
    let names = options.exports.unwrap_or_else(|| vec!["disk".to_owned()]);
    let count = names.len() as u64;
    let capacity_bytes = model.build().capacity_bytes();
    let wanted = match options.size_bytes {
        Some(each) => Some(whole(each, count, capacity_bytes)?),
        None => None,
    };
    if options.socket.is_some() == options.listen.is_some() {
        return Err(Fault(
            "--socket, --listen: give one of them: see `ascard disk --help`".to_owned(),
        ));
    }
    let place = match (&options.socket, &options.listen) {
        (Some(path), _) => Place::Path(path.clone()),
        (None, Some(text)) => Place::at_address(text)?,
        (None, None) => return Err(missing("--socket")),
    };
    let found = match &options.file {
        Some(path) => Some(file::find(path, wanted)?),
        None => None,
    };
    let whole_bytes = match &found {
        Some(found) => found.size_bytes,
        None => wanted.unwrap_or(capacity_bytes / count * count),
    };
    let size_bytes = whole_bytes / count;
    if let Some(found) = &found
        && (size_bytes == 0 || whole_bytes > capacity_bytes)
    {
        return Err(found.fault(&format_args!(
            "has {whole_bytes} bytes for {count} exports; the model's disk has {capacity_bytes}"
        )));
    }
    if options.check {
        return Ok(None);
    }
    Ok(Some(Prepared {
        model,
        place,
        names,
        found,
        whole_bytes,
        size_bytes,
    }))
}

fn missing(option: &str) -> Fault {
    Fault(format!("{option}: is missing: see `ascard disk --help`"))
}

/// The size of all exports together, which the model's disk has room for.
fn whole(each: u64, count: u64, capacity_bytes: u64) -> Result<u64, Fault> {
    let whole = each.checked_mul(count).filter(|it| *it <= capacity_bytes);
    match whole {
        Some(whole) if each > 0 => Ok(whole),
        _ => Err(Fault(format!(
            "--size: {count} x {each} bytes; the model's disk has {capacity_bytes}"
        ))),
    }
}

/// Runs the subcommand. Exit status: 0 ended as told, 1 the cache could not be written, 2 bad arguments or files.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let say = |fault: &Fault, status: u8| {
        LOG.line(fault);
        ExitCode::from(status)
    };
    let options = match parse(arguments) {
        Ok(options) => options,
        Err(fault) => return say(&fault, 2),
    };
    if options.help {
        return match show(HELP) {
            Ok(()) => ExitCode::SUCCESS,
            Err(mistake) => say(&said(mistake), 1),
        };
    }
    signals::hold_cuts();
    let prepared = match prepare(options) {
        Ok(Some(prepared)) => prepared,
        Ok(None) => return ExitCode::SUCCESS,
        Err(fault) => return say(&fault, 2),
    };
    // Before any thread is started, and before clients can find the socket; and after all that may have to be waited for.
    signals::hold();
    let (model, listening, server) = match prepared.open() {
        Ok(opened) => opened,
        Err(fault) => return say(&fault, 2),
    };
    ascar_privileges::raise_open_files();
    if let Err(error) = ascar_privileges::reduce(&ascar_privileges::DISK) {
        return say(&Fault(format!("cannot give up rights: {error}")), 1);
    }
    match Arc::new(server).run(model, listening) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => say(&fault, 1),
    }
}
