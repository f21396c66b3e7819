/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: malformed packed rings and buffers.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "rdma-test.h"
#include "standard-headers/linux/virtio_pci.h"
#include "standard-headers/linux/virtio_ring.h"

#define SLOT 5
#define SIZE 64
#define FEATURES (QRDMA_FEATURES | QRDMA_F(VIRTIO_F_RING_PACKED))

typedef struct Fixture {
    QRdmaHost *host;
    QRdma *d;
    QRdmaPd *pd;
    QRdmaQp *qp;
} Fixture;

/* Sends stay in flight, because the peer is absent and time stands still. */
static void start_qp(Fixture *f)
{
    QRdmaPath path = { .mtu = RDMA_MTU_1024 };
    QRdmaQp absent = *f->qp;

    absent.wire_qpn = RDMA_24BIT_MASK - 1;
    qrdma_modify_init(f->qp, 0);
    qrdma_modify_rtr(f->qp, &absent, &path, 0);
    qrdma_modify_rts(f->qp, &path, 0);
}

static Fixture fixture_new(const char *props, uint64_t features)
{
    Fixture f = {};
    QRdmaCq *cq;

    f.host = qrdma_host_start(
        "-netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,id=d0,netdev=n0,addr=%d,max-qp=8,max-cq=4,"
        "packed=on%s", SLOT, props);
    f.d = qrdma_open(f.host, QPCI_DEVFN(SLOT, 0));
    qrdma_start(f.d, FEATURES | features, SIZE);
    f.pd = qrdma_alloc_pd(f.d);
    cq = qrdma_create_cq(f.d, 20);
    f.qp = qrdma_create_qp(f.pd, cq, cq, RDMA_QPT_RC);
    qrdma_setup_gids(f.d, 1);
    start_qp(&f);
    return f;
}

/* Expect that the device needs a reset, and works after it. */
static void fixture_free_broken(Fixture *f)
{
    uint32_t pdn;

    qrdma_wait_until(f->d, qrdma_needs_reset(f->d));
    qrdma_start(f->d, FEATURES, SIZE);
    assert_ok(qrdma_try_alloc_pd(f->d, &pdn));
    qrdma_host_stop(f->host);
}

/* Post a send of @n descriptors from position @at on, over any others there. */
static void post_chain(Fixture *f, uint16_t at, uint16_t n, uint16_t id,
                       bool odd_lap)
{
    QRdmaWq *sq = &f->qp->sq;

    for (int i = n - 1; i >= 0; i--) {
        bool odd = odd_lap ^ (at + i >= SIZE);
        struct vring_packed_desc desc = {
            .addr = cpu_to_le64(sq->buf),
            .len = cpu_to_le32(64),
            .id = cpu_to_le16(id),
            .flags = cpu_to_le16((i + 1 < n ? VRING_DESC_F_NEXT : 0) |
                                 1u << (odd ? VRING_PACKED_DESC_F_USED
                                            : VRING_PACKED_DESC_F_AVAIL)),
        };

        qrdma_write(f->d, sq->ring->pci.vq.desc +
                    (at + i) % SIZE * sizeof(desc), &desc, sizeof(desc));
    }
    qrdma_ring_kick(sq->ring);
    qrdma_settle(f->d);
}

/* Return all sends, with any status. */
static void return_all(Fixture *f)
{
    qrdma_modify_qp_state(f->qp, RDMA_QPS_RESET);
    start_qp(f);
}

/*
 * Two chains that together have more descriptors than the ring. Returned at
 * once, they must not lead out of the ring. The second time the device would
 * write there.
 */
static void check_longer_than_the_ring(const char *props, uint64_t features)
{
    Fixture f = fixture_new(props, features);

    post_chain(&f, 0, 10, 0, false);
    return_all(&f);
    for (int at = 10; at > 8; at--) {
        post_chain(&f, at, SIZE - 1, 1, false);
        post_chain(&f, at - 1, SIZE, 2, true);
        if (qrdma_needs_reset(f.d)) {
            break;
        }
        return_all(&f);
    }
    fixture_free_broken(&f);
}

static void test_chains_longer_than_the_ring(void)
{
    check_longer_than_the_ring("", 0);
    check_longer_than_the_ring(",in_order=on", QRDMA_F(VIRTIO_F_IN_ORDER));
}

static void test_id_out_of_range(void)
{
    Fixture f = fixture_new("", 0);

    post_chain(&f, 0, 1, SIZE, false);
    fixture_free_broken(&f);
}

static void write_queue_size(Fixture *f, const QRdmaRing *ring, uint16_t size)
{
    QVirtioPCIDevice *pci = f->d->pci;
    uint64_t common = pci->common_cfg_offset;

    qpci_io_writew(pci->pdev, pci->bar,
                   common + offsetof(struct virtio_pci_common_cfg,
                                     queue_select), ring->pci.vq.index);
    qpci_io_writew(pci->pdev, pci->bar,
                   common + offsetof(struct virtio_pci_common_cfg,
                                     queue_size), size);
}

/*
 * The ring of a virtqueue in use cannot be made smaller than its used index, or
 * the next element would lie after the end of the ring.
 */
static void test_size_of_an_enabled_queue(void)
{
    Fixture f = fixture_new("", 0);

    for (int i = 0; i < 10; i++) {
        post_chain(&f, i, 1, i, false);
    }
    return_all(&f);
    write_queue_size(&f, f.qp->sq.ring, 2);
    post_chain(&f, 10, 1, 0, false);
    return_all(&f);
    g_assert_false(qrdma_needs_reset(f.d));
    qrdma_host_stop(f.host);
}

/* The device counts the WQEs of an SRQ as with split rings. */
static void test_limit_of_an_srq(void)
{
    Fixture f = fixture_new(",max-srq=2", 0);
    QRdmaSrq *srq;

    qrdma_add_event_buffers(f.d, 8);
    srq = qrdma_create_srq(f.pd, 8, 1);
    for (int i = 0; i < 8; i++) {
        qrdma_srq_recv(srq, i, NULL);
    }
    qrdma_settle(f.d);
    assert_ok(qrdma_modify_srq(srq, 4));
    qrdma_expect_no_event(f.d);
    qrdma_host_stop(f.host);
}

/* Flush a send of a new QP to @cq, which fails by that, or its event queue. */
static void fail_cq(Fixture *f, QRdmaCq *cq, uint32_t failed)
{
    f->qp = qrdma_create_qp(f->pd, cq, cq, RDMA_QPT_RC);
    start_qp(f);
    qrdma_add_event_buffers(f->d, 4);
    qrdma_post_send(f->qp, &(RdmaSendWr) { .opcode = RDMA_WR_SEND });
    assert_ok(qrdma_modify_qp_state(f->qp, RDMA_QPS_ERR));
    qrdma_expect_event(f->d, RDMA_EVENT_CQ_ERR, failed);
}

/* A buffer of two descriptors was put back: the device is where it was. */
static void expect_at_the_first(Fixture *f, uint32_t vq)
{
    g_autoptr(QDict) rsp = qtest_qmp(
        f->host->qts, "{'execute': 'x-query-virtio-queue-status', 'arguments': "
        "{'path': '/machine/peripheral/d0/virtio-backend', 'queue': %u}}", vq);

    g_assert_cmpint(qdict_get_int(qdict_get_qdict(rsp, "return"),
                                  "last-avail-idx"), ==, 0);
}

static void test_short_buffer_of_a_cq(void)
{
    Fixture f = fixture_new("", 0);
    QRdmaDesc part = { qrdma_alloc(f.d, 64), 20, true };
    QRdmaCq cq = { .dev = f.d, .cqe = 4, .no_refill = true };

    assert_ok(qrdma_try_create_cq(f.d, cq.cqe, &cq.cqn));
    cq.ring = qrdma_ring(f.d, VIRTIO_RDMA_CQ_VQ(cq.cqn));
    qrdma_ring_add(cq.ring, (QRdmaDesc[]) { part, part }, 2);
    fail_cq(&f, &cq, cq.cqn);
    expect_at_the_first(&f, VIRTIO_RDMA_CQ_VQ(cq.cqn));
    qrdma_host_stop(f.host);
}

static void test_short_buffer_of_an_event_queue(void)
{
    Fixture f = fixture_new(",direct=on", QRDMA_F(VIRTIO_RDMA_F_DIRECT));
    QRdmaEq *eq = qrdma_create_eq(f.d, 0);
    QRdmaDesc part = { eq->buf, 1, true };
    QRdmaCq *cq = qrdma_create_direct_cq(f.d, 4, eq);

    qrdma_ring_add(eq->ring, (QRdmaDesc[]) { part, part }, 2);
    qrdma_arm_direct_cq(cq, VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION);
    fail_cq(&f, cq, eq->eqn);
    expect_at_the_first(&f, VIRTIO_RDMA_CQ_VQ(eq->eqn));
    qrdma_host_stop(f.host);
}

const QRdmaTest packed_tests[] = {
    { "limit-of-an-srq", test_limit_of_an_srq },
    { "size-of-an-enabled-queue", test_size_of_an_enabled_queue },
    { "chains-longer-than-the-ring", test_chains_longer_than_the_ring },
    { "id-out-of-range", test_id_out_of_range },
    { "short-buffer-of-a-cq", test_short_buffer_of_a_cq },
    { "short-buffer-of-an-event-queue", test_short_buffer_of_an_event_queue },
    {}
};
