/* SPDX-License-Identifier: GPL-2.0-only */
/* The laws' functions by name, for tests on the host. */
#include "coupled.h"
#include "modes.h"
#include "window.h"

u32 haul_square_root(u32 x) { return square_root(x); }
u32 haul_cube_root(u64 x) { return cube_root(x); }
u32 haul_highspeed_rise(u32 window) { return highspeed_rise(window); }
u32 haul_highspeed_fallen(u32 window) { return highspeed_fallen(window); }
u32 haul_scalable_rise(u32 window) { return scalable_rise(window); }
u32 haul_scalable_fallen(u32 window) { return scalable_fallen(window); }
u64 haul_bic_step(u64 window, u64 wmax) { return bic_step(window, wmax); }
u64 haul_fast_next(u64 window, u32 base_us, u32 rtt_us, u32 alpha) { return fast_next(window, base_us, rtt_us, alpha); }
u32 haul_fast_alpha(u64 rate) { return fast_alpha(rate); }
u64 haul_westwood_filter(u64 filtered, u64 rate) { return westwood_filter(filtered, rate); }
u32 haul_westwood_fallen(u64 filtered, u32 base_us) { return westwood_fallen(filtered, base_us); }
u32 haul_cubic_k_ms(u64 wmax, u64 window) { return cubic_k_ms(wmax, window); }
u64 haul_cubic_window(u64 wmax, u32 k_ms, u64 t_ms) { return cubic_window(wmax, k_ms, t_ms); }

u32 haul_flow_bytes(void) { return sizeof(struct flow); }

void haul_begin(struct flow *f, u32 law, u32 window, u32 rtt_us, u64 now_us, u32 jump)
{
	*f = (struct flow){ .law = law, .window = (u64)window << WINDOW_SHIFT, .threshold = TCP_INFINITE_SSTHRESH };
	path_begin(f, rtt_us, now_us);
	if (jump > window) {
		f->jump = jump;
		f->window = (u64)jump << WINDOW_SHIFT;
		f->phase = PHASE_JUMP;
	}
}

void haul_on_ack(struct flow *f, const struct ack *a, const struct knobs *k) { modes_on_ack(f, a, k); }

/* RFC 9438 4.2, as it stands there. */
static void cubic_grow(struct flow *f, const struct ack *a)
{
	u64 t_ms, window = max64(f->window, 1 << WINDOW_SHIFT);

	if (!f->epoch_us) {
		f->epoch_us = max64(a->now_us, 1);
		f->wmax = max64(f->wmax, window);
		f->k_ms = cubic_k_ms(f->wmax, window);
		f->west = window;
	}
	t_ms = (less64(a->now_us, f->epoch_us) + a->smoothed_us) / 1000;
	grow_towards(f, a, cubic_window(f->wmax, f->k_ms, t_ms));
}

/* A flow of CUBIC as the kernel has it, to share with: every loss is congestion. */
void haul_cubic_on_ack(struct flow *f, const struct ack *a, const struct knobs *k)
{
	int round = path_on_ack(f, a, k);

	if (f->holding && reached(a->delivered_total, f->hold))
		f->holding = 0;
	if (a->lost_total != f->round_lost && !f->holding) {
		u64 before = f->window;

		f->window = max64(before * 7 / 10, 2 << WINDOW_SHIFT);
		f->phase = PHASE_STEADY;
		f->holding = 1;
		f->hold = a->delivered_total + a->in_flight;
		cubic_reduced(f, before);
	} else if (f->phase == PHASE_START) {
		f->window += (u64)a->acked << WINDOW_SHIFT;
		/* HyStart, as Linux has it: a round that was longer by an eighth ends the start. */
		if (round && f->last_round_queue_us > clamp64(path_base_us(f) / 8, 4000, 16000))
			f->phase = PHASE_STEADY;
	} else if (!f->holding) {
		cubic_grow(f, a);
	}
	f->round_lost = a->lost_total;
	if (round)
		path_next_round(f, a);
	f->pacing = 0;
}

u32 haul_window(const struct flow *f) { return window_packets(f); }
u64 haul_pacing(const struct flow *f) { return f->pacing; }
u32 haul_loss_ppm(const struct flow *f, const struct knobs *k) { return path_loss_ppm(f, k); }

/* A path of 100 ms that has lost so many of so many without a queue; as many packets in the round before as in this one. */
static struct flow known_path(u32 calm_packets, u32 calm_lost)
{
	return (struct flow){ .base_us = 100000, .calm_packets = calm_packets, .calm_lost = calm_lost, .threshold = TCP_INFINITE_SSTHRESH };
}

static const struct knobs USUAL = { .random_loss_max_ppm = 300000, .base_rtt_s = 30 };

u32 haul_excess(u32 calm_packets, u32 calm_lost, u32 before_lost, u32 lost, u32 packets, u32 queue_us)
{
	struct flow f = known_path(calm_packets, calm_lost);

	f.queue_us = queue_us;
	f.before_packets = packets;
	f.before_lost = before_lost;
	return loss_is_excess(&f, &USUAL, lost, packets);
}

/* The window of 1000 packets after a reduction and so many rounds in which it was full and no queue stood. */
u32 haul_after_rounds(u32 calm_packets, u32 calm_lost, u32 rounds)
{
	struct flow f = known_path(calm_packets, calm_lost);
	struct ack a = { .most = 100000 };

	f.window = 1000ull << WINDOW_SHIFT;
	f.reductions = 1;
	f.phase = PHASE_STEADY;
	while (rounds--) {
		f.round_full = 1;
		fair_round(&f, &a, &USUAL);
	}
	return window_packets(&f);
}

/* Windows of send buffer on a path that has lost so many of 65,536. */
u32 haul_buffered(u32 window, u32 calm_lost)
{
	struct flow f = known_path(65536, calm_lost);

	f.window = (u64)window << WINDOW_SHIFT;
	return buffered_windows(&f, &USUAL);
}

/* A window of so many packets that was reduced before, after a round whose queue is `now_us`, where it was full with `before_us` in the round before. */
u32 haul_followed(u32 window, u32 before_us, u32 now_us)
{
	struct flow f = known_path(0, 0);
	struct ack a = { .most = 100000 };

	f.window = (u64)window << WINDOW_SHIFT;
	f.reductions = 1;
	f.full_us = before_us;
	f.before_queue_us = before_us;
	f.last_round_queue_us = now_us;
	fair_follows(&f, &a);
	return window_packets(&f);
}

/* Bytes a second at which aggressive sends where the path carries so many packets a second. */
u64 haul_paced_at(u64 packets, u32 segment_bytes)
{
	struct flow f = { .law = LAW_AGGRESSIVE, .phase = PHASE_STEADY, .rate = (packets << RATE_SHIFT) / PPM, .base_us = 50000 };
	struct ack a = { .segment_bytes = segment_bytes, .most = 1 << 20 };

	set_pace(&f, &a, &USUAL);
	return f.pacing;
}

/* In which of 64 rounds of 50 ms aggressive probes, the first of which ends at a time: a bit each. */
u64 haul_probes(u64 first_us)
{
	struct flow f = { .law = LAW_AGGRESSIVE, .threshold = TCP_INFINITE_SSTHRESH };
	struct ack a = { .now_us = first_us };
	u64 probes = 0;

	to_steady(&f, &a);
	for (u32 i = 0; i < 64; i++, a.now_us += 50000) {
		aggressive_round(&f, &a);
		probes |= (u64)(f.phase == PHASE_PROBE) << i;
	}
	return probes;
}

/* What aggressive takes for the rate at congestion: of the best round of late and of the last one. */
u64 haul_rate_after_congestion(u64 best, u64 last)
{
	struct flow f = { .law = LAW_AGGRESSIVE, .phase = PHASE_STEADY, .window = 100 << WINDOW_SHIFT, .base_us = 50000 };
	struct ack a = { .most = 1 << 20 };

	f.rate = best;
	f.rate_before = best;
	f.rate_round = last;
	reduce(&f, &a, &USUAL);
	return path_rate(&f);
}

/* The path's own loss of one that lost 20 of 100 in the last of some rounds, whose queues are told. */
u32 haul_loss_after_rounds(u32 first_us, u32 second_us, u32 last_us)
{
	u32 queues[] = { first_us, second_us, last_us };
	struct flow f = { .threshold = TCP_INFINITE_SSTHRESH, .base_us = 100000 };
	struct ack a = { };

	for (u32 i = 0; i < 3; i++) {
		f.round_began_us = a.now_us;
		a.now_us += 100000;
		f.round_min_us = 100000 + queues[i];
		/* Each is the best so far. */
		f.rate_known = 0;
		path_round(&f, &a, 80, i == 2 ? 20 : 0);
	}
	return path_loss_ppm(&f, &USUAL);
}

/* The path's own loss of one that lost 30 of 150 in a round without a queue, after round-trip times that fall by a half of a millisecond each. */
u32 haul_loss_after_base(u32 first_us, u32 last_us)
{
	struct flow f = { .threshold = TCP_INFINITE_SSTHRESH };
	struct ack a = { .rtt_us = (s32)first_us, .now_us = first_us };

	path_begin(&f, first_us, 0);
	path_rtt(&f, &a, &USUAL);
	path_round(&f, &a, 80, 0);
	path_round(&f, &a, 120, 30);
	for (; (u32)a.rtt_us >= last_us; a.rtt_us -= 500)
		path_rtt(&f, &a, &USUAL);
	return path_loss_ppm(&f, &USUAL);
}

/* A subflow among others, the first of `count`: windows << WINDOW_SHIFT. */
static struct company company_of(const struct share *shares, u32 count)
{
	struct company c = {};

	for (u32 i = 0; i < count && i < COMPANY; i++)
		c.of[i] = share_of(shares[i].window, shares[i].rtt_us, shares[i].unlost);
	return c;
}

u32 haul_company(void) { return COMPANY; }

s64 haul_coupled_rise(u32 law, const struct share *shares, u32 count)
{
	struct company c = company_of(shares, count);

	return coupled_rise(law, &c);
}

/* The window of the first after `acked` packets, one acknowledgement each. */
u64 haul_coupled_grown(u32 law, const struct share *shares, u32 count, u32 acked)
{
	struct flow f = { .law = law, .window = shares[0].window };

	while (acked--) {
		struct company c = company_of(shares, count);

		c.of[0].window = (u32)f.window;
		coupled_grow(&f, coupled_rise(law, &c), 1);
	}
	return f.window;
}

u32 haul_coupled_fallen(u32 law, const struct share *shares, u32 count)
{
	struct flow f = { .law = law, .window = shares[0].window };
	struct company c = company_of(shares, count);

	return coupled_fall(&f, coupled_left(law, &c, f.window), 0);
}

/* OLIA's l after losses at so many packets delivered, when `now` are. */
u32 haul_unlost(u32 first, u32 second, u32 now)
{
	struct flow f = { .law = LAW_OLIA, .window = 10 << WINDOW_SHIFT };

	coupled_fall(&f, f.window / 2, first);
	coupled_fall(&f, f.window / 2, second);
	return unlost(&f, now);
}
