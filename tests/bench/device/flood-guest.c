/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "flood-guest.h"
#include "standard-headers/linux/virtio_ring.h"

/* Rings that are written at once */

void fill(Flood *f, uint32_t index, uint64_t addr, uint32_t len,
          bool write, unsigned n)
{
    QRdmaRing *r = qrdma_ring(f->d, index);
    uint16_t size = r->pci.vq.size;
    g_autofree struct vring_desc *desc = g_new0(struct vring_desc, size);
    g_autofree uint16_t *avail = g_new0(uint16_t, 2 + size);

    g_assert_cmpuint(n, <=, size);
    for (unsigned i = 0; i < size; i++) {
        desc[i].addr = cpu_to_le64(addr);
        desc[i].len = cpu_to_le32(len);
        desc[i].flags = cpu_to_le16(write ? VRING_DESC_F_WRITE : 0);
        avail[2 + i] = cpu_to_le16(i);
    }
    r->avail_idx += n;
    avail[1] = cpu_to_le16(r->avail_idx);
    qrdma_write(f->d, r->pci.vq.desc, desc, size * sizeof(*desc));
    qrdma_write(f->d, r->pci.vq.avail, avail, (2 + size) * sizeof(*avail));
}

void command(Flood *f, uint8_t cmd, const void *req, size_t len)
{
    QRdmaRing *r = qrdma_ring(f->d, VIRTIO_RDMA_CTRL_VQ);
    uint64_t at = f->reqs + f->commands * 256;
    uint8_t bytes[256] = { cmd };
    uint16_t i = f->commands * 2;

    g_assert_cmpuint(i, <, QUEUE_SIZE);
    memcpy(bytes + 1, req, len);
    qrdma_write(f->d, at, bytes, 1 + len);
    qrdma_ring_set_desc(r, i, at, 1 + len, VRING_DESC_F_NEXT, i + 1);
    qrdma_ring_set_desc(r, i + 1, f->scratch, 256, VRING_DESC_F_WRITE, 0);
    qrdma_ring_set_avail(r, r->avail_idx + f->commands, i);
    f->commands++;
}

void send_commands(Flood *f)
{
    QRdmaRing *r = qrdma_ring(f->d, VIRTIO_RDMA_CTRL_VQ);

    qrdma_ring_set_avail_idx(r, r->avail_idx + f->commands);
    f->commands = 0;
    qrdma_ring_kick(r);
}

bool all_used(Flood *f, uint32_t index)
{
    QRdmaRing *r = qrdma_ring(f->d, index);

    return qrdma_ring_used_idx(r) == r->avail_idx;
}

/* Objects */

void new_cqs(Flood *f, uint32_t n, uint32_t cqe, bool buffers)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *cqn = &f->cqns[f->ncq++];

        assert_ok(qrdma_try_create_cq(f->d, cqe, cqn));
        if (buffers) {
            fill(f, VIRTIO_RDMA_CQ_VQ(*cqn), f->scratch + 2048, 64, true,
                 QUEUE_SIZE);
        }
    }
}

RdmaQpInitAttr qp_init(Flood *f, RdmaQpType type)
{
    return (RdmaQpInitAttr) {
        .pdn = f->pd->pdn,
        .qp_type = type,
        .send_cqn = f->cqns[f->nqp % f->ncq],
        .recv_cqn = f->cqns[f->nqp % f->ncq],
        .cap = {
            .max_send_wr = QUEUE_SIZE,
            .max_recv_wr = QUEUE_SIZE,
            .max_send_sge = 4,
            .max_recv_sge = 4,
        },
    };
}

void new_qps(Flood *f, uint32_t n, RdmaQpType type)
{
    while (n--) {
        RdmaQpInitAttr init = qp_init(f, type);
        QRdmaQp *qp = &f->qps[f->nqp];

        *qp = (QRdmaQp) { .pd = f->pd, .dev = f->d, .type = type };
        assert_ok(qrdma_try_create_qp_nums(f->d, &init, &qp->qpn,
                                           &qp->wire_qpn));
        f->nqp++;
        if (type == RDMA_QPT_UD) {
            qrdma_start_ud(qp, QRDMA_QKEY);
        } else {
            QRdmaPath path = { .mtu = RDMA_MTU_4096 };

            qrdma_connect(qp, qp, &path);
        }
    }
}

bool qpn_taken(Flood *f, uint32_t qpn)
{
    for (uint32_t i = 0; i < f->nqp; i++) {
        if (f->qps[i].qpn == qpn) {
            return true;
        }
    }
    return false;
}

uint32_t sq_of(Flood *f, uint32_t i)
{
    return VIRTIO_RDMA_SQ_VQ(f->d->max_cq, f->qps[i].qpn);
}

uint32_t rq_of(Flood *f, uint32_t i)
{
    return VIRTIO_RDMA_RQ_VQ(f->d->max_cq, f->qps[i].qpn);
}

void kick(Flood *f, uint32_t index)
{
    qrdma_ring_kick(qrdma_ring(f->d, index));
}

RdmaSge sge(Flood *f, uint32_t len)
{
    return (RdmaSge) { .addr = f->data, .length = len, .lkey = f->mr->lkey };
}

void post_receives(Flood *f, unsigned n)
{
    RdmaSge s = sge(f, 8192);
    RdmaRecvWr wr = { .num_sge = 1, .sg_list = &s };
    uint8_t wqe[QRDMA_WQE_ROOM];
    size_t len = qrdma_encode_recv(&wr, wqe);

    qrdma_write(f->d, f->scratch, wqe, len);
    for (uint32_t i = 0; i < f->nqp; i++) {
        fill(f, rq_of(f, i), f->scratch, len, false, n);
        kick(f, rq_of(f, i));
    }
    qrdma_settle(f->d);
}

void prepare_sends(Flood *f, uint32_t nqp, const RdmaSendWr *wr,
                   unsigned n)
{
    uint64_t at = qrdma_alloc(f->d, PAGE);
    uint8_t wqe[QRDMA_WQE_ROOM];

    for (uint32_t i = 0; i < nqp; i++) {
        size_t len = qrdma_encode_send(&f->qps[i], wr, wqe);

        qrdma_write(f->d, at, wqe, len);
        fill(f, sq_of(f, i), at, len, false, n);
    }
}

bool sends_done(Flood *f)
{
    for (uint32_t i = 0; i < f->nqp; i++) {
        if (!all_used(f, sq_of(f, i))) {
            return false;
        }
    }
    return true;
}

bool receives_done(Flood *f)
{
    for (uint32_t i = 0; i < f->nqp; i++) {
        if (!all_used(f, rq_of(f, i))) {
            return false;
        }
    }
    return true;
}

bool commands_done(Flood *f)
{
    return all_used(f, VIRTIO_RDMA_CTRL_VQ);
}

void kick_sends_at_once(Flood *f)
{
    qtest_qmp_assert_success(f->host->qts, "{'execute': 'stop'}");
    for (uint32_t i = 0; i < f->nqp; i++) {
        kick(f, sq_of(f, i));
    }
    qtest_qmp_assert_success(f->host->qts, "{'execute': 'cont'}");
}

Flood *flood_new(QRdmaHost *host, QRdma *d)
{
    Flood *f = g_new0(Flood, 1);

    f->host = host;
    f->d = d;
    qrdma_start(f->d, FEATURES, QUEUE_SIZE);
    qrdma_setup_gids(f->d, 1);
    f->pd = qrdma_alloc_pd(f->d);
    f->mr = qrdma_get_dma_mr(f->pd, RDMA_ACCESS_LOCAL_WRITE);
    f->data = qrdma_alloc(f->d, WINDOW);
    f->scratch = qrdma_alloc(f->d, PAGE);
    f->reqs = qrdma_alloc(f->d, 512 * 256);
    return f;
}
