/* SPDX-License-Identifier: GPL-2.0-only */
/* What user space and the programs tell each other. src/report.rs has the same layouts. */
#ifndef HAUL_REPORT_H
#define HAUL_REPORT_H

#include "flow.h"

/* An IPv4 address is ::ffff:a.b.c.d; all in network byte order, for a machine of either order. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define MAPPED 0xffff0000u
#else
#define MAPPED 0x0000ffffu
#endif

struct peer {
	u32 address[4];
};

struct memory {
	u64 rate;   /* << RATE_SHIFT */
	u64 met_us; /* of the monotonic clock */
	u32 base_us;
	u32 calm_packets;
	u32 calm_lost;
	u32 unused;
};

struct totals {
	u64 begun;
	u64 ended;
	u64 reductions;
	u64 jumps;
};

/* Which connections are to have another law, and which. */
struct change {
	u32 address[4];
	u32 mask[4];
	char name[16];
};

struct report {
	struct peer peer;
	u16 port;     /* network byte order */
	u16 own_port; /* the host's */
	u32 known;    /* whether what a law has learned is there */
	char name[16];
	u64 pacing;   /* bytes a second */
	u64 bytes_acked;
	u32 window;
	u32 smoothed_us;
	u32 segment_bytes;
	u32 delivered;
	u32 lost;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 law;
	u64 rate; /* << RATE_SHIFT */
	u32 phase;
	u32 rounds;
	u32 base_us;
	u32 queue_us;
	u32 loss_ppm;
	u32 reductions;
	u32 ignored;
	u32 timeouts;
	u32 received_bytes; /* in one round trip, at the most */
	u32 unused;
};

#endif
