//! Why a request failed.

/// The errors that replies name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ErrorCode {
    /// EPERM: the export is read-only.
    Permission = 1,
    /// EIO: the medium failed.
    InputOutput = 5,
    /// ENOMEM: no memory for it now.
    Memory = 12,
    /// EINVAL: the request makes no sense.
    Invalid = 22,
    /// ENOSPC: beyond the end, or nothing is left.
    NoSpace = 28,
    /// EOVERFLOW: a value is too large.
    Overflow = 75,
    /// ENOTSUP: it can be done, but not as it was asked for.
    Unsupported = 95,
    /// ESHUTDOWN: the server is about to end.
    Shutdown = 108,
}

impl ErrorCode {
    /// The error of a number; all that the protocol does not know count as EINVAL, as it says. None for 0, success.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Some(match number {
            0 => return None,
            1 => Self::Permission,
            5 => Self::InputOutput,
            12 => Self::Memory,
            28 => Self::NoSpace,
            75 => Self::Overflow,
            95 => Self::Unsupported,
            108 => Self::Shutdown,
            _ => Self::Invalid,
        })
    }

    /// Its number in replies.
    #[must_use]
    pub fn number(self) -> u32 {
        self as u32
    }
}
