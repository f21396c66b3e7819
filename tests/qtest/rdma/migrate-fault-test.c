/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of devices with faults: those that have yet to strike, and what
 * others have done.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "fault-test.h"
#include "migrate-test.h"

#define NO_STATUS 0xff

static void post_write(Trip *t, QRdmaQp *qp, uint64_t wr_id)
{
    RdmaSge sge = net_sge(&t->p.a, 0, 64);
    RdmaSendWr wr = net_rdma_wr(RDMA_WR_RDMA_WRITE, wr_id, &sge, &t->p.b, 0);

    qrdma_post_send(qp, &wr);
}

static void step(Trip *t, int64_t ns)
{
    net_clock_step(&t->net, ns);
}

static Trip *start(void)
{
    Trip *t = trip_new(NULL);

    trip_connect(t);
    return t;
}

/* Counts go on where they were, and so does the sequence. */
static void test_armed(void)
{
    Trip *t = start();
    uint64_t at_home[2], abroad[2];

    for (int round = 0; round < 2; round++) {
        uint64_t *hits = round ? abroad : at_home;

        fault_add(t->net.dev[0], "'id': 'f', 'kind': 'completion-error', "
                  "'status': 'rem-op-err', 'after': 32");
        fault_add(t->net.dev[0], "'id': 'g', 'kind': 'completion-delay', "
                  "'delay': 1, 'times': 0, 'probability': 0.5, 'seed': 9");
        for (int i = 0; i < 32; i++) {
            if (round && i == 16) {
                trip_move(t, 0, NULL);
            }
            post_write(t, t->p.a.qp, i);
            qrdma_wait_until(t->p.a.dev,
                             fault_matches(t->p.a.dev, "g") == i + 1);
            step(t, QRDMA_MS);
            qrdma_expect(t->p.a.scq, i, RDMA_WC_SUCCESS);
            if (i == 15 || i == 31) {
                hits[i == 31] = fault_hits(t->p.a.dev, "g");
            }
        }
        fault_expect(t->p.a.dev, "f", 32, 0, true);
        if (!round) {
            fault_remove_all(t->p.a.dev);
        }
    }
    g_assert_cmpuint(abroad[0], ==, at_home[0]);
    g_assert_cmpuint(abroad[1], ==, at_home[1]);
    post_write(t, t->p.a.qp, 40);
    qrdma_expect(t->p.a.scq, 40, RDMA_WC_REM_OP_ERR);
    fault_expect(t->p.a.dev, "f", 33, 1, false);
    trip_free(t);
}

static void test_stuck(void)
{
    Trip *t = start();

    fault_add(t->net.dev[0], "'id': 'f', 'kind': 'qp-stuck', "
              "'duration': 1000");
    post_write(t, t->p.a.qp, 1);
    qrdma_wait_until(t->p.a.dev, fault_hits(t->p.a.dev, "f") == 1);
    step(t, 400 * QRDMA_MS);
    trip_move(t, 0, NULL);
    post_write(t, t->p.a.qp, 2);
    step(t, 500 * QRDMA_MS);
    qrdma_settle(t->p.a.dev);
    qrdma_expect_none(t->p.a.scq);
    fault_expect(t->p.a.dev, "f", 1, 1, true);
    trip_move_by_file(t, 0);
    qrdma_expect_none(t->p.a.scq);
    step(t, 100 * QRDMA_MS);
    trip_wait_wc(t, t->p.a.scq, 1, &(RdmaWc) {});
    trip_wait_wc(t, t->p.a.scq, 2, &(RdmaWc) {});
    fault_expect(t->p.a.dev, "f", 1, 1, false);
    trip_free(t);
}

static void test_held_back(void)
{
    Trip *t = start();

    fault_add(t->net.dev[0], "'id': 'f', 'kind': 'completion-delay', "
              "'delay': 1000");
    /* Sees the second completion, which waits behind the first */
    fault_add(t->net.dev[0], "'id': 'g', 'kind': 'completion-delay', "
              "'delay': 1, 'after': 1");
    post_write(t, t->p.a.qp, 1);
    post_write(t, t->p.a.qp, 2);
    qrdma_wait_until(t->p.a.dev, fault_matches(t->p.a.dev, "g") == 1);
    step(t, 400 * QRDMA_MS);
    qrdma_settle(t->p.a.dev);
    trip_move(t, 0, NULL);
    /* They come also when the fault is gone. */
    fault_remove_all(t->p.a.dev);
    trip_move(t, 0, NULL);
    g_assert_cmpuint(fault_count(t->p.a.dev), ==, 0);
    step(t, 599 * QRDMA_MS);
    qrdma_settle(t->p.a.dev);
    qrdma_expect_none(t->p.a.scq);
    step(t, QRDMA_MS);
    trip_wait_wc(t, t->p.a.scq, 1, &(RdmaWc) {});
    trip_wait_wc(t, t->p.a.scq, 2, &(RdmaWc) {});
    trip_free(t);
}

static void test_port(void)
{
    Trip *t = start();
    struct virtio_rdma_query_port_rsp port;

    fault_add(t->net.dev[0], "'id': 'f', 'kind': 'port-down', "
              "'duration': 50");
    trip_move(t, 0, NULL);
    assert_ok(qrdma_query_port(t->p.a.dev, 1, &port));
    g_assert_cmpint(port.state, ==, RDMA_PORT_DOWN);
    fault_expect(t->p.a.dev, "f", 0, 0, true);
    step(t, 50 * QRDMA_MS);
    qrdma_wait_until(t->p.a.dev,
                     qrdma_query_port(t->p.a.dev, 1, &port) == 0 &&
                     port.state == RDMA_PORT_ACTIVE);
    fault_expect(t->p.a.dev, "f", 0, 0, false);
    post_write(t, t->p.a.qp, 1);
    trip_wait_wc(t, t->p.a.scq, 1, &(RdmaWc) {});
    trip_free(t);
}

static void test_command(void)
{
    Trip *t = start();
    QRdma *d = t->p.a.dev;
    QRdmaRing *ring = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);
    struct virtio_rdma_query_pkey_req req = { .port = cpu_to_le32(1) };
    uint64_t mem = qrdma_alloc(d, 4096);
    uint64_t rsp = mem + 2048;
    QRdmaDesc desc[] = {
        { mem, 1 }, { mem + 1, sizeof(req) },
        { rsp, 1 + sizeof(struct virtio_rdma_query_pkey_rsp), true },
    };
    uint16_t head;
    uint32_t len;

    fault_add(d, "'id': 'f', 'kind': 'command-delay', 'delay': 1000");
    qtest_writeb(d->host->qts, mem, VIRTIO_RDMA_CMD_QUERY_PKEY);
    qtest_writeb(d->host->qts, rsp, NO_STATUS);
    qrdma_write(d, mem + 1, &req, sizeof(req));
    qrdma_ring_add(ring, desc, 3);
    qrdma_ring_kick(ring);
    qrdma_wait_until(d, fault_hits(d, "f") == 1);
    step(t, 500 * QRDMA_MS);
    trip_move(t, 0, NULL);
    step(t, 499 * QRDMA_MS);
    qrdma_settle(d);
    g_assert_cmphex(qtest_readb(d->host->qts, rsp), ==, NO_STATUS);
    step(t, QRDMA_MS);
    qrdma_wait_until(d, qrdma_ring_get(ring, &head, &len));
    g_assert_cmphex(qtest_readb(d->host->qts, rsp), ==, VIRTIO_RDMA_S_OK);
    fault_expect(d, "f", 1, 1, false);
    trip_free(t);
}

/* A stream is trusted no more than a user. */
static void test_spoilt(void)
{
    Trip *t = start();
    uint32_t qpn = t->p.a.qp->qpn;
    const TripSpoilt cases[] = {
        /* Faults, queue pairs, completions; then an ID of 64 bytes */
        { "faults", { 2, 1, 1, 0x41424344 }, 4, 0, 65,
          "no more faults than a device has" },
        { "queue pairs", { 2, 1, 1, 0x41424344 }, 4, 1, 9,
          "no more faults than a device has" },
        { "completions", { 2, 1, 1, 0x41424344 }, 4, 2, UINT32_MAX,
          "no more faults than a device has" },
        { "ID", { 2, 1, 1, 0x41424344 }, 4, 3, 0x40424344,
          "The ID of a fault has" },
        { "same ID", { 0x45464748 }, 1, 0, 0x41424344,
          "has a fault 'ABCD' already" },
        /* Behind the ID: kind, status, opcode, command; then selectors */
        { "kind", { 0x0400ff00, 1, qpn }, 3, 0, 0x0b00ff00,
          "kind=11 is none" },
        { "opcode", { 0x0400ff00, 1, qpn }, 3, 0, 0x04008000,
          "opcode=recv" },
        { "selectors", { 0x0400ff00, 1, qpn }, 3, 1, 8, "selects by 0x8" },
        { "QP", { 0x0400ff00, 1, qpn }, 3, 2, 8, "qpn=8" },
        /* The QP that is stuck, and by which fault */
        { "stuck QP", { qpn, 0, 0x00017fff, UINT32_MAX }, 4, 0, 7,
          "QP 7 in the migration stream" },
        { "no such fault", { qpn, 0, 0x00017fff, UINT32_MAX }, 4, 1, 2,
          "is stuck by fault 2" },
        { "another kind", { qpn, 0, 0x00017fff, UINT32_MAX }, 4, 1, 1,
          "is stuck by fault 1" },
    };

    fault_add(t->net.dev[0], "'id': 'ABCD', 'kind': 'qp-stuck', 'qpn': %u, "
              "'after': 1", qpn);
    fault_add(t->net.dev[0], "'id': 'EFGH', 'kind': 'completion-delay', "
              "'delay': 1000");
    post_write(t, t->p.a.qp, 1);
    post_write(t, t->p.a.qp, 2);
    qrdma_wait_until(t->p.a.dev, fault_hits(t->p.a.dev, "ABCD") == 1 &&
                                 fault_hits(t->p.a.dev, "EFGH") == 1);
    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
    trip_free(t);
}

void add_migrate_fault_tests(void)
{
    qtest_add_func("virtio-rdma-migration/fault-armed", test_armed);
    qtest_add_func("virtio-rdma-migration/fault-stuck", test_stuck);
    qtest_add_func("virtio-rdma-migration/fault-held-back", test_held_back);
    qtest_add_func("virtio-rdma-migration/fault-port", test_port);
    qtest_add_func("virtio-rdma-migration/fault-command", test_command);
    qtest_add_func("virtio-rdma-migration/fault-spoilt", test_spoilt);
}
