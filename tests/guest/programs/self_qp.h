/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs that are connected to themselves, for programs that have many of
 * them. An error ends the program, with the reason.
 */
#ifndef TESTS_GUEST_SELF_QP_H
#define TESTS_GUEST_SELF_QP_H

#include <infiniband/verbs.h>

#define SELF_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

void __attribute__((noreturn, format(printf, 1, 2)))
fail(const char *fmt, ...);
/* Seconds of a clock that never goes back */
double seconds(void);
/*
 * Open the device with this name, for queue pairs with this entry of its GIDs.
 */
struct ibv_context *self_open(const char *name, int gid_index);
/* From RESET to RTS. */
void self_connect(struct ibv_qp *qp);
/* Poll for this many successful completions. */
void self_wait(struct ibv_cq *cq, unsigned n);

#endif
