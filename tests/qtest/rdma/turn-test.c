/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The work of one turn of the device is limited: whatever a guest asks for,
 * vCPUs and the monitor get their turn in between.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

#define MIB (1024 * 1024u)
#define SGE_LEN (32 * MIB)
#define NSGE 4
#define MESSAGES 30

/*
 * The rest of the work must not depend on a timer: the virtual clock stands
 * still here, so a timer armed for now would fire forever and starve the
 * register access.
 */
static void test_loopback_lets_others_in(void)
{
    TestPair t = test_loopback_pair(RDMA_QPT_RC, NULL);
    QRdmaMr *mr = qrdma_get_dma_mr(t.pd, RDMA_ACCESS_LOCAL_WRITE);
    uint64_t mem = qrdma_alloc(t.dev, SGE_LEN);
    uint8_t wqe[QRDMA_WQE_ROOM];
    RdmaSge sges[NSGE];

    for (unsigned i = 0; i < NSGE; i++) {
        sges[i] = (RdmaSge) {
            .addr = qrdma_dma(t.dev, mem), .length = SGE_LEN, .lkey = mr->lkey,
        };
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        RdmaRecvWr wr = { .wr_id = i, .num_sge = NSGE, .sg_list = sges };

        qrdma_post_recv(t.b, &wr);
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        RdmaSendWr wr = {
            .wr_id = i,
            .opcode = RDMA_WR_SEND,
            .num_sge = NSGE,
            .sg_list = sges,
        };

        qrdma_post_raw(t.a, &t.a->sq, wqe, qrdma_encode_send(t.a, &wr, wqe),
                       0, i == MESSAGES - 1);
    }
    /* The device has gigabytes to copy; one access to a register comes first */
    g_assert_cmpuint(qrdma_config_read(t.dev, 0, 4), ==, 1);
    g_assert_cmpuint(qrdma_ring_used_idx(t.a->sq.ring), <, MESSAGES);
    qrdma_reset(t.dev);
}

/* More turns than the device needs to see a kick */
#define TURNS 4

typedef struct virtio_rdma_reg_user_mr_req RegReq;
typedef struct virtio_rdma_mr_rsp MrRsp;

static void kick(QRdma *d)
{
    qrdma_ring_kick(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ));
    for (int i = 0; i < TURNS; i++) {
        g_assert_cmpuint(qrdma_config_read(d, 0, 4), ==, 1);
    }
}

/* Kick the control queue, and wait until the command is in progress. */
static void kick_and_check_pending(QRdma *d, const QRdmaWaiting *w)
{
    kick(d);
    g_assert_cmphex(qrdma_status_of(w), ==, 0xff);
}

static void check_long_registration(QRdma *d)
{
    QRdmaPd *pd = qrdma_alloc_pd(d);
    uint32_t mrn, port = cpu_to_le32(1);
    struct virtio_rdma_query_pkey_req query = { .port = port };
    QRdmaWaiting first, second;
    unsigned seen = 0;

    /* On a busy machine the test may not run before the command is done. */
    for (int round = 0; seen < 2; round++) {
        uint8_t second_status;

        g_assert_cmpint(round, <, 20);
        first = qrdma_enqueue_long(pd);
        second = qrdma_enqueue(d, VIRTIO_RDMA_CMD_QUERY_PKEY, &query,
                               sizeof(query),
                               sizeof(struct virtio_rdma_query_pkey_rsp));
        kick(d);
        second_status = qrdma_status_of(&second);
        if (qrdma_status_of(&first) == 0xff) {
            g_assert_cmphex(second_status, ==, 0xff);
            seen++;
        }
        qrdma_reap_commands(d, 2);
        g_assert_cmphex(qrdma_status_of(&first), ==, VIRTIO_RDMA_S_OK);
        g_assert_cmphex(qrdma_status_of(&second), ==, VIRTIO_RDMA_S_OK);
        /* The region uses up max-mr-pages: free it for the next round. */
        mrn = qtest_readl(d->host->qts, first.rsp + 1 + offsetof(MrRsp, mrn));
        assert_status(qrdma_call_void(d, DEREG_MR, &mrn), OK);
    }
}

static void test_long_registration_lets_others_in(void)
{
    check_long_registration(test_device());
}

/* The same where the command is popped again from a ring of another kind */
static void test_long_registration_in_other_rings(void)
{
    static const uint64_t features[] = {
        QRDMA_F(VIRTIO_F_RING_PACKED),
        QRDMA_F(VIRTIO_F_IN_ORDER),
        QRDMA_F(VIRTIO_F_RING_PACKED) | QRDMA_F(VIRTIO_F_IN_ORDER),
    };
    QRdma *d = test_own_device("max-qp=8,max-cq=4,packed=on,in_order=on");

    for (int i = 0; i < ARRAY_SIZE(features); i++) {
        qrdma_start(d, QRDMA_FEATURES | features[i], 0);
        check_long_registration(d);
    }
    qrdma_host_stop(d->host);
}

static void test_reset_during_a_long_registration(void)
{
    for (int whole = 0; whole < 2; whole++) {
        QRdma *d = test_device();
        QRdmaWaiting w = qrdma_enqueue_long(qrdma_alloc_pd(d));

        kick_and_check_pending(d, &w);
        if (whole) {
            qrdma_start(d, 0, 0);
        } else {
            qrdma_ring_renew(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ));
        }
        /* The pages of that region do not count any more */
        check_long_registration(d);
    }
}

/* The request may hold another command when the device comes back to it. */
static void test_command_changes_during_its_execution(void)
{
    QRdma *d = test_device();
    QRdmaWaiting w = qrdma_enqueue_long(qrdma_alloc_pd(d));
    uint8_t other[] = { VIRTIO_RDMA_CMD_DEREG_MR, 99 };
    uint64_t table;

    kick_and_check_pending(d, &w);
    qrdma_write(d, w.req, other, sizeof(other));
    qrdma_reap_commands(d, 1);
    g_assert_cmphex(qrdma_status_of(&w), ==, VIRTIO_RDMA_S_NOENT);
    check_long_registration(d);

    w = qrdma_enqueue_long(qrdma_alloc_pd(d));
    kick_and_check_pending(d, &w);
    /* Another list, which the device must read from its beginning */
    table = qrdma_alloc(d, 4096);
    qtest_writeq(d->host->qts, table, 0x123);
    qtest_writeq(d->host->qts, w.req + 1 + offsetof(RegReq, pages), table);
    qrdma_reap_commands(d, 1);
    g_assert_cmphex(qrdma_status_of(&w), ==, VIRTIO_RDMA_S_INVAL);
    check_long_registration(d);
}

/*
 * The order of completions shows which queue had a turn when, whatever time it
 * takes. After `cont`, one turn of the main loop starts serving all queues that
 * were kicked in the stopped VM.
 */
#define MANY 600

static void stop(QRdma *d)
{
    qtest_qmp_assert_success(d->host->qts, "{'execute': 'stop'}");
}

static void resume_vm(QRdma *d)
{
    qtest_qmp_assert_success(d->host->qts, "{'execute': 'cont'}");
}

/* Two QPs that talk to themselves, and complete on one CQ. */
typedef struct Sharers {
    QRdma *d;
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaQp *qp[2];
} Sharers;

static Sharers sharers(uint64_t features)
{
    RdmaQpInitAttr init = {
        .qp_type = RDMA_QPT_RC,
        .sq_sig_all = true,
        .cap = { .max_send_wr = 1024, .max_recv_wr = 64, .max_send_sge = 1,
                 .max_recv_sge = 1 },
    };
    Sharers s = { .d = test_device_reset() };

    qrdma_start(s.d, features, 1024);
    qrdma_setup_gids(s.d, 1);
    s.pd = qrdma_alloc_pd(s.d);
    s.cq = qrdma_create_cq(s.d, 1024);
    for (int i = 0; i < 2; i++) {
        s.qp[i] = qrdma_create_qp_attr(s.pd, s.cq, s.cq, &init);
        qrdma_connect(s.qp[i], s.qp[i], NULL);
    }
    return s;
}

static void post_quietly(QRdmaQp *qp, const RdmaSendWr *wr)
{
    uint8_t wqe[QRDMA_WQE_ROOM];

    qrdma_post_raw(qp, &qp->sq, wqe, qrdma_encode_send(qp, wr, wqe), 0,
                   false);
}

/* How many of @n completions of the first QP come before the second's? */
static unsigned count_first_qp(Sharers *s, unsigned n)
{
    unsigned before = n;
    RdmaWc wc;

    for (unsigned i = 0; i <= n; i++) {
        qrdma_wait_cq(s->cq, &wc);
        if (wc.qp_num == s->qp[1]->qpn) {
            before = MIN(before, i);
        }
    }
    return before;
}

static void test_full_queues_take_turns(void)
{
    Sharers s = sharers(QRDMA_FEATURES);
    RdmaSendWr write = { .opcode = RDMA_WR_RDMA_WRITE };
    RdmaSendWr bad = { .opcode = 99 };

    stop(s.d);
    for (unsigned i = 0; i < MANY; i++) {
        post_quietly(s.qp[0], &bad);
    }
    post_quietly(s.qp[1], &write);
    resume_vm(s.d);
    g_assert_cmpuint(count_first_qp(&s, MANY), <, MANY);
}

#define NLISTS 40
#define NPAGES 1024

/* A WQE costs as much of a turn as the list that it brings. */
static void test_lists_of_requests_take_turns(void)
{
    Sharers s = sharers(QRDMA_FEATURES);
    QRdmaMr *mr = qrdma_alloc_mr(s.pd, RDMA_ACCESS_LOCAL_WRITE, NPAGES);
    uint64_t list = qrdma_alloc(s.d, NPAGES * sizeof(uint64_t));
    struct virtio_rdma_sq_wqe wqe = {
        .opcode = cpu_to_le32(RDMA_WR_REG_MR),
        .wr.reg = {
            .mrn = cpu_to_le32(mr->mrn),
            .key = cpu_to_le32(mr->lkey),
            .access = cpu_to_le32(RDMA_ACCESS_LOCAL_WRITE),
            .npages = cpu_to_le32(NPAGES),
            .length = cpu_to_le64(NPAGES * 4096),
            .pages = cpu_to_le64(qrdma_dma(s.d, list)),
        },
    };
    RdmaSendWr write = { .opcode = RDMA_WR_RDMA_WRITE };

    stop(s.d);
    for (unsigned i = 0; i < NLISTS; i++) {
        qrdma_post_raw(s.qp[0], &s.qp[0]->sq, &wqe, sizeof(wqe), 0, false);
    }
    post_quietly(s.qp[1], &write);
    resume_vm(s.d);
    g_assert_cmpuint(count_first_qp(&s, NLISTS), <, NLISTS);
}

#define NCREATE 20
/* Without F_RING_RESET, because a destroyed QP's rings must be usable again */
#define PLAIN_FEATURES (QRDMA_FEATURES & ~QRDMA_F(VIRTIO_F_RING_RESET))

/* The number after @qpn, which the device assigns round robin */
static uint32_t next_qpn(Sharers *s, uint32_t qpn)
{
    do {
        qpn = qpn + 1 < TEST_MAX_QP ? qpn + 1 : 2;
    } while (qpn == s->qp[0]->qpn || qpn == s->qp[1]->qpn);
    return qpn;
}

/*
 * Commands that create and free queues, and one that shows whether a send was
 * executed before the device came to it.
 */
static void test_costly_commands_let_others_in(void)
{
    Sharers s = sharers(PLAIN_FEATURES);
    struct virtio_rdma_create_qp_req create = {
        .pdn = cpu_to_le32(s.pd->pdn),
        .qp_type = RDMA_QPT_RC,
        .send_cqn = cpu_to_le32(s.cq->cqn),
        .recv_cqn = cpu_to_le32(s.cq->cqn),
    };
    RdmaSendWr write = { .opcode = RDMA_WR_RDMA_WRITE };
    uint32_t last_qpn = s.qp[1]->qpn;
    QRdmaWaiting wait[2 * NCREATE], last;
    uint8_t port = 1;

    stop(s.d);
    for (unsigned i = 0; i < NCREATE; i++) {
        uint32_t qpn;

        last_qpn = next_qpn(&s, last_qpn);
        qpn = cpu_to_le32(last_qpn);
        wait[2 * i] = qrdma_enqueue(s.d, VIRTIO_RDMA_CMD_CREATE_QP, &create,
                                    sizeof(create),
                                    qrdma_create_qp_rsp_size(s.d));
        wait[2 * i + 1] = qrdma_enqueue(s.d, VIRTIO_RDMA_CMD_DESTROY_QP, &qpn,
                                        sizeof(qpn), 0);
    }
    last = qrdma_enqueue(s.d, VIRTIO_RDMA_CMD_QUERY_COUNTERS, &port,
                         sizeof(port),
                         VIRTIO_RDMA_NUM_COUNTERS * sizeof(uint64_t));
    post_quietly(s.qp[1], &write);
    resume_vm(s.d);
    qrdma_reap_commands(s.d, 2 * NCREATE + 1);
    for (unsigned i = 0; i < 2 * NCREATE; i++) {
        g_assert_cmphex(qrdma_status_of(&wait[i]), ==, VIRTIO_RDMA_S_OK);
    }
    g_assert_cmphex(qrdma_status_of(&last), ==, VIRTIO_RDMA_S_OK);
    g_assert_cmpuint(qtest_readq(s.d->host->qts, last.rsp + 1 +
                                 VIRTIO_RDMA_LOOPBACK_PACKETS *
                                 sizeof(uint64_t)), !=, 0);
}

const QRdmaTest turn_tests[] = {
    { "long-registration", test_long_registration_lets_others_in },
    { "long-registration-in-other-rings",
      test_long_registration_in_other_rings },
    { "reset-during-a-long-registration",
      test_reset_during_a_long_registration },
    { "command-changes", test_command_changes_during_its_execution },
    { "loopback-lets-others-in", test_loopback_lets_others_in },
    { "full-queues-take-turns", test_full_queues_take_turns },
    { "lists-of-requests-take-turns", test_lists_of_requests_take_turns },
    { "costly-commands-let-others-in", test_costly_commands_let_others_in },
    {}
};
