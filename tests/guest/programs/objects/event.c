/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of queue pairs */
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "objects.h"

#define OTHERS 8
#define QPN_MAX (1 << 24)

static void *destroy(void *qp)
{
    if (ibv_destroy_qp(qp)) {
        fail("cannot destroy a QP");
    }
    return NULL;
}

/* Create QPs until one has this number, and destroy the others. */
static struct ibv_qp *new_qp_numbered(uint32_t qpn, struct pair *p,
                                      struct ibv_srq *srq)
{
    for (int i = 0; i < QPN_MAX; i++) {
        struct ibv_qp *qp = new_qp(IBV_QPT_RC, p->bcq, srq, 0);

        if (qp->qp_num == qpn) {
            return qp;
        }
        destroy(qp);
    }
    fail("no QP has the number %u again", qpn);
}

static void write_once(struct pair *p)
{
    struct memory m = new_memory(64, IBV_ACCESS_LOCAL_WRITE |
                                     IBV_ACCESS_REMOTE_WRITE);

    reconnect(p);
    must_end(rdma(p, IBV_WR_RDMA_WRITE, &m, m.size, (uintptr_t)m.at,
                  m.mr->rkey), IBV_WC_SUCCESS, "a write of the new QP");
    free_memory(&m);
}

/*
 * Destroying a QP waits until its events are acknowledged. Meanwhile, other
 * threads create and destroy QPs. With the argument "all", one of these QPs
 * gets the number of the first QP, and works.
 */
void event_unacknowledged(char **args)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
    struct ibv_srq *srq = ibv_create_srq(dev.pd, &init);
    struct pair p = new_pair(srq);
    struct ibv_qp *others[OTHERS], *again = NULL;
    uint32_t qpn = p.b->qp_num;
    struct ibv_async_event event;
    pthread_t thread;
    int i;

    to_state(p.b, IBV_QPS_ERR);
    if (ibv_get_async_event(dev.ctx, &event) ||
        event.event_type != IBV_EVENT_QP_LAST_WQE_REACHED) {
        fail("no event that the last WQE is reached");
    }
    if (pthread_create(&thread, NULL, destroy, p.b)) {
        fail("no thread");
    }
    usleep(500000);
    for (i = 0; i < OTHERS; i++) {
        others[i] = new_qp(IBV_QPT_RC, p.bcq, srq, 0);
    }
    for (i = 0; i < OTHERS; i++) {
        destroy(others[i]);
    }
    if (args[0] && !strcmp(args[0], "all")) {
        again = new_qp_numbered(qpn, &p, srq);
    }
    ibv_ack_async_event(&event);
    pthread_join(thread, NULL);
    if (again) {
        write_once(&(struct pair) { p.bcq, p.acq, again, p.a });
        destroy(again);
    }
    destroy(p.a);
    if (ibv_destroy_cq(p.acq) || ibv_destroy_cq(p.bcq) ||
        ibv_destroy_srq(srq)) {
        fail("cannot destroy the CQs and the SRQ");
    }
}
