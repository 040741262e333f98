// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's own CUBIC and BBR behind programs, so that what they take can be counted as the laws' is (bench/ack-cost.py). No part of haul. */
#include "kernel.h"

char licence[] SEC("license") = "GPL";

#define KERNEL __attribute__((section(".ksyms")))
extern void cubictcp_init(struct sock *sk) KERNEL;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) KERNEL;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) KERNEL;
extern void cubictcp_state(struct sock *sk, u8 state) KERNEL;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) KERNEL;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) KERNEL;
extern void bbr_init(struct sock *sk) KERNEL;
extern void bbr_main(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs) KERNEL;
extern u32 bbr_ssthresh(struct sock *sk) KERNEL;
extern u32 bbr_undo_cwnd(struct sock *sk) KERNEL;
extern void bbr_set_state(struct sock *sk, u8 state) KERNEL;

#define HOOK(result, name) SEC("struct_ops/" #name) result name(u64 *arg)
#define SOCK ((struct sock *)arg[0])

HOOK(void, ycubic_init) { cubictcp_init(SOCK); }
HOOK(u32, ycubic_ssthresh) { return cubictcp_recalc_ssthresh(SOCK); }
HOOK(void, ycubic_avoid) { cubictcp_cong_avoid(SOCK, (u32)arg[1], (u32)arg[2]); }
HOOK(void, ycubic_state) { cubictcp_state(SOCK, (u8)arg[1]); }
HOOK(void, ycubic_acked) { cubictcp_acked(SOCK, (const struct ack_sample *)arg[1]); }
HOOK(u32, ycubic_undo) { return tcp_reno_undo_cwnd(SOCK); }
HOOK(void, ybbr_init) { bbr_init(SOCK); }
HOOK(void, ybbr_main) { bbr_main(SOCK, (u32)arg[1], (int)arg[2], (const struct rate_sample *)arg[3]); }
HOOK(u32, ybbr_ssthresh) { return bbr_ssthresh(SOCK); }
HOOK(u32, ybbr_undo) { return bbr_undo_cwnd(SOCK); }
HOOK(void, ybbr_state) { bbr_set_state(SOCK, (u8)arg[1]); }

SEC(".struct_ops") struct tcp_congestion_ops ycubic = {
	.init = (void *)ycubic_init, .ssthresh = (void *)ycubic_ssthresh, .cong_avoid = (void *)ycubic_avoid, .set_state = (void *)ycubic_state,
	.pkts_acked = (void *)ycubic_acked, .undo_cwnd = (void *)ycubic_undo, .flags = TCP_CONG_NON_RESTRICTED, .name = "ycubic" };
SEC(".struct_ops") struct tcp_congestion_ops ybbr = {
	.init = (void *)ybbr_init, .cong_control = (void *)ybbr_main, .ssthresh = (void *)ybbr_ssthresh, .undo_cwnd = (void *)ybbr_undo,
	.set_state = (void *)ybbr_state, .flags = TCP_CONG_NON_RESTRICTED, .name = "ybbr" };
