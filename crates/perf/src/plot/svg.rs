//! The SVG elements that plots use.

use std::fmt::Write as _;

/// A drawing under construction. Coordinates are in pixels from the upper left.
#[derive(Debug)]
pub(super) struct Svg(String);

const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',sans-serif;fill:#222}\
.title{font-size:16px;font-weight:600}.axis-title{font-size:13px}.label{font-size:12px;fill:#444}\
.legend{font-size:13px}.grid{stroke:#ddd}.fine{stroke:#f1f1f1}.axis{stroke:#444}\
.reference{stroke:#888;stroke-dasharray:2 4}";

impl Svg {
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let title = escaped(title);
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{title}\">\n<style>{STYLE}</style>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
        ))
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    /// A text; `anchor` is `start`, `middle` or `end`.
    pub(super) fn text(&mut self, at: (f64, f64), anchor: &str, class: &str, text: &str) {
        let ((x, y), text) = (at, escaped(text));
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// The title of the vertical axis, which reads upwards.
    pub(super) fn vertical_text(&mut self, at: (f64, f64), text: &str) {
        let ((x, y), text) = (at, escaped(text));
        self.put(format_args!(
            "<text class=\"axis-title\" text-anchor=\"middle\" transform=\"translate({x:.1} {y:.1}) rotate(-90)\">{text}</text>"
        ));
    }

    /// A line through all points; nothing through fewer than two.
    pub(super) fn path(&mut self, points: &[(f64, f64)], colour: &str, dashed: bool) {
        if points.len() < 2 {
            return;
        }
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashes = if dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        self.put(format_args!(
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dashes} points=\"{}\"/>",
            points.join(" ")
        ));
    }

    /// A filled rectangle of this width and height; `said` is its tooltip.
    pub(super) fn bar(&mut self, at: (f64, f64), (width, height): (f64, f64), colour: &str, said: &str) {
        let ((x, y), said) = (at, escaped(said));
        self.put(format_args!(
            "<rect class=\"bar\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"><title>{said}</title></rect>"
        ));
    }

    /// A bar from the smallest to the largest measurement.
    pub(super) fn spread(&mut self, x: f64, low: f64, high: f64, colour: &str) {
        self.put(format_args!(
            "<path stroke=\"{colour}\" stroke-opacity=\"0.6\" d=\"M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h5M{:.1} {high:.1}h5\"/>",
            x - 2.5,
            x - 2.5
        ));
    }

    /// A point whose shape depends on its colour, filled unless its line is dashed; `said` is its tooltip.
    pub(super) fn mark(&mut self, at: (f64, f64), shape: usize, colour: &str, hollow: bool, said: &str) {
        let ((x, y), said) = (at, escaped(said));
        let fill = if hollow { "#fff" } else { colour };
        let path = match shape % 4 {
            0 => format!("M{x:.1} {y:.1}m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"),
            1 => format!("M{x:.1} {y:.1}m-3.5 -3.5h7v7h-7z"),
            2 => format!("M{x:.1} {y:.1}m0 -4.5l4.5 8h-9z"),
            _ => format!("M{x:.1} {y:.1}m0 -5l5 5l-5 5l-5 -5z"),
        };
        self.put(format_args!(
            "<path class=\"mark\" d=\"{path}\" fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.5\"><title>{said}</title></path>"
        ));
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }

    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // Cannot fail: this writes to memory.
        let _ = writeln!(self.0, "{element}");
    }
}

/// Escapes text for elements and attributes, of a page as well.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
