/* SPDX-License-Identifier: GPL-2.0-only */
/* Whom a connection is with, for programs at a cgroup. */
#ifndef HAUL_SOCKET_H
#define HAUL_SOCKET_H

#include "kernel.h"
#include "report.h"

static __always_inline struct peer peer_of(struct bpf_sock_ops *context)
{
	/* Both families are read, each member by itself: the verifier takes no computed place in the context, which the compiler would make of a choice. */
	volatile struct bpf_sock_ops *ctx = context;
	u32 four = ctx->remote_ip4, six[4] = { ctx->remote_ip6[0], ctx->remote_ip6[1], ctx->remote_ip6[2], ctx->remote_ip6[3] };
	bool is_six = ctx->family == AF_INET6;

	return (struct peer){ .address = {
		is_six ? six[0] : 0,
		is_six ? six[1] : 0,
		is_six ? six[2] : MAPPED,
		is_six ? six[3] : four,
	} };
}

#endif
