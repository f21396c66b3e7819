/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: the driver resets its control queue while the host destroys an
 * object, and sends commands about the same object. The double ends QEMU when
 * an object is used that was destroyed.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "verbs-test.h"

/* Longer than any response of these */
#define RSP_ROOM 256

typedef struct Objects {
    Verbs *v;
    VerbsPair p;
    QRdmaSrq *srq;
    QRdmaMw mw;
    QRdmaCq *cq;                    /* not in use, like @pd */
    QRdmaPd *pd;
} Objects;

static Objects objects_new(void)
{
    Objects o = { .v = verbs_new(NULL) };

    qrdma_start(o.v->dev, 0, 0);
    qrdma_setup_gids(o.v->dev, 1);
    o.p = verbs_pair(o.v, RDMA_QPT_RC);
    o.srq = qrdma_create_srq(o.p.pd, 4, 1);
    assert_ok(qrdma_alloc_mw(o.p.pd, RDMA_MW_TYPE_2, &o.mw));
    o.cq = qrdma_create_cq(o.v->dev, 16);
    o.pd = qrdma_alloc_pd(o.v->dev);
    return o;
}

static void objects_free(Objects *o)
{
    verbs_restart(o->v);
    verbs_free(o->v);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Objects, objects_free)

/* Send the command on a control queue that was just reset. */
static VerbsWaiting send_again(Objects *o, uint8_t cmd, const void *req,
                               size_t len)
{
    qrdma_ring_renew(qrdma_ring(o->v->dev, VIRTIO_RDMA_CTRL_VQ));
    return verbs_send_cmd(o->v, cmd, req, len, RSP_ROOM);
}

static VerbsWaiting send_number(Objects *o, uint8_t cmd, uint32_t number)
{
    const uint32_t le = cpu_to_le32(number);

    return send_again(o, cmd, &le, sizeof(le));
}

/* Give a command that destroys @number, and hold the host in @verb. */
static void begin(Objects *o, uint8_t cmd, const char *verb, uint32_t number)
{
    fake_verbs_tell(o->v->fake, "delay %s", verb);
    send_number(o, cmd, number);
    fake_verbs_tell(o->v->fake, "await %s", verb);
}

/*
 * Release the host after all commands have come, and return the status of @w.
 */
static uint8_t end(Objects *o, VerbsWaiting w)
{
    qrdma_settle(o->v->dev);
    fake_verbs_tell(o->v->fake, "release");
    return verbs_await_status(&w);
}

/* Another command comes between two that destroy the same object. */
static void test_destroyed_again(const void *data)
{
    bool refused = GPOINTER_TO_INT(data);
    g_auto(Objects) o = objects_new();
    const struct virtio_rdma_query_port_req query = { .port = 1 };
    const struct {
        uint8_t cmd;
        const char *verb;
        const char *kind;
        uint32_t number;
    } all[] = {
        { VIRTIO_RDMA_CMD_DESTROY_QP, "destroy_qp", "qp", o.p.a->qpn },
        { VIRTIO_RDMA_CMD_DESTROY_SRQ, "destroy_srq", "srq", o.srq->srqn },
        { VIRTIO_RDMA_CMD_DEALLOC_MW, "dealloc_mw", "mw", o.mw.mwn },
        { VIRTIO_RDMA_CMD_DEREG_MR, "dereg_mr", "mr", o.p.mr_a->mrn },
        { VIRTIO_RDMA_CMD_DESTROY_CQ, "destroy_cq", "cq", o.cq->cqn },
        { VIRTIO_RDMA_CMD_DESTROY_PD, "dealloc_pd", "pd", o.pd->pdn },
    };

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        unsigned count = fake_verbs_count(o.v->fake, all[i].kind);
        VerbsWaiting w;

        begin(&o, all[i].cmd, all[i].verb, all[i].number);
        if (refused) {
            fake_verbs_tell(o.v->fake, "fail %s EBUSY", all[i].verb);
        }
        send_again(&o, VIRTIO_RDMA_CMD_QUERY_PORT, &query, sizeof(query));
        qrdma_settle(o.v->dev);
        w = send_number(&o, all[i].cmd, all[i].number);
        qrdma_settle(o.v->dev);
        g_assert_cmphex(qrdma_status_of(&w.cmd), ==, QRDMA_NO_STATUS);
        assert_ok(end(&o, w));
        g_assert_cmpint(fake_verbs_count(o.v->fake, all[i].kind), ==,
                        count - 1);
    }
}

static struct virtio_rdma_create_qp_req create_qp_req(Objects *o)
{
    return (struct virtio_rdma_create_qp_req) {
        .pdn = cpu_to_le32(o->p.pd->pdn),
        .qp_type = RDMA_QPT_RC,
        .sq_sig_type = VIRTIO_RDMA_SIGNAL_REQ_WR,
        .send_cqn = cpu_to_le32(o->cq->cqn),
        .recv_cqn = cpu_to_le32(o->cq->cqn),
    };
}

static void test_cq_that_goes(void)
{
    g_auto(Objects) o = objects_new();
    struct virtio_rdma_resize_cq_req resize = {
        .cqn = cpu_to_le32(o.cq->cqn), .cqe = cpu_to_le32(32),
    };
    struct virtio_rdma_create_qp_req create = create_qp_req(&o);
    VerbsWaiting w;

    begin(&o, VIRTIO_RDMA_CMD_DESTROY_CQ, "destroy_cq", o.cq->cqn);
    send_again(&o, VIRTIO_RDMA_CMD_RESIZE_CQ, &resize, sizeof(resize));
    qrdma_settle(o.v->dev);
    w = send_again(&o, VIRTIO_RDMA_CMD_CREATE_QP, &create, sizeof(create));
    assert_status(end(&o, w), NOENT);
}

static void test_pd_that_goes(void)
{
    g_auto(Objects) o = objects_new();
    struct virtio_rdma_alloc_mw_req mw = {
        .pdn = cpu_to_le32(o.pd->pdn), .type = cpu_to_le32(RDMA_MW_TYPE_2),
    };
    struct virtio_rdma_create_srq_req srq = {
        .pdn = cpu_to_le32(o.pd->pdn),
        .max_wr = cpu_to_le32(4),
        .max_sge = cpu_to_le32(1),
    };
    struct virtio_rdma_reg_user_mr_req mr = verbs_reg_mr_req(o.pd);
    VerbsWaiting w;

    begin(&o, VIRTIO_RDMA_CMD_DESTROY_PD, "dealloc_pd", o.pd->pdn);
    send_again(&o, VIRTIO_RDMA_CMD_ALLOC_MW, &mw, sizeof(mw));
    qrdma_settle(o.v->dev);
    send_again(&o, VIRTIO_RDMA_CMD_CREATE_SRQ, &srq, sizeof(srq));
    qrdma_settle(o.v->dev);
    w = send_again(&o, VIRTIO_RDMA_CMD_REG_USER_MR, &mr, sizeof(mr));
    assert_status(end(&o, w), NOENT);
}

static void test_srq_that_goes(void)
{
    g_auto(Objects) o = objects_new();
    struct virtio_rdma_create_qp_req create = create_qp_req(&o);
    VerbsWaiting w;

    create.flags = cpu_to_le32(VIRTIO_RDMA_QP_SRQ);
    create.srqn = cpu_to_le32(o.srq->srqn);
    begin(&o, VIRTIO_RDMA_CMD_DESTROY_SRQ, "destroy_srq", o.srq->srqn);
    w = send_again(&o, VIRTIO_RDMA_CMD_CREATE_QP, &create, sizeof(create));
    assert_status(end(&o, w), NOENT);
}

/* A region is destroyed while the host registers it again. */
static void test_region_that_changes(void)
{
    g_auto(Objects) o = objects_new();
    struct virtio_rdma_rereg_mr_req rereg = {
        .mrn = cpu_to_le32(o.p.mr_a->mrn),
        .flags = cpu_to_le32(VIRTIO_RDMA_REREG_ACCESS),
    };
    unsigned count = fake_verbs_count(o.v->fake, "mr");
    VerbsWaiting w;

    fake_verbs_tell(o.v->fake, "delay reg_mr_iova2");
    send_again(&o, VIRTIO_RDMA_CMD_REREG_MR, &rereg, sizeof(rereg));
    fake_verbs_tell(o.v->fake, "await reg_mr_iova2");
    w = send_number(&o, VIRTIO_RDMA_CMD_DEREG_MR, o.p.mr_a->mrn);
    assert_ok(end(&o, w));
    verbs_await_count(o.v, "mr", count - 1);
}

const QRdmaTest verbs_again_tests[] = {
    { "destroyed-twice", .run_case = test_destroyed_again,
      .data = GINT_TO_POINTER(false) },
    /* The host refuses the first time. */
    { "destroyed-at-last", .run_case = test_destroyed_again,
      .data = GINT_TO_POINTER(true) },
    { "cq-that-goes", test_cq_that_goes },
    { "pd-that-goes", test_pd_that_goes },
    { "srq-that-goes", test_srq_that_goes },
    { "region-that-changes", test_region_that_changes },
    {}
};
