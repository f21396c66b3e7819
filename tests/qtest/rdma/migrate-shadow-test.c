/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of shadows of doorbells.
 */
#include "qemu/osdep.h"
#include "migrate-test.h"

#define PAGE QRDMA_DIRECT_DOORBELL
#define LAST_PAGE 255
#define AT(field) offsetof(struct virtio_rdma_shadow_page, field)
#define IN_A_ROW 32

/* Give side 0 a shadow, which is asleep. Returns its address. */
static uint64_t connect_with_shadow(Trip *t)
{
    uint64_t shadow;

    t->p = net_pair_new(&t->net, RDMA_QPT_RC);
    shadow = qrdma_alloc(t->net.dev[0], 4096);
    assert_ok(qrdma_set_shadow(t->net.dev[0], PAGE, shadow));
    return shadow;
}

static void mark(QRdmaQp *qp, uint64_t shadow)
{
    qrdma_shadow_mark(qp->dev, shadow, qp->qpn);
}

static bool is_marked(QRdmaQp *qp, uint64_t shadow)
{
    return qtest_readl(qp->dev->host->qts, shadow + AT(marked) +
                       qp->qpn / 32 * 4) & 1u << qp->qpn % 32;
}

/* The QP of the pair and @idle ring, which wakes the shadow. */
static void ring_in_a_row(Trip *t, QRdmaQp *idle)
{
    uint32_t qpn[] = { t->p.a.qp->qpn, idle->qpn };

    qrdma_doorbell_in_a_row(t->net.dev[0], PAGE, qpn, IN_A_ROW);
}

/* A QP of side 0 that writes to itself */
static QRdmaQp *loop_new(Trip *t)
{
    return qrdma_create_loop(t->p.a.pd, t->p.a.scq, t->p.a.rcq);
}

static void test_shadow(void)
{
    g_autoptr(Trip) t = trip_new(NULL);
    uint64_t shadow = connect_with_shadow(t);
    QRdma *d = t->net.dev[0];
    QRdmaQp *qp = loop_new(t), *idle = loop_new(t);

    for (uint64_t i = 0; i < 2; i++) {
        /* As if the shadow was awake when it was saved */
        qtest_writel(d->host->qts, shadow + AT(awake), 1);
        trip_move(t, 0, NULL);
        qrdma_wait_until(d, !qtest_readl(d->host->qts, shadow + AT(awake)));

        qrdma_put_send(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, i, NULL));
        mark(qp, shadow);
        qrdma_expect_none(qp->send_cq);
        qrdma_wait_until(d, (ring_in_a_row(t, idle), !is_marked(qp, shadow)));
        qrdma_expect(qp->send_cq, i, RDMA_WC_SUCCESS);
    }
}

/*
 * The driver may have seen the shadow awake. So the destination reads marks
 * without a doorbell, also in words whose summary bit the source has cleared.
 */
static void test_marks_of_the_source(void)
{
    g_autoptr(Trip) t = trip_new(NULL);
    uint64_t shadow = connect_with_shadow(t);
    QRdma *d = t->net.dev[0];
    QRdmaQp *qp = loop_new(t), *idle = loop_new(t);

    for (int i = 0; i < 2; i++) {
        qrdma_put_send(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, i, NULL));
        mark(qp, shadow);
        qrdma_expect_none(qp->send_cq);
        if (i) {
            qtest_memset(d->host->qts, shadow + AT(summary), 0,
                         VIRTIO_RDMA_SHADOW_WORDS / 8);
            trip_move_by_file(t, 0);
        } else {
            trip_move(t, 0, NULL);
        }
        qrdma_expect(qp->send_cq, i, RDMA_WC_SUCCESS);
        qrdma_wait_until(d, !is_marked(qp, shadow));
    }
    /* A shadow that was taken away does not migrate. */
    assert_ok(qrdma_set_shadow(d, PAGE, 0));
    mark(qp, shadow);
    trip_move(t, 0, NULL);
    ring_in_a_row(t, idle);
    qrdma_settle(d);
    g_assert_true(is_marked(qp, shadow));
}

/*
 * The destination reads the shadow at once. If its address is not RAM there,
 * the device loses the shadow and nothing else. The shadow does not come back
 * with the memory.
 */
static void test_shadow_in_no_ram(void)
{
    g_autoptr(Trip) t = trip_new(NULL);
    uint64_t shadow = connect_with_shadow(t);
    TripSpoilt it = { "address", { 1, PAGE, 0, shadow }, 4, 3,
                      QRDMA_LEGACY_ADDR };
    QRdma *d = t->net.dev[0];
    QRdmaQp *qp = loop_new(t), *idle = loop_new(t);

    qrdma_put_send(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, 1, NULL));
    trip_move_spoilt(t, 0, &it, 1);
    qrdma_expect(qp->send_cq, 1, RDMA_WC_SUCCESS);
    qrdma_host_set_legacy_ram(t->net.host[0], true);
    qtest_memset(d->host->qts, QRDMA_LEGACY_ADDR, 0, 4096);
    mark(qp, QRDMA_LEGACY_ADDR);
    ring_in_a_row(t, idle);
    qrdma_settle(d);
    g_assert_true(is_marked(qp, QRDMA_LEGACY_ADDR));
    qrdma_put_send(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, 2, NULL));
    qrdma_doorbell(d, PAGE, qp->qpn);
    qrdma_expect(qp->send_cq, 2, RDMA_WC_SUCCESS);
}

/* Two records that are of the same page */
static void test_spoilt_shadows(void)
{
    g_autoptr(Trip) t = trip_new(NULL);
    uint64_t shadow = connect_with_shadow(t);
    const TripSpoilt cases[] = {
        { "page", { 2, PAGE, 0, shadow }, 4, 1, LAST_PAGE,
          "has doorbell=255, which must be a page without another shadow" },
        { "number", { 2, PAGE, 0, shadow }, 4, 0, UINT32_MAX,
          "4294967295 shadows of doorbells in the migration stream, but the "
          "device has 256 pages" },
    };

    assert_ok(qrdma_set_shadow(t->net.dev[0], LAST_PAGE,
                               qrdma_alloc(t->net.dev[0], 4096)));
    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
}

static void test_spoilt_shadow(void)
{
    g_autoptr(Trip) t = trip_new(NULL);
    uint64_t shadow = connect_with_shadow(t);
    uint64_t at = qrdma_dma(t->net.dev[0], shadow);
    const uint32_t high = at >> 32, low = at;
    const TripSpoilt cases[] = {
        { "number", { 1, PAGE, high, low }, 4, 0, 257,
          "257 shadows of doorbells in the migration stream, but the device "
          "has 256 pages" },
        { "page", { 1, PAGE, high, low }, 4, 1, 256,
          "has doorbell=256, which must be a page without another shadow" },
        { "address", { 1, PAGE, high, low }, 4, 3, low | 4,
          "which must be that of a page" },
        trip_without_feature(t->net.dev[0], VIRTIO_RDMA_F_DIRECT,
                             "did not accept direct"),
    };

    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
}

const QRdmaTest migrate_shadow_tests[] = {
    { "shadow", test_shadow },
    { "shadow-marks-of-the-source", test_marks_of_the_source },
    { "shadow-in-no-ram", test_shadow_in_no_ram },
    { "spoilt-shadow", test_spoilt_shadow },
    { "spoilt-shadows", test_spoilt_shadows },
    {}
};
