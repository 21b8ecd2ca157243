//! Reads from the front of a slice, and checks each length before it is used.

use crate::error::{Fault, Malformed};
use crate::order::{Item, Order};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    order: Order,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(bytes: &'a [u8], order: Order) -> Self {
        Self { bytes, at: 0, order }
    }

    /// Returns the position of the next byte.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    pub(crate) const fn order(&self) -> Order {
        self.order
    }

    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Returns the bytes read since position `at`.
    pub(crate) fn since(&self, at: usize) -> &'a [u8] {
        self.bytes.get(at..self.at).unwrap_or_default()
    }

    /// Returns a fault at the next byte.
    pub(crate) const fn fault(&self, fault: Fault) -> Malformed {
        Malformed::new(self.at, fault)
    }

    /// Reads all remaining bytes.
    pub(crate) fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest();
        self.at = self.bytes.len();
        rest
    }

    /// Returns the fault that the bytes end before `wanted` bytes of `what`.
    #[cold]
    pub(crate) fn cut(&self, what: &'static str, wanted: usize) -> Malformed {
        self.fault(Fault::Cut { what, wanted, left: self.rest().len() })
    }

    #[inline]
    pub(crate) fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        match self.rest().get(..count) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => Err(self.cut(what, count)),
        }
    }

    #[inline]
    pub(crate) fn number<T: Item>(&mut self, what: &'static str) -> Result<T, Malformed> {
        Ok(T::from_bytes(self.take(T::WIDTH, what)?, self.order))
    }

    /// Reads text up to a zero. The zero is read too, and is not part of the text.
    #[inline]
    pub(crate) fn text(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let rest = self.rest();
        let Some(len) = rest.iter().position(|&byte| byte == 0) else {
            return Err(self.cut(what, rest.len() + 1));
        };
        self.at += len + 1;
        Ok(&rest[..len])
    }

    /// Reads the number of items, of at least `width` bytes each, that follow; the number has 8 bytes if `is_wide`.
    ///
    /// Refuses a number that exceeds the remaining bytes, before any loop over the items.
    #[inline]
    pub(crate) fn count(
        &mut self,
        width: usize,
        is_wide: bool,
        what: &'static str,
    ) -> Result<usize, Malformed> {
        let at = self.at;
        let count = match is_wide {
            false => i64::from(self.number::<i32>("a number of items")?),
            true => self.number::<i64>("a number of items")?,
        };
        let Ok(items) = usize::try_from(count) else { return Err(Malformed::new(at, Fault::Count(count))) };
        match items.checked_mul(width) {
            Some(wanted) if wanted <= self.rest().len() => Ok(items),
            wanted => Err(self.cut(what, wanted.unwrap_or(usize::MAX))),
        }
    }
}
