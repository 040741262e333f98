/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scalable TCP (T. Kelly, "Scalable TCP: improving performance in highspeed wide area networks", CCR 33(2), 2003).
 *
 *   each packet acknowledged   w += 0.01
 *   loss                       w -= w / 8
 *
 * The time to recover from a loss is ln(8/7) / ln(1.01) = 13.4 round trips, whatever the window. Below 16 packets (4) it is Reno.
 */
#ifndef HAUL_SCALABLE_H
#define HAUL_SCALABLE_H

#include "flow.h"

#define SCALABLE_LEAST 16u

/* 1/1024 packets for each packet acknowledged. */
static __always_inline u32 scalable_rise(u32 window)
{
	/* 0.01 * 1024 = 10.24; the window is at least one. */
	return window < SCALABLE_LEAST ? 1024 / (u32)max64(window, 1) : 10;
}

static __always_inline u32 scalable_fallen(u32 window) { return window < SCALABLE_LEAST ? window / 2 : window - window / 8; }

#endif
