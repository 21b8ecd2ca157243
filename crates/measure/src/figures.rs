//! Numbers in readable form: durations in a suitable unit, counts with thousands separators.

/// Formats a duration in nanoseconds in the unit that reads best: `102 ns`, `2.1 µs`, `317 ms`, `1.5 s`.
#[must_use]
pub fn duration(ns: u64) -> String {
    let (number, unit) = duration_parts(ns);
    format!("{number} {unit}")
}

/// Formats as [`duration`], with number and unit separate: whole nanoseconds, one decimal below one hundred of
/// any other unit.
#[must_use]
pub fn duration_parts(ns: u64) -> (String, &'static str) {
    const STEPS: [(u64, &str); 3] = [(1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s")];
    if ns < 1_000 {
        return (ns.to_string(), "ns");
    }
    let mut shown = (String::new(), "");
    for (unit_ns, unit) in STEPS {
        // Rounded to nearest in the decimals that will be shown, so that 999,960 ns reads 1.0 ms and not 1000 µs.
        let whole = rounded(ns, unit_ns);
        let tenths = rounded(ns, unit_ns / 10);
        shown = if tenths < 1_000 {
            (format!("{}.{}", tenths / 10, tenths % 10), unit)
        } else {
            (thousands(whole), unit)
        };
        if whole < 1_000 {
            break;
        }
    }
    shown
}

fn rounded(value: u64, unit: u64) -> u64 {
    value / unit + u64::from(value % unit >= unit.div_ceil(2))
}

/// Formats a signed duration in nanoseconds as [`duration`], with its sign.
#[must_use]
pub fn signed_duration(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", duration(ns.unsigned_abs()))
}

/// Formats a count with thousands separators: `1,234,567`.
#[must_use]
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a quantity to three digits with a decimal prefix and its unit: `1.23 M msgs/s`, `35.1 k msgs/s`, `812
/// msgs/s`. With `glued` the prefix belongs to the unit: `35.1 MB/s`. A value that is not a number or is below zero is
/// a dash.
#[must_use]
pub fn quantity(value: f64, unit: &str, glued: bool) -> String {
    const PREFIXES: [&str; 5] = ["", "k", "M", "G", "T"];
    if !value.is_finite() || value < 0.0 {
        return format!("– {unit}");
    }
    let mut value = value;
    let mut prefix = 0;
    // 999.5 would be printed as 1000.
    while value >= 999.5 && prefix + 1 < PREFIXES.len() {
        value /= 1_000.0;
        prefix += 1;
    }
    let decimals = match value {
        v if prefix == 0 && v.fract() == 0.0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    let gap = if glued || prefix == 0 { "" } else { " " };
    format!("{value:.decimals$} {}{gap}{unit}", PREFIXES[prefix])
}

/// Formats core numbers as the kernel writes them: `0-3,6`. An empty list is `none`.
#[must_use]
pub fn list(numbers: &[usize]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while at < numbers.len() {
        let mut end = at;
        while end + 1 < numbers.len() && numbers[end].checked_add(1) == Some(numbers[end + 1]) {
            end += 1;
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&numbers[at].to_string());
        if end > at {
            text.push('-');
            text.push_str(&numbers[end].to_string());
        }
        at = end + 1;
    }
    if text.is_empty() { "none".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        for (ns, text) in [
            (0, "0 ns"),
            (1, "1 ns"),
            (999, "999 ns"),
            (1_000, "1.0 µs"),
            (2_149, "2.1 µs"),
            (2_150, "2.2 µs"),
            (99_949, "99.9 µs"),
            (99_950, "100 µs"),
            (317_000, "317 µs"),
            (999_499, "999 µs"),
            (999_500, "1.0 ms"),
            (3_200_000, "3.2 ms"),
            (999_499_999, "999 ms"),
            (1_500_000_000, "1.5 s"),
            (3_600_000_000_000, "3,600 s"),
            (u64::MAX, "18,446,744,074 s"),
        ] {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(signed_duration(-2_100), "-2.1 µs");
        assert_eq!(signed_duration(i64::MIN), "-9,223,372,037 s");
    }

    #[test]
    fn counts_and_quantities_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_000), "1,000");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(u64::MAX), "18,446,744,073,709,551,615");
        for (value, text) in [
            (0.0, "0 msgs/s"),
            (12.0, "12 msgs/s"),
            (0.5, "0.50 msgs/s"),
            (999.4, "999 msgs/s"),
            (999.5, "1.00 k msgs/s"),
            (1_234_567.0, "1.23 M msgs/s"),
            (12_345_678.0, "12.3 M msgs/s"),
            (1e18, "1000000 T msgs/s"),
            (f64::NAN, "– msgs/s"),
        ] {
            assert_eq!(quantity(value, "msgs/s", false), text);
        }
        assert_eq!(quantity(35_100_000.0, "B/s", true), "35.1 MB/s");
    }

    #[test]
    fn core_lists_read_like_the_kernel_s() {
        assert_eq!(list(&[]), "none");
        assert_eq!(list(&[0]), "0");
        assert_eq!(list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(list(&[usize::MAX]), usize::MAX.to_string());
    }
}
