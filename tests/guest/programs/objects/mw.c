/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory windows: b binds them, a writes and reads through them. */
#include <errno.h>
#include <string.h>
#include "objects.h"

#define REGION 65536
#define FROM 5000
#define LEN 20000

struct window {
    struct pair p;
    struct memory region;           /* of b; no remote rights */
    struct memory mine;             /* of a */
    struct ibv_mw *mw;
};

static struct window new_window(enum ibv_mw_type type)
{
    struct window w = {
        .p = new_pair(NULL),
        .region = new_memory(REGION, IBV_ACCESS_LOCAL_WRITE |
                             IBV_ACCESS_MW_BIND),
        .mine = new_memory(REGION, IBV_ACCESS_LOCAL_WRITE),
        .mw = ibv_alloc_mw(dev.pd, type),
    };

    if (!w.mw) {
        fail("ibv_alloc_mw: %s", strerror(errno));
    }
    return w;
}

static void free_window(struct window *w)
{
    if (w->mw && ibv_dealloc_mw(w->mw)) {
        fail("ibv_dealloc_mw failed");
    }
    free_pair(&w->p);
    free_memory(&w->region);
    free_memory(&w->mine);
}

static struct ibv_mw_bind_info part(struct window *w, size_t from, size_t len,
                                    int access)
{
    return (struct ibv_mw_bind_info) {
        .mr = w->region.mr,
        .addr = (uintptr_t)w->region.at + from,
        .length = len,
        .mw_access_flags = access,
    };
}

static void bind_1(struct window *w, size_t from, size_t len, int access)
{
    struct ibv_mw_bind bind = {
        .wr_id = 0x70,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = part(w, from, len, access),
    };
    int ret = ibv_bind_mw(w->p.b, w->mw, &bind);
    struct ibv_wc wc;

    if (ret) {
        fail("ibv_bind_mw: %s", strerror(ret));
    }
    wc = expect(w->p.bcq, 0x70);
    if (wc.opcode != IBV_WC_BIND_MW) {
        fail("the opcode of a bind is %d", wc.opcode);
    }
}

static void bind_2(struct window *w, uint32_t rkey)
{
    struct ibv_send_wr wr = {
        .wr_id = 0x71,
        .opcode = IBV_WR_BIND_MW,
        .bind_mw = {
            .mw = w->mw,
            .rkey = rkey,
            .bind_info = part(w, FROM, LEN, IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ),
        },
    };

    post(w->p.b, &wr);
    expect(w->p.bcq, 0x71);
}

static enum ibv_wc_status try(struct window *w, enum ibv_wr_opcode opcode,
                              uint32_t rkey, size_t from, size_t len)
{
    return rdma(&w->p, opcode, &w->mine, len,
                (uintptr_t)w->region.at + from, rkey);
}

/* The window grants its part of the region, and nothing beyond. */
static void check(struct window *w, uint32_t rkey, size_t from, uint8_t seed)
{
    uint8_t *at = w->region.at + from;

    fill(w->mine.at, LEN, seed);
    must_end(try(w, IBV_WR_RDMA_WRITE, rkey, from, LEN), IBV_WC_SUCCESS,
             "a write to the window");
    if (!filled(at, LEN, seed)) {
        fail("the write is damaged");
    }
    memset(w->mine.at, 0, LEN);
    must_end(try(w, IBV_WR_RDMA_READ, rkey, from, LEN), IBV_WC_SUCCESS,
             "a read of the window");
    if (!filled(w->mine.at, LEN, seed)) {
        fail("the read is damaged");
    }
    must_end(try(w, IBV_WR_RDMA_WRITE, rkey, from, LEN + 1),
             IBV_WC_REM_ACCESS_ERR, "a write beyond the end");
    reconnect(&w->p);
    must_end(try(w, IBV_WR_RDMA_READ, rkey, from - 1, 1),
             IBV_WC_REM_ACCESS_ERR, "a read before the beginning");
    reconnect(&w->p);
}

static void check_closed(struct window *w, uint32_t rkey)
{
    must_end(try(w, IBV_WR_RDMA_WRITE, rkey, FROM, 1),
             IBV_WC_REM_ACCESS_ERR, "a write to a closed window");
    reconnect(&w->p);
}

/* Binds move a window of type 1. A bind of length 0 unbinds it. */
void mw_type_1(char **args)
{
    struct window w = new_window(IBV_MW_TYPE_1);
    int both = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    uint32_t old;

    (void)args;
    check_closed(&w, w.mw->rkey);
    bind_1(&w, FROM, LEN, both);
    check(&w, w.mw->rkey, FROM, 1);
    old = w.mw->rkey;
    bind_1(&w, FROM + 30000, LEN, both);
    check_closed(&w, old);
    check(&w, w.mw->rkey, FROM + 30000, 2);
    bind_1(&w, FROM, LEN, IBV_ACCESS_REMOTE_READ);
    check_closed(&w, w.mw->rkey);
    must_end(try(&w, IBV_WR_RDMA_READ, w.mw->rkey, FROM, LEN),
             IBV_WC_SUCCESS, "a read");
    bind_1(&w, FROM, 0, 0);
    check_closed(&w, w.mw->rkey);
    free_window(&w);
}

static void invalidate(struct window *w, struct ibv_qp *qp,
                       enum ibv_wr_opcode opcode, uint32_t rkey)
{
    struct ibv_send_wr wr = {
        .wr_id = 0x72, .opcode = opcode, .invalidate_rkey = rkey,
    };
    struct ibv_wc wc;

    post(qp, &wr);
    expect(qp->send_cq, 0x72);
    if (opcode == IBV_WR_SEND_WITH_INV) {
        wc = expect(w->p.bcq, 0x73);
        if (!(wc.wc_flags & IBV_WC_WITH_INV) || wc.invalidated_rkey != rkey) {
            fail("the receiver does not hear of the key");
        }
    }
}

/*
 * The owner chooses the keys of a window of type 2. Either side invalidates it.
 */
void mw_type_2(char **args)
{
    struct window w = new_window(IBV_MW_TYPE_2);
    uint32_t rkey = w.mw->rkey;
    int i;

    (void)args;
    for (i = 0; i < 3; i++) {
        rkey = ibv_inc_rkey(rkey);
        bind_2(&w, rkey);
        check_closed(&w, rkey ^ 0x80);
        check(&w, rkey, FROM, i);
        invalidate(&w, w.p.b, IBV_WR_LOCAL_INV, rkey);
        check_closed(&w, rkey);

        rkey = ibv_inc_rkey(rkey);
        bind_2(&w, rkey);
        post_recv(w.p.b, &w.mine, 0x73);
        invalidate(&w, w.p.a, IBV_WR_SEND_WITH_INV, rkey);
        check_closed(&w, rkey);
    }
    free_window(&w);
}

/* A window of type 2 serves only the queue pair that bound it. */
void mw_belongs_to_qp(char **args)
{
    struct window w = new_window(IBV_MW_TYPE_2);
    struct pair other = new_pair(NULL);
    uint32_t rkey = ibv_inc_rkey(w.mw->rkey);

    (void)args;
    bind_2(&w, rkey);
    must_end(rdma(&other, IBV_WR_RDMA_WRITE, &w.mine, 10,
                  (uintptr_t)w.region.at + FROM, rkey),
             IBV_WC_REM_ACCESS_ERR, "a write through another queue pair");
    must_end(try(&w, IBV_WR_RDMA_WRITE, rkey, FROM, 10), IBV_WC_SUCCESS,
             "a write through the one");
    free_pair(&other);
    free_window(&w);
}

/* A region cannot be deregistered while a window is bound to it. */
void mw_holds_region(char **args)
{
    struct window w = new_window(IBV_MW_TYPE_1);

    (void)args;
    bind_1(&w, FROM, LEN, IBV_ACCESS_REMOTE_WRITE);
    must_fail("deregistering a region with a window",
              ibv_dereg_mr(w.region.mr), EBUSY);
    must_end(try(&w, IBV_WR_RDMA_WRITE, w.mw->rkey, FROM, 10),
             IBV_WC_SUCCESS, "a write afterwards");
    if (ibv_dealloc_mw(w.mw)) {
        fail("ibv_dealloc_mw failed");
    }
    w.mw = NULL;
    free_window(&w);
}
