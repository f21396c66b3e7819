/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The double of libibverbs: completion queues and their channels.
 */
#include "qemu/osdep.h"
#include "internal.h"

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    int err = fake_alive(context, fake_begin("create_comp_channel"));
    FakeChannel *channel = NULL;

    if (!err) {
        channel = fake_new(FAKE_CHANNEL, sizeof(*channel));
        if (!fake_fifo_init(&channel->events)) {
            err = errno;
            fake_free(channel);
        }
    }
    if (!err) {
        channel->ibv.context = context;
        channel->ibv.fd = channel->events.fd;
    }
    return fake_end_ptr("create_comp_channel", err,
                        err ? NULL : &channel->ibv, "%s", "");
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
    int err = fake_begin("destroy_comp_channel");
    FakeChannel *channel = FAKE(FakeChannel, ibv);

    fake_check(channel, FAKE_CHANNEL);
    if (!err && channel->obj.users) {
        err = EBUSY;
    }
    if (!err) {
        fake_fifo_clear(&channel->events, NULL);
        fake_free(channel);
    }
    return fake_end("destroy_comp_channel", err, "%s", "");
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
                             void *cq_context,
                             struct ibv_comp_channel *channel,
                             int comp_vector)
{
    int err = fake_alive(context, fake_begin("create_cq"));
    FakeCq *cq = NULL;

    if (channel) {
        fake_check(FAKE(FakeChannel, channel), FAKE_CHANNEL);
    }
    if (!err && (cqe < 1 || cqe > fake.attr.max_cqe || comp_vector < 0 ||
                 comp_vector >= context->num_comp_vectors)) {
        err = EINVAL;
    }
    if (!err && fake_full(FAKE_CQ, fake.attr.max_cq)) {
        err = ENOMEM;
    }
    if (!err) {
        cq = fake_new(FAKE_CQ, sizeof(*cq));
        g_queue_init(&cq->cqes);
        cq->ibv.context = context;
        cq->ibv.channel = channel;
        cq->ibv.cq_context = cq_context;
        cq->ibv.handle = cq->obj.number;
        cq->ibv.cqe = cqe;
        if (channel) {
            FAKE(FakeChannel, channel)->obj.users++;
            channel->refcnt++;
        }
    }
    return fake_end_ptr("create_cq", err, err ? NULL : &cq->ibv,
                        "cq=0x%x cqe=%d", cq ? cq->obj.number : 0, cqe);
}

int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
    FakeCq *cq = FAKE(FakeCq, ibv);
    int err = fake_begin_on("resize_cq", cq, FAKE_CQ, &ibv->context);

    if (!err && (cqe < 1 || cqe > fake.attr.max_cqe ||
                 cqe < cq->cqes.length)) {
        err = EINVAL;
    }
    if (!err) {
        ibv->cqe = cqe;
    }
    return fake_end("resize_cq", err, "cq=0x%x cqe=%d", cq->obj.number, cqe);
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
    FakeCq *cq = FAKE(FakeCq, ibv);
    int err = fake_begin_destroy("destroy_cq", cq, FAKE_CQ, &ibv->context);
    uint32_t number;

    number = cq->obj.number;
    if (!err) {
        fake_event_flush(ibv->context, &cq->obj);
        if (ibv->channel) {
            FakeChannel *channel = FAKE(FakeChannel, ibv->channel);

            fake_fifo_remove(&channel->events, cq);
            channel->obj.users--;
            ibv->channel->refcnt--;
        }
        /* Like the real library, wait until all events read are acknowledged */
        while (cq->comp_reported != cq->comp_acked) {
            fake_wait();
        }
        g_queue_clear_full(&cq->cqes, g_free);
        fake_free(cq);
    }
    return fake_end("destroy_cq", err, "cq=0x%x", number);
}

int ibv_get_cq_event(struct ibv_comp_channel *ibv, struct ibv_cq **ibv_cq,
                     void **cq_context)
{
    int err = fake_begin("get_cq_event");
    FakeChannel *channel = FAKE(FakeChannel, ibv);
    FakeCq *cq = NULL;

    fake_check(channel, FAKE_CHANNEL);
    if (!err) {
        cq = fake_fifo_pop(&channel->events);
        err = cq ? 0 : errno;
    }
    if (cq) {
        cq->comp_reported++;
        *ibv_cq = &cq->ibv;
        *cq_context = cq->ibv.cq_context;
    }
    errno = fake_end(err == EAGAIN ? NULL : "get_cq_event", err, "cq=0x%x",
                     cq ? cq->obj.number : 0);
    return err ? -1 : 0;
}

void ibv_ack_cq_events(struct ibv_cq *ibv, unsigned int nevents)
{
    FakeCq *cq = FAKE(FakeCq, ibv);

    fake_begin("ack_cq_events");
    fake_check(cq, FAKE_CQ);
    cq->comp_acked += nevents;
    fake_changed();
    fake_end("ack_cq_events", 0, "cq=0x%x %u", cq->obj.number, nevents);
}

void fake_cq_add(FakeCq *cq, const FakeCqe *cqe)
{
    bool wakes = cq->arm == FAKE_ARM_ANY ||
        (cq->arm == FAKE_ARM_SOLICITED &&
         (cqe->solicited || cqe->wc.status != IBV_WC_SUCCESS));

    if (cq->overrun) {
        return;
    }
    if (cq->cqes.length >= cq->ibv.cqe) {
        cq->overrun = true;
        fake_event(IBV_EVENT_CQ_ERR, cq->ibv.context, &cq->obj);
        return;
    }
    g_queue_push_tail(&cq->cqes, g_memdup2(cqe, sizeof(*cqe)));
    if (wakes && cq->ibv.channel) {
        cq->arm = FAKE_ARM_NONE;
        fake_fifo_push(&FAKE(FakeChannel, cq->ibv.channel)->events, cq);
    }
}

/* Completions stay, as with rxe, but free no slots any more. */
void fake_cq_forget(FakeCq *cq, FakeQp *qp)
{
    for (GList *l = cq->cqes.head; l; l = l->next) {
        FakeCqe *cqe = l->data;

        if (cqe->qp == qp) {
            cqe->qp = NULL;
        }
    }
}

static void free_slots(const FakeCqe *cqe)
{
    FakeSlots *slots;

    if (cqe->qp && !cqe->scripted) {
        slots = cqe->send ? &cqe->qp->send : &cqe->qp->recv;
        slots->freed = MAX(slots->freed, cqe->frees);
    }
}

int fake_poll_cq(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
    int err = fake_begin("poll_cq");
    FakeCq *cq = FAKE(FakeCq, ibv);
    int got = 0;

    fake_check(cq, FAKE_CQ);
    while (!err && got < n && !g_queue_is_empty(&cq->cqes)) {
        g_autofree FakeCqe *cqe = g_queue_pop_head(&cq->cqes);

        free_slots(cqe);
        wc[got++] = cqe->wc;
    }
    fake_end(err || got ? "poll_cq" : NULL, err, "cq=0x%x %d",
             cq->obj.number, got);
    return err ? -err : got;
}

int fake_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
    int err = fake_begin("req_notify_cq");
    FakeCq *cq = FAKE(FakeCq, ibv);

    fake_check(cq, FAKE_CQ);
    if (!err) {
        cq->arm = MAX(cq->arm, solicited_only ? FAKE_ARM_SOLICITED
                                              : FAKE_ARM_ANY);
    }
    return fake_end("req_notify_cq", err, "cq=0x%x solicited=%d",
                    cq->obj.number, solicited_only);
}
