/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * BIC TCP (L. Xu, K. Harfoush, I. Rhee, "Binary Increase Congestion Control for Fast Long-Distance Networks", INFOCOM 2004).
 *
 * After a loss the window searches, by halving, between where it fell to and where it was lost (`wmax`); above that it feels its way upwards,
 * the further the faster. A step is 0.01 to 32 packets a round trip; loss takes 1/8; a flow that did not reach its last maximum aims lower. Below 14
 * packets it is Reno (all values: the paper's III and V).
 */
#ifndef HAUL_BIC_H
#define HAUL_BIC_H

#include "flow.h"

#define BIC_LEAST 14u
/* S_max and S_min of the paper, << WINDOW_SHIFT. */
#define BIC_LONGEST (32u << WINDOW_SHIFT)
#define BIC_SHORTEST 10u

/* Packets a round trip, << WINDOW_SHIFT; both windows << WINDOW_SHIFT. */
static __always_inline u64 bic_step(u64 window, u64 wmax)
{
	if (window < (u64)BIC_LEAST << WINDOW_SHIFT)
		return 1 << WINDOW_SHIFT;
	/* To the middle between here and the maximum. */
	if (window < wmax)
		return clamp64((wmax - window) / 2, BIC_SHORTEST, BIC_LONGEST);
	/* Slow start of the search for a new maximum: as far again as it has come. */
	return clamp64(window - wmax, 1 << WINDOW_SHIFT, BIC_LONGEST);
}

static __always_inline u64 bic_fallen(struct flow *f, u64 window)
{
	u64 fallen = window < (u64)BIC_LEAST << WINDOW_SHIFT ? window / 2 : window - window / 8;

	/* Fast convergence: III.D. */
	f->wmax = window < f->wlast ? (window + fallen) / 2 : window;
	f->wlast = window;
	return fallen;
}

#endif
