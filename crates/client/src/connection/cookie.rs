//! A login by cookie, as the message that such a client does not send.

use tapeline_omm::domain::login::USER_AUTHENTICATION_TOKEN;
use tapeline_omm::domain::{LoginAttributes, LoginRequest};
use tapeline_wire::rssl::CookieLogin;

/// The stream of such a login, as ADS has it: none that a client can open.
const STREAM: i32 = -1;
/// Bytes of a login beside its values: element names, lengths and the key.
const AROUND: usize = 256;

/// The login request that a connection with these cookies stands for; `None` for one whose values no message can hold.
pub(super) fn request(login: &CookieLogin) -> Option<Vec<u8>> {
    let CookieLogin { token, position, application_id } = login;
    let some = |text: &'_ str| (!text.is_empty()).then_some(());
    let plain = LoginRequest::new(b"\0");
    let request = LoginRequest {
        stream_id: STREAM,
        name_type: USER_AUTHENTICATION_TOKEN,
        attributes: LoginAttributes {
            authentication_token: Some(token.as_bytes()),
            position: some(position).map(|()| position.as_bytes()),
            application_id: some(application_id).map(|()| application_id.as_bytes()),
            ..plain.attributes
        },
        ..plain
    };
    let mut bytes = vec![0; token.len() + position.len() + application_id.len() + AROUND];
    let len = request.encode(&mut bytes).ok()?;
    bytes.truncate(len);
    Some(bytes)
}
