/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * HighSpeed TCP (RFC 3649): the larger the window, the more it grows and the less it falls.
 *
 *   a round trip   w += a(w)            a(w) = w^2 p(w) 2 b(w) / (2 - b(w)),  p(w) = 0.078 / w^1.2
 *   loss           w -= b(w) w          b(w) = (0.1 - 0.5) (log w - log 38) / (log 83000 - log 38) + 0.5
 *
 * Row i has the smallest window at which a(w) is i + 1, and 1024 b(w) there: RFC 3649 5, computed anew from its formulae (appendix B's table agrees
 * within the rounding of its program).
 */
#ifndef HAUL_HIGHSPEED_H
#define HAUL_HIGHSPEED_H

#include "flow.h"

#define HIGHSPEED_ROWS 73

static const struct highspeed_row {
	u32 window;
	u32 fall;
} highspeed_rows[HIGHSPEED_ROWS] = {
	{38, 512}, {118, 452}, {221, 418}, {347, 394}, {494, 375}, {662, 360},
	{849, 347}, {1056, 335}, {1282, 325}, {1527, 315}, {1791, 307}, {2073, 299},
	{2375, 292}, {2695, 285}, {3035, 279}, {3395, 273}, {3774, 267}, {4173, 262},
	{4592, 257}, {5032, 252}, {5493, 247}, {5975, 243}, {6479, 238}, {7005, 234},
	{7554, 230}, {8126, 226}, {8722, 222}, {9342, 219}, {9987, 215}, {10658, 212},
	{11355, 208}, {12080, 205}, {12832, 202}, {13613, 199}, {14424, 196}, {15265, 193},
	{16138, 190}, {17044, 187}, {17984, 184}, {18959, 181}, {19971, 178}, {21020, 176},
	{22110, 173}, {23240, 170}, {24413, 168}, {25632, 165}, {26897, 162}, {28211, 160},
	{29578, 157}, {30998, 155}, {32477, 152}, {34015, 150}, {35618, 147}, {37289, 145},
	{39032, 143}, {40853, 140}, {42756, 138}, {44748, 135}, {46836, 133}, {49027, 130},
	{51330, 128}, {53757, 126}, {56318, 123}, {59029, 121}, {61906, 118}, {64970, 115},
	{68246, 113}, {71765, 110}, {75567, 107}, {79705, 105}, {84250, 102}, {89302, 99},
	{95010, 95},
};

/* The row of a window: by halving, seven steps for up to 128 rows. */
static __always_inline u32 highspeed_row(u32 window)
{
	u32 low = 0, high = HIGHSPEED_ROWS;

	for (int i = 0; i < 7; i++) {
		u32 middle = (low + high) / 2;

		if (high - low <= 1 || middle >= HIGHSPEED_ROWS)
			break;
		if (highspeed_rows[middle].window <= window)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Packets a round trip. */
static __always_inline u32 highspeed_rise(u32 window) { return highspeed_row(window) + 1; }

static __always_inline u32 highspeed_fallen(u32 window)
{
	u32 row = highspeed_row(window);

	if (row >= HIGHSPEED_ROWS)
		return window / 2;
	return window - (u32)((u64)window * highspeed_rows[row].fall >> 10);
}

#endif
