//! Parts of the packets on the command line: of all of them at most.

use haul_units::Ratio;

/// `0.1%` or `0.001`, up to `100%`.
pub fn part(text: &str) -> Result<Ratio, String> {
    let ratio: Ratio = text.parse().map_err(|error: haul_units::ParseQuantityError| error.to_string())?;
    if ratio.as_f64() > 1.0 {
        return Err(format!("`{text}` is more than all packets: 100% at most"));
    }
    Ok(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_all_of_them() {
        assert_eq!(part("100%"), Ok(Ratio::ONE));
        assert_eq!(part("0.001"), Ok(Ratio::percent(0.1)));
        assert!(part("150%").is_err_and(|error| error.contains("100% at most")));
        assert!(part("much").is_err());
    }
}
