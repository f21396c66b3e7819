/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two connected QPs that send each other random requests, while the test
 * disturbs them. Memory must be right to the byte, and each WQE must complete
 * once, in order, on both sides.
 */
#ifndef ROCE_FLOW_H
#define ROCE_FLOW_H

#include "roce-link.h"

typedef struct FlowSpec {
    uint32_t seed;
    LinkFaults faults;
    LinkFaults *faulty;                /* number of faulty frames */
    RdmaMtu mtu;
    uint32_t max_len;               /* bytes of a message */
    uint8_t timeout;                /* of both QPs */
    bool srq;                       /* both QPs use an SRQ */
    bool windows;                   /* remote access uses windows */
    int64_t round;                  /* ns between polls for completions */
    /* A function that is called after each round, or NULL */
    void (*disturb)(RoceLink *l);
} FlowSpec;

/*
 * Exchange requests until all are complete, and check memory and completions.
 */
void flow_exchange(const FlowSpec *spec);

#endif /* ROCE_FLOW_H */
