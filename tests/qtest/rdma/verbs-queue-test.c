/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: queues with requests that only the backend handles, and CQs that
 * change while the host takes its time.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "verbs-test.h"

#define LEN 100

/* Post a SEND from a to b of some bytes. */
static void post(VerbsPair *p, uint64_t wr_id, bool signaled,
                 uint8_t gid_index)
{
    RdmaSge sge = qrdma_sge(p->mr_a, 0, LEN);
    RdmaSendWr wr = p->a->type == RDMA_QPT_UD
                    ? qrdma_ud_wr(wr_id, &sge, p->b, gid_index)
                    : qrdma_wr(RDMA_WR_SEND, wr_id, &sge);

    wr.send_flags = signaled ? RDMA_SEND_SIGNALED : 0;
    qrdma_post_send(p->a, &wr);
}

/* Post an unsignalled SEND, and wait until the host has executed it. */
static void post_quietly(VerbsPair *p, uint64_t wr_id)
{
    verbs_post_recv(p, wr_id);
    post(p, wr_id, false, 0);
    qrdma_expect(p->cq_b, wr_id, RDMA_WC_SUCCESS);
}

static void check_state(QRdmaQp *qp, RdmaQpState state)
{
    g_assert_cmpint(qrdma_qp_state(qp), ==, state);
}

static void expect_bad(QRdmaCq *cq, uint64_t wr_id)
{
    g_assert_cmpint(qrdma_expect_error(cq, wr_id), !=, RDMA_WC_WR_FLUSH_ERR);
}

/* In SQE a QP flushes sends and goes on receiving, until it is in RTS. */
static void check_sqe(VerbsPair *p)
{
    VerbsPair back = *p;
    RdmaQpAttr attr = {
        .qp_state = RDMA_QPS_RTS, .cur_qp_state = RDMA_QPS_SQE,
    };

    post(p, 2, true, 0);
    post(p, 3, false, 0);
    qrdma_expect(p->cq_a, 2, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect(p->cq_a, 3, RDMA_WC_WR_FLUSH_ERR);
    check_state(p->a, RDMA_QPS_SQE);
    /* A QP in SQE cannot be drained. */
    assert_status(qrdma_modify_qp_state(p->a, RDMA_QPS_SQD), INVAL);

    back.a = p->b;
    back.b = p->a;
    back.cq_a = p->cq_b;
    back.cq_b = p->cq_a;
    back.mr_a = p->mr_b;
    back.mr_b = p->mr_a;
    verbs_check_works(&back, 4);

    assert_ok(qrdma_modify_qp(p->a, RDMA_QP_STATE | RDMA_QP_CUR_STATE,
                              &attr));
    check_state(p->a, RDMA_QPS_RTS);
    verbs_check_works(p, 5);
    attr.cur_qp_state = RDMA_QPS_SQE;
    assert_status(qrdma_modify_qp(p->a, RDMA_QP_STATE | RDMA_QP_CUR_STATE,
                                  &attr), INVAL);
}

/* IBTA 10.3.1: a datagram that cannot be sent does not end its QP. */
static void test_bad_datagram(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);

    for (int i = 0; i < 3; i++) {
        post(&p, 1, true, 9);
        expect_bad(p.cq_a, 1);
        check_state(p.a, RDMA_QPS_SQE);
        check_sqe(&p);
    }
}

/* The field has 32 bits, the number of a port has 8. */
static void test_datagram_for_another_port(void)
{
    static const uint32_t ports[] = { 0, 2, 0x101, 0x80000001, UINT32_MAX };
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);

    for (int i = 0; i < ARRAY_SIZE(ports); i++) {
        RdmaSendWr wr = qrdma_ud_wr(1, NULL, p.b, 0);
        uint8_t bytes[QRDMA_WQE_ROOM];
        size_t len = qrdma_encode_send(p.a, &wr, bytes);

        stl_le_p(bytes + offsetof(struct virtio_rdma_sq_wqe, wr.ud.av.port),
                 ports[i]);
        qrdma_post_raw(p.a, &p.a->sq, bytes, len, 0, true);
        expect_bad(p.cq_a, 1);
        check_sqe(&p);
    }
}

static void test_bad_send_of_uc(void)
{
    g_autoptr(Verbs) v = verbs_new("auto off");
    VerbsPair p = verbs_pair(v, RDMA_QPT_UC);

    verbs_post_recv(&p, 1);
    verbs_post_send(&p, 1);
    fake_verbs_tell(v->fake, "fail post_send ENOMEM");
    verbs_post_send(&p, 2);
    /* The request posted before completes first. */
    qrdma_expect_none(p.cq_a);
    fake_verbs_tell(v->fake, "auto on");
    qrdma_expect(p.cq_a, 1, RDMA_WC_SUCCESS);
    expect_bad(p.cq_a, 2);
    qrdma_expect(p.cq_b, 1, RDMA_WC_SUCCESS);
    check_sqe(&p);
}

/* RESET and ERR are ways out of SQE, too. */
static void test_sqe_ends(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);

    post(&p, 1, true, 9);
    expect_bad(p.cq_a, 1);
    assert_ok(qrdma_modify_qp_state(p.a, RDMA_QPS_ERR));
    check_state(p.a, RDMA_QPS_ERR);
    assert_ok(qrdma_modify_qp_state(p.a, RDMA_QPS_RESET));
    qrdma_start_ud(p.a, QRDMA_QKEY);
    post(&p, 1, true, 9);
    expect_bad(p.cq_a, 1);
    assert_ok(qrdma_modify_qp_state(p.a, RDMA_QPS_RESET));
    qrdma_start_ud(p.a, QRDMA_QKEY);
    check_state(p.a, RDMA_QPS_RTS);
    verbs_check_works(&p, 2);
}

/*
 * If earlier requests were not signalled, the host does not report their end.
 * The bad request completes all the same, and no other does.
 */
static void check_bad_after_unsignalled(RdmaQpType type)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, type);

    post_quietly(&p, 1);
    post_quietly(&p, 2);
    fake_verbs_tell(v->fake, "fail post_send ENOMEM");
    post(&p, 3, true, 0);
    post(&p, 4, false, 0);
    expect_bad(p.cq_a, 3);
    qrdma_expect(p.cq_a, 4, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect_none(p.cq_a);
    check_state(p.a, type == RDMA_QPT_UC ? RDMA_QPS_SQE : RDMA_QPS_ERR);
}

static void test_bad_after_unsignalled(void)
{
    check_bad_after_unsignalled(RDMA_QPT_UD);
    check_bad_after_unsignalled(RDMA_QPT_UC);
    check_bad_after_unsignalled(RDMA_QPT_RC);
}

/* Drain like ib_drain_sq(): post the last request after the end of the QP. */
static void check_drain(RdmaQpType type)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, type);

    for (int i = 1; i <= 3; i++) {
        post_quietly(&p, i);
    }
    assert_ok(qrdma_modify_qp_state(p.a, RDMA_QPS_ERR));
    post(&p, 7, true, 0);
    qrdma_expect(p.cq_a, 7, RDMA_WC_WR_FLUSH_ERR);
    post(&p, 8, true, 0);
    qrdma_expect(p.cq_a, 8, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect_none(p.cq_a);
}

static void test_drain(void)
{
    check_drain(RDMA_QPT_RC);
    check_drain(RDMA_QPT_UC);
    check_drain(RDMA_QPT_UD);
}

/* The same while the host has not executed them: each is flushed, once. */
static void test_drain_what_waits(void)
{
    g_autoptr(Verbs) v = verbs_new("auto off");
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    post(&p, 1, false, 0);
    post(&p, 2, false, 0);
    assert_ok(qrdma_modify_qp_state(p.a, RDMA_QPS_ERR));
    post(&p, 7, true, 0);
    qrdma_expect(p.cq_a, 1, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect(p.cq_a, 2, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect(p.cq_a, 7, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect_none(p.cq_a);
}

/* The host takes nothing in ERR: requests that may not be done have failed. */
static void test_drain_that_the_host_refuses(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    post_quietly(&p, 1);
    assert_ok(qrdma_modify_qp_state(p.a, RDMA_QPS_ERR));
    fake_verbs_tell(v->fake, "fail post_send EINVAL times 0");
    post(&p, 7, true, 0);
    qrdma_expect(p.cq_a, 1, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect(p.cq_a, 7, RDMA_WC_WR_FLUSH_ERR);
}

/* A QP in ERR flushes requests. The host gets none of them. */
static void check_err(VerbsPair *p)
{
    unsigned sends = fake_verbs_calls(p->v->fake, "post_send");
    unsigned recvs = fake_verbs_calls(p->v->fake, "post_recv");
    const RdmaRecvWr recv = { .wr_id = 11 };

    post(p, 10, true, 0);
    qrdma_expect(p->cq_a, 10, RDMA_WC_WR_FLUSH_ERR);
    qrdma_post_recv(p->a, &recv);
    qrdma_expect(p->cq_a, 11, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpuint(fake_verbs_calls(p->v->fake, "post_send"), ==, sends);
    g_assert_cmpuint(fake_verbs_calls(p->v->fake, "post_recv"), ==, recvs);
}

/* IBTA 10.3.1: only RESET follows ERR. A bad datagram does not change that. */
static void test_bad_datagram_completes_in_err(void)
{
    g_autoptr(Verbs) v = verbs_new("auto off");
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);

    verbs_post_send(&p, 1);
    post(&p, 2, true, 9);
    qrdma_expect_none(p.cq_a);
    fake_verbs_tell(v->fake, "event QP_FATAL 0x%x", p.a->wire_qpn);
    qrdma_expect_event(v->dev, RDMA_EVENT_QP_FATAL, p.a->qpn);
    fake_verbs_tell(v->fake, "auto on");
    qrdma_expect(p.cq_a, 1, RDMA_WC_SUCCESS);
    expect_bad(p.cq_a, 2);
    check_err(&p);
}

/* A datagram to an address that no host has */
static RdmaSendWr lost_wr(const VerbsPair *p, uint64_t wr_id, bool signaled)
{
    static const uint8_t absent[RDMA_GID_LEN] = {
        [10] = 0xff, 0xff, 10, 0, 0, 77,
    };
    RdmaSendWr wr = qrdma_ud_wr(wr_id, NULL, p->b, 1);

    memcpy(wr.wr.ud.av.dgid, absent, RDMA_GID_LEN);
    wr.send_flags = signaled ? RDMA_SEND_SIGNALED : 0;
    return wr;
}

/*
 * An unsignalled datagram was sent, and another one was lost. Requests after
 * them complete, although the host reports the end of neither.
 */
static void check_after_sent_and_lost(bool bad)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);
    RdmaSendWr wr = lost_wr(&p, 2, false);

    post_quietly(&p, 1);
    fake_verbs_tell(v->fake, "fail create_ah EHOSTUNREACH times 0");
    qrdma_post_send(p.a, &wr);
    if (bad) {
        post(&p, 3, true, 9);
        expect_bad(p.cq_a, 3);
        check_err(&p);
    } else {
        qrdma_post_expect(p.a, lost_wr(&p, 3, true), RDMA_WC_SUCCESS);
        verbs_post_recv(&p, 4);
        post(&p, 4, true, 0);
        qrdma_expect(p.cq_a, 4, RDMA_WC_SUCCESS);
    }
    qrdma_expect_none(p.cq_a);
}

static void test_lost_after_sent_and_lost(void)
{
    check_after_sent_and_lost(false);
}

static void test_bad_after_sent_and_lost(void)
{
    check_after_sent_and_lost(true);
}

/* A lost datagram completes in its turn, after any other requests. */
static void test_lost_after_unsignalled(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);
    RdmaSendWr wr = lost_wr(&p, 2, true);

    post_quietly(&p, 1);
    verbs_post_recv(&p, 9);
    fake_verbs_tell(v->fake, "fail create_ah EHOSTUNREACH times 0");
    qrdma_post_expect(p.a, wr, RDMA_WC_SUCCESS);
    wr.send_flags = 0;
    qrdma_post_send(p.a, &wr);
    qrdma_expect_none(p.cq_a);
    qrdma_expect_none(p.cq_b);
    check_state(p.a, RDMA_QPS_RTS);
}

/* The address does not hide that UD has no such request. */
static void test_bad_opcode_to_a_lost_address(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);
    RdmaSendWr wr = lost_wr(&p, 1, true);

    fake_verbs_tell(v->fake, "fail create_ah EHOSTUNREACH times 0");
    qrdma_post_expect(p.a, wr, RDMA_WC_SUCCESS);
    wr.opcode = RDMA_WR_SEND_WITH_INV;
    qrdma_post_expect(p.a, wr, RDMA_WC_LOC_QP_OP_ERR);
    check_state(p.a, RDMA_QPS_SQE);
}

/* The number of address handles is limited: queues wait for one. */
static void test_many_addresses(void)
{
    g_autoptr(Verbs) v = verbs_new("auto off; attr max_ah 2");
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);
    RdmaSendWr wr = qrdma_ud_wr(0, NULL, p.b, 0);

    for (int i = 0; i < 6; i++) {
        wr.wr_id = i;
        wr.wr.ud.av.dgid[15] = i;
        qrdma_post_send(p.a, &wr);
    }
    qrdma_wait_until(v->dev, fake_verbs_calls(v->fake, "post_send") == 2);
    qrdma_settle(v->dev);
    g_assert_cmpuint(fake_verbs_calls(v->fake, "post_send"), ==, 2);
    g_assert_cmpuint(fake_verbs_count(v->fake, "ah"), ==, 2);
    fake_verbs_tell(v->fake, "auto on");
    qrdma_expect_many(p.cq_a, 0, 6, RDMA_WC_SUCCESS);
    g_assert_cmpuint(fake_verbs_count(v->fake, "ah"), <=, 2);
}

/* IBTA 10.2.5: the Q_Key of a request with bit 31 is that of its QP. */
static void test_qkey_of_the_qp(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);
    RdmaSge sge = qrdma_sge(p.mr_a, 0, LEN);
    RdmaSendWr wr = qrdma_ud_wr(1, &sge, p.b, 0);

    wr.wr.ud.remote_qkey = 0x80000000 | 77;
    verbs_post_recv(&p, 1);
    qrdma_post_send(p.a, &wr);
    qrdma_expect(p.cq_b, 1, RDMA_WC_SUCCESS);
}

/*
 * Completions come while the host resizes a CQ. The command fails if they do
 * not fit into @cqe entries, of which @used are in use. None is lost.
 */
static void check_resize(uint32_t cqe, uint32_t used, uint8_t want)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaQp *qp;
    VerbsWaiting w;
    struct virtio_rdma_resize_cq_req req = {
        .cqe = cpu_to_le32(cqe), .used = cpu_to_le32(used),
    };

    qrdma_start(v->dev, 0, 0);
    qrdma_setup_gids(v->dev, 1);
    pd = qrdma_alloc_pd(v->dev);
    cq = qrdma_create_cq(v->dev, 8);
    qp = qrdma_create_loop(pd, cq, cq);
    req.cqn = cpu_to_le32(cq->cqn);
    w = verbs_hold_cmd(v, "resize_cq", VIRTIO_RDMA_CMD_RESIZE_CQ, &req,
                       sizeof(req), 0);
    /* 8 buffers and more: they are the backlog */
    for (int i = 0; i < 10; i++) {
        qrdma_post(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, i, NULL));
    }
    qrdma_reap_all(v->dev, &qp->sq);
    g_assert_cmphex(qrdma_status_of(&w.cmd), ==, QRDMA_NO_STATUS);
    g_assert_cmpint(verbs_release_cmd(&w), ==, want);
    qrdma_expect_many(cq, 0, 10, RDMA_WC_SUCCESS);
}

static void test_completions_during_resize(void)
{
    check_resize(16, 8, VIRTIO_RDMA_S_OK);
    check_resize(16, 15, VIRTIO_RDMA_S_INVAL);
}

/*
 * The deepest queue, whose slots are all in one page, which is cheap for a
 * guest
 */
static struct virtio_rdma_create_qp_req deep_qp(QRdma *d)
{
    const uint32_t npages = 1 + (128 + 32) * 32768 / 4096;
    g_autofree uint64_t *pages = g_new(uint64_t, npages);
    uint64_t page = qrdma_alloc(d, 4096);
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 8);

    for (uint32_t i = 0; i < npages; i++) {
        pages[i] = page;
    }
    return (struct virtio_rdma_create_qp_req) {
        .pdn = cpu_to_le32(pd->pdn),
        .qp_type = RDMA_QPT_RC,
        .send_cqn = cpu_to_le32(cq->cqn),
        .recv_cqn = cpu_to_le32(cq->cqn),
        .max_send_wr = cpu_to_le32(32768),
        .max_recv_wr = cpu_to_le32(32768),
        .max_send_sge = cpu_to_le32(1),
        .max_recv_sge = cpu_to_le32(1),
        .flags = cpu_to_le32(VIRTIO_RDMA_QP_DIRECT),
        .queue_pages = cpu_to_le64(qrdma_dma(
            d, qrdma_write_pages(d, pages, npages))),
        .queue_npages = cpu_to_le32(npages),
        .sq_depth_shift = 15,
        .sq_slot_shift = 7,
        .rq_depth_shift = 15,
        .rq_slot_shift = 5,
    };
}

/* QEMU and the host have memory for each work request, posted or not. */
static void test_work_requests_are_limited(void)
{
    g_autoptr(Verbs) v = verbs_host("attr max_qp_wr 32768; attr max_qp 200");
    struct virtio_rdma_create_qp_req req;
    struct virtio_rdma_create_qp_rsp rsp[65];

    qtest_qmp_device_add(v->host->qts, "virtio-rdma-pci", "rdma0",
                         "{'rdmadev': 'r0', 'addr': '4', 'max-qp': 100}");
    v->dev = qrdma_open(v->host, QPCI_DEVFN(VERBS_SLOT, 0));
    v->dev->direct = true;
    verbs_restart(v);
    req = deep_qp(v->dev);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 64; i++) {
            assert_ok(qrdma_cmd(v->dev, VIRTIO_RDMA_CMD_CREATE_QP, &req,
                                sizeof(req), &rsp[i], sizeof(rsp[i])));
        }
        assert_status(qrdma_cmd(v->dev, VIRTIO_RDMA_CMD_CREATE_QP, &req,
                                sizeof(req), &rsp[64], sizeof(rsp[64])),
                      NOMEM);
        for (int i = 0; i < 64; i++) {
            assert_ok(qrdma_cmd(v->dev, VIRTIO_RDMA_CMD_DESTROY_QP, &rsp[i],
                                sizeof(struct virtio_rdma_qpn), NULL, 0));
        }
    }
}

#define FLOOD 16384

/*
 * A process has a QP in ERR, and posts receives as fast as they are flushed.
 * Another QP has a single send to flush, which must get its turn.
 */
static void test_flood_of_receives_leaves_turns_to_sends(void)
{
    g_autoptr(Verbs) v = verbs_host("attr max_qp_wr 32768");
    struct virtio_rdma_create_qp_req req;
    struct virtio_rdma_create_qp_rsp rsp;
    struct virtio_rdma_modify_qp_req err = {
        .attr_mask = cpu_to_le32(RDMA_QP_STATE), .attr.qp_state = RDMA_QPS_ERR,
    };
    unsigned before = 0;
    RdmaWc wc;
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaQp *other;
    uint64_t page;

    verbs_plug(v);
    v->dev->direct = true;
    verbs_restart(v);
    pd = qrdma_alloc_pd(v->dev);
    cq = qrdma_create_direct_cq(v->dev, FLOOD + 8, NULL);
    req = deep_qp(v->dev);
    req.pdn = cpu_to_le32(pd->pdn);
    req.send_cqn = req.recv_cqn = cpu_to_le32(cq->cqn);
    qrdma_read(v->dev, le64_to_cpu(req.queue_pages), &page, sizeof(page));
    page = le64_to_cpu(page);
    assert_ok(qrdma_call(v->dev, CREATE_QP, &req, &rsp));
    other = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
    err.qpn = rsp.qpn;
    assert_ok(qrdma_call_void(v->dev, MODIFY_QP, &err));
    qrdma_modify_qp_state(other, RDMA_QPS_ERR);
    qrdma_settle(v->dev);

    qtest_qmp_assert_success(v->host->qts, "{'execute': 'stop'}");
    qtest_writel(v->host->qts, page +
                 offsetof(struct virtio_rdma_direct_page, rq_producer),
                 FLOOD);
    qrdma_post_send(other, &(RdmaSendWr) { .wr_id = 7 });
    qtest_qmp_assert_success(v->host->qts, "{'execute': 'cont'}");
    for (;;) {
        qrdma_wait_cq(cq, &wc);
        g_assert_cmpint(wc.status, ==, RDMA_WC_WR_FLUSH_ERR);
        if (wc.qp_num == other->qpn) {
            break;
        }
        before++;
    }
    g_test_message("%u flushed receives came before the send", before);
    g_assert_cmpuint(before, <, FLOOD / 4);
}

/*
 * The driver resets a virtqueue with a send in flight, and then the QP. Later
 * sends are returned when they complete, as usual.
 */
static void test_ring_reset_in_flight_then_reset(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    unsigned modified;

    fake_verbs_tell(v->fake, "auto off");
    verbs_post_send(&p, 1);
    /* The host does not flush the send, as a host that reports nothing */
    fake_verbs_tell(v->fake, "fail modify_qp EBUSY times 1");
    modified = fake_verbs_calls(v->fake, "modify_qp");
    qrdma_ring_reset(p.a->sq.ring);
    qrdma_wait_until(v->dev,
                     fake_verbs_calls(v->fake, "modify_qp") > modified);
    qrdma_settle(v->dev);
    assert_ok(qrdma_modify_qp_state(p.a, RDMA_QPS_RESET));
    assert_ok(qrdma_modify_qp_state(p.b, RDMA_QPS_RESET));
    qrdma_ring_setup(p.a->sq.ring, QRDMA_RING_SIZE);
    p.a->sq.posted = p.a->sq.retired = 0;
    qrdma_settle(v->dev);
    fake_verbs_tell(v->fake, "auto on");
    qrdma_connect(p.a, p.b, NULL);
    verbs_check_works(&p, 2);
    qrdma_settle(v->dev);
    qrdma_reap(&p.a->sq);
    g_assert_cmpuint(p.a->sq.retired, ==, 1);
}

/*
 * The first send is put back until the host has made its address handle. A
 * fault that lets @after sends pass counts this send once.
 */
static void send_with_fault(unsigned after)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);

    qtest_qmp_assert_success(v->host->qts, "{'execute': 'rdma-fault-add', "
                             "'arguments': {'device': 'rdma0', 'id': 'f', "
                             "'kind': 'local-access', 'after': %u, "
                             "'times': 1}}", after);
    for (unsigned i = 0; i <= after; i++) {
        verbs_post_recv(&p, i);
        verbs_offer_send(&p, i);
        qrdma_expect(p.cq_a, i, i < after ? RDMA_WC_SUCCESS
                                          : RDMA_WC_LOC_PROT_ERR);
    }
}

static void test_fault_of_a_send_that_is_put_back(void)
{
    for (unsigned after = 0; after < 3; after++) {
        send_with_fault(after);
    }
}

/* A SEND without data from a to b, without a doorbell. */
static void put(VerbsPair *p, uint64_t wr_id)
{
    verbs_post_recv(p, wr_id);
    qrdma_put_send(p->a, qrdma_wr(RDMA_WR_SEND, wr_id, NULL));
}

static void ring(QRdmaQp *qp)
{
    qrdma_doorbell(qp->dev, QRDMA_DIRECT_DOORBELL, qp->qpn);
}

/*
 * The device begins to poll an SQ when it rings with a send in flight. The
 * backend then takes sends without a doorbell, whether the host has sends in
 * flight or not, until polling ends.
 */
static void check_polled_queue(bool ends)
{
    g_autoptr(Verbs) v = verbs_host("auto off");
    VerbsPair p;

    qtest_qmp_device_add(v->host->qts, "virtio-rdma-pci", "rdma0",
                         "{'rdmadev': 'r0', 'addr': '4', "
                         "'poll-max-ns': %" PRIu64 "}",
                         ends ? UINT64_C(0) : UINT64_C(60000000000));
    v->dev = qrdma_open(v->host, QPCI_DEVFN(VERBS_SLOT, 0));
    v->dev->direct = true;
    verbs_restart(v);
    p = verbs_pair(v, RDMA_QPT_RC);
    for (uint64_t wr_id = 0; wr_id < 2; wr_id++) {
        put(&p, wr_id);
        g_assert_false(qrdma_direct_awake(v->dev, &p.a->sq));
        ring(p.a);
    }
    if (ends) {
        qrdma_wait_until(v->dev, !qrdma_direct_awake(v->dev, &p.a->sq));
        fake_verbs_tell(v->fake, "auto on");
        qrdma_expect_many(p.cq_a, 0, 2, RDMA_WC_SUCCESS);
        put(&p, 2);
        qrdma_expect_none(p.cq_a);
        ring(p.a);
        qrdma_expect(p.cq_a, 2, RDMA_WC_SUCCESS);
        return;
    }
    for (uint64_t wr_id = 2; wr_id < 10; wr_id++) {
        g_assert_true(qrdma_direct_awake(v->dev, &p.a->sq));
        put(&p, wr_id);
    }
    qrdma_wait_until(v->dev, fake_verbs_calls(v->fake, "post_send") == 10);
    fake_verbs_tell(v->fake, "auto on");
    qrdma_expect_many(p.cq_a, 0, 10, RDMA_WC_SUCCESS);
    put(&p, 10);
    qrdma_expect(p.cq_a, 10, RDMA_WC_SUCCESS);
}

static void test_polled_queue(void)
{
    check_polled_queue(false);
}

static void test_polled_queue_ends(void)
{
    check_polled_queue(true);
}

const QRdmaTest verbs_queue_tests[] = {
    { "polled-queue", test_polled_queue },
    { "polled-queue-ends", test_polled_queue_ends },
    { "fault-of-a-send-that-is-put-back",
      test_fault_of_a_send_that_is_put_back },
    { "flood-of-receives", test_flood_of_receives_leaves_turns_to_sends },
    { "ring-reset-in-flight-then-reset", test_ring_reset_in_flight_then_reset },
    { "work-requests-are-limited", test_work_requests_are_limited },
    { "bad-datagram", test_bad_datagram },
    { "datagram-for-another-port", test_datagram_for_another_port },
    { "bad-send-of-uc", test_bad_send_of_uc },
    { "sqe-ends", test_sqe_ends },
    { "bad-after-unsignalled", test_bad_after_unsignalled },
    { "drain", test_drain },
    { "drain-what-waits", test_drain_what_waits },
    { "drain-that-the-host-refuses", test_drain_that_the_host_refuses },
    { "bad-datagram-completes-in-err", test_bad_datagram_completes_in_err },
    { "lost-after-sent-and-lost", test_lost_after_sent_and_lost },
    { "bad-after-sent-and-lost", test_bad_after_sent_and_lost },
    { "lost-after-unsignalled", test_lost_after_unsignalled },
    { "bad-opcode-to-lost-address", test_bad_opcode_to_a_lost_address },
    { "many-addresses", test_many_addresses },
    { "qkey-of-the-qp", test_qkey_of_the_qp },
    { "completions-during-resize", test_completions_during_resize },
    {}
};
