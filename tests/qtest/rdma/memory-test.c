/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: memory that a guest can make QEMU allocate. The formulas are
 * those of docs/system/devices/virtio-rdma.rst, "Memory".
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/host-utils.h"
#include "rdma-test.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define SLOT 5

#define MAX_QP 40
#define MAX_CQ 4
#define MAX_CQE 2000
#define MAX_SRQ 3
#define MAX_SRQ_WR 256
#define MAX_MR 400
#define MAX_MW 100
#define MAX_PD 50
#define MAX_SGE 32
#define MAX_INLINE 512
#define MAX_GROUPS 16
/* WQEs that the engine takes of a queue at a time, as many as the guest has */
#define SQ_DEPTH 256
#define RD_ATOMIC 16
#define MR_PAGES 256

/* The formulas */

static uint64_t bound_of_qps(void)
{
    uint64_t sge_list = 16 * MAX_SGE;

    return MAX_QP * (28 * KIB + SQ_DEPTH * (152 + MAX(sge_list, MAX_INLINE)) +
                     sge_list + 72 * RD_ATOMIC);
}

static uint64_t bound_of_cqs(void)
{
    return MAX_CQ * (KIB + 56 * MAX_CQE);
}

static uint64_t bound_of_srqs(void)
{
    return MAX_SRQ * (KIB + 16 * MAX_SGE);
}

static uint64_t bound_of_memory(void)
{
    return (MAX_MR + MAX_MW) * 256 + MAX_PD * 64 + MAX_MR * MR_PAGES * 8;
}

static uint64_t bound_of_groups(void)
{
    return MAX_GROUPS * (256 + 16 * MAX_QP);
}

/* The measurement */

/* A line of /proc/PID/status of the QEMU process, in bytes */
static uint64_t status_of(QRdmaHost *host, const char *name)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/status",
                                            qtest_pid(host->qts));
    g_autofree char *text = NULL;
    const char *line;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    line = strstr(text, name);
    g_assert_nonnull(line);
    return g_ascii_strtoull(line + strlen(name), NULL, 10) * KIB;
}

/* Anonymous memory of the QEMU process. Guest memory is in a file. */
static uint64_t memory_of(QRdmaHost *host)
{
    return status_of(host, "RssAnon:");
}

static RdmaQpInitAttr largest(RdmaQpType type)
{
    return (RdmaQpInitAttr) {
        .qp_type = type,
        .cap = {
            .max_send_wr = SQ_DEPTH,
            .max_recv_wr = SQ_DEPTH,
            .max_send_sge = MAX_SGE,
            .max_recv_sge = MAX_SGE,
            .max_inline_data = MAX_INLINE,
        },
    };
}

/* Fill a QP whose WQEs all stay: its peer is absent, and time stands still. */
static void fill_qp(QRdmaPd *pd, QRdmaCq *cq, RdmaSge *list)
{
    RdmaQpInitAttr init = largest(RDMA_QPT_RC);
    QRdmaQp *qp = qrdma_create_qp_attr(pd, cq, cq, &init);
    RdmaSendWr wr = {
        .opcode = RDMA_WR_SEND, .num_sge = MAX_SGE, .sg_list = list,
    };
    RdmaRecvWr recv_wr = { .num_sge = MAX_SGE, .sg_list = list };
    uint8_t wqe[QRDMA_WQE_ROOM];
    QRdmaQp absent = *qp;
    QRdmaPath path = {
        .mtu = RDMA_MTU_1024, .timeout = 31, .min_rnr_timer = 12,
    };
    size_t len;

    absent.wire_qpn = RDMA_24BIT_MASK - 1;
    assert_ok(qrdma_modify_init(qp, 0));
    assert_ok(qrdma_modify_rtr(qp, &absent, &path, 0));
    assert_ok(qrdma_modify_rts(qp, &path, 0));
    len = qrdma_encode_recv(&recv_wr, wqe);
    for (int i = 0; i < SQ_DEPTH; i++) {
        qrdma_post_raw(qp, &qp->rq, wqe, len, 0, i == SQ_DEPTH - 1);
    }
    len = qrdma_encode_send(qp, &wr, wqe);
    for (int i = 0; i < SQ_DEPTH; i++) {
        qrdma_post_raw(qp, &qp->sq, wqe, len, 0, i == SQ_DEPTH - 1);
    }
}

/* Make as many completions as the CQ is deep, without buffers for them. */
static void fill_cq(QRdmaPd *pd, QRdmaCq *cq)
{
    QRdmaQp *qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);

    cq->no_refill = true;
    qrdma_connect(qp, qp, NULL);
    for (int i = 0; i < MAX_CQE + SQ_DEPTH; i++) {
        qrdma_post(qp, qrdma_wr(RDMA_WR_RDMA_WRITE, 0, NULL));
        if (i % 16 == 15) {
            qrdma_reap_all(qp->dev, &qp->sq);
        }
    }
}

static void fill_groups(QRdmaPd *pd, QRdmaCq *cq)
{
    uint8_t gid[RDMA_GID_LEN] = { 0xff, 0x05 };
    RdmaQpInitAttr init = largest(RDMA_QPT_UD);
    QRdmaQp *qp = qrdma_create_qp_attr(pd, cq, cq, &init);

    for (int i = 0; i < MAX_GROUPS; i++) {
        gid[15] = i;
        assert_ok(qrdma_attach_mcast(qp, gid));
    }
}

static void fill(QRdma *d)
{
    QRdmaPd *pd = qrdma_alloc_pd(d);
    uint64_t pages = qrdma_alloc(d, MR_PAGES * 4096);
    QRdmaCq *cq[MAX_CQ];
    RdmaSge list[MAX_SGE];
    QRdmaMr *mr;

    for (int i = 1; i < MAX_PD; i++) {
        qrdma_alloc_pd(d);
    }
    for (int i = 0; i < MAX_MR; i++) {
        mr = qrdma_reg_mr_at(pd, 0, MR_PAGES * 4096, TEST_ACCESS_ALL, pages);
    }
    for (int i = 0; i < MAX_SGE; i++) {
        list[i] = qrdma_sge(mr, i, 1);
    }
    for (int i = 0; i < MAX_MW; i++) {
        QRdmaMw mw;

        assert_ok(qrdma_alloc_mw(pd, RDMA_MW_TYPE_2, &mw));
    }
    for (int i = 0; i < MAX_SRQ; i++) {
        QRdmaSrq *srq = qrdma_create_srq(pd, MAX_SRQ_WR, MAX_SGE);
        RdmaRecvWr wr = { .num_sge = MAX_SGE, .sg_list = list };

        for (int j = 0; j < MAX_SRQ_WR; j++) {
            qrdma_post_srq_recv(srq, &wr);
        }
    }
    for (int i = 0; i < MAX_CQ; i++) {
        cq[i] = qrdma_create_cq(d, MAX_CQE);
        fill_cq(pd, cq[i]);
    }
    fill_groups(pd, cq[0]);
    for (int i = 2 + MAX_CQ + 1; i < MAX_QP; i++) {
        fill_qp(pd, cq[0], list);
    }
}

static uint8_t try_reg_page(QRdmaPd *pd)
{
    QRdma *d = pd->dev;
    uint64_t list = qrdma_alloc(d, 4096);
    uint64_t page = cpu_to_le64(list);
    struct virtio_rdma_reg_user_mr_req req = {
        .pdn = cpu_to_le32(pd->pdn),
        .length = cpu_to_le64(4096),
        .pages = cpu_to_le64(list),
        .npages = cpu_to_le32(1),
    };
    struct virtio_rdma_mr_rsp rsp;

    qrdma_write(d, list, &page, sizeof(page));
    return qrdma_reg_user_mr(d, &req, &rsp);
}

static void test_guest_fills_all_tables(void)
{
    uint64_t bound = bound_of_qps() + bound_of_cqs() + bound_of_srqs() +
                     bound_of_memory() + bound_of_groups();
    g_autoptr(QRdmaHost) host = qrdma_host_start(
        "-object memory-backend-memfd,id=m0,size=64M "
        "-machine memory-backend=m0 -netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=%d,max-qp=%d,max-cq=%d,"
        "max-cqe=%d,max-srq=%d,max-srq-wr=%d,max-mr=%d,max-mw=%d,max-pd=%d,"
        "max-sge=%d,max-inline=%d,max-mcast-grp=%d", SLOT, MAX_QP, MAX_CQ,
        MAX_CQE, MAX_SRQ, MAX_SRQ_WR, MAX_MR, MAX_MW, MAX_PD, MAX_SGE,
        MAX_INLINE, MAX_GROUPS);
    QRdma *d = qrdma_open(host, QPCI_DEVFN(SLOT, 0));
    uint64_t before, grown;

    qrdma_start(d, 0, SQ_DEPTH);
    qrdma_setup_gids(d, 1);
    before = memory_of(host);
    fill(d);
    qrdma_settle(d);
    grown = memory_of(host) - before;
    g_test_message("grown by %" PRIu64 " KiB; computed: %" PRIu64 " KiB, of "
                   "QPs %" PRIu64 ", CQs %" PRIu64 ", SRQs %" PRIu64 ", "
                   "memory %" PRIu64 ", groups %" PRIu64, grown / KIB,
                   bound / KIB, bound_of_qps() / KIB, bound_of_cqs() / KIB,
                   bound_of_srqs() / KIB, bound_of_memory() / KIB,
                   bound_of_groups() / KIB);
    /* Free memory of the allocator, and memory for other parts of QEMU */
    g_assert_cmpuint(grown, <, bound + MIB);
    /* The bound is not far above the memory that is really used */
    g_assert_cmpuint(grown, >, bound / 4);
}

/* Lists count together, and count no more when their region is gone. */
static void test_page_lists_of_all_regions(void)
{
    QRdma *d = test_own_device("max-qp=8,max-cq=4,max-mr-pages=300");
    QRdmaPd *pd;
    QRdmaMr *mr;

    qrdma_start(d, 0, 0);
    pd = qrdma_alloc_pd(d);
    mr = qrdma_reg_mr(pd, 0, 200 * 4096, TEST_ACCESS_ALL);
    qrdma_reg_mr(pd, 0, 100 * 4096, TEST_ACCESS_ALL);
    assert_status(try_reg_page(pd), NOMEM);
    assert_ok(qrdma_dereg_mr(mr));
    assert_ok(try_reg_page(pd));
    qrdma_host_stop(d->host);
}

/* Regions that come and go */

#define GONE_PAGES (1u << 18)       /* that a tree of two levels has */
#define GONE_MRS 8                  /* all numbers */
#define GONE_ROUNDS 32              /* with one kick each */
#define COMMAND_SIZE 128

static void put_command(QRdma *d, uint64_t reqs, uint64_t rsp, uint16_t i,
                        uint8_t cmd, const void *req, size_t len)
{
    QRdmaRing *r = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);
    uint64_t at = reqs + i * COMMAND_SIZE;
    uint8_t bytes[COMMAND_SIZE] = { cmd };

    memcpy(bytes + 1, req, len);
    qrdma_write(d, at, bytes, 1 + len);
    qrdma_ring_set_desc(r, 2 * i, at, 1 + len, VRING_DESC_F_NEXT, 2 * i + 1);
    qrdma_ring_set_desc(r, 2 * i + 1, rsp, 256, VRING_DESC_F_WRITE, 0);
}

/* A tree whose entries all lead to the same page */
static uint64_t tree_new(QRdma *d)
{
    uint64_t leaf = qrdma_alloc(d, 4096), root = qrdma_alloc(d, 4096);
    uint64_t le[512];

    for (int i = 0; i < ARRAY_SIZE(le); i++) {
        le[i] = cpu_to_le64(leaf);
    }
    qrdma_write(d, leaf, le, sizeof(le));
    qrdma_write(d, root, le, sizeof(le));
    return root;
}

/* QEMU soon frees the page lists of destroyed regions. */
static void test_regions_that_come_and_go(void)
{
    const uint64_t bound = GONE_PAGES * 8;
    g_autoptr(QRdmaHost) host = qrdma_host_start(
        "-object memory-backend-memfd,id=m0,size=64M "
        "-machine memory-backend=m0 -netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=%d,max-mr=%d,max-mw=0,"
        "max-qp=8,max-cq=4", SLOT, GONE_MRS);
    QRdma *d = qrdma_open(host, QPCI_DEVFN(SLOT, 0));
    struct virtio_rdma_reg_user_mr_req req;
    uint64_t reqs, rsp, before, most = 0;
    struct virtio_rdma_mr_rsp made;
    uint32_t first;
    QRdmaPd *pd;
    QRdmaRing *r;

    qrdma_start(d, 0, 0);
    pd = qrdma_alloc_pd(d);
    r = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);
    reqs = qrdma_alloc(d, 2 * GONE_MRS * COMMAND_SIZE);
    rsp = qrdma_alloc(d, 4096);
    req = (struct virtio_rdma_reg_user_mr_req) {
        .pdn = cpu_to_le32(pd->pdn),
        .length = cpu_to_le64(GONE_PAGES * 4096ull),
        .pages = cpu_to_le64(tree_new(d)),
        .npages = cpu_to_le32(GONE_PAGES),
        .levels = cpu_to_le32(2),
    };
    assert_ok(qrdma_reg_user_mr(d, &req, &made));
    assert_ok(qrdma_cmd(d, VIRTIO_RDMA_CMD_DEREG_MR, &made.mrn,
                        sizeof(made.mrn), NULL, 0));
    first = le32_to_cpu(made.mrn);
    for (uint32_t i = 0; i < GONE_MRS; i++) {
        /* Numbers go round, from 1 on. */
        uint32_t gone = cpu_to_le32((first + i) % GONE_MRS + 1);

        put_command(d, reqs, rsp, 2 * i, VIRTIO_RDMA_CMD_REG_USER_MR, &req,
                    sizeof(req));
        put_command(d, reqs, rsp, 2 * i + 1, VIRTIO_RDMA_CMD_DEREG_MR, &gone,
                    sizeof(gone));
    }
    before = memory_of(host) + status_of(host, "VmPTE:");
    for (int round = 0; round < GONE_ROUNDS; round++) {
        for (uint32_t i = 0; i < 2 * GONE_MRS; i++) {
            qrdma_ring_set_avail(r, r->avail_idx + i, 2 * i);
        }
        r->avail_idx += 2 * GONE_MRS;
        qrdma_ring_set_avail_idx(r, r->avail_idx);
        qrdma_ring_kick(r);
        qrdma_wait_until(d, qrdma_ring_used_idx(r) == r->avail_idx);
        g_assert_cmpuint(qtest_readb(host->qts, rsp), ==, VIRTIO_RDMA_S_OK);
        most = MAX(most, memory_of(host) + status_of(host, "VmPTE:"));
    }
    g_test_message("%d lists of %" PRIu64 " KiB: QEMU has had %" PRIu64
                   " KiB more", GONE_ROUNDS * GONE_MRS, bound / KIB,
                   (most - before) / KIB);
    /* Up to 16 MiB wait to be freed, plus one list. */
    g_assert_cmpuint(most, <, before + 16 * MIB + 3 * bound);
}

/* The sanitizer's allocator keeps freed memory, and adds to each piece. */
void __asan_init(void) __attribute__((weak));

void add_memory_tests(void)
{
    qtest_add_func("virtio-rdma/memory/page-lists-of-all-regions",
                   test_page_lists_of_all_regions);
    if (!__asan_init) {
        qtest_add_func("virtio-rdma/memory/guest-fills-all-tables",
                       test_guest_fills_all_tables);
        qtest_add_func("virtio-rdma/memory/regions-that-come-and-go",
                       test_regions_that_come_and_go);
    }
}
