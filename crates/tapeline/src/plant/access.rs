//! Who may in: the file of users, passwords and tokens, and the thread that looks at them.

pub(super) mod passwd;
mod secrets;
pub(crate) mod users;
pub(crate) mod worker;

pub(super) use secrets::MOST_MEMORY_KIB;
