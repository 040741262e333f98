//! Lines that are longer than a terminal is wide.

/// A line broken between words so that none has more than `columns` columns, of which those after the first lose `set_in` to what stands before them ([`SET_IN`](crate::SET_IN)). A word
/// that is longer stays whole: a path that is cut is another one.
pub fn wrapped(text: &str, columns: usize, set_in: usize) -> String {
    let mut lines = String::with_capacity(text.len() + 8);
    let mut column = 0;
    for (at, word) in text.split(' ').enumerate() {
        let width = word.chars().count();
        if at > 0 && column + 1 + width > columns {
            lines.push('\n');
            column = set_in;
        } else if at > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += width;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words() {
        assert_eq!(wrapped("one two three", 80, 4), "one two three");
        assert_eq!(wrapped("one two three", 13, 4), "one two three");
        assert_eq!(wrapped("one two three", 12, 4), "one two\nthree");
        assert_eq!(wrapped("one two three four", 9, 4), "one two\nthree\nfour");
        assert_eq!(wrapped("a-word-that-is-longer x", 9, 4), "a-word-that-is-longer\nx");
        assert_eq!(wrapped("", 9, 4), "");
        assert_eq!(wrapped("  set in", 80, 4), "  set in");
        let text = "limited by the path: full at 3.20 Gbit/s, RTT 101 ms, 0.58 ms of queue at the end, loss 0.04 % with a queue";
        for columns in 20..120 {
            let broken = wrapped(text, columns, 7);
            let widths = broken.lines().enumerate().map(|(at, line)| line.len() + if at == 0 { 0 } else { 7 });
            assert!(widths.max().unwrap() <= columns, "{columns}: {broken}");
            assert_eq!(broken.replace('\n', " "), text);
        }
    }
}
