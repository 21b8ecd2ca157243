//! Impls that many types of this crate have.

/// Shows a type by what matters of it: the rest is long, and its bytes may contain a password.
macro_rules! shown {
    ($type:ident, $it:ident => $($field:ident: $value:expr),+) => {
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $it = self;
                f.debug_struct(stringify!($type))$(.field(stringify!($field), &$value))+.finish_non_exhaustive()
            }
        }
    };
}

/// Gives a type the descriptor of one of its parts.
macro_rules! has_descriptor {
    ($type:ident, $part:tt) => {
        impl std::os::fd::AsFd for $type {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                std::os::fd::AsFd::as_fd(&self.$part)
            }
        }
    };
}

pub(crate) use {has_descriptor, shown};
