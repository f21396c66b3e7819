/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration during work that takes many turns of the main loop. The work that a
 * turn has left in rings and queues migrates, and nothing else: the destination
 * goes on from there.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "migrate-test.h"

static void stop(QRdma *d)
{
    qtest_qmp_assert_success(d->host->qts, "{'execute': 'stop'}");
}

static void go_on(QRdma *d)
{
    qtest_qmp_assert_success(d->host->qts, "{'execute': 'cont'}");
}

static QRdmaWaiting start_long(QRdmaPd *pd)
{
    QRdmaWaiting w = qrdma_enqueue_long(pd);

    qrdma_ring_kick(qrdma_ring(pd->dev, VIRTIO_RDMA_CTRL_VQ));
    return w;
}

/* Wait for the end of the registration, and undo it. */
static void end_long(QRdmaWaiting w)
{
    uint32_t mrn;

    qrdma_reap_commands(w.d, 1);
    assert_ok(qrdma_status_of(&w));
    mrn = qtest_readl(w.d->host->qts, w.rsp + 1 +
                      offsetof(struct virtio_rdma_mr_rsp, mrn));
    assert_ok(qrdma_call_void(w.d, DEREG_MR, &mrn));
}

static void test_during_a_long_registration(void)
{
    static const uint64_t features[] = {
        0,
        QRDMA_F(VIRTIO_F_RING_PACKED) | QRDMA_F(VIRTIO_F_IN_ORDER),
    };

    for (int i = 0; i < ARRAY_SIZE(features); i++) {
        g_autoptr(Trip) t = trip_new(NULL);
        QRdma *d = t->net.dev[0];
        QRdmaWaiting w;

        t->p = net_pair_new_with(&t->net, RDMA_QPT_RC, features[i]);
        for (;;) {
            w = start_long(t->p.a.pd);
            stop(d);
            if (qrdma_status_of(&w) == QRDMA_NO_STATUS) {
                break;
            }
            /* On a busy machine the command may end before the VM stops */
            go_on(d);
            end_long(w);
        }
        trip_move(t, 0, NULL);
        go_on(d);
        end_long(w);
        /* All pages that regions may have are free again */
        end_long(start_long(t->p.a.pd));
    }
}

/* WQEs that the device has not seen, has read, and has begun to flush */
static void test_during_a_flush(void)
{
    g_autoptr(Trip) t = trip_connected(NULL);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_RDMA_WRITE, 0, NULL);
    uint8_t wqe[QRDMA_WQE_ROOM];
    QRdmaQp *qp = t->p.a.qp;
    QRdmaCq *rcq = t->p.a.rcq;

    for (unsigned i = 0; i < QRDMA_RING_SIZE; i++) {
        RdmaRecvWr recv = { .wr_id = 1000 + i };

        qrdma_post_raw(qp, &qp->rq, wqe, qrdma_encode_recv(&recv, wqe), 0,
                       i % 8 == 0);
    }
    assert_ok(qrdma_modify_qp_state(qp, RDMA_QPS_ERR));
    stop(qp->dev);
    wr.wr_id = 1;
    qrdma_post_raw(qp, &qp->sq, wqe, qrdma_encode_send(qp, &wr, wqe), 0, true);
    trip_move(t, 0, NULL);
    go_on(qp->dev);
    qrdma_expect_many(rcq, 1000, MIN(QRDMA_RING_SIZE, qp->rq.posted),
                      RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect(t->p.a.scq, 1, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect_none(rcq);
    qrdma_reap_all(qp->dev, &qp->rq);
}

const QRdmaTest migrate_turn_tests[] = {
    { "during-a-long-registration", test_during_a_long_registration },
    { "during-a-flush", test_during_a_flush },
    {}
};
