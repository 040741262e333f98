//! Names of controllers on the command line: parsed as the library does, and known to completion.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use haul::ControllerChoice;

/// For options that take a mode.
#[derive(Debug, Clone, Copy)]
pub struct ModeParser;

impl TypedValueParser for ModeParser {
    type Value = ControllerChoice;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<ControllerChoice, Error> {
        let parser = StringValueParser::new().try_map(|name| name.parse::<ControllerChoice>());
        parser.parse_ref(command, argument, value)
    }

    /// Those that need no rate.
    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(ControllerChoice::NAMED.iter().map(|mode| PossibleValue::new(mode.name()))))
    }
}
