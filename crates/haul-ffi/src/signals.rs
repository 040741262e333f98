//! The application's signals are none of the library's threads' business: they are started with all signals blocked.

use std::mem::MaybeUninit;

/// Runs `work`, whose threads inherit that every signal is blocked; the calling thread has its mask back afterwards.
pub fn blocked<T>(work: impl FnOnce() -> T) -> T {
    let _mask = Mask::block_all();
    work()
}

struct Mask(libc::sigset_t);

impl Mask {
    fn block_all() -> Self {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: `all` is filled by sigfillset before it is read, `before` by pthread_sigmask, which cannot fail for SIG_SETMASK.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Self(before.assume_init())
        }
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        // SAFETY: the mask is one that the system gave.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut());
        }
    }
}
