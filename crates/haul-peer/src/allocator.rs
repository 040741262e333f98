//! Memory goes back to the system when it is freed.
//!
//! glibc maps large pieces of memory one by one, and unmaps each when it is freed; but with the first one freed it takes sizes up to that for ordinary ones (`mallopt(3)`,
//! `M_MMAP_THRESHOLD`), and puts them into arenas of its threads, where one small piece that stays keeps all around it. After 200 threads with 12 buffers each had ended, 984 MiB stayed so, with a fixed threshold
//! 6 MiB. A process that serves others keeps that threshold where it is at first. Buffers are used again and again before they are freed, so this costs nothing.

/// From now on pieces as large as a block's buffer are mapped, each for itself.
pub fn give_back_what_is_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: sets two numbers of the allocator, which takes a lock of its own for that.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES);
            libc::mallopt(libc::M_ARENA_MAX, ARENAS);
        }
    }
}

/// glibc's own first value.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_BYTES: libc::c_int = 128 << 10;
/// For what is small: by default there are eight for each processor, and each keeps what it once had.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 4;

#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::thread;

    fn resident_mib() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
    }

    #[test]
    fn buffers_of_threads_that_have_ended_are_gone() {
        super::give_back_what_is_freed();
        let before = resident_mib();
        let client = || {
            let mut buffers: Vec<Vec<u8>> = vec![Vec::new(); 8];
            let mut notes = Vec::new();
            for size in (14..=20).map(|power| 1 << power) {
                // As they grow, and with small pieces between them.
                for buffer in &mut buffers {
                    buffer.resize(size, 1);
                }
                notes.push(vec![1_u8; 2000]);
            }
            notes
        };
        let clients: Vec<_> = (0..40).map(|_| thread::spawn(client)).collect();
        let kept: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        let after = resident_mib();
        assert!(after < before + 64, "{before} MiB before, {after} MiB after");
        drop(kept);
    }
}
