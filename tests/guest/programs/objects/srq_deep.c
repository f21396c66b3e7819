/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared receive queues deeper than any virtqueue. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "objects.h"

/* QEMU's virtqueues have at most 1024 entries. */
#define DEEP 3000
#define SIZE 64
#define BATCH 60

/* A CQ with a virtqueue has 256 slots, and the virtqueue 1024 entries. */
#define MORE_THAN_SLOTS 600

/* Receive n uses piece n of the memory, and message n comes from there. */
struct deep {
    struct ibv_srq *srq;
    struct ibv_cq *acq, *bcq;
    struct ibv_qp *a, *b;
    struct memory in, out;
};

static struct deep new_deep(uint32_t max_wr)
{
    struct ibv_device_attr attr;
    struct ibv_srq_init_attr_ex init = {
        .attr = { .max_wr = max_wr, .max_sge = 1 },
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
        .srq_type = IBV_SRQT_BASIC,
        .pd = dev.pd,
    };
    struct deep d = { .acq = new_cq(128), .bcq = new_cq(max_wr) };

    if (ibv_query_device(dev.ctx, &attr) ||
        (uint32_t)attr.max_srq_wr < max_wr) {
        fail("max_srq_wr is %d", attr.max_srq_wr);
    }
    d.srq = ibv_create_srq_ex(dev.ctx, &init);
    if (!d.srq || init.attr.max_wr != max_wr) {
        fail("ibv_create_srq_ex: %s", strerror(errno));
    }
    d.a = new_qp(IBV_QPT_RC, d.acq, NULL, 0);
    d.b = new_qp(IBV_QPT_RC, d.bcq, d.srq, 0);
    connect_rc(d.a, d.b);
    d.in = new_memory(max_wr * SIZE, IBV_ACCESS_LOCAL_WRITE);
    d.out = new_memory(max_wr * SIZE, 0);
    return d;
}

static void free_deep(struct deep *d)
{
    if (ibv_destroy_qp(d->a) || ibv_destroy_qp(d->b) ||
        ibv_destroy_cq(d->acq) || ibv_destroy_cq(d->bcq) ||
        ibv_destroy_srq(d->srq)) {
        fail("cannot destroy the queues");
    }
    free_memory(&d->in);
    free_memory(&d->out);
}

static struct ibv_sge piece(struct memory *m, int n)
{
    return (struct ibv_sge) {
        .addr = (uintptr_t)m->at + n * SIZE,
        .length = SIZE,
        .lkey = m->mr->lkey,
    };
}

static int put(struct deep *d, int n)
{
    struct ibv_sge sge = piece(&d->in, n);
    struct ibv_recv_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 };
    struct ibv_recv_wr *bad;

    return ibv_post_srq_recv(d->srq, &wr, &bad);
}

static void put_each(struct deep *d, int first, int end)
{
    int n, ret;

    for (n = first; n < end; n++) {
        ret = put(d, n);
        if (ret) {
            fail("receive %d: %s", n, strerror(ret));
        }
    }
}

/* post all in one call */
static void put_list(struct deep *d)
{
    struct ibv_sge *sges = calloc(DEEP, sizeof(*sges));
    struct ibv_recv_wr *wrs = calloc(DEEP, sizeof(*wrs)), *bad;
    int n, ret;

    if (!sges || !wrs) {
        fail("out of memory");
    }
    for (n = 0; n < DEEP; n++) {
        sges[n] = piece(&d->in, n);
        wrs[n].wr_id = n;
        wrs[n].sg_list = &sges[n];
        wrs[n].num_sge = 1;
        wrs[n].next = n + 1 < DEEP ? &wrs[n + 1] : NULL;
    }
    ret = ibv_post_srq_recv(d->srq, wrs, &bad);
    if (ret) {
        fail("a list of receives: %s", strerror(ret));
    }
    free(sges);
    free(wrs);
}

/* Send messages from first on; their contents are not checked. */
static void send_all(struct deep *d, int first, int end)
{
    struct ibv_sge sges[BATCH];
    struct ibv_send_wr wrs[BATCH];
    int n, i, count;

    for (n = first; n < end; n += count) {
        count = end - n < BATCH ? end - n : BATCH;
        for (i = 0; i < count; i++) {
            sges[i] = piece(&d->out, n + i);
            fill(d->out.at + (n + i) * SIZE, SIZE, n + i);
            wrs[i] = (struct ibv_send_wr) {
                .wr_id = n + i,
                .opcode = IBV_WR_SEND,
                .sg_list = &sges[i],
                .num_sge = 1,
                .next = i + 1 < count ? &wrs[i + 1] : NULL,
            };
        }
        post(d->a, wrs);
        for (i = 0; i < count; i++) {
            expect(d->acq, n + i);
        }
    }
}

/* Receives serve messages in the order in which they were posted. */
static void check(struct deep *d, int first, int end)
{
    int n;

    for (n = first; n < end; n++) {
        if (expect(d->bcq, n).byte_len != SIZE ||
            !filled(d->in.at + n * SIZE, SIZE, n)) {
            fail("message %d is damaged", n);
        }
    }
    expect_none(d->bcq);
}

static void serve(void (*put_all)(struct deep *))
{
    struct deep d = new_deep(DEEP);
    int round;

    for (round = 0; round < 2; round++) {
        memset(d.in.at, 0, DEEP * SIZE);
        put_all(&d);
        must_fail("a receive too many", put(&d, 0), ENOMEM);
        send_all(&d, 0, DEEP);
        must_fail("before a completion is polled", put(&d, 0), ENOMEM);
        check(&d, 0, DEEP);
    }
    free_deep(&d);
}

static void put_one_by_one(struct deep *d)
{
    put_each(d, 0, DEEP);
}

void srq_deep(char **args)
{
    (void)args;
    serve(put_one_by_one);
}

void srq_deep_list(char **args)
{
    (void)args;
    serve(put_list);
}

/* All posted WQEs count for the limit, wherever they wait. */
void srq_deep_limit(char **args)
{
    struct deep d = new_deep(DEEP);
    struct ibv_srq_attr attr = { .srq_limit = DEEP };

    (void)args;
    put_list(&d);
    must_fail("a limit", ibv_modify_srq(d.srq, &attr, IBV_SRQ_LIMIT), 0);
    if (ibv_query_srq(d.srq, &attr) || attr.max_wr != DEEP ||
        attr.srq_limit != DEEP) {
        fail("a full SRQ of %u with limit %u", attr.max_wr, attr.srq_limit);
    }
    send_all(&d, 0, 1);
    expect_event(IBV_EVENT_SRQ_LIMIT_REACHED, d.srq);
    attr.srq_limit = 100;
    must_fail("a limit", ibv_modify_srq(d.srq, &attr, IBV_SRQ_LIMIT), 0);
    send_all(&d, 1, DEEP - 100);
    if (ibv_query_srq(d.srq, &attr) || attr.srq_limit != 100) {
        fail("the limit was reached with 100 left");
    }
    send_all(&d, DEEP - 100, DEEP - 99);
    expect_event(IBV_EVENT_SRQ_LIMIT_REACHED, d.srq);
    send_all(&d, DEEP - 99, DEEP);
    check(&d, 0, DEEP);
    free_deep(&d);
}

/*
 * The end of a queue pair returns to the SRQ what its completions hold, more
 * than the CQ has slots.
 */
static void lose_qp(bool destroy)
{
    struct deep d = new_deep(MORE_THAN_SLOTS);

    put_each(&d, 0, MORE_THAN_SLOTS);
    send_all(&d, 0, MORE_THAN_SLOTS);
    if (destroy) {
        if (ibv_destroy_qp(d.b)) {
            fail("ibv_destroy_qp failed");
        }
        d.b = new_qp(IBV_QPT_RC, d.bcq, d.srq, 0);
    }
    connect_rc(d.a, d.b);
    expect_none(d.bcq);
    put_each(&d, 0, MORE_THAN_SLOTS);
    must_fail("a receive too many", put(&d, 0), ENOMEM);
    send_all(&d, 0, MORE_THAN_SLOTS);
    check(&d, 0, MORE_THAN_SLOTS);
    free_deep(&d);
}

void srq_deep_destroy_qp(char **args)
{
    (void)args;
    lose_qp(true);
}

void srq_deep_reset_qp(char **args)
{
    (void)args;
    lose_qp(false);
}
