/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What QEMU allocates for a direct QP of the greatest depth, when all its WQEs
 * are posted and none is in flight: the WQEs stay in guest memory. Then the
 * sends are executed. "make check" checks that the WQEs wait and go; "make
 * bench BENCH=qp-memory" counts the bytes, with tests/bench/heap-meter.c.
 */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "libqos/virtio-rdma.h"

#define ADDR 4
#define FEATURES (QRDMA_FEATURES | QRDMA_DIRECT_QPS)
#define DEPTH_SHIFT 15
#define DEPTH (1u << DEPTH_SHIFT)
#define SEND_SHIFT 7
#define RECV_SHIFT 5
#define PAGES_OF(slot_shift) (1u << (DEPTH_SHIFT + (slot_shift) - 12))
#define PAGES (1 + PAGES_OF(SEND_SHIFT) + PAGES_OF(RECV_SHIFT))
#define QPS 64
/* The most that a QP with contiguous queues may take */
#define MAX_BYTES 4096

typedef struct Bench {
    QRdmaHost *host;
    QRdma *d;
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaMr *mr;
    bool scattered;
    /* All QPs share it, to save guest memory: the device only reads slots. */
    uint64_t mem;
    uint64_t list;
    QRdmaQp qps[1 + QPS];
} Bench;

/* Bytes of QEMU, in the file that HEAP_METER names; NULL: not counted */
static uint64_t *heap;

static void open_meter(void)
{
    const char *path = g_getenv("HEAP_METER");
    int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;

    if (fd < 0) {
        return;
    }
    g_assert_cmpint(ftruncate(fd, sizeof(*heap)), ==, 0);
    heap = mmap(NULL, sizeof(*heap), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    g_assert(heap != MAP_FAILED);
}

/* The address of page @n of the list */
static uint64_t page_at(const Bench *b, uint32_t n)
{
    return b->mem + (b->scattered ? PAGES - 1 - n : n) * 4096ull;
}

static void write_list(Bench *b)
{
    g_autofree uint64_t *pages = g_new(uint64_t, PAGES);

    b->mem = qrdma_alloc(b->d, PAGES * 4096ull);
    b->list = qrdma_alloc(b->d, PAGES * sizeof(*pages));
    for (uint32_t i = 0; i < PAGES; i++) {
        pages[i] = cpu_to_le64(qrdma_dma(b->d, page_at(b, i)));
    }
    qrdma_write(b->d, b->list, pages, PAGES * sizeof(*pages));
}

/* Write the same WQE to each slot of the pages from @first on. */
static void fill(Bench *b, uint32_t first, unsigned slot_shift,
                 const uint8_t *wqe, size_t len)
{
    uint8_t page[4096] = {};

    g_assert_cmpuint(sizeof(struct virtio_rdma_direct_slot) + len, <=,
                     1u << slot_shift);
    for (uint32_t at = 0; at < sizeof(page); at += 1u << slot_shift) {
        stl_le_p(page + at, len);
        memcpy(page + at + sizeof(struct virtio_rdma_direct_slot), wqe, len);
    }
    for (uint32_t i = 0; i < PAGES_OF(slot_shift); i++) {
        qrdma_write(b->d, page_at(b, first + i), page, sizeof(page));
    }
}

static void write_wqes(Bench *b)
{
    RdmaSge sge = qrdma_sge(b->mr, 0, 64);
    QRdmaQp qp = { .type = RDMA_QPT_RC };
    /* Without completions */
    RdmaSendWr send = {
        .opcode = RDMA_WR_RDMA_WRITE,
        .sg_list = &sge,
        .num_sge = 1,
        .wr.rdma = { .remote_addr = b->mr->iova, .rkey = b->mr->rkey },
    };
    RdmaRecvWr recv = { .sg_list = &sge, .num_sge = 1 };
    uint8_t wqe[QRDMA_WQE_ROOM];
    size_t len = qrdma_encode_send(&qp, &send, wqe);

    fill(b, 1, SEND_SHIFT, wqe, len);
    len = qrdma_encode_recv(&recv, wqe);
    fill(b, 1 + PAGES_OF(SEND_SHIFT), RECV_SHIFT, wqe, len);
}

static void set_producer(Bench *b, size_t at, uint32_t value)
{
    uint32_t le = cpu_to_le32(value);

    qrdma_write(b->d, page_at(b, 0) + at, &le, sizeof(le));
}

/* Sends wait because the QP is in SQD, receives because nothing arrives. */
static void post_all(Bench *b, QRdmaQp *qp)
{
    set_producer(b, offsetof(struct virtio_rdma_direct_page, sq_producer), 0);
    set_producer(b, offsetof(struct virtio_rdma_direct_page, rq_producer),
                 DEPTH);
    qrdma_connect(qp, qp, NULL);
    assert_ok(qrdma_modify_qp_state(qp, RDMA_QPS_SQD));
    set_producer(b, offsetof(struct virtio_rdma_direct_page, sq_producer),
                 DEPTH);
    qrdma_doorbell(b->d, QRDMA_DIRECT_DOORBELL, qp->qpn);
}

/* The number of sends of all QPs that wait in guest memory. All receives do. */
static uint64_t waiting_sends(Bench *b)
{
    g_autoptr(QDict) rsp = qtest_qmp(b->host->qts, "{'execute': 'query-rdma', "
                                     "'arguments': {'objects': ['qp'], "
                                     "'detail': true}}");
    QDict *dev = qobject_to(QDict, qlist_peek(qdict_get_qlist(rsp, "return")));
    const QListEntry *e;
    uint64_t sends = 0;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(dev, "qps"), e) {
        QDict *qp = qobject_to(QDict, qlist_entry_obj(e));

        sends += qdict_get_int(qp, "sends-waiting");
        g_assert_cmpint(qdict_get_int(qp, "recvs-waiting"), ==, DEPTH);
    }
    return sends;
}

static void add_qp(Bench *b, QRdmaQp *qp)
{
    struct virtio_rdma_create_qp_req req = {
        .pdn = cpu_to_le32(b->pd->pdn),
        .qp_type = RDMA_QPT_RC,
        .sq_sig_type = VIRTIO_RDMA_SIGNAL_REQ_WR,
        .send_cqn = cpu_to_le32(b->cq->cqn),
        .recv_cqn = cpu_to_le32(b->cq->cqn),
        .max_send_wr = cpu_to_le32(DEPTH),
        .max_recv_wr = cpu_to_le32(DEPTH),
        .max_send_sge = cpu_to_le32(1),
        .max_recv_sge = cpu_to_le32(1),
        .flags = cpu_to_le32(VIRTIO_RDMA_QP_DIRECT),
        .queue_pages = cpu_to_le64(qrdma_dma(b->d, b->list)),
        .queue_npages = cpu_to_le32(PAGES),
        .sq_depth_shift = DEPTH_SHIFT,
        .sq_slot_shift = SEND_SHIFT,
        .rq_depth_shift = DEPTH_SHIFT,
        .rq_slot_shift = RECV_SHIFT,
        .doorbell = cpu_to_le16(QRDMA_DIRECT_DOORBELL),
    };
    struct virtio_rdma_qpn rsp;

    assert_ok(qrdma_cmd(b->d, VIRTIO_RDMA_CMD_CREATE_QP, &req, sizeof(req),
                        &rsp, sizeof(rsp)));
    *qp = (QRdmaQp) {
        .pd = b->pd,
        .dev = b->d,
        .type = RDMA_QPT_RC,
        .qpn = le32_to_cpu(rsp.qpn),
        .wire_qpn = le32_to_cpu(rsp.qpn),
    };
    post_all(b, qp);
}

/* Other threads of QEMU free memory later. */
static int64_t settled_heap(Bench *b)
{
    uint64_t before, now = 0;

    do {
        before = now;
        g_usleep(heap ? 200 * 1000 : 0);
        qrdma_settle(b->d);
        now = heap ? qatomic_read(heap) : 0;
    } while (now != before);
    return now;
}

static void print(Bench *b, const char *when, int64_t before, int64_t limit)
{
    int64_t bytes = (settled_heap(b) - before) / QPS;

    if (heap) {
        printf("# bytes of a QP in %s pages, %s: %" PRId64 "\n",
               b->scattered ? "scattered" : "contiguous", when, bytes);
        g_assert_cmpint(bytes, >, 0);
        g_assert_cmpint(bytes, <=, limit);
    }
}

static void run(gconstpointer scattered)
{
    Bench b = { .scattered = scattered };
    int64_t before;

    b.host = qrdma_host_start("-netdev hubport,id=n0,hubid=0 "
                              "-device virtio-rdma-pci,netdev=n0,addr=%d",
                              ADDR);
    b.d = qrdma_open(b.host, QPCI_DEVFN(ADDR, 0));
    qrdma_start(b.d, FEATURES, 0);
    qrdma_setup_gids(b.d, 1);
    b.pd = qrdma_alloc_pd(b.d);
    b.cq = qrdma_create_cq(b.d, 16);
    b.mr = qrdma_reg_mr_at(b.pd, 0, 4096,
                           RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE,
                           qrdma_alloc(b.d, 4096));
    write_list(&b);
    write_wqes(&b);
    /* What QEMU allocates for the first one only does not count. */
    add_qp(&b, &b.qps[0]);
    before = settled_heap(&b);
    for (unsigned i = 1; i <= QPS; i++) {
        add_qp(&b, &b.qps[i]);
    }
    print(&b, "all WQEs posted", before,
          MAX_BYTES + (scattered ? 8 * PAGES : 0));
    g_assert_cmpuint(waiting_sends(&b), ==, ARRAY_SIZE(b.qps) * DEPTH);

    for (unsigned i = 0; i < ARRAY_SIZE(b.qps); i++) {
        assert_ok(qrdma_modify_qp_state(&b.qps[i], RDMA_QPS_RTS));
    }
    while (waiting_sends(&b)) {
        qrdma_settle(b.d);
    }
    print(&b, "sends executed", before, INT64_MAX);
    qrdma_host_stop(b.host);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    open_meter();
    qtest_add_data_func("/virtio-rdma/qp-memory/contiguous",
                        GUINT_TO_POINTER(false), run);
    qtest_add_data_func("/virtio-rdma/qp-memory/scattered",
                        GUINT_TO_POINTER(true), run);
    return g_test_run();
}
