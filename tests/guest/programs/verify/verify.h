/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The agreement of both ends of rdma_verify: the parameters of a run, and the
 * plan of every message, which each end derives from the seed alone.
 */
#ifndef VERIFY_H
#define VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#define GRH_BYTES   40
/* Bytes between slots; odd, so that slots start at any alignment. */
#define GUARD       61
#define POISON      0xa5
#define MAX_QPS     1024
#define MAX_PIECES  4
#define QKEY        0x11223344

enum op {
    OP_SEND,
    OP_SEND_IMM,
    OP_WRITE,
    OP_WRITE_IMM,
    OP_READ,
    OP_FADD,
    OP_CAS,
    OP_COUNT,
};

/* The client sends this to the server, in the client's byte order. */
struct params {
    uint64_t seed;
    uint32_t type;          /* enum ibv_qp_type */
    uint32_t mtu;           /* bytes */
    uint32_t size;          /* largest message, bytes */
    uint32_t count;         /* messages per queue pair, direction and round */
    uint32_t rounds;        /* 0: until the peer breaks */
    uint32_t qps;
    uint32_t ops;           /* mask of 1 << enum op */
    uint32_t sq_depth;
    uint32_t rq_depth;
    uint32_t events;        /* wait for completion events, do not spin */
    uint32_t vary;          /* lengths from 0 to size */
    uint32_t pieces;        /* scatter/gather entries per message, at most */
    uint32_t inlined;       /* largest inline message, bytes */
    uint32_t unsignalled;   /* only every n-th request is signalled */
    uint32_t spread;        /* MiB of addresses of each region, if not 0 */
    uint32_t lossy;         /* unreliable service over a link that loses */
    uint32_t min_arrived;   /* percent of the messages; less is a failure */
    uint32_t ack_timeout;   /* 4.096 us << this */
    uint32_t retries;       /* of a request without an acknowledgement */
    uint32_t timeout;       /* seconds */
};

/* One message of one queue pair in one direction. */
struct plan {
    enum op op;
    uint32_t len;
    uint32_t imm;           /* host byte order */
    bool signalled;
    bool takes_receive;
    uint64_t key;           /* of the contents */
    uint64_t operand;       /* what FADD adds, what CAS swaps in */
    bool cas_fails;         /* the comparison has to fail */
};

/* The two words that a queue pair's atomics act on. */
struct words {
    uint64_t counter;
    uint64_t swapped;
};

uint64_t mix(uint64_t x);
void fill(void *buf, size_t len, uint64_t key);
/* @who: 0 for messages of the server, 1 for those of the client. */
struct plan plan_of(const struct params *p, int who, uint32_t round,
                    uint32_t qp, uint32_t i);
/* The words before the first atomic of a round. */
struct words words_of(const struct params *p, int who, uint32_t round,
                      uint32_t qp);
/* Carry out an atomic on the words. Return the old value. */
uint64_t words_step(struct words *w, const struct plan *plan);
const char *op_name(enum op op);
/* A mask from names joined by commas, or 0. */
uint32_t ops_parse(const char *names);

struct address {
    union ibv_gid gid;
    uint64_t base;          /* of the remotely accessible memory */
    uint32_t rkey;
    int rd_atomic;          /* READs and atomics served at once */
    uint32_t qpn[MAX_QPS];
    uint32_t psn[MAX_QPS];
};

/* Memory of one queue pair, carved out of three regions. */
struct buffers {
    unsigned char *tx;      /* source of SEND and WRITE */
    unsigned char *rx;      /* receive buffers */
    unsigned char *back;    /* destination of READ */
    uint64_t *results;      /* destination of atomics */
    unsigned char *target;  /* the peer writes it */
    unsigned char *source;  /* the peer reads it */
    struct words *words;    /* the peer's atomics change it */
};

struct pair {
    struct ibv_qp *qp;
    struct ibv_ah *ah;
    struct buffers buf;
    uint32_t posted, retired;       /* send requests */
    uint32_t recv_posted, received;
    uint32_t recv_due;              /* messages to receive in this round */
    uint32_t next;                  /* the peer's message to receive */
    bool *arrived;                  /* lossy links: whether each one has come */
    struct words far;               /* the words our atomics act on */
    uint32_t send_flushed, recv_flushed;
    bool probing;                   /* a request that may fail is in flight */
    bool broken;
    enum ibv_wc_status why;
};

/* The state of this end. */
extern struct params par;
extern int me;                      /* 0 server, 1 client */
extern uint32_t now_round;
extern struct ibv_context *context;
extern struct ibv_comp_channel *channel;
extern struct ibv_cq *send_cq, *recv_cq;
extern struct ibv_mr *send_mr, *land_mr, *expose_mr;
extern struct address mine, theirs;
extern struct pair pairs[MAX_QPS];
extern size_t tx_stride, rx_stride;
extern int peer_fd;

void __attribute__((noreturn, format(printf, 1, 2)))
fail(const char *fmt, ...);
/* Rounds without end: the peer is going to die. */
static inline bool expect_break(void)
{
    return par.rounds == 0;
}
struct plan plan(int who, uint32_t q, uint32_t i);
/* Bytes before a received message */
size_t grh(void);

/* rdma_options.c; returns the server's address, NULL in the server. */
const char *parse_options(int argc, char **argv, const char **device,
                          int *gid, const char **port);

/* rdma_setup.c */
void connect_peer(const char *host, const char *port);
bool tell(const void *data, size_t size);
bool hear(void *data, size_t size);
void open_device(const char *name);
void set_up(int gid_index);
void release(void);

/* rdma_memory.c */
void make_memory(struct ibv_pd *pd);
uint64_t peer_address(const void *at);
/* Write the contents for the start of the round to a queue pair's memory. */
void prepare(uint32_t q);
/* Compare it with the expected contents after the round. */
void verify(uint32_t q);
void compare(const char *what, const void *is, const void *must,
             size_t size, size_t stride, uint32_t q);

#endif
