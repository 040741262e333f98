/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What of the kernel is used here, by name. The offsets are those of the machine that was compiled on; `preserve_access_index` has the loader put
 * the running kernel's in their place. So neither vmlinux.h nor a kernel with BTF is needed to build.
 */
#ifndef HAUL_KERNEL_H
#define HAUL_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile u8 skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	int sk_sndbuf;
	int sk_rcvbuf;
	unsigned long sk_pacing_rate;
	/* By SO_MAX_PACING_RATE; all bits: no limit. */
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
};

struct inet_sock {
	struct sock sk;
};

struct tcp_congestion_ops;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	void *icsk_ulp_data;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	/* Of a connection that opens, the number of its first byte. */
	u32 write_seq;
	u32 snd_cwnd;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 srtt_us;
	u32 mss_cache;
	u32 packets_out;
	u32 lost_out;
	u32 sacked_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 delivered;
	u32 lost;
	u32 snd_wnd;
	u32 rate_delivered;
	u32 rate_interval_us;
	u64 tcp_mstamp;
	u64 bytes_acked;
	/* The most that the application has taken in one round trip of the receiver's. */
	struct {
		u32 space;
	} rcvq_space;
	bool is_mptcp;
};

/* What a subflow's `icsk_ulp_data` points to. */
struct mptcp_subflow_context {
	struct sock *conn;
};

struct mptcp_sock {
	u32 token;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	long rtt_us;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

/* The members that a law may give. `cong_control` has four arguments since Linux 6.10. */
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
	u32 uid;
};

#pragma clang attribute pop

/* Of the kernel's user interface: the same for ever. */
struct bpf_sock_ops {
	u32 op;
	u32 args[4];
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
	u32 local_port;
	u32 is_fullsock;
	u32 snd_cwnd;
	u32 srtt_us;
	u32 bpf_sock_ops_cb_flags;
	u32 state;
	u32 rtt_min;
	u32 snd_ssthresh;
	u32 rcv_nxt;
	u32 snd_nxt;
	u32 snd_una;
	u32 mss_cache;
	u32 ecn_flags;
	u32 rate_delivered;
	u32 rate_interval_us;
	u32 packets_out;
	u32 retrans_out;
	u32 total_retrans;
	u32 segs_in;
	u32 data_segs_in;
	u32 segs_out;
	u32 data_segs_out;
	u32 lost_out;
	u32 sacked_out;
	u32 sk_txhash;
	u64 bytes_received;
	u64 bytes_acked;
	/* A `struct bpf_sock`, null where there is none yet. */
	__attribute__((aligned(8))) void *sk;
};

/* As far as `gso_segs`. */
struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 queue_mapping;
	u32 protocol;
	u32 vlan_present;
	u32 vlan_tci;
	u32 vlan_proto;
	u32 priority;
	u32 ingress_ifindex;
	u32 ifindex;
	u32 tc_index;
	u32 cb[5];
	u32 hash;
	u32 tc_classid;
	u32 data;
	u32 data_end;
	u32 napi_id;
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
	u32 local_port;
	u32 data_meta;
	__attribute__((aligned(8))) void *flow_keys;
	u64 tstamp;
	u32 wire_len;
	u32 gso_segs;
};

/* In a map's value: the loader knows it by its name. */
struct bpf_spin_lock {
	u32 val;
};

#define AF_INET 2
#define AF_INET6 10
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define TCP_CA_CWR 2
#define TCP_CA_RECOVERY 3
#define TCP_CA_LOSS 4
#define TCP_CLOSE 7
#define TCP_LISTEN 10
#define TCP_NAME_BYTES 16
/* sk_pacing_status: TCP paces by its own timer, without the fq queue. */
#define SK_PACING_NEEDED 1
/* Any user may choose the law, and any network namespace have it for its default. Without it a namespace that asks is refused and a reference to the law
 * stays behind (seen on Linux 6.18). */
#define TCP_CONG_NON_RESTRICTED 1

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_MAP_TYPE_LPM_TRIE 11
#define BPF_MAP_TYPE_SK_STORAGE 24
#define BPF_F_NO_PREALLOC 1
#define BPF_ANY 0
#define BPF_NOEXIST 1
#define BPF_SK_STORAGE_GET_F_CREATE 1
#define BPF_SOCK_OPS_TCP_CONNECT_CB 3
#define BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB 4
#define BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB 5
#define BPF_SOCK_OPS_STATE_CB 10
#define BPF_SOCK_OPS_RTT_CB 12
#define BPF_SOCK_OPS_STATE_CB_FLAG 4
#define BPF_SOCK_OPS_RTT_CB_FLAG 8
#define BPF_SKB_CLOCK_MONOTONIC 1
/* What becomes of a packet: the next program looks at it, or it is dropped. */
#define TCX_NEXT (-1)
#define TC_ACT_SHOT 2
#define SOL_SOCKET 1
#define SO_MAX_PACING_RATE 47

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) __typeof__(value) *name
#define __always_inline inline __attribute__((always_inline))
/* Whether the running kernel has a member: settled when the program is loaded (BPF_FIELD_EXISTS). */
#define FIELD_EXISTS(member) __builtin_preserve_field_info(member, 2)

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static long (*bpf_skb_load_bytes)(const void *skb, u32 offset, void *to, u32 length) = (void *)26;
static long (*bpf_setsockopt)(void *socket, int level, int name, void *value, int length) = (void *)49;
static long (*bpf_getsockopt)(void *socket, int level, int name, void *value, int length) = (void *)57;
static long (*bpf_sock_ops_cb_flags_set)(struct bpf_sock_ops *ctx, int flags) = (void *)59;
static void (*bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static void (*bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static void *(*bpf_sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static u64 (*bpf_get_netns_cookie)(void *ctx) = (void *)122;
static long (*bpf_seq_write)(struct seq_file *seq, const void *data, u32 length) = (void *)127;
static struct tcp_sock *(*bpf_skc_to_tcp_sock)(void *sk) = (void *)137;
static long (*bpf_skb_set_tstamp)(struct __sk_buff *skb, u64 time, u32 clock) = (void *)192;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;

#endif
