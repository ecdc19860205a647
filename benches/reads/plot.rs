//! Plots as SVG: lines on logarithmic scales, and bars in groups.

use std::fmt::{Error, Write};

use super::grouped;

/// A plot, and the file beside the report that it is written to.
pub struct Plot {
    pub file: &'static str,
    pub alt: &'static str,
    pub svg: String,
}

/// Values by label.
type Labelled<'a, T> = (&'a str, Vec<T>);

/// Okabe and Ito's, which colour-blind people can tell apart.
const COLOURS: [&str; 7] = ["#0072b2", "#56b4e9", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#000000"];

const WIDTH: f64 = 820.0;

/// Least distance between the labels of two lines.
const LINE_HEIGHT: f64 = 17.0;

fn begin(text: &mut String, title: &str, height: f64, left: f64) -> Result<(), Error> {
    writeln!(
        text,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13" fill="#222">"##
    )?;
    writeln!(text, "<title>{title}</title>")?;
    // A ground of its own: it is also shown on dark pages.
    writeln!(text, r##"<rect width="100%" height="100%" fill="#fff"/>"##)?;
    writeln!(text, r#"<text x="{left}" y="26" font-size="15" font-weight="bold">{title}</text>"#)
}

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
pub fn plot_lines(title: &str, lines: &[Labelled<'_, (u64, f64)>]) -> Result<String, Error> {
    const LEFT: f64 = 70.0;
    const RIGHT: f64 = 620.0;
    const TOP: f64 = 50.0;
    const BOTTOM: f64 = 400.0;
    let points = || lines.iter().flat_map(|(_, points)| points);
    let across = Scale::around(points().map(|(page, _)| *page as f64), (LEFT, RIGHT));
    let up = Scale::around(points().map(|(_, millis)| *millis), (BOTTOM, TOP));
    let mut text = String::new();
    begin(&mut text, title, BOTTOM + 60.0, LEFT)?;
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
    let end = |(_, points): &&Labelled<'_, (u64, f64)>| {
        points.last().map_or(BOTTOM, |(_, millis)| up.place(*millis))
    };
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

/// Groups of bars of rates, each with a scale of its own from 0; those of ours in a colour of their own.
pub fn plot_bars(title: &str, groups: &[Labelled<'_, (&str, f64)>]) -> Result<String, Error> {
    /// Labels end here, and bars begin.
    const LEFT: f64 = 170.0;
    /// Where the longest bar of a group ends; after it is its number.
    const RIGHT: f64 = 720.0;
    const TOP: f64 = 50.0;
    /// From one bar to the next.
    const STEP: f64 = 22.0;
    const THICKNESS: f64 = 15.0;
    /// A group's title, and the space before it.
    const HEAD: f64 = 36.0;
    let count = groups.iter().map(|(_, bars)| bars.len()).sum::<usize>();
    let mut text = String::new();
    begin(&mut text, title, TOP + HEAD * groups.len() as f64 + STEP * count as f64 + 10.0, 20.0)?;
    let mut y = TOP;
    for (title, bars) in groups {
        writeln!(text, r#"<text x="20" y="{:.1}" font-weight="bold">{title}</text>"#, y + 14.0)?;
        y += HEAD - 10.0;
        let most = bars.iter().map(|(_, value)| *value).fold(1.0, f64::max);
        for (label, value) in bars {
            let colour = if label.starts_with("ours") { COLOURS[0] } else { COLOURS[2] };
            let (length, middle) = ((RIGHT - LEFT) * value / most, y + THICKNESS / 2.0 + 4.5);
            let (x, number) = (LEFT + length + 8.0, grouped(value.round() as u64));
            writeln!(
                text,
                r#"<text x="{:.1}" y="{middle:.1}" text-anchor="end">{label}</text>"#,
                LEFT - 8.0
            )?;
            writeln!(
                text,
                r#"<rect x="{LEFT}" y="{y:.1}" width="{length:.1}" height="{THICKNESS}" fill="{colour}"/>"#
            )?;
            writeln!(text, r#"<text x="{x:.1}" y="{middle:.1}">{number}</text>"#)?;
            y += STEP;
        }
        y += 10.0;
    }
    writeln!(text, "</svg>")?;
    Ok(text)
}
