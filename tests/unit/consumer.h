/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The queues of a consumer, which an engine pulls from: for owners of engines
 * in tests. What is posted is copied, and stays valid after it was pulled until
 * the next pull.
 */
#ifndef CONSUMER_H
#define CONSUMER_H

#include <glib.h>
#include "rdma/roce.h"

typedef struct Consumer Consumer;

Consumer *consumer_new(void);
void consumer_free(Consumer *c);

/*
 * Post to a queue of QP @qpn, or to SRQ @srqn. The engine is not told: see
 * roce_kick(). Pages of a REG_MR are taken over.
 */
void consumer_post_send(Consumer *c, uint32_t qpn, const RdmaSendWr *wr);
void consumer_post_recv(Consumer *c, uint32_t qpn, const RdmaRecvWr *wr);
void consumer_post_srq_recv(Consumer *c, uint32_t srqn, const RdmaRecvWr *wr);

/* How many wait there */
uint32_t consumer_sends(const Consumer *c, uint32_t qpn);
uint32_t consumer_recvs(const Consumer *c, uint32_t qpn);
uint32_t consumer_srq_recvs(const Consumer *c, uint32_t srqn);

/* For RoceOps; empty queues answer RDMA_NEXT_NONE. */
RdmaNext consumer_next_send(Consumer *c, uint32_t qpn, RdmaSendWr *wr);
void consumer_put_back_send(Consumer *c, uint32_t qpn);
RdmaNext consumer_next_recv(Consumer *c, uint32_t qpn, RdmaRecvWr *wr);
RdmaNext consumer_next_srq_recv(Consumer *c, uint32_t srqn, RdmaRecvWr *wr);

/* Drop what waits in the queues of a QP: it was reset, or is gone. */
void consumer_drop_qp(Consumer *c, uint32_t qpn);
/* What was pulled last is not valid any more. */
void consumer_end_pull(Consumer *c);

#endif /* CONSUMER_H */
