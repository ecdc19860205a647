//! A plot as SVG: lines on logarithmic scales.

use std::fmt::{Error, Write};

use crate::harness::grouped;

/// A label, and milliseconds by page.
pub type Line = (&'static str, Vec<(u64, f64)>);

/// Okabe and Ito's, which colour-blind people can tell apart.
const COLOURS: [&str; 7] = ["#0072b2", "#56b4e9", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#000000"];

/// Least distance between the labels of two lines.
const LINE_HEIGHT: f64 = 17.0;

/// A scale of powers of ten, `from` to `to`, between two places on the picture.
struct Scale {
    from: i32,
    to: i32,
    at: (f64, f64),
}

impl Scale {
    /// To the powers of ten around all values.
    fn around(values: impl Iterator<Item = f64> + Clone, at: (f64, f64)) -> Self {
        let from = values.clone().fold(f64::INFINITY, f64::min).log10().floor() as i32;
        let to = values.fold(0.0, f64::max).log10().ceil() as i32;
        Self { from, to: to.max(from + 1), at }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.log10() - f64::from(self.from)) / f64::from(self.to - self.from);
        self.at.0 + share * (self.at.1 - self.at.0)
    }

    fn powers(&self) -> impl Iterator<Item = f64> {
        (self.from..=self.to).map(|exponent| 10_f64.powi(exponent))
    }
}

/// Lines of milliseconds by page, in order. None of the numbers is 0.
pub fn plot(title: &str, lines: &[Line]) -> Result<String, Error> {
    const LEFT: f64 = 70.0;
    const RIGHT: f64 = 620.0;
    const TOP: f64 = 50.0;
    const BOTTOM: f64 = 400.0;
    let points = || lines.iter().flat_map(|(_, points)| points);
    let across = Scale::around(points().map(|(page, _)| *page as f64), (LEFT, RIGHT));
    let up = Scale::around(points().map(|(_, millis)| *millis), (BOTTOM, TOP));
    let mut text = String::new();
    writeln!(
        text,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 460" font-family="sans-serif" font-size="13" fill="#222">"##
    )?;
    writeln!(text, "<title>{title}</title>")?;
    // A ground of its own: it is also shown on dark pages.
    writeln!(text, r##"<rect width="100%" height="100%" fill="#fff"/>"##)?;
    writeln!(text, r#"<text x="{LEFT}" y="26" font-size="15" font-weight="bold">{title}</text>"#)?;
    for page in across.powers() {
        let (x, y, label) = (across.place(page), BOTTOM + 20.0, grouped(page as u64));
        writeln!(text, r##"<path d="M{x:.1} {TOP}V{BOTTOM}" stroke="#e4e4e4"/>"##)?;
        writeln!(text, r#"<text x="{x:.1}" y="{y}" text-anchor="middle">{label}</text>"#)?;
    }
    for millis in up.powers() {
        let (x, y) = (LEFT - 8.0, up.place(millis));
        writeln!(text, r##"<path d="M{LEFT} {y:.1}H{RIGHT}" stroke="#e4e4e4"/>"##)?;
        writeln!(text, r#"<text x="{x}" y="{:.1}" text-anchor="end">{millis} ms</text>"#, y + 4.0)?;
    }
    let (middle, below) = (f64::midpoint(LEFT, RIGHT), BOTTOM + 44.0);
    writeln!(text, r#"<text x="{middle}" y="{below}" text-anchor="middle">page</text>"#)?;
    // Labels are beside the ends of the lines, from above, and not on top of each other.
    let end = |(_, points): &&Line| points.last().map_or(BOTTOM, |(_, millis)| up.place(*millis));
    let mut from_above: Vec<_> = lines.iter().zip(COLOURS.iter().cycle()).collect();
    from_above.sort_by(|(a, _), (b, _)| end(a).total_cmp(&end(b)));
    let mut free = 0.0;
    for (line @ (label, points), colour) in from_above {
        let places = points.iter().map(|(page, millis)| (across.place(*page as f64), up.place(*millis)));
        let way: Vec<String> = places.clone().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        writeln!(text, r#"<path d="M{}" fill="none" stroke="{colour}" stroke-width="2.5"/>"#, way.join("L"))?;
        for (x, y) in places {
            writeln!(text, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5" fill="{colour}"/>"#)?;
        }
        let (x, y) = (RIGHT + 12.0, end(&line).max(free));
        free = y + LINE_HEIGHT;
        writeln!(text, r#"<text x="{x}" y="{:.1}" fill="{colour}">{label}</text>"#, y + 4.0)?;
    }
    writeln!(text, "</svg>")?;
    Ok(text)
}
