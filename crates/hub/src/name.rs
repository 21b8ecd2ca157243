//! The name of an item.

use std::ops::Deref;

/// Maximum length of a name in place, bytes: nearly all are shorter, and an allocation takes 32 bytes and a cache miss in each search.
const SHORT: usize = 22;

/// A name, in place unless it is long.
#[derive(Debug, Clone)]
pub(crate) enum Name {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Box<[u8]>),
}

const _: () = assert!(size_of::<Name>() == 24, "no more than a pointer, a length and a tag take");

impl Default for Name {
    fn default() -> Self {
        Self::from(&[][..])
    }
}

impl From<&[u8]> for Name {
    fn from(name: &[u8]) -> Self {
        let mut bytes = [0; SHORT];
        match bytes.get_mut(..name.len()) {
            Some(place) => {
                place.copy_from_slice(name);
                // At most 22.
                Self::Short { len: name.len() as u8, bytes }
            }
            None => Self::Long(name.into()),
        }
    }
}

impl Deref for Name {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_lengths_are_what_they_were() {
        let longest = [b'x'; 255];
        for len in 0..=longest.len() {
            let name = Name::from(&longest[..len]);
            assert_eq!((&*name, matches!(name, Name::Short { .. })), (&longest[..len], len <= SHORT));
        }
        assert!(Name::default().is_empty());
    }
}
