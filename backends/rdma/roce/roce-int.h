/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions that the files of the engine's top folder, which implement the API
 * of rdma/roce.h, share.
 */
#ifndef ROCE_INT_H
#define ROCE_INT_H

#include "transport/transport.h"

/* rx.c */
/*
 * Deliver a packet with a valid ICRC to its destination QP. @size is the length
 * of its frame in bytes, or 0 if a QP of this engine has sent it.
 */
void roce_deliver(RoceEngine *e, const RocePacket *pkt, size_t size,
                  int64_t now);
/*
 * Deliver copies of a multicast, which QP @from sends, to QPs of this engine.
 */
void roce_deliver_copies(RoceEngine *e, const RocePacket *pkt, RoceQp *from);

/*
 * state-check-*.c: the functions return NULL if the image is valid, or a text
 * with the reason, which the caller frees with g_free().
 */
char *roce_check_mr(const RoceEngine *e, const RoceMrImage *image);
char *roce_check_mw(const RoceEngine *e, const RoceMwImage *image);
char *roce_check_srq(const RoceSrqImage *image, const RdmaSrqAttr *max);
char *roce_check_qp(const RoceEngine *e, const RoceQpImage *image,
                    const RdmaQpCap *max);
/*
 * The same text for the reason why roce_mw_create(), roce_srq_create() or
 * roce_qp_create() has failed.
 */
char *roce_explain_mw(const RoceEngine *e, const RdmaMwAttr *attr);
char *roce_explain_srq(const RoceEngine *e, const RdmaSrqAttr *attr);
char *roce_explain_qp(const RoceEngine *e, const RdmaQpInitAttr *init);

#endif /* ROCE_INT_H */
