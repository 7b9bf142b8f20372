//! Operations on the session's control group.

use serde_json::{Value, json};

use super::{Session, reply};
use crate::cgroup::{self, Cgroup};
use crate::fault::{Fault, Result};
use crate::journal::Change;

impl Session {
    pub(super) fn cgroup_create(&mut self, memory_bytes: u64) -> Result<Value> {
        cgroup::check_memory(memory_bytes)?;
        if self.cgroup.is_some() {
            return Err(Fault::input(
                "this session has a control group already: remove it first",
            ));
        }
        let hierarchy = cgroup::discover().ok_or_else(|| {
            Fault::input("this machine has no control groups for memory: leave the limit out")
        })?;
        let name = format!("ascar-{}", self.name);
        let group = Cgroup::create(&mut self.journal(), &hierarchy, &name, memory_bytes)?;
        let answer =
            json!({"path": group.path, "version": group.version, "memory_bytes": memory_bytes});
        self.cgroup = Some(group);
        Ok(answer)
    }

    pub(super) fn cgroup_add(&mut self, pid: i32) -> Result<Value> {
        let group = self.cgroup()?;
        if pid <= 1 || !self.invoker.may_limit(nix::unistd::Pid::from_raw(pid)) {
            return Err(Fault::refused(format!(
                "pid = {pid}: is not a process of yours"
            )));
        }
        group.add(pid)?;
        Ok(json!({}))
    }

    pub(super) fn cgroup_kill(&mut self) -> Result<Value> {
        let group = self.cgroup()?;
        if !group.kill() {
            return Err(Fault::failed(format!(
                "processes in {} do not die",
                group.path.display()
            )));
        }
        reply(group.usage())
    }

    pub(super) fn cgroup_remove(&mut self) -> Result<Value> {
        let group = self.cgroup()?;
        let usage = group.usage();
        let path = group.path.clone();
        if !group.kill() {
            return Err(Fault::failed(format!(
                "processes in {} do not die",
                path.display()
            )));
        }
        group.remove()?;
        self.journal()
            .undone_where(|it| matches!(it, Change::Cgroup { target } if *target == path))?;
        self.cgroup = None;
        reply(usage)
    }

    pub(super) fn cgroup(&self) -> Result<&Cgroup> {
        self.cgroup
            .as_ref()
            .ok_or_else(|| Fault::input("this session has no control group: make one first"))
    }
}
