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
 * roce_kick(). Pages of a REG_MR are taken over if its status is
 * RDMA_WC_SUCCESS. On UD and GSI, where a WR has an address instead, datagrams
 * are posted.
 */
void consumer_post_send(Consumer *c, uint32_t qpn, const RdmaSendWr *wr);
void consumer_post_datagram(Consumer *c, uint32_t qpn, const RdmaSendWr *wr);
void consumer_post_recv(Consumer *c, uint32_t qpn, const RdmaRecvWr *wr);
void consumer_post_srq_recv(Consumer *c, uint32_t srqn, const RdmaRecvWr *wr);

/* How many wait there */
uint32_t consumer_sends(const Consumer *c, uint32_t qpn);
uint32_t consumer_recvs(const Consumer *c, RdmaQueue queue, uint32_t id);

/* For RoceOps; an empty send queue answers RDMA_NEXT_NONE. */
RdmaNext consumer_next_send(Consumer *c, uint32_t qpn, RdmaSendWr *wr);
void consumer_put_back_send(Consumer *c, uint32_t qpn);
bool consumer_next_recv(Consumer *c, RdmaQueue queue, uint32_t id,
                        RdmaRecvWr *wr);

/* Drop what waits in the queues of a QP or an SRQ: it was reset, or is gone. */
void consumer_drop_qp(Consumer *c, uint32_t qpn);
void consumer_drop_srq(Consumer *c, uint32_t srqn);
/* What was pulled last is not valid any more. */
void consumer_end_pull(Consumer *c);

#endif /* CONSUMER_H */
