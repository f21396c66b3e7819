/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: QP 1 of the guest, over a double of libibumad.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "qemu/bswap.h"
#include "tests/fake-ibverbs/fake-ibumad.h"
#include "gsi-fixture.h"

#define DEPTH 32

/* Let @function fail with @err from now on; 0: succeed. */
static void script(const Gsi *g, const char *function, int err)
{
    g_autofree char *path = gsi_path(g, function);
    g_autofree char *text = g_strdup_printf("%d", err);

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

/* Return the status of CREATE_QP for QP 1. */
static uint8_t try_create(Gsi *g)
{
    const RdmaQpInitAttr init = {
        .pdn = g->pd->pdn,
        .qp_type = RDMA_QPT_GSI,
        .send_cqn = g->cq->cqn,
        .recv_cqn = g->cq->cqn,
        .cap = { DEPTH, DEPTH, 2, 2, 0 },
    };
    uint32_t qpn;

    return qrdma_try_create_qp(g->v->dev, &init, &qpn);
}

/* Post a MAD made of @seed, with byte @at changed to @value. */
static void post_send(Gsi *g, uint8_t gid_index, uint8_t seed, int at,
                      uint8_t value)
{
    uint8_t mad[GSI_MAD_LEN];

    gsi_fill_mad(mad, seed);
    mad[at] = value;
    gsi_post_mad(g, gid_index, seed, mad);
}

static void post_good(Gsi *g, uint8_t gid_index, uint8_t seed)
{
    post_send(g, gid_index, seed, 0, 1);
}

static RdmaRecvWr recv_wr(Gsi *g, uint64_t wr_id, RdmaSge *sge, uint32_t len)
{
    *sge = (RdmaSge) { qrdma_dma(g->v->dev, g->mem) + 4096, len, g->mr->lkey };
    return (RdmaRecvWr) { .wr_id = wr_id, .sg_list = sge, .num_sge = 1 };
}

static void post_recv(Gsi *g, uint64_t wr_id, uint32_t len)
{
    RdmaSge sge;
    RdmaRecvWr wr = recv_wr(g, wr_id, &sge, len);

    qrdma_post_recv(g->qp, &wr);
}

/* Assert that the next MAD of the host is that of @seed. */
static GsiPacket expect_sent(Gsi *g, uint8_t seed)
{
    uint8_t mad[GSI_MAD_LEN];
    GsiPacket p = {};

    g_assert_cmpint(recv(g->fd, &p, sizeof(p), 0), ==, sizeof(p));
    gsi_fill_mad(mad, seed);
    g_assert_cmpmem(p.mad, GSI_MAD_LEN, mad, GSI_MAD_LEN);
    return p;
}

static void expect_send(Gsi *g, uint8_t seed, RdmaWcStatus status)
{
    qrdma_expect(g->cq, seed, status);
}

/* Send a MAD to the host's GID @gid_index, from @source. */
static void arrive(Gsi *g, uint8_t seed, uint8_t gid_index, const char *source)
{
    GsiPacket p = {
        .head.agent_id = 5,
        .head.addr = {
            .qpn = cpu_to_be32(1),
            .grh_present = 1,
            .gid_index = gid_index,
            .hop_limit = 63,
            .traffic_class = 0x20,
            .flow_label = cpu_to_be32(0x54321),
        },
    };
    int unread;

    g_assert_cmpint(inet_pton(AF_INET6, source, p.head.addr.gid), ==, 1);
    gsi_fill_mad(p.mad, seed);
    g_assert_cmpint(send(g->fd, &p, sizeof(p), MSG_NOSIGNAL), ==, sizeof(p));
    qrdma_wait_until(g->v->dev, !ioctl(g->fd, SIOCOUTQ, &unread) && !unread);
}

static void expect_received(Gsi *g, uint64_t wr_id, uint8_t seed,
                            uint8_t grh[GSI_GRH_LEN])
{
    uint8_t buf[GSI_BUFFER_LEN], mad[GSI_MAD_LEN];
    RdmaWc wc;

    qrdma_expect_wc(g->cq, wr_id, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, GSI_BUFFER_LEN);
    g_assert_cmpuint(wc.qp_num, ==, RDMA_QPN_GSI);
    g_assert_cmpuint(wc.src_qp, ==, 1);
    g_assert_cmphex(wc.wc_flags, ==, RDMA_WC_GRH | RDMA_WC_WITH_HDR_TYPE);
    qrdma_read(g->v->dev, g->mem + 4096, buf, sizeof(buf));
    gsi_fill_mad(mad, seed);
    g_assert_cmpmem(buf + GSI_GRH_LEN, GSI_MAD_LEN, mad, GSI_MAD_LEN);
    memcpy(grh, buf, GSI_GRH_LEN);
}

static void check_works(Gsi *g, uint8_t seed)
{
    uint8_t grh[GSI_GRH_LEN];

    post_good(g, 1, seed);
    expect_send(g, seed, RDMA_WC_SUCCESS);
    expect_sent(g, seed);
    post_recv(g, seed, GSI_BUFFER_LEN);
    arrive(g, seed, 1, "::ffff:10.0.0.9");
    expect_received(g, seed, seed, grh);
}

/* The host's index of a GID shows which GID a MAD comes from or goes to. */
static void test_both_ways(void)
{
    g_autoptr(Gsi) g = gsi_new();
    QRdma *d = g->v->dev;

    for (uint8_t index = 0; index < 2; index++) {
        GsiPacket p;

        post_good(g, index, 30 + index);
        expect_send(g, 30 + index, RDMA_WC_SUCCESS);
        p = expect_sent(g, 30 + index);
        g_assert_cmpuint(be32_to_cpu(p.head.addr.qpn), ==, 1);
        g_assert_cmphex(be32_to_cpu(p.head.addr.qkey), ==, 0x80010000);
        g_assert_cmpuint(p.head.addr.grh_present, ==, 1);
        g_assert_cmpuint(p.head.addr.gid_index, ==, index);
        g_assert_cmpmem(p.head.addr.gid, 16, d->gid[index], 16);
        g_assert_cmpuint(p.head.addr.hop_limit, ==, 64);
        g_assert_cmphex(p.head.addr.traffic_class, ==, 0x20);
        g_assert_cmphex(be32_to_cpu(p.head.addr.flow_label), ==, 0x12345);
        g_assert_cmpuint(p.head.timeout_ms, ==, 0);
    }
}

static void test_grh(void)
{
    static const uint8_t ipv4[20] = {
        0x45, 0x20, 0x01, 0x34, 0, 0, 0x40, 0, 63, 17, 0x26, 0x90,
        10, 0, 0, 9, 10, 0, 0, 1,
    };
    static const uint8_t none[20];
    g_autoptr(Gsi) g = gsi_new();
    uint8_t grh[GSI_GRH_LEN], source[16];

    post_recv(g, 1, GSI_BUFFER_LEN);
    arrive(g, 40, 1, "::ffff:10.0.0.9");
    expect_received(g, 1, 40, grh);
    g_assert_cmpmem(grh, 20, none, 20);
    g_assert_cmpmem(grh + 20, 20, ipv4, 20);

    post_recv(g, 2, GSI_BUFFER_LEN);
    arrive(g, 41, 0, "fe80::9");
    expect_received(g, 2, 41, grh);
    inet_pton(AF_INET6, "fe80::9", source);
    g_assert_cmphex(ldl_be_p(grh), ==, 0x62054321);
    g_assert_cmpuint(lduw_be_p(grh + 4), ==, 288);
    g_assert_cmpuint(grh[6], ==, 17);
    g_assert_cmpuint(grh[7], ==, 63);
    g_assert_cmpmem(grh + 8, 16, source, 16);
    g_assert_cmpmem(grh + 24, 16, g->v->dev->gid[0], 16);
}

static void check_rest_works(Verbs *v)
{
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    verbs_check_works(&p, 1);
}

/* A guest without QP 1 has all other features, and may ask again. */
static void test_refused(void)
{
    g_autoptr(Gsi) g = gsi_host();

    script(g, "register2", EINVAL);
    verbs_plug(g->v);
    gsi_objects(g);
    for (int i = 0; i < 3; i++) {
        assert_status(try_create(g), NOTSUPP);
        gsi_accept_port(g);
    }
    check_rest_works(g->v);
    script(g, "register2", 0);
    verbs_restart(g->v);
    gsi_objects(g);
    gsi_create(g);
    qrdma_start_ud(g->qp, RDMA_GSI_QKEY);
    check_works(g, 1);
}

static void test_no_device(void)
{
    g_autoptr(Gsi) g = gsi_host();
    g_autofree char *path = gsi_path(g, FAKE_IBUMAD_PORT);

    g_unlink(path);
    verbs_plug(g->v);
    gsi_objects(g);
    assert_status(try_create(g), NOTSUPP);
    check_rest_works(g->v);
}

static void test_cm_off(void)
{
    g_autoptr(Gsi) g = gsi_host();
    struct pollfd poll_fd = { .fd = g->listener, .events = POLLIN };

    qtest_qmp_assert_success(g->v->host->qts, "{'execute': 'qom-set', "
                             "'arguments': {'path': '/objects/r0', "
                             "'property': 'cm', 'value': false}}");
    verbs_plug(g->v);
    gsi_objects(g);
    assert_status(try_create(g), NOTSUPP);
    g_assert_cmpint(poll(&poll_fd, 1, 0), ==, 0);
    check_rest_works(g->v);
}

/* Other MADs of the guest are lost without an error. */
static void test_only_cm(void)
{
    static const struct {
        int at;
        uint8_t value;
    } bad[] = {
        { 1, 1 },       /* SubnMgt */
        { 1, 3 },       /* SubnAdm */
        { 1, 4 },       /* PerfMgt */
        { 1, 0x81 },    /* SubnMgt, directed route */
        { 2, 1 },       /* version */
        { 3, 1 },       /* Get */
        { 3, 0x81 },    /* GetResp */
        { 3, 0x83 },
    };
    g_autoptr(Gsi) g = gsi_new();
    RdmaSge sge = { qrdma_dma(g->v->dev, g->mem), GSI_MAD_LEN, g->mr->lkey };
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 77, &sge);

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        post_send(g, 1, i, bad[i].at, bad[i].value);
        expect_send(g, i, RDMA_WC_SUCCESS);
    }
    /* To another QP, too long, too short, to a group */
    wr.wr.ud.remote_qpn = 2;
    wr.wr.ud.remote_qkey = RDMA_GSI_QKEY;
    wr.wr.ud.av = qrdma_av(g->v->dev, 1);
    qrdma_post_send(g->qp, &wr);
    expect_send(g, 77, RDMA_WC_SUCCESS);
    wr.wr.ud.remote_qpn = RDMA_QPN_GSI;
    sge.length = GSI_MAD_LEN + 1;
    qrdma_post_send(g->qp, &wr);
    expect_send(g, 77, RDMA_WC_SUCCESS);
    sge.length = GSI_MAD_LEN - 1;
    qrdma_post_send(g->qp, &wr);
    expect_send(g, 77, RDMA_WC_SUCCESS);
    sge.length = GSI_MAD_LEN;
    memset(wr.wr.ud.av.dgid, 0xff, 2);
    qrdma_post_send(g->qp, &wr);
    expect_send(g, 77, RDMA_WC_SUCCESS);
    check_works(g, 99);
}

/* A send WR that fails, between two that succeed */
static void check_bad_send(Gsi *g, const RdmaSendWr *wr, RdmaWcStatus status)
{
    const RdmaQpAttr rts = { .qp_state = RDMA_QPS_RTS };

    post_good(g, 1, 1);
    expect_sent(g, 1);
    qrdma_post_send(g->qp, wr);
    expect_send(g, 1, RDMA_WC_SUCCESS);
    expect_send(g, wr->wr_id, status);
    post_good(g, 1, 3);
    expect_send(g, 3, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpint(qrdma_qp_state(g->qp), ==, RDMA_QPS_SQE);
    assert_ok(qrdma_modify_qp(g->qp, RDMA_QP_STATE, &rts));
    check_works(g, 4);
}

static void test_bad_memory(void)
{
    g_autoptr(Gsi) g = gsi_new();
    QRdma *d = g->v->dev;
    QRdmaMr *user = qrdma_reg_mr(g->pd, 0, VERBS_MR_SIZE, VERBS_ACCESS_ALL);
    QRdmaMr *other = qrdma_get_dma_mr(qrdma_alloc_pd(d),
                                      RDMA_ACCESS_LOCAL_WRITE);
    QRdmaMr *read_only = qrdma_get_dma_mr(g->pd, 0);
    const uint64_t mem = qrdma_dma(d, g->mem);
    RdmaSge sge;
    RdmaSendWr wr = {
        .wr_id = 2,
        .opcode = RDMA_WR_SEND,
        .sg_list = &sge,
        .num_sge = 1,
        .wr.ud = { RDMA_QPN_GSI, RDMA_GSI_QKEY, qrdma_av(d, 1) },
    };
    const RdmaSge bad[] = {
        { 0xfee00000, GSI_MAD_LEN, g->mr->lkey },       /* registers */
        { 1ull << 46, GSI_MAD_LEN, g->mr->lkey },       /* nothing */
        { UINT64_MAX - 8, GSI_MAD_LEN, g->mr->lkey },
        { mem, GSI_MAD_LEN, g->mr->lkey ^ 1 },
        { mem, GSI_MAD_LEN, 0 },
        { mem, GSI_MAD_LEN, UINT32_MAX },
        { mem, GSI_MAD_LEN, user->lkey },
        { mem, GSI_MAD_LEN, other->lkey },
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        sge = bad[i];
        check_bad_send(g, &wr, RDMA_WC_LOC_PROT_ERR);
    }
    sge = (RdmaSge) { mem, GSI_MAD_LEN, read_only->lkey };
    wr.opcode = RDMA_WR_RDMA_WRITE;
    check_bad_send(g, &wr, RDMA_WC_LOC_QP_OP_ERR);
    wr.opcode = RDMA_WR_SEND;
    wr.wr.ud.av.sgid_index = 9;
    check_bad_send(g, &wr, RDMA_WC_LOC_QP_OP_ERR);

    /* A receive moves the QP to ERR */
    sge = (RdmaSge) { mem, GSI_BUFFER_LEN, read_only->lkey };
    qrdma_recv(g->qp, 5, &sge);
    post_recv(g, 6, GSI_BUFFER_LEN);
    arrive(g, 7, 1, "::ffff:10.0.0.9");
    qrdma_expect(g->cq, 5, RDMA_WC_LOC_PROT_ERR);
    qrdma_expect(g->cq, 6, RDMA_WC_WR_FLUSH_ERR);
    post_recv(g, 8, GSI_BUFFER_LEN);
    qrdma_expect(g->cq, 8, RDMA_WC_WR_FLUSH_ERR);
    post_good(g, 1, 9);
    expect_send(g, 9, RDMA_WC_WR_FLUSH_ERR);
    assert_ok(qrdma_modify_qp_state(g->qp, RDMA_QPS_RESET));
    qrdma_start_ud(g->qp, RDMA_GSI_QKEY);
    check_works(g, 10);
}

/* MADs are lost like datagrams, without an error. */
static void test_lost(void)
{
    g_autoptr(Gsi) g = gsi_new();

    script(g, "send", ENETUNREACH);
    post_good(g, 1, 1);
    expect_send(g, 1, RDMA_WC_SUCCESS);
    script(g, "send", 0);
    check_works(g, 2);
}

static void test_dropped(void)
{
    g_autoptr(Gsi) g = gsi_new();
    uint8_t grh[GSI_GRH_LEN];

    /* No buffer, one that is too short, a GID that the guest does not have */
    arrive(g, 1, 1, "::ffff:10.0.0.9");
    post_recv(g, 1, GSI_BUFFER_LEN - 1);
    arrive(g, 2, 1, "::ffff:10.0.0.9");
    qrdma_expect_none(g->cq);
    assert_ok(qrdma_modify_qp_state(g->qp, RDMA_QPS_RESET));
    qrdma_start_ud(g->qp, RDMA_GSI_QKEY);
    post_recv(g, 3, GSI_BUFFER_LEN);
    arrive(g, 3, 7, "::ffff:10.0.0.9");
    qrdma_expect_none(g->cq);
    arrive(g, 4, 1, "::ffff:10.0.0.9");
    expect_received(g, 3, 4, grh);
}

static void test_stopped(void)
{
    g_autoptr(Gsi) g = gsi_new();
    uint8_t grh[GSI_GRH_LEN];

    post_recv(g, 1, GSI_BUFFER_LEN);
    qrdma_settle(g->v->dev);
    qtest_qmp_assert_success(g->v->host->qts, "{'execute': 'stop'}");
    arrive(g, 1, 1, "::ffff:10.0.0.9");
    qtest_qmp_assert_success(g->v->host->qts, "{'execute': 'cont'}");
    qrdma_expect_none(g->cq);
    arrive(g, 2, 1, "::ffff:10.0.0.9");
    expect_received(g, 1, 2, grh);
}

/* Assert that the port is closed after the sent MADs. */
static void expect_closed(Gsi *g)
{
    GsiPacket p;
    ssize_t n;

    do {
        n = recv(g->fd, &p, sizeof(p), 0);
    } while (n > 0);
    g_assert_cmpint(n, ==, 0);
}

/* Also when it is in use. */
static void test_given_back(void)
{
    g_autoptr(Gsi) g = gsi_new();
    RdmaWc wc;

    post_recv(g, 1, GSI_BUFFER_LEN);
    post_good(g, 1, 1);
    assert_ok(qrdma_destroy_qp(g->qp));
    expect_closed(g);
    while (qrdma_poll_cq(g->cq, &wc)) {
        ;
    }
    gsi_create(g);
    qrdma_start_ud(g->qp, RDMA_GSI_QKEY);
    check_works(g, 1);
    post_recv(g, 2, GSI_BUFFER_LEN);
    post_good(g, 1, 2);
    verbs_restart(g->v);
    expect_closed(g);
    gsi_objects(g);
    gsi_create(g);
    qrdma_start_ud(g->qp, RDMA_GSI_QKEY);
    check_works(g, 2);
    post_good(g, 1, 3);
    verbs_unplug(g->v);
    expect_closed(g);
}

static void test_device_gone(void)
{
    g_autoptr(Gsi) g = gsi_new();

    post_recv(g, 1, GSI_BUFFER_LEN);
    qrdma_settle(g->v->dev);
    shutdown(g->fd, SHUT_RDWR);
    qrdma_expect_event(g->v->dev, RDMA_EVENT_QP_FATAL, RDMA_QPN_GSI);
    qrdma_expect(g->cq, 1, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpint(qrdma_qp_state(g->qp), ==, RDMA_QPS_ERR);
    assert_ok(qrdma_destroy_qp(g->qp));
    gsi_create(g);
    qrdma_start_ud(g->qp, RDMA_GSI_QKEY);
    check_works(g, 2);
}

/* Also in a device that is plugged in again */
static void test_cq_fails(void)
{
    g_autoptr(Gsi) g = gsi_new();

    for (int i = 0; i < 2; i++) {
        post_recv(g, 1, GSI_BUFFER_LEN);
        qrdma_settle(g->v->dev);
        fake_verbs_tell(g->v->fake, "event CQ_ERR 0x%x",
                        fake_verbs_newest(g->v->fake, "cq"));
        qrdma_expect_event(g->v->dev, RDMA_EVENT_CQ_ERR, g->cq->cqn);
        qrdma_expect_event(g->v->dev, RDMA_EVENT_QP_FATAL, RDMA_QPN_GSI);
        qrdma_expect_none(g->cq);
        if (i == 0) {
            verbs_unplug(g->v);
            verbs_plug(g->v);
            gsi_objects(g);
            gsi_create(g);
            qrdma_start_ud(g->qp, RDMA_GSI_QKEY);
        }
    }
}

static void test_states(void)
{
    static const uint32_t all = RDMA_QP_STATE | RDMA_QP_PKEY_INDEX |
                                RDMA_QP_QKEY;
    g_autoptr(Gsi) g = gsi_host();
    RdmaQpAttr attr = { .qp_state = RDMA_QPS_INIT, .qkey = RDMA_GSI_QKEY };

    verbs_plug(g->v);
    gsi_objects(g);
    gsi_create(g);
    assert_status(qrdma_modify_qp(g->qp, RDMA_QP_STATE, &attr), INVAL);
    attr.pkey_index = 1;
    assert_status(qrdma_modify_qp(g->qp, all, &attr), INVAL);
    attr.pkey_index = 0;
    assert_status(qrdma_modify_qp(g->qp, all | RDMA_QP_ACCESS_FLAGS, &attr),
                  INVAL);
    assert_ok(qrdma_modify_qp(g->qp, all, &attr));
    attr.qp_state = RDMA_QPS_RTS;
    assert_status(qrdma_modify_qp(g->qp, RDMA_QP_STATE | RDMA_QP_SQ_PSN,
                                  &attr), INVAL);
    attr.qp_state = RDMA_QPS_RTR;
    assert_ok(qrdma_modify_qp(g->qp, RDMA_QP_STATE, &attr));
    attr.qp_state = RDMA_QPS_RTS;
    assert_status(qrdma_modify_qp(g->qp, RDMA_QP_STATE, &attr), INVAL);
    assert_ok(qrdma_modify_qp(g->qp, RDMA_QP_STATE | RDMA_QP_SQ_PSN, &attr));
    attr.cur_qp_state = RDMA_QPS_SQE;
    assert_status(qrdma_modify_qp(g->qp, RDMA_QP_STATE | RDMA_QP_CUR_STATE,
                                  &attr), INVAL);
    assert_status(qrdma_modify_qp_state(g->qp, RDMA_QPS_SQD), INVAL);
    check_works(g, 1);
    post_recv(g, 2, GSI_BUFFER_LEN);
    assert_ok(qrdma_modify_qp_state(g->qp, RDMA_QPS_ERR));
    qrdma_expect(g->cq, 2, RDMA_WC_WR_FLUSH_ERR);
}

/* The driver resets the device before the host has sent the MADs. */
static void test_reset_before_they_are_sent(void)
{
    g_autoptr(Gsi) g = gsi_new();
    struct virtio_rdma_reg_user_mr_req req = verbs_reg_mr_req(g->pd);
    uint8_t byte;

    verbs_hold_cmd(g->v, "reg_mr_iova2", VIRTIO_RDMA_CMD_REG_USER_MR, &req,
                   sizeof(req), sizeof(struct virtio_rdma_mr_rsp));
    for (int i = 0; i < 3; i++) {
        post_good(g, 0, i);
    }
    qrdma_settle(g->v->dev);
    qrdma_reset(g->v->dev);
    fake_verbs_tell(g->v->fake, "release");
    /* the end, and nothing before */
    g_assert_cmpint(recv(g->fd, &byte, 1, 0), ==, 0);
}

/* A QP without this check could send MADs that QP 1 may not. */
static void test_qkey_of_qp_1(void)
{
    g_autoptr(Gsi) g = gsi_new();
    QRdmaQp *qp = qrdma_create_qp(g->pd, g->cq, g->cq, RDMA_QPT_UD);
    RdmaQpAttr attr = {
        .qp_state = RDMA_QPS_INIT, .port_num = 1, .qkey = RDMA_GSI_QKEY,
    };
    const uint32_t mask = RDMA_QP_STATE | RDMA_QP_PKEY_INDEX | RDMA_QP_PORT |
                          RDMA_QP_QKEY;

    assert_status(qrdma_modify_qp(qp, mask, &attr), PERM);
    attr.qkey = QRDMA_QKEY;
    assert_ok(qrdma_modify_qp(qp, mask, &attr));
    attr.qkey = RDMA_GSI_QKEY;
    assert_status(qrdma_modify_qp(qp, RDMA_QP_QKEY, &attr), PERM);
}

/* MADs from before a RESET take room until the host has sent them. */
static void test_room_after_a_reset(void)
{
    g_autoptr(Gsi) g = gsi_new();
    VerbsPair p = verbs_pair(g->v, RDMA_QPT_UD);
    uint8_t mad[GSI_MAD_LEN];

    fake_verbs_tell(g->v->fake, "delay create_ah");
    verbs_offer_send(&p, 1);
    fake_verbs_tell(g->v->fake, "await create_ah");
    for (int i = 0; i < DEPTH; i++) {
        post_good(g, 0, i);
    }
    qrdma_settle(g->v->dev);
    assert_ok(qrdma_modify_qp_state(g->qp, RDMA_QPS_RESET));
    qrdma_start_ud(g->qp, RDMA_GSI_QKEY);
    post_good(g, 0, 100);
    qrdma_settle(g->v->dev);
    /* The device has not read the MAD. */
    gsi_fill_mad(mad, 101);
    qrdma_write(g->v->dev, g->mem, mad, GSI_MAD_LEN);
    fake_verbs_tell(g->v->fake, "release");
    expect_sent(g, 101);
    expect_send(g, 100, RDMA_WC_SUCCESS);
}

/*
 * A MAD takes a receive that the guest has posted without a doorbell, because
 * the queue is awake, and fails. Later posts are flushed without a doorbell.
 */
static void test_awake_queue_is_flushed(void)
{
    g_autoptr(Gsi) g = gsi_host();
    uint8_t wqe[QRDMA_WQE_ROOM];
    RdmaSge sge;
    RdmaRecvWr wr = { .wr_id = 1, .num_sge = 1, .sg_list = &sge };
    QRdma *d;

    verbs_plug(g->v);
    d = g->v->dev;
    d->direct = true;
    verbs_restart(g->v);
    gsi_objects(g);
    gsi_create(g);
    qrdma_start_ud(g->qp, RDMA_GSI_QKEY);
    qrdma_settle(d);
    g_assert_true(qrdma_direct_awake(d, &g->qp->rq));
    sge = (RdmaSge) { qrdma_dma(d, g->mem), GSI_BUFFER_LEN, g->mr->lkey ^ 1 };
    qrdma_direct_post(d, &g->qp->rq, wqe, qrdma_encode_recv(&wr, wqe));
    arrive(g, 41, 0, "fe80::9");
    qrdma_expect(g->cq, 1, RDMA_WC_LOC_PROT_ERR);
    wr.wr_id = 2;
    qrdma_post_recv(g->qp, &wr);
    qrdma_settle(d);
    g_test_message("awake: %d", qrdma_direct_awake(d, &g->qp->rq));
    qrdma_expect(g->cq, 2, RDMA_WC_WR_FLUSH_ERR);
}

const QRdmaTest verbs_gsi_tests[] = {
    { "awake-queue-is-flushed", test_awake_queue_is_flushed },
    { "mads-pass-both-ways", test_both_ways },
    { "header-of-a-mad-that-came", test_grh },
    { "class-that-the-host-has", test_refused },
    { "host-without-a-device-for-mads", test_no_device },
    { "cm-off", test_cm_off },
    { "nothing-but-mads-of-the-connection-manager", test_only_cm },
    { "bad-memory", test_bad_memory },
    { "mad-that-is-not-sent-is-lost", test_lost },
    { "mad-that-finds-no-buffer", test_dropped },
    { "stopped-guest-gets-nothing", test_stopped },
    { "is-given-back", test_given_back },
    { "device-goes-away", test_device_gone },
    { "cq-fails", test_cq_fails },
    { "states", test_states },
    { "reset-before-they-are-sent", test_reset_before_they_are_sent },
    { "qkey-of-qp-1", test_qkey_of_qp_1 },
    { "room-after-a-reset", test_room_after_a_reset },
    {}
};
