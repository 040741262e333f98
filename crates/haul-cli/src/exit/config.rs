//! What is wrong with a configuration file, for a user.

use haul_config::{ConfigError, Discord, Together};

use super::Failure;

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Keys(error) => error.into(),
            ConfigError::Unreadable { .. } => Self::new(error),
            ConfigError::Wrong { .. } => Self::new(error).hint("`haul config --help` has what may stand there"),
        }
    }
}

impl From<Together> for Failure {
    fn from(error: Together) -> Self {
        match error {
            Together::Discord(error) => error.into(),
            Together::Differs { key, .. } => Self::new(&error)
                .hint(format!("say --{key} on the command line, or the same in [defaults] or a pattern for all of them")),
        }
    }
}

impl From<Discord> for Failure {
    fn from(error: Discord) -> Self {
        let hint = format!("together with what stands in {}", error.lines.join(", "));
        Self::new(error).hint(hint)
    }
}
