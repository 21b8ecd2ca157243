//! Plots as SVG from given figures: nothing is measured or calculated here.
//!
//! The SVG writer is small: the reports need only lines over categories with their spread, on a linear or
//! logarithmic axis, readable without the page around them. That takes two small files. A plotting library would
//! be several crates, has no error bars over categories, and needs a font to measure the width of a text.

mod axis;
mod curves;
mod svg;
mod waterfall;

use self::axis::Axis;
pub use self::curves::{Curve, Curves};
use self::svg::Svg;
pub(crate) use self::svg::escaped;
pub use self::waterfall::{Bar, Waterfall};

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear, from zero.
    Linear,
    /// Logarithmic: equal distances are equal ratios. Values of zero and below are left out.
    Logarithmic,
    /// For shares from 0 to below 1: each nine (90 %, 99 %, 99.9 %) takes the same length. 1 is left out.
    Nines,
}

/// A value with its spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The median, or the only measurement.
    pub value: f64,
    /// The smallest measurement.
    pub least: f64,
    /// The largest measurement.
    pub most: f64,
}

/// A line of points, one for each category; `None` where nothing was measured.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// One point for each category.
    pub points: Vec<Option<Point>>,
    /// Number of the colour. Series of one family share a colour and differ by their dashes.
    pub colour: usize,
    /// `true` for a dashed line.
    pub dashed: bool,
}

/// Lines over categories.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The heading.
    pub title: String,
    /// Title of the horizontal axis, with its unit.
    pub x_title: String,
    /// Title of the vertical axis, with its unit.
    pub y_title: String,
    /// Scale of the vertical axis.
    pub scale: Scale,
    /// Names along the horizontal axis.
    pub categories: Vec<String>,
    /// The lines.
    pub series: Vec<Series>,
    /// A line over the whole width, and its label: for instance the noise of the machine.
    pub reference: Option<(f64, String)>,
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 44.0;
const PLOT_HEIGHT: f64 = 320.0;
/// Height below the plot, for labels and title of the axis.
const X_AXIS: f64 = 56.0;
const LEGEND_LINE: f64 = 20.0;
const LEGEND_COLUMNS: usize = 2;

/// Colours that people with any colour vision tell apart (Okabe and Ito, "Color Universal Design", 2008), without its
/// yellow, which is too light for lines on white.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"];

impl Chart {
    /// The plot as a self-contained file, which can also be embedded in a page.
    pub fn svg(&self) -> String {
        let mut svg = begun(&self.title, self.series.len());
        let axis = self.axis();
        draw_levels(&mut svg, &axis);
        svg.line((LEFT, TOP), (LEFT, TOP + PLOT_HEIGHT), "axis");
        svg.vertical_text((18.0, TOP + PLOT_HEIGHT / 2.0), &self.y_title);
        self.draw_x_axis(&mut svg);
        draw_reference(&mut svg, &axis, self.reference.as_ref());
        for (number, series) in self.series.iter().enumerate() {
            self.draw_series(&mut svg, &axis, number, series);
            draw_legend(&mut svg, number, &series.name, series.colour, series.dashed);
        }
        svg.finish()
    }

    fn axis(&self) -> Axis {
        let points = self.series.iter().flat_map(|series| series.points.iter().flatten());
        let ends = points.flat_map(|point| [point.least, point.value, point.most]);
        let values: Vec<f64> = ends.chain(self.reference.iter().map(|(value, _)| *value)).collect();
        Axis::over(self.scale, &values)
    }

    fn draw_x_axis(&self, svg: &mut Svg) {
        let bottom = TOP + PLOT_HEIGHT;
        svg.line((LEFT, bottom), (WIDTH - RIGHT, bottom), "axis");
        for (number, category) in self.categories.iter().enumerate() {
            let x = self.x(number);
            svg.line((x, bottom), (x, bottom + 5.0), "axis");
            svg.text((x, bottom + 20.0), "middle", "label", category);
        }
        svg.text((LEFT.midpoint(WIDTH - RIGHT), bottom + 42.0), "middle", "axis-title", &self.x_title);
    }

    fn draw_series(&self, svg: &mut Svg, axis: &Axis, number: usize, series: &Series) {
        let colour = COLOURS[series.colour % COLOURS.len()];
        // Offset each series, so that its spread does not hide another's.
        let aside = (number as f64 - (self.series.len() as f64 - 1.0) / 2.0) * 2.5;
        let mut path = Vec::new();
        for (place, point) in series.points.iter().enumerate() {
            let placed = point.and_then(|point| Some((point, y_at(axis, point.value)?)));
            let Some((point, y)) = placed else {
                svg.path(&path, colour, series.dashed);
                path.clear();
                continue;
            };
            let x = self.x(place) + aside;
            path.push((x, y));
            if let (Some(low), Some(high)) = (y_at(axis, point.least), y_at(axis, point.most)) {
                svg.spread(x, low, high, colour);
            }
            let category = self.categories.get(place).map_or("", String::as_str);
            let said = format!(
                "{}, {category}: {} ({} to {})",
                series.name,
                axis::short(point.value),
                axis::short(point.least),
                axis::short(point.most)
            );
            svg.mark((x, y), series.colour, colour, series.dashed, &said);
        }
        svg.path(&path, colour, series.dashed);
    }

    fn x(&self, category: usize) -> f64 {
        let step = (WIDTH - LEFT - RIGHT) / self.categories.len().max(1) as f64;
        LEFT + (category as f64 + 0.5) * step
    }
}

/// A plot with its title, and with room for this many lines in its legend.
fn begun(title: &str, lines: usize) -> Svg {
    let rows = lines.div_ceil(LEGEND_COLUMNS);
    let height = TOP + PLOT_HEIGHT + X_AXIS + rows as f64 * LEGEND_LINE + 10.0;
    let mut svg = Svg::new(WIDTH, height, title);
    svg.text((WIDTH / 2.0, 24.0), "middle", "title", title);
    svg
}

/// The height of a value of the vertical axis; `None` if it cannot be drawn.
fn y_at(axis: &Axis, value: f64) -> Option<f64> {
    Some(TOP + PLOT_HEIGHT * (1.0 - axis.share(value)?))
}

/// The ticks of the vertical axis, each a line over the whole width.
fn draw_levels(svg: &mut Svg, axis: &Axis) {
    for tick in axis.ticks() {
        let Some(y) = y_at(axis, tick.value) else { continue };
        svg.line((LEFT, y), (WIDTH - RIGHT, y), if tick.label.is_some() { "grid" } else { "fine" });
        if let Some(label) = &tick.label {
            svg.text((LEFT - 8.0, y + 4.0), "end", "label", label);
        }
    }
}

fn draw_reference(svg: &mut Svg, axis: &Axis, reference: Option<&(f64, String)>) {
    if let Some((value, what)) = reference
        && let Some(y) = y_at(axis, *value)
    {
        svg.line((LEFT, y), (WIDTH - RIGHT, y), "reference");
        svg.text((WIDTH - RIGHT - 4.0, y - 5.0), "end", "label", what);
    }
}

/// A line's entry in the legend.
fn draw_legend(svg: &mut Svg, number: usize, name: &str, colour: usize, dashed: bool) {
    let (row, column) = (number / LEGEND_COLUMNS, number % LEGEND_COLUMNS);
    let x = LEFT + column as f64 * (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS as f64;
    let y = TOP + PLOT_HEIGHT + X_AXIS + row as f64 * LEGEND_LINE + 8.0;
    let stroke = COLOURS[colour % COLOURS.len()];
    svg.path(&[(x, y), (x + 34.0, y)], stroke, dashed);
    svg.mark((x + 17.0, y), colour, stroke, dashed, name);
    svg.text((x + 42.0, y + 4.0), "start", "legend", name);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(scale: Scale) -> Chart {
        let point = |value: f64| Some(Point { value, least: value * 0.9, most: value * 1.2 });
        let series = |name: &str, points: Vec<Option<Point>>, colour, dashed| Series {
            name: name.to_owned(),
            points,
            colour,
            dashed,
        };
        Chart {
            title: "Throughput <by> size & framing".to_owned(),
            x_title: "message size, bytes".to_owned(),
            y_title: "million messages/s".to_owned(),
            scale,
            categories: ["25", "32", "1500"].map(str::to_owned).to_vec(),
            series: vec![
                series("packed", vec![point(20.0), point(35.0), point(3.0)], 0, false),
                series("lines", vec![point(15.0), None, point(2.5)], 1, true),
            ],
            reference: Some((10.0, "what the machine takes".to_owned())),
        }
    }

    #[test]
    fn a_chart_has_all_that_is_needed_to_read_it() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let svg = chart(scale).svg();
            for said in [
                "Throughput &lt;by&gt; size &amp; framing",
                "message size, bytes",
                "million messages/s",
                ">1500<",
                ">packed<",
                ">lines<",
                "packed, 32: 35 (31.5 to 42)",
                "what the machine takes",
            ] {
                assert!(svg.contains(said), "{said}\n{svg}");
            }
            // A mark for each point, and one for each series in the legend.
            assert_eq!(svg.matches("class=\"mark\"").count(), 5 + 2, "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn nothing_to_draw_is_no_failure() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let mut empty = chart(scale);
            (empty.series, empty.categories, empty.reference) = (Vec::new(), Vec::new(), None);
            assert!(!empty.svg().contains("NaN"));
            let mut zero = chart(scale);
            zero.series[0].points[0] = Some(Point { value: 0.0, least: 0.0, most: 0.0 });
            assert!(!zero.svg().contains("NaN") && !zero.svg().contains("inf"));
        }
    }
}
