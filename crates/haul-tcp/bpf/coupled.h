/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Coupled congestion control of Multipath TCP: how the windows of one connection's subflows grow together. Over all subflows p, for each packet that
 * subflow r has acknowledged, windows w in packets, x = w / rtt:
 *
 *   LIA    RFC 6356                                     w_r += min(max(w_p / rtt_p^2) / (sum x_p)^2, 1 / w_r)                  loss  w_r = w_r / 2
 *   OLIA   draft-khalili-mptcp-congestion-control-05    w_r += (w_r / rtt_r^2) / (sum x_p)^2 + alpha_r / w_r                   loss  w_r = w_r / 2
 *   BALIA  draft-walid-mptcp-congestion-control-04      w_r += x_r / (rtt_r (sum x_p)^2) (1 + a_r) / 2 (4 + a_r) / 5           loss  w_r -= w_r / 2 min(a_r, 1.5)
 *
 * with LIA's alpha put in, OLIA's alpha_r from the subflows with the largest windows to those with the largest l^2 / rtt that are others, l the packets
 * between losses, and a_r = max x_p / x_r. One subflow alone is Reno by each. Slow start and recovery are each subflow's own. In packets: the subflows of a
 * connection are taken to have packets of one size.
 *
 * Integers. A window is in 1/1024 of a packet, below 2^29 (half a million packets; a larger one counts as that), a round-trip time 1 us to 2^25 us (33 s). Rates are
 * not: each formula is divided through by one subflow's rtt, so that the others count with the window that they would have at that round-trip time, y_p = w_p
 * rtt / rtt_p, below 2^38, and their sum is below 2^42. What a packet adds is in 2^-30 of a packet, so that a window of 2^19 grows too.
 */
#ifndef HAUL_COUPLED_H
#define HAUL_COUPLED_H

#include "flow.h"

/* The kernel's own path manager opens eight subflows beside the first one. */
#define COMPANY 9

#define COUPLED_WIDEST ((1u << 29) - 1)
#define COUPLED_LONGEST_US (1u << 25)
#define COUPLED_MOST (1ull << 38)
/* What a packet adds is in packets << RISE_SHIFT. */
#define RISE_SHIFT 30

/* What one subflow tells the others. */
struct share {
	u32 window; /* << WINDOW_SHIFT; 0: there is nobody, or nobody that counts */
	u32 rtt_us;
	u32 unlost; /* OLIA's l: packets since the last loss, or between the two before, whichever are more */
};

/* The subflows of a connection, as one of them sees it: itself first. */
struct company {
	struct share of[COMPANY];
};

static __always_inline struct share share_of(u64 window, u32 rtt_us, u32 unlost)
{
	return (struct share){ .window = (u32)clamp64(window, 1, COUPLED_WIDEST), .rtt_us = (u32)clamp64(rtt_us, 1, COUPLED_LONGEST_US), .unlost = unlost };
}

/* The window that carries as much in round trips of `rtt_us`: below 2^29 * 2^25 on the way. */
static __always_inline u64 window_at(const struct share *s, u32 rtt_us)
{
	return min64((u64)s->window * rtt_us / max64(s->rtt_us, 1), COUPLED_MOST);
}

static __always_inline u64 sum_at(const struct company *c, u32 rtt_us)
{
	u64 sum = window_at(&c->of[0], rtt_us);

	for (int i = 1; i < COMPANY; i++) {
		if (c->of[i].window)
			sum += window_at(&c->of[i], rtt_us);
	}
	return max64(sum, 1);
}

/* window / sum^2: the window is below 2^29 and no part of it is lost to rounding before the second division. */
static __always_inline u64 over_square(u64 window, u64 sum) { return (((window << 32) / sum) << 8) / sum; }

/* 1 / (parts * window) */
static __always_inline u64 reno_rise(u32 window, u32 parts) { return (1ull << (RISE_SHIFT + WINDOW_SHIFT)) / max64((u64)window * parts, 1); }

static __always_inline u64 lia_rise(const struct company *c)
{
	u32 window = c->of[0].window, rtt_us = c->of[0].rtt_us;

	/* The largest w / rtt^2: another one's is if w_i rtt / rtt_i * rtt / rtt_i is above w; below 2^38 * 2^25 on the way. */
	for (int i = 1; i < COMPANY; i++) {
		const struct share *s = &c->of[i];

		if (s->window && window_at(s, rtt_us) * rtt_us / max64(s->rtt_us, 1) > window) {
			window = s->window;
			rtt_us = s->rtt_us;
		}
	}
	return min64(over_square(window, sum_at(c, rtt_us)), reno_rise(c->of[0].window, 1));
}

/*
 * Whether a is above b, both below 2^63: the sign of a difference. There is no branch, so that the verifier has one way through a subflow and not one for each
 * combination of those that are there, wide and good.
 */
static __always_inline u64 is_above(u64 a, u64 b) { return (b - a) >> 63; }

/* Whether l^2 / rtt of the first is above that of the second; l below 2^19, so that both sides are below 2^63. */
static __always_inline u64 is_better(u64 l, u64 rtt_us, u64 other_l, u64 other_rtt_us)
{
	return is_above(l * l * other_rtt_us, other_l * other_l * rtt_us);
}

/* The bits that all l are shifted by for that: the least ones of a large number decide nothing. */
static __always_inline u32 unlost_shift(const struct company *c)
{
	u32 most = 0;

	for (int i = 0; i < COMPANY; i++) {
		if (c->of[i].window)
			most |= c->of[i].unlost;
	}
	if (most < 1u << 19)
		return 0;
	return most < 1u << 26 ? 7 : 13;
}

/* alpha_r / w_r of OLIA. Windows are compared in whole packets: a fraction is no difference. */
static __always_inline s64 olia_shift(const struct company *c)
{
	const struct share *own = &c->of[0];
	u32 shift = unlost_shift(c);
	u64 own_packets = own->window >> WINDOW_SHIFT, own_unlost = own->unlost >> shift;
	u64 widest = own_packets, best = own_unlost, best_rtt_us = own->rtt_us, paths = 0, wide = 0, collected = 0;

	for (int i = 1; i < COMPANY; i++) {
		u64 packets = c->of[i].window >> WINDOW_SHIFT, unlost = c->of[i].unlost >> shift, rtt_us = c->of[i].rtt_us;
		u64 better = is_better(unlost, rtt_us, best, best_rtt_us);

		widest += is_above(packets, widest) * (packets - widest);
		best += better * (unlost - best);
		best_rtt_us += better * (rtt_us - best_rtt_us);
	}
	for (int i = 0; i < COMPANY; i++) {
		u64 is_there = is_above(c->of[i].window, 0), is_wide = is_above(1, widest - (c->of[i].window >> WINDOW_SHIFT));
		u64 is_best = is_above(1, is_better(best, best_rtt_us, c->of[i].unlost >> shift, c->of[i].rtt_us));

		paths += is_there;
		wide += is_there * is_wide;
		collected += is_there * (1 - is_wide) * is_best;
	}
	if (!collected)
		return 0;
	if (own_packets >= widest)
		return -(s64)reno_rise(own->window, (u32)(paths * wide));
	return is_better(best, best_rtt_us, own_unlost, own->rtt_us) ? 0 : (s64)reno_rise(own->window, (u32)(paths * collected));
}

static __always_inline s64 olia_rise(const struct company *c)
{
	return (s64)over_square(c->of[0].window, sum_at(c, c->of[0].rtt_us)) + olia_shift(c);
}

/* The window that the fastest subflow would have at the first one's round-trip time: a_r is that over the first one's window. */
static __always_inline u64 fastest_at(const struct company *c, u32 rtt_us)
{
	u64 most = c->of[0].window;

	for (int i = 1; i < COMPANY; i++) {
		if (c->of[i].window)
			most = max64(most, window_at(&c->of[i], rtt_us));
	}
	return most;
}

static __always_inline u64 balia_rise(const struct company *c)
{
	u32 rtt_us = c->of[0].rtt_us;
	u64 window = max64(c->of[0].window, 1), fastest = fastest_at(c, rtt_us), sum = sum_at(c, rtt_us);
	/* w (1 + a) / sum and w (4 + a) / sum, << 24: at most 2 and 5, and below 2^39 << 24 on the way. */
	u64 first = ((window + fastest) << 24) / sum, second = ((4 * window + fastest) << 24) / sum;

	/* Their product over 10 w: << 48, and w << WINDOW_SHIFT; 2^(48 - 8 - 10) is what a packet adds. */
	return (first * second >> 8) / (10 * window);
}

/* What is left of `window` after a loss: a_r in 1/1024. */
static __always_inline u64 balia_left(const struct company *c, u64 window)
{
	u64 above = min64((fastest_at(c, c->of[0].rtt_us) << 10) / max64(c->of[0].window, 1), 1536);

	return window - window * above / 2048;
}

/* What a packet that is acknowledged adds to the window of the first, packets << RISE_SHIFT; OLIA's may be below zero. */
static __always_inline s64 coupled_rise(u32 law, const struct company *c)
{
	if (law == LAW_LIA)
		return (s64)lia_rise(c);
	return law == LAW_OLIA ? olia_rise(c) : (s64)balia_rise(c);
}

/* What is left of a window after a loss. */
static __always_inline u64 coupled_left(u32 law, const struct company *c, u64 window) { return law == LAW_BALIA ? balia_left(c, window) : window / 2; }

/* `acked` packets came in congestion avoidance, each of which adds `rise`. */
static __always_inline void coupled_grow(struct flow *f, s64 rise, u32 acked)
{
	/* Below 2^31 * 2^31. What is finer than a window stays for the next time, also where it grows by less than nothing: shifts round down. */
	s64 part = (s64)f->part + rise * (s64)min64(acked, 1u << 31);
	s64 window = (s64)f->window + (part >> (RISE_SHIFT - WINDOW_SHIFT));

	f->part = (u32)part & ((1u << (RISE_SHIFT - WINDOW_SHIFT)) - 1);
	f->window = window < 2 << WINDOW_SHIFT ? 2 << WINDOW_SHIFT : (u64)window;
}

/* OLIA's l, when so many packets are delivered. */
static __always_inline u32 unlost(const struct flow *f, u32 delivered) { return (u32)max64(delivered - f->unlost_from, f->unlost_before); }

/* A loss that leaves so much of the window when `delivered` packets have arrived: the threshold in packets. */
static __always_inline u32 coupled_fall(struct flow *f, u64 left, u32 delivered)
{
	f->reductions++;
	f->unlost_before = delivered - f->unlost_from;
	f->unlost_from = delivered;
	return (u32)max64(left >> WINDOW_SHIFT, 2);
}

#endif
