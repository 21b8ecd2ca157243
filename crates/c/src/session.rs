//! How consumers and publishers connect and log in, from C.

#![allow(unsafe_code)]

use std::ffi::c_char;
use std::path::PathBuf;

use tapeline_client::ema_config::Host;
use tapeline_client::{Endpoint, Login};

use crate::failure::{self, Failure, null};
use crate::sized::read_sized;
use crate::tapeline_code::*;

/// The servers of a consumer or publisher, and its login. Zero and NULL are the default of every field but the first two:
/// `tapeline_session_options options = { .size = sizeof options, .servers = "localhost:14002" };`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tapeline_session_options {
    /// sizeof(tapeline_session_options). Later releases add fields at the end; the size shows which fields exist.
    pub size: usize,
    /// Host and port, such as "localhost:14002"; several with commas between: the first that accepts is used.
    pub servers: *const c_char,
    /// The user's name; NULL: "tapeline".
    pub user: *const c_char,
    /// The user's password; NULL: none.
    pub password: *const c_char,
    /// The position of the user: an address, and a network or host; NULL: "127.0.0.1/net".
    pub position: *const c_char,
    /// A file or folder of certificates to trust, as PEM, instead of the system's. Needs `tls`.
    pub trusted_certificates: *const c_char,
    /// Not 0: TLS, and check the server's certificate.
    pub tls: u32,
    /// Not 0: simplified JSON over a WebSocket, instead of RWF.
    pub json: u32,
    /// The number by which permissioning systems know the application; 0: 256.
    pub application_id: u16,
    /// 0.
    pub reserved: u16,
    /// 0.
    pub reserved2: u32,
}

/// The options, read.
pub(crate) struct Session {
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) login: Login,
    /// The servers as written, for errors.
    pub(crate) servers: String,
}

impl Session {
    /// # Safety
    /// `options` is NULL, or points to its own `size` bytes, whose pointers are NULL or texts.
    pub(crate) unsafe fn read(options: *const tapeline_session_options) -> Result<Self, Failure> {
        if options.is_null() {
            return Err(null("the session's options"));
        }
        // SAFETY: not NULL, so the caller's promise; its first field is the size.
        let read = unsafe { read_sized(options) }?;
        let optional = |text: *const c_char, what: &str| {
            // SAFETY: NULL or a text by the caller's promise.
            if text.is_null() { Ok(None) } else { unsafe { failure::text(text, what) }.map(Some) }
        };
        // SAFETY: NULL or a text by the caller's promise.
        let servers = unsafe { failure::text(read.servers, "the option servers") }?;
        let trusted = optional(read.trusted_certificates, "the option trusted_certificates")?;
        if trusted.is_some() && read.tls == 0 {
            let text = "the option trusted_certificates has no effect without tls; hint: set tls to 1";
            return Err(Failure::new(TAPELINE_ERROR_OPTIONS, text));
        }
        let endpoint = |server: &str| {
            if read.tls == 0 && read.json == 0 {
                return Ok(Endpoint::plain(server));
            }
            let mut host = Host { is_encrypted: read.tls != 0, ..Host::plain(server) };
            host.trusted = trusted.map(PathBuf::from);
            if read.json != 0 {
                host.settings = Endpoint::json(server).settings.as_ref().clone();
            }
            host.endpoint().map_err(|error| Failure::from(error).at(server))
        };
        let named = servers.split(',').map(str::trim).filter(|server| !server.is_empty());
        let endpoints =
            named.map(|server| checked(server).and_then(endpoint)).collect::<Result<Vec<_>, _>>()?;
        if endpoints.is_empty() {
            let text = "the option servers names none; hint: such as localhost:14002";
            return Err(Failure::new(TAPELINE_ERROR_OPTIONS, text));
        }
        let mut login = Login::user(optional(read.user, "the option user")?.unwrap_or("tapeline"));
        login = login.with_password(optional(read.password, "the option password")?.map(str::to_owned));
        if let Some(position) = optional(read.position, "the option position")? {
            login = login.with_position(position);
        }
        if read.application_id != 0 {
            login = login.with_application_id(read.application_id);
        }
        Ok(Self { endpoints, login, servers: servers.to_owned() })
    }
}

/// Checks that a server is a host and a port, before a connection is tried for ever.
fn checked(server: &str) -> Result<&str, Failure> {
    let port = server.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    if port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port != 0)) {
        return Ok(server);
    }
    let text =
        format!("the server {server:?} has no port; hint: write it as HOST:PORT, such as localhost:14002");
    Err(Failure::new(TAPELINE_ERROR_CONNECTION, text))
}
