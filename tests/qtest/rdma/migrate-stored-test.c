/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stream that was stored once must load for ever, also one that a QEMU of
 * another series has made. It has a device under traffic. The frames that the
 * device goes on to send and receive show whether its state was loaded.
 *
 * With MIGRATE_STORE=name in the environment the test writes new streams,
 * name.stream and name-direct.stream, beside this file. The old ones stay.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "backends/rdma/roce/wire/wire.h"
#include "qobject/qdict.h"
#include "migrate-test.h"
#include "wire.h"

/*
 * All properties that the guest sees are explicit, because defaults may change.
 */
#define DEVICE \
    "virtio-rdma-pci,max-qp=8,max-cq=6,max-mr=32,max-pd=8,max-srq=4," \
    "max-mw=32,max-mcast-grp=8,queue-size=128,max-sge=8,max-inline=128," \
    "max-rd-atomic=8,gid-table-len=8,max-cqe=1000,max-srq-wr=128,version-1=on,"
#define NOT_DIRECT "direct=off"
#define DIRECT "direct=on,max-qp-wr=512,vectors=7"
/* A machine of the oldest series, which all series have */
#define MACHINE "pc-i440fx-10.0,acpi=off,suppress-vmdesc=on"

#define RAM_MB 16
#define MTU 1024
#define LEN 5000
#define TIMEOUT_CODE 10
#define FIRST_PSN 0x111111
#define FAR_QPN 0x77
#define FAR_PSN 0x222222

/* Ethernet, IPv6, UDP; then BTH and RETH */
#define FRAME_IP 14
#define FRAME_BTH (FRAME_IP + 40 + 8)
#define FRAME_PAYLOAD (FRAME_BTH + 12 + 16)
#define ETH_P_IPV6 0x86dd

static const uint8_t group[RDMA_GID_LEN] = { 0xff, 0x0e, [15] = 1 };

/* The payload for each of them, which memory has nowhere before */
static const char to_peer[] = "from the peer to the queue pair ";
static const char to_srq[] = "from it to the shared receives  ";
static const char to_group[] = "from a sender to all of a group ";

/* Contents of a stream */
typedef struct Kind {
    const char *name;
    const char *properties;
    uint64_t features;              /* that the driver takes */
    bool more;                      /* than the RFC's device has */
    int qps, srqs, mws;
} Kind;

/* A driver that knows no more than the RFC's device */
static const Kind plain = {
    .name = "",
    .properties = NOT_DIRECT,
    .features = QRDMA_RFC_FEATURES,
    .qps = 1,
};

/* All features of a device with an engine that Linux's driver takes */
static const Kind direct = {
    .name = "-direct",
    .properties = DIRECT,
    .features = QRDMA_FEATURES | QRDMA_DIRECT |
                QRDMA_F(VIRTIO_RDMA_F_FLUSH) |
                QRDMA_F(VIRTIO_RDMA_F_ATOMIC_WRITE),
    .more = true,
    .qps = 3,
    .srqs = 1,
    .mws = 1,
};

typedef struct Stored {
    const Kind *kind;
    Wire wire;
    char *blank;                    /* replaces the BIOS */
} Stored;

/* Little RAM and no BIOS: the stream is small, and is loaded anywhere. */
static char *machine_args(Stored *s)
{
    return g_strdup_printf(
        "-cpu qemu64 -m %d -nodefaults -bios %s -netdev %s,id=n0 "
        "-device " DEVICE "%s,netdev=n0,addr=4,mac=52:54:00:12:34:01",
        RAM_MB, s->blank, s->wire.netdev, s->kind->properties);
}

static void stored_open(Stored *s, const Kind *kind)
{
    g_autofree char *zeros = g_malloc0(65536);

    s->kind = kind;
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
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Stored, stored_close)

/* Connect @qp to a peer with number FAR_QPN and PSN FAR_PSN. */
static void connect_far(QRdmaQp *qp)
{
    const QRdmaPath path = { .mtu = RDMA_MTU_1024, .timeout = TIMEOUT_CODE,
                             .retry_cnt = 7 };
    QRdma far = *qp->dev;
    QRdmaQp far_qp = { .dev = &far, .wire_qpn = FAR_QPN };

    far.gid[0][RDMA_GID_LEN - 1] = 2;
    far.gid[1][RDMA_GID_LEN - 1] = 2;
    far.mac[RDMA_MAC_LEN - 1] = 2;
    g_assert_cmpint(qrdma_modify_init(qp, NET_ACCESS_ALL), ==, 0);
    g_assert_cmpint(qrdma_modify_rtr(qp, &far_qp, &path, FAR_PSN), ==, 0);
    g_assert_cmpint(qrdma_modify_rts(qp, &path, FIRST_PSN), ==, 0);
}

/*
 * Objects that need more than the RFC's device: a member of a group, a
 * connection that takes its receives from an SRQ, a window, a doorbell in
 * memory.
 */
static void make_more(QRdmaPd *pd, QRdmaCq *cq, QRdmaMr *mr)
{
    QRdma *d = pd->dev;
    QRdmaQp *qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_UD);
    QRdmaSrq *srq = qrdma_create_srq(pd, 16, 2);
    const RdmaQpInitAttr init = {
        .qp_type = RDMA_QPT_RC,
        .has_srq = true,
        .srqn = srq->srqn,
        .cap = { .max_send_wr = 16, .max_send_sge = 1 },
    };
    RdmaSge sge = qrdma_sge(mr, 10240, 100);
    QRdmaMw mw;

    assert_ok(qrdma_set_shadow(d, QRDMA_DIRECT_DOORBELL, qrdma_alloc(d, 4096)));
    qrdma_start_ud(qp, QRDMA_QKEY);
    assert_ok(qrdma_attach_mcast(qp, group));
    qrdma_recv(qp, 4, &sge);
    connect_far(qrdma_create_qp_attr(pd, cq, cq, &init));
    sge = qrdma_sge(mr, 12288, 100);
    qrdma_srq_recv(srq, 5, &sge);
    assert_ok(qrdma_alloc_mw(pd, RDMA_MW_TYPE_2, &mw));
}

/* Store a device with a WRITE and a READ that no peer has answered. */
static void make_stream(const Kind *kind, const char *path)
{
    g_auto(Stored) s;
    g_autofree char *args = NULL;
    g_autofree char *uri = g_strdup_printf("file:%s", path);
    uint8_t frame[FRAME_MAX], data[LEN];
    QRdmaHost *host;
    QRdma *d;
    QRdmaQp *qp;
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaMr *mr;
    RdmaSge sge[2];
    const QRdmaMr far = { .iova = 0x5000, .rkey = 0x500 };

    stored_open(&s, kind);
    args = machine_args(&s);
    host = qrdma_host_start_machine(MACHINE, "%s", args);
    d = qrdma_open(host, QPCI_DEVFN(4, 0));
    qrdma_start(d, kind->features, 0);
    qrdma_setup_gids(d, 1);
    pd = qrdma_alloc_pd(d);
    cq = qrdma_create_cq(d, 40);
    mr = qrdma_reg_mr(pd, 0x100000, 16384, NET_ACCESS_ALL);
    if (kind->more) {
        make_more(pd, cq, mr);
    }
    for (int i = 0; i < LEN; i++) {
        data[i] = 7 * i;
    }
    qrdma_mr_write(mr, 0, data, LEN);
    qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
    connect_far(qp);
    sge[0] = qrdma_sge(mr, 0, LEN);
    sge[1] = qrdma_sge(mr, 8192, 100);
    qrdma_post(qp, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge[0], &far, 0));
    qrdma_post(qp, qrdma_rdma_wr(RDMA_WR_RDMA_READ, 2, &sge[1], &far, 0x1000));
    qrdma_recv(qp, 3, &sge[1]);
    while (wire_recv(&s.wire, frame, 500)) {
        /* Read all frames that go out for now. */
    }
    qtest_qmp_assert_success(host->qts, "{'execute': 'migrate', "
                             "'arguments': {'uri': %s}}", uri);
    g_assert_true(qrdma_migration_done(host->qts));
    qrdma_host_stop(host);
}

static void expect_frame(Stored *s, uint8_t opcode, uint32_t psn,
                         uint8_t frame[FRAME_MAX])
{
    /*
     * Frames of the NIC's announcement come first. The QP's frame has its
     * address.
     */
    do {
        g_assert_cmpuint(wire_recv(&s->wire, frame, SOON_MS), >=, 60);
    } while (lduw_be_p(frame + 12) != ETH_P_IPV6 ||
             frame[FRAME_BTH] == ROCE_ACKNOWLEDGE);
    g_assert_cmphex(frame[FRAME_BTH], ==, opcode);
    g_assert_cmphex(ldl_be_p(frame + FRAME_BTH + 4) & RDMA_24BIT_MASK, ==,
                    FAR_QPN);
    g_assert_cmphex(ldl_be_p(frame + FRAME_BTH + 8) & RDMA_24BIT_MASK, ==,
                    psn);
}

static void expect_used(QDict *counts, const char *name, int wanted)
{
    g_assert_cmpint(qdict_get_int(qdict_get_qdict(counts, name), "used"), ==,
                    wanted);
}

static void expect_objects(QTestState *qts, const Kind *kind)
{
    g_autoptr(QDict) device = qrdma_query(qts, "'objects': ['qp']");
    QDict *counts = qdict_get_qdict(device, "count");

    expect_used(counts, "cq", 1);
    expect_used(counts, "mr", 1);
    expect_used(counts, "qp", kind->qps);
    expect_used(counts, "srq", kind->srqs);
    expect_used(counts, "mw", kind->mws);
}

/* The number of the connection, with an SRQ or without */
static uint32_t find_qpn(QTestState *qts, bool srq)
{
    g_autoptr(QDict) device = qrdma_query(qts, "'objects': ['qp']");
    const QListEntry *entry;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(device, "qps"), entry) {
        QDict *qp = qobject_to(QDict, qlist_entry_obj(entry));

        if (g_str_equal(qdict_get_str(qp, "type"), "rc") &&
            qdict_haskey(qp, "srqn") == srq) {
            return qdict_get_int(qp, "qpn");
        }
    }
    g_assert_not_reached();
}

/* Send a frame of the peer, on the reverse path of the frame @from. */
static void send_text(Stored *s, const uint8_t *from, bool to_all,
                      RoceBth *bth, const char *text)
{
    const struct iovec iov = { (void *)text, strlen(text) };
    uint8_t frame[ROCE_MAX_FRAME];
    RocePath path = {
        .vlan = RDMA_NO_VLAN, .hop_limit = 64, .udp_sport = 0xc000,
    };
    size_t len;

    memcpy(path.smac, from, RDMA_MAC_LEN);
    memcpy(path.sgid, from + FRAME_IP + 24, RDMA_GID_LEN);
    memcpy(path.dgid, from + FRAME_IP + 8, RDMA_GID_LEN);
    memcpy(path.dmac, from + RDMA_MAC_LEN, RDMA_MAC_LEN);
    if (to_all) {
        memcpy(path.dgid, group, RDMA_GID_LEN);
        memcpy(path.dmac, "\x33\x33\0\0\0\1", RDMA_MAC_LEN);
    }
    bth->pkey = 0xffff;
    len = roce_build(frame, &path, bth, iov.iov_len);
    memcpy(frame + len, text, iov.iov_len);
    len += iov.iov_len + roce_icrc_trailer(frame, len, false, &iov, 1,
                                           frame + len + iov.iov_len);
    wire_send(&s->wire, frame, len);
}

/* Wait until @text is somewhere in the guest's memory. */
static void expect_text(Stored *s, QTestState *qts, const char *text)
{
    g_autofree char *path = g_strdup_printf("%s/memory", s->wire.dir);
    gint64 end = g_get_monotonic_time() + SOON_MS * 1000;
    bool found;

    do {
        g_autofree char *ram = NULL;
        size_t len;

        g_assert_cmpint(g_get_monotonic_time(), <, end);
        qtest_qmp_assert_success(qts, "{'execute': 'pmemsave', 'arguments': "
                                 "{'val': 0, 'size': %" PRId64 ", "
                                 "'filename': %s}}",
                                 RAM_MB * MiB, path);
        g_assert_true(g_file_get_contents(path, &ram, &len, NULL));
        found = memmem(ram, len, text, strlen(text));
    } while (!found);
    g_unlink(path);
}

/* Receives from before the migration take the messages that come afterwards. */
static void expect_receives(Stored *s, QTestState *qts, const uint8_t *from)
{
    RoceBth bth = {
        .opcode = ROCE_RC | ROCE_SEND_ONLY,
        .dqpn = find_qpn(qts, false),
        .psn = FAR_PSN,
        .ack_req = true,
    };

    send_text(s, from, false, &bth, to_peer);
    expect_text(s, qts, to_peer);
    if (s->kind->more) {
        bth.dqpn = find_qpn(qts, true);
        send_text(s, from, false, &bth, to_srq);
        expect_text(s, qts, to_srq);
        bth = (RoceBth) {
            .opcode = ROCE_UD | ROCE_SEND_ONLY,
            .dqpn = RDMA_QPN_MCAST,
            .deth = { .qkey = QRDMA_QKEY, .sqpn = FAR_QPN },
        };
        send_text(s, from, true, &bth, to_group);
        expect_text(s, qts, to_group);
    }
}

/* The loaded device goes on to send and to receive, with its guest's memory. */
static void load_stream(const Kind *kind, const char *path)
{
    g_auto(Stored) s;
    g_autofree char *args = NULL;
    g_autofree char *uri = g_strdup_printf("file:%s", path);
    uint8_t frame[FRAME_MAX];
    QTestState *qts;

    stored_open(&s, kind);
    args = machine_args(&s);
    qts = qtest_initf("-machine " MACHINE " %s -S -incoming defer", args);
    trip_migrate_from(qts, uri);
    trip_wait_loaded(qts);
    expect_objects(qts, kind);
    qtest_qmp_assert_success(qts, "{'execute': 'cont'}");
    qtest_clock_step(qts, 4096ll << TIMEOUT_CODE);
    for (int i = 0; i < DIV_ROUND_UP(LEN, MTU); i++) {
        expect_frame(&s, i == 0 ? ROCE_WRITE_FIRST :
                     i < LEN / MTU ? ROCE_WRITE_MIDDLE : ROCE_WRITE_LAST,
                     FIRST_PSN + i, frame);
        if (i == 0) {
            for (int at = 0; at < MTU; at++) {
                g_assert_cmphex(frame[FRAME_PAYLOAD + at], ==,
                                (uint8_t)(7 * at));
            }
        }
    }
    expect_frame(&s, ROCE_READ_REQUEST, FIRST_PSN + DIV_ROUND_UP(LEN, MTU),
                 frame);
    expect_receives(&s, qts, frame);
    qtest_quit(qts);
}

/* Stored streams, by the series of QEMU that made them */
static const struct {
    const char *series;
    const Kind *kind;
} stored[] = {
    { "10.0", &plain }, { "10.0", &direct },
    { "10.2", &plain }, { "10.2", &direct },
    { "11.1", &plain }, { "11.1", &direct },
};

static void test_stored(const void *opaque)
{
    size_t i = GPOINTER_TO_SIZE(opaque);
    /* The directory of this file, as the compiler got it */
    g_autofree char *dir = g_path_get_dirname(__FILE__);
    g_autofree char *path = g_strdup_printf("%s/stored-%s%s.stream", dir,
                                            stored[i].series,
                                            stored[i].kind->name);

    load_stream(stored[i].kind, path);
}

static void test_store(const void *opaque)
{
    const Kind *kind = opaque;
    g_autofree char *path = g_strdup_printf(
        "%s%s.stream", g_getenv("MIGRATE_STORE"), kind->name);

    make_stream(kind, path);
    load_stream(kind, path);
}

void add_migrate_stored_tests(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(stored); i++) {
        g_autofree char *path = g_strdup_printf(
            "virtio-rdma-migration/stored/%s%s", stored[i].series,
            stored[i].kind->name);

        qtest_add_data_func(path, GSIZE_TO_POINTER(i), test_stored);
    }
    if (g_getenv("MIGRATE_STORE")) {
        qtest_add_data_func("virtio-rdma-migration/stored/new", &plain,
                            test_store);
        qtest_add_data_func("virtio-rdma-migration/stored/new-direct", &direct,
                            test_store);
    }
}
