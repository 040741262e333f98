/* SPDX-License-Identifier: GPL-2.0-only */
/* How a packet's class is told from the program at the cgroup to what holds it at the interface: by its priority. src/discipline.rs has the handle too. */
#ifndef HAUL_PRIORITY_H
#define HAUL_PRIORITY_H

/* As many as there can be. */
#define CLASSES 64
/* Of the discipline. The first class is at one more. */
#define HANDLE 0x48610000

#endif
