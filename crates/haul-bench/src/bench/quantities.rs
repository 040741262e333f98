//! Quantities in stored results: plain numbers whose field names carry the unit.

use std::time::Duration;

use haul_units::{BitRate, Bytes, Ratio};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes and reads a type as another one, for `#[serde(with = ..)]`, plain and optional.
macro_rules! stored_as {
    ($module:ident, $type:ty, $stored:ty, $to:expr, $from:expr) => {
        pub mod $module {
            use super::*;

            pub fn serialize<S: Serializer>(value: &$type, serializer: S) -> Result<S::Ok, S::Error> {
                let to: fn($type) -> $stored = $to;
                to(*value).serialize(serializer)
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                let from: fn($stored) -> $type = $from;
                <$stored>::deserialize(deserializer).map(from)
            }

            pub mod option {
                use super::*;

                #[expect(clippy::ref_option, reason = "serde calls it so")]
                pub fn serialize<S: Serializer>(value: &Option<$type>, serializer: S) -> Result<S::Ok, S::Error> {
                    let to: fn($type) -> $stored = $to;
                    value.map(to).serialize(serializer)
                }

                pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<$type>, D::Error> {
                    let from: fn($stored) -> $type = $from;
                    Ok(Option::<$stored>::deserialize(deserializer)?.map(from))
                }
            }
        }
    };
}

stored_as!(bits_per_second, BitRate, u64, BitRate::as_bps, BitRate::from_bps);
stored_as!(bytes, Bytes, u64, Bytes::as_u64, Bytes);
stored_as!(seconds, Duration, f64, |time| time.as_secs_f64(), |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());

pub mod fraction {
    use super::{Deserialize, Deserializer, Ratio, Serialize, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub fn serialize<S: Serializer>(value: &Ratio, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_f64().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ratio, D::Error> {
        f64::deserialize(deserializer).map(|value| Ratio::new(if value.is_finite() { value } else { 0.0 }))
    }
}
