//! Memory that Python and haul share: what Python gives to be sent or to be filled ([`View`]), and what haul gives to be read ([`Memory`]).
//!
//! Both go through Python's buffer protocol, so no byte is copied. PyO3 offers it under the stable ABI of 3.11 and later only; the functions and the structure are declared here, as they
//! are in every CPython from 3.9 on (`Include/cpython/object.h` and `Include/abstract.h` of 3.9 and 3.10, `Include/pybuffer.h` since).

use std::ffi::{c_char, c_int, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::ffi::{self, Py_ssize_t, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

/// `Py_buffer`.
#[repr(C)]
struct RawView {
    buf: *mut c_void,
    obj: *mut PyObject,
    len: Py_ssize_t,
    itemsize: Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut Py_ssize_t,
    strides: *mut Py_ssize_t,
    suboffsets: *mut Py_ssize_t,
    internal: *mut c_void,
}

/// `PyBUF_SIMPLE`: bytes one after the other.
const SIMPLE: c_int = 0;
/// `PyBUF_WRITABLE`.
const WRITABLE: c_int = 1;
/// Slots of a type, as `typeslots.h` numbers them.
const BF_GETBUFFER: c_int = 1;
const BF_RELEASEBUFFER: c_int = 2;
const TP_DEALLOC: c_int = 52;

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut PyObject, view: *mut RawView, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut RawView);
    fn PyBuffer_FillInfo(
        view: *mut RawView,
        object: *mut PyObject,
        buf: *mut c_void,
        len: Py_ssize_t,
        readonly: c_int,
        flags: c_int,
    ) -> c_int;
}

/// The bytes of an object of Python's, which stay where they are and are not resized while this lives. What a call needs only until it returns is given back by [`View::during`]; else it may be dropped by any
/// thread, and is given back by the next that has the interpreter ([`give_back`]).
pub struct View {
    /// Boxed, for Python may keep its address.
    raw: ManuallyDrop<Box<RawView>>,
}

// SAFETY: the memory belongs to the exporting object, which the view keeps alive and in place; only `PyBuffer_Release` needs the interpreter, and that is called where it is there.
unsafe impl Send for View {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for View {}

/// Views that were dropped by threads that do not have the interpreter.
static DROPPED: Mutex<Vec<Returned>> = Mutex::new(Vec::new());

struct Returned(Box<RawView>);

// SAFETY: as for `View`.
unsafe impl Send for Returned {}

impl View {
    /// Of an object that has bytes: `bytes`, `bytearray`, `memoryview`, `array`, numpy's arrays in C order.
    pub fn reading(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(object, SIMPLE)
    }

    /// Of one whose bytes may be changed.
    pub fn writing(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(object, WRITABLE)
    }

    fn new(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Self> {
        give_back(object.py());
        let mut raw = Box::new(MaybeUninit::<RawView>::zeroed());
        // SAFETY: the object is alive, the structure is ours and large enough; on success Python has filled it in.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), raw.as_mut_ptr(), flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: `PyObject_GetBuffer` has succeeded.
        let raw = unsafe { Box::from_raw(Box::into_raw(raw).cast::<RawView>()) };
        Ok(Self { raw: ManuallyDrop::new(raw) })
    }

    /// Does `work` with it, and gives it back: the program may resize or release the object as soon as its call has returned.
    pub fn during<T>(mut self, py: Python<'_>, work: impl FnOnce(&mut Self) -> T) -> T {
        let done = work(&mut self);
        self.release(py);
        done
    }

    fn release(self, _py: Python<'_>) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: nothing of `this` is used again, and it is not dropped.
        let mut raw = unsafe { ManuallyDrop::take(&mut this.raw) };
        // SAFETY: the interpreter is there, and the view is released once.
        unsafe { PyBuffer_Release(&raw mut *raw) };
    }

    /// The bytes, to be written to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if self.raw.len == 0 || self.raw.readonly != 0 {
            return &mut [];
        }
        // SAFETY: a writable view of so many bytes; who else writes there at the same time is the Python program's own affair, as with a file's `readinto`.
        unsafe { std::slice::from_raw_parts_mut(self.raw.buf.cast(), self.raw.len as usize) }
    }
}

impl Deref for View {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        if self.raw.len == 0 {
            return &[];
        }
        // SAFETY: the view is of so many bytes, which stay until it is released.
        unsafe { std::slice::from_raw_parts(self.raw.buf.cast(), self.raw.len as usize) }
    }
}

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: `raw` is not used again.
        let raw = unsafe { ManuallyDrop::take(&mut self.raw) };
        DROPPED.lock().unwrap_or_else(PoisonError::into_inner).push(Returned(raw));
    }
}

/// Gives back what other threads have dropped.
pub fn give_back(_py: Python<'_>) {
    let dropped = std::mem::take(&mut *DROPPED.lock().unwrap_or_else(PoisonError::into_inner));
    for mut view in dropped {
        // SAFETY: the interpreter is there, and each view is released once.
        unsafe { PyBuffer_Release(&raw mut *view.0) };
    }
}

/// Bytes of haul's that Python reads where they lie, by `memoryview(object)`: they are given back when the last view of them is gone.
struct Memory {
    #[expect(dead_code, reason = "Python's")]
    head: PyObject,
    bytes: *mut Box<dyn Bytes>,
}

/// What can be lent.
pub trait Bytes: Deref<Target = [u8]> + Send {}
impl<T: Deref<Target = [u8]> + Send> Bytes for T {}

/// An object of Python's that has these bytes.
pub fn lend(py: Python<'_>, bytes: Box<dyn Bytes>) -> PyResult<Bound<'_, PyAny>> {
    let class = memory_type(py)?.bind(py);
    // SAFETY: the class is ours, made with room for a `Memory`; `PyType_GenericAlloc` gives a new object of it, or none with an exception set.
    let object = unsafe { ffi::PyType_GenericAlloc(class.as_ptr().cast(), 0) };
    if object.is_null() {
        return Err(PyErr::fetch(py));
    }
    // SAFETY: a new object of our class, nobody else has it; its other fields are Python's.
    unsafe {
        (*object.cast::<Memory>()).bytes = Box::into_raw(Box::new(bytes));
        Bound::from_owned_ptr_or_err(py, object)
    }
}

fn memory_type(py: Python<'_>) -> PyResult<&'static Py<PyAny>> {
    static TYPE: OnceLock<Py<PyAny>> = OnceLock::new();
    if let Some(class) = TYPE.get() {
        return Ok(class);
    }
    let mut slots = [
        ffi::PyType_Slot { slot: BF_GETBUFFER, pfunc: get_buffer as *mut c_void },
        ffi::PyType_Slot { slot: BF_RELEASEBUFFER, pfunc: release_buffer as *mut c_void },
        ffi::PyType_Slot { slot: TP_DEALLOC, pfunc: deallocate as *mut c_void },
        ffi::PyType_Slot::default(),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"haul._haul.Memory".as_ptr(),
        basicsize: size_of::<Memory>() as c_int,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as _,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the specification and its slots are as Python wants them, and copied by it; the functions have the types of their slots.
    let class = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec))? };
    Ok(TYPE.get_or_init(|| class.unbind()))
}

/// `bf_getbuffer`.
unsafe extern "C" fn get_buffer(object: *mut PyObject, view: *mut RawView, flags: c_int) -> c_int {
    // SAFETY: Python calls this for objects of our class only, whose bytes `lend` has set.
    let bytes: &[u8] = unsafe { &*(*object.cast::<Memory>()).bytes };
    // SAFETY: the view is Python's to fill in; the object keeps the bytes, and is kept by the view. Asking for a writable one is refused by this function.
    unsafe { PyBuffer_FillInfo(view, object, bytes.as_ptr().cast_mut().cast(), bytes.len() as Py_ssize_t, 1, flags) }
}

/// `bf_releasebuffer`: Python drops its reference, and that is all.
unsafe extern "C" fn release_buffer(_object: *mut PyObject, _view: *mut RawView) {}

/// `tp_dealloc`.
unsafe extern "C" fn deallocate(object: *mut PyObject) {
    // SAFETY: the last reference is gone; the bytes were boxed by `lend` and are dropped once. An object of a class made by `PyType_FromSpec` owns a reference to it (since 3.8), and is freed by
    // its `tp_free`.
    unsafe {
        let bytes = (*object.cast::<Memory>()).bytes;
        if !bytes.is_null() {
            let bytes = Box::from_raw(bytes);
            // Dropping a block takes its connection's lock, which is held for no longer than a batch of packets takes, and by nobody who waits for Python.
            drop(bytes);
        }
        let class = ffi::Py_TYPE(object);
        let free = ffi::PyType_GetSlot(class, ffi::Py_tp_free);
        if !free.is_null() {
            let free: ffi::freefunc = std::mem::transmute(free);
            free(object.cast());
        }
        ffi::Py_DECREF(class.cast());
    }
}

/// The bytes to be sent, without a copy where nobody can change them before the peer has acknowledged them.
pub fn to_send(object: &Bound<'_, PyAny>, spare: impl FnOnce() -> Vec<u8>) -> PyResult<haul::BlockData> {
    if let Some(bytes) = constant(object)? {
        return Ok(bytes.into());
    }
    View::reading(object)?.during(object.py(), |view| {
        let mut block = spare();
        block.extend_from_slice(view);
        Ok(block.into())
    })
}

/// Bytes that nobody can change: of a `bytes` or of what haul has lent, or a part of them that a memoryview shows. That a view is only to be read says nothing: its exporter may write there. Of a
/// memoryview what it shows is kept and not the view, which the program may release at once.
fn constant(object: &Bound<'_, PyAny>) -> PyResult<Option<haul::SharedBytes>> {
    let py = object.py();
    let never_changes = |object: &Bound<'_, PyAny>| -> PyResult<bool> {
        // Exactly: a class made of it may export something else.
        Ok(object.is_exact_instance_of::<PyBytes>() || object.get_type().is(memory_type(py)?.bind(py)))
    };
    if never_changes(object)? {
        return Ok(Some(haul::SharedBytes::from_owner(View::reading(object)?)));
    }
    if !object.is_exact_instance_of::<PyMemoryView>() {
        return Ok(None);
    }
    let owner = object.getattr("obj")?;
    if !never_changes(&owner)? {
        return Ok(None);
    }
    let whole = haul::SharedBytes::from_owner(View::reading(&owner)?);
    // It is a part: a memoryview shows nothing but bytes of its object.
    View::reading(object)?.during(py, |part| Ok(Some(whole.slice_ref(part))))
}
