/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a guest can delay QEMU's main loop when the device works in an iothread:
 * floods of direct queues, and how long other work in QEMU waits meanwhile. In
 * "make check" this program shows that each flood ends. "make bench
 * BENCH=turns" prints the times.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqos/virtio-rdma.h"
#include "flood-bench.h"

#define NQP 120
#define DEPTH (1u << QRDMA_DIRECT_DEPTH_SHIFT)
#define WINDOW (2 * 1024 * 1024u)
#define MCASTS 48                   /* as many as there are receives */
#define STORMS 400
#define FEATURES (QRDMA_FEATURES | QRDMA_DIRECT_QPS | QRDMA_DIRECT_CQS)

struct Flood {
    QRdmaHost *host;
    QRdma *d;
    QRdmaPd *pd;
    QRdmaMr *mr;                    /* WINDOW bytes */
    QRdmaCq *cqs[NQP];
    QRdmaQp *qps[NQP];
    uint64_t shadow;
    unsigned rounds;
};

/* All queue pairs are their own peers. */
static void new_qps(Flood *f, RdmaQpType type)
{
    QRdmaPath path = { .mtu = RDMA_MTU_4096 };

    for (int i = 0; i < NQP; i++) {
        f->cqs[i] = qrdma_create_cq(f->d, 2 * DEPTH);
        f->qps[i] = qrdma_create_qp(f->pd, f->cqs[i], f->cqs[i], type);
        if (type == RDMA_QPT_UD) {
            qrdma_start_ud(f->qps[i], QRDMA_QKEY);
        } else {
            qrdma_connect(f->qps[i], f->qps[i], &path);
        }
    }
}

/* Put the same WR @n times into the send queue, without a doorbell. */
static void prepare_sends(Flood *f, QRdmaQp *qp, const RdmaSendWr *wr,
                          unsigned n)
{
    uint8_t wqe[QRDMA_WQE_ROOM];
    size_t len = qrdma_encode_send(qp, wr, wqe);

    while (n--) {
        qrdma_direct_post(f->d, &qp->sq, wqe, len);
    }
}

static void prepare_receives(Flood *f, QRdmaQp *qp, unsigned n)
{
    RdmaSge sge = qrdma_sge(f->mr, 0, 8192);
    RdmaRecvWr wr = { .num_sge = 1, .sg_list = &sge };
    uint8_t wqe[QRDMA_WQE_ROOM];
    size_t len = qrdma_encode_recv(&wr, wqe);

    while (n--) {
        qrdma_direct_post(f->d, &qp->rq, wqe, len);
    }
}

/* Doorbells wait while the VM is stopped, so that all arrive in one turn. */
static void ring_at_once(Flood *f)
{
    qtest_qmp_assert_success(f->host->qts, "{'execute': 'stop'}");
    for (int i = 0; i < NQP; i++) {
        qrdma_doorbell(f->d, QRDMA_DIRECT_DOORBELL, f->qps[i]->qpn);
    }
    qtest_qmp_assert_success(f->host->qts, "{'execute': 'cont'}");
}

/* Whether each CQ from the first to the @n-th has a completion */
static bool have_cqes(Flood *f, int n)
{
    for (int i = 0; i < n; i++) {
        if (!qrdma_direct_cq_has_cqe(f->cqs[i])) {
            return false;
        }
    }
    return true;
}

/* The floods: their objects, how they start, when they are done */

static void idle_prepare(Flood *f)
{

}

static void idle_start(Flood *f)
{

}

static bool idle_done(Flood *f)
{
    return ++f->rounds == 5000;
}

static void mcast_prepare(Flood *f)
{
    static const uint8_t group[RDMA_GID_LEN] = { 0xff, 0x0e, [15] = 1 };
    RdmaSge sge = qrdma_sge(f->mr, 0, 4000);
    RdmaSendWr wr = {
        .opcode = RDMA_WR_SEND,
        .num_sge = 1,
        .sg_list = &sge,
        .wr.ud = {
            .remote_qpn = RDMA_QPN_MCAST,
            .remote_qkey = QRDMA_QKEY,
            .av = qrdma_av(f->d, 0),
        },
    };

    memcpy(wr.wr.ud.av.dgid, group, sizeof(group));
    new_qps(f, RDMA_QPT_UD);
    for (int i = 0; i < NQP; i++) {
        assert_ok(qrdma_attach_mcast(f->qps[i], group));
        prepare_receives(f, f->qps[i], MCASTS);
    }
    prepare_sends(f, f->qps[0], &wr, MCASTS - 1);
    wr.send_flags = RDMA_SEND_SIGNALED;
    prepare_sends(f, f->qps[0], &wr, 1);
}

static void first_start(Flood *f)
{
    qrdma_doorbell(f->d, QRDMA_DIRECT_DOORBELL, f->qps[0]->qpn);
}

/* Receives complete before the flood ends: count one for each multicast. */
static bool mcast_done(Flood *f)
{
    RdmaWc wc;

    while (qrdma_poll_cq(f->cqs[NQP - 1], &wc)) {
        f->rounds++;
    }
    return f->rounds == MCASTS;
}

static void message_prepare(Flood *f, RdmaWrOpcode opcode)
{
    RdmaSge sge = qrdma_sge(f->mr, 0, WINDOW);
    RdmaSendWr wr = {
        .opcode = opcode,
        .num_sge = 1,
        .sg_list = &sge,
        .wr.rdma = { f->mr->iova, f->mr->rkey },
    };

    new_qps(f, RDMA_QPT_RC);
    for (int i = 0; i < NQP; i++) {
        wr.send_flags = 0;
        prepare_sends(f, f->qps[i], &wr, 1);
        wr.send_flags = RDMA_SEND_SIGNALED;
        prepare_sends(f, f->qps[i], &wr, 1);
    }
}

static void write_prepare(Flood *f)
{
    message_prepare(f, RDMA_WR_RDMA_WRITE);
}

static void read_prepare(Flood *f)
{
    message_prepare(f, RDMA_WR_RDMA_READ);
}

static bool all_done(Flood *f)
{
    return have_cqes(f, NQP);
}

/* Full send queues of WRs that do nothing. */
static void doorbell_prepare(Flood *f)
{
    RdmaSendWr wr = { .opcode = RDMA_WR_RDMA_WRITE };

    new_qps(f, RDMA_QPT_RC);
    for (int i = 0; i < NQP; i++) {
        wr.send_flags = 0;
        prepare_sends(f, f->qps[i], &wr, DEPTH - 1);
        wr.send_flags = RDMA_SEND_SIGNALED;
        prepare_sends(f, f->qps[i], &wr, 1);
    }
}

/* Nothing is sent, and each WQE completes with an error. */
static void bad_prepare(Flood *f)
{
    RdmaSendWr wr = { .opcode = 99 };

    new_qps(f, RDMA_QPT_RC);
    for (int i = 0; i < NQP; i++) {
        prepare_sends(f, f->qps[i], &wr, DEPTH);
    }
}

static void flush_prepare(Flood *f)
{
    new_qps(f, RDMA_QPT_RC);
    for (int i = 0; i < NQP; i++) {
        prepare_receives(f, f->qps[i], DEPTH);
    }
}

/* The main loop executes the commands. The iothread flushes the receives. */
static void flush_start(Flood *f)
{
    for (int i = 0; i < NQP; i++) {
        assert_ok(qrdma_modify_qp_state(f->qps[i], RDMA_QPS_ERR));
        qrdma_doorbell(f->d, QRDMA_DIRECT_DOORBELL, f->qps[i]->qpn);
    }
}

/* Set all bits of the shadow repeatedly, while the QPs have no WQEs. */
static void marks_prepare(Flood *f)
{
    new_qps(f, RDMA_QPT_RC);
    f->shadow = qrdma_alloc(f->d, 4096);
    assert_ok(qrdma_set_shadow(f->d, QRDMA_DIRECT_DOORBELL, f->shadow));
}

static void mark_all(Flood *f)
{
    struct virtio_rdma_shadow_page page;

    memset(&page, 0xff, sizeof(page));
    qrdma_write(f->d, f->shadow, &page, sizeof(page));
}

static void marks_start(Flood *f)
{
    uint32_t qpn[] = { f->qps[0]->qpn, f->qps[1]->qpn };

    mark_all(f);
    /* After doorbells in a row, the device polls the shadow by itself. */
    qrdma_doorbell_in_a_row(f->d, QRDMA_DIRECT_DOORBELL, qpn, 8);
}

static bool marks_done(Flood *f)
{
    mark_all(f);
    return ++f->rounds == STORMS;
}

static void reset_start(Flood *f)
{
    QVirtioDevice *vdev = &f->d->pci->vdev;

    ring_at_once(f);
    vdev->bus->set_status(vdev, 0);
}

static const FloodOps floods[] = {
    { "nothing", idle_prepare, idle_start, idle_done },
    { "48 multicasts to 120 QPs", mcast_prepare, first_start, mcast_done },
    { "WRITEs of 2 MiB on 120 QPs", write_prepare, ring_at_once, all_done },
    { "READs of 2 MiB on 120 QPs", read_prepare, ring_at_once, all_done },
    { "120 full send queues at once", doorbell_prepare, ring_at_once,
      all_done },
    { "120 full send queues of bad WRs", bad_prepare, ring_at_once,
      all_done },
    { "120 QPs with 64 receives to ERR", flush_prepare, flush_start,
      all_done },
    { "all QPs marked, 400 times", marks_prepare, marks_start, marks_done },
    { "reset during WRITEs of 2 MiB", write_prepare, reset_start, idle_done },
};

/* The first run of some code loads it. A flood must not measure that. */
static void warm_up(Flood *f)
{
    QRdmaPath path = { .mtu = RDMA_MTU_4096 };
    QRdmaCq *cq = qrdma_create_cq(f->d, 2);
    QRdmaQp *qp = qrdma_create_qp(f->pd, cq, cq, RDMA_QPT_RC);
    RdmaSge sge = qrdma_sge(f->mr, 0, 8192);

    qrdma_connect(qp, qp, &path);
    qrdma_post(qp, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, f->mr, 0));
    qrdma_expect(cq, 1, RDMA_WC_SUCCESS);
    assert_ok(qrdma_destroy_qp(qp));
    assert_ok(qrdma_destroy_cq(cq));
}

static Flood *flood_new(QRdmaHost *host, QRdma *d)
{
    Flood *f = g_new0(Flood, 1);

    f->host = host;
    f->d = d;
    qrdma_start(f->d, FEATURES, 0);
    qrdma_add_event_buffers(f->d, 8);
    qrdma_setup_gids(f->d, 1);
    f->pd = qrdma_alloc_pd(f->d);
    f->mr = qrdma_reg_mr_at(f->pd, 0, WINDOW,
                            RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE,
                            qrdma_alloc(f->d, WINDOW));
    warm_up(f);
    return f;
}

static const FloodBench bench = {
    .path = "/virtio-rdma/flood-iothread/",
    .options = "-object iothread,id=io0 "
               "-device virtio-rdma-pci,netdev=n0,iothread=io0,addr=4",
    .new = flood_new,
    .floods = floods,
    .num_floods = ARRAY_SIZE(floods),
};

int main(int argc, char **argv)
{
    return flood_bench_main(argc, argv, &bench);
}
