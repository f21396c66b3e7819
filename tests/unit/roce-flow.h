/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two connected QPs that send each other a random mix of requests, while the
 * test does to them what it likes: memory is right to the byte and each WQE
 * completes once, in order, on both sides.
 */
#ifndef ROCE_FLOW_H
#define ROCE_FLOW_H

#include "roce-link.h"

typedef struct FlowSpec {
    uint32_t seed;
    LinkFaults faults;
    LinkFaults *met;                /* sum of what frames met */
    RdmaMtu mtu;
    uint32_t max_len;               /* bytes of a message */
    uint8_t timeout;                /* of both QPs */
    bool srq;                       /* both QPs have one */
    bool windows;                   /* remote access goes through them */
    int64_t round;                  /* ns between looks at completions */
    /* Called after each round; may be NULL */
    void (*disturb)(RoceLink *l);
} FlowSpec;

/* Run an exchange to its end and check all that came of it. */
void flow_exchange(const FlowSpec *spec);

#endif /* ROCE_FLOW_H */
