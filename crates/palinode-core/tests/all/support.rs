//! What several tests share: differences, panics as text.

#[track_caller]
pub(crate) fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance * (1.0 + expected.abs()), "{found} is not {expected}");
    }
}

/// The Jacobian by central differences.
pub(crate) fn differences(f: impl Fn(&[f64]) -> Vec<f64>, x: &[f64]) -> Vec<Vec<f64>> {
    let h = 2f64.powi(-18);
    let column = |j: usize| {
        let moved = |by: f64| {
            let mut x = x.to_vec();
            x[j] += by;
            f(&x)
        };
        moved(h).iter().zip(moved(-h)).map(|(a, b)| (a - b) / (2.0 * h)).collect::<Vec<f64>>()
    };
    let columns: Vec<Vec<f64>> = (0..x.len()).map(column).collect();
    (0..columns[0].len()).map(|i| columns.iter().map(|c| c[i]).collect()).collect()
}

pub(crate) fn panic_message(f: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(f).unwrap_err();
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast::<&str>().unwrap().to_string(),
    }
}
