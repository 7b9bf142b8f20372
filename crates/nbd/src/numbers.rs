//! The numbers of the protocol, by the names that it has for them.

/// What a server's greeting begins with: `NBDMAGIC`.
pub const NBDMAGIC: u64 = 0x4e42_444d_4147_4943;
/// What the second word of a newstyle greeting, and each option, begins with: `IHAVEOPT`.
pub const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
/// The second word of an oldstyle greeting, which is recognised to be refused.
pub const CLISERV_MAGIC: u64 = 0x4202_8186_1253;
/// What the answer to an option begins with.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// What a request begins with.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// What a simple reply begins with.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// What a chunk of a structured reply begins with.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Flags of a greeting, and of the client's answer to it.
pub mod handshake_flag {
    /// Options are answered, and may be refused.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// The answer to `NBD_OPT_EXPORT_NAME` does not end with 124 zeroes.
    pub const NO_ZEROES: u16 = 1 << 1;
}

/// What a client may ask for while it negotiates.
pub mod option_kind {
    /// An export, by the old way: what the server has for it, or the end of the connection.
    pub const EXPORT_NAME: u32 = 1;
    /// The end of the negotiation.
    pub const ABORT: u32 = 2;
    /// The names of all exports.
    pub const LIST: u32 = 3;
    /// Encryption.
    pub const STARTTLS: u32 = 5;
    /// What there is to know of an export.
    pub const INFO: u32 = 6;
    /// The same, after which the export is used.
    pub const GO: u32 = 7;
    /// Structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Kinds of metadata, of which block status is one.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Kinds of metadata that the client is going to ask for.
    pub const SET_META_CONTEXT: u32 = 10;
    /// Requests with lengths of 64 bits.
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// What an answer to an option is. Those with the highest bit are refusals.
pub mod option_reply {
    /// Accepted; no more answers to this option follow.
    pub const ACK: u32 = 1;
    /// A name of the list.
    pub const SERVER: u32 = 2;
    /// Something to know of an export.
    pub const INFO: u32 = 3;
    /// The bit of all refusals.
    pub const ERROR_BIT: u32 = 1 << 31;
    /// The option is not known, or not supported.
    pub const ERR_UNSUP: u32 = ERROR_BIT + 1;
    /// The option is not allowed here.
    pub const ERR_POLICY: u32 = ERROR_BIT + 2;
    /// What came with the option makes no sense.
    pub const ERR_INVALID: u32 = ERROR_BIT + 3;
    /// TLS must be started before.
    pub const ERR_TLS_REQD: u32 = ERROR_BIT + 5;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = ERROR_BIT + 6;
    /// What came with the option is too long.
    pub const ERR_TOO_BIG: u32 = ERROR_BIT + 9;
}

/// What there is to know of an export.
pub mod info_kind {
    /// Its size and its flags.
    pub const EXPORT: u16 = 0;
    /// Its name, where a client asked for it by another.
    pub const NAME: u16 = 1;
    /// A text for people.
    pub const DESCRIPTION: u16 = 2;
    /// The lengths and alignments that requests have.
    pub const BLOCK_SIZE: u16 = 3;
}

/// What an export can do.
pub mod transmission_flag {
    /// The other flags are there; always set.
    pub const HAS_FLAGS: u16 = 1;
    /// Nothing may be written.
    pub const READ_ONLY: u16 = 1 << 1;
    /// It knows `NBD_CMD_FLUSH`.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// It knows `NBD_CMD_FLAG_FUA`.
    pub const SEND_FUA: u16 = 1 << 3;
    /// It turns.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// It knows `NBD_CMD_TRIM`.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// It knows `NBD_CMD_WRITE_ZEROES`.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// It knows `NBD_CMD_FLAG_DF`; only with structured replies.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection counts for all of them.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// It knows `NBD_CMD_CACHE`.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// It knows `NBD_CMD_FLAG_FAST_ZERO`.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// How a request is to be carried out.
pub mod command_flag {
    /// Answered only when what it wrote is on the medium.
    pub const FUA: u16 = 1;
    /// No hole is made of zeroes.
    pub const NO_HOLE: u16 = 1 << 1;
    /// All data in one chunk.
    pub const DF: u16 = 1 << 2;
    /// One extent of block status.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Zeroes only where that is faster than writing them.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// How a chunk is to be read.
pub mod chunk_flag {
    /// It is the last one of its request.
    pub const DONE: u16 = 1;
}

/// What a chunk holds.
pub mod chunk_kind {
    /// Nothing.
    pub const NONE: u16 = 0;
    /// An offset, and data that lies there.
    pub const OFFSET_DATA: u16 = 1;
    /// An offset, and the length of a hole there.
    pub const OFFSET_HOLE: u16 = 2;
    /// Extents of block status.
    pub const BLOCK_STATUS: u16 = 5;
    /// The bit of all chunks that tell an error.
    pub const ERROR_BIT: u16 = 1 << 15;
    /// An error of the whole request.
    pub const ERROR: u16 = ERROR_BIT + 1;
    /// An error at an offset.
    pub const ERROR_OFFSET: u16 = ERROR_BIT + 2;
}
