/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The modes: one law with four sets of parameters.
 *
 * Random loss is not congestion. A loss is congestion where it is more than the path's own loss explains while a queue stands, or much more while none does
 * (model.h); then, and only then, the window falls.
 *
 *              start                  steady                                       congestion
 *   fair       x2 a round             back in CUBIC's time, slowest in the middle; x0.7, as CUBIC; not below 0.95 BDP where x0.8 allows it
 *                                     less with others that were cut
 *   quickstart what was remembered,   as fair                                      as fair; in the jump half of what came through
 *              then as fair
 *   modest     x1.5 a round           a queue of 3 ms, longer the slower it is,    x0.75
 *                                     no sawtooth; now and then a round without
 *   aggressive x2 a round             2 BDP, paced at the rate; 5/4 of it one      window 1 BDP for a round, no probe; the rate is that
 *                                     round in eight or so                         of the last round
 */
#ifndef HAUL_MODES_H
#define HAUL_MODES_H

#include "cubic.h"
#include "model.h"

/* Never fewer: so many are needed for a loss to be seen by what comes behind it. */
#define LEAST_PACKETS 4u
/* Room for the packets of a super-packet that is being made, and for one acknowledgement for many: the window bounds, pacing spaces. */
#define SLACK_PACKETS 16u
/* Rounds without a quarter more: the path is full (BBR: draft-ietf-ccwg-bbr 5.3.1.2). */
#define FLAT_ROUNDS 3
/* Aggressive: a probe, a drain, then six rounds at the rate (BBR's circle of gains), in the mean: 2 + 2^3 of them at most. */
#define CIRCLE 8
#define CIRCLE_BITS 3
/* Modest: two round trips of a hundred at most go into seeing the path without a queue. */
#define LOOK_ROUNDS 100
/* Modest: until the look after one that found the path emptier than it was known to be. A window that goes half way to another each round is there by then. */
#define LOOK_AGAIN_ROUNDS 8
/* Fair: rounds of an eighth more each until it is looked whether they brought an eighth in all: x1.42 brings that to whoever has less than two thirds of the path. */
#define RISE_ROUNDS 3
/* Rounds without a queue after a start: as many as a queue of one packet in eight takes to grow at CUBIC's slowest. */
#define EARLY_ROUNDS 8
/* The same after a reduction on a path that loses by itself: as many as the queue of the cause takes to be seen again. */
#define LOSSY_ROUNDS 4

static __always_inline u64 bounded(u64 window, const struct ack *a)
{
	return clamp64(window, (u64)LEAST_PACKETS << WINDOW_SHIFT, (u64)max64(a->most, LEAST_PACKETS) << WINDOW_SHIFT);
}

/*
 * Windows of send buffer, as `sndbuf_expand` is asked for them: the kernel's two, and more on a path that loses by itself. What waits behind a packet that was lost n times is n + 1
 * windows, and of W packets one in 16 round trips is lost so often that W p^n is a sixteenth. (The kernel gives 2304 bytes for a packet of 1500; a program that waits for room is woken
 * where a third of the buffer is free. So a window of it is one of packets.)
 */
#define LEAST_BUFFERED 2
#define MOST_BUFFERED 8
static __always_inline u32 buffered_windows(const struct flow *f, const struct knobs *k)
{
	u64 loss = path_loss_ppm(f, k), lost = window_packets(f) * 16ull;
	u32 windows = 1;

	while (windows < MOST_BUFFERED && lost) {
		lost = lost * loss / PPM;
		windows++;
	}
	return (u32)max64(windows, LEAST_BUFFERED);
}

/* The window times gain / 100 a smoothed round trip, in bytes a second. */
static __always_inline u64 window_pace(const struct flow *f, const struct ack *a, u32 gain)
{
	u64 bytes = (f->window * a->segment_bytes >> WINDOW_SHIFT) * gain / 100;

	return bytes * PPM / max64(a->smoothed_us, 1);
}

/* The path's rate times gain / 100, and what is lost on the way besides. */
static __always_inline u64 rate_pace(const struct flow *f, const struct ack *a, const struct knobs *k, u32 gain)
{
	u64 rate = path_rate(f) * PPM / (PPM - path_loss_ppm(f, k));

	/* Bytes a microsecond are too coarse a unit to round to: one is 8 Mbit/s. A hundredth of a byte a second fits: 2^28 x 2^16 x 2^14. */
	return (rate * a->segment_bytes * (PPM / 100) >> RATE_SHIFT) * gain;
}

/*
 * Aggressive: rounds until the next probe. Flows of one path have rounds of one length; where all of them probe in the same one, each gets as much more as it has, and
 * what they have stays as unlike as it was. So the round is one of chance (BBR begins its circle at one: draft-ietf-ccwg-bbr 5.3.3).
 */
static __always_inline u32 next_probe(const struct ack *a) { return CIRCLE / 2 - 1 + scattered(a->now_us, CIRCLE_BITS); }

static __always_inline void to_steady(struct flow *f, const struct ack *a)
{
	f->phase = f->law == LAW_AGGRESSIVE ? PHASE_DRAIN : PHASE_STEADY;
	f->turn = f->law == LAW_AGGRESSIVE ? next_probe(a) : 0;
	/* After a time-out to the window before it, else upwards from here. */
	f->wmax = f->threshold < TCP_INFINITE_SSTHRESH ? max64(f->wlast, f->window) : f->window;
	f->threshold = TCP_INFINITE_SSTHRESH;
	f->epoch_us = 0;
}

/* A queue that stands is the end of the start: twice the path at most is in flight. */
static __always_inline void end_start(struct flow *f, const struct ack *a, const struct knobs *k)
{
	f->window = bounded(clamp64(path_bdp(f, k) * 9 / 8, f->window / 2, f->window), a);
	to_steady(f, a);
	f->rise = f->law <= LAW_QUICKSTART;
}

/*
 * Within a round of the start: a queue in all that an eighth of a round trip brought. After a whole round the window would be twice as large (RFC 9406 4.2 looks at eight
 * samples; super-packets bring more than that at once).
 */
static __always_inline int start_queues(const struct flow *f, const struct ack *a)
{
	u32 base = path_base_us(f);

	return f->law != LAW_AGGRESSIVE && f->round_samples >= 8 && a->now_us - f->round_began_us > base / 8 &&
	       less64(f->round_min_us, base) > start_queue_us(base);
}

/* A round of the start: whether there is more to be had. */
static __always_inline void start_round(struct flow *f, const struct ack *a, const struct knobs *k)
{
	u32 base = path_base_us(f);

	/* A window that was not filled, for want of data or of the receiver's room, says nothing. After a time-out the rate is known; the threshold ends that start. */
	if (!f->round_limited && f->round_full && f->threshold == TCP_INFINITE_SSTHRESH) {
		if (path_rate(f) * 4 >= f->start_rate * 5) {
			f->start_rate = path_rate(f);
			f->start_flat = 0;
		} else {
			f->start_flat++;
		}
	}
	/* A queue over a whole round is one, an early packet behind a burst is none. Aggressive fills it first. */
	if (f->start_flat >= FLAT_ROUNDS || (f->law != LAW_AGGRESSIVE && f->last_round_queue_us > start_queue_us(base)))
		end_start(f, a, k);
}

/*
 * Fair: after a reduction from w to b, in CUBIC's time K back at w (RFC 9438 4.2), but slowest half way and four times as steep:
 *
 *   W(t) = m + 4 C (t - K/2)^3,  m = (w + b) / 2                                  4 C (K/2)^3 = (w - b) / 2
 *
 * CUBIC's growth is slowest at w: each flow goes back to what it had, and stays there for most of the time. What is above m is the same for all flows in the same time, so that of
 * two the slower one gains more by its own measure, each time.
 */
static __always_inline void fair_grow(struct flow *f, const struct ack *a)
{
	u64 t_ms, slow, target, window = max64(f->window, 1 << WINDOW_SHIFT);

	if (!f->epoch_us) {
		u64 top = max64(f->wmax, window);

		f->epoch_us = max64(a->now_us, 1);
		f->middle = (window + top) / 2;
		f->k_ms = cubic_k_ms(top, window) / 2;
		f->west = window;
	}
	t_ms = (less64(a->now_us, f->epoch_us) + a->smoothed_us) / 1000;
	slow = cubic_window(f->middle, f->k_ms, t_ms);
	target = slow > f->middle ? f->middle + 4 * (slow - f->middle) : less64(f->middle, 4 * (f->middle - slow));
	grow_towards(f, a, target);
}

/*
 * Fair, once a round: a queue that was full, as at the last reduction or nearly, became shorter by a sixteenth, and this flow did nothing for it: others were cut, since it was their
 * packets that were dropped. Whose they are is chance. So it is a reduction for this flow too, by the part that went out of the path.
 */
static __always_inline void fair_follows(struct flow *f, const struct ack *a)
{
	u32 before = f->before_queue_us, now = f->last_round_queue_us, base = path_base_us(f);

	f->before_queue_us = f->holding ? 0 : now;
	if (!f->reductions || f->holding || before <= start_queue_us(base))
		return;
	if ((u64)before * 4 < (u64)f->full_us * 3 || (u64)now * 16 >= (u64)before * 15)
		return;
	f->wmax = f->window;
	f->window = bounded(f->window - f->window * (before - now) / (base + before), a);
	f->epoch_us = 0;
}

/* Congestion, once a window. */
static __always_inline void reduce(struct flow *f, const struct ack *a, const struct knobs *k)
{
	u64 before = f->window, bdp = path_bdp(f, k), cut = before * 7 / 10;

	f->reductions++;
	f->holding = 1;
	f->hold = a->delivered_total + a->in_flight;
	if (f->law == LAW_AGGRESSIVE) {
		if (f->phase == PHASE_START)
			to_steady(f, a);
		path_forget_rate(f);
		f->phase = PHASE_DRAIN;
		return;
	}
	if (f->law == LAW_MODEST && f->phase == PHASE_DRAIN) {
		f->kept = f->kept * 3 / 4;
		return;
	}
	if (f->phase == PHASE_START) {
		/* Twice the path and its queue: at most the path is kept, at least half. */
		f->window = bounded(clamp64(bdp, before / 2, cut), a);
		to_steady(f, a);
		f->wmax = max64(cut, f->window);
		return;
	}
	if (f->law == LAW_MODEST)
		f->window = before * 3 / 4;
	else
		f->window = max64(cut, min64(bdp * 19 / 20, before * 4 / 5));
	f->window = bounded(f->window, a);
	cubic_reduced(f, before);
	f->full_us = f->queue_us;
}

/*
 * The queue that modest wants: 3 ms at 100 Mbit/s, and longer the slower the flow is, by the square root. All flows of a bottleneck see the same queue, so those that are
 * content with it are equally fast; one that all want alike leaves shares as they are (haul-cc/src/lfn/law/share.rs, where its sources are). Not shorter than what would be
 * taken for none, nor longer than what a start leaves.
 */
static __always_inline u64 modest_wanted_us(const struct flow *f, const struct ack *a, const struct knobs *k, u64 base_us, u64 queue_us)
{
	u64 bytes = max64((u64)window_packets(f) * a->segment_bytes, 1);
	/* 100 Mbit/s are 12.5 bytes a microsecond; << 20, its root << 10. */
	u64 slower = min64((base_us + queue_us) * 25 * (1 << 19) / bytes, 0xffffffff);

	return clamp64((u64)k->modest_queue_us * square_root((u32)slower) >> 10, max64(base_us / 32, 1000), max64(base_us / 4, 1));
}

/*
 * Modest, where no round-trip time near the smallest was seen for long: four packets for a round, and then the window as it was. Who came later has the queue of those before it
 * in its smallest round-trip time, wants its own on top of that, and would take all that they have; and whoever is alone would take its own queue for the path when
 * that of the time before is forgotten. One that has more than the queue's part empties it, all see that, and from then on they look at the same time. Of many each has less than
 * the queue: one that looks makes it shorter for all, and all who learn by it that the path is shorter than they knew look again soon, together, until nobody learns anything.
 */
static __always_inline int modest_looks(struct flow *f, const struct ack *a, const struct knobs *k)
{
	u32 base = path_base_us(f);
	u64 round = base + f->last_round_queue_us;
	/* Three times while the smallest is kept. By the clock, and not by rounds of one's own smallest: those who look together know different ones. */
	u64 wait = min64((u64)k->base_rtt_s * PPM / 3, LOOK_ROUNDS * round);

	if (f->phase == PHASE_DRAIN) {
		f->window = f->kept;
		f->phase = PHASE_STEADY;
		f->met_us = a->now_us;
		return 1;
	}
	if (!f->look_base_us)
		f->look_base_us = base;
	if (base + calm_us(base) < f->look_base_us)
		wait = LOOK_AGAIN_ROUNDS * round;
	if (f->holding || less64(a->now_us, f->met_us) < wait)
		return 0;
	f->look_base_us = base;
	f->kept = f->window;
	f->window = (u64)LEAST_PACKETS << WINDOW_SHIFT;
	f->phase = PHASE_DRAIN;
	return 1;
}

/*
 * Modest, once a round: half way to the window at which the wanted queue stands.
 *
 *   w = w/2 + w/2 (base + wanted) / (base + queue)         (the step of FAST TCP, with a queue in time for one in packets)
 *
 * Without any queue the step is wanted / base / 2 at most; rounds without one make it longer, up to x1.25.
 */
static __always_inline void modest_round(struct flow *f, const struct ack *a, const struct knobs *k)
{
	u64 base = path_base_us(f), queue = f->last_round_queue_us;
	u64 wanted = modest_wanted_us(f, a, k, base, queue), next;

	if (modest_looks(f, a, k))
		return;
	next = f->window / 2 + f->window / 2 * (base + wanted) / max64(base + queue, 1);
	if (queue * 2 < wanted && !f->holding) {
		u32 step = 64 >> min64(f->turn / 2, 4);

		next = max64(next, f->window + f->window / step);
		f->turn++;
	} else {
		f->turn = 0;
	}
	if (next > f->window && (f->round_limited || (u64)a->prior_in_flight * 4 < window_packets(f) * 3))
		return;
	f->window = bounded(clamp64(next, f->window * 3 / 4, f->window * 5 / 4), a);
}

/*
 * Fair, after a start that ended at a queue and before any reduction: the queue may be that of others, and then an eighth more each round still brings more. What is alone at the
 * full path gets next to nothing for it, and is left to CUBIC's growth.
 */
static __always_inline void rise_round(struct flow *f, const struct ack *a)
{
	if (!f->round_full || f->holding)
		return;
	if (f->rise++ % RISE_ROUNDS == 0) {
		if (f->rise > RISE_ROUNDS && f->rate_round * 8 < f->start_rate * 9) {
			f->rise = 0;
			return;
		}
		f->start_rate = f->rate_round;
	}
	f->window = bounded(f->window + f->window / 8, a);
	f->epoch_us = 0;
}

/*
 * Fair, once a round: rounds without any queue tell that there is more to be had. Where there never was a reduction the start ended too early, and goes on. Where the path
 * loses by itself a reduction may have been for nothing, and CUBIC would take some ten seconds to make up for it: a quarter more each round, until a queue stands. On
 * a path that loses nothing it is left at CUBIC's growth: those beside it may be doing the same.
 */
static __always_inline void fair_round(struct flow *f, const struct ack *a, const struct knobs *k)
{
	int room = f->round_full && !f->holding && f->last_round_queue_us <= calm_us(path_base_us(f));

	f->turn = room ? f->turn + 1 : 0;
	fair_follows(f, a);
	if (f->reductions) {
		if (f->turn >= LOSSY_ROUNDS && path_loss_ppm(f, k)) {
			f->window = bounded(f->window + f->window / 4, a);
			f->epoch_us = 0;
		}
		return;
	}
	if (f->rise)
		rise_round(f, a);
	if (f->turn < EARLY_ROUNDS)
		return;
	f->phase = PHASE_START;
	f->start_rate = path_rate(f);
	f->start_flat = 0;
	f->turn = 0;
}

/* Aggressive, once a round: the circle of gains. */
static __always_inline void aggressive_round(struct flow *f, const struct ack *a)
{
	if (f->phase == PHASE_PROBE) {
		f->phase = PHASE_DRAIN;
		return;
	}
	if (f->phase == PHASE_DRAIN)
		f->phase = PHASE_STEADY;
	if (f->turn)
		f->turn--;
	if (f->turn || f->holding)
		return;
	f->turn = next_probe(a);
	f->phase = PHASE_PROBE;
}

/* The jump went through, or time passed: go on from there. */
static __always_inline void jump_on_ack(struct flow *f, const struct ack *a, const struct knobs *k)
{
	u32 came = a->delivered_total - f->jump_from;
	u32 lost = a->lost_total - f->round_lost;

	if (lost && loss_is_excess(f, k, lost, f->jump)) {
		/* RFC 9959 4.4, safe retreat: half of what came through, and no doubling from there. */
		f->window = bounded((u64)came << WINDOW_SHIFT >> 1, a);
		f->reductions++;
		f->holding = 1;
		f->hold = a->delivered_total + a->in_flight;
		to_steady(f, a);
	} else if (came >= f->jump || f->rounds > 2) {
		/* All of it, or all that the application had, is acknowledged. */
		f->phase = PHASE_START;
		f->start_rate = path_rate(f);
		f->start_flat = 0;
	}
}

static __always_inline void grow(struct flow *f, const struct ack *a)
{
	u32 window = window_packets(f);

	if (f->phase == PHASE_START) {
		/* Half of the window unused: it is not what bounds. */
		if ((u64)a->prior_in_flight * 2 < window)
			return;
		f->window = bounded(f->window + ((u64)a->acked << WINDOW_SHIFT >> (f->law == LAW_MODEST)), a);
		if (window_packets(f) >= f->threshold)
			to_steady(f, a);
	} else if (f->phase == PHASE_STEADY && f->law != LAW_MODEST) {
		/* Packets that were lost are not in flight until they are sent again: a quarter may be missing. */
		if (f->holding || (u64)a->prior_in_flight * 4 < (u64)window * 3) {
			f->epoch_us = 0;
			return;
		}
		fair_grow(f, a);
		f->window = bounded(f->window, a);
	}
}

static __always_inline void set_pace(struct flow *f, const struct ack *a, const struct knobs *k)
{
	if (f->phase == PHASE_JUMP) {
		f->pacing = window_pace(f, a, 100);
	} else if (f->phase == PHASE_START) {
		f->pacing = window_pace(f, a, f->law == LAW_MODEST ? 150 : 200);
	} else if (f->law == LAW_AGGRESSIVE) {
		u64 bdp = path_bdp(f, k);

		f->window = bounded((f->holding ? bdp : bdp * 2) + (SLACK_PACKETS << WINDOW_SHIFT), a);
		f->pacing = rate_pace(f, a, k, f->phase == PHASE_PROBE ? 125 : f->phase == PHASE_DRAIN ? 75 : 100);
	} else {
		/* More than a window a round trip, so that it is the window that bounds; little more, so that queues stay short. */
		f->pacing = window_pace(f, a, f->law == LAW_MODEST ? 110 : 120);
	}
}

static __always_inline void modes_on_ack(struct flow *f, const struct ack *a, const struct knobs *k)
{
	u32 lost, round = path_on_ack(f, a, k);

	if (f->holding && reached(a->delivered_total, f->hold))
		f->holding = 0;
	lost = a->lost_total - f->round_lost;
	f->round_full |= (u64)a->prior_in_flight * 4 >= (u64)window_packets(f) * 3;
	if (f->phase == PHASE_JUMP) {
		jump_on_ack(f, a, k);
	} else {
		if (!f->holding && (f->congested || (lost && loss_is_excess(f, k, lost, (u32)max64(window_packets(f), a->delivered_total - f->round_delivered)))))
			reduce(f, a, k);
		else if (round)
			f->ignored += lost;
		if (f->phase == PHASE_START && !round && f->threshold == TCP_INFINITE_SSTHRESH && start_queues(f, a))
			end_start(f, a, k);
		else if (round && f->phase == PHASE_START)
			start_round(f, a, k);
		else if (round && f->law == LAW_MODEST)
			modest_round(f, a, k);
		else if (round && f->law == LAW_AGGRESSIVE)
			aggressive_round(f, a);
		else if (round && f->phase == PHASE_STEADY)
			fair_round(f, a, k);
		grow(f, a);
	}
	f->congested = 0;
	if (round)
		path_next_round(f, a);
	set_pace(f, a, k);
}

/*
 * The timer ran out: everything in flight is taken for lost. Doubling from here to where a reduction leads, or, where no queue stood, to where the
 * window was: it was an outage, or a packet that was lost twice. A start that had not found its end goes on.
 */
static __always_inline void modes_on_timeout(struct flow *f, u32 in_flight, u32 lost_total)
{
	u32 before, calm = f->queue_us <= calm_us(path_base_us(f));

	if (f->law == LAW_MODEST && f->phase == PHASE_DRAIN)
		f->window = f->kept;
	before = window_packets(f);
	if (f->phase != PHASE_START)
		f->threshold = (u32)max64(calm ? before : before * 7 / 10, LEAST_PACKETS);
	f->wlast = f->window;
	f->window = (u64)max64(in_flight, 10) << WINDOW_SHIFT;
	f->phase = PHASE_START;
	f->start_flat = 0;
	f->holding = 0;
	/* All that was in flight is counted as lost: that was the timer's doing. */
	f->round_lost = lost_total;
	f->before_packets = 0;
	f->before_lost = 0;
	f->timeouts++;
}

#endif
