use proptest::prelude::*;

use super::*;
use crate::tsc::{tick_source, ticks_ordered};

/// A simulated reading of a counter of 3 GHz whose kernel time is `monotonic_ns` and whose UTC is 1,000,000 s
/// ahead.
fn sample(monotonic_ns: u64) -> Sample {
    Sample {
        ticks: Ticks(monotonic_ns * 3),
        monotonic_ns,
        half_ticks: 60,
        utc_offset_ns: 1_000_000 * SECOND as i64,
        offset_half_ticks: 60,
    }
}

const SECOND: u64 = NS_PER_SECOND;

fn simulated() -> Clock {
    Clock::fit(&sample(10 * SECOND), &sample(10 * SECOND + SECOND / 20)).unwrap()
}

fn utc(monotonic_ns: u64) -> Nanos {
    Nanos(monotonic_ns + 1_000_000 * SECOND)
}

#[test]
fn the_real_clock_is_within_its_stated_error_of_the_kernel_s() {
    // The bound assumes a kernel clock of constant rate: a time daemon that changes the rate during these
    // milliseconds may spoil one attempt, but not three.
    let attempts: Vec<String> = (0..3).map_while(|_| stay_within_the_stated_error().err()).collect();
    assert!(attempts.len() < 3, "{attempts:?}");
}

fn stay_within_the_stated_error() -> Result<(), String> {
    let clock = Clock::calibrate();
    for _ in 0..100 {
        let kernel = Sample::tightest_of(16);
        let bound = clock.calibration().error_ns_at(kernel.ticks) + kernel.error_ns(clock.rate);
        let apart = clock.at(kernel.ticks).since(kernel.utc_ns()).unsigned_abs();
        if apart > bound {
            return Err(format!("{apart} ns from the kernel's time, bound {bound} ns"));
        }
    }
    Ok(())
}

#[test]
fn the_real_clock_goes_on_through_recalibrations() {
    let mut clock = Clock::calibrate();
    let mut last = clock.now();
    for _ in 0..1_000 {
        let found = clock.recalibrate();
        assert!(!found.jumped, "{found:?}");
        let now = clock.now();
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
}

#[test]
fn ordered_readings_give_intervals_that_are_not_negative() {
    let clock = Clock::calibrate();
    let (first, second) = (ticks_ordered(), ticks_ordered());
    assert!(clock.ns_between(first, second) >= 0);
    assert!(clock.ns_between(second, first) <= 0);
    assert_eq!(clock.ns_between(first, first), 0);
}

#[test]
fn the_fit_is_exact_on_an_exact_counter() {
    let clock = simulated();
    for ns in [0, 1, 999, SECOND, 3_600 * SECOND] {
        let at = 10 * SECOND + ns;
        assert!(clock.at(Ticks(at * 3)).since(utc(at)).unsigned_abs() <= 1);
    }
    assert_eq!(clock.ticks_in(1_000), 3_000);
    assert!(clock.calibration().ticks_khz().abs_diff(3_000_000) <= 1);
}

#[test]
fn a_longer_baseline_tightens_the_rate() {
    let mut clock = simulated();
    let first = clock.rate.error_ppb;
    assert!((500..2_000).contains(&first), "±20 ns at both ends of 50 ms: {first} ppb");
    for second in 11..120 {
        clock.recalibrate_with(sample(second * SECOND));
    }
    assert!(clock.rate.error_ppb <= 3, "{} ppb", clock.rate.error_ppb);
    let in_a_minute = clock.calibration().error_ns_at(Ticks(179 * SECOND * 3));
    assert!(in_a_minute < 500, "{in_a_minute} ns");
}

#[test]
fn drift_of_the_kernel_s_clock_is_followed_without_going_back() {
    // The counter runs at 3 GHz; the kernel speeds its clock up by 200 ppm for a minute and then slows it down.
    let mut clock = simulated();
    let mut ticks = 3 * (10 * SECOND + SECOND / 20);
    let mut kernel_ns = 10 * SECOND + SECOND / 20;
    let mut shown = Nanos(0);
    for second in 0..240 {
        let ppm: i64 = match second {
            0..60 => 200,
            60..120 => -200,
            _ => 0,
        };
        ticks += 3 * SECOND;
        kernel_ns = kernel_ns.saturating_add_signed(SECOND as i64 + ppm * 1_000);
        let now = Sample { ticks: Ticks(ticks), ..sample(kernel_ns) };
        let before = clock.at(Ticks(ticks));
        assert!(before > shown, "second {second}");
        assert!(!clock.recalibrate_with(now).jumped);
        shown = clock.at(Ticks(ticks));
        assert_eq!(shown, before, "continuous at second {second}");
    }
    let off = utc(kernel_ns).since(shown).unsigned_abs();
    assert!(off <= 100, "{off} ns off two minutes after the last change of rate");
    assert!(clock.rate.error_ppb <= 3, "{} ppb", clock.rate.error_ppb);
}

#[test]
fn rare_and_irregular_recalibrations_converge() {
    let mut clock = simulated();
    let mut at = 11 * SECOND;
    let mut noise = 1_u64;
    for gap in [1, 100, 1, 3, 600, 2, 2, 50, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] {
        at += gap * SECOND;
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut now = sample(at);
        now.ticks.0 += noise >> 58;
        let bound = clock.calibration().error_ns_at(now.ticks) + now.error_ns(clock.rate);
        let found = clock.recalibrate_with(now);
        assert!(!found.jumped && found.offset_ns.unsigned_abs() <= bound, "{found:?}, bound {bound} ns");
    }
    let off = clock.at(Ticks(at * 3)).since(utc(at)).unsigned_abs();
    assert!(off < 1_000, "{off} ns");
}

#[test]
fn a_step_of_utc_is_reported_and_followed_on_demand_only() {
    for step_ns in [-3_600 * SECOND as i64, 5_000, 90 * SECOND as i64] {
        let mut clock = simulated();
        let stepped = |at| Sample { utc_offset_ns: sample(at).utc_offset_ns + step_ns, ..sample(at) };
        assert_eq!(clock.recalibrate_with(sample(11 * SECOND)).step_ns, 0);
        for second in 12..15 {
            let found = clock.recalibrate_with(stepped(second * SECOND));
            assert_eq!((found.step_ns, found.jumped), (step_ns, false));
            assert!(found.offset_ns.abs() < 10, "{found:?}");
        }
        assert_eq!(clock.step_ns(), step_ns);
        let at = 15 * SECOND;
        assert!(clock.at(Ticks(at * 3)).since(utc(at)).abs() < 100, "its own time line goes on");
        clock.adopt_step();
        assert_eq!(clock.step_ns(), 0);
        let moved = clock.at(Ticks(at * 3)).since(utc(at));
        assert!((moved - step_ns).abs() < 100, "{moved}");
        assert_eq!(clock.recalibrate_with(stepped(16 * SECOND)).step_ns, 0);
    }
}

#[test]
fn a_counter_that_jumped_is_set_anew_and_reported() {
    for ticks in [3 * 50 * SECOND, 5] {
        let mut clock = simulated();
        let now = Sample { ticks: Ticks(ticks), ..sample(11 * SECOND) };
        assert!(clock.recalibrate_with(now).jumped);
        assert_eq!(clock.at(Ticks(ticks)), utc(11 * SECOND));
        let later = Sample { ticks: Ticks(ticks + 3 * SECOND), ..sample(12 * SECOND) };
        assert!(!clock.recalibrate_with(later).jumped);
    }
}

#[test]
fn impossible_rates_are_refused() {
    let at = |ticks, monotonic_ns| Sample { ticks: Ticks(ticks), monotonic_ns, ..sample(0) };
    for (second, why) in [
        (at(100, 50_000_000), "standing still"),
        (at(50, 50_000_000), "going back"),
        (at(1_000_000, 50_000_000), "20 MHz"),
        (at(u64::MAX, 50_000_000), "faster than anything"),
        (at(150_000_000, 0), "no time has passed"),
    ] {
        assert!(Clock::fit(&at(100, 0), &second).is_none(), "{why}");
    }
}

#[test]
fn a_shared_calibration_gives_the_same_times() {
    let clock = Clock::calibrate();
    let words = clock.calibration().to_words();
    let mut other = Clock::with(Calibration::from_words(words).unwrap());
    let reading = ticks();
    assert_eq!(other.at(reading), clock.at(reading));
    assert_eq!(other.calibration().to_words(), words);
    let found = other.recalibrate();
    assert!(!found.jumped && found.step_ns == 0, "{found:?}");
    assert!(other.now() >= clock.at(reading));
}

#[test]
fn words_that_are_no_calibration_are_refused() {
    let words = Clock::calibrate().calibration().to_words();
    assert_eq!(Calibration::from_words([0; 4]), None);
    assert_eq!(Calibration::from_words([u64::MAX; 4]), None);
    let other_source = words[3] ^ 3 << 56;
    assert_eq!(Calibration::from_words([words[0], words[1], words[2], other_source]), None);
    for rate in [0, 1, u64::MAX, 1 << 58] {
        assert_eq!(Calibration::from_words([words[0], words[1], rate, words[3]]), None);
    }
}

proptest! {
    #[test]
    fn hostile_words_are_harmless(words: [u64; 4], rate in 1_u64 << 50..1 << 58, readings: [u64; 2]) {
        let marked = words[3] & u64::MAX >> 8 | (0xc0 | tick_source() as u64) << 56;
        if let Some(calibration) = Calibration::from_words([words[0], words[1], rate, marked]) {
            let [one, other] = readings.map(Ticks);
            let _ = (calibration.at(one), calibration.error_ns_at(one), calibration.ticks_khz());
            let there = calibration.ns_between(one, other);
            prop_assert!(there == i64::MIN || -there == calibration.ns_between(other, one) || there == i64::MAX);
            let mut clock = Clock::with(calibration);
            clock.recalibrate();
            clock.adopt_step();
            let _ = (clock.now(), clock.error_ns(), clock.ticks_in(u64::MAX));
        }
    }

    #[test]
    fn time_is_monotone_in_ticks(anchor in 0..u64::MAX / 2, a in 0_u64..1 << 62, b in 0_u64..1 << 62) {
        let mut words = simulated().calibration().to_words();
        words[0] = anchor;
        let calibration = Calibration::from_words(words).unwrap();
        let (early, late) = (a.min(b), a.max(b));
        prop_assert!(calibration.at(Ticks(anchor + early)) <= calibration.at(Ticks(anchor + late)));
    }

    #[test]
    fn a_tick_more_than_the_nearest_covers_any_time(rate in 1_u64 << 52..1 << 57, ns in 0_u64..1 << 50) {
        let mut words = simulated().calibration().to_words();
        words[2] = rate;
        if let Some(calibration) = Calibration::from_words(words) {
            let clock = Clock::with(calibration);
            let ticks = clock.ticks_in(ns);
            prop_assert!(clock.ns_between(Ticks(0), Ticks(ticks + 1)) >= ns as i64);
            prop_assert!(clock.ns_between(Ticks(0), Ticks(ticks)).abs_diff(ns as i64) <= 2);
        }
    }
}
