/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter-impair injects faults, the same ones each time, and delays, drops and
 * marks frames in virtual time. A hub joins the netdev it sits on with another;
 * the test holds both far ends.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "libqos/virtio-rdma.h"
#include "rdma/image.h"
#include "rdma/wire.h"

#define MS 1000000ll
#define FRAMES 20
/* A frame of make_udp(), bytes */
#define SIZE 90
#define TOS 15                      /* in the frame */
#define FAULT_FRAMES 400

typedef struct Link {
    Wire in, out;
    QTestState *qts;
} Link;

static Link link_new_in(const char *machine, const char *options)
{
    Link l = { };

    wire_open(&l.in);
    wire_open(&l.out);
    l.qts = qtest_initf("-machine %s -nodefaults "
                        "-netdev %s,id=in -netdev %s,id=out "
                        "-netdev hubport,id=h0,hubid=0,netdev=in "
                        "-netdev hubport,id=h1,hubid=0,netdev=out "
                        "-object filter-impair,id=f0,netdev=in,%s",
                        machine, l.in.netdev, l.out.netdev, options);
    return l;
}

static Link link_new(const char *options)
{
    return link_new_in("pc", options);
}

static void link_free(Link *l)
{
    qtest_quit(l->qts);
    wire_close(&l->in);
    wire_close(&l->out);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Link, link_free)

static uint64_t get(QTestState *qts, const char *object, const char *property)
{
    g_autofree char *path = g_strdup_printf("/objects/%s", object);

    return qrdma_qom_get(qts, path, property);
}

/*
 * Let QEMU read what was sent, because sockets hold few frames. Each command
 * ends in another turn of the main loop. In the turn of the first, QEMU may not
 * know of the frame, and in that of the second read it later.
 */
static void settle(Link *l)
{
    for (int i = 0; i < 3; i++) {
        qtest_qmp_assert_success(l->qts, "{'execute': 'query-status'}");
    }
}

/* Send frames at once, all of them with this TOS. */
static void send_frames(Link *l, unsigned n, uint8_t tos)
{
    uint8_t frame[FRAME_MAX];

    for (unsigned i = 0; i < n; i++) {
        g_assert_cmpuint(make_udp(frame, i), ==, SIZE);
        frame[TOS] = tos;
        wire_send(&l->in, frame, SIZE);
        settle(l);
    }
}

/*
 * Expect so many frames and no more. QEMU's socket holds few of them at a time.
 * Returns how many have marks.
 */
static unsigned expect_frames(Link *l, unsigned want)
{
    uint8_t frame[FRAME_MAX];
    unsigned marked = 0;

    for (unsigned i = 0; i < want; i++) {
        uint32_t sum = 0;

        g_assert_cmpuint(wire_recv(&l->out, frame, SOON_MS), ==, SIZE);
        if ((frame[TOS] & 3) != 3) {
            continue;
        }
        marked++;
        for (int n = 14; n < 34; n += 2) {
            sum += lduw_be_p(frame + n);
        }
        g_assert_cmphex((sum & 0xffff) + (sum >> 16), ==, 0xffff);
    }
    settle(l);
    g_assert_cmpuint(wire_recv(&l->out, frame, 0), ==, 0);
    return marked;
}

static void test_delay(void)
{
    g_auto(Link) l = link_new("delay=5000");

    send_frames(&l, FRAMES, 2);
    qtest_clock_step(l.qts, 5 * MS - 1);
    expect_frames(&l, 0);
    qtest_clock_step(l.qts, 1);
    g_assert_cmpuint(expect_frames(&l, FRAMES), ==, 0);
}

/* 720 kbit/s: a millisecond for each frame */
static void test_rate(void)
{
    g_auto(Link) l = link_new("rate=720");

    send_frames(&l, FRAMES, 0);
    for (int i = 0; i < FRAMES; i++) {
        qtest_clock_step(l.qts, MS - 1);
        expect_frames(&l, 0);
        qtest_clock_step(l.qts, 1);
        expect_frames(&l, 1);
    }
    g_assert_cmpuint(get(l.qts, "f0", "dropped"), ==, 0);
}

static void test_room(void)
{
    g_auto(Link) l = link_new("rate=720,room=450");

    send_frames(&l, FRAMES, 0);
    qtest_clock_step(l.qts, FRAMES * MS);
    expect_frames(&l, 5);
    g_assert_cmpuint(get(l.qts, "f0", "dropped"), ==, FRAMES - 5);
}

static void hmp(Link *l, const char *command)
{
    g_autofree char *said = qtest_hmp(l->qts, "%s", command);

    g_assert_cmpstr(said, ==, "");
}

/*
 * A snapshot sets the clock back. What the link did later has no effect: its
 * queue is empty. A frame needs 720 ms, and there is room for one.
 */
static void test_clock_that_goes_back(void)
{
    g_auto(Link) l = link_new_in("none -accel tcg", "rate=1,room=100");
    g_autofree char *image = g_strdup_printf("%s/image", l.in.dir);

    test_image_add(l.qts, image);
    hmp(&l, "savevm s");
    /* Send two frames in less than 720 ms of the clock. */
    hmp(&l, "stop");
    send_frames(&l, 2, 0);
    g_assert_cmpuint(get(l.qts, "f0", "dropped"), ==, 1);
    hmp(&l, "loadvm s");
    send_frames(&l, 1, 0);
    g_assert_cmpuint(get(l.qts, "f0", "dropped"), ==, 1);
    hmp(&l, "cont");
    expect_frames(&l, 1);
    g_unlink(image);
}

static void test_without_tcg(void)
{
    g_test_skip("no TCG, and the clock of qtest does not go back");
}

static void test_mark(void)
{
    g_auto(Link) l = link_new("rate=720,mark=450");

    /* ECT(0), ECT(1), and a sender that ignores marks */
    for (uint8_t ecn = 0; ecn < 3; ecn++) {
        send_frames(&l, FRAMES, 0xb8 | ecn);
        qtest_clock_step(l.qts, FRAMES * MS);
        g_assert_cmpuint(expect_frames(&l, FRAMES), ==, ecn ? FRAMES - 6 : 0);
    }
    g_assert_cmpuint(get(l.qts, "f0", "marked"), ==, 2 * (FRAMES - 6));
}

static void set_status(Link *l, const char *status)
{
    qtest_qmp_assert_success(l->qts, "{'execute': 'qom-set', 'arguments': "
                             "{'path': '/objects/f0', 'property': 'status', "
                             "'value': %s}}", status);
}

/* Waiting frames come at once when the filter is turned off. */
static void test_off(void)
{
    g_auto(Link) l = link_new("delay=1000000");

    send_frames(&l, FRAMES, 0);
    set_status(&l, "off");
    expect_frames(&l, FRAMES);
    send_frames(&l, 1, 0);
    expect_frames(&l, 1);
    /* A held frame is lost when the filter is deleted. */
    set_status(&l, "on");
    send_frames(&l, FRAMES, 0);
    qtest_qmp_assert_success(l.qts, "{'execute': 'object-del', 'arguments': "
                             "{'id': 'f0'}}");
    qtest_clock_step(l.qts, 2000 * MS);
    send_frames(&l, 1, 0);
    expect_frames(&l, 1);
}

typedef struct Verdicts {
    unsigned seen[FAULT_FRAMES];
    unsigned last;
    unsigned lost;
    unsigned twice;
    unsigned overtaken;
    unsigned corrupt;
    GByteArray *frames;             /* NULL, or gets all received frames */
} Verdicts;

static size_t make_numbered(uint8_t *frame, unsigned n)
{
    size_t size = make_udp(frame, 0);

    stw_be_p(frame + 60, n);
    return size;
}

static bool fault_take(Wire *w, Verdicts *v, int timeout_ms)
{
    uint8_t frame[FRAME_MAX], want[FRAME_MAX];
    size_t size = wire_recv(w, frame, timeout_ms);
    unsigned n;

    if (!size) {
        return false;
    }
    if (v->frames) {
        g_byte_array_append(v->frames, frame, size);
    }
    n = lduw_be_p(frame + 60);
    make_numbered(want, n);
    if (n >= FAULT_FRAMES || memcmp(frame, want, size)) {
        v->corrupt++;
        return true;
    }
    v->twice += v->seen[n]++ > 0;
    v->overtaken += n < v->last;
    v->last = MAX(n, v->last);
    return true;
}

static Verdicts fault_run(const char *options, GByteArray *frames)
{
    Verdicts v = { .frames = frames };
    g_auto(Link) l = link_new(options);
    uint8_t frame[FRAME_MAX];

    for (unsigned i = 0; i < FAULT_FRAMES; i++) {
        wire_send(&l.in, frame, make_numbered(frame, i));
        settle(&l);
        while (fault_take(&l.out, &v, 0)) {
            continue;
        }
    }
    /* A frame that was held back comes by itself in the end. */
    qtest_clock_step(l.qts, 2 * MS);
    settle(&l);
    while (fault_take(&l.out, &v, 0)) {
        continue;
    }
    for (unsigned i = 0; i < FAULT_FRAMES; i++) {
        v.lost += !v.seen[i];
    }
    return v;
}

static void test_faults(void)
{
    Verdicts v;

    v = fault_run("seed=3", NULL);
    g_assert_cmpuint(v.lost + v.twice + v.overtaken + v.corrupt, ==, 0);

    v = fault_run("drop=10000", NULL);
    g_assert_cmpuint(v.lost, ==, FAULT_FRAMES);

    v = fault_run("drop=1000", NULL);
    g_assert_cmpuint(v.lost, >, FAULT_FRAMES / 20);
    g_assert_cmpuint(v.lost, <, FAULT_FRAMES / 5);
    g_assert_cmpuint(v.twice + v.overtaken + v.corrupt, ==, 0);

    v = fault_run("dup=1000", NULL);
    g_assert_cmpuint(v.twice, >, FAULT_FRAMES / 20);
    g_assert_cmpuint(v.twice, <, FAULT_FRAMES / 5);
    g_assert_cmpuint(v.lost + v.overtaken + v.corrupt, ==, 0);

    v = fault_run("reorder=1000", NULL);
    g_assert_cmpuint(v.overtaken, >, FAULT_FRAMES / 20);
    g_assert_cmpuint(v.overtaken, <, FAULT_FRAMES / 5);
    g_assert_cmpuint(v.lost + v.twice + v.corrupt, ==, 0);

    v = fault_run("corrupt=1000", NULL);
    g_assert_cmpuint(v.corrupt, >, FAULT_FRAMES / 20);
    g_assert_cmpuint(v.corrupt, <, FAULT_FRAMES / 5);
    /* A flipped bit in the number makes the frame look like another one. */
    g_assert_cmpuint(v.lost, ==, v.corrupt + v.twice);
}

static void test_faults_repeat(void)
{
    g_autoptr(GByteArray) first = g_byte_array_new();
    g_autoptr(GByteArray) again = g_byte_array_new();
    g_autoptr(GByteArray) other = g_byte_array_new();
    const char *options = "drop=300,dup=300,reorder=300,corrupt=300,seed=%d";
    g_autofree char *seed_1 = g_strdup_printf(options, 1);
    g_autofree char *seed_2 = g_strdup_printf(options, 2);

    fault_run(seed_1, first);
    fault_run(seed_1, again);
    g_assert_cmpmem(first->data, first->len, again->data, again->len);
    fault_run(seed_2, other);
    g_assert_true(first->len != other->len ||
                  memcmp(first->data, other->data, first->len));
}

/* Frames that faults leave over enter the queue of the link. */
static void test_faults_and_delay(void)
{
    g_auto(Link) l = link_new("dup=10000,delay=5000");

    send_frames(&l, FRAMES, 0);
    qtest_clock_step(l.qts, 5 * MS - 1);
    expect_frames(&l, 0);
    qtest_clock_step(l.qts, 1);
    expect_frames(&l, 2 * FRAMES);
}

/* A frame that is held back follows the next one through the link. */
static void test_reorder_and_delay(void)
{
    g_auto(Link) l = link_new("reorder=10000,delay=5000");
    uint8_t frame[FRAME_MAX], want[FRAME_MAX];

    for (unsigned i = 0; i < 3; i++) {
        wire_send(&l.in, frame, make_numbered(frame, i));
        settle(&l);
    }
    qtest_clock_step(l.qts, 5 * MS);
    for (int i = 0; i < 3; i++) {
        static const unsigned order[] = { 1, 0, 2 };
        size_t size = make_numbered(want, order[i]);

        if (i == 2) {
            /* No frame follows, so the held frame waits a millisecond. */
            g_assert_cmpuint(wire_recv(&l.out, frame, 0), ==, 0);
            qtest_clock_step(l.qts, MS);
        }
        g_assert_cmpuint(wire_recv(&l.out, frame, SOON_MS), ==, size);
        g_assert_cmpmem(frame, size, want, size);
    }
}

typedef struct Port {
    QRdma *dev;
    QRdmaMr *mr;
    QRdmaCq *cq;
    QRdmaQp *qp;
} Port;

static Port port_start(QRdmaHost *host, int slot)
{
    Port p = { .dev = qrdma_open(host, QPCI_DEVFN(slot, 0)) };
    QRdmaPd *pd;

    qrdma_start(p.dev, 0, 0);
    qrdma_setup_gids(p.dev, slot);
    pd = qrdma_alloc_pd(p.dev);
    p.mr = qrdma_reg_mr(pd, 0x100000, 128 * 1024, RDMA_ACCESS_LOCAL_WRITE |
                        RDMA_ACCESS_REMOTE);
    p.cq = qrdma_create_cq(p.dev, 40);
    p.qp = qrdma_create_qp(pd, p.cq, p.cq, RDMA_QPT_RC);
    return p;
}

/* Returns the milliseconds to write 20 times 64 KiB through a slow link. */
static int write_all(const char *roce, uint64_t *marked, uint64_t *cnps)
{
    QRdmaHost *host = qrdma_host_start(
        "-netdev hubport,id=n0,hubid=0 -netdev hubport,id=n1,hubid=0 "
        "-object rdma-roce,id=r0,netdev=n0,mac=52:54:00:00:00:04%s "
        "-object rdma-roce,id=r1,netdev=n1,mac=52:54:00:00:00:05%s "
        "-object filter-impair,id=f0,netdev=n0,rate=1000000,delay=20,"
        "room=200000,mark=50000 "
        "-device virtio-rdma-pci,rdmadev=r0,addr=4 "
        "-device virtio-rdma-pci,rdmadev=r1,addr=5", roce, roce);
    Port a = port_start(host, 4), b = port_start(host, 5);
    QRdmaPath path = { .timeout = 14 };
    RdmaSge sge = qrdma_sge(a.mr, 0, 65536);
    int ms = 0;

    qrdma_connect(a.qp, b.qp, &path);
    for (int i = 0; i < 20; i++) {
        qrdma_post(a.qp, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, i, &sge, b.mr, 0));
    }
    for (int i = 0; i < 20; i++) {
        for (; !qrdma_cq_has_cqe(a.cq); ms++) {
            g_assert_cmpint(ms, <, 10000);
            for (int step = 0; step < 50; step++) {
                qrdma_clock_step(a.dev, MS / 50);
            }
        }
        qrdma_expect_wc(a.cq, i, RDMA_WC_RDMA_WRITE, NULL);
    }
    *marked = get(host->qts, "r1", "ecn-marked");
    g_assert_cmpuint(*marked, ==, get(host->qts, "f0", "marked"));
    *cnps = get(host->qts, "r0", "cnps-received");
    g_assert_cmpuint(*cnps, ==, get(host->qts, "r1", "cnps-sent"));
    qrdma_host_stop(host);
    return ms;
}

/* Ports that ask for marks get them. A sender that gets a CNP slows down. */
static void test_dcqcn(void)
{
    uint64_t marked, cnps;
    int fast, slow;

    fast = write_all("", &marked, &cnps);
    g_assert_cmpuint(marked, ==, 0);
    g_assert_cmpuint(cnps, ==, 0);
    slow = write_all(",dcqcn-rate=1000", &marked, &cnps);
    g_assert_cmpuint(marked, >, 0);
    g_assert_cmpuint(cnps, >, 0);
    g_test_message("%d ms, with DCQCN %d ms, %" PRIu64 " CNPs", fast, slow,
                   cnps);
    /* 1.3 MB at 1 Gbit/s */
    g_assert_cmpint(fast, >=, 10);
    g_assert_cmpint(slow, >, fast);
}

static void test_bad_rate(void)
{
    QTestState *qts = qtest_init("-machine pc -nodefaults "
                                 "-netdev hubport,id=n0,hubid=0");
    QDict *rsp = qtest_qmp(qts, "{'execute': 'object-add', 'arguments': "
                           "{'qom-type': 'rdma-roce', 'id': 'r0', "
                           "'netdev': 'n0', 'dcqcn-rate': 5000000}}");

    qmp_expect_error_and_unref(rsp, "GenericError");
    qtest_quit(qts);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/rdma-filter-impair/faults", test_faults);
    qtest_add_func("/rdma-filter-impair/faults-repeat", test_faults_repeat);
    qtest_add_func("/rdma-filter-impair/faults-and-delay",
                   test_faults_and_delay);
    qtest_add_func("/rdma-filter-impair/reorder-and-delay",
                   test_reorder_and_delay);
    qtest_add_func("/rdma-filter-impair/delay", test_delay);
    qtest_add_func("/rdma-filter-impair/rate", test_rate);
    qtest_add_func("/rdma-filter-impair/room", test_room);
    qtest_add_func("/rdma-filter-impair/clock-that-goes-back",
                   qtest_has_accel("tcg") ? test_clock_that_goes_back
                                          : test_without_tcg);
    qtest_add_func("/rdma-filter-impair/mark", test_mark);
    qtest_add_func("/rdma-filter-impair/off", test_off);
    qtest_add_func("/rdma-filter-impair/dcqcn", test_dcqcn);
    qtest_add_func("/rdma-filter-impair/bad-rate", test_bad_rate);
    return g_test_run();
}
