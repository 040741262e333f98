/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * After TCP Westwood+ (L. Grieco, S. Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion control", CCR 34(2), 2004).
 *
 *   each round trip   B = 7/8 B + 1/8 (delivered / round trip)
 *   loss              w = B x smallest round-trip time
 *
 * Growth is Reno's. DEVIATION: a round's rate is the kernel's rate sample, which leaves out what came while the application had nothing to send.
 */
#ifndef HAUL_WESTWOOD_H
#define HAUL_WESTWOOD_H

#include "flow.h"

/* Rates << RATE_SHIFT. */
static __always_inline u64 westwood_filter(u64 filtered, u64 rate) { return filtered ? (filtered * 7 + rate) / 8 : rate; }

static __always_inline u32 westwood_fallen(u64 filtered, u32 base_us) { return (u32)max64(filtered * base_us >> RATE_SHIFT, 2); }

#endif
