//! Our own metrics, for whoever asks over HTTP.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ascar_messaging::Fault;

/// The page as it is now.
pub type Page = Arc<Mutex<String>>;

/// Serves the page.
///
/// # Errors
/// When the address cannot be listened on.
pub fn serve(address: &str, page: Page) -> Result<(), Fault> {
    let wrong = |error: std::io::Error| Fault(format!("prometheus = {address:?}: {error}"));
    let listener = TcpListener::bind(address).map_err(wrong)?;
    let work = move || {
        for socket in listener.incoming().flatten() {
            let _ = answer(socket, &page);
        }
    };
    std::thread::Builder::new()
        .name("prometheus".to_owned())
        .spawn(work)
        .map_err(wrong)?;
    Ok(())
}

fn answer(mut socket: std::net::TcpStream, page: &Page) -> std::io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    socket.set_write_timeout(Some(Duration::from_secs(1)))?;
    let mut request = [0; 2048];
    let count = socket.read(&mut request)?;
    let is_asked =
        request[..count].starts_with(b"GET /metrics ") || request[..count].starts_with(b"GET / ");
    let (status, body) = if is_asked {
        (
            "200 OK",
            page.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        )
    } else {
        ("404 Not Found", "GET /metrics\n".to_owned())
    };
    write!(
        socket,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Counters and gauges, as text.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    /// One metric without labels.
    pub fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.0.push_str(&format!(
            "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"
        ));
    }

    /// One metric with a value for each of a label's words.
    pub fn many<'a>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        label: &str,
        values: impl Iterator<Item = (&'a str, f64)>,
    ) {
        self.0
            .push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        for (word, value) in values {
            let word = word
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', " ");
            self.0
                .push_str(&format!("{name}{{{label}=\"{word}\"}} {value}\n"));
        }
    }

    /// All of it.
    pub fn whole(self) -> String {
        self.0
    }
}
