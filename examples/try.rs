#[path = "../tests/common/mod.rs"]
mod common;
use std::io::Read;
use std::sync::Arc;
fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    // programs separated by lines of ---- each in own session; "++++" same session
    for session in text.split("\n----\n") {
        let mut s = common::session();
        for program in session.split("\n++++\n") {
            let r = s.eval(lispbox::lang::Request::new(program), Arc::new(common::Scripted::new()));
            println!("> {}\n{}", program.trim(), r.text(32768));
        }
    }
}
