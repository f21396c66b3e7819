/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The double of libibverbs takes work requests. As with mlx5 and others, a slot
 * of a queue is free after a later completion was polled.
 */
#include "qemu/osdep.h"
#include "internal.h"

static bool slots_full(const FakeSlots *slots)
{
    return slots->posted - slots->freed >= slots->max;
}

void fake_send_free(void *ptr)
{
    FakeSend *send = ptr;

    g_free(send->inline_data);
    g_free(send);
}

static void take_inline(FakeSend *send, const struct ibv_send_wr *wr)
{
    uint32_t at = 0;

    for (int i = 0; i < wr->num_sge; i++) {
        send->inline_len += wr->sg_list[i].length;
    }
    send->inline_data = g_malloc(send->inline_len + 1);
    for (int i = 0; i < wr->num_sge; i++) {
        memcpy(send->inline_data + at, (void *)wr->sg_list[i].addr,
               wr->sg_list[i].length);
        at += wr->sg_list[i].length;
    }
}

static int check_send(FakeQp *qp, const struct ibv_send_wr *wr)
{
    uint64_t length = 0;

    if (qp->attr.qp_state < IBV_QPS_RTS) {
        return -EINVAL;
    }
    if (wr->num_sge < 0 || wr->num_sge > qp->init.cap.max_send_sge ||
        wr->opcode > IBV_WR_SEND_WITH_INV) {
        return -EINVAL;
    }
    if (qp->ibv.qp_type == IBV_QPT_UD) {
        if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM) {
            return -EINVAL;
        }
        fake_check(FAKE(FakeAh, wr->wr.ud.ah), FAKE_AH);
        if (wr->wr.ud.ah->pd != qp->ibv.pd) {
            return -EINVAL;
        }
    }
    if (wr->opcode == IBV_WR_BIND_MW) {
        fake_check(FAKE(FakeMw, wr->bind_mw.mw), FAKE_MW);
        /* rxe's library reads its key, also where there is no length */
        fake_check(FAKE(FakeMr, wr->bind_mw.bind_info.mr), FAKE_MR);
    }
    for (int i = 0; i < wr->num_sge; i++) {
        length += wr->sg_list[i].length;
    }
    if ((wr->send_flags & IBV_SEND_INLINE) &&
        length > qp->init.cap.max_inline_data) {
        return -ENOMEM;
    }
    return slots_full(&qp->send) ? -ENOMEM : 0;
}

static int post_one(FakeQp *qp, const struct ibv_send_wr *wr)
{
    size_t sges = wr->num_sge * sizeof(struct ibv_sge);
    int err = check_send(qp, wr);
    FakeSend *send;

    if (err) {
        return err;
    }
    send = g_malloc0(sizeof(*send) + sges);
    send->wr = *wr;
    send->wr.next = NULL;
    send->wr.sg_list = NULL;
    send->seq = qp->send.posted++;
    if (sges) {
        memcpy(send->sge, wr->sg_list, sges);
    }
    if (wr->send_flags & IBV_SEND_INLINE) {
        take_inline(send, wr);
    }
    if (qp->ibv.qp_type == IBV_QPT_UD) {
        send->ah = FAKE(FakeAh, wr->wr.ud.ah)->attr;
    }
    g_queue_push_tail(&qp->sq, send);
    fake_run();
    return 0;
}

int fake_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr,
                   struct ibv_send_wr **bad_wr)
{
    FakeQp *qp = FAKE(FakeQp, ibv);
    int err = 0;

    while (wr && !err) {
        err = fake_begin("post_send");
        fake_check(qp, FAKE_QP);
        err = fake_alive(ibv->context, err);
        if (!err) {
            err = -post_one(qp, wr);
        }
        fake_end("post_send", err, "qp=0x%x wr_id=0x%" PRIx64 " opcode=%d",
                 qp->obj.number, wr->wr_id, wr->opcode);
        if (err) {
            *bad_wr = wr;
        }
        wr = wr->next;
    }
    return err;
}

int fake_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr,
                   struct ibv_recv_wr **bad_wr)
{
    FakeQp *qp = FAKE(FakeQp, ibv);
    int err = 0;

    while (wr && !err) {
        FakeRecv *recv = NULL;

        err = fake_begin("post_recv");
        fake_check(qp, FAKE_QP);
        err = fake_alive(ibv->context, err);
        if (!err && (qp->ibv.srq || qp->attr.qp_state == IBV_QPS_RESET)) {
            err = EINVAL;
        }
        if (!err && slots_full(&qp->recv)) {
            err = ENOMEM;
        }
        if (!err) {
            recv = fake_recv_new(wr, qp->init.cap.max_recv_sge);
            err = recv ? 0 : EINVAL;
        }
        if (!err) {
            qp->recv.posted++;
            g_queue_push_tail(&qp->rq, recv);
            fake_run();
        }
        fake_end("post_recv", err, "qp=0x%x wr_id=0x%" PRIx64,
                 qp->obj.number, wr->wr_id);
        if (err) {
            *bad_wr = wr;
        }
        wr = wr->next;
    }
    return err;
}

/* A window of type 1: the key is the next one, which the device chooses. */
int fake_bind_mw(struct ibv_qp *ibv, struct ibv_mw *mw,
                 struct ibv_mw_bind *bind)
{
    FakeQp *qp = FAKE(FakeQp, ibv);
    struct ibv_send_wr wr = {
        .wr_id = bind->wr_id,
        .opcode = IBV_WR_BIND_MW,
        .send_flags = bind->send_flags,
        .bind_mw = {
            .mw = mw,
            .rkey = ibv_inc_rkey(mw->rkey),
            .bind_info = bind->bind_info,
        },
    };
    int err = fake_begin("bind_mw");

    fake_check(qp, FAKE_QP);
    fake_check(FAKE(FakeMw, mw), FAKE_MW);
    err = fake_alive(ibv->context, err);
    if (!err) {
        err = -post_one(qp, &wr);
    }
    if (!err) {
        mw->rkey = wr.bind_mw.rkey;
    }
    return fake_end("bind_mw", err, "qp=0x%x mw=0x%x", qp->obj.number,
                    mw->handle);
}
