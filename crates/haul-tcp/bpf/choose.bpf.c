// SPDX-License-Identifier: GPL-2.0-only
/* Gives the connections of a cgroup their law by their peer's address, as they open: both those that are made and those that are accepted. */
#include "kernel.h"
#include "report.h"
#include "socket.h"

char licence[] SEC("license") = "GPL";

/* The bits that count, from the front: a network namespace (0: all), then the peer's network. */
struct rule {
	u32 bits;
	u32 netns[2];
	struct peer peer;
};

struct choice {
	char name[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct rule);
	__type(value, struct choice);
} rules SEC(".maps");

static __always_inline struct choice *chosen(struct bpf_sock_ops *ctx, u64 netns)
{
	struct rule rule = { .bits = 192, .netns = { (u32)netns, (u32)(netns >> 32) }, .peer = peer_of(ctx) };

	return bpf_map_lookup_elem(&rules, &rule);
}

SEC("sockops") int choose(struct bpf_sock_ops *ctx)
{
	struct choice *choice;

	if (ctx->op != BPF_SOCK_OPS_TCP_CONNECT_CB && ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (ctx->family != AF_INET && ctx->family != AF_INET6)
		return 1;
	choice = chosen(ctx, bpf_get_netns_cookie(ctx));
	if (!choice)
		choice = chosen(ctx, 0);
	/* Where the law has gone meanwhile, the connection keeps what it has. */
	if (choice)
		bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, choice->name, sizeof(choice->name));
	return 1;
}
