//! Curves over a numeric axis.

use super::axis::{self, Axis};
use super::svg::Svg;
use super::{COLOURS, LEFT, LEGEND_COLUMNS, LEGEND_LINE, PLOT_HEIGHT, RIGHT, Scale, TOP, WIDTH, X_AXIS};

/// A curve through its points, in order.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// Points: horizontal and vertical value.
    pub points: Vec<(f64, f64)>,
    /// Number of the colour; curves of one family share a colour.
    pub colour: usize,
    /// `true` for a dashed line.
    pub dashed: bool,
}

/// Curves over a numeric axis.
#[derive(Clone, Debug)]
pub struct Curves {
    /// The heading.
    pub title: String,
    /// Title of the horizontal axis, with its unit.
    pub x_title: String,
    /// Title of the vertical axis, with its unit.
    pub y_title: String,
    /// Scale of the horizontal axis.
    pub across: Scale,
    /// Scale of the vertical axis.
    pub up: Scale,
    /// The curves.
    pub curves: Vec<Curve>,
    /// A line over the whole width, and its label: for instance the noise of the machine.
    pub reference: Option<(f64, String)>,
}

impl Curves {
    /// The plot as a self-contained file, which can also be embedded in a page.
    pub fn svg(&self) -> String {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let across = Axis::over(self.across, &points().map(|(x, _)| *x).collect::<Vec<_>>());
        let reference = self.reference.iter().map(|(y, _)| *y);
        let up = Axis::over(self.up, &points().map(|(_, y)| *y).chain(reference).collect::<Vec<_>>());
        let x_at = |x: f64| across.share(x).map(|share| LEFT + (WIDTH - LEFT - RIGHT) * share);
        let y_at = |y: f64| up.share(y).map(|share| TOP + PLOT_HEIGHT * (1.0 - share));
        let bottom = TOP + PLOT_HEIGHT;

        let rows = self.curves.len().div_ceil(LEGEND_COLUMNS);
        let height = bottom + X_AXIS + rows as f64 * LEGEND_LINE + 10.0;
        let mut svg = Svg::new(WIDTH, height, &self.title);
        svg.text((WIDTH / 2.0, 24.0), "middle", "title", &self.title);
        for tick in up.ticks() {
            let Some(y) = y_at(tick.value) else { continue };
            svg.line((LEFT, y), (WIDTH - RIGHT, y), if tick.label.is_some() { "grid" } else { "fine" });
            if let Some(label) = &tick.label {
                svg.text((LEFT - 8.0, y + 4.0), "end", "label", label);
            }
        }
        for tick in across.ticks() {
            let (Some(x), Some(label)) = (x_at(tick.value), &tick.label) else { continue };
            svg.line((x, bottom), (x, bottom + 5.0), "axis");
            svg.text((x, bottom + 20.0), "middle", "label", label);
        }
        svg.line((LEFT, TOP), (LEFT, bottom), "axis");
        svg.line((LEFT, bottom), (WIDTH - RIGHT, bottom), "axis");
        if let Some((value, what)) = &self.reference
            && let Some(y) = y_at(*value)
        {
            svg.line((LEFT, y), (WIDTH - RIGHT, y), "reference");
            svg.text((WIDTH - RIGHT - 4.0, y - 5.0), "end", "label", what);
        }
        svg.vertical_text((18.0, TOP + PLOT_HEIGHT / 2.0), &self.y_title);
        svg.text((LEFT.midpoint(WIDTH - RIGHT), bottom + 42.0), "middle", "axis-title", &self.x_title);
        for (number, curve) in self.curves.iter().enumerate() {
            let colour = COLOURS[curve.colour % COLOURS.len()];
            let placed = curve.points.iter().filter_map(|(x, y)| Some((x_at(*x)?, y_at(*y)?)));
            svg.path(&placed.collect::<Vec<_>>(), colour, curve.dashed);
            if let Some((x, y)) = curve.points.last() {
                let said = format!("{}: {} at {}", curve.name, axis::short(*y), axis::short(*x));
                if let (Some(x), Some(y)) = (x_at(*x), y_at(*y)) {
                    svg.mark((x, y), curve.colour, colour, curve.dashed, &said);
                }
            }
            let (row, column) = (number / LEGEND_COLUMNS, number % LEGEND_COLUMNS);
            let x = LEFT + column as f64 * (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS as f64;
            let y = bottom + X_AXIS + row as f64 * LEGEND_LINE + 8.0;
            svg.path(&[(x, y), (x + 34.0, y)], colour, curve.dashed);
            svg.mark((x + 17.0, y), curve.colour, colour, curve.dashed, &curve.name);
            svg.text((x + 42.0, y + 4.0), "start", "legend", &curve.name);
        }
        svg.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_have_all_that_is_needed_to_read_them() {
        let curve = |name: &str, end: f64, colour| Curve {
            name: name.to_owned(),
            points: vec![(0.0, 50_000.0), (end / 2.0, 20_000.0), (end, 0.0)],
            colour,
            dashed: colour == 1,
        };
        let curves = Curves {
            title: "Backlog <after> a burst".to_owned(),
            x_title: "milliseconds".to_owned(),
            y_title: "datagrams".to_owned(),
            across: Scale::Linear,
            up: Scale::Linear,
            reference: Some((10_000.0, "so much always".to_owned())),
            curves: vec![curve("one", 30.0, 0), curve("other", 80.0, 1)],
        };
        let svg = curves.svg();
        for said in [
            "Backlog &lt;after&gt; a burst",
            "milliseconds",
            "datagrams",
            ">one<",
            ">80<",
            ">50 k<",
            "other: 0 at 80",
            "so much always",
        ] {
            assert!(svg.contains(said), "{said}\n{svg}");
        }
        let empty = Curves { curves: Vec::new(), ..curves }.svg();
        assert!(!empty.contains("NaN") && !empty.contains("inf"), "{empty}");
    }
}
