/* The one function of Windows' bcryptprimitives.dll that Rust's programs need, for Wine before 9.1, which has no such library: random bytes. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T length) { return RtlGenRandom(bytes, (ULONG)length); }
