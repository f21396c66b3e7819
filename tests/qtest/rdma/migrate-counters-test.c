/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Migration of counters of queue pairs. */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "migrate-test.h"

#define WRITES 10
#define LEN 100

static void write_once(Trip *t)
{
    RdmaSge sge = net_sge(&t->p.a, 0, LEN);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, t->p.b.mr, 0);

    qrdma_post_expect(t->p.a.qp, wr, RDMA_WC_SUCCESS);
}

static void get(Trip *t, uint64_t *values)
{
    assert_ok(qrdma_query_qp_counters(t->p.a.dev, 1, &t->p.a.qp->qpn,
                                      values));
}

/* Counters go on. A frame may be sent again during or after the migration. */
static void test_qp_counters(void)
{
    g_autoptr(Trip) t = trip_connected(NULL);
    uint64_t before[VIRTIO_RDMA_NUM_COUNTERS];
    uint64_t after[VIRTIO_RDMA_NUM_COUNTERS];

    for (int i = 1; i <= 2; i++) {
        for (int n = 0; n < WRITES; n++) {
            write_once(t);
        }
        get(t, before);
        g_assert_cmpuint(before[VIRTIO_RDMA_TX_PACKETS], >=, i * WRITES);
        g_assert_cmpuint(before[VIRTIO_RDMA_TX_BYTES], >, i * WRITES * LEN);
        g_assert_cmpuint(before[VIRTIO_RDMA_RX_PACKETS], >=, i * WRITES);
        if (i == 1) {
            trip_move(t, 0, NULL);
        } else {
            trip_move_by_file(t, 0);
        }
        get(t, after);
        for (int n = 0; n < VIRTIO_RDMA_NUM_COUNTERS; n++) {
            g_assert_cmpuint(after[n], >=, before[n]);
        }
        g_assert_cmpuint(after[VIRTIO_RDMA_TX_PACKETS], <,
                         before[VIRTIO_RDMA_TX_PACKETS] + WRITES);
    }
}

static void test_spoilt(void)
{
    g_autoptr(Trip) t = trip_connected(NULL);
    uint32_t qpn = t->p.a.qp->qpn;
    /* One record: a packet of @qpn, in the high half of the first counter */
    const TripSpoilt cases[] = {
        { "number", { 1, qpn, 0, 1 }, 4, 0, 2,
          "counters of 2 QPs in the migration stream, which has only 1 QPs" },
        { "all numbers", { 1, qpn, 0, 1 }, 4, 0, UINT32_MAX,
          "counters of 4294967295 QPs in the migration stream" },
        { "QP", { 1, qpn, 0, 1 }, 4, 1, qpn + 1, "which has no such QP" },
    };

    write_once(t);
    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
}

const QRdmaTest migrate_counters_tests[] = {
    { "qp-counters", test_qp_counters },
    { "qp-counters-spoilt", test_spoilt },
    {}
};
