/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzer: a hostile peer of an engine with open queue pairs.
 *
 * The input is a list of records. A record is a raw frame, a frame whose
 * checksum and ICRC are corrected, a frame that is built from a short
 * description and so gets far into the engine, or an action of the owner.
 */
#include "fuzz-env.h"

/* Keeps a run short; nothing new happens after that many. */
#define MAX_RECORDS 256

enum {
    FRAME_RAW,
    FRAME_FIXED,
    FRAME_BUILT,
    FRAME_BUILT_ALIGNED,
    OWNER_TIME,
    OWNER_POST_RECV,
    OWNER_POST_SEND,
    OWNER_CONTROL,
    N_KINDS
};

static void drain(FuzzEnv *env)
{
    uint8_t frame[ROCE_MAX_FRAME];
    unsigned n = 0;

    while (fuzz_take_frame(env, frame)) {
        /* 16 WQEs of a region's size, at 256 bytes each, and responses */
        if (++n > 100000) {
            g_error("the engine does not stop sending");
        }
    }
}

static void rx_frame(FuzzEnv *env, FuzzInput *in, bool fix)
{
    size_t len = fuzz_u16(in) % (ROCE_MAX_FRAME + 64), got;
    const uint8_t *bytes = fuzz_bytes(in, len, &got);
    g_autofree uint8_t *frame = g_memdup2(bytes, got);
    bool ours;

    if (fix && got) {
        fuzz_fix_frame(frame, got);
    }
    ours = roce_is_ours(env->engine, frame, got);
    if (ours != roce_is_ours(env->engine, frame, MIN(got, 74))) {
        g_error("74 bytes are not enough to tell");
    }
    roce_rx(env->engine, frame, got, env->now);
}

static uint32_t pick_key(FuzzInput *in)
{
    uint8_t sel = fuzz_u8(in);

    return sel < 0xf8 ? 0x100u * (sel % 16) + (sel >= 0xe0) : fuzz_u32(in);
}

static uint64_t pick_va(FuzzInput *in)
{
    uint8_t sel = fuzz_u8(in);

    switch (sel & 7) {
    case 0:
        return fuzz_u64(in);
    case 1:
        return FUZZ_IOVA + FUZZ_REGION - sel;
    case 2:
        return FUZZ_IOVA + 8 * sel;
    default:
        return FUZZ_IOVA + fuzz_u16(in);
    }
}

/*
 * A frame with valid headers. With @aligned, its PSN is the one that the queue
 * pair waits for, or near it.
 */
static void rx_built(FuzzEnv *env, FuzzInput *in, bool aligned)
{
    static const uint8_t zeroes[ROCE_MAX_PAYLOAD];
    static const uint16_t sizes[] = { 0, 1, 256, 1024, 4096, 255, 1023, 1025 };
    uint8_t flags = fuzz_u8(in);
    unsigned which = fuzz_u8(in) % FUZZ_QPS;
    uint8_t op = fuzz_u8(in);
    uint8_t size = fuzz_u8(in);
    int8_t delta = fuzz_u8(in);
    RoceBth bth = {
        .opcode = op,
        .se = flags & 1,
        .ack_req = flags & 2,
        .pkey = flags & 4 && !(delta & 7) ? 0x7fff : RDMA_DEFAULT_PKEY,
        .dqpn = fuzz_qpns[which],
    };
    const RoceOpcodeInfo *info;
    uint8_t hdr[ROCE_MAX_HDR], trailer[ROCE_MAX_TRAILER];
    uint8_t frame[ROCE_MAX_FRAME];
    size_t hdr_len, trailer_len, len;
    RdmaQpAttr attr;
    RocePath path;
    struct iovec iov;

    if (!roce_opcode_info(op)) {
        bth.opcode = op % 32 | (which == FUZZ_UC || which == FUZZ_UC_SRQ ?
                                ROCE_UC : 0);
        if (fuzz_is_ud(which)) {
            bth.opcode = ROCE_UD | ROCE_SEND_ONLY | (op & 1);
        }
    }
    info = roce_opcode_info(bth.opcode);
    if (!info) {
        return;
    }

    /* The GID a QP was connected with: IPv6 for odd ones */
    fuzz_path_to(env, !(which & 1) != (flags >> 4 == 0xf), &path);

    if (fuzz_is_ud(which) && (flags & 0xc0) == 0xc0) {
        bth.dqpn = RDMA_QPN_MCAST;
        fuzz_group(2 * (delta & 1) + !path.is_ipv4, path.dgid);
    }
    if ((flags & 0x50) == 0x50) {
        path.vlan = 1 + (delta & 3);
        path.pcp = delta >> 4 & 7;
    }

    bth.psn = (uint8_t)delta;
    if (aligned &&
        roce_qp_query(env->engine, fuzz_qpns[which], &attr) == 0) {
        uint32_t base = info->flags & ROCE_OP_RESPONSE ? attr.sq_psn - 1
                                                       : attr.rq_psn;

        bth.psn = (base + (flags & 8 ? delta : 0)) & RDMA_24BIT_MASK;
    }
    iov.iov_base = (void *)zeroes;
    iov.iov_len = 0;
    if (info->flags & ROCE_OP_PAYLOAD) {
        iov.iov_len = size < 0xc0 ? sizes[size % G_N_ELEMENTS(sizes)]
                                  : fuzz_u16(in) % (ROCE_MAX_PAYLOAD + 1);
    }
    if (info->flags & ROCE_OP_RETH) {
        bth.reth.va = pick_va(in);
        bth.reth.rkey = pick_key(in);
        if (flags & 0x10) {
            bth.reth.len = fuzz_u32(in);
        } else {
            /*
             * Lengths that agree with the payload, where the opcode allows it
             */
            bth.reth.len = iov.iov_len;
            if (!(info->flags & ROCE_OP_WRITE) ||
                !(info->flags & ROCE_OP_ENDS)) {
                bth.reth.len += fuzz_u16(in);
            }
        }
    }
    if ((info->flags & ROCE_OP_ATOMIC_WRITE) && !(flags & 0x20)) {
        iov.iov_len = 8;
        bth.reth.len = 8;
    }
    if (info->flags & ROCE_OP_FETH) {
        bth.feth = flags & 0x20 ? fuzz_u32(in) :
                   1u | (size & 1u) << ROCE_FETH_LEVEL_SHIFT;
    }
    if (info->flags & ROCE_OP_ATOMICETH) {
        bth.atomiceth.va = pick_va(in);
        bth.atomiceth.rkey = pick_key(in);
        bth.atomiceth.swap_add = fuzz_u8(in);
    }
    if (info->flags & ROCE_OP_AETH) {
        bth.aeth.syndrome = fuzz_u8(in);
        bth.aeth.msn = fuzz_u8(in);
    }
    if (info->flags & ROCE_OP_DETH) {
        bth.deth.qkey = flags & 0x20 ? fuzz_u32(in) :
                        which == FUZZ_GSI ? RDMA_GSI_QKEY : FUZZ_QKEY;
        bth.deth.sqpn = fuzz_qpns[which];
    }
    if (info->flags & ROCE_OP_IETH) {
        bth.ieth = pick_key(in);
    }

    hdr_len = roce_build(hdr, &path, &bth, iov.iov_len);
    trailer_len = roce_icrc_trailer(hdr, hdr_len, path.is_ipv4, &iov, 1,
                                    trailer);
    memcpy(frame, hdr, hdr_len);
    memset(frame + hdr_len, 0, iov.iov_len);
    len = hdr_len + iov.iov_len;
    memcpy(frame + len, trailer, trailer_len);
    len += trailer_len;
    roce_rx(env->engine, frame, len, env->now);
}

static void pass_time(FuzzEnv *env, FuzzInput *in)
{
    uint8_t sel = fuzz_u8(in);
    int64_t next = roce_next_deadline(env->engine);

    if (next == ROCE_NO_DEADLINE || sel & 1) {
        env->now += INT64_C(1) << sel % 34;
    } else {
        env->now = MAX(env->now, next);
    }
    roce_expire(env->engine, env->now, env->now);
    if (roce_next_deadline(env->engine) <= env->now) {
        g_error("a timer that is due was not run");
    }
}

static void pick_sges(FuzzInput *in, RdmaSge *sge, uint32_t n)
{
    while (n--) {
        sge->lkey = pick_key(in);
        sge->length = fuzz_u16(in) % 9000;
        sge->addr = pick_va(in);
        if (sge->lkey >> 8 == FUZZ_KEY_DMA >> 8) {
            sge->addr = WIRE_HOST_BASE + FUZZ_PROTECTED +
                        sge->addr % (2 * FUZZ_PROTECTED);
        }
        sge++;
    }
}

static void post_recv(FuzzEnv *env, FuzzInput *in)
{
    unsigned which = fuzz_u8(in) % FUZZ_QPS;
    RdmaSge sge[4];
    RdmaRecvWr wr = { .num_sge = fuzz_u8(in) % 5, .sg_list = sge };

    pick_sges(in, sge, wr.num_sge);
    fuzz_post_recv(env, which, &wr);
}

static void post_send(FuzzEnv *env, FuzzInput *in)
{
    unsigned which = fuzz_u8(in) % FUZZ_QPS;
    RdmaSge sge[2];
    RdmaSendWr wr = {
        .opcode = fuzz_u8(in) % 16,
        .send_flags = fuzz_u8(in) & (RDMA_SEND_FENCE | RDMA_SEND_SIGNALED |
                                     RDMA_SEND_SOLICITED),
        .num_sge = 1 + fuzz_u8(in) % 2,
        .sg_list = sge,
    };

    pick_sges(in, sge, wr.num_sge);
    if (fuzz_is_ud(which)) {
        wr.wr.ud.remote_qpn = fuzz_qpns[which];
        wr.wr.ud.remote_qkey = FUZZ_QKEY;
        fuzz_gid(!env->side, 0, wr.wr.ud.av.dgid);
    } else if (wr.opcode == RDMA_WR_ATOMIC_CMP_AND_SWP ||
               wr.opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
        wr.num_sge = 1;
        sge[0].length = 8;
        wr.wr.atomic.remote_addr = FUZZ_IOVA + 8 * fuzz_u8(in);
        wr.wr.atomic.rkey = FUZZ_KEY_ALL;
    } else if (wr.opcode == RDMA_WR_FLUSH) {
        wr.wr.flush.remote_addr = FUZZ_IOVA + fuzz_u8(in);
        wr.wr.flush.rkey = FUZZ_KEY_ALL;
        wr.wr.flush.length = fuzz_u8(in);
        wr.wr.flush.type = RDMA_FLUSH_GLOBAL;
        wr.wr.flush.level = wr.wr.flush.length & 1;
    } else {
        if (wr.opcode == RDMA_WR_ATOMIC_WRITE) {
            wr.num_sge = 1;
            sge[0].length = 8;
        }
        wr.wr.rdma.remote_addr = FUZZ_IOVA + fuzz_u8(in);
        wr.wr.rdma.rkey = FUZZ_KEY_ALL;
        wr.ex.invalidate_rkey = FUZZ_KEY_FAST;
    }
    fuzz_post_send(env, which, &wr);
}

static void control(FuzzEnv *env, FuzzInput *in)
{
    unsigned what = fuzz_u8(in), which = fuzz_u8(in) % FUZZ_QPS;
    RdmaQpAttr attr = { .qp_state = RDMA_QPS_ERR };
    uint8_t gid[RDMA_GID_LEN];

    switch (what % 16) {
    case 0:
    case 1:
        if (env->qp[which].exists) {
            fuzz_qp_reset(env, which);
            fuzz_qp_connect(env, which, which & 1, what & 0x10);
        }
        break;
    case 2:
        roce_qp_modify(env->engine, fuzz_qpns[which], RDMA_QP_STATE, &attr);
        break;
    case 3:
        attr.qp_state = what & 0x10 ? RDMA_QPS_SQD : RDMA_QPS_RTS;
        attr.en_sqd_async_notify = 1;
        roce_qp_modify(env->engine, fuzz_qpns[which],
                       RDMA_QP_STATE | (what & 0x10 ?
                                        RDMA_QP_EN_SQD_ASYNC_NOTIFY : 0),
                       &attr);
        break;
    case 4:
        fuzz_qp_destroy(env, which);
        break;
    case 5:
        fuzz_qp_create(env, which);
        fuzz_qp_connect(env, which, which & 1, true);
        break;
    case 6:
        roce_mr_destroy(env->engine, 1 + fuzz_u8(in) % 8);
        break;
    case 7:
        roce_set_link(env->engine, what & 0x10);
        break;
    case 8:
        roce_del_gid(env->engine, what >> 4 & 1);
        break;
    case 9:
        fuzz_gid(env->side, what >> 4 & 1, gid);
        roce_add_gid(env->engine, what >> 4 & 1, gid, what >> 5);
        break;
    case 10:
        /* The engine is its own peer. */
        fuzz_gid(!env->side, 0, gid);
        roce_add_gid(env->engine, 2, gid, RDMA_NO_VLAN);
        break;
    case 11:
        env->host->cq_broken = what & 0x10;
        env->cq_was_broken |= env->host->cq_broken;
        break;
    case 12:
    case 13:
        fuzz_qp_modify(env, which, in);
        break;
    case 14:
        fuzz_group(what >> 5, gid);
        if (what & 0x10) {
            roce_mcast_detach(env->engine, fuzz_qpns[which], gid);
        } else {
            roce_mcast_attach(env->engine, fuzz_qpns[which], gid);
        }
        break;
    case 15:
        roce_set_tx_blocked(env->engine, what & 0x10);
        roce_set_extensions(env->engine, what >> 5);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzEnv *env = fuzz_env_new(0);
    FuzzInput in = { data, size };
    unsigned n;

    fuzz_bind_windows(env);
    for (n = 0; in.left && n < MAX_RECORDS; n++) {
        uint8_t kind = fuzz_u8(&in);

        env->now += 1000;
        switch (kind % N_KINDS) {
        case FRAME_RAW:
            rx_frame(env, &in, false);
            break;
        case FRAME_FIXED:
            rx_frame(env, &in, true);
            break;
        case FRAME_BUILT:
            rx_built(env, &in, false);
            break;
        case FRAME_BUILT_ALIGNED:
            rx_built(env, &in, true);
            break;
        case OWNER_TIME:
            pass_time(env, &in);
            break;
        case OWNER_POST_RECV:
            post_recv(env, &in);
            break;
        case OWNER_POST_SEND:
            post_send(env, &in);
            break;
        case OWNER_CONTROL:
            control(env, &in);
            break;
        }
        fuzz_check(env);
        /* Sometimes the netdev does not take frames at once */
        if (!(kind & 0x80)) {
            drain(env);
            fuzz_check(env);
        }
    }
    fuzz_env_free(env);
    return 0;
}
