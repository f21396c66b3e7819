/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stream that was stored once must load for ever, also one that a QEMU of
 * another series has made. It has a device amid traffic: what it goes on to
 * send tells whether its state has come along.
 *
 * With MIGRATE_STORE=file in the environment a new one is made. It goes
 * beside this file, and the old ones stay.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "net-test.h"
#include "wire.h"

/* What the guest knows is spelled out: defaults may change. */
#define DEVICE \
    "virtio-rdma-pci,max-qp=8,max-cq=6,max-mr=32,max-pd=8,max-srq=4," \
    "max-mw=32,max-mcast-grp=8,max-mcast-qp-attach=8,max-mr-size=64G," \
    "queue-size=128,max-sge=8,max-inline=128,max-rd-atomic=8," \
    "gid-table-len=8,max-cqe=1000,max-srq-wr=128,direct-qp=off," \
    "direct-cq=off,direct-srq=off"
/* That of the oldest series, which all know */
#define MACHINE "pc-i440fx-10.0,acpi=off,suppress-vmdesc=on"

#define MTU 1024
#define LEN 5000
#define TIMEOUT_CODE 10
#define FIRST_PSN 0x111111
#define FAR_QPN 0x77

/* Ethernet, IPv6, UDP; then BTH and RETH */
#define FRAME_BTH (14 + 40 + 8)
#define FRAME_PAYLOAD (FRAME_BTH + 12 + 16)
#define WRITE_FIRST 0x06
#define WRITE_MIDDLE 0x07
#define WRITE_LAST 0x08
#define READ_REQUEST 0x0c
#define ACKNOWLEDGE 0x11
#define ETH_P_IPV6 0x86dd

typedef struct Stored {
    Wire wire;
    char *blank;                    /* in the place of a BIOS */
} Stored;

/* Little RAM and no BIOS: the stream is small, and is loaded anywhere. */
static char *machine_args(Stored *s)
{
    return g_strdup_printf(
        "-cpu qemu64 -m 16 -nodefaults -bios %s -netdev %s,id=n0 "
        "-device " DEVICE ",netdev=n0,addr=4,mac=52:54:00:12:34:01",
        s->blank, s->wire.netdev);
}

static void stored_open(Stored *s)
{
    g_autofree char *zeros = g_malloc0(65536);

    wire_open(&s->wire);
    s->blank = g_strdup_printf("%s/blank", s->wire.dir);
    g_assert_true(g_file_set_contents(s->blank, zeros, 65536, NULL));
}

static void stored_close(Stored *s)
{
    g_unlink(s->blank);
    g_free(s->blank);
    wire_close(&s->wire);
}

static void wait_stored(QTestState *qts)
{
    bool done = false;

    while (!done) {
        g_autoptr(QDict) rsp = qtest_qmp_assert_success_ref(
            qts, "{'execute': 'query-migrate'}");
        const char *status = qdict_get_try_str(rsp, "status") ?: "none";

        g_assert_cmpstr(status, !=, "failed");
        done = g_str_equal(status, "completed");
    }
}

/* A WRITE and a READ that nobody answers. */
static void make_stream(const char *path)
{
    QRdmaPath qpath = { .mtu = RDMA_MTU_1024, .timeout = TIMEOUT_CODE,
                        .retry_cnt = 7 };
    Stored s;
    g_autofree char *args = NULL;
    g_autofree char *uri = g_strdup_printf("file:%s", path);
    uint8_t frame[FRAME_MAX], data[LEN];
    QRdmaHost *host;
    QRdma *d, far;
    QRdmaQp *qp, far_qp = { .dev = &far, .wire_qpn = FAR_QPN };
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaMr *mr;
    RdmaSge sge[2];
    RdmaSendWr wr;

    stored_open(&s);
    args = machine_args(&s);
    host = qrdma_host_start_machine(MACHINE, "%s", args);
    d = qrdma_open(host, QPCI_DEVFN(4, 0));
    qrdma_start(d, 0, 0);
    qrdma_setup_gids(d, 1);
    far = *d;
    far.gid[0][RDMA_GID_LEN - 1] = 2;
    far.gid[1][RDMA_GID_LEN - 1] = 2;
    far.mac[RDMA_MAC_LEN - 1] = 2;
    pd = qrdma_alloc_pd(d);
    cq = qrdma_create_cq(d, 40);
    mr = qrdma_reg_mr(pd, 0x100000, 16384, NET_ACCESS_ALL);
    for (int i = 0; i < LEN; i++) {
        data[i] = 7 * i;
    }
    qrdma_mr_write(mr, 0, data, LEN);
    qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
    g_assert_cmpint(qrdma_modify_init(qp, NET_ACCESS_ALL), ==, 0);
    g_assert_cmpint(qrdma_modify_rtr(qp, &far_qp, &qpath, 0x222222), ==, 0);
    g_assert_cmpint(qrdma_modify_rts(qp, &qpath, FIRST_PSN), ==, 0);
    sge[0] = qrdma_sge(mr, 0, LEN);
    sge[1] = qrdma_sge(mr, 8192, 100);
    wr = net_wr(RDMA_WR_RDMA_WRITE, 1, &sge[0]);
    wr.wr.rdma.remote_addr = 0x5000;
    wr.wr.rdma.rkey = 0x500;
    qrdma_post_send(qp, &wr);
    wr = net_wr(RDMA_WR_RDMA_READ, 2, &sge[1]);
    wr.wr.rdma.remote_addr = 0x6000;
    wr.wr.rdma.rkey = 0x600;
    qrdma_post_send(qp, &wr);
    qrdma_post_recv(qp, &(RdmaRecvWr) {
        .wr_id = 3, .num_sge = 1, .sg_list = &sge[1],
    });
    while (wire_recv(&s.wire, frame, 500)) {
        /* All that goes out for now */
    }
    qtest_qmp_assert_success(host->qts, "{'execute': 'migrate', "
                             "'arguments': {'uri': %s}}", uri);
    wait_stored(host->qts);
    qrdma_close(d);
    qrdma_host_stop(host);
    stored_close(&s);
}

static void wait_loaded(QTestState *qts)
{
    for (int i = 0; ; i++) {
        g_autoptr(QDict) rsp = NULL;

        g_assert_cmpint(i, <, 60000);
        rsp = qtest_qmp_assert_success_ref(qts, "{'execute': 'query-status'}");
        if (!g_str_equal(qdict_get_str(rsp, "status"), "inmigrate")) {
            return;
        }
        g_usleep(1000);
    }
}

static void expect_frame(Stored *s, uint8_t opcode, uint32_t psn,
                         uint8_t frame[FRAME_MAX])
{
    /* The NIC announces itself, and the QP says where it is. */
    do {
        g_assert_cmpuint(wire_recv(&s->wire, frame, SOON_MS), >=, 60);
    } while (lduw_be_p(frame + 12) != ETH_P_IPV6 ||
             frame[FRAME_BTH] == ACKNOWLEDGE);
    g_assert_cmphex(frame[FRAME_BTH], ==, opcode);
    g_assert_cmphex(ldl_be_p(frame + FRAME_BTH + 4) & RDMA_24BIT_MASK, ==,
                    FAR_QPN);
    g_assert_cmphex(ldl_be_p(frame + FRAME_BTH + 8) & RDMA_24BIT_MASK, ==,
                    psn);
}

/* It goes on with what it has to say, from its guest's memory. */
static void load_stream(const char *path)
{
    Stored s;
    g_autofree char *args = NULL;
    g_autofree char *uri = g_strdup_printf("file:%s", path);
    uint8_t frame[FRAME_MAX];
    QTestState *qts;

    stored_open(&s);
    args = machine_args(&s);
    qts = qtest_initf("-machine " MACHINE " %s -S -incoming defer", args);
    qtest_qmp_assert_success(qts, "{'execute': 'migrate-incoming', "
                             "'arguments': {'uri': %s}}", uri);
    wait_loaded(qts);
    qtest_qmp_assert_success(qts, "{'execute': 'cont'}");
    qtest_clock_step(qts, 4096ll << TIMEOUT_CODE);
    for (int i = 0; i < DIV_ROUND_UP(LEN, MTU); i++) {
        expect_frame(&s, i == 0 ? WRITE_FIRST :
                     i < LEN / MTU ? WRITE_MIDDLE : WRITE_LAST,
                     FIRST_PSN + i, frame);
        if (i == 0) {
            for (int at = 0; at < MTU; at++) {
                g_assert_cmphex(frame[FRAME_PAYLOAD + at], ==,
                                (uint8_t)(7 * at));
            }
        }
    }
    expect_frame(&s, READ_REQUEST, FIRST_PSN + DIV_ROUND_UP(LEN, MTU), frame);
    qtest_quit(qts);
    stored_close(&s);
}

/* By the series of QEMU that they were made with */
static const char *const stored[] = { "10.0", "10.2" };

static void test_stored(const void *opaque)
{
    /* Its directory, as the compiler was told it */
    g_autofree char *dir = g_path_get_dirname(__FILE__);
    g_autofree char *path = g_strdup_printf("%s/stored-%s.stream", dir,
                                            (const char *)opaque);

    load_stream(path);
}

static void test_store(void)
{
    make_stream(g_getenv("MIGRATE_STORE"));
    load_stream(g_getenv("MIGRATE_STORE"));
}

void add_migrate_stored_tests(void)
{
    for (int i = 0; i < ARRAY_SIZE(stored); i++) {
        g_autofree char *path = g_strdup_printf(
            "virtio-rdma-migration/stored/%s", stored[i]);

        qtest_add_data_func(path, stored[i], test_stored);
    }
    if (g_getenv("MIGRATE_STORE")) {
        qtest_add_func("virtio-rdma-migration/stored/new", test_store);
    }
}
