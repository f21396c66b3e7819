/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For tests of memory windows: two connected QPs (2 at node a, 3 at node b),
 * and at node b a window that is not bound.
 *
 * wr_ids: 60 invalidates, 70 binds, 80 is an operation of node a.
 */
#ifndef ROCE_WINDOW_H
#define ROCE_WINDOW_H

#include "roce-link.h"

#define WINDOW_REGION 65536
#define WINDOW_ACCESS (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_MW_BIND)

typedef struct WindowFix {
    LinkPair p;
    LinkMr *mr;                     /* of node b; no remote rights */
    uint32_t mwn;
    uint32_t rkey;                  /* of the window, as it is now */
} WindowFix;

WindowFix window_fix_of(RdmaQpType qp_type, RdmaMwType type);
/* With RC QPs, MTU 256. */
WindowFix window_fix(RdmaMwType type);
void window_fix_free(WindowFix *f);
/* Until nothing moves any more. */
void window_run(WindowFix *f);
/* Another window at @n; returns its key. */
uint32_t window_create(LinkNode *n, RdmaMwType type, uint32_t pdn);
/* The key that the next bind gives to the window. */
uint32_t window_next_key(const WindowFix *f);
RdmaSendWr window_bind_wr(WindowFix *f, uint64_t off, uint64_t len,
                          uint32_t access);
void window_bind(WindowFix *f, uint64_t off, uint64_t len, uint32_t access);
/* The bind fails, and with it the QP. */
void window_refuse_bind(WindowFix *f, const RdmaSendWr *wr);
/* LOCAL_INV or SEND_WITH_INV; whether it succeeds is to be seen. */
void window_inv(WindowFix *f, LinkNode *n, uint32_t qpn, uint32_t opcode,
                uint32_t key);
/* An operation of node a on @len bytes at @addr, from its offset 0. */
void window_post(WindowFix *f, uint32_t opcode, uint32_t rkey, uint64_t addr,
                 uint32_t len);
void window_op(WindowFix *f, uint32_t opcode, uint32_t rkey, uint64_t addr,
               uint32_t len, RdmaWcStatus status);
/* A write of one byte: is it let in? */
void window_try(WindowFix *f, uint32_t rkey, uint64_t addr, bool ok);
/* Both QPs anew, after an error. */
void window_reconnect(WindowFix *f);
/* Another pair of QPs (4 and 5) in the same PD. */
void window_connect_others(WindowFix *f);

#endif /* ROCE_WINDOW_H */
