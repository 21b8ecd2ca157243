//! The login request for a client that logs in by cookie and sends no login message.

use tapeline_omm::domain::login::USER_AUTHENTICATION_TOKEN;
use tapeline_omm::domain::{LoginAttributes, LoginRequest};
use tapeline_wire::rssl::CookieLogin;

/// The stream of such a login, as in ADS: an id that no client can open.
const STREAM: i32 = -1;
/// Bytes of a login without its values: element names, lengths and the key.
const AROUND: usize = 256;

/// Returns the login request for a connection with these cookies; `None` if the values do not fit in a message.
pub(super) fn request(login: &CookieLogin) -> Option<Vec<u8>> {
    let CookieLogin { token, position, application_id } = login;
    let plain = LoginRequest::new(b"\0");
    let request = LoginRequest {
        stream_id: STREAM,
        name_type: USER_AUTHENTICATION_TOKEN,
        attributes: LoginAttributes {
            authentication_token: Some(token.as_bytes()),
            position: Some(position.as_bytes()).filter(|text| !text.is_empty()),
            application_id: Some(application_id.as_bytes()).filter(|text| !text.is_empty()),
            ..plain.attributes
        },
        ..plain
    };
    let mut bytes = vec![0; token.len() + position.len() + application_id.len() + AROUND];
    let len = request.encode(&mut bytes).ok()?;
    bytes.truncate(len);
    Some(bytes)
}
