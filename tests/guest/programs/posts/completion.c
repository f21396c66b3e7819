/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Contents of completions */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "posts.h"

/* Contexts use all 64 bits, so that a cut one is noticed. */
void *context_of(uint32_t n)
{
    return (void *)(uintptr_t)(0x8765432100000000ull | n);
}

bool is_rxe(const struct end *e)
{
    return !strncmp(ibv_get_device_name(e->id->verbs->device), "rxe", 3);
}

/* IBTA names the errors; rxe calls some of them operation errors. */
static bool is_status(const struct end *e, enum ibv_wc_status is,
                      enum ibv_wc_status expected)
{
    if (is == expected) {
        return true;
    }
    switch (is_rxe(e) ? expected : IBV_WC_SUCCESS) {
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_LEN_ERR:
        return is == IBV_WC_LOC_QP_OP_ERR;
    case IBV_WC_REM_INV_REQ_ERR:
        return is == IBV_WC_REM_OP_ERR;
    default:
        return false;
    }
}

static void identify(const struct end *e, const struct ibv_wc *wc,
                     const char *queue, int ret, uint32_t n,
                     enum ibv_wc_status status)
{
    if (ret != 1) {
        fail("%s: rdma_get_%s_comp returned %d", queue, queue, ret);
    }
    if (wc->wr_id != (uintptr_t)context_of(n) ||
        !is_status(e, wc->status, status)) {
        fail("%s: completion of context 0x%llx (%s), not 0x%llx (%s)", queue,
             (unsigned long long)wc->wr_id, ibv_wc_status_str(wc->status),
             (unsigned long long)(uintptr_t)context_of(n),
             ibv_wc_status_str(status));
    }
    if (wc->qp_num != e->id->qp->qp_num) {
        fail("%s: completion of queue pair %u, not %u", queue, wc->qp_num,
             e->id->qp->qp_num);
    }
}

/* A completion of a SEND or WRITE has no length. */
struct ibv_wc get_send(struct end *e, uint32_t n, enum ibv_wc_opcode opcode,
                       uint32_t len)
{
    struct ibv_wc wc = {};
    int ret = rdma_get_send_comp(e->id, &wc);

    identify(e, &wc, "send", ret, n, IBV_WC_SUCCESS);
    if (wc.opcode != opcode) {
        fail("send: opcode %d, not %d", wc.opcode, opcode);
    }
    if (opcode == IBV_WC_RDMA_READ && wc.byte_len != len) {
        fail("send: a READ of %u bytes, not %u", wc.byte_len, len);
    }
    return wc;
}

struct ibv_wc get_recv(struct end *e, uint32_t n, uint32_t len)
{
    struct ibv_wc wc = {};
    int ret = rdma_get_recv_comp(e->id, &wc);
    unsigned flags = e->id->ps == RDMA_PS_UDP ? IBV_WC_GRH : 0;

    identify(e, &wc, "recv", ret, n, IBV_WC_SUCCESS);
    if (is_rxe(e)) {
        /* rxe sets this flag on connections, too. */
        flags = IBV_WC_GRH;
    }
    if (wc.opcode != IBV_WC_RECV || wc.byte_len != len ||
        wc.wc_flags != flags) {
        fail("recv: opcode %d, %u bytes, flags 0x%x, not %d, %u and 0x%x",
             wc.opcode, wc.byte_len, wc.wc_flags, IBV_WC_RECV, len, flags);
    }
    return wc;
}

/* After an error only wr_id, status, qp_num and vendor_err are valid. */
void get_send_error(struct end *e, uint32_t n, enum ibv_wc_status status)
{
    struct ibv_wc wc = {};
    int ret = rdma_get_send_comp(e->id, &wc);

    identify(e, &wc, "send", ret, n, status);
}

void get_recv_error(struct end *e, uint32_t n, enum ibv_wc_status status)
{
    struct ibv_wc wc = {};
    int ret = rdma_get_recv_comp(e->id, &wc);

    identify(e, &wc, "recv", ret, n, status);
}

void no_more(struct end *e)
{
    struct ibv_wc wc = {};

    if (ibv_poll_cq(e->id->send_cq, 1, &wc) ||
        ibv_poll_cq(e->id->recv_cq, 1, &wc)) {
        fail("unexpected completion of context 0x%llx (%s), opcode %d",
             (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status),
             wc.opcode);
    }
}
