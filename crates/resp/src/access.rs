//! What a command does to the value of which key, for who writes down what clients do.
//!
//! Source: the flags and the first key that Redis 7 tells of each command, <https://redis.io/docs/latest/commands/command/>.

use std::cmp::Ordering;

use crate::commands::value;
use crate::lines::number;

/// What a command does to values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It only reads.
    Reads,
    /// It may change them.
    Writes,
}

/// Those that only read, and name the key first, in order.
#[rustfmt::skip]
const READS: [&str; 68] = [
    "BITCOUNT", "BITFIELD_RO", "BITPOS", "DUMP", "EXISTS", "EXPIRETIME", "GEODIST", "GEOHASH", "GEOPOS",
    "GEORADIUSBYMEMBER_RO", "GEORADIUS_RO", "GEOSEARCH", "GET", "GETBIT", "GETRANGE", "HEXISTS", "HGET", "HGETALL",
    "HKEYS", "HLEN", "HMGET", "HRANDFIELD", "HSCAN", "HSTRLEN", "HVALS", "LCS", "LINDEX", "LLEN", "LPOS", "LRANGE",
    "MGET", "PEXPIRETIME", "PFCOUNT", "PTTL", "SCARD", "SDIFF", "SINTER", "SISMEMBER", "SMEMBERS", "SMISMEMBER",
    "SORT_RO", "SRANDMEMBER", "SSCAN", "STRLEN", "SUBSTR", "SUNION", "TOUCH", "TTL", "TYPE", "XLEN", "XPENDING",
    "XRANGE", "XREVRANGE", "ZCARD", "ZCOUNT", "ZLEXCOUNT", "ZMSCORE", "ZRANDMEMBER", "ZRANGE", "ZRANGEBYLEX",
    "ZRANGEBYSCORE", "ZRANK", "ZREVRANGE", "ZREVRANGEBYLEX", "ZREVRANGEBYSCORE", "ZREVRANK", "ZSCAN", "ZSCORE",
];

/// Those that may write, name the key first, and wait for nobody, in order.
#[rustfmt::skip]
const WRITES: [&str; 81] = [
    "APPEND", "BITFIELD", "COPY", "DECR", "DECRBY", "DEL", "EXPIRE", "EXPIREAT", "GEOADD", "GEORADIUS",
    "GEORADIUSBYMEMBER", "GEOSEARCHSTORE", "GETDEL", "GETEX", "GETSET", "HDEL", "HINCRBY", "HINCRBYFLOAT", "HMSET",
    "HSET", "HSETNX", "INCR", "INCRBY", "INCRBYFLOAT", "LINSERT", "LMOVE", "LPOP", "LPUSH", "LPUSHX", "LREM",
    "LSET", "LTRIM", "MOVE", "MSET", "MSETNX", "PERSIST", "PEXPIRE", "PEXPIREAT", "PFADD", "PFMERGE", "PSETEX",
    "RENAME", "RENAMENX", "RESTORE", "RPOP", "RPOPLPUSH", "RPUSH", "RPUSHX", "SADD", "SDIFFSTORE", "SET", "SETBIT",
    "SETEX", "SETNX", "SETRANGE", "SINTERSTORE", "SMOVE", "SORT", "SPOP", "SREM", "SUNIONSTORE", "UNLINK", "XACK",
    "XADD", "XAUTOCLAIM", "XCLAIM", "XDEL", "XSETID", "XTRIM", "ZADD", "ZDIFFSTORE", "ZINCRBY", "ZINTERSTORE",
    "ZPOPMAX", "ZPOPMIN", "ZRANGESTORE", "ZREM", "ZREMRANGEBYLEX", "ZREMRANGEBYRANK", "ZREMRANGEBYSCORE",
    "ZUNIONSTORE",
];

impl Access {
    /// What the command does that begins at these bytes, and its first key; None where it has none, is none of those that are
    /// known, or its key is not at hand.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (name, key) = if bytes.first() == Some(&b'*') {
            let (count, begin) = number(bytes, "a command").ok()??;
            let (name, end) = word(bytes, begin).filter(|_| count > 1)?;
            (name, word(bytes, end)?.0)
        } else {
            let line = bytes.split(|byte| *byte == b'\n').next()?;
            let mut words = line
                .split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty());
            (words.next()?, words.next()?)
        };
        let is_in = |names: &[&str]| names.binary_search_by(|it| order(it, name)).is_ok();
        if is_in(&READS) {
            Some((Self::Reads, key))
        } else if is_in(&WRITES) {
            Some((Self::Writes, key))
        } else {
            None
        }
    }
}

/// The order of a name in capitals and a word as it was said.
fn order(name: &str, word: &[u8]) -> Ordering {
    name.bytes().cmp(word.iter().map(u8::to_ascii_uppercase))
}

/// The value at a place, and the place behind it.
fn word(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let (length, head_bytes) = value(bytes.get(at..)?).ok()??;
    let from = at + head_bytes;
    let word = bytes.get(from..from + length)?;
    Some((word, from + length + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_in_one_list() {
        assert!(READS.is_sorted() && WRITES.is_sorted());
        assert!(READS.iter().all(|it| !WRITES.contains(it)));
        for (names, does) in [(&READS[..], Access::Reads), (&WRITES[..], Access::Writes)] {
            for name in names {
                let said = format!("{} k\r\n", name.to_lowercase());
                assert_eq!(
                    Access::of(said.as_bytes()),
                    Some((does, &b"k"[..])),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn keys_are_found_where_they_are_at_hand() {
        let set = b"*3\r\n$3\r\nset\r\n$5\r\na\r\nbc\r\n$1\r\nv\r\n";
        assert_eq!(Access::of(set), Some((Access::Writes, &b"a\r\nbc"[..])));
        let key_ends = set.len() - 9;
        for end in 0..set.len() {
            let found = Access::of(&set[..end]);
            assert_eq!(found.is_some(), end >= key_ends, "{end}");
        }
        assert_eq!(
            Access::of(b"GET  key\r\n"),
            Some((Access::Reads, &b"key"[..]))
        );
        for none in [
            &b""[..],
            b"*",
            b"\r\n",
            b"PING\r\n",
            b"GET\r\n",
            b"*1\r\n$3\r\nGET\r\n$1\r\nk\r\n",
            b"*-1\r\n",
            b"*2\r\n$3\r\nGET\r\n$-1\r\n",
            b"*2\r\n$5\r\nBLPOP\r\n$1\r\nk\r\n",
            b"*2\r\n$4\r\nAUTH\r\n$1\r\nk\r\n",
        ] {
            assert_eq!(Access::of(none), None, "{:?}", none.escape_ascii());
        }
    }
}
