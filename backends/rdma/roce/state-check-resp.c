/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks of responders and their resources.
 */
#include <glib.h>
#include "state-check.h"

char *roce_check_resp(const RoceQpImage *image)
{
    const RoceRespState *resp = &image->s.resp;
    uint32_t mtu = image->s.attr.path_mtu;

    REFUSE_NOT_24_BITS(resp, epsn);
    REFUSE_NOT_24_BITS(resp, msn);
    REFUSE_NOT_24_BITS(resp, ack_psn);
    REFUSE_IF(resp->op && resp->op != ROCE_OP_SEND &&
              resp->op != ROCE_OP_WRITE, "op %u is not 0, %u (SEND) or %u "
              "(WRITE)", resp->op, ROCE_OP_SEND, ROCE_OP_WRITE);
    REFUSE_ABOVE(resp, offset, ROCE_MAX_MSG);
    REFUSE_ABOVE(resp, write_len, ROCE_MAX_MSG);
    REFUSE_IF(resp->op && !mtu, "path_mtu is 0, but op is %u", resp->op);
    REFUSE_IF(resp->op && !resp->offset, "offset is 0, but op is %u",
              resp->op);
    REFUSE_IF(resp->op && resp->offset % rdma_mtu_bytes(mtu),
              "offset %u is not a multiple of %u bytes, the path MTU",
              resp->offset, rdma_mtu_bytes(mtu));
    REFUSE_IF(resp->op == ROCE_OP_WRITE && resp->offset >= resp->write_len,
              "offset %u is not below write_len %u", resp->offset,
              resp->write_len);
    REFUSE_ABOVE(resp, ack_kind, ROCE_ACK_NEGATIVE);
    REFUSE_NOT_BOOL(resp, nak_sent);
    REFUSE_NOT_BOOL(resp, comm_est);
    REFUSE_NOT_BOOL(resp, closing);
    REFUSE_IF(resp->closing && image->s.attr.qp_state != RDMA_QPS_ERR,
              "closing is 1 in state %s, not ERR",
              rdma_qp_state_name(image->s.attr.qp_state));
    return NULL;
}

/*
 * Is the range of the response inside that of @r, and does it begin at a packet
 * boundary?
 */
static char *check_reply(const RoceResource *r, uint32_t mtu)
{
    uint64_t off = r->reply_va - r->va;
    uint32_t psn;

    REFUSE_IF(off % mtu, "reply_va 0x%" PRIx64 " is not a multiple of %u "
              "bytes, the path MTU, after va 0x%" PRIx64, r->reply_va, mtu,
              r->va);
    REFUSE_IF(off > r->len, "reply_va 0x%" PRIx64 " is not in the %u bytes "
              "from va 0x%" PRIx64 " on", r->reply_va, r->len, r->va);
    REFUSE_IF(r->reply_len > r->len - off, "reply_len %u exceeds %" PRIu64
              ", the bytes from reply_va on", r->reply_len, r->len - off);
    REFUSE_IF(off == r->len && r->len, "reply_va 0x%" PRIx64 " is at the end "
              "of the %u bytes from va 0x%" PRIx64 " on", r->reply_va, r->len,
              r->va);
    REFUSE_IF(r->reply_off > r->reply_len, "reply_off %u exceeds reply_len %u",
              r->reply_off, r->reply_len);
    if (!r->pending) {
        return NULL;
    }
    REFUSE_IF(r->reply_off % mtu, "reply_off %u is not a multiple of %u "
              "bytes, the path MTU", r->reply_off, mtu);
    REFUSE_IF(r->reply_off == r->reply_len && r->reply_len,
              "pending is 1, but reply_off %u is reply_len", r->reply_off);
    psn = psn_add(r->psn, off / mtu + r->reply_off / mtu);
    REFUSE_IF(r->reply_psn != psn, "reply_psn %u is not %u, that of reply_off "
              "%u", r->reply_psn, psn, r->reply_off);
    return NULL;
}

static char *check_resource(const RoceResource *r, uint32_t mtu)
{
    REFUSE_NOT_24_BITS(r, psn);
    REFUSE_NOT_24_BITS(r, msn);
    REFUSE_NOT_24_BITS(r, reply_psn);
    REFUSE_NOT_BOOL(r, first);
    REFUSE_NOT_BOOL(r, pending);
    REFUSE_IF(r->first && !r->pending, "first is 1, but pending is 0");
    switch (r->type) {
    case ROCE_RES_READ:
        REFUSE_ABOVE(r, len, ROCE_MAX_MSG);
        REFUSE_IF(r->npsn != roce_packets(r->len, mtu),
                  "npsn %u is not %u, the packets of len %u with a path MTU "
                  "of %u bytes", r->npsn, roce_packets(r->len, mtu), r->len,
                  mtu);
        return check_reply(r, mtu);
    case ROCE_RES_ATOMIC:
        REFUSE_UNLESS(r, npsn, 1);
        REFUSE_IF(r->opcode != ROCE_COMPARE_SWAP &&
                  r->opcode != ROCE_FETCH_ADD, "opcode 0x%x is not 0x%x "
                  "(COMPARE_SWAP) or 0x%x (FETCH_ADD)", r->opcode,
                  ROCE_COMPARE_SWAP, ROCE_FETCH_ADD);
        return NULL;
    case ROCE_RES_ATOMIC_WRITE:
    case ROCE_RES_FLUSH:
        REFUSE_UNLESS(r, npsn, 1);
        return NULL;
    default:
        return g_strdup_printf("type %u is not in %u..%u", r->type,
                               ROCE_RES_READ, ROCE_RES_FLUSH);
    }
}

char *roce_check_resources(const RoceEngine *e, const RoceQpImage *image)
{
    const RoceRespState *resp = &image->s.resp;
    uint32_t size = roce_ring_size(e->config.max_rd_atomic);
    uint32_t i;

    REFUSE_ABOVE(image, n_res, size);
    REFUSE_IF(image->n_res && image->init.qp_type != RDMA_QPT_RC,
              "n_res %u is not 0 on a queue pair of type %s", image->n_res,
              roce_qp_type_name(image->init.qp_type));
    REFUSE_IF(image->n_res && !image->s.attr.path_mtu,
              "path_mtu is 0, but n_res is %u", image->n_res);
    REFUSE_IF(resp->res_prod - resp->res_out > image->n_res,
              "resources from res_out %u to res_prod %u are %u, which exceeds "
              "n_res %u", resp->res_out, resp->res_prod,
              resp->res_prod - resp->res_out, image->n_res);
    for (i = 0; i < image->n_res; i++) {
        REFUSE_AS(roce_check_nth("resource", i,
                        check_resource(&image->res[i],
                                rdma_mtu_bytes(image->s.attr.path_mtu))));
    }
    return NULL;
}
