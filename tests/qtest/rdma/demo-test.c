/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: what layout=demo has besides other offsets, as
 * docs/specs/virtio-rdma-demo.rst says. The tests of commands, work requests
 * and completions run with this layout, too (test_add_layouts()).
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"
#include "standard-headers/linux/pci_regs.h"
#include "standard-headers/linux/virtio_pci.h"
#include "standard-headers/linux/virtio_ring.h"

#define OPTIONS "max-qp=8,max-cq=6,layout=demo,mac=" TEST_MAC

static QRdma *open_demo(void)
{
    QRdma *d = test_own_device(OPTIONS);

    qrdma_use_demo(d);
    return d;
}

static QRdma *start_demo(void)
{
    QRdma *d = open_demo();

    qrdma_start(d, 0, 0);
    return d;
}

static TestPair start_pair(void)
{
    return test_pair_on(start_demo(), RDMA_QPT_RC, 16, NULL);
}

static void stop(QRdma *d)
{
    qrdma_host_stop(d->host);
    qrdma_uses_demo = false;
}

static void test_send_to_itself(void)
{
    QRdma *d = start_demo();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 16);
    QRdmaMr *mr = qrdma_reg_mr(pd, 0x10010, 8192, TEST_ACCESS_ALL);
    RdmaSge from = qrdma_sge(mr, 0, 4000), to = qrdma_sge(mr, 4000, 4000);
    QRdmaQp *qp;

    qrdma_setup_gids(d, 1);
    qp = qrdma_create_loop(pd, cq, cq);
    qrdma_mr_fill(mr, 0, 4000, 7);
    qrdma_recv(qp, 1, &to);
    qrdma_post(qp, qrdma_wr(RDMA_WR_SEND, 2, &from));
    qrdma_expect_wc(cq, 1, RDMA_WC_RECV, NULL);
    qrdma_expect_wc(cq, 2, RDMA_WC_SEND, NULL);
    qrdma_mr_check(mr, 4000, 4000, 7);
    stop(d);
}

static void test_config(void)
{
    QRdma *d = open_demo();
    /* Offset and size of a field, and its value */
    static const struct {
        uint16_t at;
        uint8_t size;
        uint32_t value;
    } fields[] = {
        { 0, 4, 1 }, { 12, 4, 0x525400 }, { 40, 4, 8 }, { 68, 4, 6 },
        { 96, 4, RDMA_ATOMIC_GLOB }, { 100, 4, 0 }, { 116, 4, 65536 },
        { 120, 4, 1024 }, { 128, 2, 1 }, { 130, 1, 15 },
    };

    for (int i = 0; i < ARRAY_SIZE(fields); i++) {
        g_assert_cmphex(qrdma_config_read(d, fields[i].at, fields[i].size), ==,
                        fields[i].value);
    }
    for (int i = 131; i < QRDMA_DEMO_CONFIG_SIZE; i++) {
        g_assert_cmphex(qrdma_config_read(d, i, 1), ==, 0);
    }
    /* QEMU answers reads beyond the end so */
    g_assert_cmphex(qrdma_config_read(d, QRDMA_DEMO_CONFIG_SIZE, 1), ==, 0xff);
    stop(d);
}

static void test_no_features(void)
{
    QRdma *d = test_own_device(OPTIONS ",version-1=on,direct=on,packed=on,"
                               "in_order=on,event_idx=on,indirect_desc=on");

    g_assert_cmphex(qvirtio_get_features(&d->pci->vdev), ==,
                    QRDMA_F(VIRTIO_F_VERSION_1));
    /* BAR 2 would have the doorbells. */
    g_assert_cmphex(qpci_config_readl(d->pci->pdev, PCI_BASE_ADDRESS_2), ==, 0);
    stop(d);
}

static void test_commands_before_driver_ok(void)
{
    QRdma *d = open_demo();
    QVirtioDevice *vdev = &d->pci->vdev;
    uint32_t pdn, other;

    qrdma_prepare(d, 0, 0);
    g_assert_cmphex(qrdma_device_status(d), ==,
                    VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER |
                    VIRTIO_CONFIG_S_FEATURES_OK);
    assert_ok(qrdma_try_alloc_pd(d, &pdn));
    qrdma_setup_gids(d, 1);
    qrdma_reg_mr(&(QRdmaPd) { d, pdn }, 0x1000, 4096, 0);
    /* The objects stay. */
    qrdma_driver_ok(d);
    assert_ok(qrdma_try_alloc_pd(d, &other));
    g_assert_cmpuint(other, !=, pdn);
    assert_status(qrdma_dealloc_pd(&(QRdmaPd) { d, pdn }), BUSY);
    assert_ok(qrdma_del_gid(d, 0, 1));
    /* A reset ends them, and commands. */
    qvirtio_reset(vdev);
    g_assert_cmphex(qrdma_device_status(d), ==, 0);
    qrdma_start(d, 0, 0);
    assert_status(qrdma_dealloc_pd(&(QRdmaPd) { d, pdn }), NOENT);
    stop(d);
}

/* One pair after the other, with work and completions that are left over */
static void test_rings_are_rewound(void)
{
    QRdma *d = start_demo();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaMr *mr = qrdma_reg_mr(pd, 0x10000, 4096, TEST_ACCESS_ALL);
    RdmaSge sge = qrdma_sge(mr, 0, 8);

    qrdma_setup_gids(d, 1);
    for (int i = 0; i < 30; i++) {
        QRdmaCq *cq = qrdma_create_cq(d, 32);
        QRdmaQp *qp = qrdma_create_loop(pd, cq, cq);
        uint32_t messages = i % 7;

        for (uint32_t n = 0; n < messages; n++) {
            qrdma_recv(qp, 100 + n, &sge);
            qrdma_post(qp, qrdma_wr(RDMA_WR_SEND, n, &sge));
            qrdma_expect(cq, 100 + n, RDMA_WC_SUCCESS);
            qrdma_expect(cq, n, RDMA_WC_SUCCESS);
        }
        for (uint32_t n = 0; n < i % 5; n++) {
            qrdma_recv(qp, 200 + n, &sge);
        }
        if (i % 2) {
            /* A message that waits for a receive */
            for (uint32_t n = 0; n < i % 5 + 1; n++) {
                qrdma_post(qp, qrdma_wr(RDMA_WR_SEND, n, &sge));
            }
        }
        assert_ok(qrdma_destroy_qp(qp));
        assert_ok(qrdma_destroy_cq(cq));
    }
    stop(d);
}

/* A driver may start a ring again only after DESTROY. */
static void test_avail_index_that_jumps(void)
{
    TestPair t = start_pair();

    qrdma_post(t.a, qrdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL));
    qrdma_expect(t.cq_a, 1, RDMA_WC_SUCCESS);
    qrdma_ring_set_avail_idx(t.a->sq.ring, 1000);
    qrdma_ring_kick(t.a->sq.ring);
    qrdma_wait_until(t.dev, qrdma_needs_reset(t.dev));
    qrdma_start(t.dev, 0, 0);
    qrdma_alloc_pd(t.dev);
    stop(t.dev);
}

/* The used ring of a queue may lie anywhere when the device rewinds it. */
static void test_rewind_of_a_ring_outside_ram(void)
{
    QRdma *d = open_demo();
    const uint64_t places[] = {
        0xfed00000,                 /* registers of the HPET */
        0x100000000000, UINT64_MAX - 3,
        /* The index is the device's own status, whose value 0 is a reset. */
        d->pci->bar.addr + d->pci->common_cfg_offset +
        offsetof(struct virtio_pci_common_cfg, device_status) -
        offsetof(struct vring_used, idx),
    };

    for (int i = 0; i < ARRAY_SIZE(places); i++) {
        QVirtQueue vq;
        uint32_t cqn;

        qrdma_prepare(d, 0, 0);
        vq = qrdma_ring(d, VIRTIO_RDMA_CQ_VQ(0))->pci.vq;
        vq.used = places[i];
        d->pci->vdev.bus->queue_select(&d->pci->vdev, vq.index);
        d->pci->vdev.bus->set_queue_address(&d->pci->vdev, &vq);
        qrdma_driver_ok(d);
        for (uint32_t n = 0; n < d->max_cq; n++) {
            assert_ok(qrdma_try_create_cq(d, 8, &cqn));
            assert_ok(qrdma_destroy(d, VIRTIO_RDMA_CMD_DESTROY_CQ, cqn));
        }
    }
    qrdma_start(d, 0, 0);
    qrdma_create_cq(d, 8);
    stop(d);
}

static void test_inline(const void *data)
{
    bool with_sge = GPOINTER_TO_INT(data);
    TestPair t = start_pair();
    RdmaSge to = qrdma_sge(t.mr_b, 0, 64), from = qrdma_sge(t.mr_a, 0, 64);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 1, with_sge ? &from : NULL);
    uint8_t inline_data[64], wqe[QRDMA_WQE_ROOM];
    size_t len;

    qrdma_mr_fill(t.mr_a, 0, 64, 5);
    qrdma_mr_read(t.mr_a, 0, inline_data, 64);
    qrdma_recv(t.b, 2, &to);
    if (with_sge) {
        len = qrdma_encode_send(t.a, &wr, wqe);
        stl_le_p(wqe + offsetof(struct virtio_rdma_sq_wqe, send_flags),
                 RDMA_SEND_SIGNALED | RDMA_SEND_INLINE);
    } else {
        wr.send_flags |= RDMA_SEND_INLINE;
        wr.inline_data = inline_data;
        wr.inline_len = 64;
        len = qrdma_encode_send(t.a, &wr, wqe);
    }
    qrdma_post_raw(t.a, &t.a->sq, wqe, len, 0, true);
    qrdma_expect_wc(t.cq_a, 1, RDMA_WC_SEND, NULL);
    qrdma_expect_wc(t.cq_b, 2, RDMA_WC_RECV, NULL);
    qrdma_mr_check(t.mr_b, 0, 64, 5);
    /* One byte more than max_inline_data of the QP */
    if (!with_sge) {
        qrdma_post_raw(t.a, &t.a->sq, wqe, len - 64 + 129, 0, true);
        qrdma_expect(t.cq_a, 1, RDMA_WC_LOC_QP_OP_ERR);
    }
    stop(t.dev);
}

static void test_notify_with_surplus_buffer(void)
{
    QRdma *d = start_demo();
    QRdmaCq *cq = qrdma_create_cq(d, 8);
    struct virtio_rdma_req_notify_cq_req req = {
        .cqn = cpu_to_le32(cq->cqn),
        .flags = cpu_to_le32(VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION),
    };
    QRdmaCmd c = {
        .cmd = VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ,
        .req = &req,
        .req_len = sizeof(req),
        .rsp_cap = 4,
        .in_split = 1,
    };

    assert_ok(qrdma_cmd_raw(d, &c));
    g_assert_cmpuint(c.used_len, ==, 1);
    stop(d);
}

/* A number that does not fit into the u8 of the other layout is not cut. */
static void test_port_numbers_are_not_cut(void)
{
    static const uint32_t ports[] = { 0, 2, 0x101, 0x80000001, UINT32_MAX };
    QRdma *d = start_demo();
    uint8_t rsp[172];

    for (int i = 0; i < ARRAY_SIZE(ports); i++) {
        uint32_t le = cpu_to_le32(ports[i]);

        /* As it is: no conversion of the client */
        d->demo = false;
        g_assert_cmpint(qrdma_cmd(d, VIRTIO_RDMA_CMD_QUERY_PORT, &le,
                                  sizeof(le), rsp, sizeof(rsp)), ==,
                        VIRTIO_RDMA_S_ERR);
    }
    g_assert_cmpint(qrdma_cmd(d, VIRTIO_RDMA_CMD_QUERY_PORT,
                              &(uint32_t) { cpu_to_le32(1) }, 3, rsp,
                              sizeof(rsp)), ==, VIRTIO_RDMA_S_ERR);
    g_assert_cmpint(qrdma_cmd(d, VIRTIO_RDMA_CMD_QUERY_PORT,
                              &(uint32_t) { cpu_to_le32(1) }, 4, rsp,
                              sizeof(rsp)), ==, VIRTIO_RDMA_S_OK);
    g_assert_cmphex(ldl_le_p(rsp), ==, RDMA_PORT_ACTIVE);
    g_assert_cmphex(lduw_le_p(rsp + 36), ==, 1);
    stop(d);
}

/* More pages than a table has entries */
#define MANY_PAGES 600

static void test_two_levels(void)
{
    TestPair t = start_pair();
    QRdmaMr *big = qrdma_reg_mr(t.pd, 0x7f0000000800ull, MANY_PAGES * 4096ull -
                                0x800, TEST_ACCESS_ALL);
    QRdmaMr *fast = qrdma_alloc_mr(t.pd, TEST_ACCESS_ALL, 512);
    uint64_t last = big->length - 100;
    RdmaSge sge = qrdma_sge(big, last, 100);

    g_assert_cmpuint(big->npages, ==, MANY_PAGES);
    qrdma_mr_fill(big, last, 100, 9);
    qrdma_post_expect_wc(t.a, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge,
                                            t.mr_b, 0), RDMA_WC_RDMA_WRITE);
    qrdma_mr_check(t.mr_b, 0, 100, 9);

    assert_ok(qrdma_map_mr_sg(fast, 0x20000, 512 * 4096));
    qrdma_post_expect_wc(t.a, (RdmaSendWr) {
        .wr_id = 2,
        .opcode = RDMA_WR_REG_MR,
        .send_flags = RDMA_SEND_SIGNALED,
        .wr.reg = {
            .mrn = fast->mrn, .key = fast->lkey, .access = TEST_ACCESS_ALL,
        },
    }, RDMA_WC_REG_MR);
    qrdma_post_expect_wc(t.a, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 3, &sge, fast,
                                            511 * 4096), RDMA_WC_RDMA_WRITE);
    qrdma_mr_check(fast, 511 * 4096, 100, 9);
    stop(t.dev);
}

static void test_bad_tables(void)
{
    QRdma *d = start_demo();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaMr *mr = qrdma_reg_mr(pd, 0, 4096, 0);
    struct virtio_rdma_reg_user_mr_req req = {
        .pdn = cpu_to_le32(pd->pdn),
        .length = cpu_to_le64(4096),
        .pages = cpu_to_le64(mr->table),
        .npages = cpu_to_le32(1),
    };
    uint64_t le;

    assert_ok(qrdma_reg_user_mr(d, &req, NULL));
    assert_field(qrdma_reg_user_mr(d, &req, NULL), req, pages,
                 cpu_to_le64(mr->table + 8), INVAL);
    /* One page more than two levels reach */
    req.length = cpu_to_le64((512 * 512 + 1) * 4096ull);
    assert_field(qrdma_reg_user_mr(d, &req, NULL), req, npages,
                 cpu_to_le32(512 * 512 + 1), INVAL);
    req.length = cpu_to_le64(4096);
    /* A flat list instead of a table of lists */
    le = cpu_to_le64(1);
    qrdma_write(d, mr->table, &le, sizeof(le));
    assert_status(qrdma_reg_user_mr(d, &req, NULL), INVAL);
    le = cpu_to_le64(1ull << 52);
    qrdma_write(d, mr->table, &le, sizeof(le));
    assert_status(qrdma_reg_user_mr(d, &req, NULL), INVAL);
    stop(d);
}

/* Datagrams; the client leaves av.pdn 0, as the demo's driver does */
static void test_datagram(void)
{
    QRdma *d = start_demo();
    QRdmaPd *pd = qrdma_alloc_pd(d);
    QRdmaCq *cq = qrdma_create_cq(d, 16);
    QRdmaMr *mr = qrdma_reg_mr(pd, 0x10000, 4096, TEST_ACCESS_ALL);
    RdmaSge from = qrdma_sge(mr, 0, 100), to = qrdma_sge(mr, 1000, 140);
    uint8_t wqe[QRDMA_WQE_ROOM];
    RdmaSendWr wr;
    QRdmaQp *qp;
    size_t len;
    RdmaWc wc;

    qrdma_setup_gids(d, 1);
    qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_UD);
    qrdma_start_ud(qp, QRDMA_QKEY);
    qrdma_mr_fill(mr, 0, 100, 3);
    qrdma_recv(qp, 1, &to);
    wr = qrdma_ud_wr(2, &from, qp, 1);
    len = qrdma_encode_send(qp, &wr, wqe);
    stl_le_p(wqe + offsetof(struct virtio_rdma_sq_wqe, wr.ud.av.pdn), 0);
    qrdma_post_raw(qp, &qp->sq, wqe, len, 0, true);
    qrdma_expect_wc(cq, 1, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, 140);
    g_assert_cmpuint(wc.src_qp, ==, qp->qpn);
    g_assert_cmphex(wc.wc_flags, ==, RDMA_WC_GRH);
    qrdma_expect_wc(cq, 2, RDMA_WC_SEND, NULL);
    qrdma_mr_check(mr, 1040, 100, 3);
    stop(d);
}

/* Of a pair of devices with different layouts */
typedef struct End {
    QRdma *d;
    QRdmaCq *cq;
    QRdmaMr *mr;
    QRdmaQp *qp;
} End;

static End end_new(QRdmaHost *host, int slot, bool demo)
{
    End e = { .d = qrdma_open(host, QPCI_DEVFN(slot, 0)) };
    QRdmaPd *pd;

    if (demo) {
        qrdma_use_demo(e.d);
    }
    qrdma_start(e.d, 0, 0);
    qrdma_setup_gids(e.d, slot);
    pd = qrdma_alloc_pd(e.d);
    e.cq = qrdma_create_cq(e.d, 16);
    e.mr = qrdma_reg_mr(pd, 0x10000, 8192, TEST_ACCESS_ALL);
    e.qp = qrdma_create_qp(pd, e.cq, e.cq, RDMA_QPT_RC);
    return e;
}

static void send_message(End *from, End *to, uint8_t seed)
{
    RdmaSge source = qrdma_sge(from->mr, 0, 4000);
    RdmaSge dest = qrdma_sge(to->mr, 4096, 4000);

    qrdma_mr_fill(from->mr, 0, 4000, seed);
    qrdma_recv(to->qp, 1, &dest);
    qrdma_post(from->qp, qrdma_wr(RDMA_WR_SEND, 2, &source));
    qrdma_expect_wc(to->cq, 1, RDMA_WC_RECV, NULL);
    qrdma_expect_wc(from->cq, 2, RDMA_WC_SEND, NULL);
    qrdma_mr_check(to->mr, 4096, 4000, seed);
}

static void test_peer_with_the_other_layout(void)
{
    g_autoptr(QRdmaHost) host = qrdma_host_start(
        "-netdev hubport,id=n0,hubid=0 -netdev hubport,id=n1,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=4," OPTIONS " "
        "-device virtio-rdma-pci,netdev=n1,addr=5,max-qp=8,max-cq=4,"
        "mac=52:54:00:12:34:02");
    End demo = end_new(host, 4, true);
    End other = end_new(host, 5, false);
    RdmaSge sge = qrdma_sge(other.mr, 0, 1000);

    qrdma_connect(demo.qp, other.qp, NULL);
    send_message(&demo, &other, 1);
    send_message(&other, &demo, 2);
    qrdma_mr_fill(demo.mr, 0, 1000, 3);
    qrdma_post_expect_wc(other.qp, qrdma_rdma_wr(RDMA_WR_RDMA_READ, 3, &sge,
                                                 demo.mr, 0),
                         RDMA_WC_RDMA_READ);
    qrdma_mr_check(other.mr, 0, 1000, 3);
    qrdma_uses_demo = false;
}

static void test_property(void)
{
    g_autoptr(QRdmaHost) host = qrdma_host_start(
        "-machine acpi=on -netdev hubport,id=n0,hubid=0 "
        "-object iothread,id=io0");
    QTestState *qts = host->qts;

#define ADD(driver, props) \
    "{'execute': 'device_add', 'arguments': {'driver': '" driver "', " \
    "'netdev': 'n0', " props "}}"
    qrdma_qmp_refused(qts, ADD("virtio-rdma-pci", "'layout': 'natural'"),
                      "expected layout=spec or layout=demo, got \"natural\"");
    qrdma_qmp_refused(qts, ADD("virtio-rdma-pci", "'layout': ''"),
                      "got \"\"");
    qrdma_qmp_refused(qts, ADD("virtio-rdma-pci",
                               "'layout': 'demo', 'iothread': 'io0'"),
                      "version-1=on and layout=spec");
#undef ADD
}

/* That device cannot be plugged into a machine that runs. */
static void test_not_by_vhost_user(void)
{
    g_autofree char *command = g_strdup_printf(
        "%s -machine none -nodefaults -display none "
        "-netdev hubport,id=n0,hubid=0 -device virtio-rdma-vhost-user,"
        "netdev=n0,path=/nowhere,layout=demo", g_getenv("QTEST_QEMU_BINARY"));
    g_autofree char *errors = NULL;

    g_assert_true(g_spawn_command_line_sync(command, NULL, &errors, NULL,
                                            NULL));
    g_assert_nonnull(strstr(errors, "layout=demo does not go with vhost-user"));
}

const QRdmaTest demo_tests[] = {
    { "send-to-itself", test_send_to_itself },
    { "config", test_config },
    { "no-features", test_no_features },
    { "commands-before-driver-ok", test_commands_before_driver_ok },
    { "rings-are-rewound", test_rings_are_rewound },
    { "avail-index-that-jumps", test_avail_index_that_jumps },
    { "rewind-of-a-ring-outside-ram", test_rewind_of_a_ring_outside_ram },
    { "inline-data", .run_case = test_inline,
      .data = GINT_TO_POINTER(false) },
    { "inline-with-sges", .run_case = test_inline,
      .data = GINT_TO_POINTER(true) },
    { "notify-with-surplus-buffer", test_notify_with_surplus_buffer },
    { "port-numbers-are-not-cut", test_port_numbers_are_not_cut },
    { "two-levels", test_two_levels },
    { "bad-tables", test_bad_tables },
    { "datagram", test_datagram },
    { "peer-with-the-other-layout", test_peer_with_the_other_layout },
    { "property", test_property },
    { "not-by-vhost-user", test_not_by_vhost_user },
    {}
};
