//! The queues of block devices: how many requests the kernel has in flight on each, and what it counts.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::{Map, json};

use super::counted::Counters;
use crate::collectors::KernelFile;
use crate::controllers::Controllers;

/// The queues of block devices, as a plane uses them.
pub trait Queues {
    /// How many requests a device may have in flight; None where it is not there.
    fn requests(&mut self, device: &str) -> Option<u32>;

    /// What was counted of a device; None where it is not there.
    fn counted(&mut self, device: &str) -> Option<Counters>;

    /// Lets it have so many.
    ///
    /// # Errors
    /// When the kernel or its keeper refuses it, in a line.
    fn set(&mut self, device: &str, requests: u32) -> Result<(), String>;

    /// Puts all of them back.
    ///
    /// # Errors
    /// What could not be put back.
    fn restore(&mut self) -> Result<(), String>;

    /// Looks whether what sets them still runs; if it did not, all were put back, and this says so.
    fn watch(&mut self) -> Option<String>;
}

/// The knob that is a device's window.
pub fn knob_of(device: &str) -> String {
    format!("block.{device}.nr_requests")
}

/// Those of this machine, which a keeper sets.
#[derive(Debug)]
pub struct KernelQueues {
    controllers: Controllers,
    counters: HashMap<String, KernelFile>,
}

impl KernelQueues {
    /// Set by these controllers.
    pub fn new(controllers: Controllers) -> Self {
        Self {
            controllers,
            counters: HashMap::new(),
        }
    }
}

fn folder_of(device: &str) -> PathBuf {
    PathBuf::from("/sys/block").join(device)
}

impl Queues for KernelQueues {
    fn requests(&mut self, device: &str) -> Option<u32> {
        let path = folder_of(device).join("queue/nr_requests");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    fn counted(&mut self, device: &str) -> Option<Counters> {
        let file = self
            .counters
            .entry(device.to_owned())
            .or_insert_with(|| KernelFile::new(folder_of(device).join("stat")));
        file.read().and_then(Counters::of)
    }

    fn set(&mut self, device: &str, requests: u32) -> Result<(), String> {
        let settings = Map::from_iter([(knob_of(device), json!(requests))]);
        self.controllers.set(&settings).map(|_| ())
    }

    fn restore(&mut self) -> Result<(), String> {
        self.controllers.restore().map(|_| ())
    }

    fn watch(&mut self) -> Option<String> {
        self.controllers.watch()
    }
}
