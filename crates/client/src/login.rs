//! The login of a user.

use std::fmt;

use tapeline_omm::domain::login::{self, LoginAttributes, ROUND_TRIP_WANTED};
use tapeline_omm::domain::{Buffer, LoginRequest};

/// The maximum length of a user name in a message key, in bytes.
pub const LONGEST_USER: usize = 255;

/// The contents of a login. `Debug` does not show passwords and tokens.
#[derive(Clone)]
pub struct Login {
    user: String,
    token: Option<String>,
    extended: Option<Vec<u8>>,
    password: Option<String>,
    application_id: String,
    position: String,
    takes_round_trips: bool,
}

impl Login {
    /// Creates a login of a user name of 1 to [`LONGEST_USER`] bytes: no password, application 256, position `127.0.0.1/net`.
    #[must_use]
    pub fn user(name: &str) -> Self {
        Self {
            user: name.to_owned(),
            token: None,
            extended: None,
            password: None,
            application_id: "256".to_owned(),
            position: "127.0.0.1/net".to_owned(),
            takes_round_trips: true,
        }
    }

    /// Creates a login by an authentication token (name type 5) instead of a user name. The name in the key is one zero byte, as LSEG's library
    /// sends it (`rsslRDMLoginMsg.c` of the RTSDK).
    #[must_use]
    pub fn token(token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..Self::user("\0") }
    }

    /// Sets further data for the server's authenticator of tokens; the default is none.
    #[must_use]
    pub fn with_extended(self, data: &[u8]) -> Self {
        Self { extended: Some(data.to_vec()), ..self }
    }

    /// Sets the password; the default is none.
    #[must_use]
    pub fn with_password(self, password: Option<String>) -> Self {
        Self { password, ..self }
    }

    /// Sets the number by which permissioning systems know the application; the default is 256.
    #[must_use]
    pub fn with_application_id(self, application_id: u16) -> Self {
        Self { application_id: application_id.to_string(), ..self }
    }

    /// Sets the position: an address, and a network or host; the default is `127.0.0.1/net`.
    #[must_use]
    pub fn with_position(self, position: &str) -> Self {
        Self { position: position.to_owned(), ..self }
    }

    /// Sets whether the consumer answers the round-trip messages by which a provider measures latency; the default is `true`.
    #[must_use]
    pub fn with_round_trips(self, takes_round_trips: bool) -> Self {
        Self { takes_round_trips, ..self }
    }

    /// Returns the name of the user; a zero byte for a login by token.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.user
    }

    /// Returns the login request.
    #[must_use]
    pub fn request(&self) -> LoginRequest<'_> {
        let request = LoginRequest::new(self.user.as_bytes());
        LoginRequest {
            name_type: if self.token.is_some() { login::USER_AUTHENTICATION_TOKEN } else { login::USER_NAME },
            attributes: LoginAttributes {
                application_id: Some(self.application_id.as_bytes()),
                application_name: Some(b"tapeline"),
                position: Some(self.position.as_bytes()),
                authentication_token: self.token.as_ref().map(String::as_bytes),
                authentication_extended: self.extended.as_deref().map(Buffer),
                password: self.password.as_ref().map(String::as_bytes),
                round_trip_latency: self.takes_round_trips.then_some(ROUND_TRIP_WANTED),
                ..request.attributes
            },
            ..request
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}
