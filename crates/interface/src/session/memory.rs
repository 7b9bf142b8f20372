//! What a new start of the interface must know, in a file of its own.

use std::path::PathBuf;
use std::time::Instant;

use ascar_messaging::options::check_name;
use serde_json::{Value, json};

use super::{Announced, Session};
use crate::config::Mode;
use crate::fallback::Event;
use crate::replay::Job;
use crate::setting::Setting;

impl Session {
    /// What a new start must know: beside the database, for the disk may be full.
    pub(crate) fn remember(&mut self) {
        self.unsaved = false;
        self.saved_at = Instant::now();
        let state = json!({"version": 1, "setting": self.setting, "killed": self.fallback.killed(), "mode": self.mode,
            "workload": self.workload});
        let path = self.state_path();
        let draft = path.with_extension("draft");
        let written =
            std::fs::write(&draft, state.to_string()).and_then(|()| std::fs::rename(&draft, &path));
        if let Err(error) = written {
            eprintln!("ascard interface: {}: {error}", path.display());
        }
    }

    pub(super) fn recall(&mut self) {
        let Ok(text) = std::fs::read(self.state_path()) else {
            return;
        };
        let Ok(state) = serde_json::from_slice::<Value>(&text) else {
            eprintln!(
                "ascard interface: {}: is damaged and passed over",
                self.state_path().display()
            );
            return;
        };
        if state["killed"] == json!(true) {
            self.fallback.on(Event::Kill);
        }
        // Of the file's mode and the one that somebody chose the more careful one.
        if let Ok(mode) = serde_json::from_value::<Mode>(state["mode"].clone()) {
            self.mode = self.mode.min(mode);
        }
        if let Ok(setting) = serde_json::from_value::<Setting>(state["setting"].clone()) {
            let (setting, wrong) = setting.within_limits();
            if let Some((count, first)) = wrong {
                eprintln!(
                    "ascard interface: {}: {count} entries of the setting are over the limits and left out: {first}",
                    self.state_path().display()
                );
            }
            self.setting = setting;
        }
        // A job goes on while the interface is begun anew; its end will be announced.
        let known: Option<Announced> =
            serde_json::from_value(state["workload"].clone()).unwrap_or(None);
        if let Some(known) = known.filter(|it| check_name("name", &it.name).is_ok()) {
            self.writer.send(Job::Open(self.database_of(Some(&known))));
            self.workload = Some(known);
        }
    }

    fn state_path(&self) -> PathBuf {
        let mut name = self.config.database.as_os_str().to_owned();
        name.push(".state");
        PathBuf::from(name)
    }
}
