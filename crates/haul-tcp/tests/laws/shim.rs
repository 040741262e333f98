//! The laws, compiled for the host by the C compiler that the workspace needs anyway, and loaded.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use libloading::{Library, Symbol};

/// `struct ack` of bpf/flow.h.
#[repr(C)]
#[derive(Debug, Default, Clone)]
pub struct Ack {
    pub now_us: u64,
    pub delivered_total: u32,
    pub prior_delivered: u32,
    pub delivered: i32,
    pub interval_us: u32,
    pub rtt_us: i32,
    pub acked: u32,
    pub lost_total: u32,
    pub prior_in_flight: u32,
    pub in_flight: u32,
    pub smoothed_us: u32,
    pub segment_bytes: u32,
    pub most: u32,
    pub limited: u32,
}

/// `struct share` of bpf/coupled.h: a window in 1/1024 of a packet.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Share {
    pub window: u32,
    pub rtt_us: u32,
    pub unlost: u32,
}

/// A function of the library, called with what its type says.
macro_rules! function {
    ($name:ident: fn($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        pub fn $name($($argument: $type),*) $(-> $result)? {
            type Function<'a> = Symbol<'a, unsafe extern "C" fn($($type),*) $(-> $result)?>;
            // SAFETY: the types are those of shim.c.
            let function: Function<'_> = unsafe { library().get(concat!("haul_", stringify!($name), "\0").as_bytes()) }.expect("in shim.c");
            // SAFETY: numbers, and flows of the size that the library has told.
            unsafe { function($($argument),*) }
        }
    };
}

function!(square_root: fn(x: u32) -> u32);
function!(cube_root: fn(x: u64) -> u32);
function!(highspeed_rise: fn(window: u32) -> u32);
function!(highspeed_fallen: fn(window: u32) -> u32);
function!(scalable_rise: fn(window: u32) -> u32);
function!(scalable_fallen: fn(window: u32) -> u32);
function!(bic_step: fn(window: u64, wmax: u64) -> u64);
function!(fast_next: fn(window: u64, base_us: u32, rtt_us: u32, alpha: u32) -> u64);
function!(fast_alpha: fn(rate: u64) -> u32);
function!(westwood_filter: fn(filtered: u64, rate: u64) -> u64);
function!(westwood_fallen: fn(filtered: u64, base_us: u32) -> u32);
function!(cubic_k_ms: fn(wmax: u64, window: u64) -> u32);
function!(cubic_window: fn(wmax: u64, k_ms: u32, t_ms: u64) -> u64);
function!(flow_bytes: fn() -> u32);
function!(begin: fn(flow: *mut u64, law: u32, window: u32, rtt_us: u32, now_us: u64, jump: u32));
function!(on_ack: fn(flow: *mut u64, ack: *const Ack, knobs: *const u32));
function!(cubic_on_ack: fn(flow: *mut u64, ack: *const Ack, knobs: *const u32));
function!(window: fn(flow: *const u64) -> u32);
function!(pacing: fn(flow: *const u64) -> u64);
function!(loss_ppm: fn(flow: *const u64, knobs: *const u32) -> u32);
function!(excess: fn(calm_packets: u32, calm_lost: u32, before_lost: u32, lost: u32, packets: u32, queue_us: u32) -> u32);
function!(after_rounds: fn(calm_packets: u32, calm_lost: u32, rounds: u32) -> u32);
function!(buffered: fn(window: u32, calm_lost: u32) -> u32);
function!(followed: fn(window: u32, before_us: u32, now_us: u32) -> u32);
function!(paced_at: fn(packets: u64, segment_bytes: u32) -> u64);
function!(probes: fn(first_us: u64) -> u64);
function!(rate_after_congestion: fn(best: u64, last: u64) -> u64);
function!(loss_after_rounds: fn(first_us: u32, second_us: u32, last_us: u32) -> u32);
function!(loss_after_base: fn(first_us: u32, last_us: u32) -> u32);
function!(company: fn() -> u32);
function!(coupled_rise: fn(law: u32, shares: *const Share, count: u32) -> i64);
function!(coupled_grown: fn(law: u32, shares: *const Share, count: u32, acked: u32) -> u64);
function!(coupled_fallen: fn(law: u32, shares: *const Share, count: u32) -> u32);
function!(unlost: fn(first: u32, second: u32, now: u32) -> u32);

fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let to = dir.path().join("laws.so");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-shared", "-fPIC", "-I"]);
        let status = cc.arg(root.join("bpf")).arg(root.join("tests/laws/shim.c")).arg("-o").arg(&to).status();
        assert!(status.expect("a C compiler: `make setup` installs gcc").success(), "cc does not take the laws");
        // SAFETY: it has nothing that runs when it is loaded.
        unsafe { Library::new(&to) }.expect("what cc has made")
    })
}
