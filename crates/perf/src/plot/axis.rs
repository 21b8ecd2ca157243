//! A plot's axis: the positions of values and of ticks.

use super::Scale;

/// An axis with its range.
#[derive(Debug)]
pub(super) struct Axis {
    scale: Scale,
    least: f64,
    most: f64,
}

/// A tick on an axis; only some have a label.
#[derive(Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: Option<String>,
}

/// Approximate number of intervals between ticks of a linear axis.
const STEPS: f64 = 6.0;
/// From this number of powers of ten on, a logarithmic axis has labels at the powers only.
const WIDE: f64 = 3.0;

impl Axis {
    /// An axis that covers all values.
    pub(super) fn over(scale: Scale, values: &[f64]) -> Self {
        let drawn = values.iter().copied().filter(|value| value.is_finite());
        match scale {
            Scale::Linear => {
                let most = drawn.fold(0.0, f64::max);
                let most = if most > 0.0 { most } else { 1.0 };
                let step = step(most);
                Self { scale, least: 0.0, most: (most / step).ceil() * step }
            }
            Scale::Nines => {
                let most = drawn.filter(|share| *share < 1.0).map(nines).fold(1.0, f64::max);
                Self { scale, least: 0.0, most: most.min(MOST_NINES) }
            }
            Scale::Logarithmic => {
                let above: Vec<f64> = drawn.filter(|value| *value > 0.0).collect();
                let least = above.iter().copied().fold(f64::INFINITY, f64::min);
                let most = above.iter().copied().fold(0.0, f64::max);
                if above.is_empty() {
                    return Self { scale, least: 1.0, most: 10.0 };
                }
                let (least, most) = (below(least), beyond(most));
                Self { scale, least, most: if most > least { most } else { least * 10.0 } }
            }
        }
    }

    /// The position of a value, 0 to 1 from the lower end; `None` if it cannot be drawn.
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        let share = match self.scale {
            Scale::Linear => (value - self.least) / (self.most - self.least),
            Scale::Logarithmic if value > 0.0 => {
                (value / self.least).log10() / (self.most / self.least).log10()
            }
            Scale::Nines if (0.0..1.0).contains(&value) => nines(value) / self.most,
            Scale::Logarithmic | Scale::Nines => return None,
        };
        (-1e-9..=1.0 + 1e-9).contains(&share).then_some(share)
    }

    pub(super) fn ticks(&self) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => {
                let step = step(self.most);
                let steps = (self.most / step).round() as u32;
                (0..=steps)
                    .map(|number| f64::from(number) * step)
                    .map(|value| Tick { value, label: Some(short(value)) })
                    .collect()
            }
            Scale::Nines => {
                let shares = (0..=self.most as i32).map(|count| 1.0 - 10f64.powi(-count));
                [0.5]
                    .into_iter()
                    .chain(shares)
                    .map(|value| Tick { value, label: Some(percent(value)) })
                    .collect()
            }
            Scale::Logarithmic => {
                let wide = (self.most / self.least).log10() > WIDE;
                let (first, last) = (self.least.log10().floor() as i32, self.most.log10().ceil() as i32);
                (first..=last)
                    .flat_map(|power| (1..10).map(move |digit| (digit, f64::from(digit) * 10f64.powi(power))))
                    .filter(|(_, value)| self.share(*value).is_some())
                    .map(|(digit, value)| {
                        let numbered = digit == 1 || (!wide && matches!(digit, 2 | 5));
                        Tick { value, label: numbered.then(|| short(value)) }
                    })
                    .collect()
            }
        }
    }
}

/// Limit of nines on an axis: more than the samples of any run support.
const MOST_NINES: f64 = 9.0;

/// The number of nines in a share: 0 has none, 0.9 one, 0.99 two.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

/// Formats a share: `50 %`, `99.9 %`.
fn percent(share: f64) -> String {
    let text = format!("{:.7}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The distance between ticks of a linear axis: 1, 2 or 5 times a power of ten.
fn step(most: f64) -> f64 {
    let rough = most / STEPS;
    let power = 10f64.powf(rough.log10().floor());
    let digit = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| rough <= digit * power * (1.0 + 1e-9));
    digit.unwrap_or(10.0) * power
}

/// The largest number of the form 1, 2 or 5 times a power of ten that is not above `value`.
fn below(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|digit| digit * power).find(|start| *start <= value).unwrap_or(power)
}

/// The smallest such number that is not below `value`.
fn beyond(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|end| *end >= value)
        .unwrap_or(10.0 * power)
}

/// A number with the digits that a plot needs: `0.05`, `1.5`, `20`, `1,500`, `2 M`.
pub(super) fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, " G"),
        size if size >= 1e6 => (value / 1e6, " M"),
        size if size >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().filter_map(|tick| tick.label).collect()
    }

    #[test]
    fn a_linear_axis_begins_at_zero_and_ends_on_a_tick() {
        let axis = Axis::over(Scale::Linear, &[3.0, 87.0]);
        assert_eq!(labels(&axis), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!((axis.share(0.0), axis.share(50.0), axis.share(101.0)), (Some(0.0), Some(0.5), None));
    }

    #[test]
    fn a_logarithmic_axis_has_round_ends() {
        let axis = Axis::over(Scale::Logarithmic, &[12.0, 180.0]);
        assert_eq!(labels(&axis), ["10", "20", "50", "100", "200"]);
        assert_eq!(axis.share(0.0), None);
        let wide = Axis::over(Scale::Logarithmic, &[150.0, 40_000_000.0]);
        assert_eq!(labels(&wide), ["100", "1000", "10 k", "100 k", "1 M", "10 M"]);
        let one = Axis::over(Scale::Logarithmic, &[1.0]);
        assert!(one.share(1.0).is_some_and(f64::is_finite));
    }

    #[test]
    fn each_nine_has_as_much_room() {
        let axis = Axis::over(Scale::Nines, &[0.0, 0.5, 0.9999]);
        assert_eq!(labels(&axis), ["50 %", "0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        let near = |share: f64, at: f64| (axis.share(share).unwrap() - at).abs() < 1e-6;
        assert!(near(0.0, 0.0) && near(0.9, 0.25) && near(0.99, 0.5) && near(0.9999, 1.0));
        assert_eq!((axis.share(1.0), axis.share(-0.1), axis.share(0.999_999)), (None, None, None));
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.046, "0.046"),
            (1.5, "1.5"),
            (20.0, "20"),
            (1500.0, "1500"),
            (25_000.0, "25 k"),
            (2e6, "2 M"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
