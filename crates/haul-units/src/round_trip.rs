//! Round-trip times as they are shown.

/// A round-trip time: `0.12 ms`, `153 ms`.
pub fn milliseconds(us: u64) -> String {
    let ms = us as f64 / 1000.0;
    let decimals = if ms < 9.995 { 2 } else { usize::from(ms < 99.95) };
    format!("{ms:.decimals$} ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_with_three_digits() {
        assert_eq!((milliseconds(120), milliseconds(12_340)), ("0.12 ms".into(), "12.3 ms".into()));
    }
}
