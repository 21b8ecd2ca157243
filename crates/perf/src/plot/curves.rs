//! Curves over a numeric axis.

use super::axis::{self, Axis};
use super::{
    COLOURS, LEFT, PLOT_HEIGHT, RIGHT, Scale, TOP, WIDTH, begun, draw_legend, draw_levels, draw_reference,
    y_at,
};

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
        let bottom = TOP + PLOT_HEIGHT;

        let mut svg = begun(&self.title, self.curves.len());
        draw_levels(&mut svg, &up);
        for tick in across.ticks() {
            let (Some(x), Some(label)) = (x_at(tick.value), &tick.label) else { continue };
            svg.line((x, bottom), (x, bottom + 5.0), "axis");
            svg.text((x, bottom + 20.0), "middle", "label", label);
        }
        svg.line((LEFT, TOP), (LEFT, bottom), "axis");
        svg.line((LEFT, bottom), (WIDTH - RIGHT, bottom), "axis");
        draw_reference(&mut svg, &up, self.reference.as_ref());
        svg.vertical_text((18.0, TOP + PLOT_HEIGHT / 2.0), &self.y_title);
        svg.text((LEFT.midpoint(WIDTH - RIGHT), bottom + 42.0), "middle", "axis-title", &self.x_title);
        for (number, curve) in self.curves.iter().enumerate() {
            let colour = COLOURS[curve.colour % COLOURS.len()];
            let placed = curve.points.iter().filter_map(|(x, y)| Some((x_at(*x)?, y_at(&up, *y)?)));
            svg.path(&placed.collect::<Vec<_>>(), colour, curve.dashed);
            if let Some((x, y)) = curve.points.last() {
                let said = format!("{}: {} at {}", curve.name, axis::short(*y), axis::short(*x));
                if let (Some(x), Some(y)) = (x_at(*x), y_at(&up, *y)) {
                    svg.mark((x, y), curve.colour, colour, curve.dashed, &said);
                }
            }
            draw_legend(&mut svg, number, &curve.name, curve.colour, curve.dashed);
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
