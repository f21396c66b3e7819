/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the engine's top, which implement the API of
 * rdma/roce.h, have for each other.
 */
#ifndef ROCE_INT_H
#define ROCE_INT_H

#include "transport/transport.h"

/* rx.c */
/*
 * Give a checked packet to the QP it is for. Its frame from the wire had @size
 * bytes; 0: it is from a QP of this engine.
 */
void roce_deliver(RoceEngine *e, const RocePacket *pkt, size_t size,
                  int64_t now);
/* Give the QPs of a group their copies of what QP @from sends to it. */
void roce_deliver_copies(RoceEngine *e, const RocePacket *pkt, RoceQp *from);

/*
 * state-check-*.c: NULL, or a text for g_free() that says what is wrong with
 * an image.
 */
char *roce_check_mr(const RoceEngine *e, const RoceMrImage *image);
char *roce_check_mw(const RoceEngine *e, const RoceMwImage *image);
char *roce_check_srq(const RoceSrqImage *image, const RdmaSrqAttr *max);
char *roce_check_qp(const RoceEngine *e, const RoceQpImage *image,
                    const RdmaQpCap *max);
/*
 * Such a text for what the functions that create an object refused: after
 * roce_mw_create(), roce_srq_create() and roce_qp_create() have failed.
 */
char *roce_explain_mw(const RoceEngine *e, const RdmaMwAttr *attr);
char *roce_explain_srq(const RoceEngine *e, const RdmaSrqAttr *attr);
char *roce_explain_qp(const RoceEngine *e, const RdmaQpInitAttr *init);

#endif /* ROCE_INT_H */
