//! The page of `lispbox approvals open`, on a loopback address: the person at this machine decides on it, and no web site.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::desktop::{Home, continued, run_of};

/// A request to the page; the response with its head.
pub fn request(address: &str, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let host = if headers.contains("Host:") { String::new() } else { format!("Host: {address}\r\n") };
    let length = body.len();
    let kind = if body.is_empty() { "" } else { "Content-Type: application/x-www-form-urlencoded\r\n" };
    let text = format!(
        "{method} {path} HTTP/1.1\r\n{host}{headers}{kind}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it answers");
    response
}

/// The page of `approvals open`; ended on drop.
pub struct Page {
    process: Child,
    /// Its host, with the port.
    pub place: String,
    /// The path that opens it once.
    pub opening: String,
}

impl Page {
    /// Starts the page of a run, without a browser.
    pub fn of(home: &Home, run: &str) -> Page {
        let mut command = home.command(&["approvals", "open", "--no-browser", run]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
        let mut address = String::new();
        let output = process.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut address).expect("an address");
        let (place, path) =
            address.trim().strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
        Page { process, place: place.to_owned(), opening: format!("/{path}") }
    }

    /// Opens it, and returns the cookie of the browser.
    pub fn cookie(&self) -> String {
        let opened = request(&self.place, "GET", &self.opening, "", "");
        let (_, cookie) = opened.split_once("set-cookie: ").unwrap_or_else(|| panic!("no cookie: {opened}"));
        cookie.split(';').next().expect("a value").to_owned()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The value of a field of the first form of a page that has it.
pub fn field(shown: &str, name: &str) -> String {
    let (_, rest) = shown.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{name}: {shown}"));
    rest.split('"').next().expect("a value").to_owned()
}

#[test]
fn a_person_without_a_terminal_decides_on_a_page_that_opens_once() {
    let home = Home::new().with_notes();
    let mut client = home.client();
    let waits = client.eval("(notes/share {:line \"hello\"})");
    let run = run_of(&waits);
    assert!(waits.text.contains("`lispbox approvals open` shows it in a browser"), "{}", waits.text);
    assert!(home.ends(0, &["doctor"]).contains("1 program waiting for you; `lispbox approvals open` shows them"));

    let page = Page::of(&home, &run);
    let (place, path) = (&*page.place, &*page.opening);

    // Another name of this machine, a wrong key, and no key open nothing.
    assert!(request(place, "GET", path, "Host: evil.example\r\n", "").starts_with("HTTP/1.1 403"));
    assert!(request(place, "GET", "/approvals/open?key=0", "", "").starts_with("HTTP/1.1 403"));
    assert!(request(place, "GET", "/approvals/open", "", "").starts_with("HTTP/1.1 403"));
    assert!(request(place, "GET", &format!("/approvals/runs/{run}"), "", "").contains("/approvals/sign-in"));
    let opened = request(place, "GET", path, "", "");
    assert!(
        opened.starts_with("HTTP/1.1 303") && opened.contains(&format!("location: /approvals/runs/{run}")),
        "{opened}"
    );
    let (_, cookie) = opened.split_once("set-cookie: ").expect("a cookie");
    let cookie = cookie.split(';').next().expect("a value").to_owned();
    assert!(request(place, "GET", path, "", "").starts_with("HTTP/1.1 403"), "it opens once");

    let shown = request(place, "GET", &format!("/approvals/runs/{run}"), &format!("Cookie: {cookie}\r\n"), "");
    assert!(shown.contains("hello") && shown.contains("notes/share"), "{shown}");
    let form = format!("key={}&calls={}&action=approve", field(&shown, "key"), field(&shown, "calls"));
    let decide = |headers: &str| {
        let headers = format!("Cookie: {cookie}\r\n{headers}");
        request(place, "POST", &format!("/approvals/runs/{run}/decide"), &headers, &form)
    };
    for foreign in ["", "Origin: https://evil.example\r\n", "Origin: null\r\n"] {
        assert!(decide(foreign).starts_with("HTTP/1.1 403"), "{foreign}");
    }
    let decided = decide(&format!("Origin: http://{place}\r\n"));
    assert!(decided.starts_with("HTTP/1.1 303"), "{decided}");
    let answer = continued(&mut client, &run);
    assert!(!answer.is_error && answer.text.contains("added hello"), "{}", answer.text);
    assert_eq!(home.shared(), "hello\n");
}

#[test]
fn a_web_site_neither_sees_nor_decides_anything_on_the_page() {
    let home = Home::new().with_notes();
    let mut client = home.client();
    let run = run_of(&client.eval("(notes/share {:line \"hello\"})"));
    let page = Page::of(&home, &run);
    let (place, cookie) = (&*page.place, page.cookie());
    let (_, port) = place.split_once(':').expect("a port");
    let (shown, decide) = (format!("/approvals/runs/{run}"), format!("/approvals/runs/{run}/decide"));
    let with_cookie = |headers: &str| format!("Cookie: {cookie}\r\n{headers}");
    let seen = request(place, "GET", &shown, &with_cookie(""), "");
    let form = format!("key={}&calls=1.1&action=approve", field(&seen, "key"));

    // The name of a web site that resolves to this machine (DNS rebinding): the browser takes all for that site's own.
    for name in [&format!("evil.example:{port}"), "evil.example", "localhost.evil.example", "127.0.0.1.evil.example"] {
        let own = with_cookie(&format!("Host: {name}\r\nOrigin: http://{name}\r\nSec-Fetch-Site: same-origin\r\n"));
        for (method, path, body) in [
            ("GET", &shown, ""),
            ("GET", &page.opening, ""),
            ("POST", &decide, &form),
            ("GET", &"/approvals".to_owned(), ""),
        ] {
            let refused = request(place, method, path, &own, body);
            assert!(refused.starts_with("HTTP/1.1 403") && !refused.contains("hello"), "{name} {path}: {refused}");
        }
    }
    let two = format!("Host: {place}\r\nHost: evil.example\r\n");
    assert!(request(place, "GET", &shown, &with_cookie(&two), "").starts_with("HTTP/1.1 400"));
    // Another site, another port of this machine, and a page without an origin, by the same name.
    let own = format!("Origin: http://{place}\r\n");
    for foreign in [
        "Origin: http://127.0.0.1:1\r\n",
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Origin: file://\r\n",
        "",
        &format!("{own}Origin: http://evil.example\r\n"),
        &format!("Origin: http://{place}@evil.example\r\n"),
        &format!("Origin: http://user@{place}\r\n"),
        &format!("Origin: https://{place}\r\nSec-Fetch-Site: cross-site\r\n"),
        &format!("{own}Sec-Fetch-Site: same-site\r\n"),
        "Sec-Fetch-Site: none\r\n",
    ] {
        let refused = request(place, "POST", &decide, &with_cookie(foreign), &form);
        assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("Nothing was changed"), "{foreign}: {refused}");
    }
    // No sign-in, that of another page, no form of this sign-in, and forms that need no page.
    let other = Page::of(&home, &run);
    for headers in [own.clone(), format!("{own}Cookie: {}\r\n", other.cookie()), format!("{own}Cookie: {cookie}0\r\n")]
    {
        assert!(request(place, "POST", &decide, &headers, &form).starts_with("HTTP/1.1 403"), "{headers}");
    }
    for body in ["calls=1.1&action=approve", "key=&calls=1.1&action=approve", &form.replace("key=", "key=0")] {
        assert!(request(place, "POST", &decide, &with_cookie(&own), body).starts_with("HTTP/1.1 403"), "{body}");
    }
    let plain = format!("{own}Content-Type: text/plain\r\n");
    assert!(!request(place, "POST", &decide, &with_cookie(&plain), &form).starts_with("HTTP/1.1 303"));
    // A request that only reads decides on nothing, whatever it says.
    for (method, more) in [("GET", ""), ("HEAD", ""), ("PUT", ""), ("GET", "X-HTTP-Method-Override: POST\r\n")] {
        let path = format!("{decide}?{form}&_method=POST");
        let refused = request(place, method, &path, &with_cookie(&format!("{own}{more}")), "");
        assert!(refused.starts_with("HTTP/1.1 405"), "{method}: {refused}");
    }
    assert!(
        request(place, "GET", &format!("{shown}?{form}"), &with_cookie(&own), "")
            .contains("waits for a decision on 1 call")
    );
    // Nor is it shown within another page, or kept.
    for header in ["frame-ancestors 'none'", "x-frame-options: DENY", "cache-control: no-store", "default-src 'none'"] {
        assert!(seen.contains(header), "{header}: {seen}");
    }
    assert!(continued(&mut client, &run).text.contains("waits until a person has decided on 1 call"));
    assert_eq!(home.shared(), "");
}
