/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside the double of libibverbs.
 *
 * Context: one lock protects everything. A verb takes the lock in fake_begin()
 * and drops it in fake_end(). A verb that waits for the test does not hold the
 * lock.
 */
#ifndef TESTS_FAKE_IBVERBS_INTERNAL_H
#define TESTS_FAKE_IBVERBS_INTERNAL_H

#include <infiniband/verbs.h>
#include "fake-ibverbs.h"

typedef enum FakeKind {
    FAKE_CONTEXT,
    FAKE_PD,
    FAKE_MR,
    FAKE_MW,
    FAKE_CHANNEL,
    FAKE_CQ,
    FAKE_SRQ,
    FAKE_QP,
    FAKE_AH,
    FAKE_MCAST,                     /* attachments */
    FAKE_KINDS,
} FakeKind;

/* First member of each object; the second is that of libibverbs. */
typedef struct FakeObj {
    FakeKind kind;
    uint32_t number;                /* QPN or handle */
    unsigned users;                 /* objects that need this one */
    unsigned reported;              /* asynchronous events that were read, */
    unsigned acked;                 /* and acknowledged */
    bool dropped;                   /* the device went away under it */
} FakeObj;

/* Items for a reader; the descriptor is readable while there are some. */
typedef struct FakeFifo {
    int fd;
    GQueue items;
} FakeFifo;

typedef struct FakeContext {
    FakeObj obj;
    FakeFifo async;                 /* of struct ibv_async_event */
    bool dead;
    struct verbs_context v;
} FakeContext;

typedef struct FakePd {
    FakeObj obj;
    struct ibv_pd ibv;
} FakePd;

typedef struct FakeMr {
    FakeObj obj;                    /* users: windows that are bound to it */
    struct ibv_mr ibv;
    uint64_t iova;
    int access;
    uint8_t *base;                  /* its start, also when unmapped */
    void *pinned;                   /* mapping of its own, or NULL */
    size_t pinned_len;
} FakeMr;

typedef struct FakeQp FakeQp;

typedef struct FakeMw {
    FakeObj obj;
    struct ibv_mw ibv;
    FakeMr *mr;                     /* that has the window, or NULL */
    uint64_t addr;
    uint64_t len;
    int access;
    FakeQp *qp;                     /* type 2: of this one only */
} FakeMw;

typedef struct FakeChannel {
    FakeObj obj;                    /* users: CQs */
    struct ibv_comp_channel ibv;
    FakeFifo events;                /* of FakeCq */
} FakeChannel;

typedef struct FakeCqe {
    struct ibv_wc wc;
    bool solicited;
    bool scripted;                  /* belongs to no work request */
    bool send;
    uint64_t frees;                 /* frees all slots before this one */
    FakeQp *qp;                     /* NULL when it was destroyed */
} FakeCqe;

typedef enum FakeArm {
    FAKE_ARM_NONE,
    FAKE_ARM_SOLICITED,
    FAKE_ARM_ANY,
} FakeArm;

typedef struct FakeCq {
    FakeObj obj;                    /* users: queues of QPs */
    struct ibv_cq ibv;
    GQueue cqes;
    FakeArm arm;
    bool overrun;
    unsigned comp_reported;
    unsigned comp_acked;
} FakeCq;

typedef struct FakeRecv {
    uint64_t wr_id;
    unsigned num_sge;
    struct ibv_sge sge[];
} FakeRecv;

typedef struct FakeSrq {
    FakeObj obj;                    /* users: QPs */
    struct ibv_srq ibv;
    struct ibv_srq_attr attr;
    GQueue wrs;                     /* of FakeRecv */
} FakeSrq;

typedef struct FakeAh {
    FakeObj obj;
    struct ibv_ah ibv;
    struct ibv_ah_attr attr;
} FakeAh;

typedef struct FakeSend {
    struct ibv_send_wr wr;          /* no next, no sg_list */
    uint64_t seq;
    struct ibv_ah_attr ah;          /* UD */
    uint8_t *inline_data;           /* with IBV_SEND_INLINE */
    uint32_t inline_len;
    struct ibv_sge sge[];
} FakeSend;

/* How many work requests a queue has taken, and how many slots are free. */
typedef struct FakeSlots {
    uint64_t posted;
    uint64_t freed;
    uint32_t max;
} FakeSlots;

struct FakeQp {
    FakeObj obj;                    /* users: multicast attachments */
    struct ibv_qp ibv;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    GQueue sq;                      /* of FakeSend */
    GQueue rq;                      /* of FakeRecv */
    FakeSlots send;
    FakeSlots recv;
    GArray *groups;                 /* of union ibv_gid */
    bool deaf;                      /* to its own multicast messages */
};

typedef struct FakeState {
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    struct ibv_gid_entry gid[FAKE_IBVERBS_GIDS];
    bool gone;                      /* the device */
    bool hands_off;                 /* "auto off" */
    bool keeps_nothing;             /* "keep off" */
    uint64_t memlock;               /* bytes */
    uint64_t locked;
    unsigned count[FAKE_KINDS];
    GHashTable *live;               /* all objects, by FakeObj */
} FakeState;

extern FakeState fake;

/* The object of the double around @ptr, an object of libibverbs */
#define FAKE(Type, ptr) container_of(ptr, Type, ibv)

/* script.c */

/*
 * Begin a call of @verb: take the lock, and wait if the test asks for that.
 * Returns the errno with which the call must fail, or 0.
 */
int fake_begin(const char *verb);
/*
 * End the call with @err: log it (@verb NULL: do not log), and drop the lock.
 * Returns @err.
 */
int fake_end(const char *verb, int err, const char *fmt, ...)
    G_GNUC_PRINTF(3, 4);
/* The same for verbs that return a pointer: sets errno. */
void *fake_end_ptr(const char *verb, int err, void *result,
                   const char *fmt, ...) G_GNUC_PRINTF(4, 5);
/*
 * Take the lock without the steps of a verb; wait for a change with the lock
 * held.
 */
void fake_lock(void);
void fake_unlock(void);
void fake_wait(void);
void fake_changed(void);

/* dev.c */

void fake_device_init(void);
void fake_device_set_sysfs(const char *path);
void fake_device_gone(void);
/* Is it an address of the port? */
bool fake_is_local(const union ibv_gid *gid);
/* Does the table have an address at @index? */
bool fake_gid_set(uint32_t index);

/* command.c */

/* Execute a line under the lock; the answer is appended to @out. */
void fake_command(const char *line, GString *out);

/* rule.c */

/*
 * Let a call of @verb wait if it must. Returns the errno with which it must
 * fail, or 0.
 */
int fake_rule_apply(const char *verb);
void fake_rule_fail(const char *verb, int err, unsigned after,
                    unsigned times);
void fake_rule_forget(const char *verb);
void fake_rule_delay(const char *verb);
void fake_rule_release(const char *verb);
unsigned fake_rule_waiting(const char *verb);
unsigned fake_rule_calls(const char *verb);
void fake_log_add(const char *verb, int err, const char *detail);
void fake_log_print(GString *out);
void fake_log_clear(void);

/* names.c; -1 when there is no such name */
int fake_errno_parse(const char *name);
int fake_status_parse(const char *name);
int fake_event_parse(const char *name);
const char *fake_errno_name(int err);

/* obj.c */

/* A new object of @kind and @size with the next number. */
void *fake_new(FakeKind kind, size_t size);
void fake_free(void *obj);
/* End the program unless @obj is alive and of @kind (FAKE_KINDS: any). */
void fake_check(const void *obj, FakeKind kind);
/*
 * The object is gone with its device: do not count it any more, but allow calls
 * that name it.
 */
void fake_drop(FakeObj *obj);
/* Find a live object by number, or NULL. */
void *fake_find(FakeKind kind, uint32_t number);
/*
 * All objects of a kind, in order of their numbers; the caller frees the list.
 */
GList *fake_all(FakeKind kind);
const char *fake_kind_name(FakeKind kind);
FakeContext *fake_context_of(struct ibv_context *context);
/* Returns EIO if the context is dead, otherwise @err. */
int fake_alive(struct ibv_context *context, int err);
/* fake_begin() of a verb for an object, which must be there */
int fake_begin_on(const char *verb, const void *obj, FakeKind kind,
                  struct ibv_context *const *context);
/* The same; an object that is in use cannot be destroyed: EBUSY. */
int fake_begin_destroy(const char *verb, const void *obj, FakeKind kind,
                       struct ibv_context *const *context);
/* Would one more object of @kind exceed the device's @max? */
bool fake_full(FakeKind kind, int max);

/* event.c */

bool fake_fifo_init(FakeFifo *fifo);
void fake_fifo_clear(FakeFifo *fifo, void (*done)(void *));
void fake_fifo_push(FakeFifo *fifo, void *item);
/* Call with the lock, which is dropped during the wait. NULL: see errno. */
void *fake_fifo_pop(FakeFifo *fifo);
/* Take @item back. */
void fake_fifo_remove(FakeFifo *fifo, void *item);
/* Raise an event of @obj; NULL: of the port or the device, in all contexts. */
void fake_event(enum ibv_event_type type, struct ibv_context *context,
                FakeObj *obj);
/* Drop events of @obj, and wait until those read are acknowledged. */
void fake_event_flush(struct ibv_context *context, FakeObj *obj);

/* qp.c */

struct ibv_qp *fake_create_qp_ex(struct ibv_context *context,
                                 struct ibv_qp_init_attr_ex *init);

/* mem.c */

/* Regions and windows are found by their keys. */
typedef struct FakeIov {
    uint8_t *at;
    size_t len;
} FakeIov;

/*
 * Memory of @pd that @num_sge entries name. Returns IBV_WC_SUCCESS with the
 * pieces in @iov, or the error status.
 */
enum ibv_wc_status fake_local(struct ibv_pd *pd, const struct ibv_sge *sge,
                              unsigned num_sge, bool write, GArray *iov);
/* @len bytes at @addr for a peer of @qp that has @rkey and wants @access. */
uint8_t *fake_remote(FakeQp *qp, uint32_t rkey, uint64_t addr, uint64_t len,
                     int access);
bool fake_bind(FakeQp *qp, FakeMw *mw, uint32_t rkey,
               const struct ibv_mw_bind_info *info);
bool fake_invalidate(FakeQp *qp, uint32_t rkey);
/* Invalidate windows of type 2 that are bound to @qp, which is destroyed. */
void fake_unbind_qp(FakeQp *qp);
/* The device does not need the memory any more. */
void fake_unpin(FakeMr *mr);
struct ibv_mw *fake_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int fake_dealloc_mw(struct ibv_mw *mw);

/* cq.c */

/* Add a completion of @qp (or of none), and wake waiting readers. */
void fake_cq_add(FakeCq *cq, const FakeCqe *cqe);
void fake_cq_forget(FakeCq *cq, FakeQp *qp);
int fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* srq.c */

int fake_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
FakeRecv *fake_srq_take(FakeSrq *srq);
int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                       struct ibv_recv_wr **bad_wr);
bool fake_is_multicast(const union ibv_gid *gid);
bool fake_in_group(FakeQp *qp, const union ibv_gid *gid);
/* NULL if there are too many SGEs */
FakeRecv *fake_recv_new(const struct ibv_recv_wr *wr, uint32_t max_sge);

/* post.c */

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
                   struct ibv_send_wr **bad_wr);
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
                   struct ibv_recv_wr **bad_wr);
int fake_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
                 struct ibv_mw_bind *bind);
void fake_send_free(void *send);

/* exec.c */

/* Execute all work requests that can run, in all QPs. */
void fake_run(void);
/* Complete the oldest send or receive WR with @status. False: there is none. */
bool fake_complete(FakeQp *qp, bool send, enum ibv_wc_status status);
/* Move @qp to ERR, and flush its queues. */
void fake_qp_error(FakeQp *qp);

#endif
