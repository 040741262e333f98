// SPDX-License-Identifier: GPL-2.0-only
/*
 * The laws as congestion control of the kernel's TCP (struct_ops), and two programs that walk over the connections of a network namespace:
 * one shows them, one gives them another law.
 *
 * A connection's state is in its socket's storage, so that it lives and ends with the socket, and the next law of the same connection finds it.
 */
#include "kernel.h"
#include "modes.h"
#include "window.h"
#include "report.h"
#include "subflows.h"

char licence[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct knobs);
} knobs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LAWS);
	__type(key, u32);
	__type(value, struct totals);
} totals SEC(".maps");

/* 4096 peers of 48 bytes; those that were not met for longest are forgotten first. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct peer);
	__type(value, struct memory);
} peers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct change);
} change SEC(".maps");

static __always_inline struct knobs *the_knobs(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&knobs, &zero);
}

static __always_inline struct flow *the_flow(struct sock *sk) { return bpf_sk_storage_get(&flows, sk, 0, 0); }

static __always_inline u64 now_us(void) { return bpf_ktime_get_ns() / 1000; }

static __always_inline u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

static __always_inline void peer_of(struct sock *sk, struct peer *peer)
{
	if (sk->__sk_common.skc_family == AF_INET6) {
		for (int i = 0; i < 4; i++)
			peer->address[i] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
	} else {
		peer->address[0] = 0;
		peer->address[1] = 0;
		peer->address[2] = MAPPED;
		peer->address[3] = sk->__sk_common.skc_daddr;
	}
}

/* RFC 9959 4.1, 4.3: the path is the one that is remembered if its round-trip time is; half of what it carried goes out in one round trip. */
static __always_inline void remember(struct sock *sk, struct flow *f, const struct knobs *k, u32 rtt_us)
{
	struct peer peer = {};
	struct memory *known;

	peer_of(sk, &peer);
	known = bpf_map_lookup_elem(&peers, &peer);
	if (!known || !rtt_us || now_us() - known->met_us > (u64)k->memory_s * PPM)
		return;
	if (rtt_us < known->base_us / 2 || rtt_us > (u64)known->base_us * 10)
		return;
	f->jump = (u32)((known->rate * known->base_us >> RATE_SHIFT) * k->jump_percent / 100);
	if (f->jump <= window_packets(f))
		return;
	f->calm_packets = known->calm_packets;
	f->calm_lost = known->calm_lost;
	f->window = (u64)f->jump << WINDOW_SHIFT;
	f->jump_from = ((struct tcp_sock *)sk)->delivered;
	f->phase = PHASE_JUMP;
}

/* What a connection has learned of its peer's path: nothing, where it was too short to learn. */
static __always_inline void learn(struct sock *sk, const struct flow *f)
{
	struct peer peer = {};
	struct memory *known, memory = {
		.rate = path_rate(f),
		.met_us = now_us(),
		.base_us = path_base_us(f),
		.calm_packets = f->calm_packets,
		.calm_lost = f->calm_lost,
	};

	if (f->rounds < 4 || !memory.rate || !memory.base_us)
		return;
	peer_of(sk, &peer);
	/* One that was mostly waiting for its application knows less of the rate than one before it. */
	known = bpf_map_lookup_elem(&peers, &peer);
	if (known && known->rate > memory.rate && (f->phase == PHASE_START || f->phase == PHASE_JUMP))
		memory.rate = known->rate;
	bpf_map_update_elem(&peers, &peer, &memory, BPF_ANY);
}

/* Never above what the application, or a program at a cgroup (`haul pace`), lets it have: a law with a rate of its own is asked to see to that. */
static __always_inline void set_pacing(struct sock *sk, u64 rate) { sk->sk_pacing_rate = min64(rate, sk->sk_max_pacing_rate); }

static __always_inline void begin(struct sock *sk, u32 law)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct knobs *k = the_knobs();
	struct totals *t = bpf_map_lookup_elem(&totals, &law);
	u32 rtt_us = tp->srtt_us >> 3;

	if (!f || !k)
		return;
	if (t)
		__sync_fetch_and_add(&t->begun, 1);
	/* The window of one that only looks at the path is not what it has. */
	if (f->law == LAW_MODEST && f->phase == PHASE_DRAIN)
		tp->snd_cwnd = (u32)min64(f->kept >> WINDOW_SHIFT, tp->snd_cwnd_clamp);
	/* The path of a connection that had another of these laws is known already. */
	if (!f->rounds) {
		path_begin(f, rtt_us, now_us());
		f->phase = PHASE_START;
	} else if (f->phase != PHASE_START) {
		f->phase = PHASE_STEADY;
	}
	f->law = law;
	f->window = (u64)tp->snd_cwnd << WINDOW_SHIFT;
	f->threshold = TCP_INFINITE_SSTHRESH;
	f->epoch_us = 0;
	f->wmax = 0;
	f->wlast = 0;
	f->turn = 0;
	f->holding = 0;
	f->round_ends = tp->delivered;
	f->round_delivered = tp->delivered;
	f->round_lost = tp->lost;
	f->before_packets = 0;
	f->before_lost = 0;
	f->part = 0;
	f->unlost_from = tp->delivered;
	f->unlost_before = 0;
	f->recovering = 0;
	stand_up(f);
	if (law >= LAW_LIA)
		sit_down(sk, f);
	if (law <= LAW_AGGRESSIVE || law == LAW_FAST)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	if (law == LAW_QUICKSTART && f->phase == PHASE_START && !f->rounds) {
		remember(sk, f, k, rtt_us);
		if (f->phase == PHASE_JUMP && t)
			__sync_fetch_and_add(&t->jumps, 1);
	}
	if (f->phase == PHASE_JUMP) {
		u32 window = (u32)min64(window_packets(f), tp->snd_cwnd_clamp);

		set_pacing(sk, (u64)window * tp->mss_cache * PPM / max64(rtt_us, 1));
		tp->snd_cwnd = window;
	}
}

static __always_inline void control(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = the_flow(sk);
	struct knobs *k = the_knobs();

	if (!f || !k)
		return;
	struct ack a = {
		.now_us = now_us(),
		.delivered_total = tp->delivered,
		.prior_delivered = rs->prior_delivered,
		.delivered = rs->delivered,
		.interval_us = rs->interval_us > 0 ? (u32)rs->interval_us : 0,
		.rtt_us = (s32)rs->rtt_us,
		.acked = rs->acked_sacked,
		.lost_total = tp->lost,
		.prior_in_flight = rs->prior_in_flight,
		.in_flight = in_flight(tp),
		.smoothed_us = tp->srtt_us >> 3,
		.segment_bytes = tp->mss_cache,
		.most = tp->snd_cwnd_clamp,
		.limited = rs->is_app_limited,
	};

	modes_on_ack(f, &a, k);
	tp->snd_cwnd = window_packets(f);
	set_pacing(sk, f->pacing);
}

static __always_inline void state(struct sock *sk, u8 to)
{
	struct flow *f = the_flow(sk);

	if (!f)
		return;
	if (to == TCP_CA_LOSS)
		modes_on_timeout(f, in_flight((struct tcp_sock *)sk), ((struct tcp_sock *)sk)->lost);
	else if (to == TCP_CA_CWR)
		f->congested = 1;
}

static __always_inline void end(struct sock *sk)
{
	struct flow *f = the_flow(sk);
	u32 law;
	struct totals *t;

	if (!f)
		return;
	law = f->law;
	stand_up(f);
	if (law <= LAW_AGGRESSIVE)
		learn(sk, f);
	t = bpf_map_lookup_elem(&totals, &law);
	if (!t)
		return;
	__sync_fetch_and_add(&t->ended, 1);
	__sync_fetch_and_add(&t->reductions, f->reductions);
}

/* A hook gets its arguments as an array of 64-bit words. */
#define HOOK(result, name) SEC("struct_ops/" #name) result name(u64 *arg)
#define SOCK ((struct sock *)arg[0])

HOOK(u32, mode_ssthresh) { return TCP_INFINITE_SSTHRESH; }
HOOK(u32, law_undo) { return ((struct tcp_sock *)SOCK)->snd_cwnd; }
HOOK(u32, mode_buffered)
{
	const struct flow *f = the_flow(SOCK);
	const struct knobs *k = the_knobs();

	return f && k ? buffered_windows(f, k) : LEAST_BUFFERED;
}
HOOK(void, mode_control) { control(SOCK, (const struct rate_sample *)arg[3]); }
HOOK(void, mode_state) { state(SOCK, (u8)arg[1]); }
HOOK(void, law_release) { end(SOCK); }
HOOK(void, fair_init) { begin(SOCK, LAW_FAIR); }
HOOK(void, quickstart_init) { begin(SOCK, LAW_QUICKSTART); }
HOOK(void, modest_init) { begin(SOCK, LAW_MODEST); }
HOOK(void, aggressive_init) { begin(SOCK, LAW_AGGRESSIVE); }
HOOK(void, fast_init) { begin(SOCK, LAW_FAST); }
HOOK(void, highspeed_init) { begin(SOCK, LAW_HIGHSPEED); }
HOOK(void, scalable_init) { begin(SOCK, LAW_SCALABLE); }
HOOK(void, bic_init) { begin(SOCK, LAW_BIC); }
HOOK(void, westwood_init) { begin(SOCK, LAW_WESTWOOD); }
HOOK(void, lia_init) { begin(SOCK, LAW_LIA); }
HOOK(void, olia_init) { begin(SOCK, LAW_OLIA); }
HOOK(void, balia_init) { begin(SOCK, LAW_BALIA); }

/* The laws with a window. */

static __always_inline u64 sampled_rate(const struct tcp_sock *tp)
{
	return tp->rate_interval_us ? ((u64)tp->rate_delivered << RATE_SHIFT) / tp->rate_interval_us : 0;
}

/* Others change the window too: the kernel in recovery. The fraction of a packet is ours. */
static __always_inline void follow(struct flow *f, const struct tcp_sock *tp)
{
	if (window_packets(f) != tp->snd_cwnd)
		f->window = (u64)tp->snd_cwnd << WINDOW_SHIFT;
}

HOOK(u32, window_ssthresh)
{
	struct flow *f = the_flow(SOCK);

	if (!f)
		return (u32)max64(((struct tcp_sock *)SOCK)->snd_cwnd / 2, 2);
	follow(f, (struct tcp_sock *)SOCK);
	return window_fall(f);
}

/* The window before the reduction was no mistake of the path: take it back. */
HOOK(u32, window_undo)
{
	struct tcp_sock *tp = (struct tcp_sock *)SOCK;
	struct flow *f = the_flow(SOCK);

	return f ? (u32)max64(tp->snd_cwnd, f->jump) : tp->snd_cwnd;
}

HOOK(void, window_acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)SOCK;
	const struct ack_sample *sample = (const struct ack_sample *)arg[1];
	struct flow *f = the_flow(SOCK);
	struct knobs *k = the_knobs();

	if (!f || !k || sample->rtt_us <= 0)
		return;
	struct ack a = { .now_us = now_us(), .rtt_us = sample->rtt_us };

	path_rtt(f, &a, k);
	f->average_us = fast_average(f->average_us, (u32)sample->rtt_us, tp->snd_cwnd);
	if (reached(tp->delivered, f->round_ends)) {
		f->filtered = westwood_filter(f->filtered, sampled_rate(tp));
		f->rate = sampled_rate(tp);
		f->rounds++;
		f->round_ends = tp->delivered + in_flight(tp);
	}
}

/* A window that is not used does not rise. In the start less than half of it used is not limited by it, as the kernel has it. */
static __always_inline int is_used(const struct tcp_sock *tp, const struct flow *f)
{
	if (tp->snd_cwnd < tp->snd_ssthresh)
		return tp->snd_cwnd < 2 * tp->max_packets_out;
	return (u64)tp->max_packets_out * 8 >= (u64)tp->snd_cwnd * 7 || f->law == LAW_FAST;
}

/* The start of a law with a window; whether it is over. */
static __always_inline int has_started(struct tcp_sock *tp, struct flow *f, u32 acked)
{
	u32 window = tp->snd_cwnd;

	if (window >= tp->snd_ssthresh)
		return 1;
	window = (u32)min64(window + acked, max64(tp->snd_ssthresh, window));
	/* FAST's start ends with the packets in the queue that it wants. */
	if (f->law == LAW_FAST && fast_waiting(window, path_base_us(f), f->average_us) >= fast_alpha(sampled_rate(tp)))
		tp->snd_ssthresh = window;
	f->window = (u64)window << WINDOW_SHIFT;
	return 0;
}

static __always_inline void take_window(struct tcp_sock *tp, struct flow *f)
{
	f->jump = window_packets(f);
	tp->snd_cwnd = (u32)clamp64(window_packets(f), 2, tp->snd_cwnd_clamp);
}

HOOK(void, window_avoid)
{
	struct tcp_sock *tp = (struct tcp_sock *)SOCK;
	u32 acked = (u32)arg[2];
	struct flow *f = the_flow(SOCK);
	struct knobs *k = the_knobs();

	if (!f || !k)
		return;
	follow(f, tp);
	if (!is_used(tp, f))
		return;
	if (has_started(tp, f, acked))
		window_rise(f, k, acked, f->rate);
	take_window(tp, f);
}

/* The coupled laws, which look at the other subflows of their connection. */

HOOK(u32, coupled_ssthresh)
{
	struct tcp_sock *tp = (struct tcp_sock *)SOCK;
	struct flow *f = the_flow(SOCK);
	struct company company;

	if (!f)
		return (u32)max64(tp->snd_cwnd / 2, 2);
	follow(f, tp);
	look_around(&company, f, tp, now_us());
	return coupled_fall(f, left_in(&company, f->law, f->window), tp->delivered);
}

HOOK(void, coupled_state)
{
	struct flow *f = the_flow(SOCK);
	u8 to = (u8)arg[1];

	if (f)
		f->recovering = to == TCP_CA_CWR || to == TCP_CA_RECOVERY;
}

HOOK(void, coupled_acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)SOCK;
	const struct ack_sample *sample = (const struct ack_sample *)arg[1];
	struct flow *f = the_flow(SOCK);
	struct knobs *k = the_knobs();

	if (!f || !k)
		return;
	struct ack a = { .now_us = now_us(), .rtt_us = sample->rtt_us };

	if (sample->rtt_us > 0)
		path_rtt(f, &a, k);
	if (reached(tp->delivered, f->round_ends)) {
		f->rounds++;
		f->round_ends = tp->delivered + in_flight(tp);
		if (!f->seat)
			sit_down(SOCK, f);
	}
	tell(f, tp, a.now_us);
}

HOOK(void, coupled_avoid)
{
	struct tcp_sock *tp = (struct tcp_sock *)SOCK;
	u32 acked = (u32)arg[2];
	struct flow *f = the_flow(SOCK);
	struct company company;

	if (!f)
		return;
	follow(f, tp);
	if (!is_used(tp, f))
		return;
	if (has_started(tp, f, acked)) {
		look_around(&company, f, tp, now_us());
		coupled_grow(f, rise_in(&company, f->law), acked);
	}
	take_window(tp, f);
}

#define MODE(variable, label) \
	SEC(".struct_ops") struct tcp_congestion_ops variable##_law = { \
		.init = (void *)variable##_init, .release = (void *)law_release, .cong_control = (void *)mode_control, \
		.ssthresh = (void *)mode_ssthresh, .undo_cwnd = (void *)law_undo, .set_state = (void *)mode_state, \
		.sndbuf_expand = (void *)mode_buffered, .flags = TCP_CONG_NON_RESTRICTED, .name = label }

#define WINDOW_LAW(variable, label) \
	SEC(".struct_ops") struct tcp_congestion_ops variable##_law = { \
		.init = (void *)variable##_init, .release = (void *)law_release, .cong_avoid = (void *)window_avoid, \
		.ssthresh = (void *)window_ssthresh, .undo_cwnd = (void *)window_undo, .pkts_acked = (void *)window_acked, \
		.flags = TCP_CONG_NON_RESTRICTED, .name = label }

#define COUPLED_LAW(variable, label) \
	SEC(".struct_ops") struct tcp_congestion_ops variable##_law = { \
		.init = (void *)variable##_init, .release = (void *)law_release, .cong_avoid = (void *)coupled_avoid, \
		.ssthresh = (void *)coupled_ssthresh, .undo_cwnd = (void *)window_undo, .pkts_acked = (void *)coupled_acked, \
		.set_state = (void *)coupled_state, .flags = TCP_CONG_NON_RESTRICTED, .name = label }

MODE(fair, "haul_fair");
MODE(quickstart, "haul_quickstart");
MODE(modest, "haul_modest");
MODE(aggressive, "haul_aggressive");
WINDOW_LAW(fast, "haul_fast");
WINDOW_LAW(highspeed, "haul_highspeed");
WINDOW_LAW(scalable, "haul_scalable");
WINDOW_LAW(bic, "haul_bic");
WINDOW_LAW(westwood, "haul_westwood");
COUPLED_LAW(lia, "haul_lia");
COUPLED_LAW(olia, "haul_olia");
COUPLED_LAW(balia, "haul_balia");

/* Connections that are there. */

static __always_inline int shown(struct sock_common *common)
{
	return common && common->skc_state != TCP_LISTEN && common->skc_state != TCP_CLOSE;
}

SEC("iter/tcp") int show(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp;
	struct flow *f;
	struct knobs *k = the_knobs();
	struct report r = {};

	if (!shown(common))
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	peer_of((struct sock *)tp, &r.peer);
	r.port = common->skc_dport;
	r.own_port = common->skc_num;
	bpf_probe_read_kernel(r.name, sizeof(r.name), tp->inet_conn.icsk_ca_ops->name);
	r.window = tp->snd_cwnd;
	r.smoothed_us = tp->srtt_us >> 3;
	r.pacing = ((struct sock *)tp)->sk_pacing_rate;
	r.segment_bytes = tp->mss_cache;
	r.bytes_acked = tp->bytes_acked;
	r.received_bytes = tp->rcvq_space.space;
	r.delivered = tp->delivered;
	r.lost = tp->lost;
	r.rate_delivered = tp->rate_delivered;
	r.rate_interval_us = tp->rate_interval_us;
	f = bpf_sk_storage_get(&flows, (struct sock *)tp, 0, 0);
	if (f && k) {
		r.known = 1;
		r.law = f->law;
		r.phase = f->phase;
		r.rate = path_rate(f);
		r.rounds = f->rounds;
		r.base_us = path_base_us(f);
		r.queue_us = f->queue_us;
		r.loss_ppm = path_loss_ppm(f, k);
		r.reductions = f->reductions;
		r.ignored = f->ignored;
		r.timeouts = f->timeouts;
	}
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}

static __always_inline int within(const struct peer *peer, const struct change *c)
{
	int same = 1;

	for (int i = 0; i < 4; i++)
		same &= (peer->address[i] & c->mask[i]) == c->address[i];
	return same;
}

SEC("iter/tcp") int alter(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp;
	struct change *c;
	struct peer peer = {};
	u32 zero = 0, done;

	if (!shown(common))
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	c = bpf_map_lookup_elem(&change, &zero);
	if (!tp || !c)
		return 0;
	peer_of((struct sock *)tp, &peer);
	if (!within(&peer, c))
		return 0;
	done = bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, c->name, sizeof(c->name)) == 0;
	bpf_seq_write(ctx->meta->seq, &done, sizeof(done));
	return 0;
}
