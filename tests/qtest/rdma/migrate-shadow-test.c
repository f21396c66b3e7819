/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of shadows of doorbells.
 */
#include "qemu/osdep.h"
#include "migrate-test.h"

#define PAGE QRDMA_DIRECT_DOORBELL
#define AT(field) offsetof(struct virtio_rdma_shadow_page, field)
#define IN_A_ROW 32

/* Side 0 with a shadow, which is asleep; its address */
static uint64_t connect_with_shadow(Trip *t)
{
    uint64_t shadow;

    t->p = net_pair_new_with(&t->net, RDMA_QPT_RC,
                             QRDMA_F(VIRTIO_RDMA_F_SHADOW_DOORBELL));
    shadow = qrdma_alloc(t->net.dev[0], 4096);
    assert_ok(qrdma_set_shadow(t->net.dev[0], PAGE, shadow));
    return shadow;
}

static void set_bit_at(QRdma *d, uint64_t words, uint32_t n)
{
    uint64_t at = words + n / 32 * 4;

    qtest_writel(d->host->qts, at,
                 qtest_readl(d->host->qts, at) | 1u << n % 32);
}

static void test_shadow(void)
{
    Trip *t = trip_new(NULL);
    uint64_t shadow = connect_with_shadow(t);
    QRdmaQp *qp = qrdma_create_qp(t->p.a.pd, t->p.a.scq, t->p.a.rcq,
                                  RDMA_QPT_RC);

    qrdma_connect(qp, qp, NULL);
    for (uint64_t i = 0; i < 2; i++) {
        QRdma *d = t->net.dev[0];
        uint8_t wqe[QRDMA_WQE_ROOM];

        /* As if it was at work when it was saved */
        qtest_writel(d->host->qts, shadow + AT(awake), 1);
        trip_move(t, 0, NULL);
        d = t->net.dev[0];
        qrdma_wait_until(d, !qtest_readl(d->host->qts, shadow + AT(awake)));

        qrdma_direct_post(d, &qp->sq, wqe,
                          qrdma_encode_send(qp, &(RdmaSendWr) {
            .wr_id = i,
            .opcode = RDMA_WR_RDMA_WRITE,
            .send_flags = RDMA_SEND_SIGNALED,
        }, wqe));
        set_bit_at(d, shadow + AT(marked), qp->qpn);
        set_bit_at(d, shadow + AT(summary), qp->qpn / 32);
        qrdma_expect_none(qp->send_cq);
        /* Another one rings. */
        qrdma_wait_until(d, (qrdma_doorbell_in_a_row(d, PAGE, t->p.a.qp->qpn,
                                                     IN_A_ROW),
                             !qtest_readl(d->host->qts, shadow + AT(summary) +
                                          qp->qpn / 1024 * 4)));
        qrdma_expect(qp->send_cq, i, RDMA_WC_SUCCESS);
    }
    trip_free(t);
}

static void test_spoilt_shadow(void)
{
    Trip *t = trip_new(NULL);
    uint64_t shadow = connect_with_shadow(t);
    uint64_t features = t->net.dev[0]->features;
    uint64_t at = qrdma_dma(t->net.dev[0], shadow);
    const uint32_t high = at >> 32, low = at;
    const TripSpoilt cases[] = {
        { "number", { 1, PAGE, high, low }, 4, 0, 257,
          "no more shadows than pages of doorbells" },
        { "page", { 1, PAGE, high, low }, 4, 1, 256,
          "has doorbell=256, which must be a page without another shadow" },
        { "address", { 1, PAGE, high, low }, 4, 3, low | 4,
          "which must be that of a page" },
        { "features", { 0x75726573, 1, features >> 32, features }, 4, 3,
          (uint32_t)features & ~(1u << VIRTIO_RDMA_F_SHADOW_DOORBELL),
          "did not accept shadow-doorbell" },
    };

    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
    trip_free(t);
}

void add_migrate_shadow_tests(void)
{
    qtest_add_func("virtio-rdma-migration/shadow", test_shadow);
    qtest_add_func("virtio-rdma-migration/spoilt-shadow", test_spoilt_shadow);
}
