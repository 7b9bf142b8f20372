//! What a command does to the order of replies. All but a few are answered once each, in their order.

use crate::Malformed;

/// Names and options are no longer than this; what is longer is none.
pub const WORD_BYTES_MAX: usize = 256;

/// Options of a command that are looked at.
const OPTIONS_MAX: usize = 16;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is answered once.
    Ordinary,
    /// The same, but nobody can say when: it waits for somebody else.
    Blocking,
    /// The server confirms each of so many names, or refuses all of them; no name: all that there are.
    Subscription {
        /// Names of what.
        channels: Channels,
        /// Whether it ends subscriptions.
        ends: bool,
        /// How many.
        names: u32,
    },
    /// It agrees on a version of the protocol.
    Hello,
    /// The connection is as new.
    Reset,
    /// Commands from here on wait for [`Kind::EndOfTransaction`], and are answered twice: at once, and then together.
    Transaction,
    /// EXEC or DISCARD.
    EndOfTransaction,
    /// It says which commands are answered.
    Answers(Answers),
    /// After it the server speaks by itself, and not in replies; the command's name.
    TakesOver(&'static str),
}

/// What is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// Channels by their names.
    Named,
    /// Channels by patterns.
    Patterns,
    /// Channels of a shard.
    Sharded,
}

/// Which commands are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// All from now on, with this one.
    On,
    /// None from now on, with this one.
    Off,
    /// Not this one, nor the next.
    Skip,
}

/// A word of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// This.
    Word(&'a [u8]),
    /// One that is too long to be a name or an option.
    Long,
    /// It has not come yet.
    Later,
    /// There is none.
    End,
}

/// Tells the kind of a command of so many words, which are asked for one by one; None where more of them have to come.
///
/// # Errors
/// Where a word cannot be told.
pub fn tell<'a>(
    count: u32,
    mut next: impl FnMut() -> Result<Said<'a>, Malformed>,
) -> Result<Option<Kind>, Malformed> {
    let mut upper = [0; 16];
    let name = match next()? {
        Said::Later => return Ok(None),
        Said::Word(word) if word.len() <= upper.len() => {
            let upper = &mut upper[..word.len()];
            upper.copy_from_slice(word);
            upper.make_ascii_uppercase();
            &*upper
        }
        _ => return Ok(Some(Kind::Ordinary)),
    };
    let subscription = |channels, ends| Kind::Subscription {
        channels,
        ends,
        names: count - 1,
    };
    let kind = match name {
        b"BLPOP" | b"BRPOP" | b"BRPOPLPUSH" | b"BLMOVE" | b"BLMPOP" | b"BZPOPMIN" | b"BZPOPMAX"
        | b"BZMPOP" | b"WAIT" | b"WAITAOF" | b"SHUTDOWN" => Kind::Blocking,
        b"XREAD" | b"XREADGROUP" => return reading(next),
        b"SUBSCRIBE" => subscription(Channels::Named, false),
        b"PSUBSCRIBE" => subscription(Channels::Patterns, false),
        b"SSUBSCRIBE" => subscription(Channels::Sharded, false),
        b"UNSUBSCRIBE" => subscription(Channels::Named, true),
        b"PUNSUBSCRIBE" => subscription(Channels::Patterns, true),
        b"SUNSUBSCRIBE" => subscription(Channels::Sharded, true),
        b"HELLO" => Kind::Hello,
        b"RESET" => Kind::Reset,
        b"MULTI" => Kind::Transaction,
        b"EXEC" | b"DISCARD" => Kind::EndOfTransaction,
        b"CLIENT" if count == 3 => return replying(next),
        b"MONITOR" => Kind::TakesOver("MONITOR"),
        b"SYNC" => Kind::TakesOver("SYNC"),
        b"PSYNC" => Kind::TakesOver("PSYNC"),
        b"SCRIPT" => return debugging(next),
        _ => Kind::Ordinary,
    };
    // Without a channel it is refused, as any that lacks something.
    let is_refused = matches!(
        kind,
        Kind::Subscription {
            ends: false,
            names: 0,
            ..
        }
    );
    Ok(Some(if is_refused { Kind::Ordinary } else { kind }))
}

/// XREAD and XREADGROUP wait where they are told to, before their streams are named.
fn reading<'a>(
    mut next: impl FnMut() -> Result<Said<'a>, Malformed>,
) -> Result<Option<Kind>, Malformed> {
    let mut names_left = 0;
    for _ in 0..OPTIONS_MAX {
        match next()? {
            Said::Later => return Ok(None),
            Said::End => return Ok(Some(Kind::Ordinary)),
            Said::Long => break,
            // The names of a group and its consumer may be any.
            Said::Word(_) if names_left > 0 => names_left -= 1,
            Said::Word(word) if word.eq_ignore_ascii_case(b"GROUP") => names_left = 2,
            Said::Word(word) if word.eq_ignore_ascii_case(b"BLOCK") => break,
            Said::Word(word) if word.eq_ignore_ascii_case(b"STREAMS") => {
                return Ok(Some(Kind::Ordinary));
            }
            Said::Word(_) => {}
        }
    }
    Ok(Some(Kind::Blocking))
}

/// CLIENT REPLY ON, OFF or SKIP.
fn replying<'a>(
    mut next: impl FnMut() -> Result<Said<'a>, Malformed>,
) -> Result<Option<Kind>, Malformed> {
    match next()? {
        Said::Later => return Ok(None),
        Said::Word(word) if word.eq_ignore_ascii_case(b"REPLY") => {}
        _ => return Ok(Some(Kind::Ordinary)),
    }
    let answers = match next()? {
        Said::Later => return Ok(None),
        Said::Word(word) if word.eq_ignore_ascii_case(b"ON") => Answers::On,
        Said::Word(word) if word.eq_ignore_ascii_case(b"OFF") => Answers::Off,
        Said::Word(word) if word.eq_ignore_ascii_case(b"SKIP") => Answers::Skip,
        _ => return Ok(Some(Kind::Ordinary)),
    };
    Ok(Some(Kind::Answers(answers)))
}

/// SCRIPT DEBUG: the next script speaks with whoever debugs it.
fn debugging<'a>(
    mut next: impl FnMut() -> Result<Said<'a>, Malformed>,
) -> Result<Option<Kind>, Malformed> {
    Ok(match next()? {
        Said::Later => None,
        Said::Word(word) if word.eq_ignore_ascii_case(b"DEBUG") => {
            Some(Kind::TakesOver("SCRIPT DEBUG"))
        }
        _ => Some(Kind::Ordinary),
    })
}
