/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How subflows of a Multipath TCP connection see each other: each has a seat at its connection's table, where it writes what the others need to know.
 *
 * A seat is an entry of one map, by the connection's token, which is unique on a machine, and a number. It is taken by the entry being made (of two that want
 * it at once one is refused), written by its owner alone, and removed when the owner's socket ends or gets another law. So no lock is needed, which this kind of
 * program may not take; who reads while another one writes sees some members of the last acknowledgement and some of the one before it.
 */
#ifndef HAUL_SUBFLOWS_H
#define HAUL_SUBFLOWS_H

#include "coupled.h"
#include "kernel.h"

/* One that has heard nothing for so long, and two round trips more, carries nothing that another one would have to make room for. */
#define SILENT_US 1000000u

struct seat {
	u32 token;
	u32 number;
};

struct subflow {
	u64 heard_us; /* when its last acknowledgement came */
	struct share share;
	u32 unused;
};

/* Sixteen thousand subflows; one that finds no seat is Reno, and tries again each round trip. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct seat);
	__type(value, struct subflow);
} subflows SEC(".maps");

/*
 * The token of the connection that a socket is a subflow of; 0: of none. That of `mptcp_subflow_context` is none's where this end has opened a further
 * subflow: the connection's own is asked for. A kernel without MPTCP has none of these members, and what follows is left out when the program is loaded.
 */
static __always_inline u32 token_of(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct mptcp_subflow_context *context;
	struct mptcp_sock *connection = 0;
	u32 token = 0;

	if (!FIELD_EXISTS(tp->is_mptcp) || !tp->is_mptcp)
		return 0;
	context = tp->inet_conn.icsk_ulp_data;
	if (bpf_probe_read_kernel(&connection, sizeof(connection), &context->conn) || !connection)
		return 0;
	return bpf_probe_read_kernel(&token, sizeof(token), &connection->token) ? 0 : token;
}

static __always_inline void sit_down(struct sock *sk, struct flow *f)
{
	struct seat seat = { .token = token_of(sk) };
	struct subflow nothing = {};

	if (!seat.token)
		return;
	for (u32 i = 0; i < COMPANY; i++) {
		seat.number = i;
		if (bpf_map_update_elem(&subflows, &seat, &nothing, BPF_NOEXIST))
			continue;
		f->token = seat.token;
		f->seat = i + 1;
		return;
	}
}

static __always_inline void stand_up(struct flow *f)
{
	struct seat seat = { .token = f->token, .number = f->seat - 1 };

	if (!f->seat)
		return;
	f->seat = 0;
	bpf_map_delete_elem(&subflows, &seat);
}

static __always_inline u32 smoothed_us(const struct tcp_sock *tp) { return tp->srtt_us >> 3; }

static __always_inline struct share own_share(const struct flow *f, const struct tcp_sock *tp)
{
	/* RFC 6356 3: what fast recovery makes of the window is none; the threshold stands for it. */
	u64 window = f->recovering ? (u64)tp->snd_ssthresh << WINDOW_SHIFT : f->window;

	return share_of(window, smoothed_us(tp), unlost(f, tp->delivered));
}

static __always_inline void tell(const struct flow *f, const struct tcp_sock *tp, u64 now_us)
{
	struct seat seat = { .token = f->token, .number = f->seat - 1 };
	struct subflow *own;

	if (!f->seat || !smoothed_us(tp))
		return;
	own = bpf_map_lookup_elem(&subflows, &seat);
	if (!own)
		return;
	own->share = own_share(f, tp);
	own->heard_us = now_us;
}

/* Those that sit at the table, from the one after this one around it. */
static __always_inline void look_around(struct company *c, const struct flow *f, const struct tcp_sock *tp, u64 now_us)
{
	struct seat seat = { .token = f->token };
	u32 own = f->seat - 1;

	c->of[0] = own_share(f, tp);
	for (u32 i = 1; i < COMPANY; i++) {
		struct subflow *other = 0;

		c->of[i] = (struct share){};
		seat.number = own + i < COMPANY ? own + i : own + i - COMPANY;
		if (f->seat)
			other = bpf_map_lookup_elem(&subflows, &seat);
		if (other && other->share.rtt_us && less64(now_us, other->heard_us) < SILENT_US + 2 * (u64)other->share.rtt_us)
			c->of[i] = other->share;
	}
}

/*
 * The formulae as functions of their own that are looked at by themselves when the program is loaded. In line, each combination of seats taken and free would be
 * gone through: "BPF program is too large. Processed 1000001 insn".
 */
__attribute__((noinline)) s64 rise_in(const struct company *c, u32 law) { return c ? coupled_rise(law, c) : 0; }
__attribute__((noinline)) u64 left_in(const struct company *c, u32 law, u64 window) { return c ? coupled_left(law, c, window) : 0; }

#endif
