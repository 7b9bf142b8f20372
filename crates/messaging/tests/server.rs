//! Against the real server where there is one: `nats-server` from PATH or the project's environment.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ascar_messaging::{Link, Options};

struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn binary() -> Option<PathBuf> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/nats-server");
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::iter::once(own)
        .chain(std::env::split_paths(&path).map(|folder| folder.join("nats-server")))
        .find(|path| path.is_file())
}

fn start(arguments: &[&str]) -> Option<Server> {
    let Some(binary) = binary() else {
        eprintln!("skipped: nats-server is not installed");
        return None;
    };
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("ascar-nats-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let ports = folder.display().to_string();
    let mut child = Command::new(binary)
        .args(["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", &ports])
        .args(arguments)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("nats-server starts");
    let started = Instant::now();
    let file = folder.join(format!("nats-server_{}.ports", child.id()));
    let port = loop {
        assert!(
            started.elapsed() < Duration::from_secs(100) && child.try_wait().unwrap().is_none(),
            "nats-server does not listen"
        );
        if let Some(port) = told(&file) {
            break port;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let _ = std::fs::remove_dir_all(&folder);
    Some(Server { child, port })
}

/// The port that a server has written down, once it has.
fn told(file: &Path) -> Option<u16> {
    let ports: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    let address = ports["nats"][0].as_str()?;
    address.rsplit(':').next()?.parse().ok()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(100)
}

#[test]
fn messages_and_replies_arrive() {
    let Some(server) = start(&[]) else { return };
    let options = Options::local(&format!("nats://127.0.0.1:{}", server.port));
    let mut service = Link::connect(&options, "service").unwrap();
    service.subscribe("a.*");
    assert!(service.flush(Duration::from_secs(60)).unwrap());
    let serving = std::thread::spawn(move || {
        loop {
            let message = service.receive(soon()).unwrap().unwrap();
            service.publish(message.reply.as_deref().unwrap(), None, &message.payload);
            service.flush(Duration::from_secs(60)).unwrap();
            if message.payload.is_empty() {
                return message.subject;
            }
        }
    });
    let mut client = Link::connect(&options, "client").unwrap();
    // The server may not know of the subscription yet: what is asked then is lost.
    let mut ask = |subject: &str, payload: &[u8], patience| {
        (0..100)
            .find_map(|_| client.request(subject, payload, patience).unwrap())
            .expect("an answer")
            .payload
    };
    let payload = [0_u8, 10, 13, 255].repeat(50_000);
    assert_eq!(ask("a.b", &payload, Duration::from_secs(1)), payload);
    // It is known by now, and ends once it has answered.
    assert!(ask("a.end", &[], Duration::from_secs(100)).is_empty());
    assert_eq!(serving.join().unwrap(), "a.end");
}

#[test]
fn a_wrong_password_is_said_and_a_right_one_taken() {
    let Some(server) = start(&["--user", "u", "--pass", "secret"]) else {
        return;
    };
    let mut options = Options::local(&format!("nats://127.0.0.1:{}", server.port));
    let refused = Link::connect(&options, "x").unwrap_err();
    assert!(refused.0.contains("password"), "{refused}");
    options.user = Some("u".to_owned());
    options.password = Some("secret".to_owned());
    Link::connect(&options, "x").unwrap();
}

#[test]
fn a_server_that_dies_is_noticed() {
    let Some(mut server) = start(&[]) else { return };
    let options = Options::local(&format!("nats://127.0.0.1:{}", server.port));
    let mut link = Link::connect(&options, "x").unwrap();
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    assert!(link.receive(soon()).is_err());
    assert!(Link::connect(&options, "x").is_err());
}

#[test]
fn tls_is_spoken_with_the_authority_that_was_named_and_no_other() {
    let folder = std::env::temp_dir().join(format!("ascar-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    for name in ["own", "other"] {
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
            ])
            .args([
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
            ])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args([
                "-keyout",
                &file(&format!("{name}.key")),
                "-out",
                &file(&format!("{name}.pem")),
            ])
            .stderr(Stdio::null())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("skipped: openssl is not installed");
            return;
        }
    }
    let (certificate, key) = (file("own.pem"), file("own.key"));
    let Some(server) = start(&["--tls", "--tlscert", &certificate, "--tlskey", &key]) else {
        return;
    };
    let mut options = Options::local(&format!("nats://127.0.0.1:{}", server.port));
    // A server that wants TLS is told apart from one that is broken.
    let refused = Link::connect(&options, "x").unwrap_err();
    assert!(refused.0.contains("tls.ca"), "{refused}");
    options.url = format!("tls://127.0.0.1:{}", server.port);
    options.tls.ca = Some(file("other.pem").into());
    let refused = Link::connect(&options, "x").unwrap_err();
    assert!(refused.0.contains("TLS"), "{refused}");
    options.tls.ca = Some(certificate.clone().into());
    let mut link = Link::connect(&options, "x").unwrap();
    let payload = vec![7; 100_000];
    link.subscribe("never");
    assert!(
        link.request("nobody", &payload, Duration::from_millis(200))
            .unwrap()
            .is_none()
    );
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn bytes_in_clear_behind_the_greeting_are_not_taken_for_what_tls_brings() {
    use std::io::{Read, Write};
    let folder = std::env::temp_dir().join(format!("ascar-clear-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let ca = folder.join("ca.pem");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=x"])
        .args(["-keyout", "/dev/null", "-out", ca.to_str().unwrap()])
        .stderr(Stdio::null())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: openssl is not installed");
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = Options::local(&format!(
        "tls://127.0.0.1:{}",
        listener.local_addr().unwrap().port()
    ));
    options.tls.ca = Some(ca);
    // No key is needed for this: whoever is on the way to the server can do it.
    let between = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket
            .write_all(b"INFO {\"tls_required\":true}\r\nPONG\r\nMSG a 1 2\r\nhi\r\n")
            .unwrap();
        let mut heard = Vec::new();
        let _ = socket.read_to_end(&mut heard);
        heard
    });
    let refused = Link::connect(&options, "x").unwrap_err();
    assert!(refused.0.contains("in clear"), "{refused}");
    // Not even the handshake was begun.
    assert!(between.join().unwrap().is_empty());
    let _ = std::fs::remove_dir_all(&folder);
}
