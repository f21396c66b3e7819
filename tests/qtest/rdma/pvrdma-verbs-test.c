/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pvrdma on rdma-verbs: QPs whose number on the wire is not their handle, and
 * synchronous commands, which must be done although the host takes its time.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qemu/units.h"
#include "pvrdma-test.h"
#include "verbs-test.h"

#define LEN 5000
#define EJECTED_SLOT 6
#define EJECT_FLAG 0x500            /* address */
#define DEVICE "-device vmxnet3,addr=4.0,multifunction=on " \
               "-device pvrdma,rdmadev=r0,addr=4.1,id=d0"

/* Two connected QPs of one device, in contexts of their own */
typedef struct VerbsPv {
    Verbs *v;
    QPvrdma *dev;
    PvEnd a;
    PvEnd b;
} VerbsPv;

static VerbsPv verbs_pv_start(const char *script)
{
    VerbsPv p = { .v = verbs_host_with(script, "share=on", DEVICE) };
    uint8_t gid[RDMA_GID_LEN];

    p.dev = qpvrdma_open(p.v->host, QPCI_DEVFN(VERBS_SLOT, 1));
    qpvrdma_start(p.dev);
    /* The double has the GID 10.0.0.1, and no MAC. */
    p.dev->mac[RDMA_MAC_LEN - 1] = 1;
    qrdma_ipv4_gid(gid, 1);
    assert_done(qpvrdma_create_bind(p.dev, 0, gid));
    return p;
}

static VerbsPv verbs_pv_new(const char *script)
{
    VerbsPv p = verbs_pv_start(script);

    p.a = pv_end_new(p.dev, 3, RDMA_QPT_RC);
    p.b = pv_end_new(p.dev, 4, RDMA_QPT_RC);
    pv_connect(&p.a, &p.b);
    return p;
}

/* After RESET nothing is left in the host. */
static void verbs_pv_free(VerbsPv *p)
{
    qpvrdma_write(p->dev, PVRDMA_REG_CTL, PVRDMA_CTL_RESET);
    verbs_await_clean(p->v);
    qpvrdma_close(p->dev);
    verbs_stop(p->v);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(VerbsPv, verbs_pv_free)

static void post(PvEnd *e, uint32_t opcode, uint32_t len, const PvEnd *peer)
{
    pv_post(e, opcode, opcode, len, &peer->mr);
}

/* SEND, WRITE and READ from a to b */
static void check_works(VerbsPv *p, uint8_t seed)
{
    pv_fill(&p->a, 0, LEN, seed);
    pv_recv(&p->b, seed, 0, LEN);
    post(&p->a, RDMA_WR_SEND, LEN, &p->b);
    pv_expect(&p->a, &p->a.scq, RDMA_WR_SEND, RDMA_WC_SUCCESS, RDMA_WC_SEND);
    pv_expect(&p->b, &p->b.rcq, seed, RDMA_WC_SUCCESS, RDMA_WC_RECV);
    pv_assert_filled(&p->b, 0, LEN, seed);
    pv_fill(&p->a, 0, LEN, seed + 1);
    post(&p->a, RDMA_WR_RDMA_WRITE, LEN, &p->b);
    pv_expect(&p->a, &p->a.scq, RDMA_WR_RDMA_WRITE, RDMA_WC_SUCCESS,
              RDMA_WC_RDMA_WRITE);
    pv_assert_filled(&p->b, 0, LEN, seed + 1);
    pv_fill(&p->b, 0, LEN, seed + 2);
    post(&p->a, RDMA_WR_RDMA_READ, LEN, &p->b);
    pv_expect(&p->a, &p->a.scq, RDMA_WR_RDMA_READ, RDMA_WC_SUCCESS,
              RDMA_WC_RDMA_READ);
    pv_assert_filled(&p->a, 0, LEN, seed + 2);
}

static void test_version(void)
{
    g_auto(VerbsPv) p = verbs_pv_new(NULL);

    g_assert_cmpint(qpvrdma_read(p.dev, PVRDMA_REG_VERSION), ==,
                    PVRDMA_VERSION_HANDLES);
    g_assert_cmpint(p.a.qp.qpn, !=, p.a.qp.handle);
    g_assert_cmpint(p.b.qp.qpn, ==, fake_verbs_newest(p.v->fake, "qp"));
    g_assert_cmpint(p.a.qp.handle, <, p.dev->caps.max_qp);
    g_assert_cmpint(p.a.qp.handle, !=, 0);
    /* libibverbs cannot post what registers memory. */
    g_assert_cmpint(p.dev->caps.bmme_flags, ==, 0);
    g_assert_cmpint(p.dev->caps.max_fast_reg_page_list_len, ==, 0);
    g_assert_cmpint(p.dev->caps.atomic_ops, ==, 3);
}

/* A driver that reads no handle would use the wrong number. */
static void test_old_driver(void)
{
    g_auto(VerbsPv) p = verbs_pv_start(NULL);

    qpvrdma_set_dsr(p.dev);
    qtest_writel(p.v->host->qts, p.dev->dsr, PVRDMA_VERSION_WIDE_PFN);
    qtest_memset(p.v->host->qts, p.dev->dsr + offsetof(PvrdmaDsr, caps), 0,
                 sizeof(PvrdmaCaps));
    qpvrdma_write(p.dev, PVRDMA_REG_DSR_LOW, p.dev->dsr);
    qpvrdma_write(p.dev, PVRDMA_REG_DSR_HIGH, p.dev->dsr >> 32);
    g_assert_cmpint(qtest_readb(p.v->host->qts, p.dev->dsr +
                                offsetof(PvrdmaDsr, caps.gid_types)), ==, 0);
}

static void test_traffic(void)
{
    g_auto(VerbsPv) p = verbs_pv_new(NULL);

    for (int i = 0; i < 40; i++) {
        check_works(&p, 3 * i);
    }
}

/* Doorbells, CQEs, events and interrupts have the handle. */
static void test_interrupt(void)
{
    g_auto(VerbsPv) p = verbs_pv_new(NULL);
    uint32_t handle;

    pv_arm(&p.a, &p.a.scq);
    post(&p.a, RDMA_WR_RDMA_WRITE, 8, &p.b);
    qrdma_wait_until(p.dev, qpvrdma_interrupted(p.dev,
                                                PVRDMA_VECTOR_COMPLETION));
    g_assert_true(qpvrdma_ring_pop(p.dev, &p.dev->completions, &handle));
    g_assert_cmpint(handle, ==, p.a.scq.handle);
    pv_expect(&p.a, &p.a.scq, RDMA_WR_RDMA_WRITE, RDMA_WC_SUCCESS,
              RDMA_WC_RDMA_WRITE);
}

static void test_atomics(void)
{
    g_auto(VerbsPv) p = verbs_pv_new(NULL);
    QTestState *qts = p.v->host->qts;
    uint64_t at = p.b.mr.dir.mem + p.b.mr.addr % RDMA_PAGE_SIZE;
    PvrdmaSge sge = pv_sge(&p.a, 0, 8);

    qtest_writeq(qts, at, 40);
    qpvrdma_post_send(p.dev, &p.a.qp,
                      &(PvrdmaSendWqe) {
                          .num_sge = 1,
                          .opcode = RDMA_WR_ATOMIC_FETCH_AND_ADD,
                          .send_flags = RDMA_SEND_SIGNALED,
                          .wr.atomic = {
                              .remote_addr = p.b.mr.addr,
                              .rkey = p.b.mr.rkey,
                              .compare_add = 2,
                          },
                      }, &sge);
    pv_expect(&p.a, &p.a.scq, 0, RDMA_WC_SUCCESS, RDMA_WC_FETCH_ADD);
    g_assert_cmpint(qtest_readq(qts, at), ==, 42);
}

/* After the write of REQUEST the host has destroyed the object. */
static void test_synchronous(void)
{
    static const struct {
        const char *verb;
        const char *kind;
        uint32_t cmd;
        unsigned left;
    } cases[] = {
        { "destroy_qp", "qp", PVRDMA_CMD_DESTROY_QP, 1 },
        { "destroy_srq", "srq", PVRDMA_CMD_DESTROY_SRQ, 0 },
        { "dereg_mr", "mr", PVRDMA_CMD_DESTROY_MR, 1 },
        { "destroy_cq", "cq", PVRDMA_CMD_DESTROY_CQ, 3 },
        { "dealloc_pd", "pd", PVRDMA_CMD_DESTROY_PD, 1 },
        { "destroy_cq", "cq", PVRDMA_CMD_DESTROY_UC, 2 },
    };
    g_auto(VerbsPv) p = verbs_pv_new(NULL);
    PvrdmaCmdCreateSrq create = { .pd = p.a.pd };
    PvrdmaCmdModifySrq modify = { .mask = PVRDMA_SRQ_LIMIT, .limit = 3 };
    QPvrdmaSrq srq;
    GThread *thread;

    assert_done(qpvrdma_try_create_srq(p.dev, 3, &create, &srq));
    modify.handle = srq.handle;
    fake_verbs_tell(p.v->fake, "delay modify_srq");
    thread = verbs_release_soon(p.v);
    assert_done(qpvrdma_cmd(p.dev, PVRDMA_CMD_MODIFY_SRQ, &modify,
                            sizeof(modify), NULL, 0));
    g_thread_join(thread);
    g_assert_cmpint(fake_verbs_calls(p.v->fake, "modify_srq"), ==, 1);

    const uint32_t handles[] = {
        p.a.qp.handle, srq.handle, p.a.mr.handle, p.a.scq.handle, p.a.pd, 3,
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fake_verbs_tell(p.v->fake, "delay %s", cases[i].verb);
        thread = verbs_release_soon(p.v);
        assert_done(qpvrdma_destroy(p.dev, cases[i].cmd, handles[i]));
        g_thread_join(thread);
        g_assert_cmpint(fake_verbs_count(p.v->fake, cases[i].kind), ==,
                        cases[i].left);
    }
}

/* The host refuses: the device uses the memory of the QP no more. */
static void test_failed_destroy(void)
{
    g_auto(VerbsPv) p = verbs_pv_new(NULL);
    PvrdmaCqe cqe;

    pv_recv(&p.a, 1, 0, 8);
    qrdma_wait_until(p.dev, fake_verbs_calls(p.v->fake, "post_recv") == 1);
    fake_verbs_tell(p.v->fake, "fail destroy_qp EBUSY");
    assert_fails(qpvrdma_destroy(p.dev, PVRDMA_CMD_DESTROY_QP, p.a.qp.handle));
    qtest_memset(p.v->host->qts, p.a.qp.sq.state, 0x55,
                 sizeof(PvrdmaStatePage));
    qpvrdma_ring_doorbell(p.dev, 3, PVRDMA_UAR_QP,
                          p.a.qp.handle | PVRDMA_UAR_QP_SEND);
    post(&p.b, RDMA_WR_SEND, 8, &p.a);
    qpvrdma_create_pd(p.dev, 0);
    g_assert_cmphex(qpvrdma_ring_head(p.dev, &p.a.qp.rq), ==, 0x55555555);
    g_assert_false(qpvrdma_poll_cq(p.dev, &p.a.rcq, &cqe));
}

/*
 * The host refuses to destroy the first of a PD's QPs. The others are
 * destroyed, and a later command finds the first one.
 */
static void test_failed_destroy_of_many(void)
{
    g_auto(VerbsPv) p = verbs_pv_new(NULL);
    QPvrdmaQp qps[3] = { p.a.qp };

    for (int i = 1; i < ARRAY_SIZE(qps); i++) {
        qps[i] = qpvrdma_create_qp(p.dev, 3, p.a.pd, &p.a.scq, &p.a.rcq,
                                   RDMA_QPT_RC);
    }
    fake_verbs_tell(p.v->fake, "fail destroy_qp EBUSY");
    assert_fails(qpvrdma_destroy(p.dev, PVRDMA_CMD_DESTROY_PD, p.a.pd));
    /* That, and the one of the other context */
    g_assert_cmpint(fake_verbs_count(p.v->fake, "qp"), ==, 2);
    assert_done(qpvrdma_destroy(p.dev, PVRDMA_CMD_DESTROY_PD, p.a.pd));
    g_assert_cmpint(fake_verbs_count(p.v->fake, "qp"), ==, 1);
    g_assert_cmpint(fake_verbs_count(p.v->fake, "pd"), ==, 1);
}

/* The host fails after the driver has read ERR: the reply says so. */
static void test_late_failure(void)
{
    g_auto(VerbsPv) p = verbs_pv_new(NULL);
    QPvrdmaDir dir = qpvrdma_dir(p.dev, 2);
    PvrdmaCmdCreateCq req = {
        .dir = dir.dir, .ctx = 3, .cqe = 64, .nchunks = 2,
    };

    fake_verbs_tell(p.v->fake, "fail create_cq ENOMEM");
    assert_done(qpvrdma_begin(p.dev, CREATE_CQ, &req));
    g_assert_cmphex(qpvrdma_await_reply(p.dev), !=,
                    PVRDMA_ACK | PVRDMA_CMD_CREATE_CQ);
}

/*
 * A driver is interrupted while the host makes a CQ: the driver does not know
 * the CQ, and the device removes it.
 */
static void test_given_up(void)
{
    g_auto(VerbsPv) p = verbs_pv_new(NULL);
    QPvrdmaDir dir = qpvrdma_dir(p.dev, 2);
    PvrdmaCmdCreateCq req = {
        .dir = dir.dir, .ctx = 3, .cqe = 64, .nchunks = 2,
    };
    PvrdmaCmdHandle pd = {};
    unsigned cqs = fake_verbs_count(p.v->fake, "cq");

    fake_verbs_tell(p.v->fake, "delay create_cq");
    assert_done(qpvrdma_begin(p.dev, CREATE_CQ, &req));
    fake_verbs_tell(p.v->fake, "await create_cq");
    assert_done(qpvrdma_begin(p.dev, CREATE_PD, &pd));
    fake_verbs_tell(p.v->fake, "release");
    g_assert_cmphex(qpvrdma_await_reply(p.dev), ==,
                    PVRDMA_ACK | PVRDMA_CMD_CREATE_PD);
    verbs_await_count(p.v, "cq", cqs);
    g_assert_false(qpvrdma_interrupted(p.dev, PVRDMA_VECTOR_RESPONSE));
    check_works(&p, 1);
}

static void test_stop(void)
{
    g_auto(VerbsPv) p = verbs_pv_new(NULL);

    qtest_qmp_assert_success(p.v->host->qts, "{'execute': 'stop'}");
    post(&p.a, RDMA_WR_RDMA_WRITE, 8, &p.b);
    qtest_qmp_assert_success(p.v->host->qts, "{'execute': 'cont'}");
    pv_expect(&p.a, &p.a.scq, RDMA_WR_RDMA_WRITE, RDMA_WC_SUCCESS,
              RDMA_WC_RDMA_WRITE);
    check_works(&p, 1);
}

/* A driver that comes after one that has left all its objects */
static void test_restart(void)
{
    g_auto(VerbsPv) p = verbs_pv_new(NULL);

    check_works(&p, 1);
    qpvrdma_set_dsr(p.dev);
    verbs_await_clean(p.v);
}

/* Drivers need CQs and queues as deep as the MAD layer's. */
static void test_host_is_too_small(void)
{
    g_autoptr(Verbs) v = verbs_host("attr max_cqe 512");

    qrdma_qmp_refused(v->host->qts, "{'execute': 'device_add', 'arguments': "
                      "{'driver': 'pvrdma', 'rdmadev': 'r0', 'addr': '4.1'}}",
                      "max-cqe=512");
}

/*
 * A BIOS that waits until the byte at 0x500 is set, and then ejects slot 6 by
 * registers of docs/specs/acpi_pci_hotplug.rst
 */
static const uint8_t eject_code[] = {
    0x31, 0xc0,                                 /*   xor %ax, %ax */
    0x8e, 0xd8,                                 /*   mov %ax, %ds */
    0xf3, 0x90,                                 /* 1: pause */
    0x80, 0x3e, 0x00, 0x05, 0x00,               /*   cmpb $0, 0x500 */
    0x74, 0xf7,                                 /*   je 1b */
    0xba, 0x10, 0xae,                           /*   mov $0xae10, %dx */
    0x66, 0x31, 0xc0,                           /*   xor %eax, %eax */
    0x66, 0xef,                                 /*   out %eax, %dx */
    0xba, 0x08, 0xae,                           /*   mov $0xae08, %dx */
    0x66, 0xb8, 1 << EJECTED_SLOT, 0, 0, 0,     /*   mov $1 << 6, %eax */
    0x66, 0xef,                                 /*   out %eax, %dx */
    0xf3, 0x90,                                 /* 2: pause */
    0xeb, 0xfc,                                 /*   jmp 2b */
};
/* ljmp $0xf000, $0 */
static const uint8_t reset_code[] = { 0xea, 0x00, 0x00, 0x00, 0xf0 };

static char *make_eject_bios(void)
{
    static uint8_t bios[64 * KiB];
    g_autoptr(GError) err = NULL;
    char *path = NULL;
    int fd = g_file_open_tmp("rdma-bios-XXXXXX", &path, &err);

    g_assert_no_error(err);
    memcpy(bios, eject_code, sizeof(eject_code));
    memcpy(bios + 0xfff0, reset_code, sizeof(reset_code));
    g_assert_cmpint(write(fd, bios, sizeof(bios)), ==, sizeof(bios));
    close(fd);
    return path;
}

/*
 * An interrupt of another adapter writes REQUEST, and waits there for the host.
 * Meanwhile a processor tries to eject that adapter. It must wait for the BQL.
 */
static void eject_adapter_that_waits(void)
{
    g_autofree char *bios = make_eject_bios();
    g_autofree char *options = g_strdup_printf(
        "-accel tcg -bios %s -netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=%d,max-qp=8,max-cq=4 " DEVICE,
        bios, EJECTED_SLOT);
    Verbs *v = verbs_host_with(NULL, "share=on", options);
    QRdma *d = qrdma_open(v->host, QPCI_DEVFN(EJECTED_SLOT, 0));
    QPvrdma *p = qpvrdma_open(v->host, QPCI_DEVFN(VERBS_SLOT, 1));
    PvrdmaCmdCreateBind bind = {
        .head.cmd = PVRDMA_CMD_CREATE_BIND,
        .mtu = 1024,
        .vlan = 0xffff,
        .gid_type = PVRDMA_GID_TYPE_ROCE_V2,
    };
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaQp *qp;
    QRdmaMr *mr;
    RdmaSge from, to;

    qpvrdma_start(p);
    qrdma_start(d, 0, 0);
    qrdma_setup_gids(d, 1);
    pd = qrdma_alloc_pd(d);
    cq = qrdma_create_cq(d, 8);
    qp = qrdma_create_loop(pd, cq, cq);
    mr = qrdma_get_dma_mr(pd, RDMA_ACCESS_LOCAL_WRITE);
    from = (RdmaSge) { qrdma_alloc(d, 4096), 1, mr->lkey };
    qtest_writeb(v->host->qts, from.addr, 1);
    to = (RdmaSge) { EJECT_FLAG, 1, mr->lkey };

    qrdma_ipv4_gid(bind.gid, 1);
    qtest_memwrite(v->host->qts, p->request, &bind, sizeof(bind));
    fake_verbs_tell(v->fake, "delay query_gid_table");
    qrdma_ring_aim(cq->ring, p->regs.addr + PVRDMA_REG_REQUEST, 0);
    assert_ok(qrdma_req_notify_cq(cq, VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION));
    qrdma_recv(qp, 1, &to);
    qrdma_post_send(qp, &(RdmaSendWr) {
        .wr_id = 2, .opcode = RDMA_WR_SEND, .num_sge = 1, .sg_list = &from,
    });
    fake_verbs_tell(v->fake, "await query_gid_table");
    /* Time for the eject, which must wait */
    g_usleep(100000);
    fake_verbs_tell(v->fake, "release");
    qtest_qmp_eventwait(v->host->qts, "DEVICE_DELETED");
    qpvrdma_write(p, PVRDMA_REG_CTL, PVRDMA_CTL_RESET);
    verbs_await_clean(v);
    qpvrdma_close(p);
    qrdma_close(d);
    verbs_stop(v);
    g_unlink(bios);
}

static void test_adapter_that_waits_is_ejected(void)
{
    if (qtest_has_accel("tcg")) {
        eject_adapter_that_waits();
    } else {
        g_test_skip("no TCG, and so no processor");
    }
}

const QRdmaTest pvrdma_verbs_tests[] = {
    { "version", test_version },
    { "old-driver", test_old_driver },
    { "traffic", test_traffic },
    { "interrupt", test_interrupt },
    { "atomics", test_atomics },
    { "synchronous", test_synchronous },
    { "failed-destroy", test_failed_destroy },
    { "failed-destroy-of-many", test_failed_destroy_of_many },
    { "late-failure", test_late_failure },
    { "given-up", test_given_up },
    { "stop", test_stop },
    { "restart", test_restart },
    { "host-is-too-small", test_host_is_too_small },
    { "adapter-that-waits-is-ejected", test_adapter_that_waits_is_ejected },
    { }
};
