//! The agent's file.

use std::path::PathBuf;
use std::time::Duration;

use ascar_messaging::file::{ConfigFile, Way, range};
use ascar_messaging::options::check_name;
use ascar_messaging::{Fault, Options, Parameter};
use ascar_service::host_name;
use serde::Deserialize;

use crate::collectors::CollectorOptions;
use crate::controllers::{ProgramOptions, check_kept};
use crate::derive::AverageOptions;
use crate::relay::ProxyOptions;
use crate::windows::WindowOptions;

/// Everything that the file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which session's subjects.
    #[serde(default = "default_session")]
    pub session: String,
    /// This node's name; the host's where none is given.
    #[serde(default = "host_name")]
    pub node: String,
    /// Length of a tick.
    #[serde(default = "default_interval")]
    pub interval_s: f64,
    /// After so long without a word from the interface every knob is put back.
    #[serde(default = "default_contact")]
    pub contact_s: f64,
    /// No knob is set here.
    #[serde(default)]
    pub monitor_only: bool,
    /// A connection file, or
    pub connection: Option<PathBuf>,
    /// what would be in it.
    pub messaging: Option<Options>,
    /// Only indicators that fit one of these.
    #[serde(default)]
    pub indicators: Vec<String>,
    /// None that fits one of these.
    #[serde(default)]
    pub without: Vec<String>,
    /// Values are rounded to so many digits; as they are where none is given.
    pub significant_digits: Option<u32>,
    /// A key frame at least every so many frames.
    #[serde(default = "default_key_every")]
    pub key_every: u32,
    /// Month, weekday, hour and minute as indicators.
    #[serde(default)]
    pub calendar: bool,
    /// The keeper's journal, where it is not the machine's.
    pub state_directory: Option<PathBuf>,
    /// What is read.
    #[serde(default, rename = "collector")]
    pub collectors: Vec<CollectorOptions>,
    /// Moving averages.
    #[serde(default, rename = "average")]
    pub averages: Vec<AverageOptions>,
    /// What may be set through the keeper.
    #[serde(default, rename = "knob")]
    pub knobs: Vec<Parameter>,
    /// Programs that set knobs of their own.
    #[serde(default, rename = "program")]
    pub programs: Vec<ProgramOptions>,
    /// Proxies of this node that the rule manager reaches through this agent.
    #[serde(default, rename = "proxy")]
    pub proxies: Vec<ProxyOptions>,
    /// Devices of this node whose windows rules set.
    pub windows: Option<WindowOptions>,
}

/// Proxies of one agent, each of which has a thread and a connection.
const PROXIES_MAX: usize = 16;

fn default_session() -> String {
    "default".to_owned()
}

fn default_interval() -> f64 {
    1.0
}

fn default_contact() -> f64 {
    30.0
}

fn default_key_every() -> u32 {
    300
}

impl ConfigFile for Config {
    fn check(&self) -> Result<(), Fault> {
        check_name("session", &self.session)?;
        check_name("node", &self.node)?;
        range("interval_s", self.interval_s, 0.05, 3600.0)?;
        // The interface is heard every two seconds.
        range("contact_s", self.contact_s, 3.0, 86_400.0)?;
        self.way().check()?;
        if self
            .significant_digits
            .is_some_and(|digits| !(2..=9).contains(&digits))
        {
            return Err(Fault(format!(
                "significant_digits = {}: allowed are 2 to 9",
                self.significant_digits.unwrap_or_default()
            )));
        }
        for average in &self.averages {
            range("average.half_life_s", average.half_life_s, 0.01, 1e7)?;
        }
        for knob in &self.knobs {
            check_kept(knob)?;
        }
        for program in &self.programs {
            program.check()?;
        }
        for collector in &self.collectors {
            collector.check()?;
        }
        self.check_proxies()?;
        match &self.windows {
            None => Ok(()),
            Some(_) if self.monitor_only => Err(Fault(
                "[windows]: with monitor_only = true nothing is set on this node; leave one of them out"
                    .to_owned(),
            )),
            Some(windows) => windows.check(),
        }
    }

    fn paths(&mut self) -> Vec<&mut PathBuf> {
        let controls = self.proxies.iter_mut().map(|it| &mut it.control);
        self.connection.iter_mut().chain(controls).collect()
    }

    fn way(&self) -> Way<'_> {
        Way {
            connection: self.connection.as_deref(),
            messaging: self.messaging.as_ref(),
        }
    }
}

impl Config {
    /// Length of a tick.
    pub fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.interval_s)
    }

    fn check_proxies(&self) -> Result<(), Fault> {
        if self.monitor_only && !self.proxies.is_empty() {
            return Err(Fault(
                "[[proxy]]: with monitor_only = true nobody changes rules through this agent; leave one of them out"
                    .to_owned(),
            ));
        }
        if self.proxies.len() > PROXIES_MAX {
            return Err(Fault(format!(
                "[[proxy]]: {} are given; allowed are {PROXIES_MAX} at most",
                self.proxies.len()
            )));
        }
        for (number, proxy) in self.proxies.iter().enumerate() {
            if self.proxies[..number].contains(proxy) {
                return Err(Fault(format!(
                    "proxy.control = {:?}: is given twice; give each proxy once",
                    proxy.control.display()
                )));
            }
        }
        Ok(())
    }

    /// The dead man's patience.
    pub fn contact(&self) -> Duration {
        Duration::from_secs_f64(self.contact_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
        node = 'client1'
        connection = 'connection.toml'
        calendar = true
        [[collector]]
        kind = 'block'
        devices = ['vda']
        [[collector]]
        kind = 'cpu'
        [[average]]
        of = 'cpu.*'
        half_life_s = 10
        [[knob]]
        name = 'vm.dirty_ratio'
        minimum = 5
        maximum = 40
        [[proxy]]
        control = '/run/ascar-proxy/control.sock'
        [[proxy]]
        control = 'other.sock'
        [windows]
        devices = ['vdb', 'nbd15']
        minimum = 8
        maximum = 64
    ";

    #[test]
    fn a_file_is_read() {
        let config = Config::parse(GOOD).unwrap();
        assert_eq!((config.node.as_str(), config.interval_s), ("client1", 1.0));
        assert_eq!(config.collectors.len(), 2);
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, word) in [
            ("client1", "client.1", "node"),
            ("calendar", "calender", "calender"),
            ("'block'", "'blocks'", "blocks"),
            ("vm.dirty_ratio", "vm.dirty_ration", "vm.dirty_ration"),
            ("= 5", "= 50", "minimum"),
            (
                "other.sock",
                "/run/ascar-proxy/control.sock",
                "is given twice",
            ),
            ("calendar = true", "monitor_only = true", "[[proxy]]"),
            ("control = 'other.sock'", "socket = 'other.sock'", "socket"),
            ("half_life_s = 10", "half_life_s = 0", "half_life_s"),
            ("connection = 'connection.toml'", "", "connection"),
            ("['vdb', 'nbd15']", "[]", "windows.devices: 0 are given"),
            ("'nbd15'", "'vdb'", "is given twice"),
            ("'nbd15'", "'../x'", "../x"),
            ("minimum = 8", "minimum = 3", "windows.minimum = 3"),
            ("maximum = 64", "maximum = 7", "windows.maximum = 7"),
            ("maximum = 64", "maximum = 257", "windows.maximum = 257"),
            ("maximum = 64", "workload = 'a b'", "windows.workload"),
            ("maximum = 64", "controller = 'a.b'", "windows.controller"),
            ("minimum = 8", "window = 8", "window"),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD);
            let fault = Config::parse(&text).unwrap_err();
            assert!(fault.0.contains(word), "{from}: {fault}");
        }
    }
}
