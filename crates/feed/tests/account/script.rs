//! A bad day from a seed.

/// Numbers from a seed (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `from` to before `to`.
    pub(crate) fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.word() % (to - from)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.word().is_multiple_of(n)
    }
}

/// Faults of every kind that make sense for so many messages.
pub(crate) fn faults(dice: &mut Dice, messages: u64) -> Vec<String> {
    let percent = |dice: &mut Dice| dice.within(0, 2_000) as f64 / 100.0;
    let mut faults: Vec<String> = Vec::new();
    for _ in 0..dice.within(0, 6) {
        let line = match dice.within(0, 4) {
            0 => ",line=A",
            1 => ",line=B",
            _ => "",
        };
        let (chance, few) = (percent(dice), dice.within(1, 12));
        faults.push(match dice.within(0, 9) {
            0 => format!("loss={chance}%,burst={few}{line}"),
            1 => format!("duplicate={chance}%,after={few}{line}"),
            2 => format!("reorder={chance}%,by={few}{line}"),
            3 => format!("delay={}us{line}", dice.within(0, 30_000)),
            4 => format!("corrupt={}%,bytes={few}{line}", chance / 5.0),
            5 => format!("truncate={}%{line}", chance / 5.0),
            6 => {
                let from = dice.within(1, messages + 1);
                format!("silence={from},messages={}{line}", dice.within(1, messages + 1))
            }
            // Behind the middle: numbers that come again have been used before, or nobody could tell.
            7 => format!("reset={}", dice.within(messages / 2 + 2, messages + 3)),
            _ => format!("roll={}", dice.within(2, messages + 2)),
        });
    }
    // One after the other would want more packets between them than can be lost, and a session that rolls is begun anew.
    let mut resets = 0;
    let has_roll = faults.iter().any(|fault| fault.starts_with("roll"));
    faults.retain(|fault| {
        resets += usize::from(fault.starts_with("reset"));
        !fault.starts_with("reset") || (resets == 1 && !has_roll)
    });
    faults
}
