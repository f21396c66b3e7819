/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The operations of pvrdma, as a process uses it. */
#include "qemu/osdep.h"
#include "iface-test.h"
#include "pvrdma-test.h"

#define PAGE 3                      /* of doorbells, and the context */

static PvEnd *end_of(IfaceEnd *e)
{
    return e->impl;
}

/* What tests see of a region */
static IfaceMr view(const QPvrdmaMr *mr)
{
    return (IfaceMr) {
        .iova = mr->addr,
        .length = mr->dir.npages * RDMA_PAGE_SIZE - mr->addr % RDMA_PAGE_SIZE,
        .lkey = mr->lkey,
        .rkey = mr->rkey,
    };
}

static void init_end(IfaceEnd *e, PvEnd *end)
{
    e->impl = end;
    e->host = end->dev->host;
    e->qpn = end->qp.handle;
    e->mr = view(&end->mr);
}

static void open_pair(IfacePair *p, RdmaQpType type)
{
    PvPair *pair = g_new(PvPair, 1);

    *pair = pv_pair_new(PAGE, type);
    p->impl = pair;
    init_end(&p->a, &pair->a);
    init_end(&p->b, &pair->b);
}

static void close_pair(IfacePair *p)
{
    pv_pair_free(p->impl);
    g_free(p->impl);
}

static void modify_state(IfaceEnd *e, RdmaQpState state)
{
    const PvrdmaQpAttr attr = { .qp_state = state };
    PvEnd *end = end_of(e);

    g_assert_cmpint(qpvrdma_modify_qp(end->dev, end->qp.handle, RDMA_QP_STATE,
                                      &attr), ==, 0);
}

/* The provider sets the indices to 0 after RESET. */
static void reset(IfaceEnd *e)
{
    PvEnd *end = end_of(e);

    modify_state(e, RDMA_QPS_RESET);
    qtest_memset(end->dev->host->qts, end->qp.sq.state, 0,
                 sizeof(PvrdmaStatePage));
    end->qp.sq.index = end->qp.rq.index = 0;
    pv_end_init(end);
}

static void reconnect(IfacePair *p)
{
    reset(&p->a);
    reset(&p->b);
    pv_end_connect(end_of(&p->a), end_of(&p->b));
    pv_end_connect(end_of(&p->b), end_of(&p->a));
}

static void put_sges(PvrdmaSge *to, const RdmaSge *sge, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        to[i] = (PvrdmaSge) { sge[i].addr, sge[i].length, sge[i].lkey };
    }
}

static void put_ud(PvrdmaSendWqe *wqe, const RdmaSendWr *wr)
{
    const RdmaAv *av = &wr->wr.ud.av;
    PvrdmaAv *p = &wqe->wr.ud.av;

    wqe->wr.ud.remote_qpn = wr->wr.ud.remote_qpn;
    wqe->wr.ud.remote_qkey = wr->wr.ud.remote_qkey;
    *p = (PvrdmaAv) {
        .port_pd = (uint32_t)av->port_num << 24,
        .tclass_flow = av->traffic_class << 20 | av->flow_label,
        .src_path_bits = 0x80,
        .gid_index = av->sgid_index,
        .hop_limit = av->hop_limit,
    };
    memcpy(p->dgid, av->dgid, sizeof(p->dgid));
    memcpy(p->dmac, av->dmac, sizeof(p->dmac));
}

static void put_connected(PvrdmaSendWqe *wqe, const RdmaSendWr *wr)
{
    if (wr->opcode == RDMA_WR_ATOMIC_CMP_AND_SWP ||
        wr->opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
        wqe->wr.atomic.remote_addr = wr->wr.atomic.remote_addr;
        wqe->wr.atomic.compare_add = wr->wr.atomic.compare_add;
        wqe->wr.atomic.swap = wr->wr.atomic.swap;
        wqe->wr.atomic.rkey = wr->wr.atomic.rkey;
    } else {
        wqe->wr.rdma.remote_addr = wr->wr.rdma.remote_addr;
        wqe->wr.rdma.rkey = wr->wr.rdma.rkey;
    }
}

static void post_send(IfaceEnd *e, const RdmaSendWr *wr)
{
    PvrdmaSendWqe wqe = {
        .wr_id = wr->wr_id,
        .num_sge = wr->num_sge,
        .opcode = wr->opcode,
        .send_flags = wr->send_flags,
    };
    PvEnd *end = end_of(e);
    PvrdmaSge sge[2];

    g_assert_cmpint(wr->num_sge, <=, ARRAY_SIZE(sge));
    put_sges(sge, wr->sg_list, wr->num_sge);
    memcpy(wqe.ex.imm_data, wr->ex.imm_data, sizeof(wqe.ex.imm_data));
    if (end->type == RDMA_QPT_UD) {
        put_ud(&wqe, wr);
    } else {
        put_connected(&wqe, wr);
    }
    qpvrdma_post_send(end->dev, &end->qp, &wqe, sge);
}

static void post_recv(IfaceEnd *e, const RdmaRecvWr *wr)
{
    PvEnd *end = end_of(e);
    PvrdmaSge sge;

    g_assert_cmpint(wr->num_sge, ==, 1);
    put_sges(&sge, wr->sg_list, 1);
    qpvrdma_post_recv(end->dev, &end->qp, wr->wr_id, &sge);
}

static bool poll(IfaceEnd *e, bool recv, RdmaWc *wc)
{
    PvEnd *end = end_of(e);
    PvrdmaCqe cqe;

    if (!qpvrdma_poll_cq(end->dev, recv ? &end->rcq : &end->scq, &cqe)) {
        return false;
    }
    *wc = (RdmaWc) {
        .wr_id = cqe.wr_id,
        .status = cqe.status,
        .opcode = cqe.opcode,
        .byte_len = cqe.byte_len,
        .qp_num = cqe.qp,
        .src_qp = cqe.src_qp,
        .wc_flags = cqe.wc_flags,
    };
    memcpy(wc->ex.imm_data, cqe.ex.imm_data, sizeof(wc->ex.imm_data));
    return true;
}

static RdmaQpState state(IfaceEnd *e)
{
    PvrdmaQpAttr attr;

    qpvrdma_query_qp(end_of(e)->dev, end_of(e)->qp.handle, &attr);
    return attr.qp_state;
}

static uint32_t queued(IfaceEnd *e, bool recv)
{
    PvEnd *end = end_of(e);
    QPvrdmaRing *ring = recv ? &end->qp.rq : &end->qp.sq;

    return (ring->index - qpvrdma_ring_head(end->dev, ring)) &
           (2 * ring->size - 1);
}

static IfaceMr reg_mr(IfaceEnd *e, uint32_t access, bool other_pd)
{
    PvEnd *end = end_of(e);
    uint32_t pd = other_pd ? qpvrdma_create_pd(end->dev, PAGE) : end->pd;
    QPvrdmaMr mr = qpvrdma_reg_mr(end->dev, pd, 0x8000, 1, access);

    return view(&mr);
}

static uint64_t address_of(PvEnd *end, uint64_t offset)
{
    return end->mr.dir.mem + end->mr.addr % RDMA_PAGE_SIZE + offset;
}

static void write_mr(IfaceEnd *e, uint64_t offset, const void *buf, size_t len)
{
    qtest_memwrite(end_of(e)->dev->host->qts, address_of(end_of(e), offset),
                   buf, len);
}

static void read_mr(IfaceEnd *e, uint64_t offset, void *buf, size_t len)
{
    qtest_memread(end_of(e)->dev->host->qts, address_of(end_of(e), offset),
                  buf, len);
}

static void address(IfaceEnd *e, IfaceEnd *to, RdmaSendWr *wr)
{
    PvrdmaSendWqe wqe = {};
    RdmaAv *av = &wr->wr.ud.av;

    pv_ud_address(&wqe, end_of(e), end_of(to), PV_QKEY);
    wr->wr.ud.remote_qpn = wqe.wr.ud.remote_qpn;
    wr->wr.ud.remote_qkey = wqe.wr.ud.remote_qkey;
    av->port_num = 1;
    av->hop_limit = wqe.wr.ud.av.hop_limit;
    memcpy(av->dgid, wqe.wr.ud.av.dgid, sizeof(av->dgid));
    memcpy(av->dmac, wqe.wr.ud.av.dmac, sizeof(av->dmac));
}

const Iface iface_pvrdma = {
    .open = open_pair,
    .close = close_pair,
    .reconnect = reconnect,
    .post_send = post_send,
    .post_recv = post_recv,
    .poll = poll,
    .modify_state = modify_state,
    .state = state,
    .queued = queued,
    .reg_mr = reg_mr,
    .write = write_mr,
    .read = read_mr,
    .address = address,
};
