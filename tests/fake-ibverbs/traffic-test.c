/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The double of libibverbs moves data like a device. */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "self-test.h"

static void test_pingpong(void)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr;
    g_auto(End) a, b;

    pair_new(&a, &b, IBV_QPT_RC);
    g_assert_cmpint(ibv_req_notify_cq(a.cq, 0), ==, 0);
    g_assert_cmpint(ibv_req_notify_cq(b.cq, 0), ==, 0);
    for (int i = 0; i < 100; i++) {
        End *from = i % 2 ? &b : &a;
        End *to = i % 2 ? &a : &b;

        memset(from->buf, i + 1, 4096);
        g_assert_cmpint(recv_at(to, i, 8192, 4096), ==, 0);
        sge = sge_at(from, 0, 4096);
        wr = wr_of(IBV_WR_SEND, 1000 + i, &sge);
        g_assert_false(readable(to->channel->fd));
        g_assert_cmpint(send_wr(from, &wr), ==, 0);
        take_cq_event(from);
        expect_wc(from, 1000 + i, IBV_WC_SUCCESS);
        take_cq_event(to);
        expect_wc(to, i, IBV_WC_SUCCESS);
        g_assert_cmpmem(to->buf + 8192, 4096, from->buf, 4096);
    }
}

static void test_send_waits_for_recv(void)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr;
    g_auto(End) a, b;

    pair_new(&a, &b, IBV_QPT_RC);
    strcpy((char *)a.buf, "late");
    sge = sge_at(&a, 0, 5);
    wr = wr_of(IBV_WR_SEND_WITH_IMM, 1, &sge);
    wr.imm_data = htobe32(77);
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    expect_nothing(&a);
    g_assert_cmpint(recv_at(&b, 2, 64, 100), ==, 0);
    expect_wc(&a, 1, IBV_WC_SUCCESS);
    {
        struct ibv_wc wc = next_wc(&b);

        g_assert_cmpint(wc.byte_len, ==, 5);
        g_assert_cmpint(wc.wc_flags, ==, IBV_WC_WITH_IMM);
        g_assert_cmpint(be32toh(wc.imm_data), ==, 77);
    }
    g_assert_cmpstr((char *)b.buf + 64, ==, "late");
}

static void test_rdma(void)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr;
    uint64_t word = 40;
    g_auto(End) a, b;

    pair_new(&a, &b, IBV_QPT_RC);
    strcpy((char *)a.buf, "written");
    sge = sge_at(&a, 0, 8);
    wr = wr_of(IBV_WR_RDMA_WRITE, 1, &sge);
    wr.wr.rdma.remote_addr = (uintptr_t)b.buf + 100;
    wr.wr.rdma.rkey = b.mr->rkey;
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    expect_wc(&a, 1, IBV_WC_SUCCESS);
    g_assert_cmpstr((char *)b.buf + 100, ==, "written");

    sge = sge_at(&a, 200, 8);
    wr.sg_list = &sge;
    wr.opcode = IBV_WR_RDMA_READ;
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    expect_wc(&a, 1, IBV_WC_SUCCESS);
    g_assert_cmpstr((char *)a.buf + 200, ==, "written");

    memcpy(b.buf, &word, 8);
    wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic.remote_addr = (uintptr_t)b.buf;
    wr.wr.atomic.compare_add = 2;
    wr.wr.atomic.rkey = b.mr->rkey;
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    expect_wc(&a, 1, IBV_WC_SUCCESS);
    memcpy(&word, a.buf + 200, 8);
    g_assert_cmpint(word, ==, 40);
    memcpy(&word, b.buf, 8);
    g_assert_cmpint(word, ==, 42);

    /* a wrong key ends both */
    wr.opcode = IBV_WR_RDMA_READ;
    wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
    wr.wr.rdma.rkey = b.mr->lkey;
    g_assert_cmpint(recv_at(&b, 9, 0, 10), ==, 0);
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    expect_wc(&a, 1, IBV_WC_REM_ACCESS_ERR);
    expect_wc(&b, 9, IBV_WC_WR_FLUSH_ERR);
    g_assert_true(readable(b.ctx->async_fd));
}

static void test_windows(void)
{
    struct ibv_mw_bind bind = { .wr_id = 5, .send_flags = IBV_SEND_SIGNALED };
    struct ibv_sge sge;
    struct ibv_send_wr wr;
    struct ibv_mw *mw;
    uint32_t old;
    g_auto(End) a, b;

    pair_new(&a, &b, IBV_QPT_RC);
    mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
    g_assert_nonnull(mw);
    old = mw->rkey;
    bind.bind_info = (struct ibv_mw_bind_info) {
        b.mr, (uintptr_t)b.buf + 16, 16, IBV_ACCESS_REMOTE_WRITE
    };
    g_assert_cmpint(ibv_bind_mw(b.qp, mw, &bind), ==, 0);
    expect_wc(&b, 5, IBV_WC_SUCCESS);
    g_assert_cmpint(mw->rkey, !=, old);
    g_assert_cmpint(ibv_dereg_mr(b.mr), ==, EBUSY);

    sge = sge_at(&a, 0, 16);
    memset(a.buf, 7, 16);
    wr = wr_of(IBV_WR_RDMA_WRITE, 1, &sge);
    wr.wr.rdma.remote_addr = (uintptr_t)b.buf + 16;
    wr.wr.rdma.rkey = mw->rkey;
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    expect_wc(&a, 1, IBV_WC_SUCCESS);
    g_assert_cmpmem(b.buf + 16, 16, a.buf, 16);
    wr.wr.rdma.remote_addr++;
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    expect_wc(&a, 1, IBV_WC_REM_ACCESS_ERR);
    g_assert_cmpint(ibv_dealloc_mw(mw), ==, 0);
}

/* Registered memory stays, though its mapping has gone. */
static void test_pinned(void)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    struct ibv_sge sge;
    struct ibv_send_wr wr;
    struct ibv_mr *mr;
    char *range, word[8];
    g_auto(End) a, b;

    pair_new(&a, &b, IBV_QPT_RC);
    g_assert_cmpint(ftruncate(fd, 4 * 4096), ==, 0);
    range = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    g_assert_true(mmap(range, 4096, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, fd, 3 * 4096) == range);
    g_assert_null(ibv_reg_mr_iova2(b.pd, range, 8192, 0x10000,
                                   IBV_ACCESS_REMOTE_READ));
    g_assert_cmpint(errno, ==, EFAULT);
    g_assert_true(mmap(range + 4096, 4096, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, fd, 4096) == range + 4096);
    mr = ibv_reg_mr_iova2(b.pd, range, 8192, 0x10000,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    g_assert_nonnull(mr);
    munmap(range, 8192);

    strcpy((char *)a.buf, "onetwo!");
    sge = sge_at(&a, 0, 6);
    wr = wr_of(IBV_WR_RDMA_WRITE, 1, &sge);
    wr.wr.rdma.remote_addr = 0x10000 + 4096 - 3;
    wr.wr.rdma.rkey = mr->rkey;
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    expect_wc(&a, 1, IBV_WC_SUCCESS);
    g_assert_cmpint(pread(fd, word, 3, 4 * 4096 - 3), ==, 3);
    g_assert_cmpmem(word, 3, "one", 3);
    g_assert_cmpint(pread(fd, word, 3, 4096), ==, 3);
    g_assert_cmpmem(word, 3, "two", 3);
    g_assert_cmpint(ibv_dereg_mr(mr), ==, 0);
    close(fd);
}

static void test_memlock(void)
{
    g_auto(End) e = end_new(IBV_QPT_RC);
    void *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    fake_verbs_tell(fake, "memlock 4096");
    g_assert_null(ibv_reg_mr(e.pd, shared, 8192, 0));
    g_assert_cmpint(errno, ==, ENOMEM);
    fake_verbs_tell(fake, "memlock 0x100000000");
    munmap(shared, 8192);
}

static void test_datagrams(void)
{
    union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 9 } };
    struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
    struct ibv_sge sge;
    struct ibv_send_wr wr;
    struct ibv_wc wc;
    struct ibv_ah *ah;
    g_auto(End) a, b;

    pair_new(&a, &b, IBV_QPT_UD);
    ibv_query_gid(a.ctx, 1, 0, &attr.grh.dgid);
    ah = ibv_create_ah(a.pd, &attr);
    g_assert_nonnull(ah);
    memset(a.buf, 3, 100);
    g_assert_cmpint(recv_at(&b, 2, 1000, 140), ==, 0);
    sge = sge_at(&a, 0, 100);
    wr = wr_of(IBV_WR_SEND, 1, &sge);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = b.qp->qp_num;
    wr.wr.ud.remote_qkey = 0x1234;
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    expect_wc(&a, 1, IBV_WC_SUCCESS);
    wc = next_wc(&b);
    g_assert_cmpint(wc.byte_len, ==, 140);
    g_assert_cmpint(wc.src_qp, ==, a.qp->qp_num);
    g_assert_cmpint(wc.wc_flags, ==, IBV_WC_GRH);
    g_assert_cmpmem(b.buf + 1040, 100, a.buf, 100);
    g_assert_cmpint(ibv_destroy_ah(ah), ==, 0);

    g_assert_cmpint(ibv_attach_mcast(b.qp, &group, 0), ==, 0);
    g_assert_cmpint(ibv_destroy_qp(b.qp), ==, EBUSY);
    attr.grh.dgid = group;
    ah = ibv_create_ah(a.pd, &attr);
    g_assert_cmpint(recv_at(&b, 3, 0, 140), ==, 0);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = 0xffffff;
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    expect_wc(&a, 1, IBV_WC_SUCCESS);
    expect_wc(&b, 3, IBV_WC_SUCCESS);
    g_assert_cmpint(ibv_detach_mcast(b.qp, &group, 0), ==, 0);
    g_assert_cmpint(ibv_detach_mcast(b.qp, &group, 0), ==, EINVAL);
    g_assert_cmpint(ibv_destroy_ah(ah), ==, 0);
}

static void test_srq(void)
{
    struct ibv_srq_init_attr init = { .attr = { DEPTH, 1, 0 } };
    struct ibv_srq_attr attr = { .srq_limit = 2 };
    struct ibv_async_event event;
    struct ibv_recv_wr recv = {}, *bad;
    struct ibv_send_wr wr;
    struct ibv_srq *srq;
    g_auto(End) a, b;

    a = end_new(IBV_QPT_RC);
    b = end_new(IBV_QPT_RC);
    g_assert_cmpint(ibv_destroy_qp(b.qp), ==, 0);
    srq = ibv_create_srq(b.pd, &init);
    b.qp = new_qp(&b, IBV_QPT_RC, srq);
    bring_up(a.qp, b.qp->qp_num);
    bring_up(b.qp, a.qp->qp_num);
    g_assert_cmpint(recv_at(&b, 1, 0, 0), ==, EINVAL);
    for (recv.wr_id = 0; recv.wr_id < DEPTH; recv.wr_id++) {
        g_assert_cmpint(ibv_post_srq_recv(srq, &recv, &bad), ==, 0);
    }
    g_assert_cmpint(ibv_post_srq_recv(srq, &recv, &bad), ==, ENOMEM);
    g_assert_cmpint(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), ==, 0);
    for (int i = 0; i < DEPTH - 1; i++) {
        g_assert_false(readable(b.ctx->async_fd));
        wr = wr_of(IBV_WR_SEND, i, NULL);
        g_assert_cmpint(send_wr(&a, &wr), ==, 0);
        expect_wc(&b, i, IBV_WC_SUCCESS);
        expect_wc(&a, i, IBV_WC_SUCCESS);
    }
    event = next_event(b.ctx, IBV_EVENT_SRQ_LIMIT_REACHED);
    g_assert_true(event.element.srq == srq);
    ibv_ack_async_event(&event);
    g_assert_cmpint(ibv_query_srq(srq, &attr), ==, 0);
    g_assert_cmpint(attr.srq_limit, ==, 0);
    /* there is one left */
    attr.srq_limit = 2;
    g_assert_cmpint(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), ==, 0);
    event = next_event(b.ctx, IBV_EVENT_SRQ_LIMIT_REACHED);
    ibv_ack_async_event(&event);

    g_assert_cmpint(ibv_destroy_srq(srq), ==, EBUSY);
    g_assert_cmpint(to_state(b.qp, IBV_QPS_ERR), ==, 0);
    event = next_event(b.ctx, IBV_EVENT_QP_LAST_WQE_REACHED);
    ibv_ack_async_event(&event);
    g_assert_cmpint(ibv_destroy_qp(b.qp), ==, 0);
    b.qp = NULL;
    g_assert_cmpint(ibv_destroy_srq(srq), ==, 0);
}

static void test_states(void)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct ibv_send_wr wr = wr_of(IBV_WR_SEND, 1, NULL);
    g_auto(End) e = end_new(IBV_QPT_RC);

    g_assert_cmpint(recv_at(&e, 1, 0, 1), ==, EINVAL);
    g_assert_cmpint(to_rtr(e.qp, 2), ==, EINVAL);
    /* access flags are missing */
    attr = (struct ibv_qp_attr) { .qp_state = IBV_QPS_INIT, .port_num = 1 };
    g_assert_cmpint(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_PORT |
                                  IBV_QP_PKEY_INDEX), ==, EINVAL);
    g_assert_cmpint(to_init(e.qp), ==, 0);
    g_assert_cmpint(send_wr(&e, &wr), ==, EINVAL);
    g_assert_cmpint(to_rtr(e.qp, 2), ==, 0);
    g_assert_cmpint(to_rts(e.qp), ==, 0);
    g_assert_cmpint(ibv_query_qp(e.qp, &attr, 0, &init), ==, 0);
    g_assert_cmpint(attr.dest_qp_num, ==, 2);
    g_assert_cmpint(attr.rnr_retry, ==, 7);

    g_assert_cmpint(recv_at(&e, 2, 0, 1), ==, 0);
    g_assert_cmpint(to_state(e.qp, IBV_QPS_ERR), ==, 0);
    expect_wc(&e, 2, IBV_WC_WR_FLUSH_ERR);
    g_assert_cmpint(send_wr(&e, &wr), ==, 0);
    expect_wc(&e, 1, IBV_WC_WR_FLUSH_ERR);
    g_assert_cmpint(recv_at(&e, 3, 0, 1), ==, 0);
    expect_wc(&e, 3, IBV_WC_WR_FLUSH_ERR);
    g_assert_cmpint(to_state(e.qp, IBV_QPS_RESET), ==, 0);
    g_assert_cmpint(to_init(e.qp), ==, 0);
    g_assert_cmpint(to_rtr(e.qp, 0x5555), ==, 0);
    g_assert_cmpint(to_rts(e.qp), ==, 0);
    g_assert_cmpint(send_wr(&e, &wr), ==, 0);
    expect_wc(&e, 1, IBV_WC_RETRY_EXC_ERR);
}

/* A slot is free after a later completion was polled. */
static void test_slots(void)
{
    struct ibv_send_wr wr = wr_of(IBV_WR_SEND, 1, NULL);
    g_auto(End) a, b;

    pair_new(&a, &b, IBV_QPT_UC);
    wr.send_flags = 0;
    for (int i = 0; i < DEPTH - 1; i++) {
        g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    }
    wr.send_flags = IBV_SEND_SIGNALED;
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    g_assert_cmpint(send_wr(&a, &wr), ==, ENOMEM);
    expect_wc(&a, 1, IBV_WC_SUCCESS);
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
}

void add_fake_traffic_tests(void)
{
    fake_test_add("pingpong", test_pingpong);
    fake_test_add("send-waits-for-recv", test_send_waits_for_recv);
    fake_test_add("rdma", test_rdma);
    fake_test_add("windows", test_windows);
    fake_test_add("registered-memory-stays-without-mapping", test_pinned);
    fake_test_add("memlock", test_memlock);
    fake_test_add("datagrams", test_datagrams);
    fake_test_add("srq", test_srq);
    fake_test_add("states", test_states);
    fake_test_add("slots-are-freed-by-polling", test_slots);
}
