/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arithmetic that a law needs and the BPF machine has not: it knows neither fractions nor division of signed numbers.
 *
 * The laws are pure functions of integers: this header and those that include it alone compile for the host too, where the tests call them.
 * Loops are bounded, so that the verifier follows them.
 */
#ifndef HAUL_INTEGERS_H
#define HAUL_INTEGERS_H

#ifdef __bpf__
#include "kernel.h"
#else
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#endif

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define PPM 1000000u

static __always_inline u64 min64(u64 a, u64 b) { return a < b ? a : b; }
static __always_inline u64 max64(u64 a, u64 b) { return a > b ? a : b; }
static __always_inline u64 clamp64(u64 x, u64 low, u64 high) { return max64(low, min64(x, high)); }

/* a - b, and 0 where b is more. */
static __always_inline u64 less64(u64 a, u64 b) { return a > b ? a - b : 0; }

/* part of x, in millionths. */
static __always_inline u64 ppm_of(u64 x, u32 ppm) { return x * ppm / PPM; }

/* The upper bits of x by Knuth's multiplicative hash (TAOCP 3, 6.4): of clocks that differ a little, numbers that have nothing in common. */
static __always_inline u32 scattered(u64 x, u32 bits) { return (u32)x * 2654435761u >> (32 - bits); }

/* Whether counter a is at b or behind it; both run over. */
static __always_inline int reached(u32 a, u32 b) { return (s32)(a - b) >= 0; }

/*
 * Roots, bit by bit from above: a bit stays if the power of the root with it is not above x, which is the sign of a difference. There is no branch, so
 * that the verifier has one way through and not two for each bit.
 */

/* The whole square root of x. */
static __always_inline u32 square_root(u32 x)
{
	u64 root = 0;

	for (int bit = 15; bit >= 0; bit--) {
		u64 next = root | 1ull << bit;

		root |= ((x - next * next) >> 63 ^ 1) << bit;
	}
	return (u32)root;
}

/* The whole cube root of x, which is below 2^62. */
static __always_inline u32 cube_root(u64 x)
{
	u64 root = 0;

	for (int bit = 20; bit >= 0; bit--) {
		u64 next = root | 1ull << bit;

		root |= ((x - next * next * next) >> 63 ^ 1) << bit;
	}
	return (u32)root;
}

#endif
