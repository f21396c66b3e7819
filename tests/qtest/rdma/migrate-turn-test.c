/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration during work that takes many turns of the main loop. The work that a
 * turn has left in rings and queues migrates, and nothing else: the destination
 * goes on from there.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "migrate-test.h"

#define LONG_LIST (8 * 1024 * 1024 - 1023)
#define NO_STATUS 0xff

static void stop(QRdma *d)
{
    qtest_qmp_assert_success(d->host->qts, "{'execute': 'stop'}");
}

static void go_on(QRdma *d)
{
    qtest_qmp_assert_success(d->host->qts, "{'execute': 'cont'}");
}

typedef struct virtio_rdma_reg_user_mr_req RegReq;
typedef struct virtio_rdma_mr_rsp MrRsp;

/*
 * Register a region with millions of pages, whose tables are all the same one.
 */
static uint64_t enqueue_long(QRdmaPd *pd)
{
    QRdma *d = pd->dev;
    uint64_t table = qrdma_alloc(d, 4096);
    uint64_t mem = qrdma_alloc(d, 4096);
    uint64_t rsp = mem + 2048;
    uint64_t le[512];
    RegReq req = {
        .pdn = cpu_to_le32(pd->pdn),
        .access = cpu_to_le32(RDMA_ACCESS_LOCAL_WRITE),
        .length = cpu_to_le64(LONG_LIST * 4096ull),
        .pages = cpu_to_le64(qrdma_dma(d, table)),
        .npages = cpu_to_le32(LONG_LIST),
        .levels = cpu_to_le32(3),
    };
    QRdmaDesc desc[] = {
        { mem, 1 }, { mem + 1, sizeof(req) }, { rsp, 1 + sizeof(MrRsp), true },
    };

    for (int i = 0; i < ARRAY_SIZE(le); i++) {
        le[i] = req.pages;
    }
    qrdma_write(d, table, le, sizeof(le));
    qtest_writeb(d->host->qts, mem, VIRTIO_RDMA_CMD_REG_USER_MR);
    qtest_writeb(d->host->qts, rsp, NO_STATUS);
    qrdma_write(d, mem + 1, &req, sizeof(req));
    qrdma_ring_add(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ), desc, 3);
    qrdma_ring_kick(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ));
    return rsp;
}

/* Wait for the end of the registration, and undo it. */
static void end_long(QRdma *d, uint64_t rsp)
{
    QRdmaRing *ring = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);
    uint16_t head;
    uint32_t len, mrn;

    qrdma_wait_until(d, qrdma_ring_get(ring, &head, &len));
    g_assert_cmphex(qtest_readb(d->host->qts, rsp), ==, VIRTIO_RDMA_S_OK);
    mrn = qtest_readl(d->host->qts, rsp + 1 + offsetof(MrRsp, mrn));
    assert_ok(qrdma_cmd(d, VIRTIO_RDMA_CMD_DEREG_MR, &mrn, sizeof(mrn), NULL,
                        0));
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
        uint64_t rsp;

        t->p = net_pair_new_with(&t->net, RDMA_QPT_RC, features[i]);
        for (;;) {
            rsp = enqueue_long(t->p.a.pd);
            stop(d);
            if (qtest_readb(d->host->qts, rsp) == NO_STATUS) {
                break;
            }
            /* On a busy machine the command may end before the VM stops */
            go_on(d);
            end_long(d, rsp);
        }
        trip_move(t, 0, NULL);
        go_on(d);
        end_long(d, rsp);
        /* All pages that regions may have are free again */
        end_long(d, enqueue_long(t->p.a.pd));
    }
}

/* WQEs that the device has not seen, has read, and has begun to flush */
static void test_during_a_flush(void)
{
    g_autoptr(Trip) t = trip_new(NULL);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_RDMA_WRITE, 0, NULL);
    uint8_t wqe[QRDMA_WQE_ROOM];
    QRdmaQp *qp;
    QRdmaCq *rcq;

    trip_connect(t);
    qp = t->p.a.qp;
    rcq = t->p.a.rcq;
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
    for (unsigned i = 0; i < MIN(QRDMA_RING_SIZE, qp->rq.posted); i++) {
        qrdma_expect(rcq, 1000 + i, RDMA_WC_WR_FLUSH_ERR);
    }
    qrdma_expect(t->p.a.scq, 1, RDMA_WC_WR_FLUSH_ERR);
    qrdma_expect_none(rcq);
    qrdma_reap_all(qp->dev, &qp->rq);
}

const QRdmaTest migrate_turn_tests[] = {
    { "during-a-long-registration", test_during_a_long_registration },
    { "during-a-flush", test_during_a_flush },
    {}
};
