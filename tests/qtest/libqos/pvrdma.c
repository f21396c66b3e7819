/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A driver of the pvrdma device, for tests, see pvrdma.h.
 *
 * Hosts and guests of these tests are little-endian.
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "pvrdma.h"
#include "standard-headers/linux/pci_regs.h"

#define PAGE RDMA_PAGE_SIZE
#define DRIVER_VERSION 20
/* Pages of a ring of the device */
#define RING_PAGES 4

static uint64_t new_pages(QPvrdma *d, uint32_t n)
{
    uint64_t mem = guest_alloc(&d->host->alloc, n * PAGE);

    g_assert_cmphex(mem % PAGE, ==, 0);
    qtest_memset(d->host->qts, mem, 0, n * PAGE);
    return mem;
}

static void write64(QPvrdma *d, uint64_t addr, uint64_t value)
{
    qtest_writeq(d->host->qts, addr, value);
}

QPvrdmaDir qpvrdma_dir(QPvrdma *d, uint32_t npages)
{
    QPvrdmaDir dir = { .npages = npages };
    uint64_t tables = DIV_ROUND_UP(npages, 512);
    uint64_t table;

    dir.dir = new_pages(d, 1);
    table = new_pages(d, tables);
    dir.mem = new_pages(d, npages);
    for (uint32_t i = 0; i < tables; i++) {
        write64(d, dir.dir + 8 * i, table + i * PAGE);
    }
    for (uint32_t i = 0; i < npages; i++) {
        write64(d, table + 8 * i, dir.mem + (uint64_t)i * PAGE);
    }
    return dir;
}

static QPvrdmaRing ring_of(const QPvrdmaDir *dir, size_t state, uint32_t page,
                           uint32_t size, uint32_t stride)
{
    return (QPvrdmaRing) {
        .state = dir->mem + state,
        .elements = dir->mem + (uint64_t)page * PAGE,
        .size = size,
        .stride = stride,
    };
}

/* Registers and interrupts */

uint32_t qpvrdma_read(QPvrdma *d, uint32_t reg)
{
    return qpci_io_readl(d->pci, d->regs, reg);
}

void qpvrdma_write(QPvrdma *d, uint32_t reg, uint32_t value)
{
    qpci_io_writel(d->pci, d->regs, reg, value);
}

void qpvrdma_ring_doorbell(QPvrdma *d, uint32_t page, uint32_t offset,
                           uint32_t value)
{
    qpci_io_writel(d->pci, d->uar, page * PAGE + offset, value);
}

bool qpvrdma_interrupted(QPvrdma *d, unsigned vector)
{
    uint64_t addr = d->msi + 4 * vector;
    uint32_t data = qtest_readl(d->host->qts, addr);

    if (!data) {
        return false;
    }
    g_assert_cmphex(data, ==, QPVRDMA_MSI(vector));
    qtest_writel(d->host->qts, addr, 0);
    return true;
}

static void enable_msix(QPvrdma *d)
{
    d->msi = new_pages(d, 1);
    qpci_msix_enable(d->pci);
    g_assert_cmpint(qpci_msix_table_size(d->pci), ==, PVRDMA_NUM_VECTORS);
    for (unsigned v = 0; v < PVRDMA_NUM_VECTORS; v++) {
        uint64_t at = d->pci->msix_table_off + v * PCI_MSIX_ENTRY_SIZE;

        qpci_io_writel(d->pci, d->pci->msix_table_bar,
                       at + PCI_MSIX_ENTRY_LOWER_ADDR, d->msi + 4 * v);
        qpci_io_writel(d->pci, d->pci->msix_table_bar,
                       at + PCI_MSIX_ENTRY_UPPER_ADDR, 0);
        qpci_io_writel(d->pci, d->pci->msix_table_bar,
                       at + PCI_MSIX_ENTRY_DATA, QPVRDMA_MSI(v));
        qpci_io_writel(d->pci, d->pci->msix_table_bar,
                       at + PCI_MSIX_ENTRY_VECTOR_CTRL, 0);
    }
}

/* Probe */

QPvrdma *qpvrdma_open(QRdmaHost *host, int devfn)
{
    QPvrdma *d = g_new0(QPvrdma, 1);
    uint32_t low, high;

    d->host = host;
    d->pci = qpci_device_find(host->bus, devfn);
    g_assert_nonnull(d->pci);
    g_assert_cmphex(qpci_config_readw(d->pci, PCI_VENDOR_ID), ==,
                    PVRDMA_PCI_VENDOR);
    g_assert_cmphex(qpci_config_readw(d->pci, PCI_DEVICE_ID), ==,
                    PVRDMA_PCI_DEVICE);
    qpci_device_enable(d->pci);
    d->regs = qpci_iomap(d->pci, PVRDMA_BAR_REGS, NULL);
    d->uar = qpci_iomap(d->pci, PVRDMA_BAR_UAR, NULL);
    low = qpvrdma_read(d, PVRDMA_REG_MAC_LOW);
    high = qpvrdma_read(d, PVRDMA_REG_MAC_HIGH);
    memcpy(d->mac, &low, 4);
    memcpy(d->mac + 4, &high, 2);
    return d;
}

void qpvrdma_close(QPvrdma *d)
{
    g_free(d->pci);
    g_free(d);
}

void qpvrdma_set_dsr(QPvrdma *d)
{
    QTestState *qts = d->host->qts;
    QPvrdmaDir events = qpvrdma_dir(d, RING_PAGES);
    QPvrdmaDir completions = qpvrdma_dir(d, RING_PAGES);
    PvrdmaDsr dsr = {
        .driver_version = DRIVER_VERSION,
        .events = { .num_pages = RING_PAGES, .dir = events.dir },
        .completions = { .num_pages = RING_PAGES, .dir = completions.dir },
    };

    d->request = dsr.request = new_pages(d, 1);
    d->response = dsr.response = new_pages(d, 1);
    d->events = ring_of(&events, offsetof(PvrdmaStatePage, rx), 1,
                        PVRDMA_EVENT_RING_SIZE, sizeof(PvrdmaEvent));
    d->completions = ring_of(&completions, offsetof(PvrdmaStatePage, rx), 1,
                             PVRDMA_COMPLETION_RING_SIZE, sizeof(uint32_t));
    d->dsr = new_pages(d, 1);
    qtest_memwrite(qts, d->dsr, &dsr, sizeof(dsr));
    qpvrdma_write(d, PVRDMA_REG_DSR_LOW, d->dsr);
    qpvrdma_write(d, PVRDMA_REG_DSR_HIGH, d->dsr >> 32);
    qtest_memread(qts, d->dsr + offsetof(PvrdmaDsr, caps), &d->caps,
                  sizeof(d->caps));
}

void qpvrdma_start(QPvrdma *d)
{
    g_assert_cmpint(qpvrdma_read(d, PVRDMA_REG_VERSION), >=,
                    PVRDMA_VERSION_ROCE_V2);
    qpvrdma_set_dsr(d);
    g_assert_cmpint(d->caps.mode, ==, 0);
    g_assert_cmpint(d->caps.gid_types, ==, PVRDMA_GID_TYPE_ROCE_V2);
    enable_msix(d);
    qpvrdma_write(d, PVRDMA_REG_IMR, 0);
    qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_ACTIVATE);
    assert_done(qpvrdma_read(d, PVRDMA_REG_ERR));
}

/* Commands */

static bool driver_waits(uint32_t cmd)
{
    switch (cmd) {
    case PVRDMA_CMD_DESTROY_PD:
    case PVRDMA_CMD_DESTROY_MR:
    case PVRDMA_CMD_DESTROY_CQ:
    case PVRDMA_CMD_DESTROY_QP:
    case PVRDMA_CMD_DESTROY_UC:
    case PVRDMA_CMD_CREATE_BIND:
    case PVRDMA_CMD_DESTROY_BIND:
    case PVRDMA_CMD_MODIFY_SRQ:
    case PVRDMA_CMD_DESTROY_SRQ:
        return false;
    default:
        return true;
    }
}

uint32_t qpvrdma_request(QPvrdma *d, uint32_t cmd, void *req, size_t size)
{
    uint8_t slot[PVRDMA_CMD_ROOM];
    PvrdmaCmdHead *head = req;

    head->cmd = cmd;
    /* A driver copies bytes of the kernel's stack after a short request. */
    memset(slot, 0xa5, sizeof(slot));
    memcpy(slot, req, size);
    qtest_memwrite(d->host->qts, d->request, slot, sizeof(slot));
    qpvrdma_write(d, PVRDMA_REG_REQUEST, 0);
    return qpvrdma_read(d, PVRDMA_REG_ERR);
}

uint32_t qpvrdma_await_reply(QPvrdma *d)
{
    PvrdmaRspHead reply;

    qrdma_wait_until(d, qpvrdma_interrupted(d, PVRDMA_VECTOR_RESPONSE));
    qtest_memread(d->host->qts, d->response, &reply, sizeof(reply));
    return reply.ack;
}

uint32_t qpvrdma_cmd(QPvrdma *d, uint32_t cmd, void *req, size_t size,
                     void *rsp, size_t rsp_size)
{
    uint32_t err = qpvrdma_request(d, cmd, req, size);

    if (err || !driver_waits(cmd)) {
        g_assert_false(qpvrdma_interrupted(d, PVRDMA_VECTOR_RESPONSE));
        return err;
    }
    g_assert_cmphex(qpvrdma_await_reply(d), ==, PVRDMA_ACK | cmd);
    qtest_memread(d->host->qts, d->response, rsp, rsp_size);
    return 0;
}

uint32_t qpvrdma_destroy(QPvrdma *d, uint32_t cmd, uint32_t handle)
{
    PvrdmaCmdHandle req = { .handle = handle };

    return qpvrdma_cmd(d, cmd, &req, sizeof(req), NULL, 0);
}

uint64_t qpvrdma_uar_pfn(QPvrdma *d)
{
    uint64_t bar = qpci_config_readl(d->pci, PCI_BASE_ADDRESS_2) &
                   PCI_BASE_ADDRESS_MEM_MASK;

    return bar / PAGE;
}

void qpvrdma_create_uc(QPvrdma *d, uint32_t page)
{
    PvrdmaCmdCreateUc req = { .pfn = qpvrdma_uar_pfn(d) + page };
    PvrdmaRspHandle rsp;

    assert_done(qpvrdma_call(d, CREATE_UC, &req, &rsp));
    g_assert_cmpint(rsp.handle, ==, page);
}

uint32_t qpvrdma_create_pd(QPvrdma *d, uint32_t ctx)
{
    PvrdmaCmdHandle req = { .handle = ctx };
    PvrdmaRspHandle rsp;

    assert_done(qpvrdma_call(d, CREATE_PD, &req, &rsp));
    return rsp.handle;
}

static QPvrdmaMr create_mr(QPvrdma *d, PvrdmaCmdCreateMr *req)
{
    PvrdmaRspCreateMr rsp;

    assert_done(qpvrdma_call(d, CREATE_MR, req, &rsp));
    return (QPvrdmaMr) {
        .handle = rsp.handle,
        .lkey = rsp.lkey,
        .rkey = rsp.rkey,
        .addr = req->start,
    };
}

QPvrdmaMr qpvrdma_get_dma_mr(QPvrdma *d, uint32_t pd)
{
    PvrdmaCmdCreateMr req = {
        .pd = pd,
        .access = RDMA_ACCESS_LOCAL_WRITE,
        .flags = PVRDMA_MR_DMA,
    };

    return create_mr(d, &req);
}

QPvrdmaMr qpvrdma_reg_mr(QPvrdma *d, uint32_t pd, uint64_t start,
                         uint32_t npages, uint32_t access)
{
    QPvrdmaDir dir = qpvrdma_dir(d, npages);
    PvrdmaCmdCreateMr req = {
        .start = start,
        .length = (uint64_t)npages * PAGE - start % PAGE,
        .dir = dir.dir,
        .pd = pd,
        .access = access,
        .nchunks = npages,
    };
    QPvrdmaMr mr = create_mr(d, &req);

    mr.dir = dir;
    return mr;
}

QPvrdmaCq qpvrdma_create_cq(QPvrdma *d, uint32_t ctx, uint32_t cqe)
{
    QPvrdmaDir dir = qpvrdma_dir(d, 1 + DIV_ROUND_UP(cqe * sizeof(PvrdmaCqe),
                                                     PAGE));
    PvrdmaCmdCreateCq req = {
        .dir = dir.dir,
        .ctx = ctx,
        .cqe = cqe,
        .nchunks = dir.npages,
    };
    PvrdmaRspCreateCq rsp;

    assert_done(qpvrdma_call(d, CREATE_CQ, &req, &rsp));
    g_assert_cmpint(rsp.cqe, ==, cqe);
    return (QPvrdmaCq) {
        .handle = rsp.handle,
        .page = ctx,
        .ring = ring_of(&dir, offsetof(PvrdmaStatePage, rx), 1, cqe,
                        sizeof(PvrdmaCqe)),
    };
}

static bool has_handles(QPvrdma *d)
{
    return qpvrdma_read(d, PVRDMA_REG_VERSION) >= PVRDMA_VERSION_HANDLES;
}

uint32_t qpvrdma_try_create_qp(QPvrdma *d, uint32_t page,
                               PvrdmaCmdCreateQp *req, QPvrdmaQp *qp)
{
    uint32_t send_stride, recv_stride, send_pages, recv_pages;
    PvrdmaRspCreateQp rsp;
    QPvrdmaDir dir;
    uint32_t err;

    req->max_send_wr = req->max_send_wr ?: 16;
    req->max_send_sge = req->max_send_sge ?: 2;
    if (!req->is_srq) {
        req->max_recv_wr = req->max_recv_wr ?: 16;
        req->max_recv_sge = req->max_recv_sge ?: 2;
    }
    send_stride = pow2ceil(sizeof(PvrdmaSendWqe) +
                           req->max_send_sge * sizeof(PvrdmaSge));
    recv_stride = pow2ceil(sizeof(PvrdmaRecvWqe) +
                           req->max_recv_sge * sizeof(PvrdmaSge));
    send_pages = DIV_ROUND_UP(req->max_send_wr * send_stride, PAGE);
    recv_pages = DIV_ROUND_UP(req->max_recv_wr * recv_stride, PAGE);
    dir = qpvrdma_dir(d, 1 + send_pages + recv_pages);
    req->dir = req->dir ?: dir.dir;
    req->total_chunks = req->total_chunks ?: dir.npages;
    req->send_chunks = req->send_chunks ?: send_pages;
    err = qpvrdma_call(d, CREATE_QP, req, &rsp);
    if (!err) {
        *qp = (QPvrdmaQp) {
            .handle = has_handles(d) ? rsp.handle : rsp.qpn,
            .qpn = rsp.qpn,
            .page = page,
            .sq = ring_of(&dir, offsetof(PvrdmaStatePage, tx), 1,
                          req->max_send_wr, send_stride),
            .rq = ring_of(&dir, offsetof(PvrdmaStatePage, rx), 1 + send_pages,
                          req->max_recv_wr, recv_stride),
        };
    }
    return err;
}

QPvrdmaQp qpvrdma_create_qp(QPvrdma *d, uint32_t page, uint32_t pd,
                            const QPvrdmaCq *scq, const QPvrdmaCq *rcq,
                            RdmaQpType type)
{
    PvrdmaCmdCreateQp req = {
        .pd = pd,
        .send_cq = scq->handle,
        .recv_cq = rcq->handle,
        .qp_type = type,
    };
    QPvrdmaQp qp = {};

    assert_done(qpvrdma_try_create_qp(d, page, &req, &qp));
    return qp;
}

uint32_t qpvrdma_try_create_srq(QPvrdma *d, uint32_t page,
                                PvrdmaCmdCreateSrq *req, QPvrdmaSrq *srq)
{
    uint32_t stride, ring_pages;
    PvrdmaRspHandle rsp;
    QPvrdmaDir dir;
    uint32_t err;

    req->max_wr = req->max_wr ?: 16;
    req->max_sge = req->max_sge ?: 2;
    stride = pow2ceil(sizeof(PvrdmaRecvWqe) + req->max_sge * sizeof(PvrdmaSge));
    ring_pages = DIV_ROUND_UP(req->max_wr * stride, PAGE);
    /* A provider allocates twice what the ring needs. */
    dir = qpvrdma_dir(d, 1 + 2 * ring_pages);
    req->dir = req->dir ?: dir.dir;
    req->nchunks = req->nchunks ?: dir.npages;
    err = qpvrdma_call(d, CREATE_SRQ, req, &rsp);
    if (!err) {
        *srq = (QPvrdmaSrq) {
            .handle = rsp.handle,
            .page = page,
            .ring = ring_of(&dir, offsetof(PvrdmaStatePage, rx), 1,
                            req->max_wr, stride),
        };
    }
    return err;
}

uint32_t qpvrdma_create_bind(QPvrdma *d, uint32_t index,
                             const uint8_t gid[RDMA_GID_LEN])
{
    PvrdmaCmdCreateBind req = {
        .mtu = 1024,
        .vlan = 0xfff,
        .index = index,
        .gid_type = PVRDMA_GID_TYPE_ROCE_V2,
    };

    memcpy(req.gid, gid, sizeof(req.gid));
    return qpvrdma_cmd(d, PVRDMA_CMD_CREATE_BIND, &req, sizeof(req), NULL, 0);
}

uint8_t qpvrdma_modify_qp(QPvrdma *d, uint32_t handle, uint32_t mask,
                          const PvrdmaQpAttr *attr)
{
    PvrdmaCmdModifyQp req = { .handle = handle, .mask = mask, .attr = *attr };
    PvrdmaRspHead rsp;

    assert_done(qpvrdma_call(d, MODIFY_QP, &req, &rsp));
    return rsp.err;
}

void qpvrdma_query_qp(QPvrdma *d, uint32_t handle, PvrdmaQpAttr *attr)
{
    PvrdmaCmdHandle req = { .handle = handle };
    PvrdmaRspQueryQp rsp;

    assert_done(qpvrdma_call(d, QUERY_QP, &req, &rsp));
    *attr = rsp.attr;
}

/* Rings */

uint64_t qpvrdma_ring_next(QPvrdmaRing *ring)
{
    return ring->elements + (uint64_t)(ring->index & (ring->size - 1)) *
                            ring->stride;
}

void qpvrdma_ring_push(QPvrdma *d, QPvrdmaRing *ring)
{
    ring->index = (ring->index + 1) & (2 * ring->size - 1);
    qtest_writel(d->host->qts, ring->state + offsetof(PvrdmaRingState, tail),
                 ring->index);
}

bool qpvrdma_ring_pop(QPvrdma *d, QPvrdmaRing *ring, void *element)
{
    uint32_t tail = qtest_readl(d->host->qts, ring->state +
                                offsetof(PvrdmaRingState, tail));

    g_assert_cmpint(tail, <, 2 * ring->size);
    if (tail == ring->index) {
        return false;
    }
    qtest_memread(d->host->qts, qpvrdma_ring_next(ring), element,
                  ring->stride);
    ring->index = (ring->index + 1) & (2 * ring->size - 1);
    qtest_writel(d->host->qts, ring->state + offsetof(PvrdmaRingState, head),
                 ring->index);
    return true;
}

uint32_t qpvrdma_ring_head(QPvrdma *d, const QPvrdmaRing *ring)
{
    return qtest_readl(d->host->qts, ring->state +
                       offsetof(PvrdmaRingState, head));
}

void qpvrdma_post_send(QPvrdma *d, QPvrdmaQp *qp, const PvrdmaSendWqe *wqe,
                       const PvrdmaSge *sge)
{
    uint64_t at = qpvrdma_ring_next(&qp->sq);

    qtest_memwrite(d->host->qts, at, wqe, sizeof(*wqe));
    if (wqe->num_sge) {
        qtest_memwrite(d->host->qts, at + sizeof(*wqe), sge,
                       wqe->num_sge * sizeof(*sge));
    }
    qpvrdma_ring_push(d, &qp->sq);
    qpvrdma_ring_doorbell(d, qp->page, PVRDMA_UAR_QP,
                          qp->handle | PVRDMA_UAR_QP_SEND);
}

static void put_recv(QPvrdma *d, QPvrdmaRing *ring, uint64_t wr_id,
                     const PvrdmaSge *sge)
{
    uint64_t at = qpvrdma_ring_next(ring);
    const PvrdmaRecvWqe wqe = { .wr_id = wr_id, .num_sge = 1 };

    qtest_memwrite(d->host->qts, at, &wqe, sizeof(wqe));
    qtest_memwrite(d->host->qts, at + sizeof(wqe), sge, sizeof(*sge));
    qpvrdma_ring_push(d, ring);
}

void qpvrdma_post_srq_recv(QPvrdma *d, QPvrdmaSrq *srq, uint64_t wr_id,
                           const PvrdmaSge *sge)
{
    put_recv(d, &srq->ring, wr_id, sge);
    qpvrdma_ring_doorbell(d, srq->page, PVRDMA_UAR_SRQ,
                          srq->handle | PVRDMA_UAR_SRQ_RECV);
}

void qpvrdma_post_recv(QPvrdma *d, QPvrdmaQp *qp, uint64_t wr_id,
                       const PvrdmaSge *sge)
{
    put_recv(d, &qp->rq, wr_id, sge);
    qpvrdma_ring_doorbell(d, qp->page, PVRDMA_UAR_QP,
                          qp->handle | PVRDMA_UAR_QP_RECV);
}

bool qpvrdma_poll_cq(QPvrdma *d, QPvrdmaCq *cq, PvrdmaCqe *cqe)
{
    return qpvrdma_ring_pop(d, &cq->ring, cqe);
}

PvrdmaCqe qpvrdma_wait_cq(QPvrdma *d, QPvrdmaCq *cq)
{
    PvrdmaCqe cqe;

    qrdma_wait_until(d, qpvrdma_poll_cq(d, cq, &cqe));
    return cqe;
}
