/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: rules that hold for all control commands.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

/* A well-formed request of each command, in an order that works. */
typedef struct CommandStep {
    const char *name;
    uint8_t cmd;
    size_t req_len;
    size_t rsp_len;
    bool creates;                   /* fills a table when it succeeds */
} CommandStep;

static const CommandStep steps[] = {
    { "query-port", VIRTIO_RDMA_CMD_QUERY_PORT, 1, 161 },
    { "create-cq", VIRTIO_RDMA_CMD_CREATE_CQ, 4, 4, true },
    { "create-pd", VIRTIO_RDMA_CMD_CREATE_PD, 0, 4, true },
    { "get-dma-mr", VIRTIO_RDMA_CMD_GET_DMA_MR, 8, 12, true },
    { "create-mr", VIRTIO_RDMA_CMD_CREATE_MR, 12, 12, true },
    { "map-mr-sg", VIRTIO_RDMA_CMD_MAP_MR_SG, 32, 4 },
    { "reg-user-mr", VIRTIO_RDMA_CMD_REG_USER_MR, 44, 12, true },
    { "create-qp", VIRTIO_RDMA_CMD_CREATE_QP, 66, 4, true },
    { "modify-qp", VIRTIO_RDMA_CMD_MODIFY_QP, 137, 0 },
    { "query-qp", VIRTIO_RDMA_CMD_QUERY_QP, 8, 129 },
    { "query-pkey", VIRTIO_RDMA_CMD_QUERY_PKEY, 6, 2 },
    { "add-gid", VIRTIO_RDMA_CMD_ADD_GID, 26, 0 },
    { "req-notify-cq", VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ, 8, 0 },
    { "create-srq", VIRTIO_RDMA_CMD_CREATE_SRQ, 16, 4, true },
    { "modify-srq", VIRTIO_RDMA_CMD_MODIFY_SRQ, 8, 0 },
    { "query-srq", VIRTIO_RDMA_CMD_QUERY_SRQ, 4, 12 },
    { "alloc-mw", VIRTIO_RDMA_CMD_ALLOC_MW, 8, 8, true },
    { "resize-cq", VIRTIO_RDMA_CMD_RESIZE_CQ, 12, 0 },
    { "attach-mcast", VIRTIO_RDMA_CMD_ATTACH_MCAST, 20, 0 },
    { "query-counters", VIRTIO_RDMA_CMD_QUERY_COUNTERS, 1, 160 },
    { "query-qp-counters", VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS, 8, 160 },
    { "rereg-mr", VIRTIO_RDMA_CMD_REREG_MR, 52, 12 },
    { "detach-mcast", VIRTIO_RDMA_CMD_DETACH_MCAST, 20, 0 },
    { "dealloc-mw", VIRTIO_RDMA_CMD_DEALLOC_MW, 4, 0 },
    { "destroy-srq", VIRTIO_RDMA_CMD_DESTROY_SRQ, 4, 0 },
    { "del-gid", VIRTIO_RDMA_CMD_DEL_GID, 6, 0 },
    { "destroy-qp", VIRTIO_RDMA_CMD_DESTROY_QP, 4, 0 },
    { "dereg-mr", VIRTIO_RDMA_CMD_DEREG_MR, 4, 0 },
    { "destroy-cq", VIRTIO_RDMA_CMD_DESTROY_CQ, 4, 0 },
    { "destroy-pd", VIRTIO_RDMA_CMD_DESTROY_PD, 4, 0 },
};

static size_t rsp_len(const QRdma *d, int step)
{
    return steps[step].cmd == VIRTIO_RDMA_CMD_CREATE_QP
           ? qrdma_create_qp_rsp_size(d) : steps[step].rsp_len;
}

/* Objects that the requests name. */
typedef struct CommandObjects {
    uint64_t page;
    uint64_t table;
    uint32_t pdn;
    uint32_t cqn;
    uint32_t qpn;
    uint32_t mrn;                   /* of CREATE_MR */
    uint32_t spare_pdn;
    uint32_t spare_cqn;
    uint32_t spare_mrn;
    uint32_t spare_qpn;
    uint32_t ud_qpn;
    uint32_t user_mrn;
    uint32_t srqn;
    uint32_t spare_srqn;
    uint32_t spare_mwn;
} CommandObjects;

/* What the commands from 19 on need. */
#define COMMAND_FEATURES (QRDMA_F(VIRTIO_RDMA_F_SRQ) | \
                          QRDMA_F(VIRTIO_RDMA_F_MW) | \
                          QRDMA_F(VIRTIO_RDMA_F_CQ_DEEP) | \
                          QRDMA_F(VIRTIO_RDMA_F_MCAST) | \
                          QRDMA_F(VIRTIO_RDMA_F_COUNTERS) | \
                          QRDMA_F(VIRTIO_RDMA_F_QP_COUNTERS) | \
                          QRDMA_F(VIRTIO_RDMA_F_REREG_MR))

/*
 * Objects for all requests: those that are destroyed, and those they are
 * about.
 */
static CommandObjects make_objects(QRdma *d)
{
    CommandObjects o = {};
    uint64_t *pages;
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    QRdmaMw mw;

    qrdma_alloc_pages(d, 1, &pages, &o.table);
    o.page = pages[0];
    o.pdn = pd->pdn;
    o.cqn = cq->cqn;
    o.qpn = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC)->qpn;
    o.mrn = qrdma_alloc_mr(pd, RDMA_ACCESS_LOCAL_WRITE, 4)->mrn;
    o.spare_pdn = qrdma_alloc_pd(d)->pdn;
    o.spare_cqn = qrdma_create_cq(d, 8)->cqn;
    o.spare_mrn = qrdma_alloc_mr(pd, RDMA_ACCESS_LOCAL_WRITE, 4)->mrn;
    o.spare_qpn = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC)->qpn;
    o.ud_qpn = qrdma_create_qp(pd, cq, cq, RDMA_QPT_UD)->qpn;
    o.user_mrn = qrdma_reg_mr(pd, 0x10010, 100, RDMA_ACCESS_LOCAL_WRITE)->mrn;
    if (d->features & COMMAND_FEATURES) {
        o.srqn = qrdma_create_srq(pd, 8, 1)->srqn;
        o.spare_srqn = qrdma_create_srq(pd, 8, 1)->srqn;
        assert_ok(qrdma_alloc_mw(pd, RDMA_MW_TYPE_1, &mw));
        o.spare_mwn = mw.mwn;
    }
    return o;
}

static void put16(uint8_t *req, size_t at, uint16_t value)
{
    value = cpu_to_le16(value);
    memcpy(req + at, &value, sizeof(value));
}

static void put32(uint8_t *req, size_t at, uint32_t value)
{
    value = cpu_to_le32(value);
    memcpy(req + at, &value, sizeof(value));
}

static void put64(uint8_t *req, size_t at, uint64_t value)
{
    value = cpu_to_le64(value);
    memcpy(req + at, &value, sizeof(value));
}

/* Byte offsets are the spec's; no structure is involved. */
static void make_request(const CommandObjects *o, uint8_t cmd, uint8_t *req)
{
    switch (cmd) {
    case VIRTIO_RDMA_CMD_QUERY_PORT:
        req[0] = 1;
        break;
    case VIRTIO_RDMA_CMD_CREATE_CQ:
        put32(req, 0, 16);
        break;
    case VIRTIO_RDMA_CMD_DESTROY_CQ:
        put32(req, 0, o->spare_cqn);
        break;
    case VIRTIO_RDMA_CMD_CREATE_PD:
        break;
    case VIRTIO_RDMA_CMD_DESTROY_PD:
        put32(req, 0, o->spare_pdn);
        break;
    case VIRTIO_RDMA_CMD_GET_DMA_MR:
        put32(req, 0, o->pdn);
        put32(req, 4, RDMA_ACCESS_LOCAL_WRITE);
        break;
    case VIRTIO_RDMA_CMD_CREATE_MR:
        put32(req, 0, o->pdn);
        put32(req, 4, RDMA_ACCESS_LOCAL_WRITE);
        put32(req, 8, 4);
        break;
    case VIRTIO_RDMA_CMD_MAP_MR_SG:
        put32(req, 0, o->mrn);
        put32(req, 4, 1);
        put64(req, 8, 0x10010);
        put64(req, 16, 100);
        put64(req, 24, o->table);
        break;
    case VIRTIO_RDMA_CMD_REG_USER_MR:
        put32(req, 0, o->pdn);
        put32(req, 4, RDMA_ACCESS_LOCAL_WRITE);
        put64(req, 8, 0x10010);
        put64(req, 16, 100);
        put64(req, 24, 0x7000010);
        put64(req, 32, o->table);
        put32(req, 40, 1);
        break;
    case VIRTIO_RDMA_CMD_DEREG_MR:
        put32(req, 0, o->spare_mrn);
        break;
    case VIRTIO_RDMA_CMD_CREATE_QP:
        put32(req, 0, o->pdn);
        req[4] = RDMA_QPT_UD;
        req[5] = VIRTIO_RDMA_SIGNAL_REQ_WR;
        put32(req, 6, 8);
        put32(req, 10, 1);
        put32(req, 14, o->cqn);
        put32(req, 18, 8);
        put32(req, 22, 1);
        put32(req, 26, o->cqn);
        break;
    case VIRTIO_RDMA_CMD_MODIFY_QP:
        put32(req, 0, o->qpn);
        put32(req, 4, RDMA_QP_STATE | RDMA_QP_PKEY_INDEX | RDMA_QP_PORT |
                      RDMA_QP_ACCESS_FLAGS);
        req[8 + 0] = RDMA_QPS_INIT;
        req[8 + 33] = 1;
        break;
    case VIRTIO_RDMA_CMD_QUERY_QP:
        put32(req, 0, o->qpn);
        put32(req, 4, RDMA_QP_STATE);
        break;
    case VIRTIO_RDMA_CMD_DESTROY_QP:
        put32(req, 0, o->spare_qpn);
        break;
    case VIRTIO_RDMA_CMD_QUERY_PKEY:
        put32(req, 0, 1);
        break;
    case VIRTIO_RDMA_CMD_ADD_GID:
        put16(req, 0, 0x80fe);
        req[15] = 9;
        put32(req, 16, VIRTIO_RDMA_GID_TYPE_ROCE_V2);
        put16(req, 20, 3);
        put32(req, 22, 1);
        break;
    case VIRTIO_RDMA_CMD_DEL_GID:
        put16(req, 0, 3);
        put32(req, 2, 1);
        break;
    case VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ:
        put32(req, 0, o->cqn);
        put32(req, 4, VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION);
        break;
    case VIRTIO_RDMA_CMD_CREATE_SRQ:
        put32(req, 0, o->pdn);
        put32(req, 4, 8);
        put32(req, 8, 2);
        put32(req, 12, 3);
        break;
    case VIRTIO_RDMA_CMD_MODIFY_SRQ:
        put32(req, 0, o->srqn);
        put32(req, 4, 2);
        break;
    case VIRTIO_RDMA_CMD_QUERY_SRQ:
        put32(req, 0, o->srqn);
        break;
    case VIRTIO_RDMA_CMD_DESTROY_SRQ:
        put32(req, 0, o->spare_srqn);
        break;
    case VIRTIO_RDMA_CMD_ALLOC_MW:
        put32(req, 0, o->pdn);
        put32(req, 4, VIRTIO_RDMA_MW_TYPE_2);
        break;
    case VIRTIO_RDMA_CMD_DEALLOC_MW:
        put32(req, 0, o->spare_mwn);
        break;
    case VIRTIO_RDMA_CMD_RESIZE_CQ:
        put32(req, 0, o->cqn);
        put32(req, 4, 16);
        break;
    case VIRTIO_RDMA_CMD_ATTACH_MCAST:
    case VIRTIO_RDMA_CMD_DETACH_MCAST:
        put32(req, 0, o->ud_qpn);
        put16(req, 4, 0x02ff);
        req[19] = 9;
        break;
    case VIRTIO_RDMA_CMD_QUERY_COUNTERS:
        req[0] = 1;
        break;
    case VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS:
        put32(req, 0, 1);
        put32(req, 4, o->ud_qpn);
        break;
    case VIRTIO_RDMA_CMD_REREG_MR:
        put32(req, 0, o->user_mrn);
        put32(req, 4, VIRTIO_RDMA_REREG_TRANSLATION |
                      VIRTIO_RDMA_REREG_PD | VIRTIO_RDMA_REREG_ACCESS);
        make_request(o, VIRTIO_RDMA_CMD_REG_USER_MR, req + 8);
        break;
    default:
        g_assert_not_reached();
    }
}

/* Send all commands, in descriptors of these sizes, with surplus bytes. */
static void run_all(unsigned out_split, unsigned in_split, size_t surplus)
{
    QRdma *d = test_device_with(COMMAND_FEATURES);
    CommandObjects o = make_objects(d);
    uint8_t req[256];
    uint8_t rsp[512];

    for (int i = 0; i < ARRAY_SIZE(steps); i++) {
        QRdmaCmd c = {
            .cmd = steps[i].cmd,
            .req = req,
            .req_len = steps[i].req_len + surplus,
            .rsp = rsp,
            .rsp_cap = rsp_len(d, i) + surplus,
            .out_split = out_split,
            .in_split = in_split,
        };

        g_test_message("%s", steps[i].name);
        memset(req, 0, sizeof(req));
        make_request(&o, steps[i].cmd, req);
        memset(req + steps[i].req_len, 0xee, surplus);
        assert_ok(qrdma_cmd_raw(d, &c));
        g_assert_cmpuint(c.used_len, ==, 1 + rsp_len(d, i));
    }
}

static void test_every_command(void)
{
    run_all(0, 0, 0);
}

static void test_any_descriptor_split(void)
{
    run_all(1, 1, 0);
    run_all(3, 5, 0);
    run_all(0, 1, 0);
    run_all(1, 0, 0);
}

static void test_surplus_is_ignored(void)
{
    run_all(0, 0, 64);
    run_all(7, 2, 64);
}

static void test_short_request_has_no_effect(void)
{
    QRdma *d = test_device_with(COMMAND_FEATURES);
    CommandObjects o = make_objects(d);
    uint8_t req[256];
    uint8_t rsp[512];

    for (int i = 0; i < ARRAY_SIZE(steps); i++) {
        g_test_message("%s", steps[i].name);
        memset(req, 0, sizeof(req));
        make_request(&o, steps[i].cmd, req);
        for (size_t len = 0; len < steps[i].req_len; len++) {
            assert_status(qrdma_cmd(d, steps[i].cmd, req, len, rsp,
                                    rsp_len(d, i)), INVAL);
        }
        assert_ok(qrdma_cmd(d, steps[i].cmd, req, steps[i].req_len, rsp,
                            rsp_len(d, i)));
    }
}

static void test_no_room_for_response_has_no_effect(void)
{
    QRdma *d = test_device_with(COMMAND_FEATURES);
    CommandObjects o = make_objects(d);
    uint8_t req[256];
    uint8_t rsp[512];

    for (int i = 0; i < ARRAY_SIZE(steps); i++) {
        g_test_message("%s", steps[i].name);
        memset(req, 0, sizeof(req));
        make_request(&o, steps[i].cmd, req);
        /* more often than any table has entries */
        for (size_t cap = 0; cap < MAX(rsp_len(d, i), 20); cap++) {
            size_t room = cap % MAX(rsp_len(d, i), 1);

            if (!rsp_len(d, i)) {
                break;
            }
            assert_status(qrdma_cmd(d, steps[i].cmd, req, steps[i].req_len,
                                    rsp, room), INVAL);
        }
        assert_ok(qrdma_cmd(d, steps[i].cmd, req, steps[i].req_len, rsp,
                            rsp_len(d, i)));
    }
}

static void test_no_room_for_status_is_survived(void)
{
    QRdma *d = test_device_with(COMMAND_FEATURES);
    CommandObjects o = make_objects(d);
    uint8_t req[256];
    QRdmaCmd c = { .req = req, .no_status = true };
    uint32_t pdn;

    for (int i = 0; i < ARRAY_SIZE(steps); i++) {
        if (!steps[i].creates) {
            continue;
        }
        memset(req, 0, sizeof(req));
        make_request(&o, steps[i].cmd, req);
        c.cmd = steps[i].cmd;
        c.req_len = steps[i].req_len;
        for (int n = 0; n < 20; n++) {
            qrdma_cmd_raw(d, &c);
            g_assert_cmpuint(c.used_len, ==, 0);
        }
    }
    /* nothing was created in secret */
    assert_ok(qrdma_try_alloc_pd(d, &pdn));
}

static void test_empty_request_fails(void)
{
    QRdma *d = test_device();
    QRdmaCmd c = { .no_cmd = true, .rsp_cap = 64 };

    assert_status(qrdma_cmd_raw(d, &c), INVAL);
}

static void test_unknown_command_is_not_supported(void)
{
    QRdma *d = test_device();
    uint8_t req[128] = {};
    uint8_t rsp[128];

    for (int cmd = 0; cmd <= 255; cmd++) {
        if (cmd >= VIRTIO_RDMA_CMD_QUERY_PORT &&
            cmd <= VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ) {
            continue;
        }
        assert_status(qrdma_cmd(d, cmd, req, sizeof(req), rsp, sizeof(rsp)),
                      NOTSUPP);
    }
}

static void test_plain_status_is_1_for_every_failure(void)
{
    QRdma *d = test_device_reset();
    uint32_t pdn, cqn;
    uint8_t rsp[256];

    qrdma_start(d, QRDMA_FEATURES & ~QRDMA_F(VIRTIO_RDMA_F_EXT_STATUS), 0);
    /* not supported, invalid, no such object, full, busy */
    assert_status(qrdma_cmd(d, 200, NULL, 0, rsp, 4), ERR);
    assert_status(qrdma_try_create_cq(d, 0, &cqn), ERR);
    assert_status(qrdma_dealloc_pd(&(QRdmaPd) { d, 12345 }), ERR);
    for (int i = 0; i < TEST_MAX_PD; i++) {
        assert_ok(qrdma_try_alloc_pd(d, &pdn));
    }
    assert_status(qrdma_try_alloc_pd(d, &pdn), ERR);
}

static void test_no_feature_bit_gives_plain_device(void)
{
    QRdma *d = test_device_reset();
    CommandObjects o;
    uint8_t req[256];
    uint8_t rsp[512];

    qrdma_start(d, QRDMA_F(VIRTIO_F_VERSION_1), 0);
    o = make_objects(d);
    for (int i = 0; i < ARRAY_SIZE(steps); i++) {
        memset(req, 0, sizeof(req));
        make_request(&o, steps[i].cmd, req);
        g_assert_cmpint(qrdma_cmd(d, steps[i].cmd, req, steps[i].req_len, rsp,
                                  rsp_len(d, i)), ==,
                        steps[i].cmd <= VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ
                        ? VIRTIO_RDMA_S_OK : VIRTIO_RDMA_S_ERR);
    }
}

static void test_commands_wait_for_driver_ok(void)
{
    QRdma *d = test_device_reset();
    QRdmaRing *ring;
    QRdmaDesc desc[2];
    uint8_t cmd = VIRTIO_RDMA_CMD_CREATE_PD;
    uint16_t head;
    uint32_t len;

    qrdma_prepare(d, 0, 0);
    ring = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);
    qrdma_write(d, d->ctrl_req, &cmd, 1);
    desc[0] = (QRdmaDesc) { d->ctrl_req, 1, false };
    desc[1] = (QRdmaDesc) { d->ctrl_rsp, 5, true };
    qrdma_ring_add(ring, desc, 2);
    qrdma_ring_kick(ring);
    qrdma_settle(d);
    g_assert_cmpint(qrdma_ring_used_idx(ring), ==, 0);

    qrdma_driver_ok(d);
    qrdma_ring_kick(ring);
    qrdma_wait_until(d, qrdma_ring_get(ring, &head, &len));
    g_assert_cmpuint(len, ==, 5);
    g_assert_cmpuint(qtest_readb(d->host->qts, d->ctrl_rsp), ==, 0);
}

static void test_commands_are_answered_in_order(void)
{
    enum { N = 40 };
    QRdma *d = test_device();
    QRdmaRing *ring = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);
    uint64_t req = qrdma_alloc(d, 4096);
    uint64_t rsp = qrdma_alloc(d, N * 16);
    uint8_t query[2] = { VIRTIO_RDMA_CMD_CREATE_PD };
    uint16_t head;
    uint32_t len;

    qrdma_write(d, req, query, sizeof(query));
    for (int i = 0; i < N; i++) {
        QRdmaDesc desc[2] = {
            { req, 1, false },
            { rsp + i * 16, 5, true },
        };

        qrdma_ring_add(ring, desc, 2);
    }
    qrdma_ring_kick(ring);
    for (int i = 0; i < N; i++) {
        uint8_t status;

        qrdma_wait_until(d, qrdma_ring_get(ring, &head, &len));
        status = qtest_readb(d->host->qts, rsp + i * 16);
        g_assert_cmpint(status, ==, i < TEST_MAX_PD ? VIRTIO_RDMA_S_OK :
                                                      VIRTIO_RDMA_S_NOMEM);
        g_assert_cmpuint(len, ==, status ? 1 : 5);
    }
}

void add_ctrl_tests(void)
{
    qtest_add_func("virtio-rdma/ctrl/every-command", test_every_command);
    qtest_add_func("virtio-rdma/ctrl/any-descriptor-split",
                   test_any_descriptor_split);
    qtest_add_func("virtio-rdma/ctrl/surplus-is-ignored",
                   test_surplus_is_ignored);
    qtest_add_func("virtio-rdma/ctrl/short-request-has-no-effect",
                   test_short_request_has_no_effect);
    qtest_add_func("virtio-rdma/ctrl/no-room-for-response-has-no-effect",
                   test_no_room_for_response_has_no_effect);
    qtest_add_func("virtio-rdma/ctrl/no-room-for-status-is-survived",
                   test_no_room_for_status_is_survived);
    qtest_add_func("virtio-rdma/ctrl/empty-request-fails",
                   test_empty_request_fails);
    qtest_add_func("virtio-rdma/ctrl/unknown-command-is-not-supported",
                   test_unknown_command_is_not_supported);
    qtest_add_func("virtio-rdma/ctrl/plain-status-is-1-for-every-failure",
                   test_plain_status_is_1_for_every_failure);
    qtest_add_func("virtio-rdma/ctrl/no-feature-bit-gives-plain-device",
                   test_no_feature_bit_gives_plain_device);
    qtest_add_func("virtio-rdma/ctrl/commands-wait-for-driver-ok",
                   test_commands_wait_for_driver_ok);
    qtest_add_func("virtio-rdma/ctrl/commands-are-answered-in-order",
                   test_commands_are_answered_in_order);
}
