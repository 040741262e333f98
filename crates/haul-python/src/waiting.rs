//! Waiting for the library without holding the interpreter: by a thread ([`wait`]), and by asyncio ([`Pending`], [`Reactor`]).
//!
//! The library's futures run on any executor. A thread polls its future and sleeps; it wakes at the latest after a slice, so that Python can look at its signals. asyncio polls in its loop's
//! thread: what wakes a future puts its number into the loop's [`Reactor`] and writes to an eventfd that the loop watches. There is no thread and no executor behind it.

use std::future::Future;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use haul_units::Cancel;
use pyo3::exceptions::{PyRuntimeError, PyTimeoutError};
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};

use crate::buffer;
use crate::errors::Failure;

/// After so long Python looks at its signals.
const SLICE: Duration = Duration::from_millis(50);

/// Polls until there is an answer, detached; `Ok(None)` when `timeout_s` is over, and an exception if a signal's handler raises one.
pub fn wait_for<T: Send>(
    py: Python<'_>,
    timeout_s: Option<f64>,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T> + Send,
) -> PyResult<Option<T>> {
    buffer::give_back(py);
    let deadline = timeout_s.map(|seconds| now() + Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(FOREVER));
    loop {
        let until = now() + SLICE;
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        if let Poll::Ready(answer) = py.detach(|| poll_until(until, &mut poll)) {
            return Ok(Some(answer));
        }
        py.check_signals()?;
        if deadline.is_some_and(|deadline| now() >= deadline) {
            return Ok(None);
        }
    }
}

/// The same, where an end of the time is an exception, and so is an error.
pub fn wait<T: Send, E: Into<Failure> + Send>(
    py: Python<'_>,
    timeout_s: Option<f64>,
    poll: impl FnMut(&mut Context<'_>) -> Poll<Result<T, E>> + Send,
) -> PyResult<T> {
    match wait_for(py, timeout_s, poll)? {
        Some(answer) => answer.map_err(|error| error.into().into_py_err(py)),
        None => Err(PyTimeoutError::new_err("timed out")),
    }
}

/// As [`wait`], for a future.
pub fn wait_future<T: Send, E: Into<Failure> + Send>(
    py: Python<'_>,
    timeout_s: Option<f64>,
    future: impl Future<Output = Result<T, E>> + Send,
) -> PyResult<T> {
    let mut future = Box::pin(future);
    wait(py, timeout_s, move |cx| future.as_mut().poll(cx))
}

fn poll_until<T>(until: Instant, poll: &mut impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    let waker = haul::thread_waker();
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(answer) = poll(&mut cx) {
            return Poll::Ready(answer);
        }
        let left = until.saturating_duration_since(now());
        if left == Duration::ZERO {
            return Poll::Pending;
        }
        thread::park_timeout(left);
    }
}

/// What a call gives that cannot be polled, made by a thread of its own; an exception that a signal's handler raises meanwhile cancels it.
pub fn in_thread<T: Send + 'static>(py: Python<'_>, cancel: &Cancel, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let (done, answer) = mpsc::channel();
    let answer = Mutex::new(answer);
    thread::Builder::new().name("haul-call".into()).spawn(move || done.send(work()))?;
    loop {
        let waiting = &answer;
        match py.detach(|| waiting.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(SLICE)) {
            Ok(value) => return Ok(value),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("a thread of haul's has failed")),
        }
        if let Err(error) = py.check_signals() {
            cancel.cancel();
            return Err(error);
        }
    }
}

/// What a future gives: made where the interpreter is.
pub type Answer = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// An operation that is under way, for asyncio: polled by the loop's thread whenever it was woken.
#[pyclass(frozen, module = "haul._haul")]
pub struct Pending(Mutex<Stage>);

enum Stage {
    UnderWay(Pin<Box<dyn Future<Output = Answer> + Send>>),
    Answered(Answer),
    Over,
}

impl Pending {
    /// Of a future, and what its value is in Python.
    pub fn new<T: Send + 'static, E: Into<Failure> + Send + 'static>(
        future: impl Future<Output = Result<T, E>> + Send + 'static,
        convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let answered = async move {
            let result = future.await;
            let answer: Answer = Box::new(move |py| match result {
                Ok(value) => convert(py, value),
                Err(error) => Err(error.into().into_py_err(py)),
            });
            answer
        };
        Self(Mutex::new(Stage::UnderWay(Box::pin(answered))))
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_with(&self, waker: &Waker) -> bool {
        let mut stage = self.lock();
        let Stage::UnderWay(future) = &mut *stage else { return true };
        let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(waker)) else { return false };
        *stage = Stage::Answered(answer);
        true
    }
}

#[pymethods]
impl Pending {
    /// Goes on with it; true once it is done. Else `number` is told to the reactor when it is worth another try.
    fn poll(&self, py: Python<'_>, reactor: &Reactor, number: u64) -> bool {
        let waker: Waker = Arc::new(Notify { number, queue: Arc::clone(&reactor.0) }).into();
        let is_done = py.detach(|| self.poll_with(&waker));
        // What it was given as well, once it is done: whoever awaits it may then resize that.
        buffer::give_back(py);
        is_done
    }

    /// What it gives, once.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let answer = py.detach(|| std::mem::replace(&mut *self.lock(), Stage::Over));
        match answer {
            Stage::Answered(answer) => answer(py),
            Stage::UnderWay(_) | Stage::Over => Err(PyRuntimeError::new_err("not done, or asked for twice")),
        }
    }

    /// Gives it up.
    fn cancel(&self, py: Python<'_>) {
        let stage = py.detach(|| std::mem::replace(&mut *self.lock(), Stage::Over));
        py.detach(|| drop(stage));
        buffer::give_back(py);
    }
}

/// What of one event loop is to be polled again.
#[pyclass(frozen, module = "haul._haul")]
pub struct Reactor(Arc<Queue>);

struct Queue {
    woken: Mutex<Vec<u64>>,
    event: OwnedFd,
}

struct Notify {
    number: u64,
    queue: Arc<Queue>,
}

impl Wake for Notify {
    fn wake(self: Arc<Self>) {
        let mut woken = self.queue.woken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = woken.is_empty();
        woken.push(self.number);
        drop(woken);
        if is_first {
            // It fails only where 2^64 others have not been read.
            let _ = rustix::io::write(&self.queue.event, &1u64.to_ne_bytes());
        }
    }
}

#[pymethods]
impl Reactor {
    #[new]
    fn new() -> PyResult<Self> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(std::io::Error::from)?;
        Ok(Self(Arc::new(Queue { woken: Mutex::default(), event })))
    }

    /// The descriptor that is readable when something was woken.
    fn fileno(&self) -> i32 {
        self.0.event.as_raw_fd()
    }

    /// The numbers of what was woken since the last call.
    fn woken(&self) -> Vec<u64> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.0.event, &mut count);
        std::mem::take(&mut *self.0.woken.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[expect(clippy::disallowed_methods, reason = "this crate drives sockets for a program, as a program does")]
pub fn now() -> Instant {
    Instant::now()
}

/// For those who wait longer than time can be counted: a century.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);
