//! Pages of HTML in one file, without scripts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Returns a page with that title, style sheet and body. It loads nothing and runs nothing, whatever the body contains.
pub fn self_contained(title: &str, style: &str, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body { (body) }
        }
    };
    markup.into_string()
}
