/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of SRQs, memory windows, multicast groups and regions of all
 * kinds, and of requests that carry pages.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "migrate-test.h"

#define SRQ_WR 12
#define LARGE_SHIFT 16
#define LARGE_PAGES 9
#define FAST_PAGES 5
#define RECV 65536

static const uint8_t group[RDMA_GID_LEN] = { 0xff, 0x0e, [15] = 9 };

/* Side 1 has all these objects, side 0 uses them. */
typedef struct World {
    Trip *t;
    QRdmaQp *rc[2];                 /* rc[1] receives from the SRQ */
    QRdmaQp *ud[2];                 /* both are in the group */
    QRdmaSrq *srq;
    QRdmaMr *region;                /* that windows are bound to */
    QRdmaMw mw1;
    QRdmaMw mw2;
    QRdmaMr large;
    QRdmaMr *fast;
    uint64_t *fast_pages;
    unsigned posted;                /* receives of the SRQ */
    unsigned sent;
} World;

static void bind_mw(World *w, QRdmaMw *mw, uint64_t offset)
{
    NetEnd *b = &w->t->p.b;
    RdmaSendWr wr = qrdma_wr(RDMA_WR_BIND_MW, 0xb1, NULL);

    wr.wr.bind.rkey = mw->rkey;
    wr.wr.bind.new_rkey = mw->rkey ^ 0x55;
    wr.wr.bind.lkey = w->region->lkey;
    wr.wr.bind.access = RDMA_ACCESS_REMOTE_WRITE;
    wr.wr.bind.addr = w->region->iova + offset;
    wr.wr.bind.length = 1000;
    qrdma_post_expect_wc(b->qp, wr, RDMA_WC_BIND_MW);
    mw->rkey ^= 0x55;
}

/* Large pages, in reverse order, from a table. */
static void make_large(World *w)
{
    QRdmaPd *pd = w->t->p.b.pd;
    QRdma *d = pd->dev;
    const uint64_t size = 1ull << LARGE_SHIFT;
    const uint32_t small = size / RDMA_PAGE_SIZE;
    uint64_t mem = ROUND_UP(qrdma_alloc(d, (LARGE_PAGES + 1) * size), size);
    uint64_t table = qrdma_alloc(d, 4096);
    uint64_t le[LARGE_PAGES];
    struct virtio_rdma_reg_user_mr_req req = {
        .pdn = cpu_to_le32(pd->pdn),
        .access = cpu_to_le32(NET_ACCESS_ALL),
        .start = cpu_to_le64(0x70000000),
        .virt_addr = cpu_to_le64(0x70000000),
        .length = cpu_to_le64(LARGE_PAGES * size),
        .pages = cpu_to_le64(table),
        .npages = cpu_to_le32(LARGE_PAGES),
        .page_shift = cpu_to_le32(LARGE_SHIFT),
        .levels = cpu_to_le32(1),
    };
    struct virtio_rdma_mr_rsp rsp;

    w->large = (QRdmaMr) {
        .pd = pd,
        .iova = 0x70000000,
        .length = LARGE_PAGES * size,
        .pages = qrdma_own(d, LARGE_PAGES * small * 8),
    };
    for (uint32_t i = 0; i < LARGE_PAGES; i++) {
        uint64_t page = mem + (LARGE_PAGES - 1 - i) * size;

        le[i] = cpu_to_le64(page);
        for (uint32_t j = 0; j < small; j++) {
            w->large.pages[i * small + j] = page + j * RDMA_PAGE_SIZE;
        }
    }
    qrdma_write(d, table, le, sizeof(le));
    assert_ok(qrdma_reg_user_mr(d, &req, &rsp));
    w->large.mrn = le32_to_cpu(rsp.mrn);
    w->large.rkey = le32_to_cpu(rsp.rkey);
}

static void post_recv(World *w)
{
    RdmaSge sge = net_sge(&w->t->p.b, RECV, 4096);

    qrdma_srq_recv(w->srq, w->posted++, &sge);
}

static World world_new(void)
{
    World w = { .t = trip_new(NULL) };
    NetPair *p = &w.t->p;
    QRdmaPath path = { .timeout = MIGRATE_TIMEOUT_CODE };
    RdmaQpInitAttr init = {
        .qp_type = RDMA_QPT_RC,
        .has_srq = true,
        .cap = { .max_send_wr = 8, .max_send_sge = 1 },
    };
    RdmaQpInitAttr deaf = {
        .qp_type = RDMA_QPT_UD,
        .block_mcast_loopback = true,
        .cap = { 8, 8, 1, 1, 0 },
    };

    *p = net_pair_new(&w.t->net, RDMA_QPT_RC);
    qrdma_connect(p->a.qp, p->b.qp, &path);

    w.srq = qrdma_create_srq(p->b.pd, SRQ_WR, 2);
    init.srqn = w.srq->srqn;
    w.rc[0] = qrdma_create_qp(p->a.pd, p->a.scq, p->a.rcq, RDMA_QPT_RC);
    w.rc[1] = qrdma_create_qp_attr(p->b.pd, p->b.scq, p->b.rcq, &init);
    qrdma_connect(w.rc[0], w.rc[1], &path);
    while (w.posted < SRQ_WR) {
        post_recv(&w);
    }
    assert_ok(qrdma_modify_srq(w.srq, 3));

    w.region = qrdma_reg_mr(p->b.pd, 0x5000, 8192,
                            NET_ACCESS_ALL | RDMA_ACCESS_MW_BIND);
    assert_ok(qrdma_alloc_mw(p->b.pd, RDMA_MW_TYPE_1, &w.mw1));
    assert_ok(qrdma_alloc_mw(p->b.pd, RDMA_MW_TYPE_2, &w.mw2));
    bind_mw(&w, &w.mw1, 0);
    bind_mw(&w, &w.mw2, 4000);

    for (int i = 0; i < 2; i++) {
        NetEnd *e = i ? &p->b : &p->a;

        w.ud[i] = qrdma_create_qp_attr(e->pd, e->scq, e->rcq, &deaf);
        qrdma_start_ud(w.ud[i], QRDMA_QKEY);
        assert_ok(qrdma_attach_mcast(w.ud[i], group));
    }

    make_large(&w);
    w.fast = qrdma_alloc_mr(p->b.pd, NET_ACCESS_ALL, FAST_PAGES);
    return w;
}

/* Side 0 writes to memory of side 1. */
static void write_to(World *w, QRdmaMr *mr, uint64_t offset, uint32_t rkey,
                     uint32_t len)
{
    NetEnd *a = &w->t->p.a;
    RdmaSge sge = net_sge(a, 0, len);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_RDMA_WRITE, 5, &sge);
    uint8_t seed = ++w->sent;
    RdmaWc wc;

    qrdma_mr_fill(a->mr, 0, len, seed);
    wr.wr.rdma.remote_addr = mr->iova + offset;
    wr.wr.rdma.rkey = rkey;
    qrdma_post_send(a->qp, &wr);
    trip_wait_wc(w->t, a->scq, 5, &wc);
    qrdma_mr_check(mr, offset, len, seed);
}

static void send_message(World *w, unsigned recv)
{
    NetPair *p = &w->t->p;
    RdmaSge sge = net_sge(&p->a, 0, 3000);
    RdmaWc wc;

    qrdma_mr_fill(p->a.mr, 0, 3000, recv);
    qrdma_post(w->rc[0], qrdma_wr(RDMA_WR_SEND, 6, &sge));
    trip_wait_wc(w->t, p->a.scq, 6, &wc);
    trip_wait_wc(w->t, p->b.rcq, recv, &wc);
    g_assert_cmpuint(wc.qp_num, ==, w->rc[1]->qpn);
    qrdma_mr_check(p->b.mr, RECV, 3000, recv);
}

/* Each side sends to the group, and hears the other but not itself. */
static void multicast(World *w)
{
    NetEnd *end[2] = { &w->t->p.a, &w->t->p.b };

    for (int i = 0; i < 2; i++) {
        RdmaSge src = net_sge(end[i], 0, 500);
        RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 7, &src);
        RdmaWc wc;

        for (int j = 0; j < 2; j++) {
            RdmaSge dst = net_sge(end[j], RECV, 1000);

            if (j != i) {
                qrdma_recv(w->ud[j], 8, &dst);
            }
        }
        qrdma_mr_fill(end[i]->mr, 0, 500, ++w->sent);
        wr.wr.ud.remote_qpn = RDMA_QPN_MCAST;
        wr.wr.ud.remote_qkey = QRDMA_QKEY;
        wr.wr.ud.av = qrdma_av(end[i]->dev, 0);
        memcpy(wr.wr.ud.av.dgid, group, sizeof(group));
        memcpy(wr.wr.ud.av.dmac, (uint8_t[]) { 0x33, 0x33, 0, 0, 0, 9 },
               RDMA_MAC_LEN);
        qrdma_post_send(w->ud[i], &wr);
        qrdma_expect(end[i]->scq, 7, RDMA_WC_SUCCESS);
        trip_wait_wc(w->t, end[!i]->rcq, 8, &wc);
        qrdma_mr_check(end[!i]->mr, RECV + 40, 500, w->sent);
        qrdma_expect_none(end[i]->rcq);
    }
}

/*
 * Side 1 posts a READ that its peer, which is stopped, does not answer, and a
 * REG_MR with its list, which a fence makes wait for that. The backend has
 * both.
 */
static void post_register(World *w)
{
    NetPair *p = &w->t->p;
    RdmaSge sge = net_sge(&p->b, 0, 8);
    RdmaSendWr reg = qrdma_wr(RDMA_WR_REG_MR, 21, NULL);
    uint64_t list;

    qrdma_alloc_pages(p->b.dev, FAST_PAGES, &w->fast_pages, &list);
    qtest_qmp_assert_success(p->a.dev->host->qts, "{'execute': 'stop'}");
    qrdma_post(p->b.qp, qrdma_rdma_wr(RDMA_WR_RDMA_READ, 20, &sge, p->a.mr, 0));
    reg.wr.reg.mrn = w->fast->mrn;
    reg.wr.reg.key = w->fast->lkey;
    reg.wr.reg.access = NET_ACCESS_ALL;
    reg.wr.reg.iova = 0x60000100;
    reg.wr.reg.length = FAST_PAGES * 4096 - 0x100;
    reg.wr.reg.npages = FAST_PAGES;
    reg.send_flags |= RDMA_SEND_FENCE;
    qrdma_post_reg_pages(p->b.qp, &reg, list);
    qrdma_expect_none(p->b.scq);
    qtest_memset(p->b.dev->host->qts, list, 0xff, FAST_PAGES * 8);
}

static void check_registered(World *w)
{
    NetPair *p = &w->t->p;
    RdmaWc wc;

    qrdma_expect_none(p->b.scq);
    qtest_qmp_assert_success(p->a.dev->host->qts, "{'execute': 'cont'}");
    trip_wait_wc(w->t, p->b.scq, 20, &wc);
    trip_wait_wc(w->t, p->b.scq, 21, &wc);
    w->fast->iova = 0x60000100;
    w->fast->length = FAST_PAGES * 4096 - 0x100;
    w->fast->pages = w->fast_pages;
}

static void check_all(World *w)
{
    write_to(w, w->region, 0, w->mw1.rkey, 1000);
    write_to(w, w->region, 4000, w->mw2.rkey, 1000);
    write_to(w, &w->large, 3 * 65536 - 1234, w->large.rkey, 65536);
    multicast(w);
}

static void test_objects(void)
{
    World w = world_new();
    NetPair *p = &w.t->p;
    RdmaSrqAttr attr;
    unsigned recv = 0;

    check_all(&w);
    post_register(&w);
    trip_move(w.t, 1, NULL);
    check_registered(&w);
    check_all(&w);
    write_to(&w, w.fast, 0, w.fast->lkey, 16384);
    assert_ok(qrdma_query_srq(w.srq, &attr));
    g_assert_cmpuint(attr.limit, ==, 3);
    g_assert_cmpuint(attr.max_wr, ==, SRQ_WR);
    g_assert_cmpuint(attr.max_sge, ==, 2);
    send_message(&w, recv++);

    trip_move_both(w.t);
    trip_move_by_file(w.t, 1);
    check_all(&w);
    write_to(&w, w.fast, 4000, w.fast->lkey, 16000);
    qrdma_add_event_buffers(p->b.dev, 4);
    while (recv < w.posted) {
        qrdma_expect_no_event(p->b.dev);
        send_message(&w, recv++);
        if (w.posted - recv < 3) {
            break;
        }
    }
    qrdma_expect_event(p->b.dev, RDMA_EVENT_SRQ_LIMIT_REACHED, w.srq->srqn);
    while (recv < w.posted) {
        send_message(&w, recv++);
    }

    /* objects still have their users */
    assert_status(qrdma_destroy_srq(w.srq), BUSY);
    assert_status(qrdma_dereg_mr(w.region), BUSY);
    assert_ok(qrdma_dealloc_mw(&w.mw1));
    assert_status(qrdma_dereg_mr(w.region), BUSY);
    assert_ok(qrdma_dealloc_mw(&w.mw2));
    assert_ok(qrdma_dereg_mr(w.region));
    qrdma_post_expect_wc(p->b.qp, qrdma_invalidate_wr(30, w.fast->lkey),
                         RDMA_WC_LOCAL_INV);
    assert_ok(qrdma_dereg_mr(w.fast));
    assert_ok(qrdma_dereg_mr(&w.large));
    assert_ok(qrdma_detach_mcast(w.ud[1], group));
    assert_ok(qrdma_destroy_qp(w.rc[1]));
    assert_ok(qrdma_destroy_srq(w.srq));
    trip_free(w.t);
}

static void test_spoilt_objects(void)
{
    World w = world_new();
    NetPair *p = &w.t->p;
    const uint32_t pdn = p->b.pd->pdn;
    const uint32_t srqn = w.srq->srqn;
    const uint32_t mwn = w.mw1.mwn;
    /* keys of creation, not of the bind */
    const uint32_t key = w.mw1.rkey ^ 0x55;
    /* of the backend: number of GIDs, and the first one with its index */
    const uint32_t gid[] = { ldl_be_p(p->b.dev->gid[0]),
                             ldl_be_p(p->b.dev->gid[0] + 4) };
    const TripSpoilt cases[] = {
        { "GIDs", { 2, 0, gid[0], gid[1] }, 4, 0, 257,
          "257 GIDs in the migration stream, but gid-table-len is" },
        { "GID index", { 2, 0, gid[0], gid[1] }, 4, 1, 999,
          "index 999 in the migration stream, but gid-table-len is" },
        { "GID", { 2, 0, gid[0], gid[1] }, 4, 2, 0xff020000,
          "is not a unicast GID" },
        { "number", { srqn, pdn, SRQ_WR, 2 }, 4, 0, 64, "SRQ 64 in", 1 },
        { "PD", { srqn, pdn, SRQ_WR, 2 }, 4, 1, 0, "pdn=0,", 1 },
        { "PD", { srqn, pdn, SRQ_WR, 2 }, 4, 1, UINT32_MAX, "has pdn=42", 1 },
        { "depth", { srqn, pdn, SRQ_WR, 2 }, 4, 2, 0, "max_wr=0,", 1 },
        { "depth", { srqn, pdn, SRQ_WR, 2 }, 4, 2, 65537, "max_wr=65537,", 1 },
        { "depth", { srqn, pdn, SRQ_WR, 2 }, 4, 2, UINT32_MAX, "has max_wr=42",
          1 },
        { "SGEs", { srqn, pdn, SRQ_WR, 2 }, 4, 3, 33, "max_sge=33,", 1 },
        { "SGEs", { srqn, pdn, SRQ_WR, 2 }, 4, 3, 3, "is not the device's", 1 },
        /* SGEs and limit of the SRQ, then how many WQEs and SGEs follow */
        { "WQEs", { 2, 3, 0, 0 }, 4, 2, 2,
          "has 2 receive WQEs, and the limit is 1" },
        { "WQEs", { 2, 3, 0, 0 }, 4, 2, UINT32_MAX,
          "has 4294967295 receive WQEs, and the limit is 1" },
        { "their SGEs", { 2, 3, 0, 0 }, 4, 3, 1,
          "has 1 receive SGEs, and the limit is 0" },
        { "number", { mwn, pdn, 1, key }, 4, 0, 0, "MR 0 in" },
        { "number", { mwn, pdn, 1, key }, 4, 0, UINT32_MAX, "MR 42" },
        { "PD", { mwn, pdn, 1, key }, 4, 1, 0, "pdn=0," },
        /* A window becomes a region, whose key is 0. */
        { "type", { mwn, pdn, 1, key }, 4, 2, 0, "has key=0," },
        { "type", { mwn, pdn, 1, key }, 4, 2, 3, "type=3," },
        { "type", { mwn, pdn, 1, key }, 4, 2, 2, "is not the device's" },
        { "key", { mwn, pdn, 1, key }, 4, 3, key ^ 0x100, "has rkey=" },
        /* What the driver accepted, before what the device offers */
        { "unknown feature",
          { p->b.dev->features >> 32, p->b.dev->features, 0 }, 3, 1,
          (uint32_t)p->b.dev->features | 1 << 5,
          "the guest uses a feature (feature bit 5)" },
        trip_without_feature(p->b.dev, VIRTIO_RDMA_F_VERSION_1,
                             "shared receive queues in the migration stream, "
                             "but the driver did not accept version-1"),
    };

    trip_refuse_spoilt(w.t, 1, cases, ARRAY_SIZE(cases));
    trip_free(w.t);
}

/* 16 bytes for each SGE, which VMState takes for a subsection of @name. */
static void subsection_sges(RdmaSge sge[4], const char *name)
{
    char text[64] = "\x05\x28";

    memset(text + 2, '/', 40);
    memcpy(text + 2, name, strlen(name));
    for (int i = 0; i < 4; i++) {
        sge[i] = (RdmaSge) {
            .addr = ldq_be_p(text + 16 * i),
            .length = ldl_be_p(text + 16 * i + 8),
            .lkey = ldl_be_p(text + 16 * i + 12),
        };
    }
}

/* A window is the only object here that needs version 1. */
static void test_spoilt_window_without_version_1(void)
{
    g_autoptr(Trip) t = trip_new(NULL);
    QRdmaMw mw;
    TripSpoilt it;

    t->net.dev[0]->direct = false;
    t->p = net_pair_new(&t->net, RDMA_QPT_RC);
    assert_ok(qrdma_alloc_mw(t->p.a.pd, RDMA_MW_TYPE_1, &mw));
    it = trip_without_feature(t->net.dev[0], VIRTIO_RDMA_F_VERSION_1,
                              "memory windows in the migration stream, but the "
                              "driver did not accept version-1");
    trip_refuse_spoilt(t, 0, &it, 1);
}

/*
 * A guest chooses bytes of its WQEs. It must not make its migration fail with
 * names of subsections in them.
 */
static void test_names_in_wqes(void)
{
    static const char *const names[] = {
        "rdma-roce/send", "rdma-roce/recv", "rdma-roce/sge", "rdma-roce/qp",
    };
    g_autoptr(Trip) t = trip_connected(NULL);
    static const char text[] = "\x05\x0e" "rdma-roce/av//";
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 1, NULL);
    RdmaSge sge[4];
    RdmaWc wc;

    /*
     * This send waits for a receive, and all other requests wait for this send.
     */
    qrdma_post_send(t->p.b.qp, &wr);
    wr = qrdma_wr(RDMA_WR_RDMA_WRITE, ldq_be_p(text), sge);
    wr.wr.rdma.remote_addr = ldq_be_p(text + 8);
    wr.num_sge = 4;
    for (int i = 0; i < ARRAY_SIZE(names); i++) {
        subsection_sges(sge, names[i]);
        qrdma_post_send(t->p.b.qp, &wr);
    }
    for (int i = 0; i < ARRAY_SIZE(names); i++) {
        subsection_sges(sge, names[(i + 1) % ARRAY_SIZE(names)]);
        qrdma_post_recv(t->p.b.qp, &(RdmaRecvWr) {
            .wr_id = ldq_be_p(text), .num_sge = 4, .sg_list = sge,
        });
    }
    trip_move(t, 1, NULL);
    g_assert_cmpint(qrdma_qp_state(t->p.b.qp), ==, RDMA_QPS_RTS);
    qrdma_expect_none(t->p.b.scq);
    net_post_recv(&t->p.a, 2, 0, 8);
    trip_wait_wc(t, t->p.b.scq, 1, &wc);
    /* As lengths the names are more than a message may have. */
    qrdma_expect(t->p.b.scq, ldq_be_p(text), RDMA_WC_LOC_LEN_ERR);
}

const QRdmaTest migrate_objects_tests[] = {
    { "names-in-wqes", test_names_in_wqes },
    { "objects", test_objects },
    { "spoilt-objects", test_spoilt_objects },
    { "spoilt-window-without-version-1",
      test_spoilt_window_without_version_1 },
    {}
};
