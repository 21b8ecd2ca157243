//! Drawings as PNG.

use std::sync::Arc;

use anyhow::Context;
use resvg::{tiny_skia, usvg};
use tapeline_console::failure::Hinted;

/// Renders drawings with the fonts of this machine.
pub(super) struct Painter {
    options: usvg::Options<'static>,
}

/// Rendered pixels for each pixel of the drawing, for high-resolution screens.
const ZOOM: f32 = 2.0;

impl Painter {
    /// # Errors
    /// The machine has no fonts, so that plots would have no labels.
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut options = usvg::Options::default();
        let fonts = Arc::make_mut(&mut options.fontdb);
        fonts.load_system_fonts();
        let families = || fonts.faces().filter_map(|face| Some(face.families.first()?.0.clone()));
        let plain = families().find(|name| name.ends_with("Sans") || name.contains("Arial"));
        let Some(family) = plain.or_else(|| families().next()) else {
            let hint = "install some, such as fonts-dejavu-core, or take --svg, which needs none";
            return Err(Hinted::new("a PNG needs fonts, and this machine has none", hint).into());
        };
        // The requested font may be missing: use any.
        fonts.set_sans_serif_family(family);
        Ok(Self { options })
    }

    /// Renders a drawing as PNG.
    pub(super) fn png(&self, svg: &str) -> anyhow::Result<Vec<u8>> {
        let tree = usvg::Tree::from_str(svg, &self.options).context("a plot is no SVG")?;
        let size = tree.size().to_int_size().scale_by(ZOOM).context("a plot has no size")?;
        let mut pixels =
            tiny_skia::Pixmap::new(size.width(), size.height()).context("a plot is too large")?;
        resvg::render(&tree, tiny_skia::Transform::from_scale(ZOOM, ZOOM), &mut pixels.as_mut());
        pixels.encode_png().context("a plot cannot be encoded")
    }
}
