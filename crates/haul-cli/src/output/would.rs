//! What a dry run finds, a line each on standard output.

use haul_copy::told::{would_event, would_line};
use haul_files::Would;

use super::{Style, print_event, print_out};

/// Prints it as the style has it.
pub fn print(style: Style, would: &Would) {
    if style == Style::Json { print_event(&would_event(would)) } else { print_out(&would_line(would)) }
}
