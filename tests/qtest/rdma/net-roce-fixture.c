/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-net-roce devices on one hub, see net-roce-test.h.
 */
#include "qemu/osdep.h"
#include "net-roce-test.h"

/* Virtual time between two polls of a CQ: more than the RNR timer of a QP */
#define STEP_NS (10 * 1000 * 1000)

char *nr_host_args(const char *props)
{
    return g_strdup_printf(
        "-netdev hubport,id=n0,hubid=0 -netdev hubport,id=n1,hubid=0 "
        "-device virtio-net-roce-pci,netdev=n0,addr=4,id=d0,"
        "mac=52:54:00:12:34:01," NR_PROPS "%s "
        "-device virtio-net-roce-pci,netdev=n1,addr=5,id=d1,"
        "mac=52:54:00:12:34:02," NR_PROPS, props);
}

QRdmaHost *nr_host_start(const char *extra)
{
    g_autofree char *args = nr_host_args("");

    return qrdma_host_start("%s %s", args, extra);
}

QRoce *nr_start(QRdmaHost *host, int slot)
{
    QRoce *d = qroce_open(host, slot);
    uint8_t gid[RDMA_GID_LEN];

    qroce_start(d, QROCE_FEATURES, true);
    qrdma_ipv4_gid(gid, d->config.mac[RDMA_MAC_LEN - 1]);
    assert_ack(qroce_add_gid(d, 0, gid));
    return d;
}

QRoce *nr_alone(void)
{
    return nr_start(nr_host_start(""), 4);
}

void nr_alone_stop(QRoce *d)
{
    QRdmaHost *host = d->host;

    qroce_close(d);
    qrdma_host_stop(host);
}

NrEnd nr_end_new(QRoce *dev, RdmaQpType type)
{
    NrEnd e = { .dev = dev, .type = type };

    e.pdn = qroce_create_pd(dev);
    e.scq = qroce_create_cq(dev, 32);
    e.rcq = qroce_create_cq(dev, 32);
    e.mr = qroce_reg_mr(dev, e.pdn, NR_MR_START, NR_MR_PAGES, NET_ROCE_ACCESS);
    nr_new_qp(&e);
    return e;
}

void nr_new_qp(NrEnd *e)
{
    e->qp = qroce_create_qp(e->dev, e->pdn, &e->scq, &e->rcq, e->type);
}

NrPeer nr_peer(const NrEnd *e)
{
    NrPeer peer = { .qpn = e->qp.qpn };

    memcpy(peer.mac, e->dev->config.mac, sizeof(peer.mac));
    qrdma_ipv4_gid(peer.gid, peer.mac[RDMA_MAC_LEN - 1]);
    return peer;
}

NetRoceAv nr_av(const NrPeer *peer)
{
    NetRoceAv av = { .hop_limit = 64 };

    memcpy(av.dgid, peer->gid, sizeof(av.dgid));
    memcpy(av.dmac, peer->mac, sizeof(av.dmac));
    return av;
}

static void modify(NrEnd *e, uint32_t mask, const NetRoceModifyQp *attr)
{
    assert_ack(qroce_modify_qp(e->dev, e->qp.qpn, mask, attr));
}

void nr_modify_state(NrEnd *e, RdmaQpState state)
{
    modify(e, NET_ROCE_QP_STATE, &(NetRoceModifyQp) { .qp_state = state });
}

void nr_end_init(NrEnd *e)
{
    modify(e, NET_ROCE_QP_STATE | NET_ROCE_QP_ACCESS,
           &(NetRoceModifyQp) {
               .qp_state = RDMA_QPS_INIT,
               .qp_access_flags = NET_ROCE_ACCESS,
               /* The driver of the authors fills in what is not in the mask. */
               .path_mtu = 77,
               .qkey = 0xffffffff,
               .dest_qp_num = 0xffffffff,
           });
}

void nr_end_connect(NrEnd *e, const NrPeer *peer)
{
    NetRoceModifyQp attr = {
        .qp_state = RDMA_QPS_RTR,
        .path_mtu = RDMA_MTU_1024,
        .dest_qp_num = peer->qpn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12,
        .av = nr_av(peer),
    };

    modify(e, NET_ROCE_QP_STATE | NET_ROCE_QP_AV | NET_ROCE_QP_PATH_MTU |
           NET_ROCE_QP_DEST_QPN | NET_ROCE_QP_RQ_PSN |
           NET_ROCE_QP_MAX_DEST_RD_ATOMIC | NET_ROCE_QP_MIN_RNR_TIMER, &attr);
    modify(e, NET_ROCE_QP_STATE | NET_ROCE_QP_TIMEOUT | NET_ROCE_QP_RETRY_CNT |
           NET_ROCE_QP_RNR_RETRY | NET_ROCE_QP_SQ_PSN |
           NET_ROCE_QP_MAX_RD_ATOMIC,
           &(NetRoceModifyQp) {
               .qp_state = RDMA_QPS_RTS,
               .timeout = 14,
               .retry_cnt = 7,
               .rnr_retry = 7,
               .max_rd_atomic = 4,
           });
}

void nr_end_start_ud(NrEnd *e, uint32_t qkey)
{
    modify(e, NET_ROCE_QP_STATE | NET_ROCE_QP_QKEY,
           &(NetRoceModifyQp) { .qp_state = RDMA_QPS_INIT, .qkey = qkey });
    modify(e, NET_ROCE_QP_STATE,
           &(NetRoceModifyQp) { .qp_state = RDMA_QPS_RTR });
    modify(e, NET_ROCE_QP_STATE | NET_ROCE_QP_SQ_PSN,
           &(NetRoceModifyQp) { .qp_state = RDMA_QPS_RTS });
}

void nr_connect(NrEnd *a, NrEnd *b)
{
    NrPeer of_a = nr_peer(a), of_b = nr_peer(b);

    nr_end_init(a);
    if (a != b) {
        nr_end_init(b);
        nr_end_connect(b, &of_a);
    }
    nr_end_connect(a, &of_b);
}

NrPair nr_pair_new(RdmaQpType type)
{
    NrPair p = { .host = nr_host_start("") };
    QRoce *a = nr_start(p.host, 4), *b = nr_start(p.host, 5);

    p.a = nr_end_new(a, type);
    p.b = nr_end_new(b, type);
    if (type == RDMA_QPT_RC) {
        nr_connect(&p.a, &p.b);
    } else {
        uint32_t qkey = type == RDMA_QPT_GSI ? RDMA_GSI_QKEY : NR_QKEY;

        nr_end_start_ud(&p.a, qkey);
        nr_end_start_ud(&p.b, qkey);
    }
    return p;
}

void nr_pair_free(NrPair *p)
{
    qroce_close(p->a.dev);
    qroce_close(p->b.dev);
    qrdma_host_stop(p->host);
}

NetRoceSge nr_sge(const NrEnd *e, uint64_t offset, uint32_t len)
{
    return (NetRoceSge) {
        .addr = e->mr.iova + offset,
        .length = len,
        .lkey = e->mr.nums.lkey,
    };
}

void nr_fill(const NrEnd *e, uint64_t offset, uint32_t len, uint8_t seed)
{
    g_autofree uint8_t *buf = g_malloc(len);

    for (uint32_t i = 0; i < len; i++) {
        buf[i] = seed + i;
    }
    qtest_memwrite(e->dev->host->qts, e->mr.mem + offset, buf, len);
}

void nr_assert_filled(const NrEnd *e, uint64_t offset, uint32_t len,
                      uint8_t seed)
{
    g_autofree uint8_t *buf = g_malloc(len);

    qtest_memread(e->dev->host->qts, e->mr.mem + offset, buf, len);
    for (uint32_t i = 0; i < len; i++) {
        g_assert_cmphex(buf[i], ==, (uint8_t)(seed + i));
    }
}

void nr_post(NrEnd *e, RdmaWrOpcode opcode, uint64_t wr_id, uint32_t len,
             const QRoceMr *mr)
{
    NetRoceSge sge = nr_sge(e, 0, len);
    NetRoceSendWqe wqe = {
        .wr_id = wr_id,
        .opcode = opcode,
        .send_flags = RDMA_SEND_SIGNALED,
        .n.num_sge = 1,
    };

    if (mr) {
        wqe.wr.rdma.remote_addr = mr->iova;
        wqe.wr.rdma.rkey = mr->nums.rkey;
    }
    qroce_post_send(e->dev, &e->qp, &wqe, &sge, 1);
}

void nr_recv(NrEnd *e, uint64_t wr_id, uint64_t offset, uint32_t len)
{
    NetRoceSge sge = nr_sge(e, offset, len);

    qroce_post_recv(e->dev, &e->qp, wr_id, &sge, 1);
}

NetRoceCqe nr_expect(NrEnd *e, QRoceCq *cq, uint64_t wr_id,
                     NetRoceWcStatus status)
{
    NetRoceCqe cqe = qroce_wait_cq(e->dev, cq);

    g_assert_cmpint(cqe.status, ==, status);
    g_assert_cmpint(cqe.wr_id, ==, wr_id);
    g_assert_cmpint(cqe.qp_num, ==, e->qp.qpn);
    return cqe;
}

NetRoceCqe nr_expect_wc(NrEnd *e, QRoceCq *cq, uint64_t wr_id,
                        NetRoceWcOpcode opcode)
{
    NetRoceCqe cqe = nr_expect(e, cq, wr_id, NET_ROCE_WC_SUCCESS);

    g_assert_cmpint(cqe.opcode, ==, opcode);
    return cqe;
}

void nr_expect_later(NrEnd *e, QRoceCq *cq, uint64_t wr_id,
                     NetRoceWcOpcode opcode)
{
    NetRoceCqe cqe;

    qrdma_wait_until(e->dev, qroce_poll_cq(e->dev, cq, &cqe) ||
                     (qtest_clock_step(e->dev->host->qts, STEP_NS), false));
    g_assert_cmpint(cqe.status, ==, NET_ROCE_WC_SUCCESS);
    g_assert_cmpint(cqe.wr_id, ==, wr_id);
    g_assert_cmpint(cqe.opcode, ==, opcode);
}

void nr_send_one(NrEnd *a, NrEnd *b, uint8_t seed)
{
    enum { LEN = 3000, AT = 4096 };

    nr_fill(a, 0, LEN, seed);
    nr_recv(b, 1000 + seed, AT, LEN);
    nr_post(a, RDMA_WR_SEND, seed, LEN, NULL);
    g_assert_cmpint(nr_expect_wc(b, &b->rcq, 1000 + seed,
                                 NET_ROCE_WC_RECV).byte_len, ==, LEN);
    nr_expect_wc(a, &a->scq, seed, NET_ROCE_WC_SEND);
    nr_assert_filled(b, AT, LEN, seed);
}

NetRoceSendWqe nr_ud_wqe(uint64_t wr_id, uint32_t qpn, uint32_t ah)
{
    return (NetRoceSendWqe) {
        .wr_id = wr_id,
        .opcode = RDMA_WR_SEND,
        .send_flags = RDMA_SEND_SIGNALED,
        .wr.ud.remote_qpn = qpn,
        .wr.ud.remote_qkey = NR_QKEY,
        .wr.ud.ah = ah,
        .n.num_sge = 1,
    };
}
