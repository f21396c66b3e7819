/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks of send queues and their requesters.
 */
#include <glib.h>
#include "state-check.h"

/* Send requests at any position in the queue */

static char *check_opcode(const RoceQpImage *image, const RoceSendWqe *wqe)
{
    REFUSE_IF(!roce_opcode_ok(image->init.qp_type, wqe->opcode),
              "opcode %u is not one of a queue pair of type %s", wqe->opcode,
              roce_qp_type_name(image->init.qp_type));
    return NULL;
}

/* Check the fields that the opcode of a request without an error restricts. */
static char *check_operands(const RoceSendWqe *wqe, const RoceSendArgs *args)
{
    REFUSE_IF(roce_opcode_is_atomic(wqe->opcode) &&
              wqe->length != sizeof(uint64_t),
              "length %u of an ATOMIC is not 8", wqe->length);
    REFUSE_IF(roce_opcode_is_local(wqe->opcode) && wqe->length,
              "length %u is not 0, but opcode %u sends nothing", wqe->length,
              wqe->opcode);
    if (wqe->opcode == RDMA_WR_ATOMIC_WRITE) {
        REFUSE_IF(wqe->is_inline, "is_inline of an ATOMIC WRITE is 1");
        REFUSE_IF(wqe->length && wqe->length != sizeof(uint64_t),
                  "length %u of an ATOMIC WRITE is not 0 or 8", wqe->length);
    }
    if (wqe->opcode == RDMA_WR_FLUSH) {
        uint32_t type = args->access & ROCE_FETH_TYPE_MASK;
        uint32_t level = args->access >> ROCE_FETH_LEVEL_SHIFT;

        REFUSE_IF(wqe->length, "length %u of a FLUSH is not 0", wqe->length);
        REFUSE_ABOVE(args, reg_length, UINT32_MAX);
        REFUSE_IF(!roce_flush_ok(type, level), "access 0x%x of a FLUSH has "
                  "type %u, not in 1..%u, or level %u, not in 0..%u",
                  args->access, type,
                  RDMA_FLUSH_GLOBAL | RDMA_FLUSH_PERSISTENT, level,
                  RDMA_FLUSH_MR);
    }
    return NULL;
}

/* Check a WQE at any position in the queue. */
static char *check_send_wqe(const RoceQpImage *image, const RoceSendImage *send,
                            const RdmaSge *sges)
{
    const RoceSendWqe *wqe = &send->wqe;
    uint64_t length = 0;
    uint32_t i;

    REFUSE_ABOVE(wqe, status, RDMA_WC_GENERAL_ERR);
    REFUSE_NOT_BOOL(wqe, is_inline);
    REFUSE_NOT_BOOL(wqe, done);
    REFUSE_NOT_24_BITS(&send->args, remote_qpn);
    if (wqe->is_inline) {
        length = wqe->length;
    }
    for (i = 0; i < wqe->num_sge; i++) {
        length += sges[i].length;
    }
    REFUSE_IF(length != wqe->length, "length %u is not %" PRIu64 ", the sum "
              "of its SGEs", wqe->length, length);
    REFUSE_ABOVE(wqe, length, ROCE_MAX_MSG);
    if (wqe->status == RDMA_WC_SUCCESS) {
        REFUSE_AS(check_opcode(image, wqe));
        REFUSE_AS(check_operands(wqe, &send->args));
    }
    return NULL;
}

/* Check the page list of a REG_MR. @pages has wqe->npages elements. */
static char *check_send_pages(const RoceSendImage *send, const uint64_t *pages)
{
    const RoceSendWqe *wqe = &send->wqe;
    const RocePageList list = {
        .prefix = "REG_MR ",
        .iova = wqe->remote_addr,
        .length = send->args.reg_length,
        .pages = pages,
        .npages = wqe->npages,
        .shift = RDMA_PAGE_SHIFT,
    };

    if (!wqe->npages) {
        return NULL;
    }
    REFUSE_IF(wqe->opcode != RDMA_WR_REG_MR, "npages %u is not 0, but opcode "
              "%u is not REG_MR", wqe->npages, wqe->opcode);
    REFUSE_IF(wqe->done, "npages %u is not 0, but done is 1", wqe->npages);
    return roce_check_page_list(&list);
}

/* Are the counts of a WQE within the limits of the queue? */
static char *check_counts(const RdmaQpCap *cap, const RoceSendWqe *wqe)
{
    REFUSE_IF(wqe->num_sge > cap->max_send_sge,
              "num_sge %u exceeds max_send_sge %u", wqe->num_sge,
              cap->max_send_sge);
    if (wqe->is_inline) {
        REFUSE_IF(wqe->length > cap->max_inline_data,
                  "inline length %u exceeds max_inline_data %u", wqe->length,
                  cap->max_inline_data);
        REFUSE_IF(wqe->num_sge, "num_sge %u of inline data is not 0",
                  wqe->num_sge);
    }
    return NULL;
}

static char *check_send_wqes(const RoceQpImage *image)
{
    uint64_t sges = 0, data = 0, pages = 0;
    uint32_t i;

    /* Check all counts first: only then do the arrays have the elements. */
    for (i = 0; i < image->n_send; i++) {
        const RoceSendWqe *wqe = &image->send[i].wqe;

        REFUSE_AS(roce_check_nth("send request", i,
                                 check_counts(&image->init.cap, wqe)));
        sges += wqe->num_sge;
        data += wqe->is_inline ? wqe->length : 0;
        pages += wqe->npages;
    }
    REFUSE_IF(sges != image->n_send_sges, "n_send_sges %u is not %" PRIu64
              ", the sum of num_sge", image->n_send_sges, sges);
    REFUSE_IF(data != image->inline_len, "inline_len %u is not %" PRIu64
              ", the sum of inline lengths", image->inline_len, data);
    REFUSE_IF(pages != image->n_pages, "n_pages %u is not %" PRIu64
              ", the sum of npages", image->n_pages, pages);

    sges = 0;
    pages = 0;
    for (i = 0; i < image->n_send; i++) {
        const RoceSendWqe *wqe = &image->send[i].wqe;

        REFUSE_AS(roce_check_nth("send request", i,
                    check_send_wqe(image, &image->send[i], wqe->num_sge ?
                                   image->send_sges + sges : NULL)));
        REFUSE_AS(roce_check_nth("send request", i,
                    check_send_pages(&image->send[i], wqe->npages ?
                                     image->pages + pages : NULL)));
        sges += wqe->num_sge;
        pages += wqe->npages;
    }
    return NULL;
}

/* Send requests that were started */

/* Check a started WQE, whose first PSN must be @psn. */
static char *check_started(const RoceQpImage *image, const RoceSendWqe *wqe,
                           uint32_t psn, bool oldest)
{
    uint32_t mtu = rdma_mtu_bytes(image->s.attr.path_mtu);
    uint32_t npsn;

    REFUSE_AS(check_opcode(image, wqe));
    if (roce_opcode_is_local(wqe->opcode)) {
        /* A local WQE completes as soon as it is the oldest. */
        REFUSE_IF(oldest, "opcode %u, a local one, is still in the queue as "
                  "the oldest", wqe->opcode);
        REFUSE_IF(!wqe->done, "done is 0, but opcode %u, a local one, was "
                  "started", wqe->opcode);
        REFUSE_IF(wqe->npsn, "npsn %u is not 0, but opcode %u sends nothing",
                  wqe->npsn, wqe->opcode);
        return NULL;
    }
    REFUSE_IF(wqe->done, "done is 1, but opcode %u is not a local one",
              wqe->opcode);
    REFUSE_IF(wqe->first_psn != psn, "first_psn %u is not %u, where the "
              "request before it ends", wqe->first_psn, psn);
    npsn = roce_packets(wqe->length, mtu);
    REFUSE_IF(wqe->npsn != npsn, "npsn %u is not %u, the packets of length %u "
              "with a path MTU of %u bytes", wqe->npsn, npsn, wqe->length,
              mtu);
    REFUSE_IF((roce_opcode_is_atomic(wqe->opcode) ||
               roce_opcode_is_placement(wqe->opcode)) && wqe->npsn != 1,
              "npsn %u is not 1, but opcode %u has one packet", wqe->npsn,
              wqe->opcode);
    return NULL;
}

/*
 * Compare the cursors with the started WQEs. PSNs are compared by their
 * distance from una, which is a PSN of the oldest WQE.
 */
static char *check_under_way(const RoceQpImage *image)
{
    const RoceSqState *sq = &image->s.sq;
    uint32_t started = sq->started - sq->cons;
    uint32_t cur = sq->cur - sq->cons;
    uint32_t rd_atomic = 0, rd_psns = 0;
    uint32_t psn = started ? image->send[0].wqe.first_psn : sq->end;
    uint32_t cur_psn = psn, first_psn;
    uint64_t npsn = 0, given_out;
    uint32_t i;

    REFUSE_AS(roce_check_nth("send request", 0,
                             roce_check_24_bits("first_psn", psn)));
    REFUSE_IF(started && !has_path(image), "%u send requests are started, but "
              "a queue pair of type %s has no path", started,
              roce_qp_type_name(image->init.qp_type));
    for (i = 0; i < started; i++) {
        const RoceSendWqe *wqe = &image->send[i].wqe;
        uint32_t next = psn_add(psn, wqe->npsn);

        REFUSE_AS(roce_check_nth("send request", i,
                                 check_started(image, wqe, psn, i == 0)));
        if (i == 0) {
            REFUSE_IF(psn_off(sq->una, psn) >= wqe->npsn,
                      "una %u is not in %u..%u, the PSNs of the oldest send "
                      "request", sq->una, psn, psn_add(next, -1));
        }
        if (!wqe->done && roce_opcode_needs_response(wqe->opcode)) {
            rd_atomic++;
            rd_psns += i == 0 ? psn_off(next, sq->una) : wqe->npsn;
        }
        if (i == cur) {
            cur_psn = psn;
            REFUSE_IF(sq->cur_pkt && sq->cur_pkt >= wqe->npsn,
                      "cur_pkt %u is not below %u, npsn of send request %u",
                      sq->cur_pkt, wqe->npsn, i);
        }
        psn = next;
        npsn += wqe->npsn;
    }
    for (; i < image->n_send; i++) {
        REFUSE_IF(image->send[i].wqe.done, "send request %u: done is 1, but it "
                  "was not started", i);
    }
    if (cur == started) {
        cur_psn = psn;
        REFUSE_IF(sq->cur_pkt, "cur_pkt %u is not 0, but cur is %u, as "
                  "started is", sq->cur_pkt, sq->cur);
    }
    first_psn = started ? image->send[0].wqe.first_psn : sq->una;
    given_out = psn_off(sq->una, first_psn) + psn_off(sq->end, sq->una);
    REFUSE_IF(npsn != given_out, "npsn of started send requests is %" PRIu64
              " in all, not %" PRIu64 ", the PSNs from %u up to end %u", npsn,
              given_out, first_psn, sq->end);
    REFUSE_IF(sq->psn != psn_add(cur_psn, sq->cur_pkt), "psn %u is not %u, "
              "the PSN of packet %u of send request %u", sq->psn,
              psn_add(cur_psn, sq->cur_pkt), sq->cur_pkt, cur);
    REFUSE_IF(sq->rd_atomic != rd_atomic, "rd_atomic %u is not %u, the READs "
              "and ATOMICs under way", sq->rd_atomic, rd_atomic);
    REFUSE_IF(sq->rd_psns != rd_psns, "rd_psns %u is not %u, the PSNs that "
              "READs and ATOMICs wait for", sq->rd_psns, rd_psns);
    return NULL;
}

/* The queue */

static char *check_psns(const RoceSqState *sq)
{
    uint32_t range = psn_off(sq->end, sq->una);

    REFUSE_NOT_24_BITS(sq, una);
    REFUSE_NOT_24_BITS(sq, psn);
    REFUSE_NOT_24_BITS(sq, sent);
    REFUSE_NOT_24_BITS(sq, end);
    REFUSE_IF(psn_off(sq->psn, sq->una) > psn_off(sq->sent, sq->una) ||
              psn_off(sq->sent, sq->una) > range,
              "PSN cursors not in order: una %u, psn %u, sent %u, end %u",
              sq->una, sq->psn, sq->sent, sq->end);
    REFUSE_IF(range > ROCE_PSN_RANGE, "PSNs from una %u to end %u are %u, "
              "which exceeds %u", sq->una, sq->end, range, ROCE_PSN_RANGE);
    return NULL;
}

static char *check_timers(const RoceQpImage *image, bool sends)
{
    const RoceSqState *sq = &image->s.sq;
    bool may_run = image->init.qp_type == RDMA_QPT_RC && sends;
    const char *type = roce_qp_type_name(image->init.qp_type);
    const char *state = rdma_qp_state_name(image->s.attr.qp_state);

    REFUSE_IF(sq->rnr_wait && sq->rnr_deadline == ROCE_NO_DEADLINE,
              "rnr_wait is 1, but there is no rnr_deadline");
    REFUSE_IF(!sq->rnr_wait && sq->rnr_deadline != ROCE_NO_DEADLINE,
              "rnr_deadline is %" PRId64 ", but rnr_wait is 0",
              sq->rnr_deadline);
    REFUSE_IF(sq->ack_deadline < 0, "ack_deadline %" PRId64 " is negative",
              sq->ack_deadline);
    REFUSE_IF(sq->rnr_deadline < 0, "rnr_deadline %" PRId64 " is negative",
              sq->rnr_deadline);
    REFUSE_IF(sq->send_at < 0, "send_at %" PRId64 " is negative",
              sq->send_at);
    REFUSE_IF(sq->ack_deadline != ROCE_NO_DEADLINE && !may_run,
              "ack_deadline is %" PRId64 " in state %s of type %s, not RTS or "
              "SQD of RC", sq->ack_deadline, state, type);
    REFUSE_IF(sq->ack_deadline != ROCE_NO_DEADLINE && sq->una == sq->sent,
              "ack_deadline is %" PRId64 ", but no packet waits for an ACK",
              sq->ack_deadline);
    REFUSE_IF(sq->rnr_wait && !may_run, "rnr_wait is 1 in state %s of type "
              "%s, not RTS or SQD of RC", state, type);
    return NULL;
}

char *roce_check_sq(const RoceQpImage *image)
{
    const RoceSqState *sq = &image->s.sq;
    uint32_t max = image->init.cap.max_send_wr;
    uint32_t state = image->s.attr.qp_state;
    const char *name = rdma_qp_state_name(state);
    uint32_t n = sq->prod - sq->cons;
    bool sends = state == RDMA_QPS_RTS || state == RDMA_QPS_SQD;

    REFUSE_IF(n > max, "send queue from cons %u to prod %u has %u requests, "
              "which exceeds max_send_wr %u", sq->cons, sq->prod, n, max);
    REFUSE_IF(n != image->n_send, "n_send %u is not %u, the requests from "
              "cons %u to prod %u", image->n_send, n, sq->cons, sq->prod);
    REFUSE_IF(n && !sends && state != RDMA_QPS_SQE && state != RDMA_QPS_ERR,
              "n_send %u is not 0 in state %s", n, name);
    REFUSE_IF(sq->started - sq->cons > n ||
              sq->cur - sq->cons > sq->started - sq->cons,
              "queue cursors not in order: cons %u, cur %u, started %u, prod "
              "%u", sq->cons, sq->cur, sq->started, sq->prod);
    REFUSE_IF(sq->started != sq->cons && !sends,
              "%u send requests are started in state %s, not RTS or SQD",
              sq->started - sq->cons, name);
    REFUSE_AS(check_psns(sq));
    REFUSE_ABOVE(sq, unrequested, ROCE_ACK_INTERVAL - 1);
    REFUSE_ABOVE(sq, retries, RDMA_MAX_RETRIES);
    REFUSE_ABOVE(sq, rnr_retries, RDMA_MAX_RETRIES);
    REFUSE_NOT_BOOL(sq, seq_error_handled);
    REFUSE_NOT_BOOL(sq, rnr_wait);
    REFUSE_NOT_BOOL(sq, draining);
    REFUSE_IF(sq->draining && state != RDMA_QPS_SQD,
              "draining is 1 in state %s, not SQD", name);
    REFUSE_AS(check_timers(image, sends));
    REFUSE_AS(check_send_wqes(image));
    return check_under_way(image);
}
