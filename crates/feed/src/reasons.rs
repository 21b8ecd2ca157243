//! Enumerations of reasons that are counted.

/// Declares an enumeration whose values have a dense number, for an array of counters, and a label. Each value is followed by its label; the name of
/// the function that returns it and the function's documentation come first.
macro_rules! reasons {
    (
        $(#[$about_label:meta])* $label_of:ident
        $(#[$about:meta])*
        pub enum $Reason:ident: $count:literal {
            $( $(#[$meaning:meta])* $reason:ident = $label:literal, )*
        }
    ) => {
        $(#[$about])*
        #[non_exhaustive]
        pub enum $Reason {
            $( $(#[$meaning])* $reason, )*
        }

        impl $Reason {
            /// All reasons, in the order of [`index`](Self::index).
            pub const ALL: [Self; $count] = [$(Self::$reason),*];

            /// Returns a dense number for an array of counters.
            #[must_use]
            pub const fn index(self) -> usize {
                self as usize
            }

            $(#[$about_label])*
            #[must_use]
            pub const fn $label_of(self) -> &'static str {
                match self {
                    $( Self::$reason => $label, )*
                }
            }
        }
    };
}
pub(crate) use reasons;
