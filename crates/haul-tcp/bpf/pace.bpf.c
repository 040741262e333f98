// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holds the connections of a cgroup to the rate of the class that their peer's address is in: all of a class together, whatever their congestion control. Those that
 * send share the rate in equal parts. One sends while what it sent is acknowledged: the kernel tells that with each round-trip time measured. One that has just
 * been opened is counted as one that does. What rests keeps the rate that it had, and begins with the window of a start.
 */
#include "classes.h"
#include "socket.h"

/* Programs of this kind that may look at the same connection. */
#define HOLDERS 4
/* What a full packet has on a line beside its payload: IP and TCP with time stamps (52), Ethernet (38). */
#define HEADERS 90
#define US_PER_S 1000000ull
/* Those that send are counted over a time of 2^30 ns: no path's round trip is longer by much. */
#define TIME_SHIFT 30
#define TRIES 8

char licence[] SEC("license") = "GPL";

struct pace {
	/* On the line; 0: as much as there is. */
	u64 bytes_per_s;
	/* Not more than a window each round trip. */
	u64 follows;
	/* The number of this program among all of its kind. */
	u64 holder;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CLASSES);
	__type(key, u32);
	__type(value, struct pace);
} paces SEC(".maps");

/* Connections of a class. src/pace.rs reads it. */
struct count {
	u64 open;
	/* Those that have sent in this time and in the one before, by turns: the time in the upper half, how many in the lower. */
	u64 sending[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CLASSES);
	__type(key, u32);
	__type(value, struct count);
} counts SEC(".maps");

struct sent {
	/* The last times in which a connection has sent, by turns. */
	u32 time[2];
	/* This program has counted it. One that was open before tells of itself too, where an earlier program has asked it to. */
	u32 counted;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sent);
} sent SEC(".maps");

/*
 * What a connection is held to by all programs of this kind, since several may look at it: that of its program's own cgroup, and after it that of the machine's. They have this map in common (src/pace.rs finds it
 * by its name), so that the least of what each wants holds, and of what the application has asked for.
 */
struct held {
	/* What one of them has set last. Where something else is there, the application has spoken. */
	u32 set;
	u32 application;
	struct {
		u32 holder;
		u32 rate;
	} wants[HOLDERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct held);
} haul_held SEC(".maps");

static __always_inline u32 now(void) { return bpf_ktime_get_ns() >> TIME_SHIFT; }

/* Other processors count too. */
static __always_inline void add(struct count *count, u32 time, s32 number)
{
	u64 *slot = &count->sending[time & 1], was, is;

	for (int i = 0; i < TRIES; i++) {
		was = *slot;
		is = was >> 32 == time ? was : (u64)time << 32;
		if (number < 0 && !(u32)is)
			return;
		if (__sync_val_compare_and_swap(slot, was, is + number) == was)
			return;
	}
}

static __always_inline u64 sent_in(const struct count *count, u32 time)
{
	u64 slot = count->sending[time & 1];

	return slot >> 32 == time ? (u32)slot : 0;
}

static __always_inline void opens(struct bpf_sock_ops *ctx, struct count *count)
{
	struct sent *own = ctx->sk ? bpf_sk_storage_get(&sent, ctx->sk, 0, BPF_SK_STORAGE_GET_F_CREATE) : 0;

	if (!own || own->counted)
		return;
	own->counted = 1;
	__sync_fetch_and_add(&count->open, 1);
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG | BPF_SOCK_OPS_RTT_CB_FLAG);
}

static __always_inline struct sent *counted(struct bpf_sock_ops *ctx)
{
	struct sent *own = ctx->sk ? bpf_sk_storage_get(&sent, ctx->sk, 0, 0) : 0;

	return own && own->counted ? own : 0;
}

static __always_inline void sends(struct sent *own, struct count *count)
{
	u32 time = now();

	if (own->time[time & 1] == time)
		return;
	own->time[time & 1] = time;
	add(count, time, 1);
}

static __always_inline void closes(struct sent *own, struct count *count)
{
	u32 time = now();

	own->counted = 0;
	__sync_fetch_and_sub(&count->open, 1);
	for (u32 i = 0; i < 2; i++)
		if (own->time[(time - i) & 1] == time - i)
			add(count, time - i, -1);
}

/* The kernel takes and gives 32 bits here, all of them for "no limit". */
static __always_inline void want(struct bpf_sock_ops *ctx, u32 holder, u32 rate)
{
	struct held *held = ctx->sk ? bpf_sk_storage_get(&haul_held, ctx->sk, 0, BPF_SK_STORAGE_GET_F_CREATE) : 0;
	u32 there = 0, least = rate;
	int placed = 0;

	if (!held || bpf_getsockopt(ctx, SOL_SOCKET, SO_MAX_PACING_RATE, &there, sizeof(there)))
		return;
	if (there != held->set)
		held->application = there;
	if (held->application < least)
		least = held->application;
	/* Places are taken in their order, and kept. */
	for (int i = 0; i < HOLDERS; i++) {
		if (!placed && (!held->wants[i].holder || held->wants[i].holder == holder)) {
			held->wants[i].holder = holder;
			held->wants[i].rate = rate;
			placed = 1;
		}
		if (held->wants[i].holder && held->wants[i].rate < least)
			least = held->wants[i].rate;
	}
	held->set = least;
	if (least != there)
		bpf_setsockopt(ctx, SOL_SOCKET, SO_MAX_PACING_RATE, &least, sizeof(least));
}

static __always_inline void hold(struct bpf_sock_ops *ctx, const struct pace *pace, const struct count *count)
{
	u32 time = now();
	u64 this_time = sent_in(count, time), before = sent_in(count, time - 1);
	u64 sharing = this_time > before ? this_time : before;
	u64 mss = ctx->mss_cache, srtt_us = ctx->srtt_us >> 3;
	u64 rate = ~0ull, window;

	if (!mss)
		return;
	if (pace->bytes_per_s)
		rate = pace->bytes_per_s / (sharing ? sharing : 1) * mss / (mss + HEADERS);
	if (pace->follows && srtt_us) {
		window = ctx->snd_cwnd * mss * US_PER_S / srtt_us;
		rate = window < rate ? window : rate;
	}
	want(ctx, pace->holder, rate >= 0xffffffff ? 0xffffffff : rate ? rate : 1);
}

SEC("sockops") int spread(struct bpf_sock_ops *ctx)
{
	struct pace *pace;
	struct count *count;
	struct sent *own;
	u32 *class;

	if (ctx->family != AF_INET && ctx->family != AF_INET6)
		return 1;
	class = class_of(peer_of(ctx));
	if (!class)
		return 1;
	pace = bpf_map_lookup_elem(&paces, class);
	count = bpf_map_lookup_elem(&counts, class);
	if (!pace || !count)
		return 1;
	if (ctx->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		opens(ctx, count);
	own = counted(ctx);
	if (!own)
		return 1;
	switch (ctx->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_RTT_CB:
		sends(own, count);
		hold(ctx, pace, count);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ctx->args[1] == TCP_CLOSE)
			closes(own, count);
		break;
	}
	return 1;
}
