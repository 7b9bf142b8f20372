//! What the streams of a running proxy show, a line of JSON a second: as `ascard agent` takes it from a program.

use std::fmt::Display;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ascar_arguments::{Mistake, show};
use ascar_log::Fault;
use ascar_plane::{GoneStreams, StreamIndicators};
use ascar_service::connect_within;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::config::Config;

/// Between two lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long the proxy may take to accept a connection.
const REACH_LIMIT: Duration = Duration::from_secs(5);

/// The answer of the proxy.
#[derive(Debug, Deserialize)]
struct Observed {
    streams: Vec<StreamIndicators>,
    #[serde(default)]
    gone: Vec<GoneStreams>,
}

/// Connects to the running proxy.
///
/// # Errors
/// When it is not there, or its socket is another user's.
pub fn reach(config: &Config) -> Result<UnixStream, Fault> {
    connect_within(&config.control, REACH_LIMIT).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            wrong(config, &format_args!("{error}; is the proxy running?"))
        }
        _ => wrong(config, &error),
    })
}

fn wrong(config: &Config, what: &dyn Display) -> Fault {
    Fault(format!("control = {}: {what}", config.control.display()))
}

/// Prints a line a second, until nobody reads them or the proxy ends.
///
/// # Errors
/// When the proxy ends, or says something else.
pub fn watch(config: &Config, socket: &UnixStream) -> Result<(), Fault> {
    let wrong = |what: &dyn Display| wrong(config, what);
    let mut writing = socket;
    let mut lines = BufReader::new(socket);
    loop {
        writing
            .write_all(b"{\"message\": \"rules.observe/1\"}\n")
            .map_err(|error| wrong(&error))?;
        let mut line = String::new();
        let count = lines.read_line(&mut line).map_err(|error| wrong(&error))?;
        if count == 0 {
            return Err(wrong(&"the proxy has ended"));
        }
        let observed: Observed = serde_json::from_str(&line).map_err(|error| wrong(&error))?;
        let shown = Value::Object(indicators(config, &observed));
        show(&format!("{shown}\n")).map_err(|Mistake(text)| Fault(text))?;
        std::thread::sleep(INTERVAL);
    }
}

/// By route, from 0: sums and means over the streams to its server. Routes to one server share their streams, which the
/// first of them shows.
fn indicators(config: &Config, observed: &Observed) -> Map<String, Value> {
    let mut found = Map::new();
    for (route, way) in config.routes.iter().enumerate() {
        let before = &config.routes[..route];
        if before.iter().any(|it| it.server == way.server) {
            continue;
        }
        let own: Vec<_> = observed
            .streams
            .iter()
            .filter(|it| it.server == way.server)
            .collect();
        let mut put = |name: &str, value: Value| {
            found.insert(format!("{route}.{name}"), value);
        };
        let sum = |of: &dyn Fn(&StreamIndicators) -> u64| own.iter().map(|it| of(it)).sum::<u64>();
        put("streams", json!(own.len()));
        put("connections", json!(sum(&|it| it.connections.into())));
        put("passing", json!(sum(&|it| it.passing.into())));
        put("in_flight", json!(sum(&|it| it.in_flight.into())));
        if own.iter().any(|it| it.has_turn.is_some()) {
            put(
                "active",
                json!(sum(&|it| it.has_turn.unwrap_or(true).into())),
            );
        }
        put("waiting", json!(sum(&|it| it.waiting.into())));
        let gone = observed.gone.iter().find(|it| it.server == way.server);
        let gone = gone.cloned().unwrap_or_default();
        let total = |gone: u64, of: &dyn Fn(&StreamIndicators) -> u64| json!(gone + sum(of));
        put(
            "read_bytes_total",
            total(gone.read_bytes, &|it| it.read_bytes),
        );
        put(
            "written_bytes_total",
            total(gone.written_bytes, &|it| it.written_bytes),
        );
        put("replies_total", total(gone.replies, &|it| it.replies));
        put("overloads_total", total(gone.overloads, &|it| it.overloads));
        put("refused_total", json!(gone.refused));
        put("silent_total", json!(gone.silent));
        let mut put_mean = |name: &str, of: &dyn Fn(&StreamIndicators) -> Option<f64>| {
            let values: Vec<f64> = own.iter().filter_map(|it| of(it)).collect();
            if !values.is_empty() {
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                put(name, json!(mean));
            }
        };
        put_mean("window", &|it| it.window);
        put_mean("tau_us", &|it| Some(it.tau_us.into()));
        put_mean("ack_ewma_us", &|it| Some(it.ack_ewma_us.into()));
        put_mean("send_ewma_us", &|it| Some(it.send_ewma_us.into()));
        put_mean("pt_ratio", &|it| Some(it.pt_ratio));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_summed_and_averaged_by_route() {
        let config = Config::parse(
            "control = 'c'
            [[route]]
            listen = 'unix:a'
            server = 'unix:/s'
            [[route]]
            listen = 'unix:b'
            server = 'tcp:h:1'
            [[route]]
            listen = 'unix:d'
            server = 'unix:/s'",
        )
        .unwrap();
        let stream = |window, in_flight| StreamIndicators {
            client: "pid:1".to_owned(),
            server: "unix:/s".to_owned(),
            window,
            tau_us: 0,
            ack_ewma_us: 10,
            send_ewma_us: 10,
            pt_ratio: 1.0,
            in_flight,
            waiting: 0,
            has_turn: None,
            connections: 1,
            passing: 0,
            read_bytes: 4096,
            written_bytes: 0,
            replies: 1,
            overloads: 3,
        };
        let shown = |streams, gone| indicators(&config, &Observed { streams, gone });
        let streams = vec![stream(Some(8.0), 3), stream(Some(4.0), 4)];
        let found = shown(streams.clone(), Vec::new());
        assert_eq!(found["0.window"], json!(6.0));
        assert_eq!(found["0.in_flight"], json!(7));
        assert_eq!(found["0.passing"], json!(0));
        assert_eq!(found["0.read_bytes_total"], json!(8192));
        assert_eq!(found["1.streams"], json!(0));
        assert!(!found.keys().any(|key| key.starts_with("2.")), "as route 0");
        assert!(!found.contains_key("1.window") && !found.contains_key("0.active"));
        assert!(!shown(vec![stream(None, 1)], Vec::new()).contains_key("0.window"));
        let gone = GoneStreams {
            server: "unix:/s".to_owned(),
            read_bytes: 1_000,
            written_bytes: 5,
            replies: 9,
            overloads: 4,
            refused: 2,
            silent: 1,
        };
        let found = shown(streams, vec![gone]);
        assert_eq!(found["0.read_bytes_total"], json!(9192));
        assert_eq!(found["0.written_bytes_total"], json!(5));
        assert_eq!(found["0.replies_total"], json!(11));
        assert_eq!(found["0.overloads_total"], json!(10));
        assert_eq!(found["1.replies_total"], json!(0));
        assert_eq!(
            (&found["0.refused_total"], &found["0.silent_total"]),
            (&json!(2), &json!(1))
        );
        assert_eq!(found["1.silent_total"], json!(0));
        let turned = StreamIndicators {
            has_turn: Some(true),
            ..stream(None, 1)
        };
        let resting = StreamIndicators {
            has_turn: Some(false),
            ..turned.clone()
        };
        assert_eq!(
            shown(vec![turned, resting], Vec::new())["0.active"],
            json!(1)
        );
    }
}
