//! Measurements.

use std::ffi::{c_int, c_void};
use std::thread;

use haul::Connection;
use haul_perf::{Amount, Both, Direction, MeasureError, Outcome as Measured, Plan, Role, Ways, measure};
use haul_units::Cancel;

use super::connection;
use crate::failure::{Code, Failure, Outcome, invalid};
use crate::pointers::{Given, read_sized, write_sized};
use crate::{border, signals};

/// `struct haul_perf_interval`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs, reason = "haul.h has the explanations")]
pub struct HaulPerfInterval {
    pub size: u64,
    pub down: u64,
    pub start_us: u64,
    pub end_us: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

type IntervalFn = unsafe extern "C" fn(context: *mut c_void, interval: *const HaulPerfInterval) -> c_int;

/// `struct haul_perf_request`.
#[derive(Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "haul.h has the explanations")]
pub struct HaulPerfRequest {
    pub size: u64,
    pub ways: u64,
    pub streams: u64,
    pub block_bytes: u64,
    pub bytes: u64,
    pub time_ms: u64,
    pub interval_ms: u64,
    pub interval: Option<IntervalFn>,
    pub context: *mut c_void,
}

/// `struct haul_perf_result`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
#[allow(missing_docs, reason = "haul.h has the explanations")]
pub struct HaulPerfResult {
    pub size: u64,
    pub up_bytes: u64,
    pub up_us: u64,
    pub down_bytes: u64,
    pub down_us: u64,
}

fn plan(request: &HaulPerfRequest) -> Outcome<Plan> {
    let usual = Plan::default();
    let ways = match request.ways {
        0 => Ways::Up,
        1 => Ways::Down,
        2 => Ways::Both,
        other => return Err(invalid(format!("{other} is no way: HAUL_PERF_UP, HAUL_PERF_DOWN or HAUL_PERF_BOTH"))),
    };
    // What is too large for its type is refused by the plan's own check.
    let plan = Plan {
        ways,
        streams: if request.streams == 0 { usual.streams } else { u16::try_from(request.streams).unwrap_or(u16::MAX) },
        block_bytes: if request.block_bytes == 0 {
            usual.block_bytes
        } else {
            u32::try_from(request.block_bytes).unwrap_or(u32::MAX)
        },
        amount: match (request.bytes, request.time_ms) {
            (0, 0) => usual.amount,
            (0, ms) => Amount::Time(ms.saturating_mul(1000)),
            (bytes, 0) => Amount::Bytes(bytes),
            _ => return Err(invalid("an amount and a time: only one of them can end a measurement")),
        },
        interval_us: if request.interval_ms == 0 { usual.interval_us } else { request.interval_ms.saturating_mul(1000) },
        ..usual
    };
    plan.check(haul_perf::MAX_TIME).map_err(|error| invalid(error.to_string()))?;
    Ok(plan)
}

impl From<MeasureError> for Failure {
    fn from(error: MeasureError) -> Self {
        let code = match &error {
            MeasureError::Connection(_) | MeasureError::EndedIdle(_) | MeasureError::Ended(_) | MeasureError::NoAnswer => {
                Code::Lost
            }
            MeasureError::Refused(_) => Code::Refused,
            MeasureError::Server(_) | MeasureError::NoResults => Code::Protocol,
            _ => Code::System,
        };
        Self::new(code, haul_peer::chain(&error))
    }
}

/// Measures, and tells of each interval, in a thread that takes none of the application's signals.
fn run(connection: &Connection, plan: &Plan, tell: Option<IntervalFn>, context: &Given) -> Outcome<Measured> {
    let cancel = Cancel::new();
    let mut listener = |both: &Both| {
        let interval = HaulPerfInterval {
            size: size_of::<HaulPerfInterval>() as u64,
            down: (both.direction == Direction::Down).into(),
            start_us: both.receiver.start_us,
            end_us: both.receiver.end_us,
            sent_bytes: both.sender.bytes.iter().sum(),
            received_bytes: both.receiver.bytes.iter().sum(),
        };
        // SAFETY: the application's promise: its function takes its context, and an interval for as long as the call.
        if tell.is_some_and(|tell| unsafe { tell(context.pointer(), &raw const interval) } != 0) {
            cancel.cancel();
        }
    };
    let ended =
        thread::scope(|scope| signals::blocked(|| scope.spawn(|| measure(connection, plan, &cancel, &mut listener))).join());
    Ok(ended.map_err(|_| Failure::new(Code::Internal, "a bug in the library: the measurement panicked"))??)
}

impl From<&Measured> for HaulPerfResult {
    fn from(measured: &Measured) -> Self {
        let of = |direction| {
            let total = measured.total(direction, Role::Receiver);
            total.map_or((0, 0), |total| (total.bytes.iter().sum(), total.time_us))
        };
        let ((up_bytes, up_us), (down_bytes, down_us)) = (of(Direction::Up), of(Direction::Down));
        Self { size: size_of::<Self>() as u64, up_bytes, up_us, down_bytes, down_us }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn haul_perf(connection: i64, request: *const HaulPerfRequest, result: *mut HaulPerfResult) -> c_int {
    border::done(|| {
        // SAFETY: C's promise: null, or a structure that begins with its size, all of whose fields may be zero.
        let request = unsafe { read_sized(request) }?;
        let (plan, context) = (plan(&request)?, Given(request.context));
        let connection = connection::with(connection, |_, connection| connection.made().cloned())?;
        let measured = run(&connection, &plan, request.interval, &context)?;
        if !result.is_null() {
            // SAFETY: C's promise: a structure that begins with its size.
            unsafe { write_sized(&HaulPerfResult::from(&measured), result) }?;
        }
        match measured.first_error() {
            Some(error) => Err(Failure::new(Code::Protocol, error.to_string())),
            None if measured.interrupted => Err(Failure::new(Code::Cancelled, "the measurement was stopped")),
            None => Ok(()),
        }
    })
}
