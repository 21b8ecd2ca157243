//! Options that several `tapeline omm` commands share: dictionary, login, transport.

pub mod dictionaries;
pub mod login;
pub mod transport;

use tapeline_client::connection::RoleConnection;
use tapeline_wire::rssl::Reactor;

use crate::log;

/// Prints the notes of a connection on standard error.
pub fn say_notes(connection: &mut RoleConnection) {
    while let Some(note) = connection.next_note() {
        log::note(note);
    }
}

/// Prints on standard error why the server can accept no connection, if it cannot.
pub fn say_accept_error(reactor: &mut Reactor) {
    if let Some(cause) = reactor.accept_error() {
        log::note(format_args!("no connections can be accepted: {cause}"));
    }
}
