// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives the connections of a cgroup their law by their peer's address, as they open: both those that are made and those that are accepted. Several of these programs may look at a connection, each with a rule
 * of its own: the kernel asks those of its program's own cgroup first and those of the machine last. The narrowest rule counts, whichever is asked last.
 */
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
	/* The greater, the narrower: by the depth of the cgroup, then by the network (src/tcp/ways.rs). */
	u32 narrow;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct rule);
	__type(value, struct choice);
} rules SEC(".maps");

/* The rule by which a connection has its law. */
struct had {
	/* The first byte's number tells the connection from the one that the socket had before. */
	u32 begins;
	u32 narrow;
};

/* One for all of these programs. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct had);
} haul_chosen SEC(".maps");

static __always_inline struct choice *chosen(struct bpf_sock_ops *ctx, u64 netns)
{
	struct rule rule = { .bits = 192, .netns = { (u32)netns, (u32)(netns >> 32) }, .peer = peer_of(ctx) };

	return bpf_map_lookup_elem(&rules, &rule);
}

SEC("sockops") int choose(struct bpf_sock_ops *ctx)
{
	struct choice *choice;
	void *sk = ctx->sk;
	struct tcp_sock *tp;
	struct had *had;

	if (ctx->op != BPF_SOCK_OPS_TCP_CONNECT_CB && ctx->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (ctx->family != AF_INET && ctx->family != AF_INET6)
		return 1;
	choice = chosen(ctx, bpf_get_netns_cookie(ctx));
	if (!choice)
		choice = chosen(ctx, 0);
	if (!choice || !sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	had = bpf_sk_storage_get(&haul_chosen, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (tp && had && had->begins == tp->write_seq && had->narrow > choice->narrow)
		return 1;
	/* Where the law has gone meanwhile, the connection keeps what it has. */
	if (!bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, choice->name, sizeof(choice->name)) && tp && had) {
		had->begins = tp->write_seq;
		had->narrow = choice->narrow;
	}
	return 1;
}
