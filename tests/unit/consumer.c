/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "consumer.h"

/* The key of a queue: its number and its kind */
enum {
    SENDS = 0u << 30,
    RECVS = 1u << 30,
    SRQ_RECVS = 2u << 30,
};

/* A posted work request, with the lists and data that it points to */
typedef struct Posted {
    RdmaSendWr send;
    RdmaRecvWr recv;
    RdmaSge *sges;
    uint8_t *inline_data;
    uint64_t *pages;                /* of a REG_MR; the engine takes it over */
} Posted;

struct Consumer {
    GHashTable *queues;             /* of GQueue of Posted, by key */
    Posted *pulled;                 /* the last request pulled, or NULL */
};

static void posted_free(Posted *p)
{
    if (p) {
        g_free(p->sges);
        g_free(p->inline_data);
        g_free(p);
    }
}

/* Free a request that the engine has not pulled. */
static void posted_drop(gpointer posted)
{
    Posted *p = posted;

    g_free(p->pages);
    posted_free(p);
}

static void queue_free(gpointer queue)
{
    g_queue_free_full(queue, posted_drop);
}

Consumer *consumer_new(void)
{
    Consumer *c = g_new0(Consumer, 1);

    c->queues = g_hash_table_new_full(NULL, NULL, NULL, queue_free);
    return c;
}

void consumer_free(Consumer *c)
{
    posted_free(c->pulled);
    g_hash_table_unref(c->queues);
    g_free(c);
}

static GQueue *find(const Consumer *c, uint32_t name)
{
    return g_hash_table_lookup(c->queues, GUINT_TO_POINTER(name));
}

static void push(Consumer *c, uint32_t name, Posted *p)
{
    GQueue *queue = find(c, name);

    if (!queue) {
        queue = g_queue_new();
        g_hash_table_insert(c->queues, GUINT_TO_POINTER(name), queue);
    }
    g_queue_push_tail(queue, p);
}

static uint32_t count(const Consumer *c, uint32_t name)
{
    GQueue *queue = find(c, name);

    return queue ? g_queue_get_length(queue) : 0;
}

void consumer_end_pull(Consumer *c)
{
    g_clear_pointer(&c->pulled, posted_free);
}

static Posted *pull(Consumer *c, uint32_t name)
{
    GQueue *queue = find(c, name);

    consumer_end_pull(c);
    c->pulled = queue ? g_queue_pop_head(queue) : NULL;
    return c->pulled;
}

static RdmaSge *copy_sges(const RdmaSge *sges, uint32_t n)
{
    return n ? g_memdup2(sges, n * sizeof(*sges)) : NULL;
}

static Posted *post_send(Consumer *c, uint32_t qpn, const RdmaSendWr *wr)
{
    Posted *p = g_new0(Posted, 1);

    p->send = *wr;
    p->send.sg_list = p->sges = copy_sges(wr->sg_list, wr->num_sge);
    if (wr->inline_len) {
        p->inline_data = g_memdup2(wr->inline_data, wr->inline_len);
        p->send.inline_data = p->inline_data;
    }
    push(c, SENDS | qpn, p);
    return p;
}

void consumer_post_send(Consumer *c, uint32_t qpn, const RdmaSendWr *wr)
{
    Posted *p = post_send(c, qpn, wr);

    if (wr->opcode == RDMA_WR_REG_MR && wr->status == RDMA_WC_SUCCESS &&
        wr->wr.reg.npages) {
        p->pages = wr->wr.reg.pages;
    }
}

void consumer_post_datagram(Consumer *c, uint32_t qpn, const RdmaSendWr *wr)
{
    post_send(c, qpn, wr);
}

static void post_recv(Consumer *c, uint32_t name, const RdmaRecvWr *wr)
{
    Posted *p = g_new0(Posted, 1);

    p->recv = *wr;
    p->recv.sg_list = p->sges = copy_sges(wr->sg_list, wr->num_sge);
    push(c, name, p);
}

void consumer_post_recv(Consumer *c, uint32_t qpn, const RdmaRecvWr *wr)
{
    post_recv(c, RECVS | qpn, wr);
}

void consumer_post_srq_recv(Consumer *c, uint32_t srqn, const RdmaRecvWr *wr)
{
    post_recv(c, SRQ_RECVS | srqn, wr);
}

uint32_t consumer_sends(const Consumer *c, uint32_t qpn)
{
    return count(c, SENDS | qpn);
}

uint32_t consumer_recvs(const Consumer *c, RdmaQueue queue, uint32_t id)
{
    return count(c, (queue == RDMA_SRQ ? SRQ_RECVS : RECVS) | id);
}

RdmaNext consumer_next_send(Consumer *c, uint32_t qpn, RdmaSendWr *wr)
{
    Posted *p = pull(c, SENDS | qpn);

    if (!p) {
        return RDMA_NEXT_NONE;
    }
    *wr = p->send;
    return RDMA_NEXT_WR;
}

void consumer_put_back_send(Consumer *c, uint32_t qpn)
{
    g_queue_push_head(find(c, SENDS | qpn), g_steal_pointer(&c->pulled));
}

bool consumer_next_recv(Consumer *c, RdmaQueue queue, uint32_t id,
                        RdmaRecvWr *wr)
{
    Posted *p = pull(c, (queue == RDMA_SRQ ? SRQ_RECVS : RECVS) | id);

    if (p) {
        *wr = p->recv;
    }
    return p;
}

static void drop(Consumer *c, uint32_t name)
{
    g_hash_table_remove(c->queues, GUINT_TO_POINTER(name));
}

void consumer_drop_qp(Consumer *c, uint32_t qpn)
{
    drop(c, SENDS | qpn);
    drop(c, RECVS | qpn);
}

void consumer_drop_srq(Consumer *c, uint32_t srqn)
{
    drop(c, SRQ_RECVS | srqn);
}
