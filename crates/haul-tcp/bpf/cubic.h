/* SPDX-License-Identifier: GPL-2.0-only */
/* CUBIC's growth after a reduction (RFC 9438), in integers: windows << WINDOW_SHIFT, times in ms. */
#ifndef HAUL_CUBIC_H
#define HAUL_CUBIC_H

#include "flow.h"

/* Beyond this nothing changes any more: (100 s)^3 * 0.4 is 400,000 packets. */
#define CUBIC_LONGEST_MS 100000u

/* RFC 9438 4.2 Eq. 2: K = cbrt((W_max - cwnd_epoch) / C) seconds, C = 0.4; in ms the cube is 10^9 times as much: 2.5 * 10^9 a packet. */
static __always_inline u32 cubic_k_ms(u64 wmax, u64 window)
{
	u64 packets = less64(wmax, window) >> WINDOW_SHIFT;

	return cube_root(min64(packets, 1u << 21) * 2500000000ull);
}

/* RFC 9438 4.2 Eq. 1: W_cubic(t) = C * (t - K)^3 + W_max */
static __always_inline u64 cubic_window(u64 wmax, u32 k_ms, u64 t_ms)
{
	u64 away = min64(t_ms > k_ms ? t_ms - k_ms : k_ms - t_ms, CUBIC_LONGEST_MS);
	/* 0.4 * away^3 / 10^9 packets, << WINDOW_SHIFT: away^3 * 4096 / 10^10, in two steps that stay below 2^64. */
	u64 part = away * away * away / 1000000 * 4096 / 10000;

	return t_ms > k_ms ? wmax + part : less64(wmax, part);
}

/* A reduction from `before` to the present window: where growth goes to. RFC 9438 4.7: a flow that did not reach its last maximum gives way. */
static __always_inline void cubic_reduced(struct flow *f, u64 before)
{
	f->wmax = before < f->wlast ? before * 17 / 20 : before;
	f->wlast = before;
	f->epoch_us = 0;
}

/* Towards a window that growth says, by half at most in a round (RFC 9438 4.2), and not below Reno's. */
static __always_inline void grow_towards(struct flow *f, const struct ack *a, u64 target)
{
	u64 window = max64(f->window, 1 << WINDOW_SHIFT);

	target = clamp64(target, window, window * 3 / 2);
	/* RFC 9438 4.4: cwnd += (target - cwnd) / cwnd for each packet. */
	f->window += (target - window) * a->acked / (window >> WINDOW_SHIFT);
	/* RFC 9438 4.3 Eq. 4: W_est += alpha * acked / cwnd, alpha = 3 (1 - beta) / (1 + beta) = 9/17 until the last maximum, then 1. */
	f->west += ((u64)a->acked << WINDOW_SHIFT << WINDOW_SHIFT) * (f->west < f->wlast ? 9 : 17) / 17 / window;
	if (f->window < f->west)
		f->window = f->west;
}

#endif
