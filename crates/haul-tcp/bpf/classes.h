/* SPDX-License-Identifier: GPL-2.0-only */
/* Which class a peer's address is in: that of the longest network that holds it. src/class.rs has the layout of the key. */
#ifndef HAUL_CLASSES_H
#define HAUL_CLASSES_H

#include "kernel.h"
#include "priority.h"
#include "report.h"

struct network {
	u32 bits;
	struct peer peer;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, CLASSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct network);
	__type(value, u32);
} classes SEC(".maps");

static __always_inline u32 *class_of(struct peer peer)
{
	struct network network = { .bits = 128, .peer = peer };

	return bpf_map_lookup_elem(&classes, &network);
}

#endif
