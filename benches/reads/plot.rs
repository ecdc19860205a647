//! A plot of latency against depth, as SVG.

use std::fmt::Write;

use crate::harness::report::grouped;
use crate::harness::svg::{self, COLOURS};

/// A line of the plot.
pub struct Line<'a> {
    pub label: &'a str,
    /// In order: page and milliseconds, neither of them 0.
    pub points: Vec<(u64, f64)>,
}

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 460.0;
/// What the lines lie in; to its right are their labels.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 400.0;

/// Least distance between two labels.
const LINE_HEIGHT: f64 = 17.0;

/// A scale of powers of ten.
struct Scale {
    /// Exponents.
    from: i32,
    to: i32,
    /// Where on the picture.
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

/// The whole file; empty without lines.
pub fn draw(title: &str, lines: &[Line<'_>]) -> String {
    let mut text = String::new();
    if lines.iter().any(|line| !line.points.is_empty()) {
        // Writing to a string does not fail.
        let _ = draw_all(&mut text, title, lines);
    }
    text
}

fn draw_all(text: &mut String, title: &str, lines: &[Line<'_>]) -> std::fmt::Result {
    let points = || lines.iter().flat_map(|line| &line.points);
    let across = Scale::around(points().map(|(page, _)| *page as f64), (LEFT, RIGHT));
    let up = Scale::around(points().map(|(_, millis)| *millis), (BOTTOM, TOP));
    svg::begin(text, title, (WIDTH, HEIGHT), LEFT)?;
    for page in across.powers() {
        let x = across.place(page);
        writeln!(text, r##"<path d="M{x:.1} {TOP}V{BOTTOM}" stroke="#e4e4e4"/>"##)?;
        let (y, label) = (BOTTOM + 20.0, grouped(page as u64));
        writeln!(text, r#"<text x="{x:.1}" y="{y}" text-anchor="middle">{label}</text>"#)?;
    }
    for millis in up.powers() {
        let (x, y) = (LEFT - 8.0, up.place(millis));
        writeln!(text, r##"<path d="M{LEFT} {y:.1}H{RIGHT}" stroke="#e4e4e4"/>"##)?;
        writeln!(text, r#"<text x="{x}" y="{:.1}" text-anchor="end">{millis} ms</text>"#, y + 4.0)?;
    }
    let (middle, below) = (f64::midpoint(LEFT, RIGHT), BOTTOM + 44.0);
    writeln!(text, r#"<text x="{middle}" y="{below}" text-anchor="middle">page</text>"#)?;
    let heights = label_heights(lines, &up);
    for ((line, colour), height) in lines.iter().zip(COLOURS.iter().cycle()).zip(heights) {
        let place = |(page, millis): &(u64, f64)| (across.place(*page as f64), up.place(*millis));
        let way: Vec<String> = line.points.iter().map(place).map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        writeln!(text, r#"<path d="M{}" fill="none" stroke="{colour}" stroke-width="2.5"/>"#, way.join("L"))?;
        for (x, y) in line.points.iter().map(place) {
            writeln!(text, r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5" fill="{colour}"/>"#)?;
        }
        let (x, y) = (RIGHT + 12.0, height + 4.0);
        writeln!(text, r#"<text x="{x}" y="{y:.1}" fill="{colour}">{}</text>"#, line.label)?;
    }
    writeln!(text, "</svg>")
}

/// Beside the ends of the lines, but not on top of each other.
fn label_heights(lines: &[Line<'_>], up: &Scale) -> Vec<f64> {
    let ends: Vec<f64> =
        lines.iter().map(|line| line.points.last().map_or(BOTTOM, |(_, millis)| up.place(*millis))).collect();
    let mut from_above: Vec<usize> = (0..lines.len()).collect();
    from_above.sort_by(|a, b| ends[*a].total_cmp(&ends[*b]));
    let mut heights = ends.clone();
    for pair in from_above.windows(2) {
        heights[pair[1]] = heights[pair[1]].max(heights[pair[0]] + LINE_HEIGHT);
    }
    heights
}
