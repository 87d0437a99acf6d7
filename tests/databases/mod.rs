//! Real databases for tests: Redis and PostgreSQL servers, each in its own folder, that can be stopped and killed.
//! PostgreSQL refuses to run as root; in that case it runs as the user `postgres`, which its package creates.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lispbox::store::open;

use super::peers::peer;

/// Password of the databases, which must not appear in any message.
pub const PASSWORD: &str = "Geheimnis-of-the-test";

/// The supported databases, apart from SQLite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Redis,
    Postgres,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 2] = [Kind::Redis, Kind::Postgres];
}

/// Runs a check on a new store of each kind that is installed, with the store's URL.
pub fn on_each_store(check: impl Fn(&str)) {
    let folder = tempfile::tempdir().expect("a folder");
    check(&format!("sqlite:{}", folder.path().join("sessions.db").display()));
    for kind in Kind::ALL {
        if let Some(database) = Database::start(kind) {
            check(&database.url());
        }
    }
}

/// A running database server, which is ended on drop.
pub struct Database {
    kind: Kind,
    folder: tempfile::TempDir,
    port: u16,
    process: Option<Child>,
    /// True if connections are encrypted.
    is_encrypted: bool,
}

impl Database {
    /// Starts a fresh server; `None` if the machine has none, in which case the test is skipped.
    pub fn start(kind: Kind) -> Option<Database> {
        Database::start_as(kind, false)
    }

    /// Starts a fresh server for TLS connections; see [`Database::start`].
    pub fn start_encrypted(kind: Kind) -> Option<Database> {
        Database::start_as(kind, true)
    }

    fn start_as(kind: Kind, is_encrypted: bool) -> Option<Database> {
        let folder = tempfile::tempdir().expect("a folder");
        if is_encrypted {
            certify(&program("openssl")?, folder.path(), &["certificate", "stranger"]);
        }
        match kind {
            Kind::Redis => drop(program("redis-server")?),
            Kind::Postgres => initialize(&program("initdb")?, folder.path()),
        }
        let mut database = Database { kind, folder, port: 0, process: None, is_encrypted };
        // Another process may take the free port before the server does.
        for _ in 0..5 {
            database.port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("free").port();
            if database.launch() {
                return Some(database);
            }
        }
        panic!("{kind:?} does not start: {}", database.log());
    }

    /// Returns the URL of the server as a store, including the password.
    pub fn url(&self) -> String {
        self.url_at(self.address())
    }

    /// Returns the URL for a relay at another address, including the password.
    pub fn url_at(&self, address: SocketAddr) -> String {
        let (scheme, mode) = if self.is_encrypted { ("rediss", "?sslmode=require") } else { ("redis", "") };
        match self.kind {
            Kind::Redis => format!("{scheme}://:{PASSWORD}@{address}/3"),
            Kind::Postgres => format!("postgres://lispbox:{PASSWORD}@{address}/postgres{mode}"),
        }
    }

    /// Returns the paths of the server's own certificate and of an unrelated one with the same name.
    pub fn certificates(&self) -> [PathBuf; 2] {
        ["certificate.pem", "stranger.pem"].map(|name| self.folder.path().join(name))
    }

    /// The address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Sends a command to the server in its own language, through its command-line client.
    pub fn tell(&self, words: &str) {
        let mut command = match self.kind {
            Kind::Redis => {
                let mut command = Command::new(program("redis-cli").expect("it comes with the server"));
                command.args(["-e", "-p", &self.port.to_string(), "-n", "3"]).args(words.split(' '));
                command.env("REDISCLI_AUTH", PASSWORD);
                command
            }
            Kind::Postgres => {
                let mut command = Command::new(program("psql").expect("it comes with the server"));
                command.args([&self.url(), "-c", words]);
                command
            }
        };
        let told = command.output().expect("it runs");
        assert!(told.status.success(), "{told:?}");
    }

    /// Kills the server and all of its child processes at once, as a crash does.
    pub fn kill(&mut self) {
        self.signal("KILL");
        if let Some(mut process) = self.process.take() {
            process.wait().expect("a child");
        }
    }

    /// Restarts the server on the same data, and waits until it is ready.
    pub fn restart(&mut self) {
        assert!(self.launch(), "{:?} does not start again: {}", self.kind, self.log());
    }

    /// Suspends the server: its connections stay open, and it does not answer.
    pub fn stop(&self) {
        self.signal("STOP");
    }

    /// Resumes the server after [`Database::stop`].
    pub fn go_on(&self) {
        self.signal("CONT");
    }

    /// Starts the server, and returns whether it is ready. For an encrypted one, checks only that it accepts
    /// connections.
    fn launch(&mut self) -> bool {
        let port = self.port.to_string();
        let log = File::create(self.folder.path().join("log")).expect("a log");
        let mut command = match self.kind {
            Kind::Redis => {
                let mut command = Command::new(program("redis-server").expect("it was there"));
                command.args(["--bind", "127.0.0.1", "--requirepass", PASSWORD, "--save", "", "--appendonly", "yes"]);
                command.current_dir(&self.folder);
                if self.is_encrypted {
                    command.args(["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"]);
                    command.args(["--tls-cert-file", "certificate.pem", "--tls-ca-cert-file", "certificate.pem"]);
                    command.args(["--tls-key-file", "certificate.key"]);
                } else {
                    command.args(["--port", &port]);
                }
                command
            }
            Kind::Postgres => {
                let mut command = Command::new(program("postgres").expect("it was there"));
                command.args(["-p", &port, "-h", "127.0.0.1", "-k", "", "-D", "data"]);
                if self.is_encrypted {
                    command.args(["-c", "ssl=on", "-c", "ssl_cert_file=../certificate.pem"]);
                    command.args(["-c", "ssl_key_file=../certificate.key"]);
                }
                as_its_user(&mut command, self.folder.path());
                command
            }
        };
        let log_too = log.try_clone().expect("a log");
        command.stdin(Stdio::null()).stdout(log).stderr(log_too);
        let (url, address, is_encrypted) = (self.url(), self.address(), self.is_encrypted);
        let answers = || if is_encrypted { TcpStream::connect(address).is_ok() } else { open(&url).is_ok() };
        let process = self.process.insert(command.spawn().expect("it runs"));
        let begun = Instant::now();
        while !answers() {
            if process.try_wait().expect("a child").is_some() || begun.elapsed() > Duration::from_secs(60) {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        true
    }

    fn signal(&self, signal: &str) {
        let Some(process) = &self.process else { return };
        let processes = family(process.id()).into_iter().map(|id| id.to_string());
        // A child process may have ended in the meantime.
        let _ = Command::new("kill").arg("-s").arg(signal).args(processes).stderr(Stdio::null()).status();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Initializes the data folder of a PostgreSQL server.
fn initialize(initdb: &Path, folder: &Path) {
    let password = folder.join("password");
    std::fs::write(&password, PASSWORD).expect("written");
    if let Some((user, group)) = its_user() {
        std::os::unix::fs::chown(folder, Some(user), Some(group)).expect("root may");
    }
    let mut command = Command::new(initdb);
    command.arg("--pgdata").arg(folder.join("data")).arg("--pwfile").arg(&password);
    command.args(["--no-sync", "--username=lispbox", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]);
    as_its_user(&mut command, folder);
    let made = command.output().expect("it runs");
    assert!(made.status.success(), "{made:?}");
}

/// Makes PostgreSQL run in its folder, as an unprivileged user.
fn as_its_user(command: &mut Command, folder: &Path) {
    if let Some((user, group)) = its_user() {
        command.uid(user).gid(group);
    }
    command.current_dir(folder);
}

/// Creates self-signed certificates for the loopback address, with their keys.
fn certify(openssl: &Path, folder: &Path, names: &[&str]) {
    for name in names {
        let mut command = Command::new(openssl);
        command.current_dir(folder).args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]);
        command.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]);
        command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        command.args(["-out", &format!("{name}.pem"), "-keyout", &format!("{name}.key")]);
        let made = command.output().expect("it runs");
        assert!(made.status.success(), "{made:?}");
        if let Some((user, group)) = its_user() {
            std::os::unix::fs::chown(folder.join(name).with_extension("key"), Some(user), Some(group))
                .expect("root may");
        }
    }
}

/// Returns the user and the group as which PostgreSQL runs, if this process is root.
fn its_user() -> Option<(u32, u32)> {
    let id = |arguments: &[&str]| {
        let output = Command::new("id").args(arguments).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).trim().parse().ok()
    };
    let postgres = |which| id(&[which, "postgres"]).expect("the package makes the user");
    (id(&["-u"]) == Some(0)).then(|| (postgres("-u"), postgres("-g")))
}

/// Finds a program of a database, including in the folders that Debian's packages use.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.extend(std::env::split_paths(&path));
    peer(name, folders.iter().map(|folder| folder.join(name)).find(|file| file.exists()))
}

/// Returns a process and its children.
fn family(process: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    std::iter::once(process).chain(children.split_whitespace().filter_map(|child| child.parse().ok())).collect()
}
