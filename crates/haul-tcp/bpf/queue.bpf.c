// SPDX-License-Identifier: GPL-2.0-only
/* Says of each packet of a cgroup which class of a queueing discipline it is for: that of the network it goes to. What TCP's own timer cannot hold is held there: by HTB
 * itself, or by fq until the time that departure.bpf.c gives. */
#include "classes.h"

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
/* Where the destination is in a header. */
#define IP_TO 16
#define IPV6_TO 24

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NETWORK16(value) ((u16)((value) << 8 | (value) >> 8))
#else
#define NETWORK16(value) (value)
#endif

char licence[] SEC("license") = "GPL";

/* The interface that the discipline is at. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} at SEC(".maps");

SEC("cgroup_skb/egress") int sort(struct __sk_buff *skb)
{
	struct peer to = { .address = { 0, 0, MAPPED, 0 } };
	u32 zero = 0, *interface = bpf_map_lookup_elem(&at, &zero), *class;
	long failed;

	/* An interface of this number in another network namespace has no such discipline, and nobody heeds what is said here. */
	if (!interface || skb->ifindex != *interface)
		return 1;
	if (skb->protocol == NETWORK16(ETH_P_IP))
		failed = bpf_skb_load_bytes(skb, IP_TO, &to.address[3], sizeof(u32));
	else if (skb->protocol == NETWORK16(ETH_P_IPV6))
		failed = bpf_skb_load_bytes(skb, IPV6_TO, to.address, sizeof(to.address));
	else
		return 1;
	if (failed)
		return 1;
	class = class_of(to);
	if (class)
		skb->priority = HANDLE + *class + 1;
	return 1;
}
