/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rdma-verbs: late answers of the host, and guest actions before them. */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include <sys/wait.h>
#include "standard-headers/linux/pci_regs.h"
#include "verbs-test.h"

/* REG_USER_MR, which the host has begun. */
static VerbsWaiting late_reg_mr(Verbs *v, QRdmaPd *pd)
{
    struct virtio_rdma_reg_user_mr_req req = verbs_reg_mr_req(pd);

    return verbs_hold_cmd(v, "reg_mr_iova2", VIRTIO_RDMA_CMD_REG_USER_MR, &req,
                          sizeof(req), sizeof(struct virtio_rdma_mr_rsp));
}

/* The guest runs, and so does its traffic, while the host takes its time. */
static void test_traffic_goes_on(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    VerbsWaiting w = late_reg_mr(v, p.pd);

    for (int i = 0; i < 10; i++) {
        verbs_check_works(&p, i + 1);
    }
    g_assert_cmphex(qrdma_status_of(&w.cmd), ==, QRDMA_NO_STATUS);
    assert_ok(verbs_release_cmd(&w));
}

static void test_failure(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsWaiting w = late_reg_mr(v, qrdma_alloc_pd(v->dev));

    fake_verbs_tell(v->fake, "fail reg_mr_iova2 ENOMEM");
    assert_status(verbs_release_cmd(&w), NOMEM);
    g_assert_cmpint(fake_verbs_count(v->fake, "mr"), ==, 0);
}

/*
 * A reset does not wait for the host. A region that the host registers after
 * the reset is freed.
 */
static void test_reset(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p;

    for (int i = 0; i < 3; i++) {
        late_reg_mr(v, qrdma_alloc_pd(v->dev));
        qrdma_reset(v->dev);
        fake_verbs_tell(v->fake, "release");
        verbs_await_clean(v);
        verbs_restart(v);
        p = verbs_pair(v, RDMA_QPT_RC);
        verbs_check_works(&p, i + 1);
        verbs_restart(v);
    }
}

/* A host may wait for the windows of a queue pair that it destroys. */
static void test_reset_frees_windows_first(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    QRdmaMw mw;

    assert_ok(qrdma_alloc_mw(p.pd, RDMA_MW_TYPE_2, &mw));
    fake_verbs_tell(v->fake, "delay destroy_qp");
    qrdma_reset(v->dev);
    fake_verbs_tell(v->fake, "await destroy_qp");
    g_assert_cmpint(fake_verbs_count(v->fake, "mw"), ==, 0);
    fake_verbs_tell(v->fake, "release");
    verbs_await_clean(v);
}

/* The driver is back before the host has answered. */
static void test_reset_and_new_objects(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    uint32_t pdn;

    late_reg_mr(v, qrdma_alloc_pd(v->dev));
    qrdma_start(v->dev, 0, 0);
    {
        VerbsWaiting w = verbs_send_cmd(v, VIRTIO_RDMA_CMD_CREATE_PD, NULL,
                                        0, sizeof(struct virtio_rdma_pdn));

        assert_ok(verbs_release_cmd(&w));
    }
    assert_ok(qrdma_try_alloc_pd(v->dev, &pdn));
    verbs_await_count(v, "mr", 0);
    verbs_await_count(v, "pd", 2);
}

/* The request changes in guest memory while the host works on it. */
static void test_guest_changes_the_request(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    QRdmaPd *pd = qrdma_alloc_pd(v->dev);
    VerbsWaiting w = late_reg_mr(v, pd);
    uint64_t req = w.cmd.req + 1;
    uint64_t iova = cpu_to_le64(0x5000);
    g_autofree char *objects = NULL;

    qrdma_write(v->dev, req + offsetof(struct virtio_rdma_reg_user_mr_req,
                                       virt_addr), &iova, sizeof(iova));
    assert_ok(verbs_release_cmd(&w));
    verbs_await_count(v, "mr", 1);
    objects = fake_verbs_ask(v->fake, "objects");
    g_assert_nonnull(strstr(objects, "iova=0x5000 "));
}

/* The request changes to another command. */
static void test_guest_changes_the_command(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    QRdmaPd *pd = qrdma_alloc_pd(v->dev);
    VerbsWaiting w = late_reg_mr(v, pd);

    qtest_writeb(v->host->qts, w.cmd.req, VIRTIO_RDMA_CMD_CREATE_PD);
    fake_verbs_tell(v->fake, "release");
    verbs_await_status(&w);
    verbs_await_count(v, "mr", 0);
    verbs_restart(v);
    verbs_await_clean(v);
}

/* Unplugging waits for the host, which may not lose track of memory. */
static void test_unplug(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    GThread *thread;

    late_reg_mr(v, qrdma_alloc_pd(v->dev));
    thread = verbs_release_soon(v);
    verbs_unplug(v);
    g_thread_join(thread);
    verbs_await_clean(v);
    verbs_plug(v);
    {
        VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

        verbs_check_works(&p, 1);
    }
}

/* QEMU ends while the host works, and does not wait for it. */
static void test_quit(void)
{
    Verbs *v = verbs_new(NULL);

    late_reg_mr(v, qrdma_alloc_pd(v->dev));
    g_assert_cmpint(kill(qtest_pid(v->host->qts), SIGTERM), ==, 0);
    /* asserts an orderly end */
    verbs_stop(v);
}

/*
 * A reset while the host destroys a QP, whose memory may soon have another
 * owner
 */
static void test_reset_while_a_qp_goes(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    struct virtio_rdma_qpn req = { .qpn = cpu_to_le32(p.a->qpn) };
    GThread *thread;

    verbs_hold_cmd(v, "destroy_qp", VIRTIO_RDMA_CMD_DESTROY_QP, &req,
                   sizeof(req), 0);
    thread = verbs_release_soon(v);
    qrdma_reset(v->dev);
    g_thread_join(thread);
    verbs_await_clean(v);
    verbs_restart(v);
    p = verbs_pair(v, RDMA_QPT_RC);
    verbs_check_works(&p, 1);
}

/* A pair for which the host resolves an address, and does nothing else */
static VerbsPair busy_pair(Verbs *v)
{
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);

    fake_verbs_tell(v->fake, "delay create_ah");
    verbs_offer_send(&p, 1);
    fake_verbs_tell(v->fake, "await create_ah");
    return p;
}

/*
 * The host has not destroyed a QP yet. A reset stops the QP, and does not wait.
 */
static void test_reset_before_a_qp_goes(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = busy_pair(v);
    struct virtio_rdma_qpn req = { .qpn = cpu_to_le32(p.b->qpn) };
    unsigned destroyed = fake_verbs_calls(v->fake, "destroy_qp");
    unsigned modified = fake_verbs_calls(v->fake, "modify_qp");

    verbs_send_cmd(v, VIRTIO_RDMA_CMD_DESTROY_QP, &req, sizeof(req), 0);
    qrdma_settle(v->dev);
    qrdma_reset(v->dev);
    g_assert_cmpuint(fake_verbs_calls(v->fake, "modify_qp"), ==,
                     modified + 2);
    g_assert_cmpuint(fake_verbs_calls(v->fake, "destroy_qp"), ==, destroyed);
    fake_verbs_tell(v->fake, "release");
    verbs_await_clean(v);
    g_assert_cmpuint(fake_verbs_calls(v->fake, "destroy_qp"), ==,
                     destroyed + 2);
}

/* A MODIFY_QP that began before the QP was stopped does not restart the QP. */
static void test_modify_after_a_stop(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    QVirtioDevice *vdev = &v->dev->pci->vdev;
    VerbsPair p = busy_pair(v);
    uint8_t status = qrdma_device_status(v->dev);
    struct virtio_rdma_modify_qp_req req = {
        .qpn = cpu_to_le32(p.b->qpn),
        .attr_mask = cpu_to_le32(RDMA_QP_STATE),
        .attr.qp_state = RDMA_QPS_RESET,
    };
    VerbsWaiting w;

    w = verbs_send_cmd(v, VIRTIO_RDMA_CMD_MODIFY_QP, &req, sizeof(req), 0);
    qrdma_settle(v->dev);
    vdev->bus->set_status(vdev, status & ~VIRTIO_CONFIG_S_DRIVER_OK);
    fake_verbs_tell(v->fake, "release");
    vdev->bus->set_status(vdev, status);
    g_assert_cmpint(verbs_await_status(&w), !=, VIRTIO_RDMA_S_OK);
    g_assert_cmpint(qrdma_qp_state(p.b), ==, RDMA_QPS_ERR);
}

/* The driver gives up bus mastering while the machine is stopped. */
static void test_bus_master_off_in_a_stopped_vm(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    QPCIDevice *pdev = v->dev->pci->pdev;
    uint16_t cmd = qpci_config_readw(pdev, PCI_COMMAND);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    unsigned modified = fake_verbs_calls(v->fake, "modify_qp");

    verbs_check_works(&p, 1);
    qtest_qmp_assert_success(v->host->qts, "{'execute': 'stop'}");
    g_assert_cmpuint(fake_verbs_calls(v->fake, "modify_qp"), ==, modified);
    qpci_config_writew(pdev, PCI_COMMAND, cmd & ~PCI_COMMAND_MASTER);
    g_assert_cmpuint(fake_verbs_calls(v->fake, "modify_qp"), ==,
                     modified + 2);
    qtest_qmp_assert_success(v->host->qts, "{'execute': 'cont'}");
    qpci_config_writew(pdev, PCI_COMMAND, cmd);
    verbs_restart(v);
    p = verbs_pair(v, RDMA_QPT_RC);
    verbs_check_works(&p, 2);
}

/* Posts to an RC QP are flushed without the host. */
static void check_flushes(VerbsPair *p)
{
    unsigned posted = fake_verbs_calls(p->v->fake, "post_send");

    verbs_offer_send(p, 9);
    qrdma_expect(p->cq_a, 9, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpuint(fake_verbs_calls(p->v->fake, "post_send"), ==, posted);
}

/* MODIFY_QP to @state, which the host has begun. */
static VerbsWaiting late_modify(VerbsPair *p, RdmaQpState state)
{
    const struct virtio_rdma_modify_qp_req req = {
        .qpn = cpu_to_le32(p->a->qpn),
        .attr_mask = cpu_to_le32(RDMA_QP_STATE),
        .attr.qp_state = state,
    };

    return verbs_hold_cmd(p->v, "modify_qp", VIRTIO_RDMA_CMD_MODIFY_QP, &req,
                          sizeof(req), 0);
}

/* The host's QP enters ERR after its answer, which comes late. */
static void test_error_during_a_query(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    struct virtio_rdma_query_qp_req req = { .qpn = cpu_to_le32(p.a->qpn) };
    struct virtio_rdma_qp_attr rsp;
    VerbsWaiting w;

    w = verbs_hold_cmd(v, "query_qp", VIRTIO_RDMA_CMD_QUERY_QP, &req,
                       sizeof(req), sizeof(rsp));
    fake_verbs_tell(v->fake, "event QP_FATAL 0x%x", p.a->wire_qpn);
    qrdma_expect_event(v->dev, RDMA_EVENT_QP_FATAL, p.a->qpn);
    assert_ok(verbs_release_cmd(&w));
    qrdma_read(v->dev, w.cmd.rsp + 1, &rsp, sizeof(rsp));
    g_assert_cmpint(rsp.qp_state, ==, RDMA_QPS_ERR);
    g_assert_cmpint(rsp.cur_qp_state, ==, RDMA_QPS_ERR);
    check_flushes(&p);
}

static void test_error_during_a_modify(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    VerbsWaiting w = late_modify(&p, RDMA_QPS_RTS);

    fake_verbs_tell(v->fake, "event QP_FATAL 0x%x", p.a->wire_qpn);
    qrdma_expect_event(v->dev, RDMA_EVENT_QP_FATAL, p.a->qpn);
    assert_ok(verbs_release_cmd(&w));
    check_flushes(&p);
}

/*
 * The host's QP may be in ERR before the host reports it. Posts of that time
 * must not go to a device that does not flush them.
 */
static void test_posted_on_the_way_to_err(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    unsigned recvs = fake_verbs_calls(v->fake, "post_recv");
    unsigned sends = fake_verbs_calls(v->fake, "post_send");
    const RdmaRecvWr wr = { .wr_id = 1 };
    unsigned flushed = 0;
    VerbsWaiting w;
    RdmaWc wc;

    w = late_modify(&p, RDMA_QPS_ERR);
    qrdma_post_recv(p.a, &wr);
    verbs_offer_send(&p, 2);
    qrdma_settle(v->dev);
    assert_ok(verbs_release_cmd(&w));
    /* In any order */
    for (int i = 0; i < 2; i++) {
        qrdma_wait_cq(p.cq_a, &wc);
        g_assert_cmpint(wc.status, ==, RDMA_WC_WR_FLUSH_ERR);
        flushed |= 1 << wc.wr_id;
    }
    g_assert_cmphex(flushed, ==, 1 << 1 | 1 << 2);
    g_assert_cmpuint(fake_verbs_calls(v->fake, "post_recv"), ==, recvs);
    g_assert_cmpuint(fake_verbs_calls(v->fake, "post_send"), ==, sends);
}

/* RESET drops all work requests: one that comes late must not stay behind. */
static void test_posted_on_the_way_to_reset(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    unsigned recvs = fake_verbs_calls(v->fake, "post_recv");
    unsigned sends = fake_verbs_calls(v->fake, "post_send");
    VerbsWaiting w = late_modify(&p, RDMA_QPS_RESET);
    const RdmaRecvWr wr = { .wr_id = 1 };

    qrdma_post_recv(p.a, &wr);
    verbs_offer_send(&p, 2);
    qrdma_settle(v->dev);
    assert_ok(verbs_release_cmd(&w));
    qrdma_settle(v->dev);
    g_assert_cmpuint(fake_verbs_calls(v->fake, "post_recv"), ==, recvs);
    g_assert_cmpuint(fake_verbs_calls(v->fake, "post_send"), ==, sends);
    assert_ok(qrdma_modify_qp_state(p.b, RDMA_QPS_RESET));
    qrdma_bring_up(p.a, p.b, NULL);
    verbs_check_works(&p, 3);
}

/* Check that the device polls a direct queue afterwards, without a doorbell. */
static void check_posted_after(VerbsPair *p, VerbsWaiting *w, uint8_t status)
{
    unsigned sends = fake_verbs_calls(p->v->fake, "post_send");

    verbs_offer_send(p, 3);
    qrdma_settle(p->v->dev);
    g_assert_cmpuint(fake_verbs_calls(p->v->fake, "post_send"), ==, sends);
    fake_verbs_tell(p->v->fake, "release");
    g_assert_cmpint(verbs_await_status(w), ==, status);
    qrdma_wait_until(p->v->dev,
                     fake_verbs_calls(p->v->fake, "post_send") > sends);
}

static void test_posted_during_a_command_that_fails(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    const struct virtio_rdma_qpn destroy = { .qpn = cpu_to_le32(p.a->qpn) };
    VerbsWaiting w;

    fake_verbs_tell(v->fake, "fail modify_qp EBUSY");
    w = late_modify(&p, RDMA_QPS_ERR);
    check_posted_after(&p, &w, VIRTIO_RDMA_S_BUSY);

    fake_verbs_tell(v->fake, "fail destroy_qp EBUSY");
    w = verbs_hold_cmd(v, "destroy_qp", VIRTIO_RDMA_CMD_DESTROY_QP, &destroy,
                       sizeof(destroy), 0);
    check_posted_after(&p, &w, VIRTIO_RDMA_S_BUSY);
}

/*
 * A process miscounts, and its QP is destroyed at once. The driver gets at most
 * one QP_FATAL while the host takes its time to destroy the QP.
 */
static void test_miscounted_during_a_destroy(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    QRdma *d = v->dev;
    struct virtio_rdma_qpn destroy;
    unsigned fatal = 0;
    RdmaEvent event;
    VerbsWaiting w;
    VerbsPair p;

    d->direct = true;
    verbs_restart(v);
    p = verbs_pair(v, RDMA_QPT_RC);
    qrdma_settle(d);
    while (qrdma_poll_event(d, &event)) {
        ;
    }
    fake_verbs_tell(v->fake, "delay destroy_qp");
    /* DESTROY_QP, which the bottom half finds */
    destroy.qpn = cpu_to_le32(p.a->qpn);
    w.v = v;
    w.cmd = qrdma_enqueue(d, VIRTIO_RDMA_CMD_DESTROY_QP, &destroy,
                          sizeof(destroy), 0);
    qrdma_direct_set_producer(d, &p.a->sq, 1 << 20);
    qrdma_doorbell(d, QRDMA_DIRECT_DOORBELL, p.a->qpn);
    fake_verbs_tell(v->fake, "await destroy_qp");
    for (int i = 0; i < 20; i++) {
        qrdma_settle(d);
        while (qrdma_poll_event(d, &event)) {
            fatal += event.type == RDMA_EVENT_QP_FATAL;
        }
    }
    assert_ok(verbs_release_cmd(&w));
    g_assert_cmpuint(fatal, <=, 1);
}

const QRdmaTest verbs_late_tests[] = {
    { "miscounted-during-a-destroy", test_miscounted_during_a_destroy },
    { "reset-before-a-qp-goes", test_reset_before_a_qp_goes },
    { "modify-after-a-stop", test_modify_after_a_stop },
    { "traffic-goes-on", test_traffic_goes_on },
    { "failure", test_failure },
    { "reset", test_reset },
    { "reset-frees-windows-first", test_reset_frees_windows_first },
    { "reset-and-new-objects", test_reset_and_new_objects },
    { "guest-changes-the-request", test_guest_changes_the_request },
    { "guest-changes-the-command", test_guest_changes_the_command },
    { "unplug", test_unplug },
    { "quit", test_quit },
    { "reset-while-a-qp-goes", test_reset_while_a_qp_goes },
    { "bus-master-off-in-a-stopped-vm", test_bus_master_off_in_a_stopped_vm },
    { "error-during-a-query", test_error_during_a_query },
    { "error-during-a-modify", test_error_during_a_modify },
    { "posted-on-the-way-to-err", test_posted_on_the_way_to_err },
    { "posted-on-the-way-to-reset", test_posted_on_the_way_to_reset },
    { "posted-during-a-command-that-fails",
      test_posted_during_a_command_that_fails },
    {}
};
