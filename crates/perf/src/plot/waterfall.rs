//! A waterfall: each part of a whole begins where the part before it ends.

use super::svg::Svg;
use super::{COLOURS, LEGEND_LINE, RIGHT, Scale, TOP, WIDTH, axis};

/// A part of the whole, with the floor under it.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The name.
    pub name: String,
    /// Its length.
    pub value: f64,
    /// The least that it can be here, if that was measured.
    pub floor: Option<f64>,
}

/// Parts of one whole, one below the other.
#[derive(Clone, Debug)]
pub struct Waterfall {
    /// The heading.
    pub title: String,
    /// Title of the axis, with its unit.
    pub x_title: String,
    /// The parts, in order.
    pub parts: Vec<Bar>,
    /// What a floor is, for the legend.
    pub floor: String,
}

/// Left edge of the bars: the names stand before it.
const BARS: f64 = 190.0;
/// Right edge of the bars: a value stands behind the last one.
const END: f64 = WIDTH - RIGHT - 90.0;
const ROW: f64 = 34.0;
const THICK: f64 = 18.0;

impl Waterfall {
    /// The plot as a self-contained file, which can also be embedded in a page.
    pub fn svg(&self) -> String {
        let bottom = TOP + ROW * self.parts.len() as f64;
        let mut svg = Svg::new(WIDTH, bottom + 56.0 + LEGEND_LINE, &self.title);
        svg.text((WIDTH / 2.0, 24.0), "middle", "title", &self.title);
        let whole: f64 = self.parts.iter().map(|part| part.value.max(0.0)).sum();
        let axis = axis::Axis::over(Scale::Linear, &[whole]);
        let x = |value: f64| BARS + (END - BARS) * axis.share(value).unwrap_or(0.0);
        for tick in axis.ticks() {
            svg.line((x(tick.value), TOP), (x(tick.value), bottom), "grid");
            if let Some(label) = &tick.label {
                svg.text((x(tick.value), bottom + 18.0), "middle", "label", label);
            }
        }
        let mut begin = 0.0;
        for (part, row) in self.parts.iter().zip(0_u16..) {
            let y = TOP + ROW * f64::from(row) + (ROW - THICK) / 2.0;
            let value = part.value.max(0.0);
            let shown = axis::short(part.value);
            let floor = part.floor.map_or(String::new(), |floor| format!(" ({})", axis::short(floor)));
            let said = format!("{}: {shown}{floor}", part.name);
            svg.text((BARS - 10.0, y + THICK - 5.0), "end", "label", &part.name);
            svg.bar((x(begin), y), (x(begin + value) - x(begin), THICK), COLOURS[0], &said);
            if let Some(floor) = part.floor {
                let length = x(begin + floor.clamp(0.0, value)) - x(begin);
                svg.bar((x(begin), y), (length, THICK), COLOURS[5], &said);
            }
            begin += value;
            svg.text((x(begin) + 6.0, y + THICK - 5.0), "start", "label", &format!("{shown}{floor}"));
        }
        svg.line((BARS, TOP), (BARS, bottom), "axis");
        svg.text((BARS.midpoint(END), bottom + 38.0), "middle", "axis-title", &self.x_title);
        if self.parts.iter().any(|part| part.floor.is_some()) {
            svg.bar((BARS, bottom + 50.0), (24.0, 12.0), COLOURS[5], &self.floor);
            svg.text((BARS + 32.0, bottom + 61.0), "start", "legend", &self.floor);
        }
        svg.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_begins_where_the_one_before_ends() {
        let part = |name: &str, value, floor| Bar { name: name.to_owned(), value, floor };
        let waterfall = Waterfall {
            title: "Where the time goes".to_owned(),
            x_title: "µs".to_owned(),
            parts: vec![part("wire→decoded", 30.0, Some(20.0)), part("→received", 70.0, None)],
            floor: "a bare relay".to_owned(),
        };
        let svg = waterfall.svg();
        for said in ["wire→decoded", "30 (20)", "→received: 70", "a bare relay"] {
            assert!(svg.contains(said), "{said}\n{svg}");
        }
        let bars: Vec<_> = svg.lines().filter(|line| line.starts_with("<rect class=\"bar\"")).collect();
        let end = |bar: &str| {
            let number = |name: &str| -> f64 {
                bar.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
            };
            (number("x"), number("x") + number("width"))
        };
        // The first part, its floor, the second part, the legend.
        assert_eq!(bars.len(), 4);
        assert!((end(bars[0]).1 - end(bars[2]).0).abs() < 0.2 && end(bars[1]).0 == end(bars[0]).0, "{svg}");
    }

    #[test]
    fn a_floor_is_never_longer_than_its_part_and_nothing_is_no_failure() {
        let long = Bar { name: "a".to_owned(), value: 1.0, floor: Some(5.0) };
        for parts in [Vec::new(), vec![long]] {
            let drawn =
                Waterfall { title: String::new(), x_title: String::new(), parts, floor: String::new() }.svg();
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        }
    }
}
