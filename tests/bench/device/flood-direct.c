/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/host-utils.h"
#include "flood-direct.h"

#define PAGE 4096
#define NSGE 32
#define SRQ_SLOT 1024               /* bytes, of NSGE */
#define QP_SLOT_SHIFT 7

/* Guest memory with the addresses of @n pages: @first, and @others */
static uint64_t new_list(QRdma *d, uint32_t n, uint64_t first, uint64_t others)
{
    uint64_t list = qrdma_alloc(d, n * sizeof(uint64_t));
    g_autofree uint64_t *le = g_new(uint64_t, n);

    for (uint32_t i = 0; i < n; i++) {
        le[i] = cpu_to_le64(i ? others : first);
    }
    qrdma_write(d, list, le, n * sizeof(*le));
    return list;
}

static void write_slots(QRdma *d, uint64_t slots)
{
    RdmaSge sges[NSGE] = {};
    RdmaRecvWr wr = { .num_sge = NSGE, .sg_list = sges };
    uint8_t wqe[QRDMA_WQE_ROOM];
    size_t len = qrdma_encode_recv(&wr, wqe);

    for (int at = 0; at < PAGE; at += SRQ_SLOT) {
        qtest_writel(d->host->qts, slots + at, len);
        qrdma_write(d, slots + at + 4, wqe, len);
    }
}

uint32_t flood_direct_srq(QRdmaPd *pd, uint32_t n, uint32_t posted,
                          uint64_t slots)
{
    QRdma *d = pd->dev;
    uint32_t npages = 1 + n / (PAGE / SRQ_SLOT);
    uint64_t counters = qrdma_alloc(d, PAGE);
    struct virtio_rdma_create_srq_req req = {
        .pdn = cpu_to_le32(pd->pdn),
        .max_wr = cpu_to_le32(n),
        .max_sge = cpu_to_le32(NSGE),
        .flags = cpu_to_le32(VIRTIO_RDMA_SRQ_DIRECT),
        .queue_pages = cpu_to_le64(new_list(d, npages, counters, slots)),
        .queue_npages = cpu_to_le32(npages),
        .depth_shift = ctz32(n),
        .slot_shift = ctz32(SRQ_SLOT),
    };
    struct virtio_rdma_srqn rsp;

    write_slots(d, slots);
    assert_ok(qrdma_cmd(d, VIRTIO_RDMA_CMD_CREATE_SRQ, &req, sizeof(req), &rsp,
                        sizeof(rsp)));
    qtest_writel(d->host->qts, counters, posted);
    return le32_to_cpu(rsp.srqn);
}

QRdmaQp flood_direct_ud(QRdmaPd *pd, uint32_t cqn, uint64_t page)
{
    QRdma *d = pd->dev;
    struct virtio_rdma_create_qp_req req = {
        .pdn = cpu_to_le32(pd->pdn),
        .qp_type = RDMA_QPT_UD,
        .send_cqn = cpu_to_le32(cqn),
        .recv_cqn = cpu_to_le32(cqn),
        .flags = cpu_to_le32(VIRTIO_RDMA_QP_DIRECT),
        /* Counters, a slot of the SQ, one of the RQ */
        .queue_pages = cpu_to_le64(new_list(d, 3, page, page)),
        .queue_npages = cpu_to_le32(3),
        .sq_slot_shift = QP_SLOT_SHIFT,
        .rq_slot_shift = QP_SLOT_SHIFT,
    };
    struct virtio_rdma_qpn rsp;

    assert_ok(qrdma_cmd(d, VIRTIO_RDMA_CMD_CREATE_QP, &req, sizeof(req), &rsp,
                        sizeof(rsp)));
    return (QRdmaQp) {
        .pd = pd, .dev = d, .qpn = le32_to_cpu(rsp.qpn), .type = RDMA_QPT_UD,
    };
}
