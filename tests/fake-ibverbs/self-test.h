/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common parts of the tests of the double of libibverbs: a program that uses
 * verbs.
 */
#ifndef TESTS_FAKE_IBVERBS_SELF_TEST_H
#define TESTS_FAKE_IBVERBS_SELF_TEST_H

#include <infiniband/verbs.h>
#include "client.h"

#define SIZE 16384
#define DEPTH 8

extern FakeVerbs *fake;

/* One end of a connection, with the objects that it needs */
typedef struct End {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *buf;                   /* SIZE bytes */
} End;

/* The device, opened once more. */
struct ibv_context *open_fake(void);
/* An end with a QP in RESET */
End end_new(enum ibv_qp_type type);
void end_free(End *e);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(End, end_free)
/* Two connected ends */
void pair_new(End *a, End *b, enum ibv_qp_type type);
/* Assert that no object is left. */
void assert_clean(void);

/* A QP with the CQ of @e, and with @srq if that is not NULL */
struct ibv_qp *new_qp(End *e, enum ibv_qp_type type, struct ibv_srq *srq);
/* MODIFY_QP with the usual attributes; these return an errno. */
int to_init(struct ibv_qp *qp);
int to_rtr(struct ibv_qp *qp, uint32_t dest);
int to_rts(struct ibv_qp *qp);
int to_state(struct ibv_qp *qp, enum ibv_qp_state state);
void bring_up(struct ibv_qp *qp, uint32_t dest);

/* A piece of the end's memory. */
struct ibv_sge sge_at(End *e, uint32_t offset, uint32_t length);
int recv_at(End *e, uint64_t wr_id, uint32_t offset, uint32_t length);
/* A signalled WR; @sge may be NULL. */
struct ibv_send_wr wr_of(enum ibv_wr_opcode opcode, uint64_t wr_id,
                         struct ibv_sge *sge);
int send_wr(End *e, struct ibv_send_wr *wr);

/* Take the next completion, which must be there. */
struct ibv_wc next_wc(End *e);
void expect_wc(End *e, uint64_t wr_id, enum ibv_wc_status status);
void expect_nothing(End *e);
bool readable(int fd);
/* Take and acknowledge an event of the CQ, and request the next one. */
void take_cq_event(End *e);
/* Take an asynchronous event, which must be there and have @type. */
struct ibv_async_event next_event(struct ibv_context *ctx,
                                  enum ibv_event_type type);

void add_fake_traffic_tests(void);
void add_fake_fault_tests(void);

/* Add a test that must leave no objects behind. */
void fake_test_add(const char *name, void (*func)(void));

#endif
