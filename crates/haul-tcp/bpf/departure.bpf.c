// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives each packet of a class the time at which it leaves, at an interface whose queueing discipline (fq) holds it until then: when all that the class has sent before
 * is over on a line of its rate (Saeed et al., "Carousel: Scalable Traffic Shaping at End Hosts", SIGCOMM 2017). A time without packets is not saved up. What would
 * wait longer than the horizon is dropped as a full queue does it.
 *
 * Which class a packet is of the program at the cgroup has said (queue.bpf.c). Here a packet is as the interface gets it: of a super-packet the kernel has counted the
 * headers of each frame.
 */
#include "kernel.h"
#include "priority.h"

#define NS_PER_S 1000000000ull
#define BITS_PER_BYTE 8
/* Carousel's horizon is some seconds: what waits longer, nobody waits for. Well below that of fq (10 s). */
#define HORIZON_NS (2 * NS_PER_S)
/* What a frame has on a line beside what the kernel counts: check sum, preamble, gap; and the shortest one. */
#define AROUND_FRAME 24
#define LEAST_FRAME 84

char licence[] SEC("license") = "GPL";

/* src/departure.rs has the same layout. */
struct departure {
	/* Processors send at the same time. One after the other takes what is free next: each gets a time of its own, and none is lost. */
	struct bpf_spin_lock lock;
	/* On the line; 0: the class has none. */
	u64 bits_per_s;
	/* When all that has got its time is over. */
	u64 free_ns;
	/* And the part of a nanosecond that it is over later, times the rate. */
	u64 part;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CLASSES);
	__type(key, u32);
	__type(value, struct departure);
} departures SEC(".maps");

/* The last frame of a super-packet may be shorter than the least: then it counts up to 18 bytes too few. */
static __always_inline u64 bytes_on_line(const struct __sk_buff *skb)
{
	u64 frames = skb->gso_segs > 1 ? skb->gso_segs : 1;
	u64 bytes = skb->wire_len + frames * AROUND_FRAME, least = frames * LEAST_FRAME;

	return bytes > least ? bytes : least;
}

SEC("tc") int depart(struct __sk_buff *skb)
{
	u32 class = skb->priority - HANDLE - 1;
	u64 bytes = bytes_on_line(skb), now = bpf_ktime_get_ns(), from, span;
	struct departure *of;

	/* A number that is no class's is not in the table. */
	of = bpf_map_lookup_elem(&departures, &class);
	if (!of || !of->bits_per_s)
		return TCX_NEXT;
	/* Has been heard: fq takes it for another thing. */
	skb->priority = 0;
	bpf_spin_lock(&of->lock);
	if (of->free_ns < now) {
		of->free_ns = now;
		of->part = 0;
	}
	from = of->free_ns;
	if (from - now <= HORIZON_NS) {
		span = bytes * BITS_PER_BYTE * NS_PER_S + of->part;
		of->free_ns = from + span / of->bits_per_s;
		of->part = span % of->bits_per_s;
	}
	bpf_spin_unlock(&of->lock);
	if (from - now > HORIZON_NS)
		return TC_ACT_SHOT;
	/* A sender that has given a later time itself keeps it. */
	if (skb->tstamp < from)
		bpf_skb_set_tstamp(skb, from, BPF_SKB_CLOCK_MONOTONIC);
	return TCX_NEXT;
}
