//! An error in one line.

use std::error::Error;

/// An error and its causes, each said once; without the numbers that the system has for them.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    without_numbers(text)
}

/// "No such file or directory (os error 2)" says nothing more by its end.
pub fn without_numbers(mut text: String) -> String {
    const BEGINS: &str = " (os error ";
    let mut from = 0;
    while let Some((before, rest)) = text.get(from..).and_then(|left| left.split_once(BEGINS)) {
        let begin = from + before.len();
        from = match rest.split_once(')') {
            Some((number, _)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                text.replace_range(begin..=begin + BEGINS.len() + number.len(), "");
                begin
            }
            _ => begin + BEGINS.len(),
        };
    }
    text
}

#[cfg(all(test, unix))]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn what_the_system_says_comes_without_its_number() {
        assert_eq!(chain(&io::Error::from_raw_os_error(2)), "No such file or directory");
        let text = "a (os error 17): b (os error x) (os error ) (os error 3), (os error";
        assert_eq!(chain(&io::Error::other(text)), "a: b (os error x) (os error ), (os error");
    }
}
