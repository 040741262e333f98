/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The path as its acknowledgements show it: delivery rate, smallest round-trip time, queue, and which loss is the path's own.
 *
 * As haul's own transport does (haul-cc/src/lfn/path.rs), but with what a sender's kernel knows: there is no clock and no count of the receiver, so a
 * rate is that of acknowledgements (at most that of sending), and a queue is the round-trip time's, the way back included.
 *
 *   rate    windowed maximum of delivered / interval over 10 to 20 rounds       (BBR: draft-ietf-ccwg-bbr 5.5)
 *   base    windowed minimum of the round-trip time
 *   loss    lost / (lost + delivered) of rounds in which, as in those before, no queue stood, and that were no overload: random, not congestion
 */
#ifndef HAUL_MODEL_H
#define HAUL_MODEL_H

#include "flow.h"

/* Rounds in one stretch of the maximum: two stretches are looked at. Ten hold a rate through a cut and the growth after it. */
#define RATE_ROUNDS 10
/* The path's own loss is that of about the last so many packets: enough to tell 0.1 % from 0.2 %; and of at least so many rounds, as a loss may be told of in another round than its neighbours' arrival. */
#define CALM_PACKETS 16384u
#define CALM_ROUNDS 8u

static __always_inline u64 path_rate(const struct flow *f) { return max64(f->rate, f->rate_before); }

static __always_inline u32 path_base_us(const struct flow *f)
{
	if (!f->base_us)
		return f->base_next_us;
	return f->base_next_us ? (u32)min64(f->base_us, f->base_next_us) : f->base_us;
}

/* The path's own loss, in millionths. */
static __always_inline u32 path_loss_ppm(const struct flow *f, const struct knobs *k)
{
	/* Three of them are chance, or what a queue dropped that nobody saw. */
	if (f->calm_packets < 64 || f->calm_lost < 4)
		return 0;
	return (u32)min64((u64)f->calm_lost * PPM / f->calm_packets, k->random_loss_max_ppm);
}

/* Packets in flight that fill the path and no queue, << WINDOW_SHIFT. What the path loses is in flight too. */
static __always_inline u64 path_bdp(const struct flow *f, const struct knobs *k)
{
	u64 packets = path_rate(f) * path_base_us(f) >> (RATE_SHIFT - WINDOW_SHIFT);

	return packets * PPM / (PPM - path_loss_ppm(f, k));
}

/* Up to here a round-trip time is no queue: timers, and acknowledgements that come in groups. */
static __always_inline u32 calm_us(u32 base_us) { return 1000 + base_us / 64; }

/* From here on it is one that ends a start (RFC 9406 4.2, without its upper end: a long path's timers are no better than a short one's). */
static __always_inline u32 start_queue_us(u32 base_us) { return (u32)max64(4000, base_us / 8); }

static __always_inline void path_begin(struct flow *f, u32 rtt_us, u64 now_us)
{
	f->base_us = 0;
	f->base_next_us = rtt_us;
	f->rtt_turned_us = now_us;
	f->met_us = now_us;
	f->round_min_us = 0;
	f->round_began_us = now_us;
}

static __always_inline void path_rtt(struct flow *f, const struct ack *a, const struct knobs *k)
{
	u32 rtt = (u32)a->rtt_us, base;

	if (a->rtt_us <= 0)
		return;
	if (!f->base_next_us || rtt < f->base_next_us)
		f->base_next_us = rtt;
	/* The queue of others stood all the time, and what seemed calm was not: what it dropped is none of the path's own. It goes away little by little. */
	base = path_base_us(f);
	if (base + calm_us(base) < f->calm_base_us) {
		f->calm_packets = 0;
		f->calm_lost = 0;
		f->calm_base_us = 0;
	}
	if (a->now_us - f->rtt_turned_us > (u64)k->base_rtt_s * 500000) {
		f->base_us = f->base_next_us;
		f->base_next_us = rtt;
		f->rtt_turned_us = a->now_us;
	}
	if (!f->round_min_us || rtt < f->round_min_us)
		f->round_min_us = rtt;
	f->round_samples++;
	base = path_base_us(f);
	if (rtt <= base + calm_us(base))
		f->met_us = a->now_us;
	/* A quarter of each acknowledgement's: some few of them, so that the queue of a tail drop is seen when its loss is. */
	f->queue_us = (u32)((3 * (u64)f->queue_us + less64(rtt, base)) / 4);
}

/* A round ended: what it says of the path. */
static __always_inline void path_round(struct flow *f, const struct ack *a, u32 delivered, u32 lost)
{
	u64 took = less64(a->now_us, f->round_began_us);
	u32 base = path_base_us(f), below, gain;

	f->rounds++;
	f->rate_round = took ? ((u64)delivered << RATE_SHIFT) / took : 0;
	f->last_round_queue_us = f->round_min_us ? (u32)less64(f->round_min_us, base) : f->queue_us;
	/* Loss in it is the path's own where it was no overload: the path has carried more before, or it now carries more than ever. */
	below = f->rate_round * 32 <= f->rate_known * 31;
	gain = f->phase == PHASE_START && f->rate_round > f->rate_known;
	/* A loss is told of up to a round later than the queue that it comes of: the round before has to have been calm too. */
	f->calm_row = f->last_round_queue_us <= calm_us(base) && !f->holding ? f->calm_row + 1 : 0;
	if (f->calm_row > 1 && (below || gain)) {
		f->calm_packets += delivered + lost;
		f->calm_lost += lost;
		f->calm_base_us = (u32)max64(f->calm_base_us, base);
		if (f->calm_packets > max64(CALM_PACKETS, (u64)CALM_ROUNDS * (delivered + lost))) {
			f->calm_packets /= 2;
			f->calm_lost /= 2;
		}
	}
	f->rate_known = path_rate(f);
	if (f->rounds % RATE_ROUNDS == 0) {
		f->rate_before = f->rate;
		f->rate = 0;
	}
}

/* Aggressive, at congestion: what came before more was on the way than fits is no measure of what comes now. */
static __always_inline void path_forget_rate(struct flow *f)
{
	if (!f->rate_round)
		return;
	f->rate = f->rate_round;
	f->rate_before = 0;
}

/* Takes an acknowledgement in; whether it ended a round. */
static __always_inline int path_on_ack(struct flow *f, const struct ack *a, const struct knobs *k)
{
	path_rtt(f, a, k);
	if (a->delivered <= 0 || !a->interval_us)
		return 0;
	u64 rate = ((u64)(u32)a->delivered << RATE_SHIFT) / a->interval_us;

	if (rate > f->rate && (!a->limited || rate > path_rate(f)))
		f->rate = rate;
	f->round_limited |= a->limited;
	if (!reached(a->prior_delivered, f->round_ends))
		return 0;
	path_round(f, a, a->delivered_total - f->round_delivered, a->lost_total - f->round_lost);
	return 1;
}

/* After all have seen the round that ended. */
static __always_inline void path_next_round(struct flow *f, const struct ack *a)
{
	f->before_lost = a->lost_total - f->round_lost;
	f->before_packets = a->delivered_total - f->round_delivered + f->before_lost;
	f->round_ends = a->delivered_total;
	f->round_delivered = a->delivered_total;
	f->round_lost = a->lost_total;
	f->round_limited = a->limited;
	f->round_full = 0;
	f->round_began_us = a->now_us;
	f->round_min_us = 0;
	f->round_samples = 0;
}

/*
 * What the path loses of so many packets by itself, at most: the expected number and four standard deviations of it. Losses are independent, so the variance is the mean;
 * the expectation is itself that of the packets that it was learned from.
 */
static __always_inline u64 usual_loss(const struct flow *f, const struct knobs *k, u64 packets)
{
	/* Rounded up: one of few is no surprise. */
	u64 expected = (packets * path_loss_ppm(f, k) + PPM - 1) / PPM;

	return expected + 4 * square_root((u32)(expected + expected * packets / max64(f->calm_packets, 64)));
}

/*
 * Whether `lost` of a window of `packets` is more than the path's own loss explains.
 *
 * With a queue: more than usual. Where the path loses nothing by itself that is the first one, as with every TCP. Without a queue a buffer too small to be seen, or a policer, would
 * have to be the cause: those drop what is too much, so a thirty-second part of all has to be lost above the path's own.
 *
 * It has to be so many in the round before and this one together, too: after a pause losses are told of a round later than what arrived beside them.
 */
static __always_inline int loss_is_excess(const struct flow *f, const struct knobs *k, u32 lost, u32 packets)
{
	/* In a start the path's own loss is not known yet, and a queue is soon more than that. */
	u32 base = path_base_us(f), seen = f->phase == PHASE_START ? start_queue_us(base) : calm_us(base);
	u64 unseen = f->queue_us <= seen ? packets / 32 + 2 : 0;

	return lost > usual_loss(f, k, packets) + unseen &&
	       (u64)lost + f->before_lost > usual_loss(f, k, (u64)packets + f->before_packets) + unseen;
}

#endif
