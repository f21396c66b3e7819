/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each refusal of a memory region, a window or an SRQ names the field, its
 * value and the limit.
 */
#include "roce-refusal.h"

#define MRN 8
#define IOVA 0x10000800
#define MWN 20
/* A limit of the consumer */
#define MAX_SGE 8

#define MR(field, value) FIELD(IMAGE, 0, RoceMrImage, field, value)
#define MW(field, value) FIELD(IMAGE, 0, RoceMwImage, field, value)
#define SRQ(field, value) FIELD(IMAGE, 0, RoceSrqImage, field, value)

/* Memory regions */

static const Change user[] = {
    MR(attr.type, RDMA_MR_USER), MR(pending, 0), MR(pending_npages, 0),
    { END }
};

static const Change dma[] = {
    MR(attr.type, RDMA_MR_DMA), MR(attr.rkey, 0), MR(attr.npages, 0),
    MR(pending, 0), MR(pending_npages, 0),
    { END }
};

static const Refusal mrs[] = {
    { NULL },
    { NULL, {}, user },
    { NULL, {}, dma },
    { "mrn 0 is not in 1..256", { MR(attr.mrn, 0) } },
    { "mrn 257 is not in 1..256", { MR(attr.mrn, 257) } },
    { "mrn 9 is in use", { MR(attr.mrn, USED_MRN) } },
    { "lkey 0x7ff is one of mrn 7, not of 8", { MR(attr.lkey, 0x7ff) } },
    { "rkey 0x900 is one of mrn 9, not of 8", { MR(attr.rkey, 0x900) } },
    { "invalid boolean 7 in field valid", { MR(valid, 7) } },
    { "invalid boolean 2 in field pending", { MR(pending, 2) } },
    { "page_shift 11 is not in 12..12, the limits of type 2",
      { MR(attr.page_shift, 11) } },
    { "page_shift 13 is not in 12..12, the limits of type 2",
      { MR(attr.page_shift, 13) } },
    { "page_shift 41 is not in 12..40, the limits of type 1",
      { MR(attr.page_shift, 41) }, user },
    { "valid is 0, but a DMA region is always valid", { MR(valid, 0) }, dma },
    { "pending is 1, but a DMA region is never registered",
      { MR(pending, 1) }, dma },
    { "rkey 0x8aa is not 0, but a DMA region has none",
      { MR(attr.rkey, 0x8aa) }, dma },
    { "npages 2 is not 0, but the region has no page list",
      { MR(attr.npages, 2) }, dma },
    { "valid is 0, but a user region is always valid",
      { MR(valid, 0) }, user },
    { "pending is 1, but a user region is never registered",
      { MR(pending, 1) }, user },
    { "npages 5 exceeds max_pages 4", { MR(attr.npages, 5) } },
    { "pending_npages 6 exceeds max_pages 4", { MR(pending_npages, 6) } },
    { "unknown type 3", { MR(attr.type, 3) } },

    { "length is 0", { MR(attr.length, 0) } },
    { "length 256 exceeds 255, the limit from iova 0xffffffffffffff00 on",
      { MR(attr.iova, UINT64_MAX - 255), MR(attr.length, 256) } },
    { "length 18446744073709543424 exceeds 18446744073709543423",
      { MR(attr.iova, 0), MR(attr.length, UINT64_MAX - 8191) } },
    { "npages 3 is not 2, the pages of 4096 bytes that cover length 5000 from "
      "iova 0x10000800", { MR(attr.npages, 3) } },
    { "pages[1] 0x5800 is not a multiple of the page size 4096",
      { PAGE(1, 0x5800) } },
    { "npages 2 is not 0, but the region has no page list",
      { MR(valid, 0) } },
    { "pending_length is 0", { MR(pending_length, 0) } },
    { "pending_length 9000 exceeds 4095, the limit from pending_iova "
      "0xfffffffffffff000 on", { MR(pending_iova, UINT64_MAX - 4095) } },
    { "pending_npages 2 is not 3, the pages of 4096 bytes that cover "
      "pending_length 9000 from pending_iova 0x20000000",
      { MR(pending_npages, 2) } },
    { "pending_pages[2] 0x1 is not a multiple of the page size 4096",
      { PENDING_PAGE(2, 1) } },
    { "pending_npages 3 is not 0, but pending is 0", { MR(pending, 0) } },
};

static void try_mr(const Refusal *r)
{
    uint64_t pages[8] = { 0x1000, 0x5000 };
    uint64_t pending_pages[8] = { 0x7000, 0x9000, 0xb000 };
    RoceMrImage image = {
        .attr = {
            .mrn = MRN,
            .pdn = LINK_PDN,
            .type = RDMA_MR_FAST_REG,
            .lkey = MRN << 8 | 0xaa,
            .rkey = MRN << 8 | 0xaa,
            .iova = IOVA,
            .length = 5000,
            .npages = 2,
            .pages = pages,
            .max_pages = 4,
            .page_shift = RDMA_PAGE_SHIFT,
        },
        .valid = 1,
        .pending = 1,
        .pending_iova = 0x20000000,
        .pending_length = 9000,
        .pending_npages = 3,
        .pending_pages = pending_pages,
    };
    void *const parts[] = {
        [IMAGE] = &image,
        [PAGES] = pages,
        [PENDING_PAGES] = pending_pages,
    };
    RoceEngine *e = refusal_engine();
    char *why;
    int ret;

    refusal_apply(r, parts);
    ret = roce_import_mr(e, &image, &why);
    refusal_check(r, ret, why);
    g_assert_true(roce_has_mr(e, image.attr.mrn) ==
                  (!r->text || image.attr.mrn == USED_MRN));
    roce_free(e);
}

static void test_memory_regions(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(mrs); i++) {
        try_mr(&mrs[i]);
    }
}

/* Memory windows */

static const Change unbound[] = {
    MW(bound, 0), MW(mrn, 0), MW(qpn, 0), MW(access, 0), MW(addr, 0),
    MW(length, 0),
    { END }
};

static const Refusal mws[] = {
    { NULL },
    { NULL, {}, unbound },
    { NULL, { MW(attr.type, RDMA_MW_TYPE_1), MW(qpn, 0) } },
    { "invalid boolean 9 in field bound", { MW(bound, 9) } },
    { "access 0x102 has rights beyond 0x2e, those of a window",
      { MW(access, RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_FLUSH_GLOBAL) } },
    { "mrn 20 is not a memory region", { MW(mrn, MWN) } },
    { "mrn 13 is a region that is not valid", { MW(mrn, INVALID_MRN) } },
    { "mrn 10 is a DMA region, which takes no windows", { MW(mrn, DMA_MRN) } },
    { "MR 12 has access 0x1, without the right to bind windows (0x10)",
      { MW(mrn, NO_BIND_MRN) } },
    { "access 0x2 of the window lets peers write, but MR 11 has access 0x10",
      { MW(mrn, READ_ONLY_MRN) } },
    { "access 0x8 of the window lets peers write, but MR 11 has access 0x10",
      { MW(mrn, READ_ONLY_MRN), MW(access, RDMA_ACCESS_REMOTE_ATOMIC) } },
    { "length of a bound window is 0", { MW(length, 0) } },
    { "addr 0x10100 and length 4097 are not in MR 9 with iova 0x10000 and "
      "length 4096", { MW(length, 4097) } },
    { "addr 0xffff and length 256 are not in MR 9 with iova 0x10000 and "
      "length 4096", { MW(addr, 0xffff) } },
    { "addr 0x10f01 and length 256 are not in MR 9 with iova 0x10000 and "
      "length 4096", { MW(addr, 0x10f01) } },
    { "window bound to MR 14 of PD 99, not of PD 7",
      { MW(mrn, OTHER_PD_MRN), MW(access, RDMA_ACCESS_REMOTE_READ) } },
    { "qpn 40 is not a queue pair", { MW(qpn, 40) } },
    { "qpn 4 is of type UD, which binds no windows", { MW(qpn, UD_QPN) } },
    { "window bound by QP 5 of PD 99, not of PD 7",
      { MW(qpn, OTHER_PD_QPN) } },
    { "qpn 3 is not 0, but the type is 1, not 2",
      { MW(attr.type, RDMA_MW_TYPE_1) } },
    { "mrn 9 is not 0, but the window is not bound",
      { MW(mrn, USED_MRN) }, unbound },
    { "qpn 3 is not 0, but the window is not bound",
      { MW(qpn, PEER_QPN) }, unbound },
    { "access 0x2 is not 0, but the window is not bound",
      { MW(access, 2) }, unbound },
    { "addr 0x10100 is not 0, but the window is not bound",
      { MW(addr, 0x10100) }, unbound },
    { "length 256 is not 0, but the window is not bound",
      { MW(length, 256) }, unbound },
    { "mwn 0 is not in 1..256", { MW(attr.mwn, 0) } },
    { "mwn 257 is not in 1..256", { MW(attr.mwn, 257) } },
    { "rkey 0x1500 is one of mwn 21, not of 20", { MW(attr.rkey, 0x1500) } },
    { "unknown type 0", { MW(attr.type, 0) }, unbound },
    { "unknown type 3", { MW(attr.type, 3) }, unbound },
    { "mwn 9 is in use", { MW(attr.mwn, USED_MRN), MW(attr.rkey, 0x900) } },
};

static void try_mw(const Refusal *r)
{
    RoceMwImage image = {
        .attr = {
            .mwn = MWN,
            .pdn = LINK_PDN,
            .type = RDMA_MW_TYPE_2,
            .rkey = MWN << 8,
        },
        .bound = 1,
        .mrn = USED_MRN,
        .qpn = PEER_QPN,
        .access = RDMA_ACCESS_REMOTE_WRITE,
        .addr = 0x10100,
        .length = 256,
    };
    void *const parts[] = { [IMAGE] = &image };
    RoceEngine *e = refusal_engine();
    char *why;
    int ret;

    refusal_apply(r, parts);
    ret = roce_import_mw(e, &image, &why);
    refusal_check(r, ret, why);
    g_assert_true(roce_has_mw(e, image.attr.mwn) == !r->text);
    roce_free(e);
}

static void test_memory_windows(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(mws); i++) {
        try_mw(&mws[i]);
    }
}

/* Shared receive queues */

static const Change empty[] = {
    SRQ(n_recv, 0), SRQ(n_recv_sges, 0), { END }
};

static const Refusal srqs[] = {
    { NULL },
    { NULL, {}, empty },
    { "max_wr 2097153 exceeds 2097152", { SRQ(attr.max_wr, BIG_WR + 1) } },
    { "max_sge 9 exceeds 8", { SRQ(attr.max_sge, MAX_SGE + 1) } },
    { "n_recv 2 exceeds 1", { SRQ(n_recv, 2) } },
    { "receive request 0: status 22 exceeds 21", { RWQE(0, status, 22) } },
    { "receive request 0: num_sge 3 exceeds 2", { RWQE(0, num_sge, 3) } },
    { "n_recv_sges 3 is not 2, the sum of num_sge", { SRQ(n_recv_sges, 3) } },
    { "srqn 4 is not below 4", { SRQ(attr.srqn, LINK_MAX_SRQ) } },
    { "max_wr is 0", { SRQ(attr.max_wr, 0), SRQ(attr.limit, 0) }, empty },
    { "max_wr 1048577 exceeds 1048576",
      { SRQ(attr.max_wr, ROCE_MAX_WR + 1) } },
    { "limit 5 exceeds max_wr 4", { SRQ(attr.limit, 5) } },
    { "srqn 1 is in use", { SRQ(attr.srqn, SRQN) } },
};

static void try_srq(const Refusal *r)
{
    static const RdmaSrqAttr max = { .max_wr = BIG_WR, .max_sge = MAX_SGE };
    RoceRecvWqe recv = { .num_sge = 2 };
    RdmaSge sges[2] = {};
    RoceSrqImage image = {
        .attr = { .srqn = 2, .max_wr = 4, .max_sge = 2, .limit = 1 },
        .n_recv = 1,
        .n_recv_sges = G_N_ELEMENTS(sges),
        .recv = &recv,
        .recv_sges = sges,
    };
    void *const parts[] = { [IMAGE] = &image, [RECV] = &recv };
    RoceEngine *e = refusal_engine();
    char *why;
    int ret;

    refusal_apply(r, parts);
    ret = roce_import_srq(e, &image, &max, &why);
    refusal_check(r, ret, why);
    g_assert_true(roce_has_srq(e, image.attr.srqn) ==
                  (!r->text || image.attr.srqn == SRQN));
    roce_free(e);
}

static void test_shared_receive_queues(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(srqs); i++) {
        try_srq(&srqs[i]);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/state-check/memory-regions", test_memory_regions);
    g_test_add_func("/roce/state-check/memory-windows", test_memory_windows);
    g_test_add_func("/roce/state-check/shared-receive-queues",
                    test_shared_receive_queues);
    return g_test_run();
}
