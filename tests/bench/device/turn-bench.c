/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a guest can delay QEMU's main loop: floods of virtqueues, and how long
 * other work in QEMU waits meanwhile. In "make check" this program shows that
 * each flood ends. "make bench BENCH=turns" prints the times.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqos/virtio-rdma.h"
#include "rdma/fault-test.h"
#include "flood-bench.h"
#include "flood-direct.h"
#include "flood-guest.h"

#define DEEP 32768
#define MAX_MR 65536
#define HELD 16384                  /* the most that faults hold back */
#define COMMANDS 512                /* that the control virtqueue holds */
#define SRQ_WRS 16384

/* The floods: their objects, how they start, when they are done */

static void idle_prepare(Flood *f)
{

}

static void idle_start(Flood *f)
{

}

static bool idle_done(Flood *f)
{
    static int turns;

    return ++turns % 5000 == 0;
}

static void mcast_prepare(Flood *f)
{
    static const uint8_t group[RDMA_GID_LEN] = { 0xff, 0x0e, [15] = 1 };
    RdmaSge s = sge(f, 4000);
    RdmaSendWr wr = {
        .opcode = RDMA_WR_SEND,
        .num_sge = 1,
        .sg_list = &s,
        .wr.ud = {
            .remote_qpn = RDMA_QPN_MCAST,
            .remote_qkey = QRDMA_QKEY,
            .av = qrdma_av(f->d, 0),
        },
    };

    memcpy(wr.wr.ud.av.dgid, group, sizeof(group));
    new_cqs(f, NQP, QUEUE_SIZE, true);
    new_qps(f, NQP, RDMA_QPT_UD);
    for (uint32_t i = 0; i < f->nqp; i++) {
        assert_ok(qrdma_attach_mcast(&f->qps[i], group));
    }
    post_receives(f, 128);
    prepare_sends(f, 1, &wr, 128);
}

static void mcast_start(Flood *f)
{
    kick(f, sq_of(f, 0));
}

static bool mcast_done(Flood *f)
{
    return all_used(f, sq_of(f, 0)) && receives_done(f);
}

static void err_prepare(Flood *f)
{
    struct virtio_rdma_modify_qp_req req = {
        .attr_mask = cpu_to_le32(RDMA_QP_STATE), .attr.qp_state = RDMA_QPS_ERR,
    };

    new_cqs(f, NQP, QUEUE_SIZE, true);
    new_qps(f, NQP, RDMA_QPT_RC);
    post_receives(f, QUEUE_SIZE);
    for (uint32_t i = 0; i < f->nqp; i++) {
        req.qpn = cpu_to_le32(f->qps[i].qpn);
        command(f, VIRTIO_RDMA_CMD_MODIFY_QP, &req, sizeof(req));
    }
}

static bool err_done(Flood *f)
{
    return commands_done(f) && receives_done(f);
}

/* All QPs share a CQ without buffers, whose backlog becomes long. */
static void backlog_prepare(Flood *f)
{
    RdmaQpAttr attr = { .qp_state = RDMA_QPS_ERR };

    new_cqs(f, 1, DEEP, false);
    new_qps(f, DEEP / QUEUE_SIZE, RDMA_QPT_RC);
    post_receives(f, QUEUE_SIZE);
    for (uint32_t i = 0; i < f->nqp; i++) {
        assert_ok(qrdma_modify_qp(&f->qps[i], RDMA_QP_STATE, &attr));
    }
    qrdma_wait_until(f->d, receives_done(f));
    new_qps(f, 1, RDMA_QPT_RC);
}

static void reset_prepare(Flood *f)
{
    struct virtio_rdma_modify_qp_req req = {
        .attr_mask = cpu_to_le32(RDMA_QP_STATE),
        .attr.qp_state = RDMA_QPS_RESET,
    };

    backlog_prepare(f);
    req.qpn = cpu_to_le32(f->qps[f->nqp - 1].qpn);
    for (int i = 0; i < 512; i++) {
        command(f, VIRTIO_RDMA_CMD_MODIFY_QP, &req, sizeof(req));
    }
}

static void refill_prepare(Flood *f)
{
    backlog_prepare(f);
    fill(f, VIRTIO_RDMA_CQ_VQ(f->cqns[0]), f->scratch + 2048, 64, true,
         QUEUE_SIZE);
}

static void refill_start(Flood *f)
{
    kick(f, VIRTIO_RDMA_CQ_VQ(f->cqns[0]));
}

/* The device writes as fast as it gets buffers. */
static bool refill_done(Flood *f)
{
    static int rounds;

    if (!all_used(f, VIRTIO_RDMA_CQ_VQ(f->cqns[0]))) {
        return false;
    }
    fill(f, VIRTIO_RDMA_CQ_VQ(f->cqns[0]), f->scratch + 2048, 64, true,
         QUEUE_SIZE);
    refill_start(f);
    return ++rounds % 16 == 0;
}

static void create_prepare(Flood *f)
{
    struct virtio_rdma_create_qp_req req = {};
    struct virtio_rdma_qpn id;
    RdmaQpInitAttr init;
    uint32_t qpn = 0;

    new_cqs(f, NQP, QUEUE_SIZE, true);
    new_qps(f, NQP, RDMA_QPT_RC);
    init = qp_init(f, RDMA_QPT_RC);
    req.pdn = cpu_to_le32(init.pdn);
    req.qp_type = init.qp_type;
    req.send_cqn = cpu_to_le32(init.send_cqn);
    req.recv_cqn = cpu_to_le32(init.recv_cqn);
    req.max_send_wr = cpu_to_le32(QUEUE_SIZE);
    req.max_recv_wr = cpu_to_le32(QUEUE_SIZE);
    req.max_send_sge = cpu_to_le32(32);
    req.max_recv_sge = cpu_to_le32(32);
    req.max_inline_data = cpu_to_le32(512);
    /* Find the only QPN that is free. */
    while (qpn < 2 || qpn_taken(f, qpn)) {
        qpn++;
    }
    id.qpn = cpu_to_le32(qpn);
    fill(f, VIRTIO_RDMA_SQ_VQ(f->d->max_cq, qpn), f->scratch, 64, false,
         QUEUE_SIZE);
    fill(f, VIRTIO_RDMA_RQ_VQ(f->d->max_cq, qpn), f->scratch, 64, false,
         QUEUE_SIZE);
    for (int i = 0; i < 256; i++) {
        command(f, VIRTIO_RDMA_CMD_CREATE_QP, &req, sizeof(req));
        command(f, VIRTIO_RDMA_CMD_DESTROY_QP, &id, sizeof(id));
    }
}

/* Page lists with 8 Mi entries, all of the same page */
static void register_prepare(Flood *f)
{
    uint64_t table = qrdma_alloc(f->d, PAGE);
    uint64_t le[PAGE / sizeof(uint64_t)];
    struct virtio_rdma_reg_user_mr_req req = {
        .pdn = cpu_to_le32(f->pd->pdn),
        .access = cpu_to_le32(RDMA_ACCESS_LOCAL_WRITE),
        .length = cpu_to_le64(8ull << 32),
        .pages = cpu_to_le64(table),
        .npages = cpu_to_le32(8 << 20),
        .levels = cpu_to_le32(3),
    };

    for (int i = 0; i < ARRAY_SIZE(le); i++) {
        le[i] = cpu_to_le64(table);
    }
    qrdma_write(f->d, table, le, sizeof(le));
    for (int i = 0; i < 4; i++) {
        /* There is room for one such region. The other commands fail. */
        command(f, VIRTIO_RDMA_CMD_REG_USER_MR, &req, sizeof(req));
    }
}

/* Deregistration frees such a page list. */
static void deregister_prepare(Flood *f)
{
    struct virtio_rdma_dereg_mr_req req;

    register_prepare(f);
    send_commands(f);
    qrdma_wait_until(f->d, all_used(f, VIRTIO_RDMA_CTRL_VQ));
    req.mrn = cpu_to_le32(f->mr->mrn + 1);
    command(f, VIRTIO_RDMA_CMD_DEREG_MR, &req, sizeof(req));
}

/* Each WQE has a page list, which the device reads when the WQE is posted. */
static void lists_prepare(Flood *f)
{
    uint64_t list = qrdma_alloc(f->d, 1024 * sizeof(uint64_t));
    struct virtio_rdma_sq_wqe wqe;
    uint8_t bytes[QRDMA_WQE_ROOM];
    QRdmaMr *mr;
    RdmaSendWr wr = { .opcode = RDMA_WR_REG_MR };
    uint64_t at = qrdma_alloc(f->d, PAGE);

    new_cqs(f, NQP, QUEUE_SIZE, true);
    new_qps(f, NQP, RDMA_QPT_RC);
    mr = qrdma_alloc_mr(f->pd, RDMA_ACCESS_LOCAL_WRITE, 1024);
    wr.wr.reg.mrn = mr->mrn;
    wr.wr.reg.key = mr->lkey;
    wr.wr.reg.access = RDMA_ACCESS_LOCAL_WRITE;
    qrdma_encode_send(&f->qps[0], &wr, bytes);
    memcpy(&wqe, bytes, sizeof(wqe));
    wqe.wr.reg.npages = cpu_to_le32(1024);
    wqe.wr.reg.start = 0;
    wqe.wr.reg.length = cpu_to_le64(1024 * PAGE);
    wqe.wr.reg.pages = cpu_to_le64(list);
    qrdma_write(f->d, at, &wqe, sizeof(wqe));
    fill(f, sq_of(f, 0), at, sizeof(wqe), false, QUEUE_SIZE);
}

static void one_sq_start(Flood *f)
{
    kick(f, sq_of(f, 0));
}

static bool one_sq_done(Flood *f)
{
    return all_used(f, sq_of(f, 0));
}

static void message_prepare(Flood *f, RdmaWrOpcode opcode)
{
    RdmaSge s = sge(f, WINDOW);
    RdmaSendWr wr = { .opcode = opcode, .num_sge = 1, .sg_list = &s };
    QRdmaMr *mr;

    new_cqs(f, NQP, QUEUE_SIZE, true);
    new_qps(f, NQP, RDMA_QPT_RC);
    mr = qrdma_reg_mr_at(f->pd, 0, WINDOW,
                         RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE,
                         f->data);
    wr.wr.rdma.rkey = mr->rkey;
    prepare_sends(f, f->nqp, &wr, 2);
}

static void write_prepare(Flood *f)
{
    message_prepare(f, RDMA_WR_RDMA_WRITE);
}

static void read_prepare(Flood *f)
{
    message_prepare(f, RDMA_WR_RDMA_READ);
}

/* Full send queues of WRs that do nothing. */
static void doorbell_prepare(Flood *f)
{
    RdmaSendWr wr = { .opcode = RDMA_WR_RDMA_WRITE };

    new_cqs(f, NQP, QUEUE_SIZE, true);
    new_qps(f, NQP, RDMA_QPT_RC);
    prepare_sends(f, f->nqp, &wr, QUEUE_SIZE);
}

/* Nothing is sent, and each WQE completes with an error. */
static void bad_prepare(Flood *f)
{
    RdmaSendWr wr = { .opcode = 99 };

    new_cqs(f, NQP, QUEUE_SIZE, true);
    new_qps(f, NQP, RDMA_QPT_RC);
    prepare_sends(f, f->nqp, &wr, QUEUE_SIZE);
}

static uint32_t srq_vq_of(Flood *f, uint32_t i)
{
    return VIRTIO_RDMA_SRQ_VQ(f->d->max_cq, f->d->max_qp, i);
}

/* SRQs with full rings, whose buffers the device has to return */
static void srq_destroy_prepare(Flood *f)
{
    RdmaSrqAttr attr = {
        .pdn = f->pd->pdn, .max_wr = QUEUE_SIZE, .max_sge = 4,
    };
    RdmaRecvWr wr = {};
    uint8_t wqe[QRDMA_WQE_ROOM];
    struct virtio_rdma_srqn id;
    uint32_t srqn;

    f->wqe_len = qrdma_encode_recv(&wr, wqe);
    qrdma_write(f->d, f->scratch, wqe, f->wqe_len);
    for (uint32_t i = 0; i < f->d->max_srq; i++) {
        assert_ok(qrdma_try_create_srq(f->d, &attr, &srqn));
    }
    for (uint32_t i = 0; i < f->d->max_srq; i++) {
        fill(f, srq_vq_of(f, i), f->scratch, f->wqe_len, false, QUEUE_SIZE);
        id.srqn = cpu_to_le32(i);
        command(f, VIRTIO_RDMA_CMD_DESTROY_SRQ, &id, sizeof(id));
    }
}

static void gid_prepare(Flood *f)
{
    struct virtio_rdma_add_gid_req req = {
        .gid_type = cpu_to_le32(VIRTIO_RDMA_GID_TYPE_ROCE_V2),
        .port_num = cpu_to_le32(1),
    };

    for (int i = 0; i < 512; i++) {
        stw_be_p(req.gid, 0xfe80);
        stl_be_p(req.gid + 12, i);
        req.index = cpu_to_le16(i % 128);
        command(f, VIRTIO_RDMA_CMD_ADD_GID, &req, sizeof(req));
    }
}

/* To check a limit, the device counts the WQEs. */
static void srq_limit_prepare(Flood *f)
{
    struct virtio_rdma_modify_srq_req req = { .limit = cpu_to_le32(SRQ_WRS) };

    for (uint32_t i = 0; i < f->d->max_srq_direct; i++) {
        req.srqn = cpu_to_le32(flood_direct_srq(f->pd, SRQ_WRS, SRQ_WRS,
                                                f->data));
        command(f, VIRTIO_RDMA_CMD_MODIFY_SRQ, &req, sizeof(req));
    }
}

/* Events of thousands of QPs wait for buffers. */
static void events_prepare(Flood *f)
{
    RdmaQpAttr attr = { .qp_state = RDMA_QPS_SQD, .en_sqd_async_notify = 1 };
    struct virtio_rdma_cqn id;

    new_cqs(f, NQP, 8, false);
    for (int i = 0; i < 4000; i++) {
        QRdmaQp qp = flood_direct_ud(f->pd, f->cqns[0], f->data);

        qrdma_start_ud(&qp, QRDMA_QKEY);
        assert_ok(qrdma_modify_qp(&qp,
                                  RDMA_QP_STATE | RDMA_QP_EN_SQD_ASYNC_NOTIFY,
                                  &attr));
    }
    for (uint32_t i = 1; i < NQP; i++) {
        id.cqn = cpu_to_le32(f->cqns[i]);
        command(f, VIRTIO_RDMA_CMD_DESTROY_CQ, &id, sizeof(id));
    }
}

/* As many objects as the device has, with full queues */
static void everything_prepare(Flood *f)
{
    struct virtio_rdma_create_mr_req req = {
        .pdn = cpu_to_le32(f->pd->pdn),
        .access = cpu_to_le32(RDMA_ACCESS_LOCAL_WRITE),
        .max_num_sg = cpu_to_le32(1024),
    };

    message_prepare(f, RDMA_WR_RDMA_WRITE);
    post_receives(f, QUEUE_SIZE);
    /* Once all numbers are in use, the other commands fail. */
    for (int i = 0; i < MAX_MR / COMMANDS; i++) {
        for (int k = 0; k < COMMANDS; k++) {
            /* Two rounds fill the available ring. */
            if (i < 2) {
                command(f, VIRTIO_RDMA_CMD_CREATE_MR, &req, sizeof(req));
            }
        }
        f->commands = COMMANDS;
        send_commands(f);
        qrdma_wait_until(f->d, commands_done(f));
    }
}

/* A backlog that becomes long */
static void growth_prepare(Flood *f)
{
    struct virtio_rdma_modify_qp_req req = {
        .attr_mask = cpu_to_le32(RDMA_QP_STATE), .attr.qp_state = RDMA_QPS_ERR,
    };

    new_cqs(f, 1, DEEP, false);
    new_qps(f, DEEP / QUEUE_SIZE, RDMA_QPT_RC);
    post_receives(f, QUEUE_SIZE);
    for (uint32_t i = 0; i < f->nqp; i++) {
        req.qpn = cpu_to_le32(f->qps[i].qpn);
        command(f, VIRTIO_RDMA_CMD_MODIFY_QP, &req, sizeof(req));
    }
}

/* SRQs whose drivers count wrongly, each of one of thousands of QPs */
static void srq_fail_prepare(Flood *f)
{
    RdmaQpInitAttr init;
    uint32_t qpn, wire_qpn;

    new_cqs(f, 1, 8, false);
    init = qp_init(f, RDMA_QPT_RC);
    init.has_srq = true;
    init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
    for (uint32_t i = 0; i < f->d->max_srq_direct; i++) {
        init.srqn = flood_direct_srq(f->pd, 4, 5, f->data);
        assert_ok(qrdma_try_create_qp_nums(f->d, &init, &qpn, &wire_qpn));
    }
    for (int i = 0; i < 4000; i++) {
        flood_direct_ud(f->pd, f->cqns[0], f->data);
    }
}

/* A CQ that thousands of QPs use overruns. */
static void overrun_prepare(Flood *f)
{
    RdmaSendWr wr = { .opcode = 99 };

    new_cqs(f, 1, 8, false);
    new_qps(f, 1, RDMA_QPT_UD);
    for (int i = 0; i < 4000; i++) {
        QRdmaQp qp = flood_direct_ud(f->pd, f->cqns[0], f->data);

        qrdma_start_ud(&qp, QRDMA_QKEY);
    }
    prepare_sends(f, 1, &wr, 16);
}

/* A fault holds back the completions of one QP; another one completes. */
static void held_prepare(Flood *f)
{
    RdmaSendWr wr = qrdma_wr(RDMA_WR_RDMA_WRITE, 0, NULL);
    QRdmaQp held;

    new_cqs(f, 1, DEEP, false);
    new_qps(f, 2, RDMA_QPT_RC);
    fault_add(f->d, "'id': 'f', 'kind': 'completion-delay', 'times': 0, "
              "'delay': 60000, 'qpn': %u", f->qps[0].qpn);
    for (int i = 0; i < HELD / QUEUE_SIZE; i++) {
        prepare_sends(f, 1, &wr, QUEUE_SIZE);
        kick(f, sq_of(f, 0));
        qrdma_wait_until(f->d, one_sq_done(f));
    }
    held = f->qps[0];
    f->qps[0] = f->qps[1];
    f->qps[1] = held;
    prepare_sends(f, 1, &wr, QUEUE_SIZE);
}

/* The QP whose completions are held flushes. */
static void held_flush_prepare(Flood *f)
{
    RdmaQpAttr attr = { .qp_state = RDMA_QPS_ERR };
    RdmaSendWr wr = { .opcode = RDMA_WR_RDMA_WRITE };

    held_prepare(f);
    f->qps[0] = f->qps[1];
    assert_ok(qrdma_modify_qp(&f->qps[0], RDMA_QP_STATE, &attr));
    prepare_sends(f, 1, &wr, QUEUE_SIZE);
}

static void held_reset_prepare(Flood *f)
{
    struct virtio_rdma_modify_qp_req req = {
        .attr_mask = cpu_to_le32(RDMA_QP_STATE),
        .attr.qp_state = RDMA_QPS_RESET,
    };

    held_prepare(f);
    for (int i = 0; i < COMMANDS; i++) {
        /* The last one drops them. */
        req.qpn = cpu_to_le32(f->qps[i == COMMANDS - 1].qpn);
        command(f, VIRTIO_RDMA_CMD_MODIFY_QP, &req, sizeof(req));
    }
}

static void device_reset_start(Flood *f)
{
    QVirtioDevice *vdev = &f->d->pci->vdev;

    vdev->bus->set_status(vdev, 0);
}

static bool at_once(Flood *f)
{
    return idle_done(f);
}

static const FloodOps floods[] = {
    { "nothing", idle_prepare, idle_start, idle_done },
    { "128 multicasts to 125 QPs", mcast_prepare, mcast_start, mcast_done },
    { "125 QPs with 1024 receives to ERR", err_prepare, send_commands,
      err_done },
    { "512 x RESET with 32768 CQEs waiting", reset_prepare, send_commands,
      commands_done },
    { "CQ with 32768 waiting gets buffers", refill_prepare, refill_start,
      refill_done },
    { "256 x CREATE_QP and DESTROY_QP", create_prepare, send_commands,
      commands_done },
    { "4 x REG_USER_MR of 8 Mi pages", register_prepare, send_commands,
      commands_done },
    { "DEREG_MR of 8 Mi pages", deregister_prepare, send_commands,
      commands_done },
    { "1024 x REG_MR with 1024 pages", lists_prepare, one_sq_start,
      one_sq_done },
    { "WRITEs of 2 MiB on 125 QPs", write_prepare, kick_sends_at_once,
      sends_done },
    { "READs of 2 MiB on 125 QPs", read_prepare, kick_sends_at_once,
      sends_done },
    { "125 full send queues at once", doorbell_prepare, kick_sends_at_once,
      sends_done },
    { "125 full send queues of bad WRs", bad_prepare, kick_sends_at_once,
      sends_done },
    { "64 x MODIFY_SRQ with 16384 WQEs", srq_limit_prepare, send_commands,
      commands_done },
    { "64 x DESTROY_SRQ with full rings", srq_destroy_prepare, send_commands,
      commands_done },
    { "512 x ADD_GID", gid_prepare, send_commands, commands_done },
    { "124 x DESTROY_CQ with 4000 events", events_prepare, send_commands,
      commands_done },
    { "32768 CQEs to a backlog", growth_prepare, send_commands, err_done },
    { "64 SRQs fail beside 4000 QPs", srq_fail_prepare, kick_sends_at_once,
      at_once },
    { "CQ of 4000 QPs overruns", overrun_prepare, one_sq_start,
      one_sq_done },
    { "1024 WRs with 16384 CQEs held", held_prepare, one_sq_start,
      one_sq_done },
    { "1024 flushed with 16384 CQEs held", held_flush_prepare, one_sq_start,
      at_once },
    { "512 x RESET with 16384 CQEs held", held_reset_prepare, send_commands,
      commands_done },
    { "reset with everything in use", everything_prepare, device_reset_start,
      at_once },
};

static const FloodBench bench = {
    .path = "/virtio-rdma/flood/",
    .options = "-device virtio-rdma-pci,netdev=n0,id=d0,addr=4",
    .new = flood_new,
    .floods = floods,
    .num_floods = ARRAY_SIZE(floods),
};

int main(int argc, char **argv)
{
    return flood_bench_main(argc, argv, &bench);
}
