//! Collectors, each in a thread of its own. A file may never answer, such as a FIFO or one of a hung mount: then its
//! collector's indicators are missing until it does, and nothing else waits for it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::LOG;
use crate::collectors::{Collector, CollectorOptions};
use crate::config::Config;
use crate::sample::Sample;

/// How long a tick waits for what does not answer, once: it is not waited for again until it has answered.
pub const LIMIT: Duration = Duration::from_secs(2);
const STACK_BYTES: usize = 256 * 1024;

/// What a collector read in a tick.
#[derive(Debug)]
struct Part {
    reader: usize,
    /// All names, where there are new ones.
    names: Option<Vec<String>>,
    values: Vec<f32>,
}

#[derive(Debug)]
struct Reader {
    name: String,
    ask: Sender<Instant>,
    names: Vec<String>,
    is_asked: bool,
    is_late: bool,
}

/// The collectors of an agent.
#[derive(Debug)]
pub struct Readers {
    readers: Vec<Reader>,
    parts: Receiver<Part>,
}

impl Readers {
    /// Starts a thread for each collector.
    pub fn start(config: &Config) -> Self {
        let (sender, parts) = channel();
        let readers = config.collectors.iter().enumerate();
        let readers = readers
            .map(|(place, options)| {
                // What is not sent is not worked out either.
                let sample = Sample::new(config.indicators.clone(), config.without.clone(), None);
                let options = options.clone();
                start(place, options.name(), sender.clone(), sample, move || {
                    CollectorOptions::start(options)
                })
            })
            .collect();
        Self { readers, parts }
    }

    /// Adds what the collectors read now.
    pub fn take(&mut self, sample: &mut Sample, limit: Duration) {
        while let Ok(part) = self.parts.try_recv() {
            self.note(part);
        }
        for reader in self.readers.iter_mut().filter(|it| !it.is_asked) {
            reader.is_asked = true;
            if reader.ask.send(sample.now()).is_err() {
                LOG.line(format_args!("collector {} has ended", reader.name));
                reader.is_late = true;
            }
        }
        let mut found: Vec<Option<Vec<f32>>> = self.readers.iter().map(|_| None).collect();
        let deadline = Instant::now() + limit;
        while self.readers.iter().any(|it| it.is_asked && !it.is_late) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(part) = self.parts.recv_timeout(left) else {
                break;
            };
            let place = part.reader;
            let was_late = self.readers[place].is_late;
            let values = self.note(part);
            found[place] = (!was_late).then_some(values);
        }
        for reader in self
            .readers
            .iter_mut()
            .filter(|it| it.is_asked && !it.is_late)
        {
            reader.is_late = true;
            LOG.line(format_args!(
                "collector {}: no answer within {} s: its indicators are missing",
                reader.name,
                limit.as_secs_f64()
            ));
        }
        // In the order of the file, so that nodes with the same file have the same layout.
        for (reader, values) in self.readers.iter().zip(found) {
            for (name, value) in reader.names.iter().zip(values.into_iter().flatten()) {
                sample.level(name, f64::from(value));
            }
        }
    }

    fn note(&mut self, part: Part) -> Vec<f32> {
        let reader = &mut self.readers[part.reader];
        if reader.is_late {
            LOG.line(format_args!("collector {} answers again", reader.name));
        }
        (reader.is_asked, reader.is_late) = (false, false);
        if let Some(names) = part.names {
            reader.names = names;
        }
        part.values
    }

    /// Those that do not answer.
    pub fn blocked(&self) -> impl Iterator<Item = &str> {
        let late = self.readers.iter().filter(|it| it.is_late);
        late.map(|it| it.name.as_str())
    }
}

fn start(
    place: usize,
    name: String,
    parts: Sender<Part>,
    mut sample: Sample,
    collector: impl FnOnce() -> Box<dyn Collector> + Send + 'static,
) -> Reader {
    let (ask, asked) = channel::<Instant>();
    let read = move || {
        let mut collector = collector();
        while let Ok(now) = asked.recv() {
            sample.begin(now);
            collector.sample(&mut sample);
            let part = Part {
                reader: place,
                names: sample.take_changed().then(|| sample.names().to_vec()),
                values: sample.values().to_vec(),
            };
            if parts.send(part).is_err() {
                return;
            }
        }
    };
    // A thread that is not there does not answer, which is said when it is asked.
    let _ = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .name(name.clone())
        .spawn(read);
    Reader {
        name,
        ask,
        names: Vec::new(),
        is_asked: false,
        is_late: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a number from a file.
    struct Number(std::path::PathBuf);

    impl Collector for Number {
        fn sample(&mut self, sample: &mut Sample) {
            let text = std::fs::read_to_string(&self.0).unwrap();
            let name = self.0.file_name().unwrap().to_str().unwrap().to_owned();
            sample.level(&name, text.trim().parse().unwrap());
        }
    }

    #[test]
    fn a_collector_that_blocks_or_panics_is_missing_and_holds_up_no_other() {
        let folder = std::env::temp_dir().join(format!("ascar-readers-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("plain"), "5").unwrap();
        std::fs::write(folder.join("wrong"), "five").unwrap();
        let fifo = folder.join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let (sender, parts) = channel();
        let readers = ["fifo", "wrong", "plain"].into_iter().enumerate();
        let readers = readers
            .map(|(place, name)| {
                let sample = Sample::new(vec![], vec![], None);
                let path = folder.join(name);
                let number = move || Box::new(Number(path)) as Box<dyn Collector>;
                start(place, name.to_owned(), sender.clone(), sample, number)
            })
            .collect();
        let mut readers = Readers { readers, parts };
        let mut sample = Sample::new(vec![], vec![], None);
        let mut take = |limit| {
            sample.begin(Instant::now());
            readers.take(&mut sample, limit);
            let blocked: Vec<String> = readers.blocked().map(str::to_owned).collect();
            (sample.value("plain"), sample.value("fifo"), blocked)
        };
        let (plain, fifo_now, blocked) = take(Duration::from_millis(300));
        assert_eq!(blocked, ["fifo", "wrong"]);
        assert!(plain == 5.0 && fifo_now.is_nan());
        // Not waited for again.
        let started = Instant::now();
        assert_eq!(take(Duration::from_secs(3600)).0, 5.0);
        assert!(started.elapsed() < Duration::from_secs(600));
        // It answers at last, to an earlier tick; the next one has its value again.
        let mut writer = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
        std::fs::write(folder.join("later"), "8").unwrap();
        std::fs::rename(folder.join("later"), &fifo).unwrap();
        std::io::Write::write_all(&mut writer, b"7").unwrap();
        drop(writer);
        let again = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            take(Duration::from_millis(200)).1 == 8.0
        });
        assert!(again);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
