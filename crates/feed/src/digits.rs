//! Decimal numbers, for ids that are published as text.

/// A number in decimal digits, without allocation.
pub(crate) struct Digits {
    text: [u8; Self::MOST],
    from: usize,
}

impl Digits {
    /// The most digits, those of 2^64.
    pub(crate) const MOST: usize = 20;

    pub(crate) fn of(mut number: u64) -> Self {
        let mut digits = Self { text: [b'0'; Self::MOST], from: Self::MOST };
        for digit in digits.text.iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            digits.from -= 1;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        digits
    }

    /// Writes a number to the begin of `to`, which has capacity for [`MOST`](Self::MOST) digits. Returns the number of digits.
    #[inline]
    pub(crate) fn write(mut number: u64, to: &mut [u8]) -> usize {
        let count = number.checked_ilog10().map_or(1, |power| power as usize + 1);
        for digit in to[..count].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        count
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.text[self.from..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_digits() {
        for number in [0, 7, 10, 1_234_567_890, u64::MAX] {
            assert_eq!(Digits::of(number).as_bytes(), number.to_string().as_bytes());
            let mut text = [0; Digits::MOST];
            let count = Digits::write(number, &mut text);
            assert_eq!(&text[..count], number.to_string().as_bytes());
        }
    }
}
