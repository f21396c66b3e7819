/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma client for tests: connections and the data path.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "virtio-rdma.h"

RdmaAv qrdma_av(QRdma *to, uint8_t gid_index)
{
    RdmaAv av = {
        .sgid_index = gid_index,
        .hop_limit = 64,
        .traffic_class = 0x20,
        .port_num = 1,
        .ah_flags = 1,
        .flow_label = 0x12345,
    };

    /* Tests also name entries that no table has. */
    memcpy(av.dgid, to->gid[MIN(gid_index, ARRAY_SIZE(to->gid) - 1)],
           sizeof(av.dgid));
    memcpy(av.dmac, to->mac, sizeof(av.dmac));
    return av;
}

uint8_t qrdma_modify_init(QRdmaQp *qp, uint32_t access)
{
    RdmaQpAttr attr = {
        .qp_state = RDMA_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = access,
        .qkey = qp->type == RDMA_QPT_GSI ? RDMA_GSI_QKEY : QRDMA_QKEY,
    };
    uint32_t mask = RDMA_QP_STATE | RDMA_QP_PKEY_INDEX | RDMA_QP_PORT;

    if (qp->type == RDMA_QPT_RC || qp->type == RDMA_QPT_UC) {
        mask |= RDMA_QP_ACCESS_FLAGS;
    } else {
        mask |= RDMA_QP_QKEY;
    }
    return qrdma_modify_qp(qp, mask, &attr);
}

uint8_t qrdma_modify_rtr(QRdmaQp *qp, QRdmaQp *peer, const QRdmaPath *path,
                         uint32_t rq_psn)
{
    RdmaQpAttr attr = { .qp_state = RDMA_QPS_RTR };
    uint32_t mask = RDMA_QP_STATE;

    if (qp->type == RDMA_QPT_RC || qp->type == RDMA_QPT_UC) {
        attr.ah_attr = qrdma_av(peer->dev, path->gid_index);
        attr.path_mtu = path->mtu;
        attr.dest_qp_num = peer->wire_qpn;
        attr.rq_psn = rq_psn;
        mask |= RDMA_QP_AV | RDMA_QP_PATH_MTU | RDMA_QP_DEST_QPN |
                RDMA_QP_RQ_PSN;
    }
    if (qp->type == RDMA_QPT_RC) {
        attr.max_dest_rd_atomic = 4;
        attr.min_rnr_timer = path->min_rnr_timer;
        mask |= RDMA_QP_MAX_DEST_RD_ATOMIC | RDMA_QP_MIN_RNR_TIMER;
    }
    return qrdma_modify_qp(qp, mask, &attr);
}

uint8_t qrdma_modify_rts(QRdmaQp *qp, const QRdmaPath *path, uint32_t sq_psn)
{
    RdmaQpAttr attr = { .qp_state = RDMA_QPS_RTS, .sq_psn = sq_psn };
    uint32_t mask = RDMA_QP_STATE | RDMA_QP_SQ_PSN;

    if (qp->type == RDMA_QPT_RC) {
        attr.timeout = path->timeout;
        attr.retry_cnt = path->retry_cnt;
        attr.rnr_retry = path->rnr_retry;
        attr.max_rd_atomic = 4;
        mask |= RDMA_QP_TIMEOUT | RDMA_QP_RETRY_CNT | RDMA_QP_RNR_RETRY |
                RDMA_QP_MAX_QP_RD_ATOMIC;
    }
    return qrdma_modify_qp(qp, mask, &attr);
}

RdmaQpAttr qrdma_good_attr(QRdmaQp *qp, RdmaQpState to)
{
    return (RdmaQpAttr) {
        .qp_state = to,
        .path_mtu = RDMA_MTU_1024,
        .dest_qp_num = qp->wire_qpn,
        .port_num = 1,
        .max_rd_atomic = 2,
        .max_dest_rd_atomic = 2,
        .min_rnr_timer = 12,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = qrdma_av(qp->dev, 0),
    };
}

/* Fill in the usual values. */
static QRdmaPath complete_path(const QRdmaPath *path)
{
    QRdmaPath p = path ? *path : (QRdmaPath) {};

    p.mtu = p.mtu ?: RDMA_MTU_1024;
    p.psn_a = p.psn_a ?: 0x123456;
    p.psn_b = p.psn_b ?: 0xfffffe;
    p.access = p.access ?: RDMA_ACCESS_REMOTE;
    p.timeout = p.timeout ?: 14;
    p.min_rnr_timer = p.min_rnr_timer ?: 12;
    if (!p.no_retry) {
        p.retry_cnt = p.retry_cnt ?: 7;
        p.rnr_retry = p.rnr_retry ?: 7;
    }
    return p;
}

void qrdma_connect(QRdmaQp *a, QRdmaQp *b, const QRdmaPath *path)
{
    QRdmaPath p = complete_path(path);

    if (a == b) {
        p.psn_b = p.psn_a;
    }
    assert_ok(qrdma_modify_init(a, p.access));
    assert_ok(qrdma_modify_rtr(a, b, &p, p.psn_b));
    assert_ok(qrdma_modify_rts(a, &p, p.psn_a));
    if (a == b) {
        return;
    }
    assert_ok(qrdma_modify_init(b, p.access));
    assert_ok(qrdma_modify_rtr(b, a, &p, p.psn_a));
    assert_ok(qrdma_modify_rts(b, &p, p.psn_b));
}

void qrdma_reconnect(QRdmaQp *a, QRdmaQp *b, const QRdmaPath *path)
{
    assert_ok(qrdma_modify_qp_state(a, RDMA_QPS_RESET));
    assert_ok(qrdma_modify_qp_state(b, RDMA_QPS_RESET));
    qrdma_connect(a, b, path);
}

void qrdma_connect_absent(QRdmaQp *qp, const QRdmaPath *path, uint32_t psn)
{
    QRdma absent = *qp->dev;
    QRdmaQp far = { .dev = &absent, .wire_qpn = 7 };

    for (int i = 0; i < ARRAY_SIZE(absent.gid); i++) {
        absent.gid[i][RDMA_GID_LEN - 1] ^= 0x40;
    }
    absent.mac[RDMA_MAC_LEN - 1] ^= 0x40;
    assert_ok(qrdma_modify_init(qp, 0));
    assert_ok(qrdma_modify_rtr(qp, &far, path, 1));
    assert_ok(qrdma_modify_rts(qp, path, psn));
}

QRdmaQp *qrdma_create_loop(QRdmaPd *pd, QRdmaCq *send_cq, QRdmaCq *recv_cq)
{
    QRdmaQp *qp = qrdma_create_qp(pd, send_cq, recv_cq, RDMA_QPT_RC);

    qrdma_connect(qp, qp, NULL);
    return qp;
}

void qrdma_start_ud(QRdmaQp *qp, uint32_t qkey)
{
    QRdmaPath p = complete_path(NULL);
    RdmaQpAttr attr = {
        .qp_state = RDMA_QPS_INIT, .port_num = 1, .qkey = qkey,
    };

    assert_ok(qrdma_modify_qp(qp, RDMA_QP_STATE | RDMA_QP_PKEY_INDEX |
                              RDMA_QP_PORT | RDMA_QP_QKEY, &attr));
    assert_ok(qrdma_modify_rtr(qp, qp, &p, 0));
    assert_ok(qrdma_modify_rts(qp, &p, 0x77));
}

void qrdma_bring_up(QRdmaQp *a, QRdmaQp *b, const QRdmaPath *path)
{
    uint32_t qkey = a->type == RDMA_QPT_GSI ? RDMA_GSI_QKEY : QRDMA_QKEY;

    if (a->type == RDMA_QPT_RC || a->type == RDMA_QPT_UC) {
        qrdma_connect(a, b, path);
    } else {
        qrdma_start_ud(a, qkey);
        qrdma_start_ud(b, qkey);
    }
}

RdmaSendWr qrdma_wr(RdmaWrOpcode opcode, uint64_t wr_id, const RdmaSge *sge)
{
    return (RdmaSendWr) {
        .wr_id = wr_id,
        .opcode = opcode,
        .send_flags = RDMA_SEND_SIGNALED,
        .sg_list = sge,
        .num_sge = sge ? 1 : 0,
    };
}

RdmaSendWr qrdma_rdma_wr(RdmaWrOpcode opcode, uint64_t wr_id,
                         const RdmaSge *sge, const QRdmaMr *mr,
                         uint64_t offset)
{
    RdmaSendWr wr = qrdma_wr(opcode, wr_id, sge);

    if (opcode == RDMA_WR_ATOMIC_CMP_AND_SWP ||
        opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = mr->iova + offset;
        wr.wr.atomic.rkey = mr->rkey;
    } else {
        wr.wr.rdma.remote_addr = mr->iova + offset;
        wr.wr.rdma.rkey = mr->rkey;
    }
    return wr;
}

RdmaSendWr qrdma_ud_wr(uint64_t wr_id, const RdmaSge *sge, const QRdmaQp *to,
                       uint8_t gid_index)
{
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, wr_id, sge);

    wr.wr.ud.remote_qpn = to->wire_qpn;
    wr.wr.ud.remote_qkey = to->type == RDMA_QPT_GSI ? RDMA_GSI_QKEY
                                                    : QRDMA_QKEY;
    wr.wr.ud.av = qrdma_av(to->dev, gid_index);
    return wr;
}

RdmaSendWr qrdma_invalidate_wr(uint64_t wr_id, uint32_t rkey)
{
    RdmaSendWr wr = qrdma_wr(RDMA_WR_LOCAL_INV, wr_id, NULL);

    wr.ex.invalidate_rkey = rkey;
    return wr;
}

RdmaSendWr qrdma_bind_wr(const QRdmaMw *mw, const QRdmaMr *mr, uint64_t offset,
                         uint64_t length, uint32_t access)
{
    RdmaSendWr wr = qrdma_wr(RDMA_WR_BIND_MW, 0xb1, NULL);

    wr.wr.bind.rkey = mw->rkey;
    wr.wr.bind.new_rkey = (mw->rkey & ~0xffu) | ((mw->rkey + 1) & 0xff);
    wr.wr.bind.lkey = mr->lkey;
    wr.wr.bind.access = access;
    wr.wr.bind.addr = mr->iova + offset;
    wr.wr.bind.length = length;
    return wr;
}

static size_t encode_sges(uint8_t *at, const RdmaSge *sge, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct virtio_rdma_sge le = {
            .addr = cpu_to_le64(sge[i].addr),
            .length = cpu_to_le32(sge[i].length),
            .lkey = cpu_to_le32(sge[i].lkey),
        };

        memcpy(at + i * sizeof(le), &le, sizeof(le));
    }
    return n * sizeof(struct virtio_rdma_sge);
}

static void encode_ud(struct virtio_rdma_sq_wqe *wqe, const RdmaSendWr *wr)
{
    const RdmaAv *av = &wr->wr.ud.av;

    wqe->wr.ud.remote_qpn = cpu_to_le32(wr->wr.ud.remote_qpn);
    wqe->wr.ud.remote_qkey = cpu_to_le32(wr->wr.ud.remote_qkey);
    wqe->wr.ud.av.port = cpu_to_le32(av->port_num);
    wqe->wr.ud.av.sl_tclass_flowlabel = cpu_to_le32(
        (uint32_t)av->sl << VIRTIO_RDMA_AV_SL_SHIFT |
        (uint32_t)av->traffic_class << VIRTIO_RDMA_AV_TCLASS_SHIFT |
        av->flow_label);
    memcpy(wqe->wr.ud.av.dgid, av->dgid, sizeof(av->dgid));
    wqe->wr.ud.av.gid_index = av->sgid_index;
    wqe->wr.ud.av.static_rate = av->static_rate;
    wqe->wr.ud.av.hop_limit = av->hop_limit;
    memcpy(wqe->wr.ud.av.dmac, av->dmac, sizeof(av->dmac));
}

size_t qrdma_encode_send(QRdmaQp *qp, const RdmaSendWr *wr, uint8_t *out)
{
    struct virtio_rdma_sq_wqe wqe = {
        .num_sge = cpu_to_le32(wr->num_sge),
        .send_flags = cpu_to_le32(wr->send_flags),
        .opcode = cpu_to_le32(wr->opcode),
        .wr_id = cpu_to_le64(wr->wr_id),
    };
    size_t len = sizeof(wqe);

    if (qp->type == RDMA_QPT_UD || qp->type == RDMA_QPT_GSI) {
        wqe.wr.ud.av.pdn = cpu_to_le32(qp->pd->pdn);
        encode_ud(&wqe, wr);
    }
    switch (wr->opcode) {
    case RDMA_WR_RDMA_WRITE:
    case RDMA_WR_RDMA_WRITE_WITH_IMM:
    case RDMA_WR_RDMA_READ:
    case RDMA_WR_RDMA_READ_WITH_INV:
    case RDMA_WR_ATOMIC_WRITE:
        wqe.wr.rdma.remote_addr = cpu_to_le64(wr->wr.rdma.remote_addr);
        wqe.wr.rdma.rkey = cpu_to_le32(wr->wr.rdma.rkey);
        break;
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        wqe.wr.atomic.remote_addr = cpu_to_le64(wr->wr.atomic.remote_addr);
        wqe.wr.atomic.compare_add = cpu_to_le64(wr->wr.atomic.compare_add);
        wqe.wr.atomic.swap = cpu_to_le64(wr->wr.atomic.swap);
        wqe.wr.atomic.rkey = cpu_to_le32(wr->wr.atomic.rkey);
        break;
    case RDMA_WR_FLUSH:
        wqe.wr.flush.remote_addr = cpu_to_le64(wr->wr.flush.remote_addr);
        wqe.wr.flush.rkey = cpu_to_le32(wr->wr.flush.rkey);
        wqe.wr.flush.length = cpu_to_le32(wr->wr.flush.length);
        wqe.wr.flush.type = cpu_to_le32(wr->wr.flush.type);
        wqe.wr.flush.level = cpu_to_le32(wr->wr.flush.level);
        break;
    case RDMA_WR_REG_MR:
        wqe.wr.reg.mrn = cpu_to_le32(wr->wr.reg.mrn);
        wqe.wr.reg.key = cpu_to_le32(wr->wr.reg.key);
        wqe.wr.reg.access = cpu_to_le32(wr->wr.reg.access);
        break;
    case RDMA_WR_BIND_MW:
        wqe.wr.bind.rkey = cpu_to_le32(wr->wr.bind.rkey);
        wqe.wr.bind.new_rkey = cpu_to_le32(wr->wr.bind.new_rkey);
        wqe.wr.bind.lkey = cpu_to_le32(wr->wr.bind.lkey);
        wqe.wr.bind.access = cpu_to_le32(wr->wr.bind.access);
        wqe.wr.bind.addr = cpu_to_le64(wr->wr.bind.addr);
        wqe.wr.bind.length = cpu_to_le64(wr->wr.bind.length);
        break;
    }
    switch (wr->opcode) {
    case RDMA_WR_SEND_WITH_INV:
    case RDMA_WR_RDMA_READ_WITH_INV:
    case RDMA_WR_LOCAL_INV:
        wqe.ex.invalidate_rkey = cpu_to_le32(wr->ex.invalidate_rkey);
        break;
    default:
        memcpy(wqe.ex.imm_data, wr->ex.imm_data, sizeof(wqe.ex.imm_data));
        break;
    }
    memcpy(out, &wqe, sizeof(wqe));
    if (wr->send_flags & RDMA_SEND_INLINE) {
        g_assert_cmpuint(len + wr->inline_len, <=, QRDMA_WQE_ROOM);
        memcpy(out + len, wr->inline_data, wr->inline_len);
        return len + wr->inline_len;
    }
    return len + encode_sges(out + len, wr->sg_list, wr->num_sge);
}

size_t qrdma_encode_recv(const RdmaRecvWr *wr, uint8_t *out)
{
    struct virtio_rdma_rq_wqe wqe = {
        .num_sge = cpu_to_le32(wr->num_sge), .wr_id = cpu_to_le64(wr->wr_id),
    };

    memcpy(out, &wqe, sizeof(wqe));
    return sizeof(wqe) + encode_sges(out + sizeof(wqe), wr->sg_list,
                                     wr->num_sge);
}

uint32_t qrdma_reap(QRdmaWq *wq)
{
    uint16_t head;
    uint32_t len;
    uint32_t n = 0;

    if (!wq->ring) {
        /* Slots are free as soon as the device has read them. */
        n = wq->posted - wq->retired;
        wq->retired = wq->posted;
        return n;
    }
    while (qrdma_ring_get(wq->ring, &head, &len)) {
        g_assert_cmpuint(len, ==, 0);
        n++;
    }
    wq->retired += n;
    g_assert_cmpuint(wq->retired, <=, wq->posted);
    return n;
}

void qrdma_reap_all(QRdma *d, QRdmaWq *wq)
{
    qrdma_wait_until(d, (qrdma_reap(wq), wq->retired == wq->posted));
}

void qrdma_post_wqe(QRdma *d, QRdmaWq *wq, const void *wqe, size_t len,
                    unsigned split, bool kick)
{
    g_autofree QRdmaDesc *desc = NULL;
    uint8_t demo[QRDMA_WQE_ROOM + 16];
    unsigned n;
    uint64_t buf;

    if (d->demo) {
        /* Two virtqueues of a QP follow each other. */
        bool send = (wq->ring->pci.vq.index - VIRTIO_RDMA_SQ_VQ(d->max_cq, 0)) %
                    2 == 0;

        len = qrdma_demo_wqe(send, wqe, len, demo);
        wqe = demo;
    }
    n = split ? DIV_ROUND_UP(len, split) : 1;
    g_assert_cmpuint(len, <=, QRDMA_WQE_ROOM);
    if (!wq->ring) {
        qrdma_direct_post(d, wq, wqe, len);
        if (kick && !qrdma_direct_awake(d, wq)) {
            qrdma_doorbell(d, QRDMA_DIRECT_DOORBELL, wq->bell);
        }
        return;
    }
    if (wq->ring->nfree < n) {
        qrdma_wait_until(d, qrdma_reap(wq) && wq->ring->nfree >= n);
    }
    buf = wq->buf + wq->ring->free_head * QRDMA_WQE_ROOM;
    qrdma_write(d, buf, wqe, len);
    desc = g_new(QRdmaDesc, n);
    for (unsigned i = 0; i < n; i++) {
        size_t at = i * split;

        desc[i] = (QRdmaDesc) {
            .addr = buf + at, .len = split ? MIN(split, len - at) : len,
        };
    }
    qrdma_ring_add(wq->ring, desc, n);
    wq->posted++;
    if (kick) {
        qrdma_ring_kick(wq->ring);
    }
}

void qrdma_post_raw(QRdmaQp *qp, QRdmaWq *wq, const void *wqe, size_t len,
                    unsigned split, bool kick)
{
    qrdma_post_wqe(qp->dev, wq, wqe, len, split, kick);
}

void qrdma_post_reg_pages(QRdmaQp *qp, const RdmaSendWr *wr, uint64_t list)
{
    struct virtio_rdma_sq_wqe wqe;
    uint8_t bytes[QRDMA_WQE_ROOM];

    qrdma_encode_send(qp, wr, bytes);
    memcpy(&wqe, bytes, sizeof(wqe));
    wqe.wr.reg.npages = cpu_to_le32(wr->wr.reg.npages);
    wqe.wr.reg.start = cpu_to_le64(wr->wr.reg.iova);
    wqe.wr.reg.length = cpu_to_le64(wr->wr.reg.length);
    wqe.wr.reg.pages = cpu_to_le64(qrdma_dma(qp->dev, list));
    qrdma_post_raw(qp, &qp->sq, &wqe, sizeof(wqe), 0, true);
}

void qrdma_post_send(QRdmaQp *qp, const RdmaSendWr *wr)
{
    uint8_t wqe[QRDMA_WQE_ROOM];
    size_t len = qrdma_encode_send(qp, wr, wqe);

    qrdma_post_raw(qp, &qp->sq, wqe, len, 0, true);
}

void qrdma_post(QRdmaQp *qp, RdmaSendWr wr)
{
    qrdma_post_send(qp, &wr);
}

void qrdma_hand_over(QRdma *d)
{
    if (d->features & QRDMA_F(VIRTIO_RDMA_F_HOST_NUMBERS)) {
        /*
         * one turn for the kick, one for the queue, and more for leftover work
         */
        for (int i = 0; i < 4; i++) {
            qtest_readb(d->host->qts, 0);
        }
    }
}

void qrdma_post_recv(QRdmaQp *qp, const RdmaRecvWr *wr)
{
    uint8_t wqe[QRDMA_WQE_ROOM];
    size_t len = qrdma_encode_recv(wr, wqe);

    qrdma_post_raw(qp, &qp->rq, wqe, len, 0, true);
    qrdma_hand_over(qp->dev);
}

void qrdma_recv(QRdmaQp *qp, uint64_t wr_id, const RdmaSge *sge)
{
    qrdma_post_recv(qp, &(RdmaRecvWr) {
        .wr_id = wr_id, .num_sge = sge ? 1 : 0, .sg_list = sge,
    });
}

void qrdma_put_send(QRdmaQp *qp, RdmaSendWr wr)
{
    uint8_t wqe[QRDMA_WQE_ROOM];

    qrdma_direct_post(qp->dev, &qp->sq, wqe, qrdma_encode_send(qp, &wr, wqe));
}

void qrdma_put_recv(QRdma *d, QRdmaWq *wq, uint64_t wr_id, const RdmaSge *sge)
{
    RdmaRecvWr wr = { .wr_id = wr_id, .num_sge = sge ? 1 : 0, .sg_list = sge };
    uint8_t wqe[QRDMA_WQE_ROOM];

    qrdma_direct_post(d, wq, wqe, qrdma_encode_recv(&wr, wqe));
}

void qrdma_refill_cq(QRdmaCq *cq, unsigned n)
{
    uint32_t size = cq->dev->cqe_size;
    uint16_t old = cq->ring->avail_idx;

    for (unsigned i = 0; i < n; i++) {
        QRdmaDesc desc = {
            cq->buf + cq->ring->free_head * size, size, true,
        };

        qrdma_ring_add(cq->ring, &desc, 1);
    }
    if (qrdma_ring_wants_kick(cq->ring, old)) {
        qrdma_ring_kick(cq->ring);
    }
}

static void decode_cqe_ex(const struct virtio_rdma_cqe_ex *cqe, RdmaWc *wc)
{
    static const uint8_t zero[RDMA_MAC_LEN];

    memcpy(wc->smac, cqe->smac, RDMA_MAC_LEN);
    wc->vlan = le16_to_cpu(cqe->vlan);
    wc->hdr_type = cqe->hdr_type;
    /* fields without their flag are zero */
    if (!(wc->wc_flags & RDMA_WC_WITH_SMAC)) {
        g_assert_cmpmem(wc->smac, RDMA_MAC_LEN, zero, RDMA_MAC_LEN);
    }
    g_assert_true((wc->wc_flags & RDMA_WC_WITH_VLAN) || !wc->vlan);
    g_assert_true((wc->wc_flags & RDMA_WC_WITH_HDR_TYPE) || !wc->hdr_type);
    g_assert_cmpuint(cqe->reserved, ==, 0);
}

/* The next CQE of a virtqueue; false if there is none. */
static bool get_cqe(QRdmaCq *cq, struct virtio_rdma_cqe_ex *cqe)
{
    uint32_t size = cq->dev->cqe_size;
    uint16_t head;
    uint32_t len;

    if (!qrdma_ring_get(cq->ring, &head, &len)) {
        return false;
    }
    g_assert_cmpuint(len, ==, size);
    if (cq->dev->demo) {
        uint8_t bytes[QRDMA_DEMO_CQE_SIZE];

        qrdma_read(cq->dev, cq->buf + head * size, bytes, size);
        qrdma_demo_cqe(bytes, &cqe->cqe);
    } else {
        qrdma_read(cq->dev, cq->buf + head * size, cqe, size);
    }
    if (!cq->no_refill) {
        qrdma_refill_cq(cq, 1);
    }
    return true;
}

bool qrdma_cq_has_cqe(QRdmaCq *cq)
{
    return cq->ring ? qrdma_ring_used_idx(cq->ring) != cq->ring->used_idx
                    : qrdma_direct_cq_has_cqe(cq);
}

bool qrdma_poll_cq(QRdmaCq *cq, RdmaWc *wc)
{
    struct virtio_rdma_cqe_ex cqe_ex = {};
    struct virtio_rdma_cqe cqe;

    if (!(cq->ring ? get_cqe(cq, &cqe_ex)
                   : qrdma_direct_cq_get(cq, &cqe_ex))) {
        return false;
    }
    cqe = cqe_ex.cqe;
    *wc = (RdmaWc) {
        .wr_id = le64_to_cpu(cqe.wr_id),
        .status = cqe.status,
        .opcode = cqe.opcode,
        .vendor_err = le32_to_cpu(cqe.vendor_err),
        .byte_len = le32_to_cpu(cqe.byte_len),
        .qp_num = le32_to_cpu(cqe.qp_num),
        .src_qp = le32_to_cpu(cqe.src_qp),
        .wc_flags = le32_to_cpu(cqe.wc_flags),
        .pkey_index = le16_to_cpu(cqe.pkey_index),
        .sl = cqe.sl,
        .port_num = cqe.port_num,
    };
    if (wc->wc_flags & RDMA_WC_WITH_INVALIDATE) {
        wc->ex.invalidate_rkey = le32_to_cpu(cqe.ex.invalidate_rkey);
    } else {
        memcpy(wc->ex.imm_data, cqe.ex.imm_data, sizeof(cqe.ex.imm_data));
    }
    decode_cqe_ex(&cqe_ex, wc);
    return true;
}

void qrdma_wait_cq(QRdmaCq *cq, RdmaWc *wc)
{
    qrdma_wait_until(cq->dev, qrdma_poll_cq(cq, wc));
}

void qrdma_expect(QRdmaCq *cq, uint64_t wr_id, RdmaWcStatus status)
{
    RdmaWc wc;

    qrdma_wait_cq(cq, &wc);
    g_assert_cmphex(wc.wr_id, ==, wr_id);
    g_assert_cmpint(wc.status, ==, status);
}

void qrdma_expect_many(QRdmaCq *cq, uint64_t first, unsigned n,
                       RdmaWcStatus status)
{
    for (unsigned i = 0; i < n; i++) {
        qrdma_expect(cq, first + i, status);
    }
}

RdmaWcStatus qrdma_expect_error(QRdmaCq *cq, uint64_t wr_id)
{
    RdmaWc wc;

    qrdma_wait_cq(cq, &wc);
    g_assert_cmphex(wc.wr_id, ==, wr_id);
    g_assert_cmpint(wc.status, !=, RDMA_WC_SUCCESS);
    return wc.status;
}

void qrdma_expect_wc(QRdmaCq *cq, uint64_t wr_id, RdmaWcOpcode opcode,
                     RdmaWc *wc)
{
    RdmaWc here;

    wc = wc ?: &here;
    qrdma_wait_cq(cq, wc);
    g_assert_cmphex(wc->wr_id, ==, wr_id);
    g_assert_cmpint(wc->status, ==, RDMA_WC_SUCCESS);
    g_assert_cmpint(wc->opcode, ==, opcode);
}

void qrdma_post_expect(QRdmaQp *qp, RdmaSendWr wr, RdmaWcStatus status)
{
    qrdma_post(qp, wr);
    qrdma_expect(qp->send_cq, wr.wr_id, status);
}

void qrdma_post_expect_wc(QRdmaQp *qp, RdmaSendWr wr, RdmaWcOpcode opcode)
{
    qrdma_post(qp, wr);
    qrdma_expect_wc(qp->send_cq, wr.wr_id, opcode, NULL);
}

void qrdma_expect_none(QRdmaCq *cq)
{
    RdmaWc wc;

    qrdma_settle(cq->dev);
    g_assert_false(qrdma_poll_cq(cq, &wc));
}
