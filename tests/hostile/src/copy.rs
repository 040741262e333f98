//! What an authorised client of `haul serve` says to be sent a file.

/// A line, and three frames of haul-files' protocol: its length, and a message in postcard, where numbers and lengths below 128 are a byte each.
const LINE: &[u8] = b"{\"version\":\"0\"}\n";
/// Version 3 of the protocol, and no features.
const HELLO: [u8; 3] = [0, 3, 0];
/// Of one source.
const REQUEST_TO_RECEIVE: [u8; 3] = [1, 1, 1];
/// Not for standard output; what `haul cp` asks for without options.
const AS_USUAL: [u8; 8] = [0, 0, 0, 0, 0, 0, 1, 1];
/// Which copy a later one goes on with: nobody's.
const JOB: [u8; 32] = [0; 32];
/// Everything is wanted.
const START: [u8; 2] = [2, 0];

/// The words that begin a copy of one file, by root and path (`pub/file`), shorter than 128 bytes.
pub fn ask_for_file(path: &str) -> Vec<u8> {
    let length = u8::try_from(path.len()).ok().filter(|length| *length < 128).expect("a short path");
    let request = [&REQUEST_TO_RECEIVE[..], &[length], path.as_bytes(), &AS_USUAL, &JOB].concat();
    let mut words = LINE.to_vec();
    for message in [&HELLO[..], &request, &START] {
        words.extend((message.len() as u32).to_le_bytes());
        words.extend(message);
    }
    words
}
