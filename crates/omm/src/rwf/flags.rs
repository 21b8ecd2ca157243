//! Flags of each message class (RWF chapter 2, "Flags"). A flag `HAS_…` marks a member as present: encoders set it, and
//! readers rely on it.

use std::ops::{BitOr, BitOrAssign};

use super::MessageClass;

/// Flags of a message. Their meaning depends on the class: see the modules here.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// No flags.
    pub const NONE: Self = Self(0);

    /// Returns `true` if all bits of `flag` are set.
    #[inline]
    #[must_use]
    pub const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 == flag.0
    }

    /// Returns these flags with those of `flag` set or cleared.
    #[must_use]
    pub(crate) const fn with(self, flag: Self, is_set: bool) -> Self {
        Self(if is_set { self.0 | flag.0 } else { self.0 & !flag.0 })
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

macro_rules! flags {
    ($($(#[$doc:meta])* $class:ident $of:ident { $($(#[$item:meta])* $name:ident = $bit:literal,)* })*) => {
        /// Returns all flags of a class with their names, from the lowest bit up; none for an unknown class.
        #[must_use]
        pub const fn names(class: MessageClass) -> &'static [(&'static str, Flags)] {
            match class {
                $(MessageClass::$of => $class::NAMES,)*
                _ => &[],
            }
        }

        $(
            $(#[$doc])*
            pub mod $class {
                use super::Flags;

                $(
                    #[doc = concat!("`", stringify!($name), "`.")]
                    $(#[$item])*
                    pub const $name: Flags = Flags($bit);
                )*

                /// All flags of the class with their names, from the lowest bit up.
                pub const NAMES: &[(&str, Flags)] = &[$((stringify!($name), $name)),*];
            }
        )*
    };
}

flags! {
    /// Flags of a REQUEST.
    request REQUEST {
        HAS_EXTENDED_HEADER = 0x0001,
        HAS_PRIORITY = 0x0002,
        /// Keep the stream open after the image.
        STREAMING = 0x0004,
        /// Put the key into updates.
        MSG_KEY_IN_UPDATES = 0x0008,
        /// Put conflation information into updates.
        CONF_INFO_IN_UPDATES = 0x0010,
        /// No image is wanted.
        NO_REFRESH = 0x0020,
        /// Requested quality of service.
        HAS_QOS = 0x0040,
        /// Worst acceptable quality of service.
        HAS_WORST_QOS = 0x0080,
        /// Open a private stream.
        PRIVATE_STREAM = 0x0100,
        /// Pause updates.
        PAUSE = 0x0200,
        /// The payload holds a view.
        HAS_VIEW = 0x0400,
        /// The payload holds a batch of names.
        HAS_BATCH = 0x0800,
        /// Open a qualified stream.
        QUALIFIED_STREAM = 0x1000,
    }

    /// Flags of a REFRESH.
    refresh REFRESH {
        HAS_EXTENDED_HEADER = 0x0001,
        HAS_PERM_DATA = 0x0002,
        HAS_MSG_KEY = 0x0008,
        HAS_SEQ_NUM = 0x0010,
        /// Answers a request.
        SOLICITED = 0x0020,
        /// The last part of the image.
        REFRESH_COMPLETE = 0x0040,
        HAS_QOS = 0x0080,
        /// Replaces all data of the item in a cache.
        CLEAR_CACHE = 0x0100,
        /// Must not be cached.
        DO_NOT_CACHE = 0x0200,
        /// The stream is private.
        PRIVATE_STREAM = 0x0400,
        HAS_POST_USER_INFO = 0x0800,
        HAS_PART_NUM = 0x1000,
        /// The stream is a qualified one.
        QUALIFIED_STREAM = 0x4000,
    }

    /// Flags of a STATUS.
    status STATUS {
        HAS_EXTENDED_HEADER = 0x0001,
        HAS_PERM_DATA = 0x0002,
        HAS_MSG_KEY = 0x0008,
        HAS_GROUP_ID = 0x0010,
        HAS_STATE = 0x0020,
        /// Clears all data of the item in a cache.
        CLEAR_CACHE = 0x0040,
        /// The stream is private.
        PRIVATE_STREAM = 0x0080,
        HAS_POST_USER_INFO = 0x0100,
        /// The stream is a qualified one.
        QUALIFIED_STREAM = 0x0400,
    }

    /// Flags of an UPDATE.
    update UPDATE {
        HAS_EXTENDED_HEADER = 0x0001,
        HAS_PERM_DATA = 0x0002,
        HAS_MSG_KEY = 0x0008,
        HAS_SEQ_NUM = 0x0010,
        HAS_CONF_INFO = 0x0020,
        /// Must not be cached.
        DO_NOT_CACHE = 0x0040,
        /// Must not be conflated.
        DO_NOT_CONFLATE = 0x0080,
        /// Must not move values to the fields that they ripple to.
        DO_NOT_RIPPLE = 0x0100,
        HAS_POST_USER_INFO = 0x0200,
        /// May be dropped.
        DISCARDABLE = 0x0400,
    }

    /// Flags of a CLOSE.
    close CLOSE {
        HAS_EXTENDED_HEADER = 0x0001,
        /// An ACK is wanted.
        ACK = 0x0002,
        /// The payload holds the streams that are closed.
        HAS_BATCH = 0x0004,
    }

    /// Flags of an ACK.
    ack ACK {
        HAS_EXTENDED_HEADER = 0x0001,
        HAS_TEXT = 0x0002,
        /// The stream is private.
        PRIVATE_STREAM = 0x0004,
        HAS_SEQ_NUM = 0x0008,
        HAS_MSG_KEY = 0x0010,
        HAS_NAK_CODE = 0x0020,
        /// The stream is a qualified one.
        QUALIFIED_STREAM = 0x0040,
    }

    /// Flags of a GENERIC message.
    generic GENERIC {
        HAS_EXTENDED_HEADER = 0x0001,
        HAS_PERM_DATA = 0x0002,
        HAS_MSG_KEY = 0x0004,
        HAS_SEQ_NUM = 0x0008,
        /// The last part of the message.
        MESSAGE_COMPLETE = 0x0010,
        HAS_SECONDARY_SEQ_NUM = 0x0020,
        HAS_PART_NUM = 0x0040,
        /// The provider began it.
        PROVIDER_DRIVEN = 0x4000,
    }

    /// Flags of a POST.
    post POST {
        HAS_EXTENDED_HEADER = 0x0001,
        HAS_POST_ID = 0x0002,
        HAS_MSG_KEY = 0x0004,
        HAS_SEQ_NUM = 0x0008,
        /// The last part of the post.
        POST_COMPLETE = 0x0020,
        /// An ACK is wanted.
        ACK = 0x0040,
        HAS_PERM_DATA = 0x0080,
        HAS_PART_NUM = 0x0100,
        HAS_POST_USER_RIGHTS = 0x0200,
    }
}
