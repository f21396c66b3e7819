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
    size_t optional;                /* bytes after req_len with a meaning */
} CommandStep;

static const CommandStep steps[] = {
    { "query-port", VIRTIO_RDMA_CMD_QUERY_PORT, 1, 161 },
    { "create-cq", VIRTIO_RDMA_CMD_CREATE_CQ, 4, 4, true },
    { "create-pd", VIRTIO_RDMA_CMD_CREATE_PD, 0, 4, true },
    { "get-dma-mr", VIRTIO_RDMA_CMD_GET_DMA_MR, 8, 12, true },
    { "create-mr", VIRTIO_RDMA_CMD_CREATE_MR, 12, 12, true },
    { "map-mr-sg", VIRTIO_RDMA_CMD_MAP_MR_SG, 32, 4 },
    { "reg-user-mr", VIRTIO_RDMA_CMD_REG_USER_MR, 44, 12, true, 8 },
    { "create-qp", VIRTIO_RDMA_CMD_CREATE_QP, 66, 4, true },
    { "modify-qp", VIRTIO_RDMA_CMD_MODIFY_QP, 137, 0 },
    { "query-qp", VIRTIO_RDMA_CMD_QUERY_QP, 8, 129 },
    { "query-pkey", VIRTIO_RDMA_CMD_QUERY_PKEY, 6, 2 },
    { "add-gid", VIRTIO_RDMA_CMD_ADD_GID, 26, 0, false, 2 },
    { "req-notify-cq", VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ, 8, 0 },
    { "create-srq", VIRTIO_RDMA_CMD_CREATE_SRQ, 16, 4, true },
    { "modify-srq", VIRTIO_RDMA_CMD_MODIFY_SRQ, 8, 0 },
    { "query-srq", VIRTIO_RDMA_CMD_QUERY_SRQ, 4, 12 },
    { "alloc-mw", VIRTIO_RDMA_CMD_ALLOC_MW, 8, 8, true },
    { "resize-cq", VIRTIO_RDMA_CMD_RESIZE_CQ, 12, 0 },
    { "attach-mcast", VIRTIO_RDMA_CMD_ATTACH_MCAST, 20, 0 },
    { "query-counters", VIRTIO_RDMA_CMD_QUERY_COUNTERS, 1, 160 },
    { "query-qp-counters", VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS, 8, 160 },
    { "rereg-mr", VIRTIO_RDMA_CMD_REREG_MR, 52, 12, false, 8 },
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

/* Objects for all requests: objects to destroy, and objects to use. */
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
    if (qrdma_has(d, QRDMA_F(VIRTIO_RDMA_F_VERSION_1))) {
        o.srqn = qrdma_create_srq(pd, 8, 1)->srqn;
        o.spare_srqn = qrdma_create_srq(pd, 8, 1)->srqn;
        assert_ok(qrdma_alloc_mw(pd, RDMA_MW_TYPE_1, &mw));
        o.spare_mwn = mw.mwn;
    }
    return o;
}

typedef struct Field {
    uint8_t at;                     /* byte offset, as in the spec */
    uint8_t size;
    uint64_t value;
} Field;

#define MAX_FIELDS 9

static void make_request(const CommandObjects *o, uint8_t cmd, uint8_t *req)
{
    const struct {
        uint8_t cmd;
        Field fields[MAX_FIELDS];   /* fields that are not zero */
    } requests[] = {
        { VIRTIO_RDMA_CMD_QUERY_PORT, { { 0, 1, 1 } } },
        { VIRTIO_RDMA_CMD_CREATE_CQ, { { 0, 4, 16 } } },
        { VIRTIO_RDMA_CMD_DESTROY_CQ, { { 0, 4, o->spare_cqn } } },
        { VIRTIO_RDMA_CMD_CREATE_PD },
        { VIRTIO_RDMA_CMD_DESTROY_PD, { { 0, 4, o->spare_pdn } } },
        { VIRTIO_RDMA_CMD_GET_DMA_MR,
          { { 0, 4, o->pdn }, { 4, 4, RDMA_ACCESS_LOCAL_WRITE } } },
        { VIRTIO_RDMA_CMD_CREATE_MR,
          { { 0, 4, o->pdn }, { 4, 4, RDMA_ACCESS_LOCAL_WRITE },
            { 8, 4, 4 } } },
        { VIRTIO_RDMA_CMD_MAP_MR_SG,
          { { 0, 4, o->mrn }, { 4, 4, 1 }, { 8, 8, 0x10010 },
            { 16, 8, 100 }, { 24, 8, o->table } } },
        { VIRTIO_RDMA_CMD_REG_USER_MR,
          { { 0, 4, o->pdn }, { 4, 4, RDMA_ACCESS_LOCAL_WRITE },
            { 8, 8, 0x10010 }, { 16, 8, 100 }, { 24, 8, 0x7000010 },
            { 32, 8, o->table }, { 40, 4, 1 } } },
        { VIRTIO_RDMA_CMD_DEREG_MR, { { 0, 4, o->spare_mrn } } },
        { VIRTIO_RDMA_CMD_CREATE_QP,
          { { 0, 4, o->pdn }, { 4, 1, RDMA_QPT_UD },
            { 5, 1, VIRTIO_RDMA_SIGNAL_REQ_WR }, { 6, 4, 8 }, { 10, 4, 1 },
            { 14, 4, o->cqn }, { 18, 4, 8 }, { 22, 4, 1 },
            { 26, 4, o->cqn } } },
        { VIRTIO_RDMA_CMD_MODIFY_QP,
          { { 0, 4, o->qpn },
            { 4, 4, RDMA_QP_STATE | RDMA_QP_PKEY_INDEX | RDMA_QP_PORT |
                    RDMA_QP_ACCESS_FLAGS },
            { 8 + 0, 1, RDMA_QPS_INIT }, { 8 + 33, 1, 1 } } },
        { VIRTIO_RDMA_CMD_QUERY_QP,
          { { 0, 4, o->qpn }, { 4, 4, RDMA_QP_STATE } } },
        { VIRTIO_RDMA_CMD_DESTROY_QP, { { 0, 4, o->spare_qpn } } },
        { VIRTIO_RDMA_CMD_QUERY_PKEY, { { 0, 4, 1 } } },
        { VIRTIO_RDMA_CMD_ADD_GID,
          { { 0, 2, 0x80fe }, { 15, 1, 9 },
            { 16, 4, VIRTIO_RDMA_GID_TYPE_ROCE_V2 }, { 20, 2, 3 },
            { 22, 4, 1 } } },
        { VIRTIO_RDMA_CMD_DEL_GID, { { 0, 2, 3 }, { 2, 4, 1 } } },
        { VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ,
          { { 0, 4, o->cqn }, { 4, 4, VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION } } },
        { VIRTIO_RDMA_CMD_CREATE_SRQ,
          { { 0, 4, o->pdn }, { 4, 4, 8 }, { 8, 4, 2 }, { 12, 4, 3 } } },
        { VIRTIO_RDMA_CMD_MODIFY_SRQ, { { 0, 4, o->srqn }, { 4, 4, 2 } } },
        { VIRTIO_RDMA_CMD_QUERY_SRQ, { { 0, 4, o->srqn } } },
        { VIRTIO_RDMA_CMD_DESTROY_SRQ, { { 0, 4, o->spare_srqn } } },
        { VIRTIO_RDMA_CMD_ALLOC_MW,
          { { 0, 4, o->pdn }, { 4, 4, VIRTIO_RDMA_MW_TYPE_2 } } },
        { VIRTIO_RDMA_CMD_DEALLOC_MW, { { 0, 4, o->spare_mwn } } },
        { VIRTIO_RDMA_CMD_RESIZE_CQ, { { 0, 4, o->cqn }, { 4, 4, 16 } } },
        { VIRTIO_RDMA_CMD_ATTACH_MCAST,
          { { 0, 4, o->ud_qpn }, { 4, 2, 0x02ff }, { 19, 1, 9 } } },
        { VIRTIO_RDMA_CMD_DETACH_MCAST,
          { { 0, 4, o->ud_qpn }, { 4, 2, 0x02ff }, { 19, 1, 9 } } },
        { VIRTIO_RDMA_CMD_QUERY_COUNTERS, { { 0, 1, 1 } } },
        { VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS,
          { { 0, 4, 1 }, { 4, 4, o->ud_qpn } } },
        { VIRTIO_RDMA_CMD_REREG_MR,
          { { 0, 4, o->user_mrn },
            { 4, 4, VIRTIO_RDMA_REREG_TRANSLATION | VIRTIO_RDMA_REREG_PD |
                    VIRTIO_RDMA_REREG_ACCESS } } },
    };
    int n = 0;

    while (requests[n].cmd != cmd) {
        g_assert_cmpint(++n, <, ARRAY_SIZE(requests));
    }
    for (int i = 0; i < MAX_FIELDS; i++) {
        const Field *field = &requests[n].fields[i];
        uint64_t le = cpu_to_le64(field->value);

        memcpy(req + field->at, &le, field->size);
    }
    if (cmd == VIRTIO_RDMA_CMD_REREG_MR) {
        make_request(o, VIRTIO_RDMA_CMD_REG_USER_MR, req + 8);
    }
}

/* The first step that the device does not have: without F_VERSION_1 */
static int end_of_steps(const QRdma *d)
{
    int i = 0;

    if (qrdma_has(d, QRDMA_F(VIRTIO_RDMA_F_VERSION_1))) {
        return ARRAY_SIZE(steps);
    }
    while (steps[i].cmd <= VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ) {
        i++;
    }
    return i;
}

/* The fewest bytes of a request that is complete */
static size_t complete_len(const QRdma *d, int step)
{
    /* The demo's layout of CREATE_QP ends before these fields. */
    return d->demo && steps[step].cmd == VIRTIO_RDMA_CMD_CREATE_QP
           ? offsetof(struct virtio_rdma_create_qp_req, flags)
           : steps[step].req_len;
}

/* Send all commands, in descriptors of these sizes, with surplus bytes. */
static void run_all(unsigned out_split, unsigned in_split, size_t surplus)
{
    QRdma *d = test_device();
    CommandObjects o = make_objects(d);
    uint8_t req[256];
    uint8_t rsp[512];

    for (int i = 0; i < end_of_steps(d); i++) {
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
        if (surplus) {
            memset(req + steps[i].req_len + steps[i].optional, 0xee,
                   surplus - steps[i].optional);
        }
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
    QRdma *d = test_device();
    CommandObjects o = make_objects(d);
    uint8_t req[256];
    uint8_t rsp[512];

    for (int i = 0; i < end_of_steps(d); i++) {
        g_test_message("%s", steps[i].name);
        memset(req, 0, sizeof(req));
        make_request(&o, steps[i].cmd, req);
        for (size_t len = 0; len < complete_len(d, i); len++) {
            assert_status(qrdma_cmd(d, steps[i].cmd, req, len, rsp,
                                    rsp_len(d, i)), INVAL);
        }
        assert_ok(qrdma_cmd(d, steps[i].cmd, req, steps[i].req_len, rsp,
                            rsp_len(d, i)));
    }
}

static void test_no_room_for_response_has_no_effect(void)
{
    QRdma *d = test_device();
    CommandObjects o = make_objects(d);
    uint8_t req[256];
    uint8_t rsp[512];

    for (int i = 0; i < end_of_steps(d); i++) {
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
    QRdma *d = test_device();
    CommandObjects o = make_objects(d);
    uint8_t req[256];
    QRdmaCmd c = { .req = req, .no_status = true };
    uint32_t pdn;

    for (int i = 0; i < end_of_steps(d); i++) {
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
    /* the failed commands have created nothing */
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
            cmd <= VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS &&
            cmd != VIRTIO_RDMA_CMD_SET_SHADOW) {
            continue;
        }
        assert_status(qrdma_cmd(d, cmd, req, sizeof(req), rsp, sizeof(rsp)),
                      NOTSUPP);
    }
}

static void test_plain_status_is_1_for_every_failure(void)
{
    QRdma *d = test_rfc_device();
    uint32_t pdn, cqn;
    uint8_t rsp[256];

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
                        qrdma_status(VIRTIO_RDMA_S_NOMEM));
        g_assert_cmpuint(len, ==, status ? 1 : 5);
    }
}

const QRdmaTest ctrl_tests[] = {
    { "every-command", test_every_command },
    { "any-descriptor-split", test_any_descriptor_split },
    { "surplus-is-ignored", test_surplus_is_ignored },
    { "short-request-has-no-effect", test_short_request_has_no_effect },
    { "no-room-for-response-has-no-effect",
      test_no_room_for_response_has_no_effect },
    { "no-room-for-status-is-survived", test_no_room_for_status_is_survived },
    { "empty-request-fails", test_empty_request_fails },
    { "unknown-command-is-not-supported",
      test_unknown_command_is_not_supported },
    { "plain-status-is-1-for-every-failure",
      test_plain_status_is_1_for_every_failure },
    { "no-feature-bit-gives-plain-device",
      test_no_feature_bit_gives_plain_device },
    { "commands-wait-for-driver-ok", test_commands_wait_for_driver_ok,
      .not_demo = true },
    { "commands-are-answered-in-order", test_commands_are_answered_in_order },
    {}
};
