/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QP 1: declarations for gsi.c (commands) and mad.c (MADs).
 */
#ifndef BACKENDS_RDMA_VERBS_GSI_H
#define BACKENDS_RDMA_VERBS_GSI_H

#include "int.h"

struct VerbsGsi {
    RdmaVerbs *v;
    VerbsQp *qp;
    VerbsUmad *umad;
    Error *err;                     /* why there is no @umad */
    uint32_t njobs;                 /* unfinished, also from before a RESET */
    uint32_t epoch;                 /* changes when WQEs are dropped; atomic */
    RdmaSge *recv_sge;              /* of the WQE in qp->rq, if there is one */
    uint32_t recv_num_sge;
};

/* cm.c */

/* Are the sender's addresses in @mad those of the guest? */
bool verbs_cm_addresses_are_own(RdmaVerbs *v, const uint8_t mad[VERBS_MAD_LEN]);

/* mad.c */

/* Start or stop reading MADs from the host. */
void verbs_gsi_listen(VerbsGsi *g, bool on);
/* Drop all WQEs without completions. */
void verbs_gsi_drop_wqes(VerbsGsi *g);

#endif
