//! The bytes of an item's name.

use std::ops::Deref;

/// Maximum length of a name in place, bytes: nearly all are shorter, and an allocation takes 32 bytes and a cache miss in each search.
const SHORT: usize = 22;

/// The name of an item, or other short bytes of an item, in place unless they are long.
#[derive(Debug, Clone)]
pub struct Name(Bytes);

#[derive(Debug, Clone)]
enum Bytes {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Box<[u8]>),
}

const _: () = assert!(size_of::<Name>() == 24, "no more than a pointer, a length and a tag take");

impl Name {
    /// Returns the bytes of memory outside the value itself.
    #[must_use]
    pub fn allocated(&self) -> usize {
        match &self.0 {
            Bytes::Short { .. } => 0,
            Bytes::Long(name) => name.len(),
        }
    }
}

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
                Self(Bytes::Short { len: name.len() as u8, bytes })
            }
            None => Self(Bytes::Long(name.into())),
        }
    }
}

impl Deref for Name {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Bytes::Long(name) => name,
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
            assert_eq!((&*name, matches!(name.0, Bytes::Short { .. })), (&longest[..len], len <= SHORT));
        }
        assert!(Name::default().is_empty());
    }
}
