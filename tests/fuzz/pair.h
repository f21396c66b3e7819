/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fuzzer of two engines: the network between them (pair-net.c), posts and
 * forged frames (pair-post.c) and actions of their owners (pair.c).
 */
#ifndef PAIR_H
#define PAIR_H

#include "pair-model.h"

/*
 * Calls out of one call into an engine. A frame has up to 4 KiB, and may flush
 * all QPs of a CQ that fails; a turn of transmission delivers 64 frames, and
 * whatever those do.
 */
#define RX_WORK 512
#define TX_WORK 4096

extern FuzzInput pair_in;
extern GPtrArray *pair_flying;

/*
 * End a call into an engine, which may have called out @max_work times at most,
 * and do the actions that its callbacks have asked for.
 */
void pair_done(PairNode *p, uint32_t max_work);
/* Let a node send its frames, at most @max. */
unsigned pair_transmit(PairNode *p, unsigned max);
void pair_receive(unsigned to, const uint8_t *data, size_t len);
/* Send and deliver in order, @n times at most; false: nothing to do. */
bool pair_run(unsigned n);
/* The same, with faults of the network by the input */
void pair_run_badly(unsigned n);
/* Step to the next deadline within @most. False: there is none. */
bool pair_pass_time(int64_t most);
/* Frames to a QP that is created again are lost. */
void pair_lose_frames(uint32_t qpn);

/* Each of these functions takes its choices from the input. */
void pair_post_good(void);
/* Work requests that a process may try, with numbers and keys of any object. */
void pair_post_any(void);
void pair_post_message(void);
void pair_post_receives(void);
/* The lives of regions and windows, as work requests see them */
void pair_post_memory(void);
/* A frame that a third party makes up. */
void pair_forge(void);

void pair_group_gid(unsigned which, uint8_t gid[RDMA_GID_LEN]);
/* An action that a callback may ask for; also a record of the input */
void pair_change(PairNode *p, uint8_t what, uint8_t slot);

#endif /* PAIR_H */
