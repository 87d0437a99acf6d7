use std::time::Duration;

use serde_json::json;

use super::*;
use crate::lang::{Failure, Status};

fn pair() -> (UnixStream, Reports) {
    let (far, near) = UnixStream::pair().expect("the system has sockets");
    (far, Reports::new(near))
}

const SOON: Duration = Duration::from_millis(20);

#[test]
fn what_is_sent_in_pieces_comes_whole() {
    let (mut far, mut reports) = pair();
    let text = "é".repeat(PIECE);
    let mut frame = Vec::new();
    send(&mut frame, &Report::Print(text.clone())).expect("it is written");
    send(&mut frame, &Report::Print("next".to_string())).expect("it is written");
    let (first, rest) = frame.split_at(HEAD + 1_000);
    far.write_all(first).expect("there is room");
    assert!(reports.next(SOON, 1 << 30).expect("it is no error").is_none());
    let rest = rest.to_vec();
    let feeding = std::thread::spawn(move || far.write_all(&rest));
    let wait = Duration::from_secs(60);
    assert!(matches!(reports.next(wait, 1 << 30), Ok(Some(Report::Print(came))) if came == text));
    assert!(matches!(reports.next(wait, 1 << 30), Ok(Some(Report::Print(came))) if came == "next"));
    feeding.join().expect("the thread ends").expect("all is written");
    assert_eq!(reports.next(wait, 1 << 30).expect_err("nothing comes any more").kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn a_frame_that_is_too_long_is_refused_before_it_comes() {
    let (mut far, mut reports) = pair();
    far.write_all(&u64::MAX.to_le_bytes()).expect("there is room");
    let problem = reports.next(SOON, 1_000).expect_err("it is too long");
    assert_eq!(problem.to_string(), format!("got a frame of {} bytes; at most 1000 are allowed", u64::MAX));
}

#[test]
fn nonsense_is_an_error() {
    let (mut far, mut reports) = pair();
    far.write_all(&3_u64.to_le_bytes()).expect("there is room");
    far.write_all(&[255; 3]).expect("there is room");
    assert!(reports.next(SOON, 1_000).is_err());
}

#[test]
fn a_reply_is_the_same_on_the_other_side() {
    let failure = Failure {
        error: "UnboundVariable".to_string(),
        message: "`x` is unknown".to_string(),
        line: Some(3),
        trace: vec!["f (program 1:2)".to_string()],
        rendered: "rendered".to_string(),
        ..Failure::default()
    };
    let failed = Reply { status: Status::Error, failure: Some(failure), prints: "a\n".to_string(), ..Reply::default() };
    let numbers = json!({"a": [1, 1.1, 1e300, 0.1, -5, u64::MAX, 2.2250738585072014e-308], "b": null});
    let value = Reply { value: Some("{…}".to_string()), json: Some(numbers), ..Reply::default() };
    let nothing = Reply { value: Some("nil".to_string()), json: Some(json!(null)), ..Reply::default() };
    for reply in [failed, value, nothing, Reply::default()] {
        let Done::Evaluated(text) = Done::evaluated(&reply) else { panic!("it was evaluated") };
        let came = serde_json::from_str::<Reply>(&text).expect("it is a reply");
        assert_eq!(format!("{came:?}"), format!("{reply:?}"));
    }
}
