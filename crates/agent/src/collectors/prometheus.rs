//! An endpoint in Prometheus' text form, fetched over plain HTTP once a second by a thread of its own.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use ascar_messaging::Fault;

use super::heard::{Heard, Latest};
use crate::LOG;
use crate::glob;

/// Most of a page that is read.
const PAGE_BYTES_MAX: u64 = 4 << 20;
const PATIENCE: Duration = Duration::from_secs(10);
const EVERY: Duration = Duration::from_secs(1);

/// Where the endpoint is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
    path: String,
}

impl Address {
    /// # Errors
    /// When it is not an address of plain HTTP.
    pub fn parse(url: &str) -> Result<Self, Fault> {
        let wrong = || {
            Fault(format!(
                "collector.url = {url:?}: must be http://HOST:PORT/PATH"
            ))
        };
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
        let (place, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/metrics"),
        };
        let (host, port) = place.rsplit_once(':').unwrap_or((place, "80"));
        let is_fine = |text: &str| text.bytes().all(|it| it.is_ascii_graphic());
        if host.is_empty() || !is_fine(host) || !is_fine(path) {
            return Err(wrong());
        }
        Ok(Self {
            host: host.to_owned(),
            port: port.parse().map_err(|_| wrong())?,
            path: path.to_owned(),
        })
    }

    fn fetch(&self) -> std::io::Result<String> {
        let error = || std::io::Error::other("has no address");
        let address = (self.host.as_str(), self.port)
            .to_socket_addrs()?
            .next()
            .ok_or_else(error)?;
        let mut socket = TcpStream::connect_timeout(&address, PATIENCE)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        // Of version 1.0, so that nothing comes in chunks.
        let request = format!(
            "GET {} HTTP/1.0\r\nHost: {}:{}\r\nAccept: text/plain;version=0.0.4\r\nConnection: close\r\n\r\n",
            self.path, self.host, self.port
        );
        socket.write_all(request.as_bytes())?;
        let mut page = Vec::new();
        socket.take(PAGE_BYTES_MAX).read_to_end(&mut page)?;
        let page = String::from_utf8_lossy(&page);
        let (head, body) = page
            .split_once("\r\n\r\n")
            .ok_or_else(|| std::io::Error::other("does not speak HTTP"))?;
        if head.split_ascii_whitespace().nth(1) != Some("200") {
            let status: String = head
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(80)
                .collect();
            return Err(std::io::Error::other(format!("answers {status}")));
        }
        Ok(body.to_owned())
    }
}

/// Fetches the page again and again; an error is said once until a page comes.
pub fn start(name: String, address: Address, metrics: Vec<String>, stale_s: f64) -> Heard {
    let label = name.clone();
    Heard::of(name, stale_s, move |latest| {
        let mut said = false;
        loop {
            match address.fetch() {
                Ok(page) => {
                    said = false;
                    take(&page, &metrics, latest);
                }
                Err(error) if !said => {
                    said = true;
                    LOG.line(format_args!(
                        "collector {label}: {}:{}: {error}",
                        address.host, address.port
                    ));
                }
                Err(_) => {}
            }
            std::thread::sleep(EVERY);
        }
    })
}

/// Takes a page in: `name{labels} value [timestamp]` a line. Counters get `_total` behind their name where they have it
/// not, which makes rates of them.
pub fn take(page: &str, metrics: &[String], latest: &Latest) {
    let mut counters = HashSet::new();
    let said = page.lines().filter_map(|line| {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let mut words = rest.split_ascii_whitespace();
            if let (Some(name), Some("counter" | "histogram" | "summary")) =
                (words.next(), words.next())
            {
                counters.insert(name);
            }
            return None;
        }
        let (full, name, value) = read(line)?;
        if !metrics.iter().any(|pattern| glob::fits(pattern, &full)) {
            return None;
        }
        let base = ["_sum", "_count", "_bucket"]
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(name);
        let is_total =
            (counters.contains(name) || counters.contains(base)) && !full.contains("quantile=");
        let key = if is_total {
            format!("{}_total", full.replace("_total", ""))
        } else {
            full
        };
        Some((key, value))
    });
    latest.put(said, Instant::now());
}

/// The name with its labels, the name alone, the value.
fn read(line: &str) -> Option<(String, &str, f64)> {
    if line.starts_with('#') {
        return None;
    }
    let (name, labels, rest) = match line.find('{') {
        // The last one: a label's value may hold one.
        Some(open) => {
            let close = line.rfind('}').filter(|close| *close > open)?;
            (&line[..open], &line[open..=close], &line[close + 1..])
        }
        None => {
            let (name, rest) = line.split_once([' ', '\t'])?;
            (name, "", rest)
        }
    };
    let value: f64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == ':';
    let is_fine = !name.is_empty() && name.chars().all(is_name) && value.is_finite();
    is_fine.then(|| (format!("{name}{}", labels.replace('"', "")), name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# HELP a b\n# TYPE reads_total counter\nreads_total{disk=\"vda\"} 5\n# TYPE depth gauge\ndepth 7 1700000000\n\
        # TYPE wait histogram\nwait_sum 4.5\nwait_count 2\nwait_bucket{le=\"+Inf\"} 2\nother 1\nbad{ 3\nnone NaN\n{} 1\n\u{0} 2\n";

    #[test]
    fn counters_become_rates_and_gauges_levels() {
        let latest = Latest::default();
        take(
            PAGE,
            &[
                "reads*".to_owned(),
                "depth".to_owned(),
                "wait_*".to_owned(),
                "none".to_owned(),
            ],
            &latest,
        );
        let values = latest.values();
        let names: Vec<(&str, f64)> = values.iter().map(|it| (it.0.as_str(), *it.1)).collect();
        assert_eq!(
            names,
            [
                ("depth", 7.0),
                ("reads{disk=vda}_total", 5.0),
                ("wait_bucket{le=+Inf}_total", 2.0),
                ("wait_count_total", 2.0),
                ("wait_sum_total", 4.5),
            ]
        );
    }

    #[test]
    fn pages_are_fetched_and_errors_said() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            for answer in [
                "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n",
                "HTTP/1.1 404 Not Found\r\n\r\n",
                "garbage",
            ] {
                let (mut socket, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                let _ = socket.read(&mut request).unwrap();
                socket.write_all(answer.as_bytes()).unwrap();
            }
        });
        let address = Address::parse(&format!("http://127.0.0.1:{port}")).unwrap();
        assert_eq!(address.path, "/metrics");
        assert_eq!(address.fetch().unwrap(), "a 1\n");
        assert!(address.fetch().unwrap_err().to_string().contains("404"));
        assert!(address.fetch().is_err());
        server.join().unwrap();
        for wrong in [
            "https://a",
            "http://",
            "http://a:b/",
            "ftp://x",
            "http://a/ b",
        ] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }
}
