/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma client for tests: control commands.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "virtio-rdma.h"

#define CTRL_ROOM 4096
/* Bytes of the response buffer before the command */
#define CTRL_FILL 0xa5
/* Pages of qrdma_enqueue_long(), and entries of a table */
#define LONG_LIST (8 * 1024 * 1024 - 1023)
#define ENTRIES 512

static unsigned split_buffer(QRdmaDesc *desc, uint64_t addr, size_t len,
                             unsigned split, bool write)
{
    unsigned n = 0;

    for (size_t done = 0; done < len; n++) {
        size_t part = split ? MIN(split, len - done) : len;

        desc[n] = (QRdmaDesc) { addr + done, part, write };
        done += part;
    }
    return n;
}

uint8_t qrdma_cmd_raw(QRdma *d, QRdmaCmd *c)
{
    QRdmaRing *ring = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);
    g_autofree QRdmaDesc *desc = g_new(QRdmaDesc, 2 * CTRL_ROOM);
    g_autofree uint8_t *bytes = g_malloc(CTRL_ROOM);
    size_t rsp_cap = d->demo ? qrdma_demo_response_size(c->cmd, c->rsp_cap)
                             : c->rsp_cap;
    size_t out_len = c->no_cmd ? 0 : 1 + c->req_len;
    size_t in_len = c->no_status ? 0 : 1 + rsp_cap;
    unsigned n;
    uint16_t head, got;
    uint32_t used_len;

    g_assert_cmpuint(out_len, <=, CTRL_ROOM);
    g_assert_cmpuint(in_len + 16, <=, CTRL_ROOM);
    bytes[0] = c->cmd;
    if (out_len && d->demo) {
        out_len = 1 + qrdma_demo_request(c->cmd, c->req, c->req_len, bytes + 1);
    } else if (out_len > 1) {
        memcpy(bytes + 1, c->req, c->req_len);
    }
    qrdma_write(d, d->ctrl_req, bytes, out_len);
    qrdma_memset(d, d->ctrl_rsp, CTRL_FILL, in_len + 16);

    n = split_buffer(desc, d->ctrl_req, out_len, c->out_split, false);
    n += split_buffer(desc + n, d->ctrl_rsp, in_len, c->in_split, true);
    head = qrdma_ring_add(ring, desc, n);
    qrdma_ring_kick(ring);
    if (d->hasty) {
        return 0xff;
    }
    qrdma_wait_until(d, qrdma_ring_get(ring, &got, &used_len));
    g_assert_cmpuint(got, ==, head);
    g_assert_cmpuint(used_len, <=, in_len);
    c->used_len = used_len;

    qrdma_read(d, d->ctrl_rsp, bytes, in_len + 16);
    for (size_t i = used_len; i < in_len + 16; i++) {
        /* the device writes nothing after the length that it reports */
        g_assert_cmphex(bytes[i], ==, CTRL_FILL);
    }
    if (!in_len) {
        return 0xff;
    }
    g_assert_cmpuint(used_len, >=, 1);
    if (c->rsp && d->demo) {
        c->used_len = 1 + qrdma_demo_response(c->cmd, bytes + 1, used_len - 1,
                                              c->rsp);
    } else if (c->rsp) {
        memcpy(c->rsp, bytes + 1, used_len - 1);
    }
    if (bytes[0] != VIRTIO_RDMA_S_OK) {
        g_assert_cmpuint(used_len, ==, 1);
    }
    return bytes[0];
}

uint8_t qrdma_cmd(QRdma *d, uint8_t cmd, const void *req, size_t req_len,
                  void *rsp, size_t rsp_len)
{
    QRdmaCmd c = {
        .cmd = cmd,
        .req = req,
        .req_len = req_len,
        .rsp = rsp,
        .rsp_cap = rsp_len,
    };
    uint8_t status = qrdma_cmd_raw(d, &c);

    if (status == VIRTIO_RDMA_S_OK) {
        g_assert_cmpuint(c.used_len, ==, 1 + rsp_len);
    }
    return status;
}

QRdmaWaiting qrdma_enqueue(QRdma *d, uint8_t cmd, const void *req, size_t len,
                           size_t rsp_len)
{
    uint64_t mem = qrdma_alloc(d, 4096);
    QRdmaWaiting w = { d, mem, mem + 2048 };
    QRdmaDesc desc[] = { { mem, 1 + len }, { w.rsp, 1 + rsp_len, true } };

    qtest_writeb(d->host->qts, mem, cmd);
    qtest_writeb(d->host->qts, w.rsp, QRDMA_NO_STATUS);
    qrdma_write(d, mem + 1, req, len);
    qrdma_ring_add(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ), desc, 2);
    return w;
}

QRdmaWaiting qrdma_enqueue_long(QRdmaPd *pd)
{
    QRdma *d = pd->dev;
    uint64_t table = qrdma_alloc(d, 4096);
    uint64_t le[ENTRIES];
    struct virtio_rdma_reg_user_mr_req req = {
        .pdn = cpu_to_le32(pd->pdn),
        .access = cpu_to_le32(RDMA_ACCESS_LOCAL_WRITE),
        .length = cpu_to_le64(LONG_LIST * 4096ull),
        .pages = cpu_to_le64(qrdma_dma(d, table)),
        .npages = cpu_to_le32(LONG_LIST),
        .levels = cpu_to_le32(3),
    };

    for (int i = 0; i < ENTRIES; i++) {
        le[i] = req.pages;
    }
    qrdma_write(d, table, le, sizeof(le));
    return qrdma_enqueue(d, VIRTIO_RDMA_CMD_REG_USER_MR, &req, sizeof(req),
                         sizeof(struct virtio_rdma_mr_rsp));
}

uint8_t qrdma_status_of(const QRdmaWaiting *w)
{
    return qtest_readb(w->d->host->qts, w->rsp);
}

void qrdma_reap_commands(QRdma *d, unsigned n)
{
    QRdmaRing *ring = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);
    uint16_t head;
    uint32_t len;

    while (n--) {
        qrdma_wait_until(d, qrdma_ring_get(ring, &head, &len));
    }
}

uint8_t qrdma_query_port(QRdma *d, uint8_t port,
                         struct virtio_rdma_query_port_rsp *rsp)
{
    return qrdma_call(d, QUERY_PORT, &port, rsp);
}

uint8_t qrdma_query_pkey(QRdma *d, uint32_t port, uint16_t index,
                         uint16_t *pkey)
{
    struct virtio_rdma_query_pkey_req req = {
        .port = cpu_to_le32(port), .index = cpu_to_le16(index),
    };
    struct virtio_rdma_query_pkey_rsp rsp = {};
    uint8_t status = qrdma_call(d, QUERY_PKEY, &req, &rsp);

    *pkey = le16_to_cpu(rsp.pkey);
    return status;
}

uint8_t qrdma_add_gid_full(QRdma *d, uint16_t index, const uint8_t *gid,
                           uint32_t type, uint32_t port)
{
    struct virtio_rdma_add_gid_req req = {
        .gid_type = cpu_to_le32(type),
        .index = cpu_to_le16(index),
        .port_num = cpu_to_le32(port),
    };

    memcpy(req.gid, gid, sizeof(req.gid));
    return qrdma_call_void(d, ADD_GID, &req);
}

uint8_t qrdma_add_gid(QRdma *d, uint16_t index, const uint8_t *gid)
{
    return qrdma_add_gid_full(d, index, gid, VIRTIO_RDMA_GID_TYPE_ROCE_V2, 1);
}

uint8_t qrdma_add_gid_vlan(QRdma *d, uint16_t index, const uint8_t *gid,
                           uint16_t vlan)
{
    struct virtio_rdma_add_gid_req req = {
        .gid_type = cpu_to_le32(VIRTIO_RDMA_GID_TYPE_ROCE_V2),
        .index = cpu_to_le16(index),
        .port_num = cpu_to_le32(1),
        .vlan = cpu_to_le16(vlan),
    };

    memcpy(req.gid, gid, sizeof(req.gid));
    return qrdma_call_void(d, ADD_GID, &req);
}

uint8_t qrdma_query_counters(QRdma *d, uint8_t port, uint64_t *values)
{
    uint8_t status = qrdma_cmd(d, VIRTIO_RDMA_CMD_QUERY_COUNTERS,
                               &port, sizeof(port), values,
                               VIRTIO_RDMA_NUM_COUNTERS * sizeof(*values));

    for (int i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++) {
        values[i] = le64_to_cpu(values[i]);
    }
    return status;
}

uint64_t qrdma_counter(QRdma *d, unsigned counter)
{
    uint64_t values[VIRTIO_RDMA_NUM_COUNTERS];

    assert_ok(qrdma_query_counters(d, 1, values));
    return values[counter];
}

uint8_t qrdma_query_qp_counters(QRdma *d, uint32_t n, const uint32_t *qpns,
                                uint64_t *values)
{
    struct virtio_rdma_query_qp_counters_req req = {
        .num_qps = cpu_to_le32(n),
    };
    uint8_t status;

    for (uint32_t i = 0; i < MIN(n, VIRTIO_RDMA_MAX_COUNTER_QPS); i++) {
        req.qpn[i] = cpu_to_le32(qpns[i]);
    }
    status = qrdma_cmd(d, VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS, &req, sizeof(req),
                       values, VIRTIO_RDMA_NUM_COUNTERS * sizeof(*values));
    for (int i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++) {
        values[i] = le64_to_cpu(values[i]);
    }
    return status;
}

uint8_t qrdma_del_gid(QRdma *d, uint16_t index, uint32_t port)
{
    struct virtio_rdma_del_gid_req req = {
        .index = cpu_to_le16(index), .port_num = cpu_to_le32(port),
    };

    return qrdma_call_void(d, DEL_GID, &req);
}

/* GID @index of the host's RDMA device; a double has none in sysfs. */
static void host_gid(int index, uint8_t gid[RDMA_GID_LEN])
{
    g_autofree char *path =
        g_strdup_printf("/sys/class/infiniband/%s/ports/1/gids/%d",
                        qrdma_ibdev(), index);
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL)) {
        return;
    }
    g_assert_cmpint(inet_pton(AF_INET6, g_strstrip(text), gid), ==, 1);
}

void qrdma_setup_gids(QRdma *d, uint8_t id)
{
    const uint8_t gids[2][RDMA_GID_LEN] = {
        { 0xfe, 0x80, [8] = 0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, id },
        { [10] = 0xff, 0xff, 10, 0, 0, id },
    };

    QEMU_BUILD_BUG_ON(sizeof(gids) != sizeof(d->gid));
    memcpy(d->gid, gids, sizeof(gids));
    for (int i = 0; i < ARRAY_SIZE(gids); i++) {
        if (qrdma_ibdev()) {
            host_gid(i, d->gid[i]);
        }
        assert_ok(qrdma_add_gid(d, i, d->gid[i]));
    }
}

uint8_t qrdma_destroy(QRdma *d, uint8_t cmd, uint32_t number)
{
    uint32_t req = cpu_to_le32(number);

    return qrdma_cmd(d, cmd, &req, sizeof(req), NULL, 0);
}

uint8_t qrdma_try_alloc_pd(QRdma *d, uint32_t *pdn)
{
    struct virtio_rdma_pdn rsp = {};
    uint8_t status = qrdma_cmd(d, VIRTIO_RDMA_CMD_CREATE_PD, NULL, 0,
                               &rsp, sizeof(rsp));

    *pdn = le32_to_cpu(rsp.pdn);
    return status;
}

QRdmaPd *qrdma_alloc_pd(QRdma *d)
{
    QRdmaPd *pd = qrdma_own(d, sizeof(*pd));

    pd->dev = d;
    assert_ok(qrdma_try_alloc_pd(d, &pd->pdn));
    return pd;
}

uint8_t qrdma_dealloc_pd(QRdmaPd *pd)
{
    return qrdma_destroy(pd->dev, VIRTIO_RDMA_CMD_DESTROY_PD, pd->pdn);
}

uint8_t qrdma_try_create_cq(QRdma *d, uint32_t cqe, uint32_t *cqn)
{
    struct virtio_rdma_create_cq_req req = { .cqe = cpu_to_le32(cqe) };
    struct virtio_rdma_cqn rsp = {};
    uint8_t status = qrdma_cmd(d, VIRTIO_RDMA_CMD_CREATE_CQ, &req,
                               offsetof(struct virtio_rdma_create_cq_req,
                                        flags), &rsp, sizeof(rsp));

    *cqn = le32_to_cpu(rsp.cqn);
    return status;
}

QRdmaCq *qrdma_create_cq(QRdma *d, uint32_t cqe)
{
    QRdmaCq *cq;

    if (qrdma_has(d, QRDMA_DIRECT_CQS)) {
        return qrdma_create_direct_cq(d, cqe, NULL);
    }
    cq = qrdma_own(d, sizeof(*cq));
    cq->dev = d;
    cq->cqe = cqe;
    assert_ok(qrdma_try_create_cq(d, cqe, &cq->cqn));
    g_assert_cmpuint(cq->cqn, <, d->max_cq);
    cq->ring = qrdma_ring(d, VIRTIO_RDMA_CQ_VQ(cq->cqn));
    cq->buf = qrdma_alloc(d, (uint64_t)cq->ring->pci.vq.size * d->cqe_size);
    for (uint32_t i = 0; i < MIN(cqe, cq->ring->pci.vq.size); i++) {
        QRdmaDesc desc = {
            cq->buf + cq->ring->free_head * d->cqe_size, d->cqe_size, true,
        };

        qrdma_ring_add(cq->ring, &desc, 1);
    }
    return cq;
}

uint8_t qrdma_destroy_cq(QRdmaCq *cq)
{
    uint8_t status = qrdma_destroy(cq->dev, VIRTIO_RDMA_CMD_DESTROY_CQ,
                                   cq->cqn);

    if (status == VIRTIO_RDMA_S_OK && cq->ring) {
        qrdma_ring_renew(cq->ring);
    }
    return status;
}

uint8_t qrdma_req_notify_cq(QRdmaCq *cq, uint32_t flags)
{
    struct virtio_rdma_req_notify_cq_req req = {
        .cqn = cpu_to_le32(cq->cqn), .flags = cpu_to_le32(flags),
    };

    return qrdma_call_void(cq->dev, REQ_NOTIFY_CQ, &req);
}

uint8_t qrdma_resize_cq(QRdmaCq *cq, uint32_t cqe, uint32_t used)
{
    struct virtio_rdma_resize_cq_req req = {
        .cqn = cpu_to_le32(cq->cqn),
        .cqe = cpu_to_le32(cqe),
        .used = cpu_to_le32(used),
    };

    return qrdma_cmd(cq->dev, VIRTIO_RDMA_CMD_RESIZE_CQ, &req,
                     offsetof(struct virtio_rdma_resize_cq_req, queue_pages),
                     NULL, 0);
}

static bool host_numbers(const QRdma *d)
{
    return qrdma_has(d, QRDMA_F(VIRTIO_RDMA_F_HOST_NUMBERS));
}

size_t qrdma_create_qp_rsp_size(const QRdma *d)
{
    return host_numbers(d) ? sizeof(struct virtio_rdma_create_qp_rsp)
                           : sizeof(struct virtio_rdma_qpn);
}

static void encode_create_qp(const RdmaQpInitAttr *init,
                             struct virtio_rdma_create_qp_req *req)
{
    *req = (struct virtio_rdma_create_qp_req) {
        .pdn = cpu_to_le32(init->pdn),
        .qp_type = init->qp_type,
        .sq_sig_type = init->sq_sig_all ? VIRTIO_RDMA_SIGNAL_ALL_WR :
                                          VIRTIO_RDMA_SIGNAL_REQ_WR,
        .max_send_wr = cpu_to_le32(init->cap.max_send_wr),
        .max_send_sge = cpu_to_le32(init->cap.max_send_sge),
        .send_cqn = cpu_to_le32(init->send_cqn),
        .max_recv_wr = cpu_to_le32(init->cap.max_recv_wr),
        .max_recv_sge = cpu_to_le32(init->cap.max_recv_sge),
        .recv_cqn = cpu_to_le32(init->recv_cqn),
        .max_inline_data = cpu_to_le32(init->cap.max_inline_data),
        .flags = cpu_to_le32(
            (init->has_srq ? VIRTIO_RDMA_QP_SRQ : 0) |
            (init->block_mcast_loopback ? VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK
                                        : 0)),
        .srqn = cpu_to_le32(init->srqn),
    };
}

static uint8_t send_create_qp(QRdma *d,
                              const struct virtio_rdma_create_qp_req *req,
                              uint32_t *qpn, uint32_t *wire_qpn)
{
    struct virtio_rdma_create_qp_rsp rsp = {};
    uint8_t status = qrdma_cmd(d, VIRTIO_RDMA_CMD_CREATE_QP, req, sizeof(*req),
                               &rsp, qrdma_create_qp_rsp_size(d));

    *qpn = le32_to_cpu(rsp.qpn);
    *wire_qpn = host_numbers(d) ? le32_to_cpu(rsp.wire_qpn) : *qpn;
    return status;
}

uint8_t qrdma_try_create_qp_nums(QRdma *d, const RdmaQpInitAttr *init,
                                 uint32_t *qpn, uint32_t *wire_qpn)
{
    struct virtio_rdma_create_qp_req req;

    encode_create_qp(init, &req);
    return send_create_qp(d, &req, qpn, wire_qpn);
}

uint8_t qrdma_try_create_qp(QRdma *d, const RdmaQpInitAttr *init,
                            uint32_t *qpn)
{
    uint32_t wire_qpn;

    return qrdma_try_create_qp_nums(d, init, qpn, &wire_qpn);
}

static void wq_init(QRdma *d, QRdmaWq *wq, uint32_t index)
{
    wq->ring = qrdma_ring(d, index);
    wq->buf = qrdma_alloc(d, (uint64_t)wq->ring->pci.vq.size *
                             QRDMA_WQE_ROOM);
}

static QRdmaQp *describe_qp(QRdmaPd *pd, QRdmaCq *send_cq, QRdmaCq *recv_cq,
                            const RdmaQpInitAttr *init, bool direct,
                            struct virtio_rdma_create_qp_req *req)
{
    QRdmaQp *qp = qrdma_own(pd->dev, sizeof(*qp));
    RdmaQpInitAttr full = *init;

    full.pdn = pd->pdn;
    full.send_cqn = send_cq->cqn;
    full.recv_cqn = recv_cq->cqn;
    qp->pd = pd;
    qp->dev = pd->dev;
    qp->type = init->qp_type;
    qp->send_cq = send_cq;
    qp->recv_cq = recv_cq;
    encode_create_qp(&full, req);
    if (direct) {
        qrdma_direct_init(qp, full.has_srq, req);
    }
    return qp;
}

static RdmaQpInitAttr usual_init(const QRdma *d, RdmaQpType type)
{
    return (RdmaQpInitAttr) {
        .qp_type = type,
        .cap = {
            .max_send_wr = MIN(32, d->ring_size),
            .max_recv_wr = MIN(32, d->ring_size),
            .max_send_sge = 4,
            .max_recv_sge = 4,
            .max_inline_data = 128,
        },
    };
}

QRdmaQp *qrdma_describe_qp(QRdmaPd *pd, QRdmaCq *cq,
                           struct virtio_rdma_create_qp_req *req)
{
    const RdmaQpInitAttr init = usual_init(pd->dev, RDMA_QPT_RC);

    return describe_qp(pd, cq, cq, &init, true, req);
}

uint8_t qrdma_create_described_qp(QRdmaQp *qp,
                                  const struct virtio_rdma_create_qp_req *req)
{
    uint8_t status = send_create_qp(qp->dev, req, &qp->qpn, &qp->wire_qpn);

    qp->sq.bell = qp->rq.bell = qp->qpn;
    return status;
}

QRdmaQp *qrdma_create_qp_attr(QRdmaPd *pd, QRdmaCq *send_cq,
                              QRdmaCq *recv_cq, const RdmaQpInitAttr *init)
{
    QRdma *d = pd->dev;
    bool direct = qrdma_has(d, QRDMA_DIRECT_QPS);
    struct virtio_rdma_create_qp_req req;
    QRdmaQp *qp = describe_qp(pd, send_cq, recv_cq, init, direct, &req);

    assert_ok(qrdma_create_described_qp(qp, &req));
    if (qp->type == RDMA_QPT_GSI) {
        g_assert_cmpuint(qp->qpn, ==, RDMA_QPN_GSI);
    } else {
        g_assert_cmpuint(qp->qpn, >=, 2);
        g_assert_cmpuint(qp->qpn, <, direct ? d->max_qp_direct : d->max_qp);
    }
    if (!direct) {
        wq_init(d, &qp->sq, VIRTIO_RDMA_SQ_VQ(d->max_cq, qp->qpn));
        wq_init(d, &qp->rq, VIRTIO_RDMA_RQ_VQ(d->max_cq, qp->qpn));
    }
    return qp;
}

QRdmaQp *qrdma_create_qp(QRdmaPd *pd, QRdmaCq *send_cq, QRdmaCq *recv_cq,
                         RdmaQpType type)
{
    const RdmaQpInitAttr init = usual_init(pd->dev, type);

    return qrdma_create_qp_attr(pd, send_cq, recv_cq, &init);
}

/* Both ways: a second swap restores the bytes. */
#define COPY_AH(out, in) do { \
    memcpy((out)->dgid, (in)->dgid, sizeof((out)->dgid)); \
    (out)->flow_label = cpu_to_le32((in)->flow_label); \
    (out)->sgid_index = (in)->sgid_index; \
    (out)->hop_limit = (in)->hop_limit; \
    (out)->traffic_class = (in)->traffic_class; \
    (out)->sl = (in)->sl; \
    (out)->static_rate = (in)->static_rate; \
    (out)->port_num = (in)->port_num; \
    (out)->ah_flags = (in)->ah_flags; \
    memcpy((out)->dmac, (in)->dmac, sizeof((out)->dmac)); \
} while (0)

#define COPY_QP_ATTR(out, in) do { \
    *(out) = (typeof(*(out))) { \
        .qp_state = (in)->qp_state, \
        .cur_qp_state = (in)->cur_qp_state, \
        .path_mtu = (in)->path_mtu, \
        .path_mig_state = (in)->path_mig_state, \
        .qkey = cpu_to_le32((in)->qkey), \
        .rq_psn = cpu_to_le32((in)->rq_psn), \
        .sq_psn = cpu_to_le32((in)->sq_psn), \
        .dest_qp_num = cpu_to_le32((in)->dest_qp_num), \
        .qp_access_flags = cpu_to_le32((in)->qp_access_flags), \
        .pkey_index = cpu_to_le16((in)->pkey_index), \
        .alt_pkey_index = cpu_to_le16((in)->alt_pkey_index), \
        .en_sqd_async_notify = (in)->en_sqd_async_notify, \
        .sq_draining = (in)->sq_draining, \
        .max_rd_atomic = (in)->max_rd_atomic, \
        .max_dest_rd_atomic = (in)->max_dest_rd_atomic, \
        .min_rnr_timer = (in)->min_rnr_timer, \
        .port_num = (in)->port_num, \
        .timeout = (in)->timeout, \
        .retry_cnt = (in)->retry_cnt, \
        .rnr_retry = (in)->rnr_retry, \
        .alt_port_num = (in)->alt_port_num, \
        .alt_timeout = (in)->alt_timeout, \
        .rate_limit = cpu_to_le32((in)->rate_limit), \
        .cap = { \
            .max_send_wr = cpu_to_le32((in)->cap.max_send_wr), \
            .max_recv_wr = cpu_to_le32((in)->cap.max_recv_wr), \
            .max_send_sge = cpu_to_le32((in)->cap.max_send_sge), \
            .max_recv_sge = cpu_to_le32((in)->cap.max_recv_sge), \
            .max_inline_data = cpu_to_le32((in)->cap.max_inline_data), \
        }, \
    }; \
    COPY_AH(&(out)->ah_attr, &(in)->ah_attr); \
    COPY_AH(&(out)->alt_ah_attr, &(in)->alt_ah_attr); \
} while (0)

void qrdma_encode_qp_attr(struct virtio_rdma_qp_attr *out,
                          const RdmaQpAttr *in)
{
    COPY_QP_ATTR(out, in);
}

uint8_t qrdma_modify_qp(QRdmaQp *qp, uint32_t mask, const RdmaQpAttr *attr)
{
    struct virtio_rdma_modify_qp_req req = {
        .qpn = cpu_to_le32(qp->qpn), .attr_mask = cpu_to_le32(mask),
    };

    qrdma_encode_qp_attr(&req.attr, attr);
    return qrdma_call_void(qp->dev, MODIFY_QP, &req);
}

uint8_t qrdma_modify_qp_state(QRdmaQp *qp, RdmaQpState state)
{
    RdmaQpAttr attr = { .qp_state = state };

    return qrdma_modify_qp(qp, RDMA_QP_STATE, &attr);
}

uint8_t qrdma_query_qp(QRdmaQp *qp, RdmaQpAttr *attr)
{
    struct virtio_rdma_query_qp_req req = {
        .qpn = cpu_to_le32(qp->qpn), .attr_mask = cpu_to_le32(UINT32_MAX),
    };
    struct virtio_rdma_qp_attr rsp = {};
    uint8_t status = qrdma_call(qp->dev, QUERY_QP, &req, &rsp);

    COPY_QP_ATTR(attr, &rsp);
    return status;
}

RdmaQpState qrdma_qp_state(QRdmaQp *qp)
{
    RdmaQpAttr attr;

    assert_ok(qrdma_query_qp(qp, &attr));
    return attr.qp_state;
}

uint8_t qrdma_destroy_qp(QRdmaQp *qp)
{
    uint8_t status = qrdma_destroy(qp->dev, VIRTIO_RDMA_CMD_DESTROY_QP,
                                   qp->qpn);

    if (status == VIRTIO_RDMA_S_OK && qp->sq.ring) {
        qrdma_ring_renew(qp->sq.ring);
        qrdma_ring_renew(qp->rq.ring);
    }
    return status;
}
