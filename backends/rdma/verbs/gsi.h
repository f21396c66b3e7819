/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QP 1: declarations for gsi.c (commands), mad.c (MADs) and inspect.c.
 */
#ifndef BACKENDS_RDMA_VERBS_GSI_H
#define BACKENDS_RDMA_VERBS_GSI_H

#include "int.h"

struct VerbsGsi {
    RdmaQpInitAttr init;
    RdmaQpAttr attr;                /* what MODIFY has set, and the state */
    VerbsUmad *umad;
    GQueue sends;                   /* work requests, oldest first */
    uint32_t ndone;                 /* sends whose job is done */
    uint32_t njobs;                 /* unfinished, also from before a RESET */
    uint32_t epoch;                 /* changes when WQEs are dropped; atomic */
    GQueue recvs;
    bool destroying;                /* a job closes it */
};

/* cm.c */

/* Are the sender's addresses in @mad those of the guest? */
bool verbs_cm_addresses_are_own(RdmaVerbs *v, const uint8_t mad[VERBS_MAD_LEN]);

/* mad.c */

/* Start or stop reading MADs from the host. */
void verbs_gsi_listen(RdmaVerbs *v, VerbsGsi *g, bool on);
void verbs_gsi_set_state(RdmaVerbs *v, VerbsGsi *g, RdmaQpState state);
/* Move QP 1 to ERR, and flush receives. */
void verbs_gsi_enter_err(RdmaVerbs *v, VerbsGsi *g);
/* Drop all WQEs without completions. */
void verbs_gsi_drop_wqes(VerbsGsi *g);

#endif
