/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each refusal of a queue pair names the field, its value and the limit.
 */
#include "roce-refusal.h"

#define QPN 2

#define QP(field, value) FIELD(IMAGE, 0, RoceQpImage, field, value)
#define ATTR(field, value) QP(s.attr.field, value)
#define SQ(field, value) QP(s.sq.field, value)
#define RESP(field, value) QP(s.resp.field, value)
#define WQE(index, field, value) \
    FIELD(SEND, index, RoceSendImage, wqe.field, value)
#define ARGS(index, field, value) \
    FIELD(SEND, index, RoceSendImage, args.field, value)
#define WQE_SGE(index, value) FIELD(SEND_SGE, index, RdmaSge, length, value)
#define READ(field, value) FIELD(RES, 0, RoceResource, field, value)
#define ATOMIC(field, value) FIELD(RES, 1, RoceResource, field, value)
#define FLUSH(field, value) FIELD(RES, 2, RoceResource, field, value)

#define TYPE(value) QP(init.qp_type, RDMA_QPT_##value)
#define STATE(value) ATTR(qp_state, RDMA_QPS_##value)
#define DGID(index, value) ATTR(ah_attr.dgid[index], value)

/*
 * A QP without send requests. Types other than RC must have no resources,
 * either.
 */
static const Change idle[] = {
    SQ(cur, 10), SQ(cur_pkt, 0), SQ(started, 10), SQ(prod, 10),
    SQ(una, 111), SQ(psn, 111), SQ(sent, 111), SQ(end, 111),
    SQ(rd_atomic, 0), SQ(rd_psns, 0),
    QP(n_send, 0), QP(n_send_sges, 0), QP(inline_len, 0), QP(n_pages, 0),
    { END }
};

static const Refusal attributes[] = {
    { NULL },
    { NULL, {}, idle },
    { NULL, { TYPE(GSI), QP(init.qpn, 1), QP(n_res, 0), RESP(res_prod, 0) },
      idle },
    { NULL, { TYPE(UC), STATE(SQE), QP(n_res, 0), RESP(res_prod, 0) }, idle },
    { "qp_type 0 is not in 1..4", { TYPE(SMI) } },
    { "qp_type 5 is not in 1..4", { QP(init.qp_type, 5) } },
    { "max_send_wr 2097153 exceeds 2097152",
      { QP(init.cap.max_send_wr, BIG_WR + 1) } },
    { "max_recv_wr 2097153 exceeds 2097152",
      { QP(init.cap.max_recv_wr, BIG_WR + 1) } },
    { "max_send_sge 9 exceeds 8", { QP(init.cap.max_send_sge, 9) } },
    { "max_recv_sge 9 exceeds 8", { QP(init.cap.max_recv_sge, 9) } },
    { "max_inline_data 65 exceeds 64", { QP(init.cap.max_inline_data, 65) } },
    { "invalid boolean 2 in field send_cq_failed", { QP(send_cq_failed, 2) } },
    { "invalid boolean 3 in field recv_cq_failed", { QP(recv_cq_failed, 3) } },

    { "qp_state 7 exceeds 6", { ATTR(qp_state, 7) } },
    { "qp_state 5 (SQE) is not one of type RC", { STATE(SQE) } },
    { "path_mtu 6 exceeds 5", { ATTR(path_mtu, 6) } },
    { "dest_qp_num 0x1000000 has more than 24 bits",
      { ATTR(dest_qp_num, 0x1000000) } },
    { "timeout 32 exceeds 31", { ATTR(timeout, 32) } },
    { "min_rnr_timer 32 exceeds 31", { ATTR(min_rnr_timer, 32) } },
    { "retry_cnt 8 exceeds 7", { ATTR(retry_cnt, 8) } },
    { "rnr_retry 9 exceeds 7", { ATTR(rnr_retry, 9) } },
    { "max_rd_atomic 17 exceeds 16", { ATTR(max_rd_atomic, 17) } },
    { "max_dest_rd_atomic 17 exceeds 16", { ATTR(max_dest_rd_atomic, 17) } },
    { "pkey_index 256 is not 0", { ATTR(pkey_index, 256) } },
    { "port_num 2 exceeds 1", { ATTR(port_num, 2) } },
    { "path_mig_state 1 is not 0", { ATTR(path_mig_state, 1) } },

    { "path_mtu is 0 in state RTS", { ATTR(path_mtu, 0) } },
    { "path_mtu 4 (2048 bytes) exceeds 3 (1024 bytes), the largest for the "
      "link's MTU of 1500 bytes", { ATTR(path_mtu, RDMA_MTU_2048) } },
    { "sgid_index 8 is not below 8, the length of the GID table",
      { ATTR(ah_attr.sgid_index, 8) } },
    { "port_num 0 is not 1", { ATTR(ah_attr.port_num, 0) } },
    { "flow_label 0x100000 exceeds 0xfffff",
      { ATTR(ah_attr.flow_label, 0x100000) } },
    { "dgid is zero", { DGID(0, 0), DGID(1, 0), DGID(15, 0) } },
    { "dgid 0xff02...00000001 is a multicast GID",
      { DGID(0, 0xff), DGID(1, 2) } },

    /* Images that roce_qp_create() refuses */
    { "qpn 2 of type GSI is not 1",
      { TYPE(GSI), QP(n_res, 0), RESP(res_prod, 0) }, idle },
    { "qpn 0 is reserved, not one of type RC", { QP(init.qpn, 0) } },
    { "qpn 1 is reserved, not one of type RC", { QP(init.qpn, 1) } },
    { "qpn 64 is not below 64", { QP(init.qpn, LINK_MAX_QP) } },
    { "max_send_wr 1048577 exceeds 1048576",
      { QP(init.cap.max_send_wr, ROCE_MAX_WR + 1) } },
    { "max_recv_wr 1048577 exceeds 1048576",
      { QP(init.cap.max_recv_wr, ROCE_MAX_WR + 1) } },
    { "srqn 1 on a queue pair of type GSI, which has no SRQ",
      { TYPE(GSI), QP(init.qpn, 1), QP(init.has_srq, 1), QP(init.srqn, SRQN),
        QP(init.cap.max_recv_wr, 0), QP(init.cap.max_recv_sge, 0),
        QP(s.rq.prod, 3), QP(n_recv, 0), QP(n_recv_sges, 0),
        QP(n_res, 0), RESP(res_prod, 0) }, idle },
    { "qpn 3 is in use", { QP(init.qpn, PEER_QPN) } },
};

static const Refusal send_queues[] = {
    { NULL, { STATE(SQD), SQ(draining, 1), SQ(ack_deadline, 900) } },
    { NULL, { SQ(rnr_wait, 1), SQ(rnr_deadline, 900) } },
    { "send queue from cons 10 to prod 21 has 11 requests, which exceeds "
      "max_send_wr 10", { SQ(prod, 21) } },
    { "n_send 9 is not 10, the requests from cons 10 to prod 20",
      { QP(n_send, 9) } },
    { "n_send 10 is not 0 in state RTR", { STATE(RTR) } },
    { "queue cursors not in order: cons 10, cur 13, started 21, prod 20",
      { SQ(started, 21) } },
    { "queue cursors not in order: cons 10, cur 16, started 15, prod 20",
      { SQ(cur, 16) } },
    { "5 send requests are started in state ERR, not RTS or SQD",
      { STATE(ERR) } },
    { "una 0x1000066 has more than 24 bits", { SQ(una, 0x1000066) } },
    { "psn 0x1000066 has more than 24 bits", { SQ(psn, 0x1000066) } },
    { "sent 0x1000066 has more than 24 bits", { SQ(sent, 0x1000066) } },
    { "end 0x1000066 has more than 24 bits", { SQ(end, 0x1000066) } },
    { "PSN cursors not in order: una 102, psn 108, sent 107, end 111",
      { SQ(sent, 107) } },
    { "PSN cursors not in order: una 102, psn 108, sent 112, end 111",
      { SQ(sent, 112) } },
    { "PSNs from una 111 to end 8388720 are 8388609, which exceeds 8388608",
      { SQ(end, 8388720) }, idle },
    { "unrequested 32 exceeds 31", { SQ(unrequested, 32) } },
    { "retries 8 exceeds 7", { SQ(retries, 8) } },
    { "rnr_retries 8 exceeds 7", { SQ(rnr_retries, 8) } },
    { "invalid boolean 2 in field seq_error_handled",
      { SQ(seq_error_handled, 2) } },
    { "invalid boolean 7 in field rnr_wait", { SQ(rnr_wait, 7) } },
    { "invalid boolean 255 in field draining", { SQ(draining, 255) } },
    { "draining is 1 in state RTS, not SQD", { SQ(draining, 1) } },
    { "rnr_wait is 1, but there is no rnr_deadline", { SQ(rnr_wait, 1) } },
    { "rnr_deadline is 5000, but rnr_wait is 0", { SQ(rnr_deadline, 5000) } },
    { "ack_deadline -5 is negative", { SQ(ack_deadline, -5) } },
    { "rnr_deadline -6 is negative",
      { SQ(rnr_wait, 1), SQ(rnr_deadline, -6) } },
    { "send_at -7 is negative", { SQ(send_at, -7) } },
    { "ack_deadline is 900 in state RTS of type UC, not RTS or SQD of RC",
      { TYPE(UC), SQ(ack_deadline, 900) }, idle },
    { "ack_deadline is 900 in state ERR of type RC, not RTS or SQD of RC",
      { STATE(ERR), SQ(ack_deadline, 900) }, idle },
    { "ack_deadline is 900, but no packet waits for an ACK",
      { SQ(ack_deadline, 900) }, idle },
    { "rnr_wait is 1 in state INIT of type RC, not RTS or SQD of RC",
      { STATE(INIT), SQ(rnr_wait, 1), SQ(rnr_deadline, 5) }, idle },
};

static const Refusal send_requests[] = {
    { "send request 1: num_sge 3 exceeds max_send_sge 2",
      { WQE(1, num_sge, 3) } },
    { "send request 5: inline length 17 exceeds max_inline_data 16",
      { WQE(5, length, 17) } },
    { "send request 5: num_sge 1 of inline data is not 0",
      { WQE(5, num_sge, 1) } },
    { "n_send_sges 7 is not 6, the sum of num_sge", { QP(n_send_sges, 7) } },
    { "inline_len 15 is not 16, the sum of inline lengths",
      { QP(inline_len, 15) } },
    { "n_pages 1 is not 2, the sum of npages", { QP(n_pages, 1) } },
    { "send request 9: status 22 exceeds 21", { WQE(9, status, 22) } },
    { "send request 6: invalid boolean 2 in field is_inline",
      { WQE(6, is_inline, 2) } },
    { "send request 2: invalid boolean 3 in field done", { WQE(2, done, 3) } },
    { "send request 0: remote_qpn 0x1000002 has more than 24 bits",
      { ARGS(0, remote_qpn, 0x1000002) } },
    { "send request 1: length 2000 is not 1999, the sum of its SGEs",
      { WQE_SGE(2, 499) } },
    { "send request 1: length 2147483649 exceeds 2147483648",
      { WQE(1, length, 0x80000001), WQE_SGE(1, 0x80000000), WQE_SGE(2, 1) } },
    { "send request 3: opcode 77 is not one of a queue pair of type RC",
      { WQE(3, opcode, 77) } },
    { "send request 0: opcode 4 is not one of a queue pair of type UC",
      { TYPE(UC) } },
    { "send request 4: length 16 of an ATOMIC is not 8",
      { WQE(4, length, 16), WQE_SGE(4, 16) } },
    { "send request 5: length 16 is not 0, but opcode 7 sends nothing",
      { WQE(5, opcode, RDMA_WR_LOCAL_INV) } },
    { "send request 5: is_inline of an ATOMIC WRITE is 1",
      { WQE(5, opcode, RDMA_WR_ATOMIC_WRITE) } },
    { "send request 7: length 9 of an ATOMIC WRITE is not 0 or 8",
      { WQE(7, length, 9), WQE_SGE(5, 9) } },
    { "send request 5: length 16 of a FLUSH is not 0",
      { WQE(5, opcode, RDMA_WR_FLUSH) } },
    { "send request 8: reg_length 4294967296 exceeds 4294967295",
      { ARGS(8, reg_length, UINT64_C(1) << 32) } },
    { "send request 8: access 0x20 of a FLUSH has type 0, not in 1..3, or "
      "level 2, not in 0..1", { ARGS(8, access, 0x20) } },
    { "send request 6: npages 2 is not 0, but opcode 7 is not REG_MR",
      { WQE(6, opcode, RDMA_WR_LOCAL_INV) } },
    { "send request 6: npages 2 is not 0, but done is 1",
      { WQE(6, done, 1) } },
    { "send request 6: REG_MR npages 2 is not 3, the pages of 4096 bytes "
      "that cover REG_MR length 8193 from REG_MR iova 0x3000",
      { ARGS(6, reg_length, 8193) } },
    { "send request 6: REG_MR pages[1] 0x123 is not a multiple of the page "
      "size 4096", { PAGE(1, 0x123) } },
};

/*
 * The opcode of a request with an error status is checked once it is started.
 */
static const Refusal under_way[] = {
    { NULL, { SQ(cur_pkt, 0), SQ(psn, 107) } },
    { "send request 0: first_psn 0x1000064 has more than 24 bits",
      { WQE(0, first_psn, 0x1000064) } },
    { "1 send requests are started, but a queue pair of type UD has no path",
      { TYPE(UD), SQ(prod, 11), SQ(started, 11), QP(n_send, 1),
        QP(n_send_sges, 1), WQE(0, opcode, RDMA_WR_SEND) }, idle },
    { "send request 0: opcode 77 is not one of a queue pair of type RC",
      { WQE(0, status, RDMA_WC_LOC_QP_OP_ERR), WQE(0, opcode, 77) } },
    { "send request 0: opcode 7, a local one, is still in the queue as the "
      "oldest", { WQE(0, status, RDMA_WC_LOC_QP_OP_ERR),
                  WQE(0, opcode, RDMA_WR_LOCAL_INV) } },
    { "send request 2: done is 0, but opcode 7, a local one, was started",
      { WQE(2, done, 0) } },
    { "send request 2: npsn 1 is not 0, but opcode 7 sends nothing",
      { WQE(2, npsn, 1) } },
    { "send request 1: done is 1, but opcode 0 is not a local one",
      { WQE(1, done, 1) } },
    { "send request 1: first_psn 104 is not 105, where the request before it "
      "ends", { WQE(1, first_psn, 104) } },
    { "send request 1: npsn 3 is not 2, the packets of length 2000 with a "
      "path MTU of 1024 bytes", { WQE(1, npsn, 3) } },
    { "send request 1: npsn 2 is not 1, but opcode 6 has one packet",
      { WQE(1, status, RDMA_WC_LOC_QP_OP_ERR),
        WQE(1, opcode, RDMA_WR_ATOMIC_FETCH_AND_ADD) } },
    { "send request 1: npsn 2 is not 1, but opcode 15 has one packet",
      { WQE(1, status, RDMA_WC_LOC_QP_OP_ERR),
        WQE(1, opcode, RDMA_WR_ATOMIC_WRITE) } },
    { "una 99 is not in 100..104, the PSNs of the oldest send request",
      { SQ(una, 99) } },
    { "una 105 is not in 100..104, the PSNs of the oldest send request",
      { SQ(una, 105) } },
    { "cur_pkt 3 is not below 3, npsn of send request 3", { SQ(cur_pkt, 3) } },
    { "send request 5: done is 1, but it was not started",
      { WQE(5, done, 1) } },
    { "cur_pkt 1 is not 0, but cur is 15, as started is", { SQ(cur, 15) } },
    { "npsn of started send requests is 11 in all, not 12, the PSNs from 100 "
      "up to end 112", { SQ(end, 112) } },
    { "psn 107 is not 108, the PSN of packet 1 of send request 3",
      { SQ(psn, 107) } },
    { "rd_atomic 3 is not 2, the READs and ATOMICs under way",
      { SQ(rd_atomic, 3) } },
    { "rd_psns 5 is not 4, the PSNs that READs and ATOMICs wait for",
      { SQ(rd_psns, 5) } },
};

static const Change has_srq[] = {
    QP(init.has_srq, 1), QP(init.srqn, SRQN), QP(init.cap.max_recv_wr, 0),
    QP(init.cap.max_recv_sge, 0),
    { END }
};

static const Refusal receive_queues[] = {
    { NULL, {}, has_srq },
    { NULL, { QP(s.rq.prod, 3), QP(n_recv, 0), QP(n_recv_sges, 0) } },
    { "srqn 3 is not a shared receive queue", { QP(init.srqn, 3) }, has_srq },
    { "max_recv_wr 4 is not 0, but there is an SRQ",
      { QP(init.cap.max_recv_wr, 4) }, has_srq },
    { "max_recv_sge 2 is not 0, but there is an SRQ",
      { QP(init.cap.max_recv_sge, 2) }, has_srq },
    { "receive queue from cons 3 to prod 5 has 2 requests, which exceeds 1",
      { QP(s.rq.prod, 5) }, has_srq },
    { "receive queue from cons 3 to prod 5 has 2 requests, which exceeds 1",
      { QP(s.rq.prod, 5) } },
    { "receive queue from cons 3 to prod 4 has 1 requests, which exceeds 0",
      { QP(init.cap.max_recv_wr, 0) } },
    { "n_recv 0 is not 1, the requests from cons 3 to prod 4",
      { QP(n_recv, 0) } },
    { "n_recv 1 is not 0 in state RESET", { STATE(RESET) }, idle },
    { "receive request 0: status 100 exceeds 21", { RWQE(0, status, 100) } },
    { "receive request 0: num_sge 3 exceeds 2", { RWQE(0, num_sge, 3) } },
    { "n_recv_sges 1 is not 2, the sum of num_sge", { QP(n_recv_sges, 1) } },
};

static const Refusal responders[] = {
    { NULL, { RESP(op, 2), RESP(offset, 1024), RESP(write_len, 1025) } },
    { NULL, { STATE(ERR), RESP(closing, 1) }, idle },
    { NULL, { READ(len, 0), READ(npsn, 1), READ(reply_va, 0x5000),
              READ(reply_len, 0), READ(reply_off, 0), READ(reply_psn, 50) } },
    { NULL, { READ(first, 0), READ(pending, 0) } },
    { NULL, { ATOMIC(opcode, 0x14) } },
    { "epsn 0x1000000 has more than 24 bits", { RESP(epsn, 0x1000000) } },
    { "msn 0x1000000 has more than 24 bits", { RESP(msn, 0x1000000) } },
    { "ack_psn 0x1000000 has more than 24 bits",
      { RESP(ack_psn, 0x1000000) } },
    { "op 4 is not 0, 1 (SEND) or 2 (WRITE)", { RESP(op, 4) } },
    { "offset 2147483649 exceeds 2147483648", { RESP(offset, 0x80000001) } },
    { "write_len 2147483649 exceeds 2147483648",
      { RESP(write_len, 0x80000001) } },
    { "path_mtu is 0, but op is 1",
      { STATE(ERR), ATTR(path_mtu, 0), RESP(op, 1) }, idle },
    { "offset is 0, but op is 2", { RESP(op, 2) } },
    { "offset 1000 is not a multiple of 1024 bytes, the path MTU",
      { RESP(op, 1), RESP(offset, 1000) } },
    { "offset 2048 is not below write_len 2048",
      { RESP(op, 2), RESP(offset, 2048), RESP(write_len, 2048) } },
    { "ack_kind 3 exceeds 2", { RESP(ack_kind, 3) } },
    { "invalid boolean 2 in field nak_sent", { RESP(nak_sent, 2) } },
    { "invalid boolean 2 in field comm_est", { RESP(comm_est, 2) } },
    { "invalid boolean 2 in field closing", { RESP(closing, 2) } },
    { "closing is 1 in state RTS, not ERR", { RESP(closing, 1) } },

    { "n_res 17 exceeds 16", { QP(n_res, 17) } },
    { "n_res 4 is not 0 on a queue pair of type UC", { TYPE(UC) }, idle },
    { "path_mtu is 0, but n_res is 4",
      { STATE(ERR), ATTR(path_mtu, 0) }, idle },
    { "resources from res_out 4294967295 to res_prod 4 are 5, which exceeds "
      "n_res 4", { RESP(res_out, UINT32_MAX) } },
    { "resource 0: psn 0x1000000 has more than 24 bits",
      { READ(psn, 0x1000000) } },
    { "resource 1: msn 0x1000000 has more than 24 bits",
      { ATOMIC(msn, 0x1000000) } },
    { "resource 2: reply_psn 0x1000000 has more than 24 bits",
      { FLUSH(reply_psn, 0x1000000) } },
    { "resource 1: invalid boolean 2 in field first", { ATOMIC(first, 2) } },
    { "resource 1: invalid boolean 2 in field pending",
      { ATOMIC(pending, 2) } },
    { "resource 2: first is 1, but pending is 0", { FLUSH(first, 1) } },
    { "resource 0: len 2147483649 exceeds 2147483648",
      { READ(len, 0x80000001) } },
    { "resource 0: npsn 4 is not 3, the packets of len 3000 with a path MTU "
      "of 1024 bytes", { READ(npsn, 4) } },
    { "resource 0: reply_va 0x5401 is not a multiple of 1024 bytes, the path "
      "MTU, after va 0x5000", { READ(reply_va, 0x5401) } },
    { "resource 0: reply_va 0x5c00 is not in the 3000 bytes from va 0x5000 "
      "on", { READ(reply_va, 0x5c00) } },
    { "resource 0: reply_len 1977 exceeds 1976, the bytes from reply_va on",
      { READ(reply_len, 1977) } },
    { "resource 0: reply_va 0x5c00 is at the end of the 3072 bytes from va "
      "0x5000 on",
      { READ(len, 3072), READ(reply_va, 0x5c00), READ(reply_len, 0) } },
    { "resource 0: reply_off 1977 exceeds reply_len 1976",
      { READ(reply_off, 1977) } },
    { "resource 0: reply_off 1000 is not a multiple of 1024 bytes, the path "
      "MTU", { READ(reply_off, 1000) } },
    { "resource 0: pending is 1, but reply_off 1024 is reply_len",
      { READ(reply_len, 1024) } },
    { "resource 0: reply_psn 53 is not 52, that of reply_off 1024",
      { READ(reply_psn, 53) } },
    { "resource 1: npsn 2 is not 1", { ATOMIC(npsn, 2) } },
    { "resource 1: opcode 0x15 is not 0x13 (COMPARE_SWAP) or 0x14 "
      "(FETCH_ADD)", { ATOMIC(opcode, 0x15) } },
    { "resource 2: npsn 2 is not 1", { FLUSH(npsn, 2) } },
    { "resource 1: type 0 is not in 1..4", { ATOMIC(type, ROCE_RES_NONE) } },
    { "resource 1: type 5 is not in 1..4", { ATOMIC(type, 5) } },
};

/*
 * Import an RC QP with five requests in progress. The oldest one is partly
 * acknowledged, and the fourth is the next to send.
 */
static void try_qp(const Refusal *r)
{
    static const RdmaQpCap max = { BIG_WR, BIG_WR, 8, 8, 64 };
    RoceSendImage send[] = {
        { .wqe.opcode = RDMA_WR_RDMA_READ, .wqe.num_sge = 1,
          .wqe.length = 5000, .wqe.first_psn = 100, .wqe.npsn = 5 },
        { .wqe.opcode = RDMA_WR_RDMA_WRITE, .wqe.num_sge = 2,
          .wqe.length = 2000, .wqe.first_psn = 105, .wqe.npsn = 2 },
        { .wqe.opcode = RDMA_WR_LOCAL_INV, .wqe.done = 1 },
        { .wqe.opcode = RDMA_WR_RDMA_WRITE, .wqe.num_sge = 1,
          .wqe.length = 3000, .wqe.first_psn = 107, .wqe.npsn = 3 },
        { .wqe.opcode = RDMA_WR_ATOMIC_CMP_AND_SWP, .wqe.num_sge = 1,
          .wqe.length = 8, .wqe.first_psn = 110, .wqe.npsn = 1 },
        { .wqe.opcode = RDMA_WR_SEND, .wqe.is_inline = 1, .wqe.length = 16 },
        { .wqe.opcode = RDMA_WR_REG_MR, .wqe.npages = 2,
          .wqe.remote_addr = 0x3000, .args.reg_length = 8192 },
        { .wqe.opcode = RDMA_WR_ATOMIC_WRITE, .wqe.num_sge = 1,
          .wqe.length = 8 },
        { .wqe.opcode = RDMA_WR_FLUSH, .args.access = RDMA_FLUSH_GLOBAL,
          .args.reg_length = 100 },
        { .wqe.opcode = 77, .wqe.status = RDMA_WC_LOC_QP_OP_ERR },
    };
    RdmaSge send_sges[] = {
        { .length = 5000 }, { .length = 1500 }, { .length = 500 },
        { .length = 3000 }, { .length = 8 }, { .length = 8 },
    };
    uint8_t inline_data[16] = {};
    uint64_t pages[] = { 0x7000, 0x9000 };
    RoceRecvWqe recv = { .num_sge = 2 };
    RdmaSge recv_sges[2] = {};
    RoceResource res[] = {
        { .type = ROCE_RES_READ, .va = 0x5000, .len = 3000, .psn = 50,
          .npsn = 3, .first = 1, .pending = 1, .reply_va = 0x5400,
          .reply_len = 1976, .reply_off = 1024, .reply_psn = 52 },
        { .type = ROCE_RES_ATOMIC, .opcode = 0x13, .psn = 53, .npsn = 1 },
        { .type = ROCE_RES_FLUSH, .psn = 54, .npsn = 1 },
        { .type = ROCE_RES_ATOMIC_WRITE, .psn = 55, .npsn = 1 },
    };
    RoceQpImage image = {
        .init = {
            .qpn = QPN,
            .pdn = LINK_PDN,
            .qp_type = RDMA_QPT_RC,
            .cap = { 10, 4, 2, 2, 16 },
        },
        .s.attr = {
            .qp_state = RDMA_QPS_RTS,
            .path_mtu = RDMA_MTU_1024,
            .dest_qp_num = PEER_QPN,
            .port_num = 1,
            .ah_attr = {
                .port_num = 1,
                .dgid = { 0xfe, 0x80, [15] = 1 },
            },
        },
        .s.sq = {
            .cons = 10,
            .cur = 13,
            .cur_pkt = 1,
            .started = 15,
            .prod = 20,
            .una = 102,
            .psn = 108,
            .sent = 109,
            .end = 111,
            .rd_atomic = 2,
            .rd_psns = 4,
            .ack_deadline = ROCE_NO_DEADLINE,
            .rnr_deadline = ROCE_NO_DEADLINE,
        },
        .s.rq = { .cons = 3, .prod = 4 },
        .s.resp = { .epsn = 56, .msn = 9, .res_prod = 4 },
        .n_send = G_N_ELEMENTS(send),
        .n_send_sges = G_N_ELEMENTS(send_sges),
        .inline_len = sizeof(inline_data),
        .n_pages = G_N_ELEMENTS(pages),
        .n_recv = 1,
        .n_recv_sges = G_N_ELEMENTS(recv_sges),
        .n_res = G_N_ELEMENTS(res),
        .send = send,
        .send_sges = send_sges,
        .inline_data = inline_data,
        .pages = pages,
        .recv = &recv,
        .recv_sges = recv_sges,
        .res = res,
    };
    void *const parts[] = {
        [IMAGE] = &image,
        [SEND] = send,
        [SEND_SGE] = send_sges,
        [RECV] = &recv,
        [RES] = res,
        [PAGES] = pages,
    };
    RoceEngine *e = refusal_engine();
    char *why;
    int ret;

    refusal_apply(r, parts);
    ret = roce_import_qp(e, &image, &max, &why);
    refusal_check(r, ret, why);
    g_assert_true(roce_has_qp(e, image.init.qpn) ==
                  (!r->text || image.init.qpn == PEER_QPN));
    roce_free(e);
}

typedef struct Table {
    const char *name;
    const Refusal *refusals;
    unsigned n;
} Table;

#define TABLE(name, refusals) { name, refusals, G_N_ELEMENTS(refusals) }

static const Table tables[] = {
    TABLE("attributes", attributes),
    TABLE("send-queue", send_queues),
    TABLE("send-requests", send_requests),
    TABLE("requests-under-way", under_way),
    TABLE("receive-queue", receive_queues),
    TABLE("responder", responders),
};

static void test_queue_pairs(gconstpointer data)
{
    const Table *table = data;

    for (unsigned i = 0; i < table->n; i++) {
        try_qp(&table->refusals[i]);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(tables); i++) {
        g_autofree char *path = g_strdup_printf("/roce/state-check/qp/%s",
                                                tables[i].name);

        g_test_add_data_func(path, &tables[i], test_queue_pairs);
    }
    return g_test_run();
}
