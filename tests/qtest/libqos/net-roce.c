/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A driver of the virtio-net-roce device, for tests, see net-roce.h.
 *
 * Hosts and guests of these tests are little-endian.
 */
#include "qemu/osdep.h"
#include "net-roce.h"
#include "standard-headers/linux/virtio_ids.h"
#include "standard-headers/linux/virtio_pci.h"
#include "standard-headers/linux/virtio_ring.h"

#define FRAME_ROOM 2048
#define WQE_ROOM (sizeof(NetRoceSendWqe) + QROCE_SGES * sizeof(NetRoceSge))
/* Places in the memory of commands */
#define HEAD 0
#define DATA 64
#define REPLY 0xf000
#define CTRL_SIZE 0x10000

#define COMMON(field) offsetof(struct virtio_pci_common_cfg, field)

static QVirtioDevice *vdev_of(QRoce *d)
{
    return &d->pci->vdev;
}

static uint64_t new_mem(QRoce *d, uint64_t size)
{
    uint64_t mem = guest_alloc(&d->host->alloc, size);

    qtest_memset(d->host->qts, mem, 0, size);
    return mem;
}

/* Rings */

static uint32_t stride_of(QRoce *d, uint32_t n)
{
    return n <= NET_ROCE_TX_VQ ? FRAME_ROOM :
           n == NET_ROCE_CTRL_VQ ? 0 :
           n < NET_ROCE_SQ_VQ(d->config.max_rdma_cqs, 0) ? sizeof(NetRoceCqe) :
           WQE_ROOM;
}

static void set_desc(QRoce *d, QRoceRing *ring, uint32_t n, uint64_t addr,
                     uint32_t len, uint16_t flags, uint16_t next)
{
    struct vring_desc desc = { addr, len, flags, next };

    qtest_memwrite(d->host->qts, ring->pci.vq.desc + n * sizeof(desc), &desc,
                   sizeof(desc));
}

/* Make the chain that begins with descriptor @head available. */
static void push(QRoce *d, QRoceRing *ring, uint16_t head)
{
    QTestState *qts = d->host->qts;
    uint64_t avail = ring->pci.vq.avail;

    qtest_writew(qts, avail + offsetof(struct vring_avail, ring) +
                 2 * (ring->posted % ring->pci.vq.size), head);
    ring->posted++;
    qtest_writew(qts, avail + offsetof(struct vring_avail, idx), ring->posted);
    if (!(qtest_readw(qts, ring->pci.vq.used) & VRING_USED_F_NO_NOTIFY)) {
        vdev_of(d)->bus->virtqueue_kick(vdev_of(d), &ring->pci.vq);
    }
}

uint64_t qroce_post(QRoce *d, QRoceRing *ring, const void *bytes, size_t len,
                    bool write)
{
    uint16_t n = ring->posted % ring->pci.vq.size;
    uint64_t at = ring->buf + (uint64_t)n * ring->stride;

    g_assert_cmpint((uint16_t)(ring->posted - ring->used), <,
                    ring->pci.vq.size);
    g_assert_cmpint(len, <=, ring->stride);
    if (bytes) {
        qtest_memwrite(d->host->qts, at, bytes, len);
    }
    set_desc(d, ring, n, at, len, write ? VRING_DESC_F_WRITE : 0, 0);
    push(d, ring, n);
    return at;
}

static bool pop(QRoce *d, QRoceRing *ring, uint16_t head, uint32_t *len)
{
    QTestState *qts = d->host->qts;
    uint64_t used = ring->pci.vq.used;
    struct vring_used_elem elem;

    if (qtest_readw(qts, used + offsetof(struct vring_used, idx)) ==
        ring->used) {
        return false;
    }
    qtest_memread(qts, used + offsetof(struct vring_used, ring) +
                  (ring->used % ring->pci.vq.size) * sizeof(elem), &elem,
                  sizeof(elem));
    g_assert_cmpint(elem.id, ==, head);
    ring->used++;
    if (len) {
        *len = elem.len;
    }
    return true;
}

uint64_t qroce_reap(QRoce *d, QRoceRing *ring, uint32_t *len)
{
    uint16_t n = ring->used % ring->pci.vq.size;

    return pop(d, ring, n, len) ? ring->buf + (uint64_t)n * ring->stride : 0;
}

uint32_t qroce_in_device(QRoce *d, QRoceRing *ring)
{
    while (qroce_reap(d, ring, NULL)) {
        continue;
    }
    return (uint16_t)(ring->posted - ring->used);
}

void qroce_ring_restart(QRoce *d, QRoceRing *ring)
{
    g_assert_cmpint(qtest_readw(d->host->qts, ring->pci.vq.used +
                                offsetof(struct vring_used, idx)), ==, 0);
    qtest_writew(d->host->qts, ring->pci.vq.avail +
                 offsetof(struct vring_avail, idx), 0);
    ring->posted = ring->used = 0;
}

/* The device */

NetRoceConfig qroce_config(QRoce *d)
{
    uint32_t words[sizeof(NetRoceConfig) / 4];
    NetRoceConfig config;

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        words[i] = vdev_of(d)->bus->config_readl(vdev_of(d), 4 * i);
    }
    memcpy(&config, words, sizeof(config));
    return config;
}

QRoce *qroce_open(QRdmaHost *host, int slot)
{
    QPCIAddress addr = { .devfn = QPCI_DEVFN(slot, 0) };
    QRoce *d = g_new0(QRoce, 1);

    d->host = host;
    d->pci = virtio_pci_new(host->bus, &addr);
    g_assert_nonnull(d->pci);
    g_assert_cmpint(d->pci->vdev.device_type, ==, VIRTIO_ID_NET);
    qvirtio_pci_device_enable(d->pci);
    d->config = qroce_config(d);
    d->ctrl = new_mem(d, CTRL_SIZE);
    return d;
}

static void free_rings(QRoce *d)
{
    for (uint32_t n = 0; n < d->n_rings; n++) {
        if (d->rings[n].mem) {
            guest_free(&d->host->alloc, d->rings[n].mem);
        }
    }
    g_clear_pointer(&d->rings, g_free);
    d->n_rings = 0;
}

void qroce_close(QRoce *d)
{
    free_rings(d);
    qvirtio_pci_device_disable(d->pci);
    qvirtio_pci_destructor(&d->pci->obj);
    g_free(d->pci);
    g_free(d);
}

static void common_write(QRoce *d, size_t field, uint16_t value)
{
    qpci_io_writew(d->pci->pdev, d->pci->bar,
                   d->pci->common_cfg_offset + field, value);
}

static uint16_t common_read(QRoce *d, size_t field)
{
    return qpci_io_readw(d->pci->pdev, d->pci->bar,
                         d->pci->common_cfg_offset + field);
}

void qroce_ring_setup(QRoce *d, uint32_t n)
{
    QRoceRing *ring = &d->rings[n];
    QVirtQueue *vq = &ring->pci.vq;
    uint64_t avail, used, buf;

    vdev_of(d)->bus->queue_select(vdev_of(d), n);
    vq->vdev = vdev_of(d);
    vq->index = n;
    vq->size = common_read(d, COMMON(queue_size));
    g_assert_cmpint(vq->size, !=, 0);
    avail = vq->size * sizeof(struct vring_desc);
    used = ROUND_UP(avail + 6 + 2 * vq->size, 64);
    buf = ROUND_UP(used + 6 + 8 * vq->size, 64);
    ring->stride = stride_of(d, n);
    ring->mem = new_mem(d, buf + (uint64_t)vq->size * ring->stride);
    ring->buf = ring->mem + buf;
    vq->desc = ring->mem;
    vq->avail = ring->mem + avail;
    vq->used = ring->mem + used;
    vdev_of(d)->bus->set_queue_address(vdev_of(d), vq);
    ring->pci.notify_offset = d->pci->notify_cfg_offset +
        common_read(d, COMMON(queue_notify_off)) *
        d->pci->notify_off_multiplier;
    common_write(d, COMMON(queue_enable), 1);
}

void qroce_accept(QRoce *d, uint64_t features)
{
    const NetRoceConfig *c = &d->config;

    qvirtio_start_device(vdev_of(d));
    free_rings(d);
    qvirtio_set_features(vdev_of(d), features);
    d->n_rings = NET_ROCE_NUM_VQS(c->max_rdma_cqs, c->max_rdma_qps);
    d->rings = g_new0(QRoceRing, d->n_rings);
}

void qroce_start(QRoce *d, uint64_t features, bool driver_ok)
{
    qroce_accept(d, features);
    for (uint32_t n = 0; n < d->n_rings; n++) {
        qroce_ring_setup(d, n);
    }
    if (driver_ok) {
        qroce_driver_ok(d);
    }
}

void qroce_driver_ok(QRoce *d)
{
    qvirtio_set_driver_ok(vdev_of(d));
}

bool qroce_interrupted(QRoce *d)
{
    return vdev_of(d)->bus->get_queue_isr_status(vdev_of(d),
                                                 &d->rings[0].pci.vq);
}

/* Commands */

uint8_t qroce_cmd_raw(QRoce *d, QRoceCmd *c)
{
    QTestState *qts = d->host->qts;
    QRoceRing *ring = &d->rings[NET_ROCE_CTRL_VQ];
    const uint8_t head[] = { c->class, c->cmd };
    uint8_t ack;

    g_assert_cmpint(c->req_len, <=, REPLY - DATA);
    qtest_memwrite(qts, d->ctrl + HEAD, head, sizeof(head));
    if (c->req_len) {
        qtest_memwrite(qts, d->ctrl + DATA, c->req, c->req_len);
    }
    qtest_memset(qts, d->ctrl + REPLY, 0xa5, 1 + c->rsp_room);
    set_desc(d, ring, 0, d->ctrl + HEAD, sizeof(head), VRING_DESC_F_NEXT,
             c->desc_len ? 1 : 2);
    set_desc(d, ring, 1, d->ctrl + DATA, c->desc_len,
             c->no_ack ? 0 : VRING_DESC_F_NEXT, 2);
    set_desc(d, ring, 2, d->ctrl + REPLY, 1 + c->rsp_room,
             VRING_DESC_F_WRITE, 0);
    push(d, ring, 0);
    qrdma_wait_until(d, pop(d, ring, 0, &c->used_len));
    ack = qtest_readb(qts, d->ctrl + REPLY);
    if (c->rsp_room && c->rsp) {
        qtest_memread(qts, d->ctrl + REPLY + 1, c->rsp, c->rsp_room);
    }
    return ack;
}

uint8_t qroce_cmd(QRoce *d, uint8_t cmd, const void *req, size_t req_len,
                  void *rsp, size_t rsp_len)
{
    QRoceCmd c = {
        .class = NET_ROCE_CLASS,
        .cmd = cmd,
        .req = req,
        .req_len = req_len,
        .desc_len = req_len,
        .rsp = rsp,
        .rsp_room = rsp_len,
    };
    uint8_t ack = qroce_cmd_raw(d, &c);

    g_assert_cmpint(c.used_len, ==, ack == NET_ROCE_ACK_OK ? 1 + rsp_len : 1);
    return ack;
}

uint8_t qroce_id_cmd(QRoce *d, uint8_t cmd, uint32_t id)
{
    return qroce_cmd(d, cmd, &id, sizeof(id), NULL, 0);
}

uint32_t qroce_create_pd(QRoce *d)
{
    NetRoceId rsp;

    assert_ack(qroce_cmd(d, NET_ROCE_CMD_CREATE_PD, NULL, 0, &rsp,
                         sizeof(rsp)));
    return rsp.id;
}

QRoceCq qroce_create_cq(QRoce *d, uint32_t cqe)
{
    NetRoceId req = { cqe }, rsp;
    QRoceCq cq;

    assert_ack(qroce_call(d, CREATE_CQ, &req, &rsp));
    cq = (QRoceCq) {
        .cqn = rsp.id,
        .ring = &d->rings[NET_ROCE_CQ_VQ(rsp.id)],
    };
    for (uint32_t i = 0; i < cqe; i++) {
        qroce_post(d, cq.ring, NULL, sizeof(NetRoceCqe), true);
    }
    return cq;
}

uint8_t qroce_destroy_cq(QRoce *d, QRoceCq *cq)
{
    uint8_t ack = qroce_id_cmd(d, NET_ROCE_CMD_DESTROY_CQ, cq->cqn);

    if (ack == NET_ROCE_ACK_OK) {
        qroce_ring_restart(d, cq->ring);
    }
    return ack;
}

QRoceMr qroce_reg_mr(QRoce *d, uint32_t pdn, uint64_t iova, uint32_t npages,
                     uint32_t access)
{
    QRoceMr mr = {
        .iova = iova,
        .length = (uint64_t)npages * RDMA_PAGE_SIZE - iova % RDMA_PAGE_SIZE,
    };
    NetRoceRegUserMr head = {
        .pdn = pdn,
        .access = access,
        .virt_addr = iova,
        .length = mr.length,
        .npages = npages,
    };
    size_t len = sizeof(head) + npages * sizeof(uint64_t);
    g_autofree uint8_t *req = g_malloc(len);
    uint64_t pages = new_mem(d, (uint64_t)npages * RDMA_PAGE_SIZE);

    memcpy(req, &head, sizeof(head));
    for (uint32_t i = 0; i < npages; i++) {
        uint64_t page = pages + (uint64_t)i * RDMA_PAGE_SIZE;

        memcpy(req + sizeof(head) + i * sizeof(page), &page, sizeof(page));
    }
    mr.mem = pages + iova % RDMA_PAGE_SIZE;
    assert_ack(qroce_cmd(d, NET_ROCE_CMD_REG_USER_MR, req, len, &mr.nums,
                         sizeof(mr.nums)));
    return mr;
}

uint8_t qroce_try_create_qp(QRoce *d, NetRoceCreateQp *req, QRoceQp *qp)
{
    uint32_t max_cqs = d->config.max_rdma_cqs;
    NetRoceCap *cap = &req->cap;
    NetRoceId rsp;
    uint8_t ack;

    cap->max_send_wr = cap->max_send_wr ?: 16;
    cap->max_recv_wr = cap->max_recv_wr ?: 16;
    cap->max_send_sge = cap->max_send_sge ?: QROCE_SGES;
    cap->max_recv_sge = cap->max_recv_sge ?: QROCE_SGES;
    cap->max_inline_data = cap->max_inline_data ?: NET_ROCE_MAX_INLINE;
    ack = qroce_call(d, CREATE_QP, req, &rsp);
    if (ack == NET_ROCE_ACK_OK) {
        *qp = (QRoceQp) {
            .qpn = rsp.id,
            .sq = &d->rings[NET_ROCE_SQ_VQ(max_cqs, rsp.id)],
            .rq = &d->rings[NET_ROCE_RQ_VQ(max_cqs, rsp.id)],
        };
    }
    return ack;
}

QRoceQp qroce_create_qp(QRoce *d, uint32_t pdn, const QRoceCq *scq,
                        const QRoceCq *rcq, RdmaQpType type)
{
    NetRoceCreateQp req = {
        .pdn = pdn,
        .qp_type = type,
        .send_cqn = scq->cqn,
        .recv_cqn = rcq->cqn,
    };
    QRoceQp qp = {};

    assert_ack(qroce_try_create_qp(d, &req, &qp));
    return qp;
}

uint8_t qroce_destroy_qp(QRoce *d, QRoceQp *qp)
{
    uint8_t ack = qroce_id_cmd(d, NET_ROCE_CMD_DESTROY_QP, qp->qpn);

    if (ack == NET_ROCE_ACK_OK) {
        qroce_ring_restart(d, qp->sq);
        qroce_ring_restart(d, qp->rq);
    }
    return ack;
}

uint8_t qroce_modify_qp(QRoce *d, uint32_t qpn, uint32_t mask,
                        const NetRoceModifyQp *attr)
{
    NetRoceModifyQp req = *attr;

    req.qpn = qpn;
    req.attr_mask = mask;
    return qroce_call_void(d, MODIFY_QP, &req);
}

NetRoceQpAttr qroce_query_qp(QRoce *d, uint32_t qpn)
{
    NetRoceQueryQp req = { .qpn = qpn };
    NetRoceQpAttr rsp;

    assert_ack(qroce_call(d, QUERY_QP, &req, &rsp));
    return rsp;
}

uint8_t qroce_add_gid(QRoce *d, uint16_t index, const uint8_t *gid)
{
    NetRoceAddGid req = { .index = index };

    memcpy(req.gid, gid, sizeof(req.gid));
    return qroce_call_void(d, ADD_GID, &req);
}

uint32_t qroce_create_ah(QRoce *d, uint32_t pdn, const NetRoceAv *av)
{
    NetRoceCreateAh req = { .pdn = pdn, .av = *av };
    NetRoceId rsp;

    assert_ack(qroce_call(d, CREATE_AH, &req, &rsp));
    return rsp.id;
}

uint8_t qroce_destroy_ah(QRoce *d, uint32_t pdn, uint32_t ah)
{
    NetRoceDestroyAh req = { .pdn = pdn, .ah = ah };

    return qroce_call_void(d, DESTROY_AH, &req);
}

/* Work */

void qroce_post_send(QRoce *d, QRoceQp *qp, const NetRoceSendWqe *wqe,
                     const NetRoceSge *sge, uint32_t num_sge)
{
    uint8_t bytes[WQE_ROOM];

    g_assert_cmpint(num_sge, <=, QROCE_SGES);
    memcpy(bytes, wqe, sizeof(*wqe));
    if (num_sge) {
        memcpy(bytes + sizeof(*wqe), sge, num_sge * sizeof(*sge));
    }
    qroce_in_device(d, qp->sq);
    qroce_post(d, qp->sq, bytes, sizeof(*wqe) + num_sge * sizeof(*sge), false);
}

void qroce_post_recv(QRoce *d, QRoceQp *qp, uint64_t wr_id,
                     const NetRoceSge *sge, uint32_t num_sge)
{
    NetRoceRecvWqe wqe = { .wr_id = wr_id, .num_sge = num_sge };
    uint8_t bytes[WQE_ROOM];

    g_assert_cmpint(num_sge, <=, QROCE_SGES);
    memcpy(bytes, &wqe, sizeof(wqe));
    if (num_sge) {
        memcpy(bytes + sizeof(wqe), sge, num_sge * sizeof(*sge));
    }
    qroce_in_device(d, qp->rq);
    qroce_post(d, qp->rq, bytes, sizeof(wqe) + num_sge * sizeof(*sge), false);
}

bool qroce_poll_cq(QRoce *d, QRoceCq *cq, NetRoceCqe *cqe)
{
    uint32_t len;
    uint64_t at = qroce_reap(d, cq->ring, &len);

    if (!at) {
        return false;
    }
    g_assert_cmpint(len, ==, sizeof(*cqe));
    qtest_memread(d->host->qts, at, cqe, sizeof(*cqe));
    if (!cq->no_refill) {
        qroce_post(d, cq->ring, NULL, sizeof(*cqe), true);
    }
    return true;
}

NetRoceCqe qroce_wait_cq(QRoce *d, QRoceCq *cq)
{
    NetRoceCqe cqe = {};

    qrdma_wait_until(d, qroce_poll_cq(d, cq, &cqe));
    return cqe;
}
