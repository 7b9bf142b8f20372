//! Heads of requests (RFC 9112, section 3).

use std::ops::Range;

use crate::body::Body;
use crate::fields::{Framing, first_line, is_token, whole_head};
use crate::refusal::{Refusal, Status, bad, shown};

/// What a connection begins with whose client speaks TLS (RFC 8446, section 5.1).
const TLS_HANDSHAKE: u8 = 22;

/// What a proxy has to know of a request; what else its head says is the server's business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The length of its head, with the empty line.
    pub head_bytes: usize,
    /// Whether it asks for a head alone: then the response has no body, whatever that says.
    pub is_head: bool,
    /// Whether it only reads (GET and HEAD).
    pub reads: bool,
    /// What follows its head.
    pub body: Body,
    /// The places in its head that are of one hop alone, in their order: they are not passed on.
    pub cuts: Vec<Range<usize>>,
}

impl Request {
    /// Reads a head; None where not all of it has come.
    ///
    /// # Errors
    /// Where it is none, could be read in two ways, or asks for what is not passed on.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Refusal> {
        check_begin(bytes)?;
        let Some(head) = whole_head(bytes)? else {
            // What is wrong with its first line is told without the others.
            return match first_line(bytes) {
                Some(line) => request_line(line).map(|_| None),
                None => Ok(None),
            };
        };
        let (method, is_http_10) = request_line(first_line(head).unwrap_or_default())?;
        let framing = Framing::read(head)?;
        if method == b"CONNECT" {
            return Err(not_passed_on("CONNECT: is not passed on"));
        }
        if let Some(protocol) = framing.upgrade {
            let why = format!("Upgrade: {} is not passed on", shown(protocol));
            return Err(not_passed_on(&why));
        }
        check_host(&framing, is_http_10)?;
        Ok(Some(Self {
            head_bytes: head.len() + 2,
            is_head: method == b"HEAD",
            reads: matches!(method, b"GET" | b"HEAD"),
            body: framing.body(is_http_10)?.unwrap_or(Body::NONE),
            cuts: framing.cuts(head),
        }))
    }
}

/// What is no request is told by its first byte: the end of its head would be waited for in vain.
fn check_begin(bytes: &[u8]) -> Result<(), Refusal> {
    match bytes.first() {
        Some(&TLS_HANDSHAKE) => Err(bad("TLS: the client begins it, where none is spoken")),
        Some(byte) if !is_token(*byte) => {
            Err(bad(format!("a request line: {} begins none", shown(bytes))))
        }
        _ => Ok(()),
    }
}

fn not_passed_on(why: &str) -> Refusal {
    Refusal::new(Status::NotImplemented, why)
}

/// The method, and whether the version is the old one.
fn request_line(line: &[u8]) -> Result<(&[u8], bool), Refusal> {
    let wrong = || bad(format!("a request line: {} is none", shown(line)));
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(wrong());
    };
    let is_method = !method.is_empty() && method.iter().all(|byte| is_token(*byte));
    let is_target = target
        .iter()
        .all(|byte| matches!(byte, b'!'..=b'~' | 0x80..));
    if !is_method || target.is_empty() || !is_target {
        return Err(wrong());
    }
    let is_http_10 = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            return Err(Refusal::new(
                Status::VersionNotSupported,
                format!(
                    "{}: only HTTP/1.1 and HTTP/1.0 are passed on",
                    version.escape_ascii()
                ),
            ));
        }
        _ => return Err(wrong()),
    };
    let starts = |scheme: &str| {
        let start = target.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    let is_form = match method {
        b"CONNECT" => true,
        b"OPTIONS" if target == b"*" => true,
        _ => target[0] == b'/' || starts("http://") || starts("https://"),
    };
    if !is_form {
        return Err(bad(format!("a target: {} is none", shown(target))));
    }
    Ok((method, is_http_10))
}

/// One host, which a request of HTTP/1.1 must name (RFC 9112, section 3.2).
fn check_host(framing: &Framing<'_>, is_http_10: bool) -> Result<(), Refusal> {
    match framing.hosts {
        0 if is_http_10 => return Ok(()),
        0 => return Err(bad("Host: is missing")),
        1 => {}
        _ => return Err(bad("Host: is given twice")),
    }
    let is_host = |byte: &u8| matches!(byte, b'!'..=b'~') && !br##""#,/<>?@\^`{|}"##.contains(byte);
    if framing.host.iter().all(is_host) {
        return Ok(());
    }
    Err(bad(format!("Host: {} is none", shown(framing.host))))
}
