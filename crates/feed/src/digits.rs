//! Decimal numbers, for ids that are published as text.

/// A number in decimal digits, without allocation.
pub(crate) struct Digits {
    text: [u8; 20],
    from: usize,
}

impl Digits {
    pub(crate) fn of(mut number: u64) -> Self {
        let mut digits = Self { text: [b'0'; 20], from: 20 };
        // At most 20 digits, those of 2^64.
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
        }
    }
}
