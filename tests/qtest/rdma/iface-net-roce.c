/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The operations of virtio-net-roce. */
#include "qemu/osdep.h"
#include "iface-test.h"
#include "net-roce-test.h"

static NrEnd *end_of(IfaceEnd *e)
{
    return e->impl;
}

/* What tests see of a region */
static IfaceMr view(const QRoceMr *mr)
{
    return (IfaceMr) { mr->iova, mr->length, mr->nums.lkey, mr->nums.rkey };
}

static void init_end(IfaceEnd *e, NrEnd *end)
{
    e->impl = end;
    e->host = end->dev->host;
    e->qpn = end->qp.qpn;
    e->mr = view(&end->mr);
}

static void open_pair(IfacePair *p, RdmaQpType type)
{
    NrPair *pair = g_new(NrPair, 1);

    *pair = nr_pair_new(type);
    p->impl = pair;
    init_end(&p->a, &pair->a);
    init_end(&p->b, &pair->b);
}

static void close_pair(IfacePair *p)
{
    nr_pair_free(p->impl);
    g_free(p->impl);
}

static void modify_state(IfaceEnd *e, RdmaQpState state)
{
    nr_modify_state(end_of(e), state);
}

static void reconnect(IfacePair *p)
{
    modify_state(&p->a, RDMA_QPS_RESET);
    modify_state(&p->b, RDMA_QPS_RESET);
    nr_connect(end_of(&p->a), end_of(&p->b));
}

static void put_sges(NetRoceSge *to, const RdmaSge *sge, uint32_t n)
{
    g_assert_cmpint(n, <=, QROCE_SGES);
    for (uint32_t i = 0; i < n; i++) {
        to[i] = (NetRoceSge) { sge[i].addr, sge[i].length, sge[i].lkey };
    }
}

/* The address handle has the path; its only user is this request. */
static uint32_t create_ah(NrEnd *end, const RdmaAv *av)
{
    NetRoceAv p = {
        .hop_limit = av->hop_limit,
        .sgid_index = av->sgid_index,
    };

    memcpy(p.dgid, av->dgid, sizeof(p.dgid));
    memcpy(p.dmac, av->dmac, sizeof(p.dmac));
    return qroce_create_ah(end->dev, end->pdn, &p);
}

static void post_send(IfaceEnd *e, const RdmaSendWr *wr)
{
    NrEnd *end = end_of(e);
    NetRoceSge sge[QROCE_SGES];
    NetRoceSendWqe wqe = {
        .wr_id = wr->wr_id,
        .opcode = wr->opcode,
        .send_flags = wr->send_flags,
        .n.num_sge = wr->num_sge,
    };

    put_sges(sge, wr->sg_list, wr->num_sge);
    memcpy(wqe.imm_data, wr->ex.imm_data, sizeof(wqe.imm_data));
    if (end->type == RDMA_QPT_UD) {
        wqe.wr.ud.remote_qpn = wr->wr.ud.remote_qpn;
        wqe.wr.ud.remote_qkey = wr->wr.ud.remote_qkey;
        wqe.wr.ud.ah = create_ah(end, &wr->wr.ud.av);
    } else {
        wqe.wr.rdma.remote_addr = wr->wr.rdma.remote_addr;
        wqe.wr.rdma.rkey = wr->wr.rdma.rkey;
    }
    qroce_post_send(end->dev, &end->qp, &wqe, sge, wr->num_sge);
}

static void post_recv(IfaceEnd *e, const RdmaRecvWr *wr)
{
    NetRoceSge sge[QROCE_SGES];

    put_sges(sge, wr->sg_list, wr->num_sge);
    qroce_post_recv(end_of(e)->dev, &end_of(e)->qp, wr->wr_id, sge,
                    wr->num_sge);
}

static RdmaWcStatus status_of(uint8_t status)
{
    static const RdmaWcStatus of[] = {
        [NET_ROCE_WC_SUCCESS] = RDMA_WC_SUCCESS,
        [NET_ROCE_WC_LOC_LEN_ERR] = RDMA_WC_LOC_LEN_ERR,
        [NET_ROCE_WC_LOC_QP_OP_ERR] = RDMA_WC_LOC_QP_OP_ERR,
        [NET_ROCE_WC_LOC_PROT_ERR] = RDMA_WC_LOC_PROT_ERR,
        [NET_ROCE_WC_WR_FLUSH_ERR] = RDMA_WC_WR_FLUSH_ERR,
        [NET_ROCE_WC_REM_INV_REQ_ERR] = RDMA_WC_REM_INV_REQ_ERR,
        [NET_ROCE_WC_REM_ACCESS_ERR] = RDMA_WC_REM_ACCESS_ERR,
    };

    g_assert_cmpint(status, <, ARRAY_SIZE(of));
    return of[status];
}

static bool poll(IfaceEnd *e, bool recv, RdmaWc *wc)
{
    static const RdmaWcOpcode opcodes[] = {
        [NET_ROCE_WC_SEND] = RDMA_WC_SEND,
        [NET_ROCE_WC_RDMA_WRITE] = RDMA_WC_RDMA_WRITE,
        [NET_ROCE_WC_RDMA_READ] = RDMA_WC_RDMA_READ,
        [NET_ROCE_WC_RECV] = RDMA_WC_RECV,
        [NET_ROCE_WC_RECV_RDMA_WITH_IMM] = RDMA_WC_RECV_RDMA_WITH_IMM,
    };
    NrEnd *end = end_of(e);
    NetRoceCqe cqe;

    if (!qroce_poll_cq(end->dev, recv ? &end->rcq : &end->scq, &cqe)) {
        return false;
    }
    g_assert_cmpint(cqe.opcode, <, ARRAY_SIZE(opcodes));
    *wc = (RdmaWc) {
        .wr_id = cqe.wr_id,
        .status = status_of(cqe.status),
        .opcode = opcodes[cqe.opcode],
        .byte_len = cqe.byte_len,
        .qp_num = cqe.qp_num,
        .src_qp = cqe.src_qp,
        .wc_flags = cqe.wc_flags,
    };
    memcpy(wc->ex.imm_data, cqe.imm_data, sizeof(wc->ex.imm_data));
    return true;
}

static RdmaQpState state(IfaceEnd *e)
{
    return qroce_query_qp(end_of(e)->dev, end_of(e)->qp.qpn).qp_state;
}

static uint32_t queued(IfaceEnd *e, bool recv)
{
    NrEnd *end = end_of(e);

    return qroce_in_device(end->dev, recv ? end->qp.rq : end->qp.sq);
}

static IfaceMr reg_mr(IfaceEnd *e, uint32_t access, bool other_pd)
{
    NrEnd *end = end_of(e);
    uint32_t pdn = other_pd ? qroce_create_pd(end->dev) : end->pdn;
    QRoceMr mr = qroce_reg_mr(end->dev, pdn, 0x8000, 1,
                              access & NET_ROCE_ACCESS);

    return view(&mr);
}

static void write_mr(IfaceEnd *e, uint64_t offset, const void *buf, size_t len)
{
    qtest_memwrite(e->host->qts, end_of(e)->mr.mem + offset, buf, len);
}

static void read_mr(IfaceEnd *e, uint64_t offset, void *buf, size_t len)
{
    qtest_memread(e->host->qts, end_of(e)->mr.mem + offset, buf, len);
}

static void address(IfaceEnd *e, IfaceEnd *to, RdmaSendWr *wr)
{
    NrPeer peer = nr_peer(end_of(to));
    RdmaAv *av = &wr->wr.ud.av;

    wr->wr.ud.remote_qpn = peer.qpn;
    wr->wr.ud.remote_qkey = NR_QKEY;
    av->hop_limit = 64;
    memcpy(av->dgid, peer.gid, sizeof(av->dgid));
    memcpy(av->dmac, peer.mac, sizeof(av->dmac));
}

const Iface iface_net_roce = {
    .no_atomics = true,
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
