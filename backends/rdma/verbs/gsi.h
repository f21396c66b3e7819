/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QP 1, between what commands make of it (gsi.c) and the MADs that
 * pass through it (mad.c).
 */
#ifndef BACKENDS_RDMA_VERBS_GSI_H
#define BACKENDS_RDMA_VERBS_GSI_H

#include "int.h"

struct VerbsGsi {
    RdmaQpInitAttr init;
    RdmaQpAttr attr;                /* what MODIFY has set, and the state */
    VerbsUmad *umad;
    GQueue sends;                   /* work requests, oldest first */
    uint32_t ndone;                 /* of them, for which the job is done */
    uint32_t njobs;                 /* not done, also those of before a RESET */
    /* Another one after each RESET; the worker reads it */
    uint32_t epoch;
    GQueue recvs;
    bool dead;                      /* a job closes it */
};

/* cm.c */

/* What @mad says of its sender's addresses is true. */
bool verbs_cm_addresses_are_own(RdmaVerbs *v, const uint8_t mad[VERBS_MAD_LEN]);

/* mad.c */

/* Whether MADs are taken from the host. */
void verbs_gsi_listen(RdmaVerbs *v, VerbsGsi *g, bool on);
void verbs_gsi_set_state(RdmaVerbs *v, VerbsGsi *g, RdmaQpState state);
/* To ERR, where receives are flushed */
void verbs_gsi_enter_err(RdmaVerbs *v, VerbsGsi *g);
/* All that was posted, without completions */
void verbs_gsi_drop_wqes(VerbsGsi *g);

#endif
