//! Curves on logarithmic axes, as SVG: a row of two panels for each problem.

use std::fmt::Write;

/// A moment of a run.
#[derive(Clone, Copy)]
pub(crate) struct Point {
    pub(crate) seconds: f64,
    /// The most bytes so far.
    pub(crate) bytes: f64,
    pub(crate) loss: f64,
}

pub(crate) struct Curve {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<Point>,
}

/// A problem: what its runs came to, over time and over memory.
pub(crate) struct Row {
    pub(crate) title: String,
    pub(crate) curves: Vec<Curve>,
}

/// What is drawn to the right.
struct Axis {
    label: &'static str,
    of: fn(&Point) -> f64,
}

const AXES: [Axis; 2] = [
    Axis { label: "seconds", of: |point| point.seconds },
    Axis { label: "bytes, parameters included", of: |point| point.bytes },
];

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 300.0;
const MARGIN: f64 = 55.0;
const COLOURS: [&str; 2] = ["#1f6fb2", "#c8552b"];

/// All rows.
pub(crate) fn draw(rows: &[Row]) -> String {
    let (width, height) = (AXES.len() as f64 * WIDTH, rows.len() as f64 * HEIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (i, row) in rows.iter().enumerate() {
        for (j, axis) in AXES.iter().enumerate() {
            let (x, y) = (j as f64 * WIDTH, i as f64 * HEIGHT);
            let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">\n{}</g>", draw_panel(row, axis));
        }
    }
    svg + "</svg>\n"
}

/// The powers of ten around some positive numbers.
fn decades(numbers: impl Iterator<Item = f64>) -> (i32, i32) {
    let logs = numbers.filter(|x| *x > 0.0).map(f64::log10);
    let (low, high) = logs.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
    let low = low.max(-16.0).floor() as i32;
    (low, (high.ceil() as i32).max(low + 1))
}

/// Words at a place.
fn text(svg: &mut String, (x, y): (f64, f64), how: &str, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" {how}>{words}</text>");
}

fn draw_panel(row: &Row, axis: &Axis) -> String {
    let all = || row.curves.iter().flat_map(|curve| &curve.points);
    let (x_low, x_high) = decades(all().map(axis.of));
    let (y_low, y_high) = decades(all().map(|point| point.loss));
    let scale = |value: f64, low: i32, high: i32| {
        ((value.max(1e-300).log10() - f64::from(low)) / f64::from(high - low)).clamp(0.0, 1.0)
    };
    let place_x = |x: f64| MARGIN + scale(x, x_low, x_high) * (WIDTH - 1.5 * MARGIN);
    let place_y = |y: f64| HEIGHT - MARGIN - scale(y, y_low, y_high) * (HEIGHT - 2.0 * MARGIN);
    let (left, right) = (MARGIN, WIDTH - 0.5 * MARGIN);
    let (top, bottom) = (MARGIN, HEIGHT - MARGIN);

    let svg = &mut String::new();
    text(svg, (left, top - 25.0), "font-size=\"13\" font-weight=\"bold\"", &row.title);
    for power in x_low..=x_high {
        let x = place_x(10f64.powi(power));
        let _ = writeln!(svg, "<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"#ddd\"/>");
        text(svg, (x, bottom + 15.0), "text-anchor=\"middle\"", &format!("1e{power}"));
    }
    // At most eight labels.
    for power in (y_low..=y_high).step_by(((y_high - y_low) as usize).div_ceil(8)) {
        let y = place_y(10f64.powi(power));
        let _ = writeln!(svg, "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#ddd\"/>");
        text(svg, (left - 5.0, y + 4.0), "text-anchor=\"end\"", &format!("1e{power}"));
    }
    text(svg, ((left + right) / 2.0, bottom + 32.0), "text-anchor=\"middle\"", axis.label);
    for (i, (curve, colour)) in row.curves.iter().zip(COLOURS).enumerate() {
        let place = |point: &Point| (place_x((axis.of)(point)), place_y(point.loss));
        let placed = |point: &Point| {
            let (x, y) = place(point);
            format!(" {x:.1},{y:.1}")
        };
        let line: String = curve.points.iter().map(placed).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            line.trim()
        );
        if let Some((x, y)) = curve.points.last().map(place) {
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
        }
        let place = (left + 150.0 * i as f64, top - 8.0);
        text(svg, place, &format!("fill=\"{colour}\""), curve.name);
    }
    core::mem::take(svg)
}
