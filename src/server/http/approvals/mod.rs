//! The approvals page at `/approvals`: operators decide on the calls of programs that wait in the store.
//!
//! It needs neither scripts nor state in this process: an operator may use several instances with one store. All work
//! with the store is done on the blocking threads of the runtime, a few requests at a time.

mod grants;
mod list;
mod origin;
mod pages;
mod run;
mod sign_ins;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Path, RawQuery, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use maud::Markup;
use tokio::sync::Semaphore;

use crate::server::admission::shutdown::{SHUTTING_DOWN, Shutdown};
use crate::server::approvals::STYLE;
use crate::server::approvals::decide::{FormDecision, Outcome};
use crate::server::approvals::grants::StoredGrants;
use crate::server::identity::sha256;
use crate::server::runs::listing::StoredRuns;
use crate::server::runs::stored::StoredRun;
use crate::store::{Key, Store};

use super::connections::Peer;
use super::heads;
use super::tokens::Directory;

use pages::{message, path_of};
use sign_ins::{SignIns, SignedIn, cookie_of, set_cookie};

/// Maximum number of requests that use the store at the same time.
const TURNS: usize = 4;

/// Maximum time that a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum size of a form, in bytes.
const LARGEST: usize = 1 << 20;

/// What the requests for the page share.
pub(super) struct Approvals {
    sign_ins: SignIns,
    runs: StoredRuns,
    grants: StoredGrants,
    turns: Arc<Semaphore>,
    site: Site,
    shutdown: Arc<Shutdown>,
    /// The key that signs in once, and the token that it stands for, on a page for the person at this machine.
    opening: Mutex<Option<(String, String)>>,
}

/// The names by which browsers reach the page, and their time for a form.
pub(super) struct Site {
    /// Accepted `Host` names, in addition to `localhost` and addresses.
    pub(super) hosts: Vec<String>,
    /// Accepted origins of forms, in addition to that of the request.
    pub(super) origins: Vec<String>,
    /// Maximum time for a form to arrive.
    pub(super) arrival: Duration,
}

impl Approvals {
    /// Creates the page for the runs of a store, which those operators may use.
    pub(super) fn new(
        store: Arc<dyn Store>,
        operators: Arc<Directory>,
        principals: Arc<Directory>,
        site: Site,
        shutdown: Arc<Shutdown>,
    ) -> Approvals {
        Approvals {
            sign_ins: SignIns::new(Arc::clone(&store), operators, principals),
            runs: StoredRuns::new(Arc::clone(&store)),
            grants: StoredGrants::new(store),
            turns: Arc::new(Semaphore::new(TURNS)),
            site,
            shutdown,
            opening: Mutex::new(None),
        }
    }

    /// Lets the first request for `/approvals/open?key=KEY` sign in with a token.
    pub(super) fn opened_by(self, key: String, token: String) -> Approvals {
        Approvals { opening: Mutex::new(Some((key, token))), ..self }
    }

    /// Returns the token that a key stands for, once.
    fn taken(&self, key: &str) -> Option<String> {
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        // Hashes are compared, so that the time that it takes says nothing about the key.
        let is_key = |(known, _): &mut (String, String)| sha256(known.as_bytes()) == sha256(key.as_bytes());
        opening.take_if(is_key).map(|(_, token)| token)
    }

    /// Returns the routes.
    pub(super) fn route(self) -> Router {
        let page = Arc::new(self);
        Router::new()
            .route("/approvals", get(list))
            .route("/approvals/", get(|| async { see_other("/approvals") }))
            .route("/approvals/style.css", get(style))
            .route("/approvals/sign-in", get(sign_in).post(begin))
            .route("/approvals/sign-out", post(end))
            .route("/approvals/open", get(open))
            .route("/approvals/grants", get(list_grants).post(revoke))
            .route("/approvals/runs/{run}", get(show))
            .route("/approvals/runs/{run}/text/{address}", get(text))
            .route("/approvals/runs/{run}/decide", post(decide))
            .layer(from_fn_with_state(Arc::clone(&page), guard))
            .with_state(page)
    }

    /// Does work that blocks, in its turn.
    async fn work(self: Arc<Self>, work: impl FnOnce(&Approvals) -> Response + Send + 'static) -> Response {
        let turn = Arc::clone(&self.turns).acquire_owned();
        let Ok(Ok(turn)) = tokio::time::timeout(PATIENCE, turn).await else {
            return unavailable(None, "The server is busy. Try again in a moment.");
        };
        // A decision that is being recorded is waited for when the server shuts down.
        let Some(under_way) = self.shutdown.admit() else { return unavailable(None, SHUTTING_DOWN) };
        let worked = tokio::task::spawn_blocking(move || {
            let _held = (turn, under_way);
            work(&self)
        });
        worked.await.unwrap_or_else(|problem| {
            tracing::error!(%problem, "a request for the approvals page failed");
            let text = "The server could not answer. Its log has the reason.";
            answer(StatusCode::INTERNAL_SERVER_ERROR, message(None, "Failed", text, "/approvals"))
        })
    }

    /// Does work for an operator who has signed in, and has others sign in first; afterwards their browser goes to the
    /// run `to`.
    async fn of_operator(
        self: Arc<Self>,
        headers: &HeaderMap,
        to: Option<String>,
        work: impl FnOnce(&Approvals, &SignedIn) -> Response + Send + 'static,
    ) -> Response {
        let first = move || {
            see_other(&to.map_or("/approvals/sign-in".to_owned(), |run| format!("/approvals/sign-in?run={run}")))
        };
        let Some(cookie) = cookie_of(headers) else { return first() };
        let find = move |page: &Approvals| match page.sign_ins.find(Some(&cookie)) {
            Ok(Some(signed_in)) => work(page, &signed_in),
            Ok(None) => first(),
            Err(problem) => unavailable(None, &problem.to_string()),
        };
        self.work(find).await
    }

    /// Reads a form and does work for the operator who has sent it from the page.
    async fn of_form(
        self: Arc<Self>,
        request: Request,
        work: impl FnOnce(&Approvals, &SignedIn, Form) -> Response + Send + 'static,
    ) -> Response {
        let cookie = cookie_of(request.headers());
        let form = match self.form(request).await {
            Ok(form) => form,
            Err(response) => return *response,
        };
        let find = move |page: &Approvals| match page.sign_ins.find(cookie.as_deref()) {
            Ok(Some(signed_in)) if form.is_of(&signed_in) => work(page, &signed_in, form),
            Ok(_) => {
                let text = "Your sign-in has ended, or the form is from an earlier one. Nothing was changed. Sign in \
                            and try again.";
                answer(StatusCode::FORBIDDEN, message(None, "Sign in again", text, "/approvals/sign-in"))
            }
            Err(problem) => unavailable(None, &problem.to_string()),
        };
        self.work(find).await
    }

    async fn form(&self, request: Request) -> Result<Form, Box<Response>> {
        let refused = |status, text: &str| Box::new(answer(status, message(None, "Refused", text, "/approvals")));
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Expected a form of this page."));
        }
        match tokio::time::timeout(self.site.arrival, to_bytes(request.into_body(), LARGEST)).await {
            Ok(Ok(bytes)) => Ok(Form(form_urlencoded::parse(&bytes).into_owned().collect())),
            Ok(Err(_)) => Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "Expected a form of at most 1 MiB.")),
            Err(_) => Err(refused(StatusCode::REQUEST_TIMEOUT, "The form did not arrive in time.")),
        }
    }

    /// Finds a run that has not expired.
    ///
    /// # Errors
    /// Returns the page that says why it cannot be shown.
    fn find(&self, signed_in: &SignedIn, run: &str) -> Result<(Key, StoredRun), Box<Response>> {
        match self.runs.find(run) {
            Ok(Some((_, Ok(run)))) if run.is_expired() => Err(Box::new(expired(signed_in))),
            Ok(Some((key, Ok(run)))) => Ok((key, run)),
            Ok(Some((_, Err(problem)))) => Err(Box::new(unreadable(signed_in, &problem))),
            Ok(None) => Err(Box::new(missing(signed_in))),
            Err(problem) => Err(Box::new(unavailable(Some(signed_in), &problem.to_string()))),
        }
    }
}

/// The fields of a form.
struct Form(Vec<(String, String)>);

impl Form {
    fn field(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    /// True if the form is from a page that this operator was shown after signing in. Hashes are compared, so that the
    /// time that it takes says nothing about the secret.
    fn is_of(&self, signed_in: &SignedIn) -> bool {
        let hash = |text: &str| sha256(text.as_bytes());
        hash(&self.field("key").unwrap_or_default()) == hash(&signed_in.form_key)
    }
}

/// Refuses requests by unknown names of this machine, and forms of other web sites; protects all responses.
async fn guard(State(page): State<Arc<Approvals>>, request: Request, next: Next) -> Response {
    let refused = |text: &str| answer(StatusCode::FORBIDDEN, message(None, "Refused", text, "/approvals"));
    let mut response = if !heads::has_known_host(request.headers(), &page.site.hosts) {
        refused("The page is not served under this host name; `serve --host` names further ones.")
    } else if page.shutdown.is_closing() {
        unavailable(None, SHUTTING_DOWN)
    } else if *request.method() == Method::POST
        && let Some(reason) = origin::foreign(request.headers(), &page.site.origins)
    {
        tracing::warn!(reason, "a form of the approvals page was refused");
        refused(&format!("Nothing was changed: {reason}."))
    } else {
        next.run(request).await
    };
    origin::protect(response.headers_mut());
    response
}

async fn style() -> Response {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response()
}

async fn list(State(page): State<Arc<Approvals>>, headers: HeaderMap) -> Response {
    let listed = |page: &Approvals, signed_in: &SignedIn| match page.runs.list() {
        Ok(listed) => answer(StatusCode::OK, list::list(signed_in, listed)),
        Err(problem) => unavailable(Some(signed_in), &problem.to_string()),
    };
    page.of_operator(&headers, None, listed).await
}

async fn list_grants(State(page): State<Arc<Approvals>>, headers: HeaderMap) -> Response {
    let listed = |page: &Approvals, signed_in: &SignedIn| match page.grants.list() {
        Ok(listed) => answer(StatusCode::OK, grants::list(signed_in, &listed)),
        Err(problem) => unavailable(Some(signed_in), &problem.to_string()),
    };
    page.of_operator(&headers, None, listed).await
}

/// Revokes a grant.
async fn revoke(State(page): State<Arc<Approvals>>, request: Request) -> Response {
    let revoked = |page: &Approvals, signed_in: &SignedIn, form: Form| {
        let grant = form.field("grant").unwrap_or_default();
        let listed = match page.grants.list() {
            Ok(listed) => listed,
            Err(problem) => return unavailable(Some(signed_in), &problem.to_string()),
        };
        let Some((key, _)) = listed.into_iter().find(|(key, _)| key.handle == grant) else {
            let text = "There is no such grant: it was revoked, its time is over, or its calls are used up.";
            return answer(StatusCode::CONFLICT, message(Some(signed_in), "Not found", text, "/approvals/grants"));
        };
        match page.grants.revoke(&key) {
            Ok(()) => {
                tracing::info!(operator = signed_in.operator, grant, "an operator has revoked a grant");
                see_other("/approvals/grants")
            }
            Err(problem) => {
                let text = format!("The grant may still hold: {problem}");
                answer(StatusCode::CONFLICT, message(Some(signed_in), "Not revoked", &text, "/approvals/grants"))
            }
        }
    };
    page.of_form(request, revoked).await
}

async fn show(State(page): State<Arc<Approvals>>, Path(run): Path<String>, headers: HeaderMap) -> Response {
    let to = is_identity(&run).then(|| run.clone());
    let shown = move |page: &Approvals, signed_in: &SignedIn| match page.find(signed_in, &run) {
        Ok((key, found)) => answer(StatusCode::OK, run::run(signed_in, &key, &found, None)),
        Err(response) => *response,
    };
    page.of_operator(&headers, to, shown).await
}

async fn text(
    State(page): State<Arc<Approvals>>,
    Path((run, address)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let to = is_identity(&run).then(|| run.clone());
    let part = query_field(query, "part").and_then(|part| part.parse().ok()).unwrap_or(1);
    let shown = move |page: &Approvals, signed_in: &SignedIn| match page.find(signed_in, &run) {
        Ok((_, found)) => match run::find_text(&found, &address) {
            Some((name, text)) => answer(StatusCode::OK, run::text(signed_in, &run, &name, &text, &address, part)),
            None => {
                let text = "The call is not open any longer.";
                answer(StatusCode::NOT_FOUND, message(Some(signed_in), "Not found", text, &path_of(&run)))
            }
        },
        Err(response) => *response,
    };
    page.of_operator(&headers, to, shown).await
}

async fn decide(State(page): State<Arc<Approvals>>, Path(run): Path<String>, request: Request) -> Response {
    let decided = move |page: &Approvals, signed_in: &SignedIn, form: Form| {
        let decision = match FormDecision::read(|name| form.field(name)) {
            Ok(decision) => decision,
            Err(problem) => {
                let text = format!("Nothing was changed: {problem}.");
                return answer(StatusCode::BAD_REQUEST, message(Some(signed_in), "Refused", &text, "/approvals"));
            }
        };
        let by = format!("the approvals page, by {}", signed_in.operator);
        match decision.record(&page.runs, &page.grants, &run, &by) {
            Outcome::Recorded => {
                let (operator, calls) = (&signed_in.operator, decision.calls().join(", "));
                tracing::info!(operator, run, calls, decision = decision.word(), "an operator has decided");
                see_other(&path_of(&run))
            }
            Outcome::Returned(returned) => match page.find(signed_in, &run) {
                Ok((key, found)) => answer(StatusCode::BAD_REQUEST, run::run(signed_in, &key, &found, Some(&returned))),
                Err(response) => *response,
            },
            Outcome::Conflict(found, problem) => {
                answer(StatusCode::CONFLICT, pages::conflict(signed_in, &run, &found, &problem))
            }
            Outcome::Expired => expired(signed_in),
            Outcome::Missing => missing(signed_in),
            Outcome::Unreadable(problem) => unreadable(signed_in, &problem),
            Outcome::Unavailable(problem) => unavailable(Some(signed_in), &problem),
        }
    };
    page.of_form(request, decided).await
}

async fn sign_in(RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let to = query_field(query, "run").filter(|run| is_identity(run));
    let is_linked = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
    answer(StatusCode::OK, pages::sign_in(to.as_deref(), None, is_linked))
}

/// Signs an operator in.
async fn begin(State(page): State<Arc<Approvals>>, request: Request) -> Response {
    let address = request.extensions().get::<Peer>().map(|Peer(address)| *address);
    let again = |status, to: Option<&str>, problem: &str| answer(status, pages::sign_in(to, Some(problem), false));
    let Some(is_secure) = origin::is_secure(request.headers()) else {
        let problem = "Sign in through HTTPS: without it, others can read the token on its way.";
        return again(StatusCode::FORBIDDEN, None, problem);
    };
    if address.is_some_and(|address| !page.sign_ins.may_try(address)) {
        let problem = "There were too many attempts from your address. Try again in a minute.";
        let mut response = again(StatusCode::TOO_MANY_REQUESTS, None, problem);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
        return response;
    }
    let form = match page.form(request).await {
        Ok(form) => form,
        Err(response) => return *response,
    };
    let signed_in = move |page: &Approvals| {
        let to = form.field("run").filter(|run| is_identity(run));
        match page.sign_ins.begin(form.field("token").unwrap_or_default().trim()) {
            Ok(Some((operator, cookie))) => {
                tracing::info!(operator, "an operator has signed in");
                let response = see_other(&to.map_or("/approvals".to_owned(), |run| path_of(&run)));
                with_cookie(response, &set_cookie(Some(&cookie), is_secure))
            }
            Ok(None) => {
                tracing::warn!(address = address.map(|address| address.to_string()), "a sign-in was refused");
                again(StatusCode::FORBIDDEN, to.as_deref(), "No operator has this token.")
            }
            Err(problem) => unavailable(None, &problem),
        }
    };
    page.work(signed_in).await
}

/// Signs in the person who has opened the page at this machine, once.
async fn open(State(page): State<Arc<Approvals>>, RawQuery(query): RawQuery) -> Response {
    let to = query_field(query.clone(), "run").filter(|run| is_identity(run));
    let to = to.map_or("/approvals".to_owned(), |run| path_of(&run));
    let token = page.taken(&query_field(query, "key").unwrap_or_default());
    let signed_in = move |page: &Approvals| match token.map(|token| page.sign_ins.begin(&token)) {
        Some(Ok(Some((_, cookie)))) => with_cookie(see_other(&to), &set_cookie(Some(&cookie), false)),
        Some(Err(problem)) => unavailable(None, &problem),
        Some(Ok(None)) | None => {
            let text =
                "This address opens the page once, and it has been used. `lispbox approvals open` gives another one.";
            answer(StatusCode::FORBIDDEN, message(None, "Used already", text, "/approvals"))
        }
    };
    page.work(signed_in).await
}

/// Signs an operator out.
async fn end(State(page): State<Arc<Approvals>>, request: Request) -> Response {
    let cookie = cookie_of(request.headers());
    let is_secure = origin::is_secure(request.headers()).unwrap_or(true);
    let ended = move |page: &Approvals, signed_in: &SignedIn, _: Form| {
        if let Some(Err(problem)) = cookie.map(|cookie| page.sign_ins.end(&cookie)) {
            return unavailable(Some(signed_in), &problem.to_string());
        }
        tracing::info!(operator = signed_in.operator, "an operator has signed out");
        with_cookie(see_other("/approvals/sign-in"), &set_cookie(None, is_secure))
    };
    page.of_form(request, ended).await
}

/// True for a text that may be the identity of a run.
fn is_identity(run: &str) -> bool {
    !run.is_empty() && run.len() <= 64 && run.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn query_field(query: Option<String>, name: &str) -> Option<String> {
    let query = query?;
    form_urlencoded::parse(query.as_bytes()).find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

fn answer(status: StatusCode, page: Markup) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], page.into_string()).into_response()
}

fn see_other(to: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response()
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    let value = HeaderValue::try_from(cookie).expect("a cookie is ASCII");
    response.headers_mut().insert(header::SET_COOKIE, value);
    response
}

fn expired(signed_in: &SignedIn) -> Response {
    let text = "The run has expired: it waited too long. Its open calls were not made, and never will be.";
    answer(StatusCode::GONE, message(Some(signed_in), "Expired", text, "/approvals"))
}

fn missing(signed_in: &SignedIn) -> Response {
    let text = "There is no such run: it has expired, or never existed.";
    answer(StatusCode::NOT_FOUND, message(Some(signed_in), "Not found", text, "/approvals"))
}

fn unreadable(signed_in: &SignedIn, problem: &str) -> Response {
    let text = format!("The run cannot be read: {problem}");
    answer(StatusCode::INTERNAL_SERVER_ERROR, message(Some(signed_in), "Unreadable", &text, "/approvals"))
}

fn unavailable(signed_in: Option<&SignedIn>, problem: &str) -> Response {
    let page = message(signed_in, "Not available", problem, "/approvals");
    let mut response = answer(StatusCode::SERVICE_UNAVAILABLE, page);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    response
}
