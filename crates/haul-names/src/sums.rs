//! Lines of a list of checksums, as `sha256sum`, `b3sum` and their like write and check them: the digits, two spaces, the name.
//!
//! A name with a backslash, a newline or a carriage return has those escaped, and the line begins with a backslash: so a name ends no line, and is no other line. Other bytes stand as they are, for the programs
//! take no other escapes: who looks at a list on a terminal looks at it through `less`, or `cat -v`.

/// One line, its end included.
pub fn sum_line(hash: &[u8], name: &[u8]) -> Vec<u8> {
    let escaped = name.iter().any(|byte| matches!(byte, b'\\' | b'\n' | b'\r'));
    let mut line = Vec::with_capacity(hash.len() * 2 + name.len() + 4);
    if escaped {
        line.push(b'\\');
    }
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).map_or(b'0', |digit| digit as u8);
    line.extend(hash.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    line.extend(b"  ");
    for byte in name {
        match byte {
            b'\\' => line.extend(b"\\\\"),
            b'\n' => line.extend(b"\\n"),
            b'\r' => line.extend(b"\\r"),
            byte => line.push(*byte),
        }
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_whatever_it_has() {
        assert_eq!(sum_line(&[0x0a, 0xff], b"a b/c"), b"0aff  a b/c\n");
        assert_eq!(sum_line(&[1], b"a\nb\\c\r"), b"\\01  a\\nb\\\\c\\r\n");
        assert_eq!(sum_line(&[1], b"x\n00  /etc/passwd"), b"\\01  x\\n00  /etc/passwd\n");
    }
}
