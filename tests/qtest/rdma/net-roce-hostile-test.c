/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-net-roce: drivers that break the rules. */
#include "qemu/osdep.h"
#include "net-roce-test.h"
#include "standard-headers/linux/virtio_ring.h"

/* The bytes of each command besides its head, and of its reply besides ACK */
static const struct {
    uint16_t req;
    uint16_t rsp;
} sizes[NET_ROCE_NUM_CMDS] = {
    [NET_ROCE_CMD_QUERY_DEVICE] = { 0, sizeof(NetRoceDevice) },
    [NET_ROCE_CMD_QUERY_PORT] = { 0, sizeof(NetRocePort) },
    [NET_ROCE_CMD_CREATE_CQ] = { sizeof(NetRoceId), sizeof(NetRoceId) },
    [NET_ROCE_CMD_DESTROY_CQ] = { sizeof(NetRoceId) },
    [NET_ROCE_CMD_CREATE_PD] = { 0, sizeof(NetRoceId) },
    [NET_ROCE_CMD_DESTROY_PD] = { sizeof(NetRoceId) },
    [NET_ROCE_CMD_GET_DMA_MR] = { sizeof(NetRoceGetDmaMr), sizeof(NetRoceMr) },
    [NET_ROCE_CMD_REG_USER_MR] = { sizeof(NetRoceRegUserMr),
                                   sizeof(NetRoceMr) },
    [NET_ROCE_CMD_DEREG_MR] = { sizeof(NetRoceId) },
    [NET_ROCE_CMD_CREATE_QP] = { sizeof(NetRoceCreateQp), sizeof(NetRoceId) },
    [NET_ROCE_CMD_MODIFY_QP] = { sizeof(NetRoceModifyQp) },
    [NET_ROCE_CMD_QUERY_QP] = { sizeof(NetRoceQueryQp),
                                sizeof(NetRoceQpAttr) },
    [NET_ROCE_CMD_DESTROY_QP] = { sizeof(NetRoceId) },
    [NET_ROCE_CMD_CREATE_AH] = { sizeof(NetRoceCreateAh), sizeof(NetRoceId) },
    [NET_ROCE_CMD_DESTROY_AH] = { sizeof(NetRoceDestroyAh) },
    [NET_ROCE_CMD_ADD_GID] = { sizeof(NetRoceAddGid) },
    [NET_ROCE_CMD_DEL_GID] = { sizeof(NetRoceDelGid) },
    [NET_ROCE_CMD_REQ_NOTIFY_CQ] = { sizeof(NetRoceReqNotifyCq) },
};

static uint8_t raw(QRoce *d, uint8_t cmd, size_t len, size_t room)
{
    static const uint8_t zeros[256];
    QRoceCmd c = {
        .class = NET_ROCE_CLASS, .cmd = cmd, .req = zeros, .req_len = len,
        .desc_len = len, .rsp_room = room,
    };
    uint8_t ack = qroce_cmd_raw(d, &c);

    if (ack != NET_ROCE_ACK_OK) {
        g_assert_cmpint(c.used_len, ==, 1);
    }
    return ack;
}

/* Each command with a byte less than it needs, and unknown commands */
static void test_short(void)
{
    g_autoptr(QRoce) d = nr_alone();
    QRoceCmd no_ack = {
        .class = NET_ROCE_CLASS, .cmd = NET_ROCE_CMD_CREATE_PD, .req = &no_ack,
        .req_len = 8, .desc_len = 8, .no_ack = true,
    };

    for (int cmd = 0; cmd < NET_ROCE_NUM_CMDS; cmd++) {
        if (sizes[cmd].req) {
            assert_refused(raw(d, cmd, sizes[cmd].req - 1, sizes[cmd].rsp));
            assert_refused(raw(d, cmd, 0, sizes[cmd].rsp));
        }
        if (sizes[cmd].rsp) {
            assert_refused(raw(d, cmd, sizes[cmd].req, sizes[cmd].rsp - 1));
            assert_refused(raw(d, cmd, sizes[cmd].req, 0));
        }
    }
    for (int cmd = NET_ROCE_NUM_CMDS; cmd < 256; cmd++) {
        assert_refused(raw(d, cmd, 128, 128));
    }
    qroce_cmd_raw(d, &no_ack);
    g_assert_cmpint(no_ack.used_len, ==, 0);
    qroce_create_pd(d);
}

/* Numbers of objects that do not exist, or are of another kind */
static void test_numbers(void)
{
    static const uint32_t numbers[] = {
        0, 1, 2, NR_MAX_QP - 1, NR_MAX_QP, 1023, 1024, 0x10000, 0x7fffffff,
        UINT32_MAX,
    };
    static const uint8_t cmds[] = {
        NET_ROCE_CMD_DESTROY_CQ, NET_ROCE_CMD_DESTROY_PD,
        NET_ROCE_CMD_DEREG_MR, NET_ROCE_CMD_DESTROY_QP,
    };
    g_autoptr(QRoce) d = nr_alone();

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        uint32_t n = numbers[i];
        NetRoceReqNotifyCq notify = { n, NET_ROCE_NOTIFY_NEXT };
        NetRoceQueryQp query = { .qpn = n };
        NetRoceGetDmaMr dma = { .pdn = n };
        NetRoceCreateAh ah = { .pdn = n };
        NetRoceQpAttr attr;
        NetRoceMr mr;
        NetRoceId id;

        for (size_t j = 0; j < ARRAY_SIZE(cmds); j++) {
            assert_refused(qroce_id_cmd(d, cmds[j], n));
        }
        assert_refused(qroce_call_void(d, REQ_NOTIFY_CQ, &notify));
        assert_refused(qroce_call(d, QUERY_QP, &query, &attr));
        assert_refused(qroce_call(d, GET_DMA_MR, &dma, &mr));
        assert_refused(qroce_call(d, CREATE_AH, &ah, &id));
        assert_refused(qroce_destroy_ah(d, n, n));
        assert_refused(qroce_modify_qp(d, n, NET_ROCE_QP_STATE,
                                       &(NetRoceModifyQp) {}));
    }
}

/* Each command that destroys, twice; and of objects in use */
static void test_twice(void)
{
    g_autoptr(QRoce) d = nr_alone();
    NrEnd e = nr_end_new(d, RDMA_QPT_RC);
    const struct {
        uint8_t cmd;
        uint32_t id;
        bool in_use;
    } steps[] = {
        { NET_ROCE_CMD_DESTROY_CQ, e.scq.cqn, true },
        { NET_ROCE_CMD_DESTROY_CQ, e.rcq.cqn, true },
        { NET_ROCE_CMD_DESTROY_PD, e.pdn, true },
        { NET_ROCE_CMD_DESTROY_QP, e.qp.qpn },
        { NET_ROCE_CMD_DESTROY_PD, e.pdn, true },
        { NET_ROCE_CMD_DEREG_MR, e.mr.nums.mrn },
        { NET_ROCE_CMD_DESTROY_PD, e.pdn },
        { NET_ROCE_CMD_DESTROY_CQ, e.scq.cqn },
        { NET_ROCE_CMD_DESTROY_CQ, e.rcq.cqn },
    };

    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        g_assert_cmpint(qroce_id_cmd(d, steps[i].cmd, steps[i].id), ==,
                        steps[i].in_use ? NET_ROCE_ACK_ERR : NET_ROCE_ACK_OK);
        assert_refused(qroce_id_cmd(d, steps[i].cmd, steps[i].id));
    }
}

/* More objects than there are */
static void test_limits(void)
{
    g_autoptr(QRoce) d = nr_alone();
    NetRoceId req = { 1 }, rsp;

    for (int i = 0; i < NR_MAX_CQ; i++) {
        assert_ack(qroce_call(d, CREATE_CQ, &req, &rsp));
        g_assert_cmpint(rsp.id, <, NR_MAX_CQ);
    }
    assert_refused(qroce_call(d, CREATE_CQ, &req, &rsp));
    assert_ack(qroce_id_cmd(d, NET_ROCE_CMD_DESTROY_CQ, 3));
    assert_ack(qroce_call(d, CREATE_CQ, &req, &rsp));
    g_assert_cmpint(rsp.id, ==, 3);
}

/* Fields of commands that no driver may have */
static void test_fields(void)
{
    g_autoptr(QRoce) d = nr_alone();
    NrEnd e = nr_end_new(d, RDMA_QPT_RC);
    const NetRoceCreateQp good = {
        .pdn = e.pdn, .qp_type = RDMA_QPT_RC,
        .send_cqn = e.scq.cqn, .recv_cqn = e.rcq.cqn,
        .cap = { 1, 1, 1, 1, 1 },
    };
    NetRoceCreateQp bad[] = {
        good, good, good, good, good, good, good, good, good, good, good, good,
    };
    static const uint32_t cqes[] = { 0, NR_RING + 1, UINT32_MAX };
    static const uint32_t flags[] = { 0, 4, 0x80000001 };
    QRoceQp qp;
    NetRoceId rsp;
    int n = 0;

    bad[n++].pdn = 0;
    bad[n++].qp_type = RDMA_QPT_SMI;
    bad[n++].qp_type = 5;
    bad[n++].qp_type = 255;
    bad[n++].sq_sig_all = 2;
    bad[n++].send_cqn = UINT32_MAX;
    bad[n++].recv_cqn = NR_MAX_CQ;
    bad[n++].cap.max_send_wr = NR_RING + 1;
    bad[n++].cap.max_recv_wr = UINT32_MAX;
    bad[n++].cap.max_send_sge = 33;
    bad[n++].cap.max_recv_sge = 33;
    bad[n++].cap.max_inline_data = NET_ROCE_MAX_INLINE + 1;
    g_assert_cmpint(n, ==, ARRAY_SIZE(bad));
    for (n = 0; n < ARRAY_SIZE(bad); n++) {
        assert_refused(qroce_try_create_qp(d, &bad[n], &qp));
    }
    for (n = 0; n < ARRAY_SIZE(cqes); n++) {
        NetRoceId req = { cqes[n] };

        assert_refused(qroce_call(d, CREATE_CQ, &req, &rsp));
    }
    for (n = 0; n < ARRAY_SIZE(flags); n++) {
        NetRoceReqNotifyCq req = { e.scq.cqn, flags[n] };

        assert_refused(qroce_call_void(d, REQ_NOTIFY_CQ, &req));
    }
    /* Sizes of queues cannot change; the last bit is unknown. */
    for (n = 0; n < 2; n++) {
        assert_refused(qroce_modify_qp(d, e.qp.qpn, n ? NET_ROCE_QP_CAP
                                                      : 1u << 17,
                                       &(NetRoceModifyQp) {}));
    }
    assert_refused(qroce_modify_qp(d, e.qp.qpn, NET_ROCE_QP_STATE |
                                   NET_ROCE_QP_ACCESS, &(NetRoceModifyQp) {
                                       .qp_state = RDMA_QPS_INIT,
                                       .qp_access_flags = 8,
                                   }));
}

/* REG_USER_MR: lists, lengths and rights that do not fit */
static void test_regions(void)
{
    const struct {
        uint32_t access;
        uint64_t virt_addr;
        uint64_t length;
        uint32_t npages;
        uint64_t page;
    } bad[] = {
        { 8, 0, 4096, 1, 0x100000 },
        { RDMA_ACCESS_REMOTE_WRITE, 0, 4096, 1, 0x100000 },
        { 1, 0, 0, 1, 0x100000 },
        { 1, 0, 4097, 1, 0x100000 },
        { 1, 1, 4096, 1, 0x100000 },
        { 1, 0, 4096, 2, 0x100000 },
        { 1, 0, 4096, 0, 0x100000 },
        { 1, 0, 4096, 1, 0x100001 },
        { 1, -4096ull, 8192, 2, 0x100000 },
        { 1, 0, UINT64_MAX, UINT32_MAX, 0x100000 },
        { 1, 0, 1ull << 40, 1u << 28, 0x100000 },
    };
    g_autoptr(QRoce) d = nr_alone();
    uint32_t pdn = qroce_create_pd(d);
    NetRoceMr rsp;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct {
            NetRoceRegUserMr head;
            uint64_t pages[2];
        } req = {
            .head = {
                .pdn = pdn,
                .access = bad[i].access,
                .virt_addr = bad[i].virt_addr,
                .length = bad[i].length,
                .npages = bad[i].npages,
            },
            .pages = { bad[i].page, bad[i].page },
        };

        assert_refused(qroce_call(d, REG_USER_MR, &req, &rsp));
    }
    /* Remote rights to all of memory */
    assert_refused(qroce_call(d, GET_DMA_MR, (&(NetRoceGetDmaMr) {
        .pdn = pdn, .access = NET_ROCE_ACCESS,
    }), &rsp));
    assert_ack(qroce_id_cmd(d, NET_ROCE_CMD_DESTROY_PD, pdn));
}

/* A WQE of any bytes and length completes with an error, if at all. */
static void test_wqes(void)
{
    static const struct {
        uint8_t opcode;
        uint8_t flags;
        uint32_t n;
        size_t len;
    } bad[] = {
        { RDMA_WR_SEND, 2, 0, 1 },
        { RDMA_WR_SEND, 2, 0, sizeof(NetRoceSendWqe) - 1 },
        { RDMA_WR_SEND, 2, 1, sizeof(NetRoceSendWqe) },
        { RDMA_WR_SEND, 2, 2, sizeof(NetRoceSendWqe) + 31 },
        { RDMA_WR_SEND, 2, 33, sizeof(NetRoceSendWqe) + 64 },
        { RDMA_WR_SEND, 2, UINT32_MAX, sizeof(NetRoceSendWqe) + 64 },
        { RDMA_WR_SEND, 2 | 8, 513, sizeof(NetRoceSendWqe) },
        { RDMA_WR_SEND, 2 | 8, 0xffff, sizeof(NetRoceSendWqe) },
        { RDMA_WR_RDMA_READ, 2 | 8, 4, sizeof(NetRoceSendWqe) },
        { RDMA_WR_SEND, 2 | 16, 0, sizeof(NetRoceSendWqe) },
        { RDMA_WR_SEND, 0xfe, 0, sizeof(NetRoceSendWqe) },
        { 5, 2, 0, sizeof(NetRoceSendWqe) },
        { RDMA_WR_REG_MR, 2, 0, sizeof(NetRoceSendWqe) },
        { 255, 2, 0, sizeof(NetRoceSendWqe) },
    };
    g_autoptr(QRoce) d = nr_alone();
    NrEnd e = nr_end_new(d, RDMA_QPT_RC);

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct {
            NetRoceSendWqe wqe;
            NetRoceSge sge[4];
        } bytes = {
            .wqe = {
                .opcode = bad[i].opcode,
                .send_flags = bad[i].flags,
                .n.num_sge = bad[i].n,
            },
        };
        NetRoceCqe cqe;

        nr_connect(&e, &e);
        qroce_post(d, e.qp.sq, &bytes, bad[i].len, false);
        cqe = qroce_wait_cq(d, &e.scq);
        g_assert_cmpint(cqe.status, ==, NET_ROCE_WC_LOC_QP_OP_ERR);
        g_assert_cmpint(qroce_in_device(d, e.qp.sq), ==, 0);
        nr_modify_state(&e, RDMA_QPS_RESET);
    }
}

static void test_recv_wqes(void)
{
    static const struct {
        uint32_t num_sge;
        size_t len;
    } bad[] = {
        { 0, 1 }, { 0, 23 }, { 1, 24 }, { 2, 24 + 31 },
        { UINT32_MAX, 24 + 64 },
    };
    g_autoptr(QRoce) d = nr_alone();
    NrEnd e = nr_end_new(d, RDMA_QPT_RC);

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint8_t bytes[24 + 64] = {};

        nr_connect(&e, &e);
        memcpy(bytes + 8, &bad[i].num_sge, sizeof(uint32_t));
        qroce_post(d, e.qp.rq, bytes, bad[i].len, false);
        nr_post(&e, RDMA_WR_SEND, 1, 8, NULL);
        g_assert_cmpint(qroce_wait_cq(d, &e.rcq).status, ==,
                        NET_ROCE_WC_LOC_QP_OP_ERR);
        qroce_wait_cq(d, &e.scq);
        nr_modify_state(&e, RDMA_QPS_RESET);
    }
}

/* Available indices that run ahead: old descriptors, within budgets */
static void test_indices(void)
{
    g_autoptr(QRoce) d = nr_alone();
    NrEnd e = nr_end_new(d, RDMA_QPT_RC);

    nr_connect(&e, &e);
    for (uint32_t n = 0; n < d->n_rings; n++) {
        QVirtQueue *vq = &d->rings[n].pci.vq;

        qtest_writew(d->host->qts, vq->avail + 2, 0x8000);
        d->pci->vdev.bus->virtqueue_kick(&d->pci->vdev, vq);
        qrdma_host_settle(d->host);
    }
    qvirtio_reset(&d->pci->vdev);
    qroce_start(d, QROCE_FEATURES, true);
    qroce_create_pd(d);
}

/*
 * A buffer for a completion with @data descriptors: very many would take long
 * for each completion.
 */
static void test_cqe_descs(const void *data)
{
    enum { MAX_DESCS = 16 };
    uint32_t n_descs = GPOINTER_TO_UINT(data);
    uint32_t len = DIV_ROUND_UP(sizeof(NetRoceCqe), n_descs);
    g_autoptr(QRoce) d = nr_alone();
    NrEnd e = nr_end_new(d, RDMA_QPT_RC);
    uint64_t ring = e.scq.ring->pci.vq.desc;
    uint64_t table = guest_alloc(&d->host->alloc,
                                 n_descs * sizeof(struct vring_desc));
    struct vring_desc indirect = {
        .addr = table,
        .len = n_descs * sizeof(struct vring_desc),
        .flags = VRING_DESC_F_INDIRECT,
    };

    for (uint32_t i = 0; i < n_descs; i++) {
        struct vring_desc desc = {
            .addr = e.scq.ring->buf + i * len,
            .len = len,
            .flags = VRING_DESC_F_WRITE |
                     (i + 1 < n_descs ? VRING_DESC_F_NEXT : 0),
            .next = i + 1,
        };

        qtest_memwrite(d->host->qts, table + i * sizeof(desc), &desc,
                       sizeof(desc));
    }
    qtest_memwrite(d->host->qts, ring, &indirect, sizeof(indirect));
    nr_connect(&e, &e);
    nr_post(&e, RDMA_WR_RDMA_WRITE, 1, 8, &e.mr);
    if (n_descs <= MAX_DESCS) {
        nr_expect_wc(&e, &e.scq, 1, NET_ROCE_WC_RDMA_WRITE);
    } else {
        qrdma_wait_until(d, qroce_query_qp(d, e.qp.qpn).qp_state ==
                         RDMA_QPS_ERR);
    }
}

/* No object without its virtqueue */
static void test_no_virtqueues(void)
{
    g_autoptr(QRdmaHost) host = nr_host_start("");
    QRoce *d = qroce_open(host, 4);
    NetRoceId req = { 1 }, rsp;
    NetRoceCreateQp create = { .qp_type = RDMA_QPT_RC };
    QRoceCq cq;
    QRoceQp qp;

    qroce_accept(d, QROCE_FEATURES);
    qroce_ring_setup(d, NET_ROCE_CTRL_VQ);
    qroce_driver_ok(d);
    assert_refused(qroce_call(d, CREATE_CQ, &req, &rsp));
    qroce_ring_setup(d, NET_ROCE_CQ_VQ(0));
    cq = qroce_create_cq(d, 1);
    create.pdn = qroce_create_pd(d);
    create.send_cqn = create.recv_cqn = cq.cqn;
    assert_refused(qroce_try_create_qp(d, &create, &qp));
    qroce_close(d);
}

const QRdmaTest net_roce_hostile_tests[] = {
    { "short", test_short },
    { "numbers", test_numbers },
    { "twice", test_twice },
    { "limits", test_limits },
    { "fields", test_fields },
    { "regions", test_regions },
    { "wqes", test_wqes },
    { "recv-wqes", test_recv_wqes },
    { "indices", test_indices },
    { "cqe-descs", .run_case = test_cqe_descs, .data = GUINT_TO_POINTER(16) },
    { "cqe-descs-too-many", .run_case = test_cqe_descs,
      .data = GUINT_TO_POINTER(17) },
    { "no-virtqueues", test_no_virtqueues },
    { }
};
