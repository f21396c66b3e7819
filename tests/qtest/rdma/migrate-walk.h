/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two devices on a wire that the test holds, so that a point during traffic is
 * a number of frames. Some frames are lost, doubled or late. Sides are saved
 * and loaded again in the same process, by savevm and loadvm.
 *
 * Both sides are requester and responder. Each operation has its own place in
 * memory, and all of memory is compared with a model in the end. Peers reach
 * memory by several keys, which are renewed during traffic. Side 1 has its
 * receives in an SRQ.
 */
#ifndef TESTS_RDMA_MIGRATE_WALK_H
#define TESTS_RDMA_MIGRATE_WALK_H

#include "net-test.h"
#include "wire.h"

#define WALK_TIMEOUT_CODE 8
#define WALK_TIMEOUT_NS (4096ll << WALK_TIMEOUT_CODE)
#define WALK_FRAMES 60

#define OPS 8
#define SLOT 3072
#define MAX_INLINE 128

/*
 * Areas of memory, with SLOT bytes for each operation except in the first area
 */
#define SRC 0
#define RECV 16384
#define TARGET (RECV + OPS * SLOT)
#define BACK (TARGET + OPS * SLOT)
#define COUNTER (BACK + OPS * SLOT)
/* From here on there are datagrams, which may come late. */
#define DATAGRAMS (COUNTER + 4096)

typedef enum OpKind {
    OP_SEND,
    OP_SEND_IMM,
    OP_WRITE,
    OP_WRITE_IMM,
    OP_READ,
    OP_FADD,
    OP_CAS,
    OP_ATOMIC_WRITE,
    OP_FLUSH,
    OP_REMOTE,                      /* the kinds before go to the peer */
    OP_BIND = OP_REMOTE,            /* a window, for the next round */
    OP_REG,                         /* a fast registration, likewise */
    OP_KINDS,
} OpKind;

/* Keys by which a peer reaches all of a side's memory */
typedef enum WalkWay {
    WAY_REGION,
    WAY_RENEWED,                    /* by REREG_MR */
    WAY_WINDOW,                     /* of type 1 and 2 in turns */
    WAY_FAST,                       /* REG_MR with its pages; two in turns */
    WALK_WAYS,
} WalkWay;

typedef struct Way {
    uint64_t iova;
    uint32_t rkey;                  /* 0: there is none */
} Way;

/* Objects of a side besides its NetEnd */
typedef struct Side {
    NetEnd *end;
    Way way[WALK_WAYS];
    Way next[WALK_WAYS];            /* from the end of the round on */
    bool renews;                    /* WAY_RENEWED is not used this round */
    QRdmaMr *base;                  /* the region for the windows */
    QRdmaMr *renewed;
    struct {
        QRdmaMw mw;
        bool bound;
    } window[2];
    unsigned idle_window;
    struct {
        QRdmaMr *mr;
        bool valid;
    } fast[2];
    unsigned idle_fast;
    QRdmaSrq *srq;                  /* or NULL */
    bool event_due;                 /* that the SRQ is below its limit */
    bool event_buffer;              /* the event has a buffer */

    /* Datagrams, counted from the first round on */
    QRdmaQp *ud;
    QRdmaCq *ucq;
    unsigned ud_sent;
    unsigned ud_done;
    unsigned ud_recvs;
    unsigned ud_received;
    GPtrArray *ud_data;             /* GBytes of each sent datagram */
} Side;

typedef struct Op {
    OpKind kind;
    WalkWay way;
    uint32_t len;
    uint32_t from;                  /* offset in SRC */
    uint64_t operand;
    uint64_t compare;
    bool is_inline;
    bool signalled;
    int recv;                       /* number of the receive it takes, or -1 */
} Op;

/* One direction: the operations of a side, and its progress */
typedef struct Flow {
    NetEnd *from;
    NetEnd *to;
    Op op[OPS];
    unsigned sent;                  /* operations known to be complete */
    unsigned received;
    unsigned recvs;
    uint64_t counter;               /* value of the counter after its atomics */
} Flow;

typedef struct Walk {
    GRand *rng;
    Net net;
    Wire wire[2];
    int image[2];                   /* image files of snapshots */
    GQueue late[2];                 /* frames to that side */
    NetPair p;
    Side side[2];
    Flow flow[2];
    uint8_t model[2][NET_MR_SIZE];
    unsigned moves;
    unsigned used[WALK_WAYS];       /* by requests */
} Walk;

Walk *walk_new(uint32_t seed);
void walk_free(Walk *t);

/*
 * Run a monitor command. Returns its output if there is any, which is an error.
 */
char *walk_try_hmp(Walk *t, int side, const char *command);
void walk_hmp(Walk *t, int side, const char *command);
void walk_qmp(Walk *t, int side, const char *command);
/* Stop, save, load, go on. */
void walk_move(Walk *t, int side);
/* The same, but another process goes on. */
void walk_move_process(Walk *t, int side);

/* A round of traffic: post it, with receives now or later. */
void walk_post(Walk *t, bool with_receives);
void walk_post_receives(Walk *t);
/* Carry up to @n frames; false when there are no more. */
bool walk_pump(Walk *t, unsigned n);
/* Take the completions that are there, checking them. */
void walk_collect(Walk *t);
/* Wait for the end of all operations, and check completions and memory. */
void walk_finish(Walk *t);

/* migrate-walk-objects.c: objects besides connections and regions */
#define WALK_FEATURES (QRDMA_F(VIRTIO_RDMA_F_FLUSH) | \
                       QRDMA_F(VIRTIO_RDMA_F_ATOMIC_WRITE))

/* Make the objects, with a queue pair of side 1 that uses the SRQ. */
void walk_make_objects(Walk *t);
void walk_free_objects(Walk *t);
/* Make a new key for the next round, with a completion if @wr asks for it. */
void walk_post_bind(Side *s, RdmaSendWr wr);
void walk_post_reg(Side *s, RdmaSendWr wr);
/* REREG_MR, if it is this round's turn. */
void walk_renew(Side *s);
/* After receives were posted: arm the SRQ's limit, which raises an event. */
void walk_arm_limit(Walk *t, int side, unsigned recvs);
void walk_post_datagrams(Walk *t, int side);
void walk_collect_datagrams(Walk *t, int side);
/* The round is over: check events, and use the new keys. */
void walk_end_objects(Walk *t);

#endif
