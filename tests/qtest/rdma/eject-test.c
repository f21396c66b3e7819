/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: a guest ejects the slot of the adapter by registers of ACPI,
 * without a request from the host and while the adapter has work.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"

#define ROUNDS 12
#define COMMANDS 300                /* of three descriptors each */
#define RING_SIZE 1024
#define ENTRIES 512                 /* of a table of pages */
#define LISTS 128
/* Registers of docs/specs/acpi_pci_hotplug.rst */
#define EJECT 8
#define SELECT 16
#define FEATURES (QRDMA_FEATURES | QRDMA_DIRECT_QPS | QRDMA_DIRECT_CQS)

typedef struct Machine {
    const char *name;
    const char *options;
    const char *place;              /* of the adapter, for device_add */
    int devfn;
    uint16_t registers;
    uint32_t slots;                 /* what the guest writes to eject it */
} Machine;

typedef struct Case {
    const Machine *machine;
    bool iothread;
} Case;

/* q35 has no slots to eject on its root bus. */
static const Machine pc = {
    "pc", "", "'addr': '5'", QPCI_DEVFN(5, 0), 0xae00, 1 << 5,
}, q35 = {
    "q35", "-device pcie-root-port,id=rp0,addr=4,chassis=1", "'bus': 'rp0'",
    1 << 8, 0xcc0, 1,
};

static QRdmaHost *host_start(const Case *c)
{
    QRdmaHost *host = qrdma_host_start_machine(
        c->machine->name, "-netdev hubport,id=n0,hubid=0 "
        "-netdev hubport,id=n1,hubid=0 -object iothread,id=io0 "
        "-object rdma-roce,id=r0,netdev=n0 %s", c->machine->options);

    if (c->machine->devfn >> 8) {
        qrdma_enable_bus(host, QPCI_DEVFN(4, 0));
    }
    return host;
}

static QRdma *plug(QRdmaHost *host, const Case *c)
{
    g_autofree char *cmd = g_strdup_printf(
        "{'execute': 'device_add', 'arguments': {"
        "'driver': 'virtio-rdma-pci', 'rdmadev': 'r0', 'max-qp': 8, "
        "'max-cq': 4, %s%s}}", c->iothread ? "'iothread': 'io0', " : "",
        c->machine->place);
    QRdma *d;

    qtest_qmp_assert_success(host->qts, cmd, NULL);
    d = qrdma_open(host, c->machine->devfn);
    qrdma_start(d, FEATURES, RING_SIZE);
    return d;
}

/* A list of many pages, the last of which is invalid. */
static struct virtio_rdma_reg_user_mr_req bad_list(QRdmaPd *pd)
{
    uint64_t good = qrdma_alloc(pd->dev, 4096);
    uint64_t bad = qrdma_alloc(pd->dev, 4096);
    uint64_t table = qrdma_alloc(pd->dev, 4096);
    uint64_t le[ENTRIES];

    for (int i = 0; i < ENTRIES; i++) {
        le[i] = cpu_to_le64(good);
    }
    qrdma_write(pd->dev, good, le, sizeof(le));
    qrdma_write(pd->dev, table, le, sizeof(le));
    le[ENTRIES - 1] = cpu_to_le64(0x123);
    qrdma_write(pd->dev, bad, le, sizeof(le));
    qtest_writeq(pd->dev->host->qts, table + (LISTS - 1) * 8, bad);
    return (struct virtio_rdma_reg_user_mr_req) {
        .pdn = cpu_to_le32(pd->pdn),
        .access = cpu_to_le32(RDMA_ACCESS_LOCAL_WRITE),
        .length = cpu_to_le64(LISTS * ENTRIES * 4096ull),
        .pages = cpu_to_le64(table),
        .npages = cpu_to_le32(LISTS * ENTRIES),
        .levels = cpu_to_le32(2),
    };
}

static void enqueue_modify(QRdmaQp *qp, RdmaQpState state)
{
    struct virtio_rdma_modify_qp_req req = {
        .qpn = cpu_to_le32(qp->qpn),
        .attr_mask = cpu_to_le32(RDMA_QP_STATE),
        .attr.qp_state = state,
    };

    qrdma_enqueue(qp->dev, VIRTIO_RDMA_CMD_MODIFY_QP, &req, sizeof(req), 0);
}

/*
 * Commands for many turns of the control queue. With RTS the backend has to
 * look for work to send; while a list is read the iothread comes to rest.
 */
static void enqueue_many(QRdmaPd *pd, QRdmaQp *qp)
{
    struct virtio_rdma_reg_user_mr_req list = bad_list(pd);

    for (int i = 0; i < COMMANDS / 3; i++) {
        enqueue_modify(qp, RDMA_QPS_SQD);
        enqueue_modify(qp, RDMA_QPS_RTS);
        qrdma_enqueue(pd->dev, VIRTIO_RDMA_CMD_REG_USER_MR, &list,
                      sizeof(list), sizeof(struct virtio_rdma_mr_rsp));
    }
}

static void eject(QRdmaHost *host, const Machine *m)
{
    qtest_outl(host->qts, m->registers + SELECT, 0);
    qtest_outl(host->qts, m->registers + EJECT, m->slots);
}

static void test_eject_during_commands(gconstpointer data)
{
    const Case *c = data;
    g_autoptr(QRdmaHost) host = host_start(c);

    for (int i = 0; i < ROUNDS; i++) {
        QRdma *d = plug(host, c);
        QRdmaPd *pd;
        QRdmaCq *cq;
        QRdmaQp *qp;

        qrdma_setup_gids(d, 1);
        pd = qrdma_alloc_pd(d);
        cq = qrdma_create_cq(d, 8);
        qp = qrdma_create_loop(pd, cq, cq);
        enqueue_many(pd, qp);
        qrdma_ring_kick(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ));
        eject(host, c->machine);
        qrdma_close(d);
    }
    /* No device uses the backend any more. */
    qtest_qmp_assert_success(host->qts, "{'execute': 'object-del', "
                             "'arguments': {'id': 'r0'}}");
}

/* Sends of QPs without a peer, each of them overdue */
static void send_to_absent(QRdmaPd *pd, QRdmaCq *cq)
{
    QRdmaPath path = {
        .mtu = RDMA_MTU_1024, .timeout = 1, .min_rnr_timer = 12,
    };
    RdmaSendWr wr = { .opcode = RDMA_WR_SEND };

    for (int i = 0; i < 4; i++) {
        QRdmaQp *qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
        QRdmaQp absent = *qp;

        absent.wire_qpn = RDMA_24BIT_MASK - 1;
        assert_ok(qrdma_modify_init(qp, 0));
        assert_ok(qrdma_modify_rtr(qp, &absent, &path, 0));
        assert_ok(qrdma_modify_rts(qp, &path, 0));
        qrdma_post_send(qp, &wr);
    }
}

static void test_eject_while_overdue(gconstpointer data)
{
    const Case *c = data;
    g_autoptr(QRdmaHost) host = host_start(c);

    for (int i = 0; i < ROUNDS; i++) {
        QRdma *d = plug(host, c);
        QRdmaPd *pd;

        qrdma_setup_gids(d, 1);
        pd = qrdma_alloc_pd(d);
        send_to_absent(pd, qrdma_create_cq(d, 16));
        qtest_clock_step(host->qts, (1 + i) * QRDMA_MS / 50);
        eject(host, c->machine);
        qtest_clock_step(host->qts, QRDMA_MS);
        qrdma_close(d);
    }
    qtest_qmp_assert_success(host->qts, "{'execute': 'object-del', "
                             "'arguments': {'id': 'r0'}}");
}

void add_eject_tests(void)
{
    static const struct {
        const char *path;
        Case c;
        bool overdue;
    } tests[] = {
        { "eject/pc", { &pc } },
        { "eject/q35", { &q35 } },
        { "eject/pc-with-iothread", { &pc, true } },
        { "eject/q35-with-iothread", { &q35, true } },
        { "eject/while-overdue", { &pc }, true },
        { "eject/while-overdue-with-iothread", { &pc, true }, true },
    };

    if (qrdma_ibdev()) {
        return; /* rdma-verbs refuses an iothread */
    }
    for (int i = 0; i < ARRAY_SIZE(tests); i++) {
        g_autofree char *path = g_strconcat("virtio-rdma/", tests[i].path,
                                            NULL);

        qtest_add_data_func(path, &tests[i].c,
                            tests[i].overdue ? test_eject_while_overdue
                                             : test_eject_during_commands);
    }
}
