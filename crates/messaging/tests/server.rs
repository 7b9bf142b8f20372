//! Against the real server where there is one: `nats-server` from PATH or the project's environment.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
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
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port();
    let child = Command::new(binary)
        .args(["-a", "127.0.0.1", "-p", &port.to_string()])
        .args(arguments)
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("nats-server starts");
    let started = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "nats-server does not listen"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(Server { child, port })
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

#[test]
fn messages_and_replies_arrive() {
    let Some(server) = start(&[]) else { return };
    let options = Options::local(&format!("nats://127.0.0.1:{}", server.port));
    let mut service = Link::connect(&options, "service").unwrap();
    service.subscribe("a.*");
    assert!(service.flush(Duration::from_secs(5)).unwrap());
    let asked = std::thread::spawn(move || {
        let message = service.receive(soon()).unwrap().unwrap();
        service.publish(message.reply.as_deref().unwrap(), None, &message.payload);
        service.flush(Duration::from_secs(5)).unwrap();
        message
    });
    // The server may not know of the subscription yet.
    let mut client = Link::connect(&options, "client").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let payload = [0_u8, 10, 13, 255].repeat(50_000);
    let reply = client
        .request("a.b", &payload, Duration::from_secs(10))
        .unwrap()
        .unwrap();
    assert_eq!(reply.payload, payload);
    assert_eq!(asked.join().unwrap().subject, "a.b");
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
