//! Variable-length integers of control frames: LEB128, seven bits a byte, lowest first, at most ten bytes.

use super::DecodeError;

/// Appends `value`.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads fields from the front of a slice that nobody trusts.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Passes over bytes of zero.
    pub(crate) fn skip_zeros(&mut self) {
        let zeros = self.rest.iter().position(|&byte| byte != 0).unwrap_or(self.rest.len());
        self.rest = &self.rest[zeros..];
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        let (&first, rest) = self.rest.split_first().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, DecodeError> {
        let bytes = self.rest.first_chunk::<8>().ok_or(DecodeError::Truncated)?;
        let value = u64::from_be_bytes(*bytes);
        self.take(8)?;
        Ok(value)
    }

    pub(crate) fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(DecodeError::Overflow);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::Overflow)
    }

    /// A varint that must fit into 32 bits.
    pub(crate) fn varint_u32(&mut self) -> Result<u32, DecodeError> {
        u32::try_from(self.varint()?).map_err(|_| DecodeError::Overflow)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trips(value: u64) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert!(reader.is_empty());
        }
    }

    #[test]
    fn eleven_bytes_and_65_bits_are_refused() {
        assert_eq!(Reader::new(&[0xff; 11]).varint(), Err(DecodeError::Overflow));
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).varint(), Err(DecodeError::Overflow));
        assert_eq!(Reader::new(&[0x80]).varint(), Err(DecodeError::Truncated));
    }
}
