//! The proxy's file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ascar_congestion::ACTIVE_FILES_MAX;
use ascar_log::Fault;
use ascar_plane::token;
use ascar_service::host_name;
use ascar_tls::rustls::pki_types::ServerName;
use ascar_tls::{Files, server_name};
use serde::Deserialize;

use crate::address::Address;
use crate::protocol::Protocol;
use crate::streams::OwnHold;
use crate::terms::Terms;
use crate::turns::TurnLength;

/// The largest window of a controller.
const WINDOW_MAX: i64 = 256;

/// The longest gap between two requests.
const GAP_US_MAX: i64 = 60_000_000;

/// The longest time that a server may say nothing: a day.
const ANSWER_S_MAX: i64 = 86_400;

/// The longest turn of a stream.
const TURN_MS_MAX: i64 = 1_000_000;

/// Who may change rules: the proxy's user, or its group as well.
const CONTROL_MODES: [u32; 2] = [0o600, 0o660];

/// Routes of one proxy.
const ROUTES_MAX: usize = 256;

/// The longest file.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Everything that the file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The controller's name; the host's where none is given.
    #[serde(default = "host_name")]
    pub controller: String,
    /// The workload of the clients.
    #[serde(default = "default_workload")]
    pub workload: String,
    /// The socket on which a rule manager is answered.
    pub control: PathBuf,
    /// Who may speak to that socket.
    #[serde(default = "default_mode")]
    pub control_mode: u32,
    /// Where kept rules are written down, so that a restart goes on with them.
    pub state_directory: Option<PathBuf>,
    /// Requests in flight a stream while no rules are in force; any number where none is given.
    pub window: Option<i64>,
    /// The least gap between two requests of a stream while no rules are in force.
    #[serde(default)]
    pub gap_us: i64,
    /// Streams to one server that are active at a time while rules do not say so; any number where none is given.
    pub active_streams: Option<i64>,
    /// How long a stream is active while others wait.
    #[serde(default = "default_turn_ms")]
    pub turn_ms: i64,
    /// A stream that asks for nothing for so long gives its turn away.
    #[serde(default = "default_turn_idle_ms")]
    pub turn_idle_ms: i64,
    /// How long a server that owes answers may say nothing; for ever where none is given.
    pub answer_s: Option<i64>,
    /// Who is connected to whom.
    #[serde(default, rename = "route")]
    pub routes: Vec<Route>,
}

/// Clients that connect here are connected to there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// What clients and server speak.
    #[serde(default)]
    pub protocol: Protocol,
    /// Where clients connect to.
    pub listen: String,
    /// The server.
    pub server: String,
    /// Permissions of a socket of this machine that clients connect to.
    #[serde(default = "default_mode")]
    pub mode: u32,
    /// Clients have to speak TLS, by these files.
    pub listen_tls: Option<Files>,
    /// The proxy speaks TLS to the server.
    pub server_tls: Option<RouteServerTls>,
}

/// TLS to a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteServerTls {
    /// Whom the server's certificate must be for; the host of the server's address where none is given.
    pub name: Option<String>,
    /// Certificates of who signed the server's.
    pub ca: PathBuf,
    /// The proxy's own certificate, where the server asks for one,
    pub certificate: Option<PathBuf>,
    /// and its key.
    pub key: Option<PathBuf>,
}

impl RouteServerTls {
    fn files(&self) -> Files {
        Files {
            ca: Some(self.ca.clone()),
            certificate: self.certificate.clone(),
            key: self.key.clone(),
        }
    }

    fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let own = [&mut self.certificate, &mut self.key];
        std::iter::once(&mut self.ca).chain(own.into_iter().flatten())
    }
}

/// A route whose addresses have been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// What clients and server speak.
    pub protocol: Protocol,
    /// Where clients connect to.
    pub listen: Address,
    /// The server.
    pub server: Address,
    /// Permissions of a socket of this machine.
    pub mode: u32,
    /// The files of TLS that clients have to speak.
    pub listen_tls: Option<Files>,
    /// Whom the server's certificate must be for, and the files of TLS that the proxy speaks to it.
    pub server_tls: Option<(ServerName<'static>, Files)>,
}

/// Whom a route's server has to be, where the proxy speaks TLS to it.
fn server_tls(route: &Route) -> Result<Option<(ServerName<'static>, Files)>, Fault> {
    let Some(tls) = &route.server_tls else {
        return Ok(None);
    };
    let of_address = route.server.strip_prefix("tcp:");
    let host = of_address.and_then(|place| Some(place.rsplit_once(':')?.0));
    let name = tls.name.as_deref().or(host).ok_or_else(|| {
        Fault(
            "route.server_tls.name: is missing: a socket of this machine has no host whose name \
             the certificate could be for"
                .to_owned(),
        )
    })?;
    let name = server_name(name).map_err(|why| Fault(format!("route.server_tls.name = {why}")))?;
    Ok(Some((name, tls.files())))
}

fn default_workload() -> String {
    "default".to_owned()
}

fn default_turn_ms() -> i64 {
    TurnLength::default().turn_ms.into()
}

fn default_turn_idle_ms() -> i64 {
    TurnLength::default().idle_ms.into()
}

fn default_mode() -> u32 {
    0o600
}

impl Config {
    /// Reads and checks a file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// When it cannot be read, or a key is wrong; with the file's name.
    pub fn read(path: &Path) -> Result<Self, Fault> {
        let wrong =
            |what: &dyn std::fmt::Display| Fault(format!("--config {}: {what}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let mut config = Self::parse(&text).map_err(|fault| wrong(&fault))?;
        // Absolute, so that two processes that read it call a server the same.
        let file = std::path::absolute(path).map_err(|error| wrong(&error))?;
        let folder = file.parent().unwrap_or(Path::new("/"));
        config.control = folder.join(&config.control);
        config.state_directory = config.state_directory.map(|it| folder.join(it));
        for route in &mut config.routes {
            for place in [&mut route.listen, &mut route.server] {
                if let Ok(address) = Address::parse(place) {
                    *place = address.within(folder).to_string();
                }
            }
            let of_clients = route.listen_tls.iter_mut().flat_map(Files::paths);
            let of_server = route.server_tls.iter_mut().flat_map(RouteServerTls::paths);
            for file in of_clients.chain(of_server) {
                *file = folder.join(&*file);
            }
        }
        // Two ways to write a path are one now, and certificates are there.
        config
            .check()
            .and_then(|()| config.terms().map(drop))
            .map_err(|fault| wrong(&fault))?;
        Ok(config)
    }

    /// The same from a text.
    ///
    /// # Errors
    /// When a key is wrong: its name, its value, what is allowed.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        if text.len() > FILE_BYTES_MAX {
            return Err(Fault(format!(
                "{} bytes: at most {FILE_BYTES_MAX} are read",
                text.len()
            )));
        }
        let config: Self = toml::from_str(text).map_err(|error: toml::de::Error| {
            let line = error
                .span()
                .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            Fault(match line {
                Some(line) => format!("line {line}: {}", error.message()),
                None => error.message().to_owned(),
            })
        })?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), Fault> {
        token("controller", &self.controller).map_err(Fault)?;
        token("workload", &self.workload).map_err(Fault)?;
        if !CONTROL_MODES.contains(&self.control_mode) {
            return Err(Fault(format!(
                "control_mode = {:#o}: allowed are 0o600, and 0o660 for the group as well",
                self.control_mode
            )));
        }
        if let Some(window) = self.window
            && !(1..=WINDOW_MAX).contains(&window)
        {
            return Err(Fault(format!(
                "window = {window}: allowed are 1 to {WINDOW_MAX}; leave it out for any number"
            )));
        }
        if !(0..=GAP_US_MAX).contains(&self.gap_us) {
            return Err(Fault(format!(
                "gap_us = {}: allowed are 0 to {GAP_US_MAX}",
                self.gap_us
            )));
        }
        if let Some(most) = self.active_streams
            && !(1..=i64::from(ACTIVE_FILES_MAX)).contains(&most)
        {
            return Err(Fault(format!(
                "active_streams = {most}: allowed are 1 to {ACTIVE_FILES_MAX}; leave it out for any number"
            )));
        }
        for (key, value, most, of) in [
            ("turn_ms", self.turn_ms, TURN_MS_MAX, ""),
            ("turn_idle_ms", self.turn_idle_ms, self.turn_ms, ", turn_ms"),
        ] {
            if !(1..=most).contains(&value) {
                return Err(Fault(format!(
                    "{key} = {value}: allowed are 1 to {most}{of}"
                )));
            }
        }
        if let Some(limit_s) = self.answer_s
            && !(1..=ANSWER_S_MAX).contains(&limit_s)
        {
            return Err(Fault(format!(
                "answer_s = {limit_s}: allowed are 1 to {ANSWER_S_MAX}; leave it out to wait for ever"
            )));
        }
        if self.routes.is_empty() || self.routes.len() > ROUTES_MAX {
            return Err(Fault(format!(
                "[[route]]: {} are given; allowed are 1 to {ROUTES_MAX}",
                self.routes.len()
            )));
        }
        if let Some(route) = self.routes.iter().find(|route| route.mode > 0o777) {
            return Err(Fault(format!(
                "route.mode = {:#o}: allowed are 0o000 to 0o777",
                route.mode
            )));
        }
        self.ways().map(|_| ())
    }

    /// The routes with their addresses.
    ///
    /// # Errors
    /// When an address is none, two routes listen at the same, one leads to the proxy itself, or TLS lacks something.
    pub fn ways(&self) -> Result<Vec<Way>, Fault> {
        let mut ways = Vec::<Way>::new();
        for route in &self.routes {
            let address = |key: &str, text: &str| {
                Address::parse(text).map_err(|what| Fault(format!("route.{key} = {what}")))
            };
            let way = Way {
                protocol: route.protocol,
                listen: address("listen", &route.listen)?,
                server: address("server", &route.server)?,
                mode: route.mode,
                listen_tls: route.listen_tls.clone(),
                server_tls: server_tls(route)?,
            };
            if ways.iter().any(|other| other.listen == way.listen) {
                return Err(Fault(format!(
                    "route.listen = {:?}: two routes listen there; give each its own",
                    route.listen
                )));
            }
            let speaks_other =
                |other: &&Way| other.server == way.server && other.protocol != way.protocol;
            if let Some(other) = ways.iter().find(speaks_other) {
                return Err(Fault(format!(
                    "route.protocol = \"{}\": another route to {} has \"{}\"; a server speaks one",
                    way.protocol, way.server, other.protocol
                )));
            }
            ways.push(way);
        }
        self.check_ends(&ways)?;
        Ok(ways)
    }

    /// The routes with the terms on which their clients are served: certificates are read.
    ///
    /// # Errors
    /// Those of [`Config::ways`], and a file of TLS that is of no use.
    pub fn terms(&self) -> Result<Vec<(Way, Terms)>, Fault> {
        let limit = self
            .answer_s
            .map(|limit_s| Duration::from_secs(limit_s as u64));
        let read = |way: Way| {
            let terms = Terms::read(&way, limit).map_err(Fault)?;
            Ok((way, terms))
        };
        self.ways()?.into_iter().map(read).collect()
    }

    /// No route leads to the proxy itself, which would connect to itself again and again.
    fn check_ends(&self, ways: &[Way]) -> Result<(), Fault> {
        let control = Address::Unix(self.control.clone());
        for way in ways {
            if ways.iter().any(|other| way.server.leads_to(&other.listen)) {
                return Err(Fault(format!(
                    "route.server = \"{}\": a route listens there; give the server's own address",
                    way.server
                )));
            }
            for (key, address) in [("listen", &way.listen), ("server", &way.server)] {
                if *address == control {
                    return Err(Fault(format!(
                        "route.{key} = \"{address}\": is the control socket; give each its own"
                    )));
                }
            }
        }
        Ok(())
    }

    /// What holds streams while no rules do.
    #[must_use]
    pub fn own_hold(&self) -> OwnHold {
        OwnHold {
            window: self.window.map(|window| window as u32),
            gap_us: self.gap_us as u32,
            active_streams: self.active_streams.map(|most| most as u32),
            turn: TurnLength {
                turn_ms: self.turn_ms as u32,
                idle_ms: self.turn_idle_ms as u32,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
        controller = 'client1'
        workload = 'files'
        control = 'control.sock'
        window = 8
        gap_us = 100
        active_streams = 4
        turn_ms = 200
        [[route]]
        listen = 'unix:disk0.sock'
        server = 'tcp:storage1:10809'
        mode = 0o660
        [[route]]
        listen = 'tcp:127.0.0.1:10810'
        server = 'unix:/run/nbd.sock'
    ";

    #[test]
    fn a_file_is_read() {
        let config = Config::parse(GOOD).unwrap();
        assert_eq!((config.window, config.gap_us), (Some(8), 100));
        let ways = config.ways().unwrap();
        assert_eq!((ways.len(), ways[0].mode, ways[1].mode), (2, 0o660, 0o600));
    }

    #[test]
    fn whom_a_server_has_to_be_is_its_address_or_what_the_file_says() {
        let name = |server: &str, named: &str| {
            let text = format!(
                "control = 'c'\n[[route]]\nlisten = 'unix:a'\nserver = '{server}'\n\
                 [route.server_tls]\nca = 'ca.pem'\n{named}"
            );
            let ways = Config::parse(&text).and_then(|config| config.ways());
            ways.map(|ways| ways[0].server_tls.as_ref().unwrap().0.to_str().into_owned())
        };
        assert_eq!(name("tcp:storage1:9", "").unwrap(), "storage1");
        assert_eq!(name("tcp:[::1]:9", "").unwrap(), "::1");
        assert_eq!(name("tcp:storage1:9", "name = 'a.b'").unwrap(), "a.b");
        assert_eq!(name("unix:/s", "name = 'a.b'").unwrap(), "a.b");
        let said = name("unix:/s", "").unwrap_err().0;
        assert!(
            said.starts_with("route.server_tls.name: is missing"),
            "{said}"
        );
        let said = name("unix:/s", "name = '*'").unwrap_err().0;
        assert!(said.starts_with("route.server_tls.name = \"*\""), "{said}");
    }

    #[test]
    fn a_path_that_is_written_in_two_ways_is_one() {
        let name = format!("ascar-proxy-config-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("proxy.toml");
        let own = format!("unix:{}", folder.join("disk0.sock").display());
        std::fs::write(&path, GOOD.replace("unix:/run/nbd.sock", &own)).unwrap();
        let said = Config::read(&path).unwrap_err().0;
        std::fs::remove_dir_all(folder).unwrap();
        assert!(said.contains("a route listens there"), "{said}");
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, word) in [
            ("client1", "client.1", "controller = \"client.1\""),
            ("window = 8", "control_mode = 0o666", "control_mode = 0o666"),
            ("window = 8", "window = 0", "window = 0"),
            ("window = 8", "window = 257", "1 to 256"),
            ("gap_us = 100", "gap_us = -1", "gap_us = -1: allowed"),
            ("gap_us", "gap", "gap"),
            ("active_streams = 4", "active_streams = 0", "1 to 1000000"),
            ("turn_ms = 200", "turn_ms = 0", "turn_ms = 0: allowed"),
            (
                "turn_ms = 200",
                "turn_ms = 7",
                "turn_idle_ms = 8: allowed are 1 to 7, turn_ms",
            ),
            ("turn_ms = 200", "turn_idle_ms = 501", "turn_idle_ms = 501"),
            (
                "gap_us = 100",
                "answer_s = 0",
                "answer_s = 0: allowed are 1",
            ),
            ("control = 'control.sock'", "", "control"),
            ("unix:disk0.sock", "disk0.sock", "route.listen"),
            ("tcp:storage1:10809", "tcp:storage1", "route.server"),
            ("tcp:127.0.0.1:10810", "unix:disk0.sock", "two routes"),
            ("mode = 0o660", "protocol = 'smb'", "unknown variant `smb`"),
            (
                "unix:/run/nbd.sock'",
                "tcp:storage1:10809'\nprotocol = 'resp'",
                "route.protocol = \"resp\": another route to tcp:storage1:10809 has \"nbd\"",
            ),
            ("0o660", "0o7777", "route.mode = 0o7777"),
            ("unix:/run/nbd.sock", "unix:disk0.sock", "a route listens"),
            (
                "unix:/run/nbd.sock",
                "tcp:127.0.0.1:10810",
                "a route listens",
            ),
            ("storage1:10809", "localhost:10810", "a route listens"),
            ("control.sock", "disk0.sock", "is the control socket"),
            ("control.sock", "/run/nbd.sock", "is the control socket"),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD);
            let said = Config::parse(&text).unwrap_err().0;
            assert!(said.contains(word), "{from}: {said}");
            assert!(!said.contains('\n'), "{said}");
        }
        assert!(
            Config::parse("control = 'a'")
                .unwrap_err()
                .0
                .contains("[[route]]")
        );
    }
}
