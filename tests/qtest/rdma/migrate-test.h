/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two QEMUs on a hub, which is a third QEMU, and destinations that replace
 * them. The hub may lose frames. Virtual time stands still while a side
 * migrates, so lost frames wait for their timer.
 */
#ifndef TESTS_RDMA_MIGRATE_TEST_H
#define TESTS_RDMA_MIGRATE_TEST_H

#include "net-test.h"

#define MIGRATE_DEVICE \
    "virtio-rdma-pci,max-qp=8,max-cq=7,max-mr=32,max-pd=8,packed=on,in_order=on"
/* The same device, of a vhost-user server */
#define MIGRATE_SERVED \
    "virtio-rdma-vhost-user,max-qp=8,max-cq=7,max-srq=4,max-mr=32,max-pd=8," \
    "in_order=on"
/* Its limits, with a virtqueue for commands and one for events */
#define MIGRATE_SERVED_QUEUES (2 + 7 + 2 * 8 + 4)
#define MIGRATE_TIMEOUT_CODE 8
#define MIGRATE_TIMEOUT_NS (4096ll << MIGRATE_TIMEOUT_CODE)

typedef struct Trip {
    Net net;
    QTestState *hub;
    const char *device[2];          /* of each side, and of its destinations */
    unsigned moves[2];              /* of each side */
    int64_t now[2];                 /* virtual time at migration */
    QTestState *server[2];          /* of a side with MIGRATE_SERVED, or NULL */
    /* That of a destination. After it has taken over, that of its source. */
    QTestState *other_server[2];
    const char *server_more;        /* arguments of the next server, or NULL */
    NetPair p;
} Trip;

/* @lossy: options of filter-impair for each port of the hub, or NULL. */
Trip *trip_new(const char *lossy);
/* The same with another device on side 0. */
Trip *trip_new_with(const char *lossy, const char *device);
/* MIGRATE_SERVED on both sides */
Trip *trip_new_served(const char *lossy);
void trip_free(Trip *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Trip, trip_free)
/* The side's device is plugged into a machine that had none. */
void trip_hot_plug(Trip *t, int side);
/* RC queue pairs, connected: t->p. */
void trip_connect(Trip *t);
/* trip_new() and that */
Trip *trip_connected(const char *lossy);

/* The number in an environment variable, or @otherwise without it */
unsigned trip_number(const char *variable, unsigned otherwise);

/* Migrate to @to over @uri, so slowly that the source runs on. */
void trip_slow_start(Trip *t, int side, QTestState *to, const char *uri);
/* Traffic while one side migrates. Memory arrives as the device has left it. */
void trip_write_during_precopy(Trip *t, int side);
/* A side, chosen by @round, begins to migrate, cancels that, and goes on. */
void trip_cancel(Trip *t, unsigned round);
/* The destination is gone, and the source goes on. */
void trip_forget_destination(Trip *t, int side);

/* The parts of a move. */
QTestState *trip_start_destination(Trip *t, int side, const char *device,
                                   const char *more);
/* A destination that does not take over, because it refuses the stream. */
QTestState *trip_start_refusing(Trip *t, int side, const char *device,
                                const char *more);
/* Wait for its end. Its error, or that of its server, has @text. */
void trip_expect_refusal(Trip *t, QTestState *to, const char *text);
/* Migrate, and store the side's virtual time for trip_take_over(). */
void trip_migrate_to(Trip *t, int side, const char *uri);
void trip_migrate_from(QTestState *to, const char *uri);
/* Enable a capability, if @name is not NULL. */
void trip_set_capability(QTestState *qts, const char *name);
/* Wait for the end of an incoming migration. */
void trip_wait_loaded(QTestState *qts);
/* Wait until an outgoing migration has this status. */
void trip_wait_status(QTestState *qts, const char *status);
/*
 * The destination replaces the source, at its virtual time. Returns the source,
 * which still runs; the second function ends it.
 */
QTestState *trip_go_on(Trip *t, int side, QTestState *to);
void trip_take_over(Trip *t, int side, QTestState *to);

/* A whole move, with a migration capability if there is one. */
void trip_move(Trip *t, int side, const char *capability);
/* Both leave before either arrives. */
void trip_move_both(Trip *t);
/* Into a file, whose path the caller unlinks and frees. */
char *trip_save(Trip *t, int side);
/* The same; the source is gone before the destination starts. */
void trip_move_by_file(Trip *t, int side);

/*
 * Words to find in the stream, and a new value for one of them at the first
 * match
 */
typedef struct TripSpoilt {
    const char *what;
    uint32_t find[4];
    unsigned words;                 /* of find */
    unsigned word;                  /* index of the one to replace */
    uint32_t by;
    const char *text;               /* in the destination's error */
    unsigned copies;                /* later matches, left unchanged */
} TripSpoilt;

/* Case of a stream whose driver did not accept @feature */
TripSpoilt trip_without_feature(QRdma *d, unsigned feature, const char *text);
/* Save a side. With each of @cases the load must fail, with the case's text. */
void trip_refuse_spoilt(Trip *t, int side, const TripSpoilt *cases,
                        unsigned n);
/* Save a side whose load fails by @c, and keep the destination. */
void trip_look_at_refused(Trip *t, int side, const TripSpoilt *c);
/*
 * Save a side. A destination with that device, and @more arguments, must refuse
 * it with @text.
 */
void trip_refuse_device(Trip *t, int side, const char *device,
                        const char *more, const char *text);

/* A point of the stream: @bytes from the first match of @name */
typedef struct TripCut {
    const char *name;
    int bytes;
} TripCut;

/*
 * Save a side. A load of the stream up to each of @cuts must fail, and leave no
 * objects.
 */
void trip_look_at_cut(Trip *t, int side, const TripCut *cuts, unsigned n);
/* As trip_move_by_file(), with all of @cases; their texts do not count. */
void trip_move_spoilt(Trip *t, int side, const TripSpoilt *cases, unsigned n);

/* Requests of every kind from @from to @to, some of them unsignalled. */
void trip_post_all(NetEnd *from, NetEnd *to, unsigned round);
void trip_post_receives(NetEnd *to, unsigned round);
/* The same from each side to the other */
void trip_post_both(Trip *t, unsigned round);
void trip_receive_both(Trip *t, unsigned round);
/* The next completion, with as many timeouts as that takes. */
void trip_wait_wc(Trip *t, QRdmaCq *cq, uint64_t wr_id, RdmaWc *wc);
void trip_check_all(Trip *t, NetEnd *from, NetEnd *to, unsigned round);
void trip_check_both(Trip *t, unsigned round);
/* A part of trip_check_all(): memory after the round */
void trip_check_memory(NetEnd *from, NetEnd *to, unsigned round);
/* Assert that no more completions come. */
void trip_check_silence(Trip *t);
/* Journeys: sides move in turns, both at once, or in turns by a file. */
void trip_leave_in_turns(Trip *t, unsigned round);
void trip_leave_together(Trip *t, unsigned round);
void trip_leave_by_file(Trip *t, unsigned round);
/* The source has written all of its state, but no destination loads it. */
void trip_leave_in_vain(Trip *t, unsigned round);
/* Run traffic both ways with @journey in between; all of it succeeds. */
void trip_travel(const char *lossy, unsigned rounds,
                 void (*journey)(Trip *t, unsigned round));
/* Rounds @first to @end - 1 of that, with queue pairs that are connected */
void trip_travel_on(Trip *t, unsigned first, unsigned end,
                    void (*journey)(Trip *t, unsigned round));

#endif
