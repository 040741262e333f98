/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * FAST TCP (D. Wei, C. Jin, S. Low, S. Hegde, "FAST TCP: motivation, architecture, algorithms, performance", ToN 14(6), 2006).
 *
 *   each round trip   w = min(2 w, (1 - gamma) w + gamma (baseRTT / RTT w + alpha)),  gamma = 1/2
 *   loss              w = w / 2
 *
 * In equilibrium alpha packets of the flow wait in the queue: w (1 - baseRTT / RTT) = alpha.
 */
#ifndef HAUL_FAST_H
#define HAUL_FAST_H

#include "flow.h"

/* Windows << WINDOW_SHIFT. */
static __always_inline u64 fast_next(u64 window, u32 base_us, u32 rtt_us, u32 alpha)
{
	u64 aim = window * base_us / max64(max64(rtt_us, base_us), 1) + ((u64)alpha << WINDOW_SHIFT);

	return min64(2 * window, (window + aim) / 2);
}

/*
 * By the rate, as the paper's experiments (C. Jin, D. Wei, S. Low, "FAST TCP", INFOCOM 2004, IV): 8 packets up to 10 Mbit/s, 20 up to 100 Mbit/s, 200
 * up to 1 Gbit/s, and ten times as many for ten times as much. Rates are packets of some 1500 bytes: 10 Mbit/s are 833 a second.
 */
static __always_inline u32 fast_alpha(u64 rate)
{
	u64 packets = (rate >> 4) * PPM >> (RATE_SHIFT - 4);

	if (packets < 1250)
		return 8;
	if (packets < 12500)
		return 20;
	return packets < 125000 ? 200 : 2000;
}

/* Packets of a window that wait in the queue. */
static __always_inline u32 fast_waiting(u32 window, u32 base_us, u32 average_us)
{
	return (u32)((u64)window * less64(average_us, base_us) / max64(average_us, 1));
}

/* The smoothed round-trip time of FAST: each sample counts min(3 / w, 1/4). */
static __always_inline u32 fast_average(u32 average_us, u32 rtt_us, u32 window)
{
	u64 parts = max64(window / 3, 4);

	return average_us ? (u32)(((u64)average_us * (parts - 1) + rtt_us) / parts) : rtt_us;
}

#endif
