//! What the processes of the node binary need.

use crate::capability::Capability::{
    self, Chown, DacOverride, DacReadSearch, Fowner, Kill, NetAdmin, SysAdmin, SysPtrace,
    SysResource, Syslog,
};

/// What a process keeps of the rights that it was started with.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// Capabilities; None: all that it has, for programs of its user that it starts.
    pub capabilities: Option<&'static [Capability]>,
    /// Whether programs that it starts, such as mkfs, get these capabilities as well.
    pub has_privileged_children: bool,
    /// Whether a program that it starts may have more rights than it, as sudo has.
    pub may_gain: bool,
    /// Permissions that its new files lack; None: as its user wants it.
    pub umask: Option<u32>,
}

/// Root's keeper: file systems, mounts, loop devices, settings of the kernel, control groups. It reads the environment
/// and the state of its client's processes, the kernel's messages, and is the last to be killed when memory is short.
pub const KEEPER: Role = Role {
    capabilities: Some(&[
        Chown,
        DacOverride,
        DacReadSearch,
        Fowner,
        Kill,
        NetAdmin,
        SysAdmin,
        SysPtrace,
        SysResource,
        Syslog,
    ]),
    has_privileged_children: true,
    may_gain: false,
    umask: Some(0o022),
};

/// A user's keeper: it runs commands of the user, which may be sudo.
pub const USERS_KEEPER: Role = Role {
    capabilities: None,
    has_privileged_children: true,
    may_gain: true,
    umask: None,
};

/// An agent's starter: it starts the keeper, by sudo where it is not root, and programs of its user.
pub const STARTER: Role = USERS_KEEPER;

/// The holder of an agent's lease, once what it holds has started: it passes bytes on.
pub const HOLDER: Role = Role {
    capabilities: Some(&[]),
    has_privileged_children: false,
    may_gain: false,
    umask: None,
};

/// An agent, which reads messages of others and what root alone may read; what it starts, its starter starts.
pub const AGENT: Role = Role {
    capabilities: Some(&[DacReadSearch]),
    has_privileged_children: false,
    may_gain: false,
    umask: Some(0o077),
};

/// The interface, which writes its database in a folder that may be its user's, behind sudo.
pub const INTERFACE: Role = Role {
    capabilities: Some(&[DacOverride]),
    has_privileged_children: false,
    may_gain: false,
    umask: None,
};

/// A proxy, which passes on the bytes of others.
pub const PROXY: Role = Role {
    capabilities: Some(&[]),
    has_privileged_children: false,
    may_gain: false,
    umask: Some(0o077),
};

/// A load. Where root runs it, it may use the blocks that a file system reserves, as any program of root's.
pub const LOAD: Role = Role {
    capabilities: Some(&[DacOverride, DacReadSearch, Fowner, SysResource]),
    has_privileged_children: false,
    may_gain: false,
    umask: None,
};

/// A disk, which reads what its clients send, and removes its socket from a folder that may be its user's, behind sudo.
pub const DISK: Role = Role {
    capabilities: Some(&[DacOverride]),
    has_privileged_children: false,
    may_gain: false,
    umask: None,
};
