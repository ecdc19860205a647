//! What plots have in common.

use std::fmt::{Result, Write};

/// Okabe and Ito's, which colour-blind people can tell apart.
pub const COLOURS: [&str; 7] = ["#0072b2", "#56b4e9", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#000000"];

/// The beginning of the file, with a title at the left. It ends with `</svg>`.
pub fn begin(text: &mut String, title: &str, (width, height): (f64, f64), left: f64) -> Result {
    writeln!(
        text,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13" fill="#222">"##
    )?;
    writeln!(text, "<title>{title}</title>")?;
    // A ground of its own: it is also shown on dark pages.
    writeln!(text, r##"<rect width="100%" height="100%" fill="#fff"/>"##)?;
    writeln!(text, r#"<text x="{left}" y="26" font-size="15" font-weight="bold">{title}</text>"#)
}
