/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: the errno of each verb becomes the status of its command. The
 * command creates nothing, and succeeds when it is given again.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "verbs-test.h"

static const uint8_t group[RDMA_GID_LEN] = { 0xff, 0x0e, [15] = 3 };

/* Objects for commands to use; "spare" objects are not in use. */
typedef struct Objects {
    Verbs *v;
    QRdmaPd *pd;
    QRdmaPd *spare_pd;
    QRdmaCq *cq;
    QRdmaCq *spare_cq;
    QRdmaQp *qp;
    QRdmaQp *ud;
    QRdmaSrq *srq;
    QRdmaMr *mr;
    QRdmaMw mw;
} Objects;

static uint8_t create_pd(Objects *o)
{
    uint32_t pdn;

    return qrdma_try_alloc_pd(o->v->dev, &pdn);
}

static uint8_t destroy_pd(Objects *o)
{
    return qrdma_dealloc_pd(o->spare_pd);
}

static uint8_t create_cq(Objects *o)
{
    uint32_t cqn;

    return qrdma_try_create_cq(o->v->dev, 16, &cqn);
}

static uint8_t destroy_cq(Objects *o)
{
    return qrdma_destroy_cq(o->spare_cq);
}

static uint8_t reg_mr(Objects *o)
{
    struct virtio_rdma_reg_user_mr_req req = verbs_reg_mr_req(o->pd);
    struct virtio_rdma_mr_rsp rsp;

    return qrdma_reg_user_mr(o->v->dev, &req, &rsp);
}

static uint8_t dereg_mr(Objects *o)
{
    return qrdma_dereg_mr(o->mr);
}

static uint8_t alloc_mw(Objects *o)
{
    QRdmaMw mw;

    return qrdma_alloc_mw(o->pd, RDMA_MW_TYPE_1, &mw);
}

static uint8_t dealloc_mw(Objects *o)
{
    return qrdma_dealloc_mw(&o->mw);
}

static uint8_t create_srq(Objects *o)
{
    RdmaSrqAttr attr = { .pdn = o->pd->pdn, .max_wr = 4, .max_sge = 1 };
    uint32_t srqn;

    return qrdma_try_create_srq(o->v->dev, &attr, &srqn);
}

static uint8_t modify_srq(Objects *o)
{
    return qrdma_modify_srq(o->srq, 1);
}

static uint8_t destroy_srq(Objects *o)
{
    return qrdma_destroy_srq(o->srq);
}

static uint8_t create_qp(Objects *o)
{
    RdmaQpInitAttr init = {
        .pdn = o->pd->pdn,
        .qp_type = RDMA_QPT_RC,
        .send_cqn = o->cq->cqn,
        .recv_cqn = o->cq->cqn,
        .cap = { 4, 4, 1, 1 },
    };
    uint32_t qpn;

    return qrdma_try_create_qp(o->v->dev, &init, &qpn);
}

static uint8_t modify_qp(Objects *o)
{
    return qrdma_modify_init(o->qp, 0);
}

static uint8_t query_qp(Objects *o)
{
    RdmaQpAttr attr;

    return qrdma_query_qp(o->qp, &attr);
}

static uint8_t destroy_qp(Objects *o)
{
    return qrdma_destroy_qp(o->qp);
}

static uint8_t attach_mcast(Objects *o)
{
    return qrdma_attach_mcast(o->ud, group);
}

static uint8_t detach_mcast(Objects *o)
{
    return qrdma_detach_mcast(o->ud, group);
}

static uint8_t add_gid(Objects *o)
{
    return qrdma_add_gid(o->v->dev, 3, o->v->dev->gid[0]);
}

typedef struct Try {
    const char *verb;
    uint8_t (*command)(Objects *o);
    const char *kind;               /* of the object it creates */
    int made;                       /* new objects on success */
    bool busy;                      /* EINVAL means "in use" */
} Try;

/* In an order in which each command can succeed in the end */
static const Try tries[] = {
    { "alloc_pd", create_pd, "pd", 1 },
    { "create_cq", create_cq, "cq", 1 },
    { "reg_mr_iova2", reg_mr, "mr", 1 },
    { "alloc_mw", alloc_mw, "mw", 1 },
    { "create_srq", create_srq, "srq", 1 },
    { "create_qp", create_qp, "qp", 1 },
    { "modify_srq", modify_srq, "srq", 0 },
    { "modify_qp", modify_qp, "qp", 0 },
    { "query_qp", query_qp, "qp", 0 },
    { "query_gid_table", add_gid, "qp", 0 },
    { "attach_mcast", attach_mcast, "mcast", 1 },
    { "detach_mcast", detach_mcast, "mcast", -1 },
    { "dealloc_mw", dealloc_mw, "mw", -1 },
    { "dereg_mr", dereg_mr, "mr", -1, .busy = true },
    { "destroy_qp", destroy_qp, "qp", -1 },
    { "destroy_srq", destroy_srq, "srq", -1 },
    { "destroy_cq", destroy_cq, "cq", -1 },
    { "dealloc_pd", destroy_pd, "pd", -1 },
};

static const struct {
    const char *name;
    uint8_t status;
} errors[] = {
    { "ENOMEM", VIRTIO_RDMA_S_NOMEM },
    { "EINVAL", VIRTIO_RDMA_S_INVAL },
    { "EPERM", VIRTIO_RDMA_S_PERM },
    { "EBUSY", VIRTIO_RDMA_S_BUSY },
    { "EFAULT", VIRTIO_RDMA_S_INVAL },
    { "EIO", VIRTIO_RDMA_S_ERR },
    { "ENODEV", VIRTIO_RDMA_S_ERR },
    { "EOPNOTSUPP", VIRTIO_RDMA_S_NOTSUPP },
};

static Objects objects_new(Verbs *v)
{
    QRdma *d = v->dev;
    Objects o = { .v = v };

    o.pd = qrdma_alloc_pd(d);
    o.spare_pd = qrdma_alloc_pd(d);
    o.cq = qrdma_create_cq(d, 16);
    o.spare_cq = qrdma_create_cq(d, 16);
    o.qp = qrdma_create_qp(o.pd, o.cq, o.cq, RDMA_QPT_RC);
    o.ud = qrdma_create_qp(o.pd, o.cq, o.cq, RDMA_QPT_UD);
    o.srq = qrdma_create_srq(o.pd, 4, 1);
    o.mr = qrdma_reg_mr(o.pd, VERBS_IOVA_A, 4096, RDMA_ACCESS_LOCAL_WRITE);
    assert_ok(qrdma_alloc_mw(o.pd, RDMA_MW_TYPE_1, &o.mw));
    return o;
}

static void test_errno_is_status(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    Objects o = objects_new(v);

    for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
        const Try *t = &tries[i];
        unsigned before = fake_verbs_count(v->fake, t->kind);
        g_autofree char *all = fake_verbs_ask(v->fake, "count");

        for (size_t j = 0; j < ARRAY_SIZE(errors); j++) {
            g_autofree char *now = NULL;
            uint8_t status, want = errors[j].status;

            if (t->busy && g_str_equal(errors[j].name, "EINVAL")) {
                want = VIRTIO_RDMA_S_BUSY;
            }
            fake_verbs_tell(v->fake, "fail %s %s", t->verb, errors[j].name);
            status = t->command(&o);
            g_test_message("%s %s: %u", t->verb, errors[j].name, status);
            g_assert_cmpint(status, ==, want);
            now = fake_verbs_ask(v->fake, "count");
            g_assert_cmpstr(now, ==, all);
        }
        assert_ok(t->command(&o));
        g_assert_cmpint(fake_verbs_count(v->fake, t->kind), ==,
                        before + t->made);
    }
}

/* The same at a reset, when no command waits for the errors */
static void test_reset_goes_on_after_errors(void)
{
    static const char *verbs[] = {
        "modify_qp", "destroy_qp", "destroy_srq", "dealloc_mw", "dereg_mr",
        "destroy_cq", "dealloc_pd",
    };
    Verbs *v = verbs_new(NULL);

    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        Objects o = objects_new(v);
        unsigned calls = fake_verbs_calls(v->fake, verbs[i]);
        VerbsPair p;

        assert_ok(qrdma_modify_init(o.qp, 0));
        fake_verbs_tell(v->fake, "fail %s EINTR times 0", verbs[i]);
        qrdma_reset(v->dev);
        qrdma_wait_until(v->dev, fake_verbs_calls(v->fake, verbs[i]) > calls);
        fake_verbs_tell(v->fake, "forget %s", verbs[i]);
        verbs_restart(v);
        p = verbs_pair(v, RDMA_QPT_RC);
        verbs_check_works(&p, i + 1);
        verbs_restart(v);
    }
    /* the kernel frees objects that the host has refused to destroy */
    verbs_unplug(v);
    g_assert_cmpint(fake_verbs_count(v->fake, "context"), ==, 0);
    verbs_stop(v);
}

/* A limit of locked memory shows in the middle. */
static void test_memlock(void)
{
    g_autoptr(Verbs) v = verbs_new("memlock 8192");
    QRdmaPd *pd = qrdma_alloc_pd(v->dev);
    Objects o = { .v = v, .pd = pd };
    QRdmaMr *mr;

    mr = qrdma_reg_mr(pd, VERBS_IOVA_A, 8192, RDMA_ACCESS_LOCAL_WRITE);
    assert_status(reg_mr(&o), NOMEM);
    assert_ok(qrdma_dereg_mr(mr));
    assert_ok(reg_mr(&o));
}

const QRdmaTest verbs_errno_tests[] = {
    { "is-status", test_errno_is_status },
    { "reset-goes-on-after-errors", test_reset_goes_on_after_errors },
    { "memlock", test_memlock },
    {}
};
