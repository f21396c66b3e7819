/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device, queue pairs that are connected to each other, and their
 * completions
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "objects.h"

#define TIMEOUT_MS 20000
#define DEPTH 64

struct device dev;

void fail(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    exit(1);
}

void must_fail(const char *what, int got, int expected)
{
    if (got != expected) {
        fail("%s: got %d (%s), not %d (%s)", what, got, strerror(got),
             expected, strerror(expected));
    }
}

double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

void open_device(const char *name, int gid_index)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    int i;

    for (i = 0; list && list[i]; i++) {
        if (!strcmp(ibv_get_device_name(list[i]), name)) {
            dev.ctx = ibv_open_device(list[i]);
        }
    }
    if (!dev.ctx) {
        fail("cannot open %s", name);
    }
    ibv_free_device_list(list);
    dev.gid_index = gid_index;
    dev.pd = ibv_alloc_pd(dev.ctx);
    if (!dev.pd || ibv_query_gid(dev.ctx, 1, gid_index, &dev.gid)) {
        fail("no PD, or no GID %d", gid_index);
    }
}

struct memory new_memory(size_t size, int access)
{
    struct memory m = { .size = size };

    if (posix_memalign((void **)&m.at, 4096, size)) {
        fail("out of memory");
    }
    memset(m.at, 0, size);
    m.mr = ibv_reg_mr(dev.pd, m.at, size, access);
    if (!m.mr) {
        fail("ibv_reg_mr: %s", strerror(errno));
    }
    return m;
}

void free_memory(struct memory *m)
{
    int ret = ibv_dereg_mr(m->mr);

    if (ret) {
        fail("ibv_dereg_mr: %s", strerror(ret));
    }
    free(m->at);
}

void fill(void *at, size_t size, uint8_t seed)
{
    uint8_t *p = at;
    size_t i;

    for (i = 0; i < size; i++) {
        p[i] = (i * 7 + seed) ^ (i >> 8);
    }
}

bool filled(const void *at, size_t size, uint8_t seed)
{
    const uint8_t *p = at;
    size_t i;

    for (i = 0; i < size; i++) {
        if (p[i] != (uint8_t)((i * 7 + seed) ^ (i >> 8))) {
            return false;
        }
    }
    return true;
}

struct ibv_cq *new_cq(int depth)
{
    struct ibv_cq *cq = ibv_create_cq(dev.ctx, depth, NULL, NULL, 0);

    if (!cq) {
        fail("ibv_create_cq: %s", strerror(errno));
    }
    return cq;
}

struct ibv_qp *new_qp(enum ibv_qp_type type, struct ibv_cq *cq,
                      struct ibv_srq *srq, uint32_t create_flags)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = cq,
        .recv_cq = cq,
        .srq = srq,
        .cap = {
            .max_send_wr = DEPTH,
            .max_recv_wr = DEPTH,
            .max_send_sge = 1,
            .max_recv_sge = 1,
        },
        .qp_type = type,
        .sq_sig_all = 1,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
        .pd = dev.pd,
        .create_flags = create_flags,
    };
    struct ibv_qp *qp = ibv_create_qp_ex(dev.ctx, &init);

    if (!qp) {
        fail("ibv_create_qp_ex: %s", strerror(errno));
    }
    return qp;
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int ret = ibv_modify_qp(qp, attr, mask);

    if (ret) {
        fail("ibv_modify_qp to state %d: %s", attr->qp_state, strerror(ret));
    }
}

void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state };

    modify(qp, &attr, IBV_QP_STATE);
}

struct ibv_qp_attr path_to(const struct ibv_qp *peer, enum ibv_qp_state state)
{
    return (struct ibv_qp_attr) {
        .qp_state = state,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer->qp_num,
        .rq_psn = 0x123,
        .sq_psn = 0x123,
        .max_dest_rd_atomic = 1,
        .max_rd_atomic = 1,
        .min_rnr_timer = 12,
        .timeout = 17,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = {
            .is_global = 1,
            .port_num = 1,
            .grh = {
                .dgid = dev.gid,
                .sgid_index = dev.gid_index,
                .hop_limit = 64,
            },
        },
    };
}

static void ready(struct ibv_qp *qp, struct ibv_qp *peer)
{
    struct ibv_qp_attr attr = path_to(peer, IBV_QPS_RTR);

    modify(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
           IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
           IBV_QP_MIN_RNR_TIMER);
    attr.qp_state = IBV_QPS_RTS;
    modify(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
           IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void connect_rc(struct ibv_qp *a, struct ibv_qp *b)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
    };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
               IBV_QP_ACCESS_FLAGS;

    to_state(a, IBV_QPS_RESET);
    to_state(b, IBV_QPS_RESET);
    modify(a, &attr, mask);
    modify(b, &attr, mask);
    ready(a, b);
    ready(b, a);
}

void start_ud(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qkey = QKEY,
    };

    modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
           IBV_QP_QKEY);
    to_state(qp, IBV_QPS_RTR);
    attr.qp_state = IBV_QPS_RTS;
    modify(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

struct pair new_pair(struct ibv_srq *srq)
{
    struct pair p = { .acq = new_cq(DEPTH * 2), .bcq = new_cq(DEPTH * 2) };

    p.a = new_qp(IBV_QPT_RC, p.acq, NULL, 0);
    p.b = new_qp(IBV_QPT_RC, p.bcq, srq, 0);
    connect_rc(p.a, p.b);
    return p;
}

/* After an error, drop the remaining completions. */
void reconnect(struct pair *p)
{
    struct ibv_wc wc;

    connect_rc(p->a, p->b);
    while (next_wc(p->acq, &wc, 0) || next_wc(p->bcq, &wc, 0)) {
        fail("wr_id 0x%lx came through a reset", (long)wc.wr_id);
    }
}

void free_pair(struct pair *p)
{
    if (ibv_destroy_qp(p->a) || ibv_destroy_qp(p->b) ||
        ibv_destroy_cq(p->acq) || ibv_destroy_cq(p->bcq)) {
        fail("cannot destroy the queue pairs");
    }
}

void post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    int ret = ibv_post_send(qp, wr, &bad);

    if (ret) {
        fail("ibv_post_send: %s", strerror(ret));
    }
}

void post_recv(struct ibv_qp *qp, struct memory *m, uint64_t wr_id)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)m->at, .length = m->size, .lkey = m->mr->lkey,
    };
    struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
    struct ibv_recv_wr *bad;
    int ret = ibv_post_recv(qp, &wr, &bad);

    if (ret) {
        fail("ibv_post_recv: %s", strerror(ret));
    }
}

enum ibv_wc_status rdma(struct pair *p, enum ibv_wr_opcode opcode,
                        struct memory *m, size_t len, uint64_t addr,
                        uint32_t rkey)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)m->at, .length = len, .lkey = m->mr->lkey,
    };
    struct ibv_send_wr wr = {
        .wr_id = 0x99,
        .opcode = opcode,
        .sg_list = &sge,
        .num_sge = 1,
        .wr.rdma = { .remote_addr = addr, .rkey = rkey },
    };
    struct ibv_wc wc;

    post(p->a, &wr);
    if (!next_wc(p->acq, &wc, TIMEOUT_MS) || wc.wr_id != 0x99) {
        fail("no end of an RDMA operation");
    }
    return wc.status;
}

void must_end(enum ibv_wc_status got, enum ibv_wc_status expected,
              const char *what)
{
    if (got != expected) {
        fail("%s: ended with %s, not %s", what, ibv_wc_status_str(got),
             ibv_wc_status_str(expected));
    }
}

bool next_wc(struct ibv_cq *cq, struct ibv_wc *wc, int timeout_ms)
{
    double end = now() + timeout_ms / 1e3;
    int n;

    do {
        n = ibv_poll_cq(cq, 1, wc);
        if (n < 0) {
            fail("ibv_poll_cq: %d", n);
        }
    } while (!n && now() < end);
    return n;
}

struct ibv_wc expect(struct ibv_cq *cq, uint64_t wr_id)
{
    struct ibv_wc wc;

    if (!next_wc(cq, &wc, TIMEOUT_MS)) {
        fail("no completion of wr_id 0x%lx", (long)wr_id);
    }
    if (wc.wr_id != wr_id || wc.status != IBV_WC_SUCCESS) {
        fail("completion of wr_id 0x%lx (%s), not 0x%lx", (long)wc.wr_id,
             ibv_wc_status_str(wc.status), (long)wr_id);
    }
    return wc;
}

void expect_none(struct ibv_cq *cq)
{
    struct ibv_wc wc;

    if (next_wc(cq, &wc, 200)) {
        fail("unexpected completion of wr_id 0x%lx (%s)", (long)wc.wr_id,
             ibv_wc_status_str(wc.status));
    }
}

void expect_event(enum ibv_event_type type, const void *object)
{
    struct pollfd fd = { .fd = dev.ctx->async_fd, .events = POLLIN };
    struct ibv_async_event event;

    if (poll(&fd, 1, TIMEOUT_MS) != 1 ||
        ibv_get_async_event(dev.ctx, &event)) {
        fail("no event %s", ibv_event_type_str(type));
    }
    if (event.event_type != type || event.element.srq != object) {
        fail("event %s, not %s, or of another object",
             ibv_event_type_str(event.event_type), ibv_event_type_str(type));
    }
    ibv_ack_async_event(&event);
}
