/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks: windows, regions that change, SRQs, events and datagrams.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "migrate-walk.h"

#define ACCESS_BASE (NET_ACCESS_ALL | RDMA_ACCESS_MW_BIND)

/* Addresses of a side's memory by the other keys, far apart */
#define BASE_IOVA    0x100000000000ull
#define RENEWED_IOVA 0x200000000000ull
#define FAST_IOVA    0x300000000000ull

/* Datagrams of a round, receives for them, and the places of these */
#define UD_ROUND 3
#define UD_RECVS 16
#define UD_LEN 200
#define UD_GRH 40
#define UD_SLOT 256
#define UD_ID_RECV 0x10000

static uint32_t next_key(uint32_t key)
{
    return (key & ~0xffu) | ((key + 1) & 0xff);
}

/* A request for the side's memory at another address. */
static struct virtio_rdma_reg_user_mr_req
same_memory(QRdmaMr *mr, uint64_t iova, uint32_t access)
{
    return (struct virtio_rdma_reg_user_mr_req) {
        .pdn = cpu_to_le32(mr->pd->pdn),
        .access = cpu_to_le32(access),
        .start = cpu_to_le64(iova),
        .length = cpu_to_le64(mr->length),
        .virt_addr = cpu_to_le64(iova),
        .pages = cpu_to_le64(mr->table),
        .npages = cpu_to_le32(mr->npages),
    };
}

static uint64_t at_offset(QRdmaMr *mr, uint64_t base)
{
    return base + mr->iova % RDMA_PAGE_SIZE;
}

static QRdmaMr *reg_same(QRdmaMr *mr, uint64_t base, uint32_t access)
{
    QRdma *d = mr->pd->dev;
    QRdmaMr *same = qrdma_own(d, sizeof(*same));
    struct virtio_rdma_reg_user_mr_req req;
    struct virtio_rdma_mr_rsp rsp;

    *same = *mr;
    same->iova = at_offset(mr, base);
    req = same_memory(mr, same->iova, access);
    assert_ok(qrdma_reg_user_mr(d, &req, &rsp));
    same->mrn = le32_to_cpu(rsp.mrn);
    same->lkey = le32_to_cpu(rsp.lkey);
    same->rkey = le32_to_cpu(rsp.rkey);
    return same;
}

static void make_srq(Walk *t, Side *s)
{
    RdmaQpInitAttr init = {
        .qp_type = RDMA_QPT_RC,
        .has_srq = true,
        .cap = { .max_send_wr = 32, .max_send_sge = 4,
                 .max_inline_data = 128 },
    };

    s->srq = qrdma_create_srq(s->end->pd, 32, 1);
    init.srqn = s->srq->srqn;
    s->end->qp = qrdma_create_qp_attr(s->end->pd, s->end->scq, s->end->rcq,
                                      &init);
}

void walk_make_objects(Walk *t)
{
    for (int i = 0; i < 2; i++) {
        Side *s = &t->side[i];
        QRdmaPd *pd;
        QRdmaMr *mr;

        s->end = i ? &t->p.b : &t->p.a;
        pd = s->end->pd;
        mr = s->end->mr;
        s->base = reg_same(mr, BASE_IOVA, ACCESS_BASE);
        s->renewed = reg_same(mr, RENEWED_IOVA, NET_ACCESS_ALL);
        s->way[WAY_REGION] = (Way) { mr->iova, mr->rkey };
        s->way[WAY_RENEWED] = (Way) { s->renewed->iova, s->renewed->rkey };
        for (int j = 0; j < 2; j++) {
            assert_ok(qrdma_alloc_mw(pd, j ? RDMA_MW_TYPE_2 : RDMA_MW_TYPE_1,
                                     &s->window[j].mw));
            s->fast[j].mr = qrdma_alloc_mr(pd, NET_ACCESS_ALL, mr->npages);
        }
        s->ucq = qrdma_create_cq(pd->dev, 64);
        s->ud = qrdma_create_qp(pd, s->ucq, s->ucq, RDMA_QPT_UD);
        qrdma_start_ud(s->ud, QRDMA_QKEY);
        s->ud_data = g_ptr_array_new_with_free_func(
            (GDestroyNotify)g_bytes_unref);
    }
    make_srq(t, &t->side[1]);
}

void walk_free_objects(Walk *t)
{
    for (int i = 0; i < 2; i++) {
        g_ptr_array_unref(t->side[i].ud_data);
    }
}

/* New keys */

static void invalidate(Side *s, uint32_t key)
{
    RdmaSendWr wr = qrdma_invalidate_wr(0, key);

    wr.send_flags = 0;
    qrdma_post_send(s->end->qp, &wr);
}

void walk_post_bind(Side *s, RdmaSendWr wr)
{
    unsigned i = s->idle_window;
    QRdmaMw *mw = &s->window[i].mw;
    uint32_t key = next_key(mw->rkey);

    /* A window of type 2 must be invalidated before it is bound again. */
    if (i == 1 && s->window[i].bound) {
        invalidate(s, mw->rkey);
    }
    wr.opcode = RDMA_WR_BIND_MW;
    wr.num_sge = 0;
    wr.wr.bind.rkey = mw->rkey;
    wr.wr.bind.new_rkey = key;
    wr.wr.bind.lkey = s->base->lkey;
    wr.wr.bind.access = RDMA_ACCESS_REMOTE;
    wr.wr.bind.addr = s->base->iova;
    wr.wr.bind.length = NET_MR_SIZE;
    qrdma_post_send(s->end->qp, &wr);
    mw->rkey = key;
    s->window[i].bound = true;
    s->next[WAY_WINDOW] = (Way) { s->base->iova, key };
    s->idle_window = !i;
}

void walk_post_reg(Side *s, RdmaSendWr wr)
{
    unsigned i = s->idle_fast;
    QRdmaMr *fast = s->fast[i].mr;
    QRdmaMr *mr = s->end->mr;

    if (s->fast[i].valid) {
        invalidate(s, fast->rkey);
    }
    fast->rkey = next_key(fast->rkey);
    fast->iova = at_offset(mr, FAST_IOVA + ((uint64_t)fast->rkey << 32));
    wr.opcode = RDMA_WR_REG_MR;
    wr.num_sge = 0;
    wr.wr.reg.mrn = fast->mrn;
    wr.wr.reg.key = fast->rkey;
    wr.wr.reg.access = NET_ACCESS_ALL;
    wr.wr.reg.iova = fast->iova;
    wr.wr.reg.length = mr->length;
    wr.wr.reg.npages = mr->npages;
    qrdma_post_reg_pages(s->end->qp, &wr, mr->table);
    s->fast[i].valid = true;
    s->next[WAY_FAST] = (Way) { fast->iova, fast->rkey };
    s->idle_fast = !i;
}

void walk_renew(Side *s)
{
    QRdmaMr *mr = s->renewed;
    struct virtio_rdma_rereg_mr_req req = {
        .mrn = cpu_to_le32(mr->mrn),
        .flags = cpu_to_le32(VIRTIO_RDMA_REREG_TRANSLATION),
    };
    struct virtio_rdma_mr_rsp rsp;

    if (!s->renews) {
        return;
    }
    mr->iova += 1ull << 32;
    req.mr = same_memory(s->end->mr, mr->iova, NET_ACCESS_ALL);
    assert_ok(qrdma_call(mr->pd->dev, REREG_MR, &req, &rsp));
    mr->rkey = le32_to_cpu(rsp.rkey);
    s->next[WAY_RENEWED] = (Way) { mr->iova, mr->rkey };
}

/* Events */

void walk_arm_limit(Walk *t, int side, unsigned recvs)
{
    Side *s = &t->side[side];

    if (!recvs) {
        return;
    }
    s->event_buffer = g_rand_boolean(t->rng);
    if (s->event_buffer) {
        qrdma_add_event_buffers(s->end->dev, 1);
    }
    assert_ok(qrdma_modify_srq(s->srq, recvs));
    s->event_due = true;
}

static void check_events(Side *s)
{
    QRdma *d = s->end->dev;

    if (s->event_due) {
        if (!s->event_buffer) {
            qrdma_add_event_buffers(d, 1);
        }
        qrdma_expect_event(d, RDMA_EVENT_SRQ_LIMIT_REACHED, s->srq->srqn);
        s->event_due = false;
    }
}

void walk_end_objects(Walk *t)
{
    for (int i = 0; i < 2; i++) {
        Side *s = &t->side[i];

        check_events(s);
        for (WalkWay way = 0; way < WALK_WAYS; way++) {
            if (s->next[way].rkey) {
                s->way[way] = s->next[way];
                s->next[way].rkey = 0;
            }
        }
    }
}

/* Datagrams: some are lost and some come twice, but none is spoilt. */

void walk_post_datagrams(Walk *t, int side)
{
    Side *s = &t->side[side], *to = &t->side[!side];

    while (to->ud_recvs - to->ud_received < UD_RECVS) {
        RdmaSge sge = net_sge(to->end, DATAGRAMS + to->ud_recvs % UD_RECVS *
                                       UD_SLOT, UD_GRH + UD_LEN);

        qrdma_recv(to->ud, UD_ID_RECV + to->ud_recvs++, &sge);
    }
    for (int i = 0; i < UD_ROUND; i++) {
        uint32_t from = g_rand_int_range(t->rng, 0, RECV - UD_LEN);
        uint32_t len = g_rand_int_range(t->rng, 0, UD_LEN + 1);
        uint32_t number = s->ud_sent++;
        RdmaSge sge = net_sge(s->end, SRC + from, len);
        RdmaSendWr wr = qrdma_ud_wr(number, &sge, to->ud, 0);

        wr.opcode = RDMA_WR_SEND_WITH_IMM;
        memcpy(wr.ex.imm_data, &number, sizeof(number));
        qrdma_post_send(s->ud, &wr);
        g_ptr_array_add(s->ud_data,
                        g_bytes_new(t->model[side] + SRC + from, len));
    }
}

static void check_datagram(Side *s, Side *from, const RdmaWc *wc)
{
    uint32_t number, place = s->ud_received % UD_RECVS * UD_SLOT;
    uint8_t is[UD_LEN];
    const void *data;
    size_t len;

    g_assert_cmpuint(wc->wr_id, ==, UD_ID_RECV + s->ud_received);
    memcpy(&number, wc->ex.imm_data, sizeof(number));
    g_assert_cmpuint(number, <, from->ud_data->len);
    data = g_bytes_get_data(g_ptr_array_index(from->ud_data, number), &len);
    g_assert_cmpuint(wc->byte_len, ==, UD_GRH + len);
    qrdma_mr_read(s->end->mr, DATAGRAMS + place + UD_GRH, is, len);
    g_assert_cmpmem(is, len, data, len);
    s->ud_received++;
}

void walk_collect_datagrams(Walk *t, int side)
{
    Side *s = &t->side[side];
    RdmaWc wc;

    while (qrdma_poll_cq(s->ucq, &wc)) {
        g_assert_cmpint(wc.status, ==, RDMA_WC_SUCCESS);
        if (wc.opcode == RDMA_WC_RECV) {
            check_datagram(s, &t->side[!side], &wc);
        } else {
            g_assert_cmpuint(wc.wr_id, ==, s->ud_done);
            s->ud_done++;
        }
    }
}
