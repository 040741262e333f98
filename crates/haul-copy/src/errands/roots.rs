//! What a daemon has for this client, for whoever does not know.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use haul::Connection;
use haul_files::WirePath;

use super::{ErrandError, Errands};

/// Names of the roots that a daemon lets this client see, on a connection for copies that is used up by it. Blocks.
pub fn roots(connection: Connection) -> Result<Vec<WirePath>, ErrandError> {
    block_on(async {
        let errands = Errands::open(connection).await?;
        let found = errands.list(&WirePath(b"/".to_vec())).await;
        errands.close();
        Ok(found?.into_iter().map(|found| found.name).collect())
    })
}

/// Wakes the thread that waits.
struct Waiting(Thread);

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Waiting(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
