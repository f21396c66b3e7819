/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared receive queues. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "objects.h"

#define WRS 16
#define ROOM 2048
#define GRH_BYTES 40

/* An SRQ with a buffer for each of its work requests */
struct shared {
    struct ibv_srq *srq;
    struct memory in, out;
};

static struct shared new_shared(void)
{
    struct ibv_srq_init_attr init = {
        .attr = { .max_wr = WRS, .max_sge = 2 },
    };
    struct shared s;

    s.srq = ibv_create_srq(dev.pd, &init);
    if (!s.srq) {
        fail("ibv_create_srq: %s", strerror(errno));
    }
    if (init.attr.max_wr != WRS || init.attr.max_sge < 2) {
        fail("an SRQ of %u and %u", init.attr.max_wr, init.attr.max_sge);
    }
    s.in = new_memory(WRS * ROOM, IBV_ACCESS_LOCAL_WRITE);
    s.out = new_memory(WRS * ROOM, 0);
    return s;
}

static void free_shared(struct shared *s)
{
    int ret = ibv_destroy_srq(s->srq);

    if (ret) {
        fail("ibv_destroy_srq: %s", strerror(ret));
    }
    free_memory(&s->in);
    free_memory(&s->out);
}

/* Post buffer n in two pieces, with wr_id n. */
static int put(struct shared *s, int n)
{
    struct ibv_sge sges[2] = {
        {
            .addr = (uintptr_t)s->in.at + n * ROOM,
            .length = 100,
            .lkey = s->in.mr->lkey,
        },
        {
            .addr = (uintptr_t)s->in.at + n * ROOM + 100,
            .length = ROOM - 100,
            .lkey = s->in.mr->lkey,
        },
    };
    struct ibv_recv_wr wr = { .wr_id = n, .sg_list = sges, .num_sge = 2 };
    struct ibv_recv_wr *bad = NULL;
    int ret = ibv_post_srq_recv(s->srq, &wr, &bad);

    if (ret && bad != &wr) {
        fail("the bad work request is not named");
    }
    return ret;
}

static void put_all(struct shared *s, int first, int end)
{
    int n, ret;

    for (n = first; n < end; n++) {
        ret = put(s, n);
        if (ret) {
            fail("receive %d: %s", n, strerror(ret));
        }
    }
}

/* Send message n, which has its number as contents. */
static void message(struct shared *s, struct ibv_qp *qp, int n)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)s->out.at + n * ROOM,
        .length = 1000 + n,
        .lkey = s->out.mr->lkey,
    };
    struct ibv_send_wr wr = {
        .wr_id = n,
        .opcode = IBV_WR_SEND_WITH_IMM,
        .sg_list = &sge,
        .num_sge = 1,
        .imm_data = htobe32(n),
    };

    fill(s->out.at + n * ROOM, 1000 + n, n);
    post(qp, &wr);
}

/* A message has arrived. Return its number, and require that it is complete. */
static int received(struct shared *s, struct ibv_cq *cq, struct ibv_qp *qp)
{
    struct ibv_wc wc;
    uint32_t n;

    if (!next_wc(cq, &wc, 20000)) {
        fail("no message");
    }
    n = be32toh(wc.imm_data);
    if (wc.status || wc.opcode != IBV_WC_RECV || wc.wr_id >= WRS ||
        n >= WRS || wc.qp_num != qp->qp_num || wc.byte_len != 1000 + n) {
        fail("a bad completion: wr_id 0x%lx, %s", (long)wc.wr_id,
             ibv_wc_status_str(wc.status));
    }
    if (!filled(s->in.at + wc.wr_id * ROOM, 1000 + n, n)) {
        fail("message %u is damaged", n);
    }
    return wc.wr_id;
}

static void exchange(struct shared *s, struct pair *p, int first, int end)
{
    bool seen[WRS] = { false };
    int n, at;

    for (n = first; n < end; n++) {
        message(s, p->a, n);
        expect(p->acq, n);
    }
    for (n = first; n < end; n++) {
        at = received(s, p->bcq, p->b);
        if (seen[at]) {
            fail("buffer %d served twice", at);
        }
        seen[at] = true;
    }
}

/* Each message takes one buffer, whichever queue pair it arrives at. */
void srq_shared(char **args)
{
    struct shared s = new_shared();
    struct pair p[2] = { new_pair(s.srq), new_pair(s.srq) };
    bool seen[WRS] = { false };
    int n, at, round;

    (void)args;
    for (round = 0; round < 5; round++) {
        memset(seen, 0, sizeof(seen));
        put_all(&s, 0, WRS);
        for (n = 0; n < WRS; n++) {
            message(&s, p[n % 2].a, n);
        }
        for (n = 0; n < WRS; n++) {
            expect(p[n % 2].acq, n);
            at = received(&s, p[n % 2].bcq, p[n % 2].b);
            if (seen[at]) {
                fail("buffer %d served twice", at);
            }
            seen[at] = true;
        }
    }
    free_pair(&p[0]);
    free_pair(&p[1]);
    free_shared(&s);
}

/* An SRQ holds max_wr work requests, until their completions are polled. */
void srq_full(char **args)
{
    struct shared s = new_shared();
    struct pair p = new_pair(s.srq);
    int at;

    (void)args;
    put_all(&s, 0, WRS);
    must_fail("a receive too many", put(&s, 0), ENOMEM);
    message(&s, p.a, 3);
    expect(p.acq, 3);
    must_fail("before the completion is polled", put(&s, 0), ENOMEM);
    at = received(&s, p.bcq, p.b);
    put_all(&s, at, at + 1);
    must_fail("a receive too many again", put(&s, at), ENOMEM);
    exchange(&s, &p, 0, WRS);
    free_pair(&p);
    free_shared(&s);
}

static void check_limit(struct shared *s, uint32_t limit)
{
    struct ibv_srq_attr attr;
    int ret = ibv_query_srq(s->srq, &attr);

    if (ret || attr.max_wr != WRS || attr.srq_limit != limit) {
        fail("ibv_query_srq: %d, size %u, limit %u", ret, attr.max_wr,
             attr.srq_limit);
    }
}

/* The limit event comes once, when fewer WQEs are left. */
void srq_limit(char **args)
{
    struct shared s = new_shared();
    struct pair p = new_pair(s.srq);
    struct ibv_srq_attr attr = { .srq_limit = 7 };
    int n;

    (void)args;
    put_all(&s, 0, 10);
    check_limit(&s, 0);
    must_fail("a limit", ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT), 0);
    check_limit(&s, 7);
    exchange(&s, &p, 0, 3);
    check_limit(&s, 7);
    exchange(&s, &p, 3, 4);
    expect_event(IBV_EVENT_SRQ_LIMIT_REACHED, s.srq);
    check_limit(&s, 0);
    exchange(&s, &p, 4, 10);
    attr.srq_limit = WRS + 1;
    must_fail("a limit above the size",
              ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    for (n = 0; n < 2; n++) {
        put_all(&s, 0, WRS);
        attr.srq_limit = WRS;
        must_fail("a limit",
                  ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT), 0);
        exchange(&s, &p, 0, WRS);
        expect_event(IBV_EVENT_SRQ_LIMIT_REACHED, s.srq);
    }
    free_pair(&p);
    free_shared(&s);
}

/*
 * The end of a queue pair drops its messages that were not polled, and returns
 * their buffers to the SRQ.
 */
static void lose_qp(bool destroy)
{
    struct shared s = new_shared();
    struct pair p = new_pair(s.srq);
    int n;

    put_all(&s, 0, WRS);
    for (n = 0; n < 5; n++) {
        message(&s, p.a, n);
        expect(p.acq, n);
    }
    if (destroy) {
        if (ibv_destroy_qp(p.b)) {
            fail("ibv_destroy_qp failed");
        }
        p.b = new_qp(IBV_QPT_RC, p.bcq, s.srq, 0);
    }
    connect_rc(p.a, p.b);
    expect_none(p.bcq);
    put_all(&s, 0, 5);
    must_fail("a receive too many", put(&s, 0), ENOMEM);
    exchange(&s, &p, 0, WRS);
    free_pair(&p);
    free_shared(&s);
}

void srq_destroy_qp(char **args)
{
    (void)args;
    lose_qp(true);
}

void srq_reset_qp(char **args)
{
    (void)args;
    lose_qp(false);
}

/*
 * A queue pair in error reports that it takes no more WQEs, and leaves the
 * rest.
 */
void srq_last_wqe(char **args)
{
    struct shared s = new_shared();
    struct pair p = new_pair(s.srq), other = new_pair(s.srq);

    (void)args;
    put_all(&s, 0, WRS);
    to_state(p.b, IBV_QPS_ERR);
    expect_event(IBV_EVENT_QP_LAST_WQE_REACHED, p.b);
    expect_none(p.bcq);
    exchange(&s, &other, 0, WRS);
    free_pair(&p);
    free_pair(&other);
    free_shared(&s);
}

void srq_in_use(char **args)
{
    struct shared s = new_shared();
    struct pair p = new_pair(s.srq);

    (void)args;
    must_fail("destroying an SRQ in use", ibv_destroy_srq(s.srq), EBUSY);
    put_all(&s, 0, WRS);
    exchange(&s, &p, 0, WRS);
    free_pair(&p);
    free_shared(&s);
}

void srq_datagrams(char **args)
{
    struct shared s = new_shared();
    struct ibv_cq *acq = new_cq(WRS), *bcq = new_cq(WRS);
    struct ibv_qp *a = new_qp(IBV_QPT_UD, acq, NULL, 0);
    struct ibv_qp *b = new_qp(IBV_QPT_UD, bcq, s.srq, 0);
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = 1,
        .grh = {
            .dgid = dev.gid, .sgid_index = dev.gid_index, .hop_limit = 64,
        },
    };
    struct ibv_ah *ah = ibv_create_ah(dev.pd, &attr);
    struct ibv_sge sge = {
        .addr = (uintptr_t)s.out.at, .length = 512, .lkey = s.out.mr->lkey,
    };
    struct ibv_send_wr wr = {
        .wr_id = 1,
        .opcode = IBV_WR_SEND,
        .sg_list = &sge,
        .num_sge = 1,
        .wr.ud = { .ah = ah, .remote_qpn = b->qp_num, .remote_qkey = QKEY },
    };
    struct ibv_wc wc;

    (void)args;
    if (!ah) {
        fail("ibv_create_ah: %s", strerror(errno));
    }
    start_ud(a);
    start_ud(b);
    fill(s.out.at, 512, 9);
    put_all(&s, 4, 5);
    post(a, &wr);
    expect(acq, 1);
    wc = expect(bcq, 4);
    if (wc.byte_len != GRH_BYTES + 512 || !(wc.wc_flags & IBV_WC_GRH) ||
        !filled(s.in.at + 4 * ROOM + GRH_BYTES, 512, 9)) {
        fail("the datagram is damaged");
    }
    if (ibv_destroy_ah(ah) || ibv_destroy_qp(a) || ibv_destroy_qp(b) ||
        ibv_destroy_cq(acq) || ibv_destroy_cq(bcq)) {
        fail("cannot destroy the queue pairs");
    }
    free_shared(&s);
}
