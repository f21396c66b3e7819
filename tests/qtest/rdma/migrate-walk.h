/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two devices on a wire that the test holds, so that a point amid traffic is
 * a number of frames; some frames are lost, doubled or late. Sides are saved
 * and loaded again in the same process, by savevm and loadvm.
 *
 * Both sides are requester and responder. Each operation has its own place
 * in memory, and all of memory is compared with a model in the end.
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

/* Areas of memory; of SLOT bytes for each operation but for the first. */
#define SRC 0
#define RECV 16384
#define TARGET (RECV + OPS * SLOT)
#define BACK (TARGET + OPS * SLOT)
#define COUNTER (BACK + OPS * SLOT)

typedef enum OpKind {
    OP_SEND,
    OP_SEND_IMM,
    OP_WRITE,
    OP_WRITE_IMM,
    OP_READ,
    OP_FADD,
    OP_CAS,
    OP_KINDS,
} OpKind;

typedef struct Op {
    OpKind kind;
    uint32_t len;
    uint32_t from;                  /* offset in SRC */
    uint64_t operand;
    uint64_t compare;
    bool is_inline;
    bool signalled;
    int recv;                       /* number of the receive it takes, or -1 */
} Op;

/* One direction: what the side asks for, and how far it is. */
typedef struct Flow {
    NetEnd *from;
    NetEnd *to;
    Op op[OPS];
    unsigned sent;                  /* operations that are known to be over */
    unsigned received;
    unsigned recvs;
    uint64_t counter;               /* what its atomics made of the counter */
} Flow;

typedef struct Walk {
    GRand *rng;
    Net net;
    Wire wire[2];
    int image[2];                   /* files that snapshots are in */
    GQueue late[2];                 /* frames to that side */
    NetPair p;
    Flow flow[2];
    uint8_t model[2][NET_MR_SIZE];
    unsigned moves;
} Walk;

Walk *walk_new(uint32_t seed);
void walk_free(Walk *t);

/* A monitor command that has nothing to say; else returns what it said. */
char *walk_try_hmp(Walk *t, int side, const char *command);
void walk_hmp(Walk *t, int side, const char *command);
void walk_qmp(Walk *t, int side, const char *command);
/* Stop, save, load, go on. */
void walk_move(Walk *t, int side);

/* A round of traffic: post it, with receives now or later. */
void walk_post(Walk *t, bool with_receives);
void walk_post_receives(Walk *t);
/* Carry up to @n frames; false when there are no more. */
bool walk_pump(Walk *t, unsigned n);
/* Take the completions that are there, checking them. */
void walk_collect(Walk *t);
/* All ends as it must, in memory as well. */
void walk_finish(Walk *t);

#endif
