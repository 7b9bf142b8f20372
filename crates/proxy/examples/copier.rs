//! What the least of proxies costs: two threads a connection that copy bytes between two unix sockets, and look at
//! nothing. `copier LISTEN SERVER`; `benchmarks/proxy_overhead.py` measures `ascard proxy` against it.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

const BUFFER_BYTES: usize = 64 << 10;

fn copy(mut from: &UnixStream, mut to: &UnixStream) {
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

fn serve(client: &UnixStream, server: &UnixStream) {
    thread::scope(|scope| {
        scope.spawn(|| copy(server, client));
        copy(client, server);
    });
}

fn main() -> std::io::Result<()> {
    let mut words = std::env::args().skip(1);
    let (Some(listen), Some(server)) = (words.next(), words.next()) else {
        return Err(std::io::Error::other(
            "two sockets are needed: LISTEN SERVER",
        ));
    };
    let listener = UnixListener::bind(listen)?;
    loop {
        let (client, _) = listener.accept()?;
        let server = UnixStream::connect(&server)?;
        thread::spawn(move || serve(&client, &server));
    }
}
