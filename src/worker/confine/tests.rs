use std::io;
use std::process::Command;

/// The operations that a confined process attempts; each must fail, except the computation at the end.
fn attempts() -> Vec<(&'static str, io::Result<()>)> {
    vec![
        ("read a file", std::fs::read("/etc/passwd").map(drop)),
        ("write a file", std::fs::write("/tmp/lispbox-was-here", "")),
        ("list a folder", std::fs::read_dir("/").map(drop)),
        ("look at itself", std::fs::read("/proc/self/maps").map(drop)),
        ("connect", std::net::TcpStream::connect("127.0.0.1:9").map(drop)),
        ("listen", std::net::TcpListener::bind("127.0.0.1:0").map(drop)),
        ("send datagrams", std::net::UdpSocket::bind("127.0.0.1:0").map(drop)),
        ("make a socket", std::os::unix::net::UnixStream::pair().map(drop)),
        ("start a program", Command::new("/bin/true").status().map(drop)),
        // SAFETY: system calls on integers alone, which fail.
        ("signal others", result(unsafe { libc::kill(1, 0) })),
        ("fork", result(unsafe { libc::fork() })),
        ("trace", result(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } as i32)),
        ("make code", {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
            // SAFETY: a fresh mapping that nothing else uses, if it succeeds at all.
            let page = unsafe { libc::mmap(std::ptr::null_mut(), 4_096, all, flags, -1, 0) };
            result(if page == libc::MAP_FAILED { -1 } else { 0 })
        }),
        // SAFETY: a system call on one live struct.
        ("lift its limits", {
            let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
            result(unsafe { libc::setrlimit(libc::RLIMIT_DATA, &limit) })
        }),
    ]
}

fn result(code: i32) -> io::Result<()> {
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The body of the process that the test below starts; does nothing on its own.
#[test]
fn confined_process() {
    if std::env::var_os("LISPBOX_TEST_CONFINED").is_none() {
        return;
    }
    let walls = super::confine().expect("this system confines processes");
    println!("walls: {}", walls.join(" "));
    let attempts = attempts();
    println!("attempts: {}", attempts.len());
    for (what, outcome) in attempts {
        let code = outcome.err().and_then(|problem| problem.raw_os_error());
        println!(
            "{what}: {}",
            if code == Some(libc::EPERM) || code == Some(libc::EACCES) { "refused" } else { "done" }
        );
    }
    let sum = std::thread::spawn(|| (0..1_000_000_u64).sum::<u64>()).join();
    println!("computed: {}", sum.expect("threads run"));
}

#[test]
fn a_confined_process_computes_and_does_nothing_else() {
    let own = std::env::current_exe().expect("the test has a file");
    let output = Command::new(own)
        .args(["--exact", "worker::confine::tests::confined_process", "--nocapture", "--test-threads=1"])
        .env("LISPBOX_TEST_CONFINED", "1")
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("walls: landlock seccomp\n"), "{text}");
    assert!(text.contains("attempts: 14\n"), "{text}");
    assert_eq!(text.matches(": refused\n").count(), 14, "{text}");
    assert!(text.contains("computed: 499999500000\n"), "{text}");
}
