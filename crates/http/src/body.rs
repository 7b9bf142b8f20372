//! How long what follows a head is (RFC 9112, section 6.3).

/// How the end of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// So many bytes follow; 0 where there is none.
    Bytes(u64),
    /// Chunks follow, the last one of them empty.
    Chunked,
    /// It ends with the connection: of responses alone.
    UntilClose,
}

impl Body {
    /// No body.
    pub const NONE: Self = Self::Bytes(0);
}
