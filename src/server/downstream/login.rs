//! Logins to servers that require them (OAuth 2.1, by rmcp). A person logs in once, with `lispbox login`; the tokens
//! are stored in a file of that user and refreshed when they are used.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::http::Uri;
use axum::routing::get;
use rmcp::transport::auth::{
    AuthClient, AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, CredentialRefreshGuard,
    CredentialStore, OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRedirectPolicy,
    OAuthHttpRequest, StoredCredentials,
};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::server::identity::sha256;
use crate::server::secrets::{Secrets, names_a_secret};
use crate::server::system::folders::{lock, replace};
use crate::server::text::cut;

use super::http;
use super::kept_connections::Reuse;
use super::streamable::Http;

/// Timeout for a person to log in.
const PATIENCE: Duration = Duration::from_secs(300);
/// Timeout of one request.
const REQUEST: Duration = Duration::from_secs(20);
/// Maximum time for which a process waits while another one refreshes a login.
const REFRESH: Duration = Duration::from_secs(30);
/// Maximum size of a response of the authorization server, in bytes.
const LARGEST: usize = 1 << 20;

/// The login at the server of one address: a file with its tokens.
#[derive(Clone, Debug)]
pub(super) struct Login {
    url: String,
    /// `None` if logins are not stored.
    file: Option<PathBuf>,
    /// The secrets to which its tokens are added, so that they are redacted.
    secrets: Secrets,
}

impl Login {
    pub(super) fn new(folder: Option<&Path>, url: &str, secrets: &Secrets) -> Login {
        let digest = sha256(url.as_bytes());
        let file = folder.map(|folder| folder.join(format!("{}.json", &digest[..32])));
        Login { url: url.to_owned(), file, secrets: secrets.clone() }
    }

    /// Creates a client for the server that accepts replies of up to `largest` bytes and sends the token, if one is
    /// stored.
    pub(super) async fn client(&self, largest: usize, reuse: &Arc<Reuse>) -> Result<AuthClient<Http>, String> {
        let mut manager = self.manager().await?;
        // A login that cannot be used is ignored: the server then reports that it requires one.
        if let Err(problem) = manager.initialize_from_store().await {
            tracing::warn!(problem = %self.secrets.redact(&problem.to_string()), "a login cannot be used");
        }
        let connections = http::connections(&self.url, Arc::clone(reuse))?;
        Ok(AuthClient::new(Http::new(connections, largest), manager))
    }

    /// Adds the tokens of a stored login to the secrets.
    fn conceal(&self, kept: &[u8]) {
        fn tokens<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
            match value {
                Value::Object(fields) => {
                    for (name, value) in fields {
                        found.extend(value.as_str().filter(|_| names_a_secret(name)));
                        tokens(value, found);
                    }
                }
                Value::Array(items) => items.iter().for_each(|item| tokens(item, found)),
                _ => {}
            }
        }
        let Ok(kept) = serde_json::from_slice::<Value>(kept) else { return };
        let mut found = Vec::new();
        tokens(&kept, &mut found);
        self.secrets.renew(&self.url, found);
    }

    async fn manager(&self) -> Result<AuthorizationManager, String> {
        let requests = Requests {
            following: http::client(&self.url)?,
            stopping: http::client_with(&self.url, reqwest::redirect::Policy::none())?,
        };
        let manager = AuthorizationManager::new_with_oauth_http_client(self.url.as_str(), Arc::new(requests)).await;
        let mut manager = manager.map_err(|problem| problem.to_string())?;
        manager.set_credential_store(self.clone());
        Ok(manager)
    }

    /// Lets a person log in at the address that is passed to `show`, and stores the tokens.
    ///
    /// # Errors
    /// Returns the reason if the login fails.
    pub(super) async fn log_in(&self, show: impl FnOnce(&str)) -> Result<(), String> {
        let words = |problem: AuthError| cut(&self.secrets.redact(&problem.to_string()), 300);
        if self.file.is_none() {
            return Err("there is no folder to store it in: neither `XDG_CONFIG_HOME` nor `HOME` is set".into());
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|problem| problem.to_string())?;
        let origin = format!("http://{}", listener.local_addr().map_err(|problem| problem.to_string())?);
        let mut manager = self.manager().await?;
        manager.set_metadata(manager.resolve_metadata().await.map_err(words)?.metadata);
        let request = AuthorizationRequest::new(format!("{origin}/callback"))
            .with_client_name("lispbox")
            .with_initial_scope_selection();
        let session = AuthorizationSession::new(manager, request).await.map_err(|(_, problem)| match problem {
            AuthError::RegistrationFailed(_) => unregistered(&words(problem)),
            problem => words(problem),
        })?;
        show(session.get_authorization_url());
        let came = tokio::time::timeout(PATIENCE, redirected(listener)).await;
        let came = came.map_err(|_| format!("timed out after {} s waiting for the login", PATIENCE.as_secs()))?;
        let address = format!("{origin}{came}");
        if let Some(reason) = refusal(&address) {
            return Err(format!("the login was refused: {}", cut(&self.secrets.redact(&reason), 300)));
        }
        session.handle_callback_url(&address).await.map(drop).map_err(words)
    }
}

/// The message for an authorization server that does not register us, with its words.
fn unregistered(words: &str) -> String {
    format!(
        "its authorization server does not register lispbox as a client ({words}); if it gives you a token or a key, \
         put it into `headers` of the server: {{\"Authorization\": \"Bearer ${{TOKEN}}\"}}"
    )
}

/// Waits until the authorization server redirects the browser to us; returns the path and query of that request.
async fn redirected(listener: TcpListener) -> String {
    let (sender, mut receiver) = mpsc::channel(1);
    let answer = move |uri: Uri| async move {
        // Only the first request counts.
        let _ = sender.try_send(uri.to_string());
        "You can close this page and go back to lispbox."
    };
    let serving =
        tokio::spawn(async move { axum::serve(listener, Router::new().route("/callback", get(answer))).await });
    let came = receiver.recv().await.unwrap_or_default();
    serving.abort();
    came
}

/// The reason for which the authorization server refuses the login, if it does.
fn refusal(address: &str) -> Option<String> {
    let address = reqwest::Url::parse(address).ok()?;
    let said = |name: &str| address.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    said("error").map(|error| said("error_description").unwrap_or(error))
}

#[async_trait]
impl CredentialStore for Login {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let Some(file) = &self.file else { return Ok(None) };
        match fs::read(file) {
            Ok(text) => {
                self.conceal(&text);
                serde_json::from_slice(&text).map(Some).map_err(|problem| failed(&problem))
            }
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(problem) => Err(failed(&problem)),
        }
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let text = serde_json::to_vec(&credentials).map_err(|problem| failed(&problem))?;
        self.conceal(&text);
        let Some(file) = &self.file else { return Ok(()) };
        replace(file, &text).map_err(|problem| failed(&problem))
    }

    /// Two processes that refresh one login at once would use its refresh token twice, upon which many servers revoke the
    /// login. The later one goes on with the token that the earlier one has stored.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let Some(file) = self.file.as_ref().map(|file| file.with_extension("lock")) else { return Ok(None) };
        let locked = tokio::task::spawn_blocking(move || lock(&file, REFRESH)).await;
        let locked = locked.map_err(|problem| failed(&problem))?.map_err(|problem| failed(&problem))?;
        Ok(Some(CredentialRefreshGuard::new(locked)))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        match self.file.as_ref().map(fs::remove_file) {
            Some(Err(problem)) if problem.kind() != io::ErrorKind::NotFound => Err(failed(&problem)),
            _ => Ok(()),
        }
    }
}

fn failed(problem: &dyn std::error::Error) -> AuthError {
    AuthError::CredentialStoreError(problem.to_string())
}

/// The HTTP requests of a login, made by our own client.
struct Requests {
    following: reqwest::Client,
    stopping: reqwest::Client,
}

impl OAuthHttpClient for Requests {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        let client = match request.redirect_policy {
            OAuthHttpRedirectPolicy::Stop => &self.stopping,
            _ => &self.following,
        };
        Box::pin(async move {
            let mut request = reqwest::Request::try_from(request.request)?;
            request.timeout_mut().get_or_insert(REQUEST);
            let mut response = client.execute(request).await?;
            let mut answer = ::http::Response::builder().status(response.status());
            for (name, value) in response.headers() {
                answer = answer.header(name, value);
            }
            let mut body = Vec::new();
            while let Some(piece) = response.chunk().await? {
                body.extend_from_slice(&piece);
                if body.len() > LARGEST {
                    return Err(OAuthHttpClientError::from("the answer of the authorization server is too large"));
                }
            }
            Ok(answer.body(body)?)
        })
    }
}
