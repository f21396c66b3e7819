/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The work queues of a consumer, for tests that own an engine, which pulls from
 * the queues. Posted requests are copied. A pulled request stays valid until
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
 * Post to a queue of QP @qpn, or to SRQ @srqn, without a roce_kick(). If the
 * status of a REG_MR is RDMA_WC_SUCCESS, its pages are taken over. The WRs of
 * UD and GSI have an address vector instead; use consumer_post_datagram() for
 * them.
 */
void consumer_post_send(Consumer *c, uint32_t qpn, const RdmaSendWr *wr);
void consumer_post_datagram(Consumer *c, uint32_t qpn, const RdmaSendWr *wr);
void consumer_post_recv(Consumer *c, uint32_t qpn, const RdmaRecvWr *wr);
void consumer_post_srq_recv(Consumer *c, uint32_t srqn, const RdmaRecvWr *wr);

/* The number of requests in a queue */
uint32_t consumer_sends(const Consumer *c, uint32_t qpn);
uint32_t consumer_recvs(const Consumer *c, RdmaQueue queue, uint32_t id);

/*
 * The functions of RdmaConsumerOps. An empty send queue answers RDMA_NEXT_NONE.
 */
RdmaNext consumer_next_send(Consumer *c, uint32_t qpn, RdmaSendWr *wr);
void consumer_put_back_send(Consumer *c, uint32_t qpn);
bool consumer_next_recv(Consumer *c, RdmaQueue queue, uint32_t id,
                        RdmaRecvWr *wr);

/*
 * Drop the requests in the queues of a QP or SRQ that was reset or destroyed.
 */
void consumer_drop_qp(Consumer *c, uint32_t qpn);
void consumer_drop_srq(Consumer *c, uint32_t srqn);
/* Free the request that was pulled last. */
void consumer_end_pull(Consumer *c);

#endif /* CONSUMER_H */
