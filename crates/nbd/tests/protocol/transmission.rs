//! Requests and replies against bytes written by hand, and there and back again.

use ascar_nbd::numbers::{chunk_flag, chunk_kind, command_flag, transmission_flag};
use ascar_nbd::reply::ChunkError;
use ascar_nbd::{
    Chunk, Command, ErrorCode, PAYLOAD_BYTES_MAX, Parsed, ReplyHeader, Request, SimpleReply,
};
use proptest::prelude::*;

fn request(command: Command, offset_bytes: u64, length_bytes: u32) -> Request {
    Request {
        flags: 0,
        command,
        cookie: 7,
        offset_bytes,
        length_bytes,
    }
}

#[test]
fn a_write_is_a_header_and_the_data_behind_it() {
    let bytes =
        b"\x25\x60\x95\x13\x00\x01\x00\x01ABCDEFGH\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x02\x00";
    let Ok(Parsed::Found {
        value,
        consumed_bytes,
    }) = Request::parse(bytes)
    else {
        panic!("the header is whole");
    };
    assert_eq!(consumed_bytes, 28);
    assert_eq!((value.command, value.flags), (Command::Write, 1));
    assert_eq!(value.cookie, u64::from_be_bytes(*b"ABCDEFGH"));
    assert_eq!((value.offset_bytes, value.length_bytes), (1 << 32, 512));
    assert_eq!((value.payload_bytes(), value.reply_bytes()), (512, 0));
    assert_eq!(
        Request::parse(&bytes[..20]),
        Ok(Parsed::Needs { more_bytes: 8 })
    );
    let wrong = Request::parse(&[0; 28]).unwrap_err().0;
    assert_eq!(wrong, "a request: begins with 0x0; must be 0x25609513");
}

#[test]
fn only_a_payload_has_a_limit() {
    let long = |command| Request::parse(&request(command, 0, PAYLOAD_BYTES_MAX + 1).encode());
    assert!(
        long(Command::Write)
            .unwrap_err()
            .0
            .contains("at most 33554432")
    );
    assert!(long(Command::Read).is_ok() && long(Command::Trim).is_ok());
}

#[test]
fn replies_are_those_of_the_protocol() {
    let simple = b"\x67\x44\x66\x98\x00\x00\x00\x16\x00\x00\x00\x00\x00\x00\x00\x07";
    let reply = SimpleReply::new(7, Some(ErrorCode::Invalid));
    assert_eq!(&reply.encode(), simple);
    let found = ReplyHeader::parse(simple).unwrap();
    assert_eq!(
        found,
        Parsed::Found {
            value: ReplyHeader::Simple(reply),
            consumed_bytes: 16
        }
    );
    let read = request(Command::Read, 0x1000, 0x200);
    let header = ReplyHeader::Simple(SimpleReply::new(7, None));
    assert_eq!(header.payload_bytes(&read), 0x200);
    assert_eq!(header.payload_bytes(&request(Command::Flush, 0, 0)), 0);
    assert_eq!(ReplyHeader::Simple(reply).payload_bytes(&read), 0);

    let data = b"\x66\x8e\x33\xef\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x02\x08\
        \x00\x00\x00\x00\x00\x00\x10\x00";
    assert_eq!(&Chunk::data(&read), data);
    let Ok(Parsed::Found {
        value,
        consumed_bytes: 20,
    }) = ReplyHeader::parse(data)
    else {
        panic!("the header is whole");
    };
    assert_eq!((value.cookie(), value.payload_bytes(&read)), (7, 0x208));
    assert!(value.is_last() && !value.is_error());
    let ReplyHeader::Chunk(chunk) = value else {
        panic!("it is a chunk");
    };
    assert_eq!(chunk.read_bytes(), 0x200);

    let refusal = Chunk::refusal(7, ErrorCode::InputOutput, "why");
    assert_eq!(
        refusal,
        b"\x66\x8e\x33\xef\x00\x01\x80\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x09\
        \x00\x00\x00\x05\x00\x03why"
    );
    assert_eq!(
        ChunkError::parse(&refusal[20..]),
        Ok(ChunkError {
            error: 5,
            message: "why".to_owned()
        })
    );
    let long = Chunk::refusal(7, ErrorCode::InputOutput, &"é".repeat(4000));
    assert_eq!(ChunkError::parse(&long[20..]).unwrap().message.len(), 4096);
}

#[test]
fn chunks_whose_length_is_not_that_of_their_kind_are_refused() {
    let chunk = |kind, payload_bytes| {
        ReplyHeader::parse(
            &Chunk {
                flags: chunk_flag::DONE,
                kind,
                cookie: 1,
                payload_bytes,
            }
            .encode(),
        )
    };
    for (kind, payload_bytes) in [
        (chunk_kind::NONE, 1),
        (chunk_kind::OFFSET_DATA, 8),
        (chunk_kind::OFFSET_DATA, PAYLOAD_BYTES_MAX + 9),
        (chunk_kind::OFFSET_HOLE, 13),
        (chunk_kind::BLOCK_STATUS, 8),
        (chunk_kind::ERROR, 5),
    ] {
        assert!(
            chunk(kind, payload_bytes).is_err(),
            "{kind} {payload_bytes}"
        );
    }
    for (kind, payload_bytes) in [
        (chunk_kind::NONE, 0),
        (chunk_kind::OFFSET_DATA, PAYLOAD_BYTES_MAX + 8),
        (chunk_kind::OFFSET_HOLE, 12),
        (chunk_kind::BLOCK_STATUS, 12),
        (chunk_kind::ERROR_OFFSET, 14),
        (77, 3),
    ] {
        assert!(chunk(kind, payload_bytes).is_ok(), "{kind} {payload_bytes}");
    }
    assert!(ReplyHeader::parse(b"HTTP/1.1 400 Bad").is_err());
}

#[test]
fn an_export_refuses_what_it_cannot_do() {
    use transmission_flag as flag;
    let size = 1 << 20;
    let all = flag::HAS_FLAGS
        | flag::SEND_FLUSH
        | flag::SEND_FUA
        | flag::SEND_TRIM
        | flag::SEND_WRITE_ZEROES
        | flag::SEND_CACHE;
    let refused = |request: Request, flags| request.refusal(size, flags);
    let with = |command, flags| Request {
        flags,
        ..request(command, 0, 512)
    };
    for command in [
        Command::Read,
        Command::Write,
        Command::Flush,
        Command::Trim,
        Command::Cache,
        Command::WriteZeroes,
    ] {
        assert_eq!(refused(with(command, command_flag::FUA), all), None);
        assert_eq!(
            refused(with(command, command_flag::FUA), all & !flag::SEND_FUA),
            Some(ErrorCode::Invalid)
        );
        let beyond = request(command, size - 511, 512);
        let expected = match command {
            Command::Flush => None,
            Command::Write | Command::WriteZeroes => Some(ErrorCode::NoSpace),
            _ => Some(ErrorCode::Invalid),
        };
        assert_eq!(refused(beyond, all), expected, "{command:?}");
        let wrapped = request(command, u64::MAX, 512);
        assert_eq!(refused(wrapped, all), expected, "{command:?}");
        let read_only = command.changes().then_some(ErrorCode::Permission);
        assert_eq!(refused(with(command, 0), all | flag::READ_ONLY), read_only);
    }
    for command in [Command::BlockStatus, Command::Other(99), Command::Other(8)] {
        assert_eq!(refused(with(command, 0), all), Some(ErrorCode::Invalid));
    }
    for command in [
        Command::Flush,
        Command::Trim,
        Command::Cache,
        Command::WriteZeroes,
    ] {
        assert_eq!(
            refused(with(command, 0), flag::HAS_FLAGS),
            Some(ErrorCode::Invalid)
        );
    }
    let fast = with(Command::WriteZeroes, command_flag::FAST_ZERO);
    assert_eq!(refused(fast, all), Some(ErrorCode::Unsupported));
    assert_eq!(refused(fast, all | flag::SEND_FAST_ZERO), None);
    let whole = with(Command::Read, command_flag::DF);
    assert_eq!(refused(whole, all), Some(ErrorCode::Invalid));
    assert_eq!(refused(whole, all | flag::SEND_DF), None);
    for command in [Command::Read, Command::Cache] {
        let long = request(command, 0, PAYLOAD_BYTES_MAX + 1);
        assert_eq!(long.refusal(u64::MAX, all), Some(ErrorCode::Invalid));
        let longest = request(command, 0, PAYLOAD_BYTES_MAX);
        assert_eq!(longest.refusal(u64::MAX, all), None);
    }
}

fn any_request() -> impl Strategy<Value = Request> {
    (
        any::<u16>(),
        any::<u16>(),
        any::<u64>(),
        any::<u64>(),
        0..=PAYLOAD_BYTES_MAX,
    )
        .prop_map(
            |(flags, number, cookie, offset_bytes, length_bytes)| Request {
                flags,
                command: Command::of(number % 12),
                cookie,
                offset_bytes,
                length_bytes,
            },
        )
}

proptest! {
    #[test]
    fn requests_come_back_as_they_went(request in any_request(), rest in any::<[u8; 3]>()) {
        let mut bytes = request.encode().to_vec();
        bytes.extend_from_slice(&rest);
        prop_assert_eq!(Request::parse(&bytes), Ok(Parsed::Found { value: request, consumed_bytes: 28 }));
        // What is refused does not depend on luck: no combination panics.
        let _ = request.refusal(1 << 30, u16::MAX);
    }

    #[test]
    fn simple_replies_come_back_as_they_went(error in any::<u32>(), cookie in any::<u64>()) {
        let reply = SimpleReply { error, cookie };
        prop_assert_eq!(
            ReplyHeader::parse(&reply.encode()),
            Ok(Parsed::Found { value: ReplyHeader::Simple(reply), consumed_bytes: 16 })
        );
    }

    #[test]
    fn a_part_of_a_header_needs_its_rest(request in any_request(), at in 0_usize..28) {
        let bytes = request.encode();
        prop_assert_eq!(Request::parse(&bytes[..at]), Ok(Parsed::Needs { more_bytes: 28 - at }));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = (Request::parse(&bytes), ReplyHeader::parse(&bytes), ChunkError::parse(&bytes));
    }
}
