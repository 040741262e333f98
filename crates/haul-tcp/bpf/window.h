/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The laws with a window: what is the same for all of them is the kernel's own (recovery, undo, its slow start's threshold), what differs is how the
 * window rises with acknowledged packets and where it falls to.
 */
#ifndef HAUL_WINDOW_H
#define HAUL_WINDOW_H

#include "bic.h"
#include "fast.h"
#include "highspeed.h"
#include "model.h"
#include "scalable.h"
#include "westwood.h"

/* FAST, once a round trip: a round is as many packets as the window has. */
static __always_inline void fast_rise(struct flow *f, const struct knobs *k, u32 acked, u64 rate)
{
	u32 alpha = k->fast_alpha_packets ? k->fast_alpha_packets : fast_alpha(rate);

	f->turn += acked;
	if (f->turn < window_packets(f))
		return;
	f->turn = 0;
	f->window = max64(fast_next(f->window, path_base_us(f), f->average_us, alpha), 2 << WINDOW_SHIFT);
}

/*
 * `step` of a packet (<< WINDOW_SHIFT) for a window of acknowledged packets. What of it is less than the window's unit is kept for the next: without that a
 * large window would not rise at all, for 1024 / 2000 is nothing.
 */
static __always_inline void window_add(struct flow *f, u64 step, u32 acked, u32 window)
{
	u64 sum = acked * step + f->part;

	f->window += sum / window;
	f->part = (u32)(sum % window);
}

/* `acked` packets came in congestion avoidance. `rate` is of the last round trip. */
static __always_inline void window_rise(struct flow *f, const struct knobs *k, u32 acked, u64 rate)
{
	u32 window = (u32)max64(window_packets(f), 1);

	if (f->law == LAW_FAST)
		fast_rise(f, k, acked, rate);
	else if (f->law == LAW_HIGHSPEED)
		window_add(f, (u64)highspeed_rise(window) << WINDOW_SHIFT, acked, window);
	else if (f->law == LAW_SCALABLE)
		f->window += (u64)acked * scalable_rise(window);
	else if (f->law == LAW_BIC)
		window_add(f, bic_step(f->window, f->wmax), acked, window);
	else
		window_add(f, 1 << WINDOW_SHIFT, acked, window);
}

/* A loss: the threshold, in packets, that the window falls to. */
static __always_inline u32 window_fall(struct flow *f)
{
	u32 window = window_packets(f), to = window / 2;

	f->reductions++;
	if (f->law == LAW_HIGHSPEED)
		to = highspeed_fallen(window);
	else if (f->law == LAW_SCALABLE)
		to = scalable_fallen(window);
	else if (f->law == LAW_BIC)
		to = (u32)(bic_fallen(f, f->window) >> WINDOW_SHIFT);
	else if (f->law == LAW_WESTWOOD)
		to = (u32)min64(westwood_fallen(f->filtered, path_base_us(f)), window);
	return (u32)max64(to, 2);
}

#endif
