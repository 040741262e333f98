//! Streams of blocks, and blocks in the hands of C.

use std::future::Future as _;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use haul::{Block, BlockData, BlockReceiver, BlockSender};

use crate::failure::{Outcome, wrong_state};
use crate::waiting::{Gate, Patience};

/// A stream of blocks to the peer.
pub struct Sender {
    open: Mutex<Option<BlockSender>>,
    ended: AtomicBool,
    /// A block was sent.
    used: AtomicBool,
}

/// A stream of blocks from the peer.
pub struct Receiver {
    open: Mutex<Option<BlockReceiver>>,
    /// What readiness has taken: a block, or how the stream ended.
    held: Mutex<Option<Outcome<Option<Block>>>>,
}

/// A block with a handle; empty once it was sent or given back.
pub struct TheBlock(Mutex<Contents>);

pub enum Contents {
    /// Being built. The vector is empty; C writes to its capacity.
    Outgoing(Vec<u8>),
    /// Kept until C gives it back.
    Incoming {
        _block: Block,
    },
    Gone,
}

impl Sender {
    pub fn new(sender: BlockSender) -> Self {
        Self { open: Mutex::new(Some(sender)), ended: AtomicBool::new(false), used: AtomicBool::new(false) }
    }

    /// Whether a block was sent before; one will have been.
    pub fn use_for_good(&self) -> bool {
        self.used.swap(true, Ordering::AcqRel)
    }

    /// A clone, so that no lock is held while the transport is asked.
    fn get(&self) -> Outcome<BlockSender> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| wrong_state("the stream of blocks was reset or closed"))
    }

    /// As [`Sender::get`], if it takes blocks.
    pub fn get_open(&self) -> Outcome<BlockSender> {
        if self.ended.load(Ordering::Acquire) {
            return Err(wrong_state("the stream of blocks was ended by haul_shutdown()"));
        }
        self.get()
    }

    /// Sends a block, which stays in `block` if it cannot be sent.
    pub fn send(&self, gate: &Gate, patience: Patience, block: &mut Option<BlockData>) -> Outcome<u64> {
        let sender = self.get_open()?;
        self.use_for_good();
        gate.wait(patience, |cx| sender.poll_send(cx, block).map_err(Into::into))
    }

    pub fn poll_sendable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self.get_open() {
            Ok(sender) => sender.poll_writable(cx).map(drop),
            Err(_) => Poll::Ready(()),
        }
    }

    pub fn finish(&self) -> Outcome<()> {
        let sender = self.get()?;
        self.ended.store(true, Ordering::Release);
        match pin!(sender.finish_async()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Ok(result?),
            Poll::Pending => Ok(()),
        }
    }

    pub fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<Outcome<()>> {
        if !self.ended.load(Ordering::Acquire) {
            return Poll::Ready(Err(wrong_state("end the stream by haul_shutdown(.., HAUL_SHUT_WR) first")));
        }
        let sender = self.get()?;
        pin!(sender.finish_async()).poll(cx).map_err(Into::into)
    }

    pub fn reset(&self, code: u64) -> Outcome<()> {
        self.get()?.reset(code);
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    pub fn set_priority(&self, priority: u8) -> Outcome<()> {
        self.get()?.set_priority(priority);
        Ok(())
    }

    pub fn close(&self) {
        if self.ended.load(Ordering::Acquire) {
            *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
        } else {
            // At once, not when the last thread that waits has gone.
            let _ = self.reset(0);
        }
    }
}

impl Receiver {
    pub fn new(receiver: BlockReceiver) -> Self {
        Self { open: Mutex::new(Some(receiver)), held: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, Option<Outcome<Option<Block>>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self) -> Outcome<BlockReceiver> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or_else(|| wrong_state("this side has stopped the stream of blocks"))
    }

    /// Waits for a block; none is the end.
    pub fn receive(&self, gate: &Gate, patience: Patience) -> Outcome<Option<Block>> {
        gate.wait(patience, |cx| self.poll_receive(cx))
    }

    fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<Outcome<Option<Block>>> {
        match self.held().take() {
            Some(held) => Poll::Ready(held),
            None => self.poll_new(cx),
        }
    }

    fn poll_new(&self, cx: &mut Context<'_>) -> Poll<Outcome<Option<Block>>> {
        self.get()?.poll_recv(cx).map_err(Into::into)
    }

    pub fn poll_receivable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut held = self.held();
        if held.is_none() {
            match self.poll_new(cx) {
                Poll::Ready(result) => *held = Some(result),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    pub fn close(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.held().take();
    }
}

impl TheBlock {
    /// Of a block that is being built, or has come.
    pub fn new(contents: Contents) -> Self {
        Self(Mutex::new(contents))
    }

    pub fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn close(&self) {
        *self.contents() = Contents::Gone;
    }
}
