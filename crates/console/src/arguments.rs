//! Parsers for values on a command line: durations, rates, sizes, lists of cores. Each is a value parser for clap
//! (`#[arg(value_parser = arguments::duration)]`); the error text names the expected form.

use std::net::SocketAddrV6;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;

/// The longest accepted duration: a year. Longer ones are taken for typing errors.
const LONGEST_S: f64 = 366.0 * 86_400.0;

/// A duration: `15s`, `500ms`, `20us`, `2m`, `1h`, or seconds as a plain number (`15`, `0.5`).
pub fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 8] = [
        ("", 1.0),
        ("s", 1.0),
        ("ms", 1e-3),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ns", 1e-9),
        ("m", 60.0),
        ("h", 3_600.0),
    ];
    let expected = || format!("'{text}' is not a duration; write 15s, 500ms, 20us, 2m, 1h, or plain seconds");
    let seconds = scaled(text, &UNITS).ok_or_else(expected)?;
    if seconds > LONGEST_S {
        return Err(format!("'{text}' is longer than a year"));
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// As [`duration`], above zero.
pub fn some_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err(format!("'{text}' is zero; at least 1ns is needed")),
        duration => Ok(duration),
    }
}

/// An address with its port, in numbers: `127.0.0.1:26400`. Names are not looked up.
pub fn address<A: FromStr>(text: &str) -> Result<A, String> {
    let expected = |_| match text.parse::<SocketAddrV6>() {
        Ok(_) => "an address of IPv4 is expected".to_owned(),
        Err(_) => "an address and a port in numbers are expected, such as 127.0.0.1:26400".to_owned(),
    };
    text.parse().map_err(expected)
}

/// A count, usually per second: `250000`, `250k`, `1M`, `1.5M`, `2G`.
pub fn rate(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 5] = [("", 1.0), ("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9)];
    whole(text, &UNITS, "is not a rate; write 250000, 250k, 1M or 1.5M", "is not a whole number")
}

/// A size in bytes: `4096`, `64KiB`, `1MiB`, `2GiB`; `K`, `M` and `G` alone mean the same, `kB`, `MB` and `GB` are
/// powers of ten.
pub fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 13] = [
        ("", 1.0),
        ("B", 1.0),
        ("K", 1024.0),
        ("k", 1024.0),
        ("KiB", 1024.0),
        ("M", 1_048_576.0),
        ("MiB", 1_048_576.0),
        ("G", 1_073_741_824.0),
        ("GiB", 1_073_741_824.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
    ];
    let expected = "is not a size; write 4096, 64KiB, 1MiB or 2GiB";
    whole(text, &UNITS, expected, "is not a whole number of bytes")
}

/// As [`size`], above zero.
pub fn some_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err(format!("'{text}' is zero; at least 1 is needed")),
        size => Ok(size),
    }
}

/// The name of a session, as MoldUDP64 and SoupBinTCP carry it; empty for the current one.
pub fn session(text: &str) -> Result<String, String> {
    name(text, "a session", 10)
}

/// The name of a user of SoupBinTCP.
pub fn soup_user(text: &str) -> Result<String, String> {
    name(text, "a user of SoupBinTCP", 6)
}

/// A name that must fit into a field of `longest` bytes: a truncated name would be a different name.
fn name(text: &str, of: &str, longest: usize) -> Result<String, String> {
    if text.len() > longest {
        let length = text.len();
        return Err(format!(
            "'{text}' has {length} bytes; the name of {of} has at most {longest}: shorten it"
        ));
    }
    if text.bytes().any(|byte| byte != b' ' && !byte.is_ascii_graphic()) {
        return Err(format!("'{}' is not a name of {of}; use only ASCII", text.escape_debug()));
    }
    Ok(text.to_owned())
}

/// Core numbers: `0`, `0,2`, `0-3`, `0-1,6`. Each once, in the given order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores(pub Vec<usize>);

/// The highest accepted core number; the kernel's own limit is 8,192 cores.
const HIGHEST_CORE: usize = 8_191;

/// Parses a list of cores. Their existence is checked when a thread is bound to them.
pub fn cores(text: &str) -> Result<Cores, String> {
    let expected = || format!("'{text}' is not a list of cores; write 0, 0,2 or 0-3");
    let mut cores = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| expected());
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("'{range}' runs backwards; write {last}-{first}"));
        }
        if last > HIGHEST_CORE {
            return Err(format!("core {last} is beyond {HIGHEST_CORE}, the highest core number"));
        }
        for core in first..=last {
            if !cores.contains(&core) {
                cores.push(core);
            }
        }
    }
    Ok(Cores(cores))
}

/// A core to bind to; `None` for `-1`, as in other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Core(pub Option<usize>);

/// Parses a core number, or `-1`. Its existence is checked when a thread is bound to it.
pub fn core(text: &str) -> Result<Core, String> {
    match text.trim() {
        "-1" => Ok(Core(None)),
        text => match text.parse() {
            Ok(core) if core <= HIGHEST_CORE => Ok(Core(Some(core))),
            _ => Err(format!("'{text}' is not a core; write its number, or -1 for any")),
        },
    }
}

/// The word for a value on the command line.
pub fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Parses a number with one of these units; `None` for anything else, a negative or an infinite number.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.replace('_', "").parse().ok()?;
    let (_, scale) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    let value = number * scale;
    value.is_finite().then_some(value)
}

/// Parses a whole number with one of these units. `expected` and `broken` say what is wrong with a text that is no number
/// with a unit, and with one that is not whole, or that a `f64` does not represent exactly.
fn whole(text: &str, units: &[(&str, f64)], expected: &str, broken: &str) -> Result<u64, String> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Ok(exact) = text.parse() {
        return Ok(exact);
    }
    let value = scaled(text, units).ok_or_else(|| format!("'{text}' {expected}"))?;
    // 1.1M is 1,100,000.0000000002 in binary: accept a value that is whole in all digits that a user writes.
    let nearest = value.round();
    let near_enough = (value - nearest).abs() <= value * 1e-12;
    let is_whole = near_enough && (0.0..=EXACT).contains(&nearest);
    is_whole.then_some(nearest as u64).ok_or_else(|| format!("'{text}' {broken}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ns) in [
            ("15s", 15_000_000_000),
            ("15", 15_000_000_000),
            ("0.5", 500_000_000),
            ("500ms", 500_000_000),
            ("20us", 20_000),
            ("20 µs", 20_000),
            ("7ns", 7),
            ("2m", 120_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
        for text in ["", "s", "-1s", "1 day", "1e3s", "1..2s", "inf", "NaN", "0x10", "1s2"] {
            let error = duration(text).unwrap_err();
            assert!(error.contains("is not a duration") && error.contains("500ms"), "{error}");
        }
        assert!(duration("99999999999999999999h").unwrap_err().contains("a year"));
        assert!(some_duration("0s").is_err() && some_duration("1ns").is_ok());
    }

    #[test]
    fn rates() {
        for (text, number) in [
            ("0", 0),
            ("250000", 250_000),
            ("250k", 250_000),
            ("250K", 250_000),
            ("1M", 1_000_000),
            ("1.1M", 1_100_000),
            ("1_000", 1_000),
            ("2G", 2_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(rate(text), Ok(number), "{text}");
        }
        for text in ["", "k", "-1", "1MB", "fast", "1.5", "0.0001k", "99999999999999999999G"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_are_numbers_with_a_port() {
        use std::net::{SocketAddr, SocketAddrV4};
        assert_eq!(address("127.0.0.1:9"), Ok("127.0.0.1:9".parse::<SocketAddrV4>().unwrap()));
        assert!(address::<SocketAddr>("[::1]:9").is_ok());
        assert_eq!(address::<SocketAddrV4>("[::1]:9").unwrap_err(), "an address of IPv4 is expected");
        for text in ["", "localhost:9", "127.0.0.1", "127.0.0.1:65536", "300.0.0.1:9"] {
            assert!(address::<SocketAddrV4>(text).unwrap_err().contains("such as 127.0.0.1:26400"), "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("4096", 4_096),
            ("64KiB", 65_536),
            ("1 MiB", 1_048_576),
            ("1M", 1_048_576),
            ("0.5MiB", 524_288),
            ("2GiB", 2_147_483_648),
            ("1MB", 1_000_000),
            ("12B", 12),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "-4K", "1.5", "1Mib", "1TiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_go_whole_into_their_fields() {
        assert_eq!((session("DAY1"), session("")), (Ok("DAY1".to_owned()), Ok(String::new())));
        assert!(session("TENLETTERS").is_ok() && soup_user("user01").is_ok());
        let error = session("AAPL20200130").unwrap_err();
        assert!(error.contains("has 12 bytes") && error.contains("at most 10"), "{error}");
        let error = soup_user("user001").unwrap_err();
        assert!(error.contains("has 7 bytes") && error.contains("at most 6"), "{error}");
        assert!(session("DÄY").is_err() && soup_user("a\n").is_err());
    }

    #[test]
    fn single_cores() {
        assert_eq!((core("3"), core("-1")), (Ok(Core(Some(3))), Ok(Core(None))));
        assert!(core("-2").is_err() && core("one").is_err() && core("8192").is_err());
    }

    #[test]
    fn core_lists() {
        for (text, list) in
            [("0", &[0][..]), ("2,0", &[2, 0]), ("0-3", &[0, 1, 2, 3]), ("0-1, 6,1", &[0, 1, 6])]
        {
            assert_eq!(cores(text), Ok(Cores(list.to_vec())), "{text}");
        }
        for text in ["", ",", "a", "-1", "0-", "1.5"] {
            assert!(cores(text).unwrap_err().contains("is not a list of cores"), "{text}");
        }
        assert!(cores("3-1").unwrap_err().contains("write 1-3"));
        assert!(cores("0-99999999999").unwrap_err().contains("8191"));
    }
}
