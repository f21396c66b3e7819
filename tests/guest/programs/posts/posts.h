/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma_posts: every rdma_post_*() and rdma_get_*_comp() of librdmacm between
 * two processes that connect by RDMA CM, case by case. Both ends run the same
 * case. All of memory is compared with what it must hold, guards included, and
 * every completion with the request that it is for. Any deviation ends the
 * program with a text and exit code 1.
 */
#ifndef RDMA_POSTS_H
#define RDMA_POSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define GRH_BYTES 40

/* Deliberate mistakes of the client: a run with a fault must fail. */
enum fault {
    FAULT_NONE,
    FAULT_BYTE,         /* another byte in a message */
    FAULT_LENGTH,       /* a message that is shorter by a byte */
    FAULT_CONTEXT,      /* another context of a request */
    FAULT_OPCODE,       /* a READ in place of a WRITE */
    FAULT_SIGNAL,       /* a completion of an unsignalled request */
};

extern bool client;
extern enum fault fault;
extern const char *server_address;

/* The properties of an endpoint */
struct wish {
    enum rdma_port_space ps;    /* RDMA_PS_TCP: RC, RDMA_PS_UDP: UD */
    bool srq;                   /* receives come from an SRQ */
    bool signal_all;            /* sq_sig_all */
    bool no_rnr_retry;
};

/* A connected QP and the capacities that it got */
struct end {
    struct rdma_cm_id *id;
    struct ibv_qp_cap cap;
};

/* Registered memory, and an image of its expected contents */
struct area {
    uint8_t *at;
    uint8_t *image;
    size_t size;
    struct ibv_mr *mr;
};

/* The peer's area */
struct remote {
    uint64_t addr;
    uint32_t rkey;
};

void fail(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), noreturn));
/* Require that a call returns 0, not -1 with errno. */
void must(const char *what, int ret);
/* Require that a call fails with this errno. */
void must_fail(const char *what, int ret, int expected);

/* connect.c */
void meet_first(void);
/* Wait until the peer has called it, too; it gets the area to use. */
struct remote meet(const struct area *area);
struct end connect_ends(const struct wish *wish);
void disconnect(struct end *e);

/* memory.c */
struct area new_area(struct end *e, size_t size,
                     struct ibv_mr *(*reg)(struct rdma_cm_id *, void *,
                                           size_t));
void free_area(struct area *a);
/* Bytes that depend on the seed and their position. */
void pattern(uint8_t *to, size_t size, uint32_t seed);
/* Write a pattern to the memory. */
void fill(struct area *a, size_t offset, size_t size, uint32_t seed);
/* The memory must hold bytes @from .. of the pattern by the next check(). */
void due(struct area *a, size_t offset, size_t size, uint32_t seed,
         size_t from);
void check(const struct area *a, const char *what);
struct ibv_sge sge_of(const struct area *a, size_t offset, uint32_t size);

/* completion.c */
bool is_rxe(const struct end *e);
void *context_of(uint32_t n);
/* Require the next completion to be this one. */
struct ibv_wc get_send(struct end *e, uint32_t n, enum ibv_wc_opcode opcode,
                       uint32_t len);
struct ibv_wc get_recv(struct end *e, uint32_t n, uint32_t len);
void get_send_error(struct end *e, uint32_t n, enum ibv_wc_status status);
void get_recv_error(struct end *e, uint32_t n, enum ibv_wc_status status);
/* Require that neither queue has a completion. */
void no_more(struct end *e);

typedef void case_fn(void);

case_fn exchange_messages, exchange_vectors, read_and_write,
    read_and_write_vectors, inline_data, unsignalled, signal_all, shared_queue;
case_fn datagrams, datagrams_inline, datagrams_unsignalled;
case_fn without_region, wrong_key, wrong_place, wrong_local_key, long_message,
    no_receive, many_sges, long_inline, full_queue, datagram_without_region;

#endif
