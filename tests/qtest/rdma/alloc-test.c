/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: allocations that fail on the host. Each allocation whose size a
 * guest chooses fails once, in each command that has one, and when the device
 * is loaded.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include <glib/gstdio.h>
#include "qobject/qdict.h"
#include "rdma-test.h"
#include "fail-alloc.h"

#define SLOT 5
#define MAX_QP 8
#define MAX_SRQ 3
#define MAX_MR 4
#define REPEAT 2000
#define ENTRIES 512
#define PAGES (ENTRIES + 1)
#define DEVICE "-netdev hubport,id=n0,hubid=0 " \
    "-device virtio-rdma-pci,netdev=n0,addr=%d,max-qp=%d,max-cq=4,max-mr=%d," \
    "max-srq=%d"

typedef struct virtio_rdma_reg_user_mr_req RegReq;
typedef struct virtio_rdma_mr_rsp MrRsp;

typedef struct Fixture {
    QRdmaHost *host;
    QRdma *d;
    TestPair t;
    uint64_t pages;                 /* a list of PAGES pages */
    uint64_t root;                  /* the same as a tree of two levels */
    uint32_t made;                  /* number of the object a try made */
} Fixture;

static Fixture fixture_new(void)
{
    Fixture f = {};
    uint64_t le[PAGES], roots[ENTRIES] = {};

    fail_alloc_begin();
    f.host = qrdma_host_start(DEVICE, SLOT, MAX_QP, MAX_MR, MAX_SRQ);
    f.d = qrdma_open(f.host, QPCI_DEVFN(SLOT, 0));
    qrdma_start(f.d, 0, 0);
    f.t = test_pair_on(f.d, RDMA_QPT_RC, 64, NULL);
    f.pages = qrdma_alloc(f.d, 2 * ENTRIES * 8);
    f.root = qrdma_alloc(f.d, 4096);
    for (int i = 0; i < PAGES; i++) {
        le[i] = cpu_to_le64(i * 4096ull);
    }
    roots[0] = cpu_to_le64(f.pages);
    roots[1] = cpu_to_le64(f.pages + ENTRIES * 8);
    qrdma_write(f.d, f.pages, le, sizeof(le));
    qrdma_write(f.d, f.root, roots, sizeof(roots));
    return f;
}

static void fixture_free(Fixture *f)
{
    qrdma_host_stop(f->host);
    fail_alloc_end();
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, fixture_free)

/* Give a command, and return its status; and undo its effect. */
typedef uint8_t Try(Fixture *f);
typedef void Undo(Fixture *f);

/* A leak of a kilobyte in each round is found in spite of holes in the heap. */
static void check_no_leak(Fixture *f, Try *try, uint32_t count)
{
    G_GNUC_UNUSED uint64_t before = qrdma_private_memory(f->host->qts);

    for (uint32_t i = 0; i < REPEAT; i++) {
        fail_alloc_arm(i % count + 1);
        assert_status(try(f), NOMEM);
        g_assert_true(fail_alloc_disarm());
    }
#ifndef QEMU_SANITIZE_ADDRESS
    /* A sanitizer keeps what is freed, and looks for leaks by itself. */
    g_assert_cmpuint(qrdma_private_memory(f->host->qts), <,
                     before + REPEAT / 2);
#endif
}

/*
 * Let one allocation after the other fail in @try, until none is left. Each
 * time the command must fail with that status and have no effect, so that as
 * many objects as ever can be made. At least @least allocations can fail.
 */
static void fail_each(Fixture *f, Try *try, Undo *undo, uint32_t room,
                      uint32_t least)
{
    for (uint32_t n = 1;; n++) {
        g_autofree uint32_t *made = g_new(uint32_t, room);
        uint8_t status;
        bool failed;

        fail_alloc_arm(n);
        status = try(f);
        failed = fail_alloc_disarm();
        if (!failed) {
            assert_ok(status);
            undo(f);
            g_assert_cmpuint(n, >, least);
            check_no_leak(f, try, n - 1);
            return;
        }
        assert_status(status, NOMEM);
        for (uint32_t i = 0; i < room; i++) {
            assert_ok(try(f));
            made[i] = f->made;
        }
        assert_status(try(f), NOMEM);
        for (uint32_t i = 0; i < room; i++) {
            f->made = made[i];
            undo(f);
        }
    }
}

static uint8_t try_reg(Fixture *f, uint32_t levels)
{
    RegReq req = {
        .pdn = cpu_to_le32(f->t.pd->pdn),
        .access = cpu_to_le32(TEST_ACCESS_ALL),
        .length = cpu_to_le64(PAGES * 4096ull),
        .pages = cpu_to_le64(levels ? f->root : f->pages),
        .npages = cpu_to_le32(PAGES),
        .levels = cpu_to_le32(levels),
    };
    MrRsp rsp = {};
    uint8_t status = qrdma_reg_user_mr(f->d, &req, &rsp);

    f->made = le32_to_cpu(rsp.mrn);
    return status;
}

static uint8_t try_reg_list(Fixture *f)
{
    return try_reg(f, 0);
}

static uint8_t try_reg_tree(Fixture *f)
{
    return try_reg(f, 2);
}

static void undo_mr(Fixture *f)
{
    uint32_t mrn = cpu_to_le32(f->made);

    assert_ok(qrdma_call_void(f->d, DEREG_MR, &mrn));
}

static uint8_t try_srq(Fixture *f)
{
    RdmaSrqAttr attr = { .pdn = f->t.pd->pdn, .max_wr = 32, .max_sge = 2 };

    return qrdma_try_create_srq(f->d, &attr, &f->made);
}

static void undo_srq(Fixture *f)
{
    QRdmaSrq srq = {
        .dev = f->d,
        .srqn = f->made,
        .wq.ring = qrdma_ring(f->d, VIRTIO_RDMA_SRQ_VQ(f->d->max_cq,
                                                       f->d->max_qp,
                                                       f->made)),
    };

    assert_ok(qrdma_destroy_srq(&srq));
}

static uint8_t try_qp(Fixture *f)
{
    RdmaQpInitAttr init = {
        .pdn = f->t.pd->pdn,
        .qp_type = RDMA_QPT_RC,
        .send_cqn = f->t.cq_a->cqn,
        .recv_cqn = f->t.cq_a->cqn,
        .cap = { 32, 32, 2, 2, 64 },
    };

    return qrdma_try_create_qp(f->d, &init, &f->made);
}

static void undo_qp(Fixture *f)
{
    QRdmaQp qp = {
        .dev = f->d,
        .qpn = f->made,
        .sq.ring = qrdma_ring(f->d, VIRTIO_RDMA_SQ_VQ(f->d->max_cq, f->made)),
        .rq.ring = qrdma_ring(f->d, VIRTIO_RDMA_RQ_VQ(f->d->max_cq, f->made)),
    };

    assert_ok(qrdma_destroy_qp(&qp));
}

static void check_works(Fixture *f)
{
    RdmaSge sge = qrdma_sge(f->t.mr_a, 0, 5000);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, f->t.mr_b, 0);

    qrdma_mr_fill(f->t.mr_a, 0, 5000, 3);
    qrdma_post_expect_wc(f->t.a, wr, RDMA_WC_RDMA_WRITE);
    qrdma_mr_check(f->t.mr_b, 0, 5000, 3);
}

static void test_commands(void)
{
    g_auto(Fixture) f = fixture_new();

    /* The fixture has two regions */
    fail_each(&f, try_reg_list, undo_mr, MAX_MR - 2, 1);
    fail_each(&f, try_reg_tree, undo_mr, MAX_MR - 2, 2);
    fail_each(&f, try_srq, undo_srq, MAX_SRQ, 1);
    /* The fixture has two queue pairs; the numbers 0 and 1 are reserved */
    fail_each(&f, try_qp, undo_qp, MAX_QP - 4, 4);
    check_works(&f);
}

/*
 * A work request without memory completes with an error, and its pages are not
 * counted.
 */
static void test_work_request(void)
{
    g_auto(Fixture) f = fixture_new();
    QRdmaMr *mr = qrdma_alloc_mr(f.t.pd, TEST_ACCESS_ALL, 8);
    RdmaSendWr wr = {
        .wr_id = 2,
        .opcode = RDMA_WR_REG_MR,
        .send_flags = RDMA_SEND_SIGNALED,
        .wr.reg = {
            .mrn = mr->mrn,
            .key = mr->lkey,
            .access = TEST_ACCESS_ALL,
            .iova = 0x10000,
            .length = 8 * 4096,
            .npages = 8,
        },
    };

    fail_alloc_arm(1);
    qrdma_post_reg_pages(f.t.a, &wr, f.pages);
    qrdma_expect(f.t.cq_a, 2, RDMA_WC_MW_BIND_ERR);
    g_assert_true(fail_alloc_disarm());
    qrdma_reconnect(f.t.a, f.t.b, NULL);
    qrdma_post_reg_pages(f.t.a, &wr, f.pages);
    qrdma_expect(f.t.cq_a, 2, RDMA_WC_SUCCESS);
    check_works(&f);
}

/* The destination reports that the load failed, and goes on to run. */
static void test_load(void)
{
    g_auto(Fixture) f = fixture_new();
    g_autofree char *path = NULL, *uri = NULL;
    int fd = g_file_open_tmp("virtio-rdma-XXXXXX", &path, NULL);
    bool failed = true;
    uint32_t n;

    g_assert_cmpint(fd, >=, 0);
    close(fd);
    uri = g_strdup_printf("file:%s", path);
    assert_ok(try_srq(&f));
    qtest_qmp_assert_success(f.host->qts, "{'execute': 'migrate', "
                             "'arguments': {'uri': %s}}", uri);
    g_assert_true(qrdma_migration_done(f.host->qts));

    for (n = 1; failed; n++) {
        QTestState *to = qtest_initf("-machine pc -nodefaults -m 64 " DEVICE
                                     " -incoming defer", SLOT, MAX_QP, MAX_MR,
                                     MAX_SRQ);
        bool loaded;

        fail_alloc_arm(n);
        qtest_qmp_assert_success(to, "{'execute': 'migrate-incoming', "
                                 "'arguments': {'uri': %s, "
                                 "'exit-on-error': false}}", uri);
        loaded = qrdma_migration_done(to);
        failed = fail_alloc_disarm();
        g_assert_true(loaded != failed);
        qtest_quit(to);
    }
    /* The SRQ and two queue pairs at least */
    g_assert_cmpuint(n, >, 1 + 2 * 4);
    g_unlink(path);
}

const QRdmaTest alloc_tests[] = {
    { "each-of-a-command", test_commands },
    { "of-a-work-request", test_work_request },
    { "each-of-a-load", test_load },
    {}
};
