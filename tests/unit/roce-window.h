/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For tests of memory windows: two connected QPs (2 at node a, 3 at node b),
 * and a window of node b that is not bound.
 *
 * wr_ids: 60 is an invalidation, 70 a bind, 80 an operation of node a.
 */
#ifndef ROCE_WINDOW_H
#define ROCE_WINDOW_H

#include "roce-link.h"

#define WINDOW_REGION 65536
#define WINDOW_ACCESS (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_MW_BIND)

typedef struct WindowFix {
    LinkPair p;
    LinkMr *mr;                     /* of node b; grants no remote access */
    uint32_t mwn;
    uint32_t rkey;                  /* the current key of the window */
} WindowFix;

WindowFix window_fix_of(RdmaQpType qp_type, RdmaMwType type);
/* Create the pair, with RC QPs and MTU 256. */
WindowFix window_fix(RdmaMwType type);
void window_fix_free(WindowFix *f);
/* Run until there is no frame and no timer. */
void window_run(WindowFix *f);
/* Create another window at @n; returns its key. */
uint32_t window_create(LinkNode *n, RdmaMwType type, uint32_t pdn);
/* The key that the next bind gives to the window */
uint32_t window_next_key(const WindowFix *f);
RdmaSendWr window_bind_wr(WindowFix *f, uint64_t off, uint64_t len,
                          uint32_t access);
void window_bind(WindowFix *f, uint64_t off, uint64_t len, uint32_t access);
/* Post a bind that must fail, which moves the QP to ERR. */
void window_refuse_bind(WindowFix *f, const RdmaSendWr *wr);
/* Post a LOCAL_INV or SEND_WITH_INV, which may succeed or fail. */
void window_inv(WindowFix *f, LinkNode *n, uint32_t qpn, uint32_t opcode,
                uint32_t key);
/* Post an operation of node a on @len bytes at @addr, from its offset 0 on. */
void window_post(WindowFix *f, uint32_t opcode, uint32_t rkey, uint64_t addr,
                 uint32_t len);
void window_op(WindowFix *f, uint32_t opcode, uint32_t rkey, uint64_t addr,
               uint32_t len, RdmaWcStatus status);
/* WRITE one byte, which must succeed if @ok. */
void window_try(WindowFix *f, uint32_t rkey, uint64_t addr, bool ok);
/* Connect both QPs again, after an error. */
void window_reconnect(WindowFix *f);
/* Connect another pair of QPs (4 and 5) in the same PD. */
void window_connect_others(WindowFix *f);

#endif /* ROCE_WINDOW_H */
