//! A small HTTP server on its own thread, for metrics and a page: `GET` and `HEAD`, one response per
//! connection.
//!
//! The server treats every client as untrusted. The number of connections is bounded, each connection ends
//! within seconds, request heads are limited to 8 KiB, bodies are not read, and a request with a foreign host
//! name is refused (see `origin.rs`). All requests are served on this one thread, so clients can at most
//! delay each other. An idle client delays others only briefly: when the maximum number of connections is
//! open, a new connection replaces the oldest idle one after [`HttpSettings::ask_time`].

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, HOST, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::io::Errno;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::Error;
use crate::error::Operation;
use crate::origin;

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Maximum number of connections; one more replaces the oldest idle connection. Default 256.
    pub max_connections: usize,
    /// Minimum age of a connection before it can be replaced. Default 100 ms: on a busy machine a client
    /// sends its request some time after it connects.
    pub ask_time: Duration,
    /// Time limit for a request's head. Default 2 s.
    pub head_time: Duration,
    /// Time limit for a whole connection. Default 5 s.
    pub connection_time: Duration,
    /// Host names that browsers may use for this server, in addition to its addresses, `localhost` and its own name.
    /// Default none.
    pub names: Vec<String>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            max_connections: 256,
            ask_time: Duration::from_millis(100),
            head_time: Duration::from_secs(2),
            connection_time: Duration::from_secs(5),
            names: Vec::new(),
        }
    }
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    /// The path, without the query string.
    pub path: &'a str,
    /// The host name that the client used, without port; one of the permitted names.
    pub host: &'a str,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status: 200, 404, 503.
    pub status: u16,
    /// The type of the body, such as `text/plain; charset=utf-8`.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
    /// Further headers; invalid ones are left out.
    pub headers: Vec<(&'static str, String)>,
}

/// A running server; dropping it stops the server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Maximum length of a request head in bytes: the minimum that hyper allows, and more than a browser's head
/// with cookies.
const LONGEST_HEAD: usize = 8 << 10;
/// Pause after accepting failed, usually because the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

impl Server {
    /// Listens at an address of this machine (port 0 takes a free one) and answers each request with the result of
    /// `answer`.
    ///
    /// # Errors
    /// The address is taken or not this machine's; the machine refuses a thread.
    pub fn start<F>(address: SocketAddr, settings: HttpSettings, answer: F) -> Result<Self, Error>
    where
        F: Fn(&HttpRequest<'_>) -> Response + Send + Sync + 'static,
    {
        let failed = |cause: std::io::Error| match Errno::from_io_error(&cause) {
            Some(errno) => Error::socket(Operation::Bind, address, errno),
            None => Error::reactor("listen with")(cause),
        };
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(Error::reactor("make"))?;
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            runtime.block_on(async move {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                tokio::spawn(serve(listener, Arc::new(settings), Arc::new(answer)));
                // Open connections are dropped with the runtime.
                let _ = stopped.await;
            });
        };
        let thread = std::thread::Builder::new().name("http".to_owned()).spawn(run);
        let thread = thread.map_err(Error::reactor("make the thread of"))?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address at which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An open connection.
struct Open {
    task: AbortHandle,
    has_asked: Arc<AtomicBool>,
    /// The connection cannot be replaced before this time.
    until: Instant,
}

async fn serve<F>(listener: tokio::net::TcpListener, settings: Arc<HttpSettings>, answer: Arc<F>)
where
    F: Fn(&HttpRequest<'_>) -> Response + Send + Sync + 'static,
{
    // In order of arrival.
    let mut open: VecDeque<Open> = VecDeque::new();
    let ended = Arc::new(Notify::new());
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        make_room(&mut open, settings.max_connections.max(1), &ended).await;
        let until = Instant::from_std(tapeline_measure::instant()) + settings.ask_time;
        let (settings, answer, ended) = (Arc::clone(&settings), Arc::clone(&answer), Arc::clone(&ended));
        let has_asked = Arc::new(AtomicBool::new(false));
        let asks = Arc::clone(&has_asked);
        let task = tokio::spawn(async move {
            let time = settings.connection_time;
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(settings.head_time)
                .max_buf_size(LONGEST_HEAD)
                .keep_alive(false);
            let service = service_fn(|request| {
                asks.store(true, Ordering::Relaxed);
                let response = respond(&request, &settings, &*answer);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = http.serve_connection(TokioIo::new(stream), service);
            // The outcome does not matter.
            let _ = tokio::time::timeout(time, connection).await;
            ended.notify_one();
        });
        open.push_back(Open { task: task.abort_handle(), has_asked, until });
    }
}

/// Waits until one more connection is permitted: a connection has ended, or the oldest idle one has reached
/// its minimum age and is closed.
async fn make_room(open: &mut VecDeque<Open>, most: usize, ended: &Notify) {
    loop {
        open.retain(|open| !open.task.is_finished());
        if open.len() < most {
            return;
        }
        let idle = open.iter().position(|open| !open.has_asked.load(Ordering::Relaxed));
        let at = idle.unwrap_or(0);
        if open[at].until > Instant::from_std(tapeline_measure::instant()) {
            let _ = tokio::time::timeout_at(open[at].until, ended.notified()).await;
        } else if let Some(oldest) = open.remove(at) {
            oldest.task.abort();
        }
    }
}

fn respond(
    request: &hyper::Request<Incoming>,
    settings: &HttpSettings,
    answer: &impl Fn(&HttpRequest<'_>) -> Response,
) -> hyper::Response<Full<Bytes>> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).map(origin::host_of);
    let host = match host {
        Some(host) => host,
        // HTTP/1.0 without a host: no browser is that old.
        None if request.version() < Version::HTTP_11 => "",
        None => return refuse(StatusCode::BAD_REQUEST, "no Host"),
    };
    let is_known = host.is_empty()
        || origin::is_own_host(host)
        || settings.names.iter().any(|name| name.eq_ignore_ascii_case(host));
    if !is_known {
        return refuse(StatusCode::FORBIDDEN, "this server is not known by that name");
    }
    if *request.method() != Method::GET && *request.method() != Method::HEAD {
        let mut refusal = refuse(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD alone");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refusal;
    }
    let Response { status, content_type, body, headers } =
        answer(&HttpRequest { path: request.uri().path(), host });
    let mut response = hyper::Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let more = headers.iter().map(|(name, value)| (*name, value.as_str()));
    for (name, value) in FIXED_HEADERS.into_iter().chain([("content-type", content_type)]).chain(more) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Headers of every [`Response`]: no content sniffing, embedding by the same origin only, no referrer, no
/// caching.
const FIXED_HEADERS: [(&str, &str); 4] = [
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
];

fn refuse(status: StatusCode, text: &'static str) -> hyper::Response<Full<Bytes>> {
    let mut response = hyper::Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
}
