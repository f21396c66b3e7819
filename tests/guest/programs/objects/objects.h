/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma_objects: cases for objects of verbs other than queue pairs. Unless a
 * case says otherwise, its queue pairs are connected to each other on one
 * device. Any deviation ends the program with a text and exit code 1.
 */
#ifndef RDMA_OBJECTS_H
#define RDMA_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#define QKEY 0x11111111

struct device {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    int gid_index;
    union ibv_gid gid;
};

extern struct device dev;

/* Registered memory of its own, zeroed */
struct memory {
    uint8_t *at;
    size_t size;
    struct ibv_mr *mr;
};

/* Two connected QPs, each with a CQ */
struct pair {
    struct ibv_cq *acq, *bcq;
    struct ibv_qp *a, *b;
};

void fail(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), noreturn));
/* Require that a call failed with this errno; got is its return value. */
void must_fail(const char *what, int got, int expected);

void open_device(const char *name, int gid_index);
struct memory new_memory(size_t size, int access);
void free_memory(struct memory *m);
void fill(void *at, size_t size, uint8_t seed);
bool filled(const void *at, size_t size, uint8_t seed);

struct ibv_cq *new_cq(int depth);
struct ibv_qp *new_qp(enum ibv_qp_type type, struct ibv_cq *cq,
                      struct ibv_srq *srq, uint32_t create_flags);
void to_state(struct ibv_qp *qp, enum ibv_qp_state state);
/* From RESET, or from any state, to RTS */
void connect_rc(struct ibv_qp *a, struct ibv_qp *b);
/* Attributes of the path to @peer, all that a transition may need */
struct ibv_qp_attr path_to(const struct ibv_qp *peer, enum ibv_qp_state state);
void start_ud(struct ibv_qp *qp);
/* RC. The receives of b come from srq if srq is not NULL. */
struct pair new_pair(struct ibv_srq *srq);
void reconnect(struct pair *p);
void free_pair(struct pair *p);

void post(struct ibv_qp *qp, struct ibv_send_wr *wr);
void post_recv(struct ibv_qp *qp, struct memory *m, uint64_t wr_id);
/* Write or read one piece of memory. Return the status of the completion. */
enum ibv_wc_status rdma(struct pair *p, enum ibv_wr_opcode opcode,
                        struct memory *m, size_t len, uint64_t addr,
                        uint32_t rkey);
void must_end(enum ibv_wc_status got, enum ibv_wc_status expected,
              const char *what);
/* Wait for the next completion. Return whether one came in time. */
bool next_wc(struct ibv_cq *cq, struct ibv_wc *wc, int timeout_ms);
/* Require the next completion to be a successful one of wr_id. */
struct ibv_wc expect(struct ibv_cq *cq, uint64_t wr_id);
void expect_none(struct ibv_cq *cq);
/* Require the next asynchronous event to be this one, about this object. */
void expect_event(enum ibv_event_type type, const void *object);
double now(void);

typedef void case_fn(char **args);

case_fn srq_shared, srq_full, srq_limit, srq_destroy_qp, srq_reset_qp,
    srq_last_wqe, srq_in_use, srq_datagrams;
case_fn srq_deep, srq_deep_list, srq_deep_limit;
case_fn srq_deep_destroy_qp, srq_deep_reset_qp;
case_fn mw_type_1, mw_type_2, mw_belongs_to_qp, mw_holds_region;
case_fn mr_large, mr_iova, mr_rereg, mr_rereg_read_only, mr_time;
case_fn ah_from_wc;
case_fn values_wide, values_refused, values_ignored;
case_fn caps;
case_fn contexts;
case_fn event_unacknowledged;
case_fn cq_foreign_completion, cq_receive_of_srq;
case_fn rights_of_the_kernel;
case_fn mcast_loopback, mcast_block, mcast_detach, mcast_receive, mcast_send;

#endif
