/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two pvrdma devices on one hub, see pvrdma-test.h.
 */
#include "qemu/osdep.h"
#include "pvrdma-test.h"

char *pv_host_args(const char *props)
{
    return g_strdup_printf(
        "-netdev hubport,id=n0,hubid=0 -netdev hubport,id=n1,hubid=0 "
        "-device vmxnet3,netdev=n0,addr=4.0,multifunction=on,"
        "mac=52:54:00:12:34:01 -device pvrdma,netdev=n0,addr=4.1,id=d0%s "
        "-device vmxnet3,netdev=n1,addr=5.0,multifunction=on,"
        "mac=52:54:00:12:34:02 -device pvrdma,netdev=n1,addr=5.1,id=d1",
        props);
}

QRdmaHost *pv_host_start(const char *extra)
{
    g_autofree char *args = pv_host_args("");

    return qrdma_host_start("%s %s", args, extra);
}

static unsigned host_of(const QPvrdma *dev)
{
    return dev->mac[RDMA_MAC_LEN - 1];
}

static bool is_port_active(QPvrdma *d)
{
    PvrdmaCmdQueryPort req = { .port = 1 };
    PvrdmaRspQueryPort rsp;

    assert_done(qpvrdma_call(d, QUERY_PORT, &req, &rsp));
    return rsp.state == RDMA_PORT_ACTIVE;
}

QPvrdma *pv_start(QRdmaHost *host, int slot)
{
    QPvrdma *d = qpvrdma_open(host, QPCI_DEVFN(slot, 1));
    uint8_t gid[RDMA_GID_LEN];

    qpvrdma_start(d);
    qrdma_ipv4_gid(gid, host_of(d));
    assert_done(qpvrdma_create_bind(d, 0, gid));
    qrdma_wait_until(d, is_port_active(d));
    return d;
}

QPvrdma *pv_alone(void)
{
    return pv_start(pv_host_start(""), 4);
}

QPvrdma *pv_alone_new(void)
{
    return qpvrdma_open(pv_host_start(""), QPCI_DEVFN(4, 1));
}

void pv_alone_stop(QPvrdma *d)
{
    QRdmaHost *host = d->host;

    qpvrdma_close(d);
    qrdma_host_stop(host);
}

PvEnd pv_end_new(QPvrdma *dev, uint32_t page, RdmaQpType type)
{
    PvEnd e = { .dev = dev, .type = type, .page = page };

    if (page) {
        qpvrdma_create_uc(dev, page);
    }
    e.pd = qpvrdma_create_pd(dev, page);
    e.scq = qpvrdma_create_cq(dev, page, 64);
    e.rcq = qpvrdma_create_cq(dev, page, 64);
    e.mr = qpvrdma_reg_mr(dev, e.pd, PV_MR_START, PV_MR_PAGES, PV_ACCESS);
    e.qp = qpvrdma_create_qp(dev, page, e.pd, &e.scq, &e.rcq, type);
    return e;
}

static void fill_path(const PvEnd *peer, PvrdmaAh *ah)
{
    *ah = (PvrdmaAh) {
        .hop_limit = 64,
        .ah_flags = 1,
        .port_num = 1,
    };
    qrdma_ipv4_gid(ah->dgid, host_of(peer->dev));
    memcpy(ah->dmac, peer->dev->mac, sizeof(ah->dmac));
}

static void modify(PvEnd *e, uint32_t mask, const PvrdmaQpAttr *attr)
{
    assert_done(qpvrdma_modify_qp(e->dev, e->qp.handle, mask, attr));
}

void pv_end_init(PvEnd *e)
{
    modify(e, RDMA_QP_STATE | RDMA_QP_PKEY_INDEX | RDMA_QP_PORT |
           RDMA_QP_ACCESS_FLAGS,
           &(PvrdmaQpAttr) {
               .qp_state = RDMA_QPS_INIT,
               .port_num = 1,
               .access = PV_ACCESS,
               .qkey = 0xffffffff, /* not in the mask */
           });
}

void pv_end_connect(PvEnd *e, const PvEnd *peer)
{
    PvrdmaQpAttr attr = {
        .qp_state = RDMA_QPS_RTR,
        .path_mtu = RDMA_MTU_1024,
        .dest_qp_num = peer->qp.qpn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12,
    };

    fill_path(peer, &attr.ah);
    modify(e, RDMA_QP_STATE | RDMA_QP_AV | RDMA_QP_PATH_MTU |
           RDMA_QP_DEST_QPN | RDMA_QP_RQ_PSN | RDMA_QP_MAX_DEST_RD_ATOMIC |
           RDMA_QP_MIN_RNR_TIMER, &attr);
    modify(e, RDMA_QP_STATE | RDMA_QP_TIMEOUT | RDMA_QP_RETRY_CNT |
           RDMA_QP_RNR_RETRY | RDMA_QP_SQ_PSN | RDMA_QP_MAX_QP_RD_ATOMIC,
           &(PvrdmaQpAttr) {
               .qp_state = RDMA_QPS_RTS,
               .timeout = 14,
               .retry_cnt = 7,
               .rnr_retry = 7,
               .max_rd_atomic = 4,
           });
}

void pv_connect(PvEnd *a, PvEnd *b)
{
    pv_end_init(a);
    pv_end_init(b);
    pv_end_connect(a, b);
    pv_end_connect(b, a);
}

bool pv_is_in_err(PvEnd *e)
{
    PvrdmaQpAttr attr;

    qpvrdma_query_qp(e->dev, e->qp.handle, &attr);
    return attr.qp_state == RDMA_QPS_ERR;
}

void pv_arm(PvEnd *e, const QPvrdmaCq *cq)
{
    qpvrdma_ring_doorbell(e->dev, e->page, PVRDMA_UAR_CQ,
                          cq->handle | PVRDMA_UAR_CQ_ARM);
}

static void start_ud(PvEnd *e, uint32_t qkey)
{
    modify(e, RDMA_QP_STATE | RDMA_QP_PKEY_INDEX | RDMA_QP_PORT | RDMA_QP_QKEY,
           &(PvrdmaQpAttr) {
               .qp_state = RDMA_QPS_INIT, .port_num = 1, .qkey = qkey,
           });
    modify(e, RDMA_QP_STATE, &(PvrdmaQpAttr) { .qp_state = RDMA_QPS_RTR });
    modify(e, RDMA_QP_STATE | RDMA_QP_SQ_PSN,
           &(PvrdmaQpAttr) { .qp_state = RDMA_QPS_RTS });
}

void pv_ud_address(PvrdmaSendWqe *wqe, const PvEnd *e, const PvEnd *peer,
                   uint32_t qkey)
{
    PvrdmaAv *av = &wqe->wr.ud.av;

    wqe->wr.ud.remote_qpn = peer->qp.qpn;
    wqe->wr.ud.remote_qkey = qkey;
    *av = (PvrdmaAv) {
        .port_pd = 1u << 24 | e->pd,
        .src_path_bits = 0x80,
        .hop_limit = 64,
    };
    qrdma_ipv4_gid(av->dgid, host_of(peer->dev));
    memcpy(av->dmac, peer->dev->mac, sizeof(av->dmac));
}

PvPair pv_pair_new(uint32_t page, RdmaQpType type)
{
    PvPair p = { .host = pv_host_start("") };
    QPvrdma *a = pv_start(p.host, 4), *b = pv_start(p.host, 5);

    p.a = pv_end_new(a, page, type);
    p.b = pv_end_new(b, page, type);
    if (type == RDMA_QPT_RC) {
        pv_connect(&p.a, &p.b);
    } else {
        uint32_t qkey = type == RDMA_QPT_GSI ? RDMA_GSI_QKEY : PV_QKEY;

        start_ud(&p.a, qkey);
        start_ud(&p.b, qkey);
    }
    return p;
}

void pv_pair_free(PvPair *p)
{
    qpvrdma_close(p->a.dev);
    qpvrdma_close(p->b.dev);
    qrdma_host_stop(p->host);
}

PvrdmaCmdCreateMr pv_long_region(PvEnd *e, uint64_t *table)
{
    QPvrdmaDir dir = qpvrdma_dir(e->dev, 512);
    QTestState *qts = e->dev->host->qts;

    *table = qtest_readq(qts, dir.dir);
    for (unsigned i = 1; i < 512; i++) {
        qtest_writeq(qts, dir.dir + 8 * i, *table);
    }
    return (PvrdmaCmdCreateMr) {
        .start = 1ull << 32,
        .length = (uint64_t)PVRDMA_MAX_PAGES * RDMA_PAGE_SIZE,
        .dir = dir.dir,
        .pd = e->pd,
        .access = PV_ACCESS,
        .nchunks = PVRDMA_MAX_PAGES,
    };
}

PvrdmaSge pv_sge(const PvEnd *e, uint64_t offset, uint32_t len)
{
    return (PvrdmaSge) {
        .addr = e->mr.addr + offset,
        .length = len,
        .lkey = e->mr.lkey,
    };
}

void pv_post(PvEnd *e, uint32_t opcode, uint64_t wr_id, uint32_t len,
             const QPvrdmaMr *mr)
{
    PvrdmaSge sge = pv_sge(e, 0, len);
    PvrdmaSendWqe wqe = {
        .wr_id = wr_id,
        .num_sge = 1,
        .opcode = opcode,
        .send_flags = RDMA_SEND_SIGNALED,
    };

    if (mr) {
        wqe.wr.rdma.remote_addr = mr->addr;
        wqe.wr.rdma.rkey = mr->rkey;
    }
    qpvrdma_post_send(e->dev, &e->qp, &wqe, &sge);
}

void pv_recv(PvEnd *e, uint64_t wr_id, uint64_t offset, uint32_t len)
{
    PvrdmaSge sge = pv_sge(e, offset, len);

    qpvrdma_post_recv(e->dev, &e->qp, wr_id, &sge);
}

void pv_expect_event(QPvrdma *d, RdmaEventType type, uint32_t info)
{
    PvrdmaEvent event;

    qrdma_wait_until(d, qpvrdma_ring_pop(d, &d->events, &event));
    g_assert_cmpint(event.type, ==, type);
    g_assert_cmpint(event.info, ==, info);
}

static uint64_t address(const PvEnd *e, uint64_t offset)
{
    return e->mr.dir.mem + e->mr.addr % RDMA_PAGE_SIZE + offset;
}

void pv_fill(const PvEnd *e, uint64_t offset, uint32_t len, uint8_t seed)
{
    g_autofree uint8_t *buf = g_malloc(len);

    for (uint32_t i = 0; i < len; i++) {
        buf[i] = seed + i;
    }
    qtest_memwrite(e->dev->host->qts, address(e, offset), buf, len);
}

void pv_assert_filled(const PvEnd *e, uint64_t offset, uint32_t len,
                      uint8_t seed)
{
    g_autofree uint8_t *buf = g_malloc(len);

    qtest_memread(e->dev->host->qts, address(e, offset), buf, len);
    for (uint32_t i = 0; i < len; i++) {
        g_assert_cmphex(buf[i], ==, (uint8_t)(seed + i));
    }
}

PvrdmaCqe pv_expect(PvEnd *e, QPvrdmaCq *cq, uint64_t wr_id, uint32_t status,
                    uint32_t opcode)
{
    PvrdmaCqe cqe = qpvrdma_wait_cq(e->dev, cq);

    g_assert_cmpint(cqe.status, ==, status);
    g_assert_cmpint(cqe.wr_id, ==, wr_id);
    g_assert_cmpint(cqe.qp, ==, e->qp.handle);
    if (status == RDMA_WC_SUCCESS) {
        g_assert_cmpint(cqe.opcode, ==, opcode);
    }
    return cqe;
}
