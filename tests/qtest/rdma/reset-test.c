/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: resets of each kind, and the end of the device, at each step of
 * a connection and during each command. Afterwards the device has no state of
 * before.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "hw/pci/pci_regs.h"
#include "rdma-test.h"

#define PORT_SLOT 4
#define SECONDARY_BUS 1
#define WINDOW 0xe000               /* of the port: 0xe0000000 .. 0xe0ffffff */

typedef struct Env {
    QRdmaHost *host;
    QRdma *d;
    TestPair t;
    QRdmaSrq *srq;
    QRdmaMr *fast;
    QRdmaMw mw;
} Env;

/* Set up the bus behind the port, as firmware does. */
static void open_port(QRdmaHost *host)
{
    g_autofree QPCIDevice *port =
        qpci_device_find(host->bus, QPCI_DEVFN(PORT_SLOT, 0));

    qpci_config_writel(port, PCI_PRIMARY_BUS,
                       SECONDARY_BUS << 16 | SECONDARY_BUS << 8);
    qpci_config_writew(port, PCI_MEMORY_BASE, WINDOW);
    qpci_config_writew(port, PCI_MEMORY_LIMIT, WINDOW | 0xf0);
    qpci_config_writew(port, PCI_COMMAND,
                       PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
}

/* A function that is behind a port can be reset alone. */
static Env env_new(void)
{
    Env e = {};

    e.host = qrdma_host_start_machine("q35",
        /* The port, and not ACPI, unplugs the device in its slot */
        "-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off "
        "-netdev hubport,id=n0,hubid=0 "
        "-device pcie-root-port,id=rp0,addr=%d,chassis=1 "
        "-device virtio-rdma-pci,id=rdma0,bus=rp0,netdev=n0,max-qp=8,max-cq=4",
        PORT_SLOT);
    open_port(e.host);
    e.d = qrdma_open(e.host, SECONDARY_BUS << 8);
    return e;
}

static void env_free(Env *e)
{
    qrdma_host_stop(e->host);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Env, env_free)

/* Steps of a connection, from the start of the device */

static void step_start(Env *e)
{
    qrdma_start(e->d, 0, 0);
}

static void step_gids(Env *e)
{
    qrdma_setup_gids(e->d, 1);
}

static void step_pd(Env *e)
{
    e->t = (TestPair) { .dev = e->d, .pd = qrdma_alloc_pd(e->d) };
}

static void step_cqs(Env *e)
{
    e->t.cq_a = qrdma_create_cq(e->d, 64);
    e->t.cq_b = qrdma_create_cq(e->d, 64);
}

static void step_regions(Env *e)
{
    e->t.mr_a = qrdma_reg_mr(e->t.pd, TEST_IOVA_A, TEST_MR_SIZE,
                             TEST_ACCESS_ALL);
    e->t.mr_b = qrdma_reg_mr(e->t.pd, TEST_IOVA_B, TEST_MR_SIZE,
                             TEST_ACCESS_ALL);
    e->fast = qrdma_alloc_mr(e->t.pd, TEST_ACCESS_ALL, 4);
    assert_ok(qrdma_alloc_mw(e->t.pd, RDMA_MW_TYPE_1, &e->mw));
}

static void step_qps(Env *e)
{
    e->srq = qrdma_create_srq(e->t.pd, 16, 1);
    e->t.a = qrdma_create_qp(e->t.pd, e->t.cq_a, e->t.cq_a, RDMA_QPT_RC);
    e->t.b = qrdma_create_qp(e->t.pd, e->t.cq_b, e->t.cq_b, RDMA_QPT_RC);
}

static void step_init(Env *e)
{
    assert_ok(qrdma_modify_init(e->t.a, TEST_ACCESS_ALL));
    assert_ok(qrdma_modify_init(e->t.b, TEST_ACCESS_ALL));
}

static void step_receives(Env *e)
{
    RdmaSge sge = qrdma_sge(e->t.mr_b, 0, 3000);

    for (int i = 0; i < 4; i++) {
        RdmaRecvWr wr = { .wr_id = i, .num_sge = 1, .sg_list = &sge };

        qrdma_post_recv(e->t.b, &wr);
        qrdma_post_srq_recv(e->srq, &wr);
    }
}

/* INIT may be left once only: connect from the beginning. */
static void step_connect(Env *e)
{
    assert_ok(qrdma_modify_qp_state(e->t.a, RDMA_QPS_RESET));
    assert_ok(qrdma_modify_qp_state(e->t.b, RDMA_QPS_RESET));
    qrdma_reap(&e->t.b->rq);
    qrdma_connect(e->t.a, e->t.b, NULL);
}

static void step_arm(Env *e)
{
    assert_ok(qrdma_req_notify_cq(e->t.cq_a, 1));
    assert_ok(qrdma_req_notify_cq(e->t.cq_b, 1));
}

/* The peer has no receives: the sends wait until it has. */
static void step_sends(Env *e)
{
    RdmaSge sge = qrdma_sge(e->t.mr_a, 0, 3000);

    for (int i = 0; i < 4; i++) {
        qrdma_post(e->t.a, qrdma_wr(RDMA_WR_SEND, i, &sge));
    }
}

/* READs after the sends that wait, or under way in the other direction */
static void step_reads(Env *e)
{
    RdmaSge sge = qrdma_sge(e->t.mr_b, 0, 60000);

    for (int i = 0; i < 4; i++) {
        qrdma_post(e->t.b, qrdma_rdma_wr(RDMA_WR_RDMA_READ, i, &sge, e->t.mr_a,
                                         0));
    }
}

static void step_error(Env *e)
{
    assert_ok(qrdma_modify_qp_state(e->t.a, RDMA_QPS_ERR));
}

static void (*const steps[])(Env *e) = {
    step_start, step_gids, step_pd, step_cqs, step_regions, step_qps,
    step_init, step_receives, step_connect, step_arm, step_sends,
    step_reads, step_error,
};

static void climb(Env *e, unsigned to)
{
    for (unsigned i = 0; i <= to; i++) {
        steps[i](e);
    }
}

/* Resets */

static void reopen(Env *e)
{
    qrdma_close(e->d);
    e->d = qrdma_open(e->host, SECONDARY_BUS << 8);
}

static void reset_by_status(Env *e)
{
    qvirtio_reset(&e->d->pci->vdev);
}

static void reset_function(Env *e)
{
    QPCIDevice *pdev = e->d->pci->pdev;
    uint8_t cap = qpci_find_capability(pdev, PCI_CAP_ID_EXP, 0);

    g_assert_cmpuint(cap, !=, 0);
    qpci_config_writew(pdev, cap + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_BCR_FLR);
    reopen(e);
}

static void reset_system(Env *e)
{
    qtest_system_reset(e->host->qts);
    open_port(e->host);
    reopen(e);
}

static void set_power(Env *e, uint16_t value)
{
    g_autofree QPCIDevice *port =
        qpci_device_find(e->host->bus, QPCI_DEVFN(PORT_SLOT, 0));
    uint8_t cap = qpci_find_capability(port, PCI_CAP_ID_EXP, 0);

    qpci_config_writew(port, cap + PCI_EXP_SLTCTL, value);
}

/* Power off the slot, which ends the device, and plug in another. */
static void replace_device(Env *e)
{
    QTestState *qts = e->host->qts;

    set_power(e, PCI_EXP_SLTCTL_PCC | PCI_EXP_SLTCTL_PWR_IND_OFF);
    qtest_qmp_eventwait(qts, "DEVICE_DELETED");
    qtest_qmp_device_add(qts, "virtio-rdma-pci", "rdma0",
                         "{'bus': 'rp0', 'netdev': 'n0', 'max-qp': 8, "
                         "'max-cq': 4}");
    set_power(e, PCI_EXP_SLTCTL_PWR_IND_ON);
    reopen(e);
}

static void (*const resets[])(Env *e) = {
    reset_by_status, reset_function, reset_system, replace_device,
};

/* Check that no old completions come, and that a new connection works. */
static void check_new(Env *e)
{
    RdmaSge sge;
    RdmaSendWr wr;
    RdmaQpAttr attr;

    qtest_clock_step(e->host->qts, 5000 * QRDMA_MS);
    step_start(e);
    for (uint32_t qpn = 0; qpn < 8; qpn++) {
        QRdmaQp qp = { .dev = e->d, .qpn = qpn };

        assert_status(qrdma_query_qp(&qp, &attr), NOENT);
    }
    e->t = test_pair_on(e->d, RDMA_QPT_RC, 64, NULL);
    qrdma_mr_fill(e->t.mr_a, 0, 5000, 7);
    sge = qrdma_sge(e->t.mr_a, 0, 5000);
    wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 77, &sge, e->t.mr_b, 0);
    qrdma_post_expect_wc(e->t.a, wr, RDMA_WC_RDMA_WRITE);
    qrdma_mr_check(e->t.mr_b, 0, 5000, 7);
    qrdma_expect_none(e->t.cq_b);
}

/* Each step meets one kind of reset, or all kinds in slow mode. */
static void test_at_each_step(void)
{
    g_auto(Env) e = env_new();

    for (unsigned how = 0; how < ARRAY_SIZE(resets); how++) {
        for (unsigned to = 0; to < ARRAY_SIZE(steps); to++) {
            if (!g_test_slow() && to % ARRAY_SIZE(resets) != how) {
                continue;
            }
            climb(&e, to);
            resets[how](&e);
            check_new(&e);
        }
    }
}

/* Each virtqueue is reset alone. The rest of the device works on. */
static void test_of_each_virtqueue_at_each_step(void)
{
    g_auto(Env) e = env_new();

    for (unsigned to = 0; to < ARRAY_SIZE(steps); to++) {
        climb(&e, to);
        for (uint32_t i = 0; i < e.d->n_rings; i++) {
            QRdmaRing *ring = qrdma_ring(e.d, i);

            if (ring->ready) {
                qrdma_ring_renew(ring);
            }
        }
        qtest_clock_step(e.host->qts, 100 * QRDMA_MS);
        /* The control queue serves commands again */
        qrdma_alloc_pd(e.d);
        check_new(&e);
    }
}

/* Commands, each of which has an effect at the last step of a connection */

static void cmd_query_port(Env *e)
{
    struct virtio_rdma_query_port_rsp rsp;

    qrdma_query_port(e->d, 1, &rsp);
}

static void cmd_create_pd(Env *e)
{
    uint32_t n;

    qrdma_try_alloc_pd(e->d, &n);
}

static void cmd_destroy_pd(Env *e)
{
    qrdma_dealloc_pd(e->t.pd);
}

static void cmd_create_cq(Env *e)
{
    uint32_t n;

    qrdma_try_create_cq(e->d, 8, &n);
}

static void cmd_notify_cq(Env *e)
{
    qrdma_req_notify_cq(e->t.cq_a, 1);
}

static void cmd_resize_cq(Env *e)
{
    qrdma_resize_cq(e->t.cq_a, 128, 0);
}

static void cmd_create_qp(Env *e)
{
    RdmaQpInitAttr init = {
        .pdn = e->t.pd->pdn,
        .qp_type = RDMA_QPT_UD,
        .send_cqn = e->t.cq_a->cqn,
        .recv_cqn = e->t.cq_b->cqn,
        .cap = { 8, 8, 1, 1, 0 },
    };
    uint32_t n;

    qrdma_try_create_qp(e->d, &init, &n);
}

static void cmd_qp_to_err(Env *e)
{
    qrdma_modify_qp_state(e->t.b, RDMA_QPS_ERR);
}

static void cmd_qp_to_reset(Env *e)
{
    qrdma_modify_qp_state(e->t.a, RDMA_QPS_RESET);
}

static void cmd_query_qp(Env *e)
{
    RdmaQpAttr attr;

    qrdma_query_qp(e->t.a, &attr);
}

static void cmd_destroy_qp(Env *e)
{
    qrdma_destroy_qp(e->t.a);
}

static void cmd_reg_mr(Env *e)
{
    uint64_t table = qrdma_alloc(e->d, 4096);
    struct virtio_rdma_reg_user_mr_req req = {
        .pdn = cpu_to_le32(e->t.pd->pdn),
        .access = cpu_to_le32(TEST_ACCESS_ALL),
        .length = cpu_to_le64(4096),
        .pages = cpu_to_le64(table),
        .npages = cpu_to_le32(1),
    };
    struct virtio_rdma_mr_rsp rsp;

    qrdma_reg_user_mr(e->d, &req, &rsp);
}

static void cmd_map_mr(Env *e)
{
    qrdma_map_mr_sg(e->fast, 0, 4 * 4096);
}

static void cmd_dereg_mr(Env *e)
{
    qrdma_dereg_mr(e->t.mr_b);
}

static void cmd_alloc_mw(Env *e)
{
    QRdmaMw mw;

    qrdma_alloc_mw(e->t.pd, RDMA_MW_TYPE_1, &mw);
}

static void cmd_dealloc_mw(Env *e)
{
    qrdma_dealloc_mw(&e->mw);
}

static void cmd_modify_srq(Env *e)
{
    qrdma_modify_srq(e->srq, 1);
}

static void cmd_destroy_srq(Env *e)
{
    qrdma_destroy_srq(e->srq);
}

static void cmd_del_gid(Env *e)
{
    qrdma_del_gid(e->d, 0, 1);
}

static void (*const commands[])(Env *e) = {
    cmd_query_port, cmd_create_pd, cmd_destroy_pd, cmd_create_cq,
    cmd_notify_cq, cmd_resize_cq, cmd_create_qp, cmd_qp_to_err,
    cmd_qp_to_reset, cmd_query_qp, cmd_destroy_qp, cmd_reg_mr, cmd_map_mr,
    cmd_dereg_mr, cmd_alloc_mw, cmd_dealloc_mw, cmd_modify_srq,
    cmd_destroy_srq, cmd_del_gid,
};

/*
 * The driver does not wait for the answer, which may have come. Each command
 * meets one kind of reset, or all kinds in slow mode.
 */
static void test_during_each_command(void)
{
    /* The last but one: traffic is under way */
    const unsigned to = ARRAY_SIZE(steps) - 2;
    g_auto(Env) e = env_new();

    for (unsigned how = 0; how < ARRAY_SIZE(resets); how++) {
        for (unsigned i = 0; i < ARRAY_SIZE(commands); i++) {
            if (!g_test_slow() && i % ARRAY_SIZE(resets) != how) {
                continue;
            }
            climb(&e, to);
            e.d->hasty = true;
            commands[i](&e);
            resets[how](&e);
            e.d->hasty = false;
            check_new(&e);
        }
    }
}

const QRdmaTest reset_tests[] = {
    { "at-each-step-of-a-connection", test_at_each_step },
    { "of-each-virtqueue-at-each-step", test_of_each_virtqueue_at_each_step },
    { "during-each-command", test_during_each_command },
    {}
};
