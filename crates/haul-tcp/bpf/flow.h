/* SPDX-License-Identifier: GPL-2.0-only */
/* What is known of one connection, what an acknowledgement says, and what a user may set: plain numbers, the same in the kernel and in tests. */
#ifndef HAUL_FLOW_H
#define HAUL_FLOW_H

#include "integers.h"

/* Windows are kept in 1/1024 of a packet. */
#define WINDOW_SHIFT 10
/* Rates are packets << 24 a microsecond: a packet a second is 16.8 of it, and 10 million packets a second are still 2^28. */
#define RATE_SHIFT 24
/* A threshold that nobody reaches, as the kernel has it. */
#define TCP_INFINITE_SSTHRESH 0x7fffffff

enum law { LAW_FAIR, LAW_QUICKSTART, LAW_MODEST, LAW_AGGRESSIVE, LAW_FAST, LAW_HIGHSPEED, LAW_SCALABLE, LAW_BIC, LAW_WESTWOOD, LAW_LIA, LAW_OLIA, LAW_BALIA, LAWS };

enum phase {
	PHASE_START,   /* doubling each round trip */
	PHASE_JUMP,    /* what was remembered of the peer is on its way, not yet acknowledged */
	PHASE_DRAIN,   /* the queue goes away: that of the start or of a probe; modest: any, so that the path is seen without */
	PHASE_STEADY,
	PHASE_PROBE,   /* aggressive: a quarter more for one round trip */
};

/* Set while connections live; `haul tcp set`. The order is known to src/knobs.rs. */
struct knobs {
	u32 fast_alpha_packets;  /* FAST: own packets waiting in the queue; 0: by the rate */
	u32 modest_queue_us;     /* modest: the queue that it wants, at least */
	u32 random_loss_max_ppm; /* what may pass for the path's own loss */
	u32 jump_percent;        /* quickstart: of the remembered window */
	u32 memory_s;            /* quickstart: how long a peer's path is remembered */
	u32 base_rtt_s;          /* how long the smallest round-trip time holds */
};

struct flow {
	u64 window;       /* << WINDOW_SHIFT */
	u64 pacing;       /* bytes a second; 0: the kernel's own */
	u32 law;
	u32 phase;
	/* The path. */
	u64 rate;         /* the most that was delivered in this and the last stretch of rounds */
	u64 rate_before;
	u64 rate_round;   /* what the round that ended delivered */
	u64 rate_known;   /* the most before that round */
	u64 rtt_turned_us;/* when the older smallest round-trip time is dropped */
	u64 met_us;       /* when a round-trip time was last near the smallest */
	u32 base_us;
	u32 base_next_us;
	u32 queue_us;     /* smoothed: round-trip time above the base */
	u32 round_min_us;
	u32 last_round_queue_us; /* the least of the round that ended */
	u32 rounds;
	u32 round_ends;   /* when this many packets were delivered */
	u32 round_delivered;
	u32 round_lost;
	u32 round_limited;/* the application had nothing to send in it */
	u32 round_samples;/* round-trip times in it */
	u32 before_packets; /* delivered and lost in the round before */
	u32 before_lost;
	u64 round_began_us;
	/* The path's own loss: of packets sent while no queue stood. */
	u32 calm_packets;
	u32 calm_lost;
	u32 calm_row;     /* rounds without a queue or a reduction, one after the other */
	u32 calm_base_us; /* the longest base by which one of them was taken for calm */
	/* Start. */
	u64 start_rate;
	u32 start_flat;   /* rounds that brought no more */
	u32 threshold;    /* packets: the start ends there */
	u32 full_us;      /* fair: the queue at its last reduction */
	u32 before_queue_us; /* fair: the least queue of the round before; 0: none that counts */
	u64 kept;         /* modest: the window while the queue goes away, << WINDOW_SHIFT */
	u32 look_base_us; /* modest: the smallest round-trip time when it looked last */
	u32 rise;         /* fair: rounds since a start ended at a queue, while growth brings more; 0: it brings none */
	u32 jump;         /* packets */
	u32 jump_from;    /* delivered when it began */
	/* CUBIC. */
	u64 epoch_us;     /* 0: at the next acknowledgement */
	u64 wmax;         /* << WINDOW_SHIFT */
	u64 west;         /* << WINDOW_SHIFT: where Reno would be */
	u64 wlast;
	u64 middle;       /* fair, << WINDOW_SHIFT: where growth is slowest */
	u32 k_ms;
	u32 hold;         /* a reduction holds until this many packets were delivered */
	u32 holding;
	u32 congested;    /* the kernel told of a mark or of a local drop */
	/* Laws with a window. */
	u32 turn;         /* fair, modest: rounds with no queue; aggressive: rounds until the next probe; FAST: end of this update */
	u32 average_us;
	u64 filtered;     /* Westwood */
	/* Coupled laws. */
	u32 token;        /* of the connection that this is a subflow of */
	u32 seat;         /* at its table, from 1; 0: none */
	u32 part;         /* of the window, what is finer than that: << RISE_SHIFT; other laws: of a window << WINDOW_SHIFT */
	u32 unlost_from;  /* this many packets were delivered at the last loss */
	u32 unlost_before;/* between the two before */
	u32 recovering;   /* fast recovery goes on */
	/* Told to the user. */
	u32 reductions;
	u32 ignored;      /* packets whose loss changed nothing */
	u32 timeouts;
	u32 round_full;   /* three quarters of the window were in flight in it */
};

struct ack {
	u64 now_us;
	u32 delivered_total;
	u32 prior_delivered; /* delivered_total when the packet that this acknowledges was sent */
	s32 delivered;       /* in the interval; none if not positive */
	u32 interval_us;
	s32 rtt_us;          /* none if not positive */
	u32 acked;
	u32 lost_total;
	u32 prior_in_flight;
	u32 in_flight;
	u32 smoothed_us;
	u32 segment_bytes;
	u32 most;            /* the window's upper end, packets */
	u32 limited;         /* by the application */
};

static __always_inline u32 window_packets(const struct flow *f) { return (u32)(f->window >> WINDOW_SHIFT); }

#endif
