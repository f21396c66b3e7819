/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma client for tests: shared receive queues, memory windows and
 * multicast groups.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "virtio-rdma.h"

static struct virtio_rdma_create_srq_req encode(const RdmaSrqAttr *attr)
{
    return (struct virtio_rdma_create_srq_req) {
        .pdn = cpu_to_le32(attr->pdn),
        .max_wr = cpu_to_le32(attr->max_wr),
        .max_sge = cpu_to_le32(attr->max_sge),
        .limit = cpu_to_le32(attr->limit),
    };
}

static uint8_t send_create(QRdma *d,
                           const struct virtio_rdma_create_srq_req *req,
                           uint32_t *srqn)
{
    struct virtio_rdma_srqn rsp = {};
    uint8_t status = qrdma_call(d, CREATE_SRQ, req, &rsp);

    *srqn = le32_to_cpu(rsp.srqn);
    return status;
}

uint8_t qrdma_try_create_srq(QRdma *d, const RdmaSrqAttr *attr,
                             uint32_t *srqn)
{
    const struct virtio_rdma_create_srq_req req = encode(attr);

    return send_create(d, &req, srqn);
}

QRdmaSrq *qrdma_create_srq_limit(QRdmaPd *pd, uint32_t max_wr,
                                 uint32_t max_sge, uint32_t limit)
{
    QRdma *d = pd->dev;
    QRdmaSrq *srq = qrdma_own(d, sizeof(*srq));
    RdmaSrqAttr attr = {
        .pdn = pd->pdn, .max_wr = max_wr, .max_sge = max_sge, .limit = limit,
    };

    struct virtio_rdma_create_srq_req req = encode(&attr);
    bool direct = qrdma_has(d, QRDMA_DIRECT_SRQS);

    srq->dev = d;
    if (direct) {
        qrdma_direct_srq_init(srq, &req);
    }
    assert_ok(send_create(d, &req, &srq->srqn));
    g_assert_cmpuint(srq->srqn, <, direct ? d->max_srq_direct : d->max_srq);
    if (direct) {
        srq->wq.bell = VIRTIO_RDMA_DOORBELL_SRQ | srq->srqn;
        return srq;
    }
    srq->wq.ring = qrdma_ring(d, VIRTIO_RDMA_SRQ_VQ(d->max_cq, d->max_qp,
                                                    srq->srqn));
    srq->wq.buf = qrdma_alloc(d, (uint64_t)srq->wq.ring->pci.vq.size *
                                 QRDMA_WQE_ROOM);
    return srq;
}

QRdmaSrq *qrdma_create_srq(QRdmaPd *pd, uint32_t max_wr, uint32_t max_sge)
{
    return qrdma_create_srq_limit(pd, max_wr, max_sge, 0);
}

uint8_t qrdma_modify_srq(QRdmaSrq *srq, uint32_t limit)
{
    struct virtio_rdma_modify_srq_req req = {
        .srqn = cpu_to_le32(srq->srqn), .limit = cpu_to_le32(limit),
    };

    return qrdma_call_void(srq->dev, MODIFY_SRQ, &req);
}

uint8_t qrdma_query_srq(QRdmaSrq *srq, RdmaSrqAttr *attr)
{
    struct virtio_rdma_srqn req = { .srqn = cpu_to_le32(srq->srqn) };
    struct virtio_rdma_query_srq_rsp rsp = {};
    uint8_t status = qrdma_call(srq->dev, QUERY_SRQ, &req, &rsp);

    *attr = (RdmaSrqAttr) {
        .srqn = srq->srqn,
        .max_wr = le32_to_cpu(rsp.max_wr),
        .max_sge = le32_to_cpu(rsp.max_sge),
        .limit = le32_to_cpu(rsp.limit),
    };
    return status;
}

uint8_t qrdma_destroy_srq(QRdmaSrq *srq)
{
    uint8_t status = qrdma_destroy(srq->dev, VIRTIO_RDMA_CMD_DESTROY_SRQ,
                                   srq->srqn);

    if (status == VIRTIO_RDMA_S_OK && srq->wq.ring) {
        qrdma_ring_renew(srq->wq.ring);
    }
    return status;
}

void qrdma_post_srq_recv(QRdmaSrq *srq, const RdmaRecvWr *wr)
{
    uint8_t wqe[QRDMA_WQE_ROOM];
    size_t len = qrdma_encode_recv(wr, wqe);

    qrdma_post_wqe(srq->dev, &srq->wq, wqe, len, 0, true);
    qrdma_hand_over(srq->dev);
}

void qrdma_srq_recv(QRdmaSrq *srq, uint64_t wr_id, const RdmaSge *sge)
{
    qrdma_post_srq_recv(srq, &(RdmaRecvWr) {
        .wr_id = wr_id, .num_sge = sge ? 1 : 0, .sg_list = sge,
    });
}

uint8_t qrdma_alloc_mw(QRdmaPd *pd, RdmaMwType type, QRdmaMw *mw)
{
    struct virtio_rdma_alloc_mw_req req = {
        .pdn = cpu_to_le32(pd->pdn), .type = cpu_to_le32(type),
    };
    struct virtio_rdma_alloc_mw_rsp rsp = {};
    uint8_t status = qrdma_call(pd->dev, ALLOC_MW, &req, &rsp);

    *mw = (QRdmaMw) {
        .dev = pd->dev,
        .mwn = le32_to_cpu(rsp.mwn),
        .rkey = le32_to_cpu(rsp.rkey),
    };
    if (status == VIRTIO_RDMA_S_OK) {
        g_assert_cmpuint(mw->mwn, !=, 0);
        g_assert_true(mw->rkey >> 8 == mw->mwn ||
                      (pd->dev->features &
                       QRDMA_F(VIRTIO_RDMA_F_HOST_NUMBERS)));
    }
    return status;
}

uint8_t qrdma_dealloc_mw(const QRdmaMw *mw)
{
    return qrdma_destroy(mw->dev, VIRTIO_RDMA_CMD_DEALLOC_MW, mw->mwn);
}

static uint8_t mcast(QRdmaQp *qp, uint8_t cmd,
                     const uint8_t gid[RDMA_GID_LEN])
{
    struct virtio_rdma_mcast_req req = { .qpn = cpu_to_le32(qp->qpn) };

    memcpy(req.gid, gid, sizeof(req.gid));
    return qrdma_cmd(qp->dev, cmd, &req, sizeof(req), NULL, 0);
}

uint8_t qrdma_attach_mcast(QRdmaQp *qp, const uint8_t gid[RDMA_GID_LEN])
{
    return mcast(qp, VIRTIO_RDMA_CMD_ATTACH_MCAST, gid);
}

uint8_t qrdma_detach_mcast(QRdmaQp *qp, const uint8_t gid[RDMA_GID_LEN])
{
    return mcast(qp, VIRTIO_RDMA_CMD_DETACH_MCAST, gid);
}
