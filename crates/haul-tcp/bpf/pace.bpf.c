// SPDX-License-Identifier: GPL-2.0-only
/* Holds the connections of a cgroup to the rate of the class that their peer's address is in: all of a class together, each in equal parts, whatever their congestion control. */
#include "classes.h"
#include "socket.h"

/* What a full packet has on a line beside its payload: IP and TCP with time stamps (52), Ethernet (38). */
#define HEADERS 90
#define US_PER_S 1000000ull

char licence[] SEC("license") = "GPL";

struct pace {
	/* On the line; 0: as much as there is. */
	u64 bytes_per_s;
	/* Not more than a window each round trip. */
	u64 follows;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CLASSES);
	__type(key, u32);
	__type(value, struct pace);
} paces SEC(".maps");

/* Connections of each class that are open. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CLASSES);
	__type(key, u32);
	__type(value, u64);
} opened SEC(".maps");

static __always_inline void hold(struct bpf_sock_ops *ctx, const struct pace *pace, u64 open)
{
	u64 mss = ctx->mss_cache, srtt_us = ctx->srtt_us >> 3;
	u64 rate = ~0ull, window;
	u32 value;

	if (!mss)
		return;
	if (pace->bytes_per_s)
		rate = pace->bytes_per_s / (open ? open : 1) * mss / (mss + HEADERS);
	if (pace->follows && srtt_us) {
		window = ctx->snd_cwnd * mss * US_PER_S / srtt_us;
		rate = window < rate ? window : rate;
	}
	/* The kernel takes 32 bits here, all of them for "no limit". */
	value = rate >= 0xffffffff ? 0xffffffff : rate ? rate : 1;
	bpf_setsockopt(ctx, SOL_SOCKET, SO_MAX_PACING_RATE, &value, sizeof(value));
}

SEC("sockops") int spread(struct bpf_sock_ops *ctx)
{
	struct pace *pace;
	u64 *open;
	u32 *class;

	if (ctx->family != AF_INET && ctx->family != AF_INET6)
		return 1;
	class = class_of(peer_of(ctx));
	if (!class)
		return 1;
	pace = bpf_map_lookup_elem(&paces, class);
	open = bpf_map_lookup_elem(&opened, class);
	if (!pace || !open)
		return 1;
	switch (ctx->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		__sync_fetch_and_add(open, 1);
		bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG | BPF_SOCK_OPS_RTT_CB_FLAG);
		hold(ctx, pace, *open);
		break;
	case BPF_SOCK_OPS_RTT_CB:
		hold(ctx, pace, *open);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		/* Only connections that were counted say this. */
		if (ctx->args[1] == TCP_CLOSE)
			__sync_fetch_and_sub(open, 1);
		break;
	}
	return 1;
}
