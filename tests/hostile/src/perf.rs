//! What an anonymous client of `haul perf -s` says to be sent data, or to send: the one thing that any stranger may ask of a haul server.

/// The lines that begin a download of so many seconds. Unknown modes are refused, so this one must be known.
pub fn ask_for_download(seconds: u64, mode: &str) -> Vec<u8> {
    ask("down", seconds, mode)
}

/// The lines that begin an upload.
pub fn ask_for_upload(seconds: u64) -> Vec<u8> {
    ask("up", seconds, "cubic")
}

fn ask(ways: &str, seconds: u64, mode: &str) -> Vec<u8> {
    let micros = seconds * 1_000_000;
    let ask = format!(
        "{{\"version\":\"0\",\"plan\":{{\"ways\":\"{ways}\",\"streams\":1,\"block_bytes\":131072,\"amount\":{{\"time\":{micros}}},\
         \"interval_us\":1000000,\"mode\":\"{mode}\"}}}}\n\"go\"\n"
    );
    ask.into_bytes()
}
