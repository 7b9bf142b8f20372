//! What a proxy answers itself: to a request that it does not pass on, or for a server that does not answer.

use std::fmt;

/// The status of such an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// What came is no request, or could be read in two ways.
    BadRequest,
    /// The rest of a request did not come in time.
    RequestTimeout,
    /// The head is too long.
    HeadTooLarge,
    /// What is asked for is not passed on.
    NotImplemented,
    /// The server cannot be reached, is gone, or says what is no response.
    BadGateway,
    /// The server says nothing.
    GatewayTimeout,
    /// Another version of HTTP.
    VersionNotSupported,
}

impl Status {
    /// Its number (RFC 9110, section 15; RFC 6585, section 5).
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::RequestTimeout => 408,
            Self::HeadTooLarge => 431,
            Self::NotImplemented => 501,
            Self::BadGateway => 502,
            Self::GatewayTimeout => 504,
            Self::VersionNotSupported => 505,
        }
    }

    const fn phrase(self) -> &'static str {
        match self {
            Self::BadRequest => "Bad Request",
            Self::RequestTimeout => "Request Timeout",
            Self::HeadTooLarge => "Request Header Fields Too Large",
            Self::NotImplemented => "Not Implemented",
            Self::BadGateway => "Bad Gateway",
            Self::GatewayTimeout => "Gateway Timeout",
            Self::VersionNotSupported => "HTTP Version Not Supported",
        }
    }
}

/// Why a message is not passed on, in one line, and what its sender is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status of the answer.
    pub status: Status,
    /// What is wrong.
    pub why: String,
}

impl Refusal {
    /// A refusal.
    #[must_use]
    pub fn new(status: Status, why: impl Into<String>) -> Self {
        Self {
            status,
            why: why.into(),
        }
    }

    /// The response that tells it, after which the connection ends; without its text where a HEAD is answered.
    #[must_use]
    pub fn response(&self, to_head: bool) -> Vec<u8> {
        let text = format!("ascard proxy: {}\n", self.why);
        let head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            self.status.code(),
            self.status.phrase(),
            text.len()
        );
        let mut bytes = head.into_bytes();
        if !to_head {
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.why, self.status.code())
    }
}

impl std::error::Error for Refusal {}

/// A message that could be read in two ways, or is none.
pub(crate) fn bad(why: impl Into<String>) -> Refusal {
    Refusal::new(Status::BadRequest, why)
}

/// What stands there, short enough for a line.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const BYTES_MAX: usize = 60;
    let cut = &bytes[..bytes.len().min(BYTES_MAX)];
    let more = if cut.len() < bytes.len() { "..." } else { "" };
    format!("\"{}\"{more}", cut.escape_ascii())
}
