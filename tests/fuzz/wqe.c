/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzer: posts of a hostile guest, and faults of the wire.
 *
 * The first of two engines gets arbitrary work requests. The link between them
 * loses, doubles, delays and spoils frames by the input. At the end the link is
 * good and time passes. Then every send must have retired, because no queue
 * pair may hang.
 */
#include "fuzz-env.h"

#define MAX_RECORDS 200
#define MAX_HELD 8

enum {
    POST_SEND,
    POST_SEND_GOOD,
    POST_SEND_PIECES,
    POST_REGISTRATION,
    POST_WINDOW,
    POST_RECV,
    CARRY,
    CARRY_BADLY,
    PASS_TIME,
    OWNER_CHANGE,
    N_KINDS
};

typedef struct Held {
    uint8_t frame[ROCE_MAX_FRAME];
    size_t len;
    unsigned to;
} Held;

static FuzzEnv *envs[2];
static Held held[MAX_HELD];
static unsigned n_held;
static FuzzInput in;

static uint32_t pick_key(void)
{
    uint8_t sel = fuzz_u8(&in);

    return sel < 0xf0 ? 0x100u * (sel % 16) : fuzz_u32(&in);
}

static uint64_t pick_addr(void)
{
    uint8_t sel = fuzz_u8(&in);

    switch (sel & 7) {
    case 0:
        return fuzz_u64(&in);
    case 1:
        return FUZZ_IOVA + FUZZ_REGION - sel;
    case 2:
        return UINT64_MAX - sel;
    case 3:
        return fuzz_u8(&in);
    case 4:
        return FUZZ_IOVA + 8 * sel;
    default:
        return FUZZ_IOVA + fuzz_u16(&in);
    }
}

static uint32_t pick_length(void)
{
    uint8_t sel = fuzz_u8(&in);

    switch (sel & 7) {
    case 0:
        return fuzz_u32(&in);
    case 1:
        return 1u << sel / 8;
    case 2:
        return 0;
    case 3:
        return 8;
    default:
        return fuzz_u16(&in);
    }
}

static void pick_sges(RdmaSge *sge, uint32_t n)
{
    while (n--) {
        sge->addr = pick_addr();
        sge->length = pick_length();
        sge->lkey = pick_key();
        if (sge->lkey >> 8 == FUZZ_KEY_DMA >> 8) {
            sge->addr = WIRE_HOST_BASE + FUZZ_PROTECTED +
                        sge->addr % (4 * FUZZ_PROTECTED);
        }
        sge++;
    }
}

/* Any bits in any field; only the pointers are right. */
static void post_send(void)
{
    unsigned side = fuzz_u8(&in) & 1, which = fuzz_u8(&in) % FUZZ_QPS;
    uint8_t data[FUZZ_INLINE + 8] = { 0 };
    RdmaSge sge[5];
    RdmaSendWr wr = {
        .sg_list = sge,
        .opcode = fuzz_u8(&in) % 0x22,
        .send_flags = fuzz_u8(&in),
        .num_sge = fuzz_u8(&in) % (G_N_ELEMENTS(sge) + 1),
    };
    uint8_t odd = fuzz_u8(&in);

    if (odd >= 0xf0) {
        wr.opcode = fuzz_u32(&in);
        wr.send_flags = fuzz_u32(&in);
    }
    if (odd < 8) {
        wr.status = odd;
    }
    if (wr.send_flags & RDMA_SEND_INLINE) {
        wr.inline_data = data;
        wr.inline_len = fuzz_u8(&in) % (sizeof(data) + 1);
        if (!(odd & 1)) {
            wr.num_sge = 0;
        }
    }
    pick_sges(sge, wr.num_sge);
    wr.ex.invalidate_rkey = pick_key();

    if (fuzz_is_ud(which)) {
        wr.wr.ud.remote_qpn = odd & 2 ? fuzz_u32(&in) : fuzz_qpns[which];
        wr.wr.ud.remote_qkey = odd & 4 ? fuzz_u32(&in) : FUZZ_QKEY;
        fuzz_gid(odd & 8 ? side : !side, odd >> 4, wr.wr.ud.av.dgid);
        wr.wr.ud.av.sgid_index = odd & 0x20 ? fuzz_u8(&in) : odd >> 4 & 1;
        if ((odd & 0xc0) == 0xc0) {
            wr.wr.ud.remote_qpn = RDMA_QPN_MCAST;
            fuzz_group(odd >> 4, wr.wr.ud.av.dgid);
        }
    } else if (wr.opcode == RDMA_WR_REG_MR) {
        wr.wr.reg.mrn = fuzz_u8(&in) % 16;
        wr.wr.reg.key = pick_key();
        wr.wr.reg.access = fuzz_u8(&in);
        if (odd & 0x10) {
            fuzz_reg_pages(envs[side], &wr, odd & 7);
        }
    } else if (wr.opcode == RDMA_WR_BIND_MW) {
        wr.wr.bind.rkey = pick_key();
        wr.wr.bind.new_rkey = pick_key();
        wr.wr.bind.lkey = pick_key();
        wr.wr.bind.access = fuzz_u8(&in);
        wr.wr.bind.addr = pick_addr();
        wr.wr.bind.length = pick_length();
    } else if (wr.opcode == RDMA_WR_ATOMIC_CMP_AND_SWP ||
               wr.opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = pick_addr();
        wr.wr.atomic.rkey = pick_key();
        wr.wr.atomic.compare_add = fuzz_u8(&in);
        wr.wr.atomic.swap = fuzz_u8(&in);
    } else if (wr.opcode == RDMA_WR_FLUSH) {
        wr.wr.flush.remote_addr = pick_addr();
        wr.wr.flush.rkey = pick_key();
        wr.wr.flush.length = pick_length();
        wr.wr.flush.type = odd & 8 ? fuzz_u32(&in) : odd & 3;
        wr.wr.flush.level = odd & 8 ? fuzz_u32(&in) : odd >> 2 & 1;
    } else {
        wr.wr.rdma.remote_addr = pick_addr();
        wr.wr.rdma.rkey = pick_key();
    }
    fuzz_post_send(envs[side], which, &wr);
}

/* A request that should succeed, so that the queue pairs live. */
static void post_send_good(void)
{
    static const uint32_t ops[] = {
        RDMA_WR_RDMA_WRITE, RDMA_WR_RDMA_WRITE_WITH_IMM, RDMA_WR_SEND,
        RDMA_WR_SEND_WITH_IMM, RDMA_WR_RDMA_READ,
        RDMA_WR_ATOMIC_CMP_AND_SWP, RDMA_WR_ATOMIC_FETCH_AND_ADD,
        RDMA_WR_FLUSH,
    };
    static const unsigned rc[] = {
        FUZZ_RC, FUZZ_RC_SMALL, FUZZ_UC, FUZZ_RC_SRQ, FUZZ_UC_SRQ,
    };
    uint8_t sel = fuzz_u8(&in);
    unsigned which = rc[fuzz_u8(&in) % G_N_ELEMENTS(rc)];
    RdmaSge sge = {
        FUZZ_IOVA + fuzz_u16(&in) % 0x4000, fuzz_u16(&in) % 0x4000,
        FUZZ_KEY_ALL
    };
    RdmaSendWr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = ops[sel % 8],
        .send_flags = sel >> 3 & 7,
        .wr.rdma = { FUZZ_IOVA + fuzz_u16(&in) % 0x4000, FUZZ_KEY_ALL },
    };

    if (which == FUZZ_UC || which == FUZZ_UC_SRQ) {
        wr.opcode = ops[sel % 4];
    }
    if (wr.opcode == RDMA_WR_ATOMIC_CMP_AND_SWP ||
        wr.opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
        uint64_t at = FUZZ_IOVA + 8 * fuzz_u8(&in);

        sge.length = 8;
        wr.wr.atomic.remote_addr = at;
        wr.wr.atomic.compare_add = 1;
        wr.wr.atomic.swap = 2;
        wr.wr.atomic.rkey = FUZZ_KEY_ALL;
        if (sge.addr & 1) {
            wr.opcode = RDMA_WR_ATOMIC_WRITE;
            wr.wr.rdma.remote_addr = at;
            wr.wr.rdma.rkey = FUZZ_KEY_ALL;
        }
    }
    if (wr.opcode == RDMA_WR_FLUSH) {
        wr.wr.flush.remote_addr = FUZZ_IOVA;
        wr.wr.flush.rkey = FUZZ_KEY_ALL;
        wr.wr.flush.length = sge.length;
        wr.wr.flush.type = RDMA_FLUSH_GLOBAL;
        wr.wr.flush.level = sge.length & 1;
    }
    fuzz_post_send(envs[sel >> 7], which, &wr);
}

/* A message of many pieces, some of them empty. */
static void post_send_pieces(void)
{
    uint8_t sel = fuzz_u8(&in);
    RdmaSge sge[FUZZ_SEND_SGE];
    RdmaSendWr wr = {
        .sg_list = sge,
        .num_sge = fuzz_u8(&in) % (FUZZ_SEND_SGE + 1),
        .opcode = sel & 1 ? RDMA_WR_RDMA_READ : RDMA_WR_RDMA_WRITE,
        .send_flags = RDMA_SEND_SIGNALED,
        .wr.rdma = { FUZZ_IOVA, FUZZ_KEY_ALL },
    };
    uint32_t i;

    for (i = 0; i < wr.num_sge; i++) {
        sge[i].lkey = FUZZ_KEY_ALL;
        /* Across a page boundary, if long enough */
        sge[i].addr = FUZZ_IOVA + RDMA_PAGE_SIZE * (1 + (i & 3)) - 4;
        sge[i].length = fuzz_u8(&in) & (sel & 2 ? 0xf : 0xff);
    }
    fuzz_post_send(envs[sel >> 7], FUZZ_RC, &wr);
}

/* The life of a fast-registration MR: map, register, use, invalidate. */
static void post_registration(void)
{
    uint8_t sel = fuzz_u8(&in);
    uint32_t key = FUZZ_KEY_FAST | (sel >> 4 & 3);
    FuzzEnv *env = envs[sel >> 7];
    RdmaSge sge = { FUZZ_IOVA, fuzz_u16(&in) % 0x4000, key };
    RdmaSendWr wr = { .send_flags = sel & 4 ? RDMA_SEND_FENCE : 0 };

    switch (sel & 3) {
    case 0:
        fuzz_map_fast_region(env, fuzz_u8(&in) % 5);
        return;
    case 1:
        wr.opcode = RDMA_WR_REG_MR;
        wr.wr.reg.mrn = FUZZ_KEY_FAST >> 8;
        wr.wr.reg.key = key;
        wr.wr.reg.access = sel & 8 ? fuzz_u32(&in) : RDMA_ACCESS_REMOTE |
                                                     RDMA_ACCESS_MW_BIND |
                                                     RDMA_ACCESS_LOCAL_WRITE;
        if (fuzz_u8(&in) & 1) {
            fuzz_reg_pages(env, &wr, fuzz_u8(&in) % 6);
        }
        break;
    case 2:
        wr.opcode = sel & 8 ? RDMA_WR_SEND_WITH_INV : RDMA_WR_LOCAL_INV;
        wr.ex.invalidate_rkey = key;
        break;
    case 3:
        wr.opcode = sel & 8 ? RDMA_WR_RDMA_READ_WITH_INV
                            : RDMA_WR_RDMA_WRITE;
        wr.ex.invalidate_rkey = key;
        wr.wr.rdma.remote_addr = FUZZ_IOVA;
        wr.wr.rdma.rkey = key;
        wr.num_sge = 1;
        wr.sg_list = &sge;
        break;
    }
    fuzz_post_send(env, FUZZ_RC, &wr);
}

/* The life of a window: bind it, let the peer use it, invalidate it. */
static void post_window(void)
{
    static const uint32_t lkeys[] = {
        FUZZ_KEY_ALL, FUZZ_KEY_READ, FUZZ_KEY_FAST, FUZZ_KEY_HOLES,
    };
    uint8_t sel = fuzz_u8(&in), what = fuzz_u8(&in);
    FuzzEnv *env = envs[sel >> 7];
    unsigned which = sel & 0x40 ? FUZZ_RC_SRQ : FUZZ_RC;
    uint32_t key = fuzz_window_key(env, (sel & 0x20 ? FUZZ_KEY_MW2
                                                    : FUZZ_KEY_MW) >> 8);
    RdmaSge sge = { FUZZ_IOVA, fuzz_u16(&in) % 0x2000, FUZZ_KEY_ALL };
    RdmaSendWr wr = { .send_flags = sel & 4 ? RDMA_SEND_FENCE : 0 };

    switch (what & 3) {
    case 0:
    case 1:
        wr.opcode = RDMA_WR_BIND_MW;
        wr.wr.bind.rkey = key;
        wr.wr.bind.new_rkey = key ^ (what >> 4 & 3);
        wr.wr.bind.lkey = lkeys[sel & 3];
        wr.wr.bind.access = what & 8 ? fuzz_u8(&in) : RDMA_ACCESS_REMOTE;
        wr.wr.bind.addr = FUZZ_IOVA + fuzz_u16(&in) % 0x4000;
        wr.wr.bind.length = fuzz_u16(&in) % 0x4000;
        break;
    case 2:
        wr.opcode = what & 8 ? RDMA_WR_SEND_WITH_INV : RDMA_WR_LOCAL_INV;
        wr.ex.invalidate_rkey = key;
        /* The side of the peer, usually the same */
        env = envs[what & 8 ? sel >> 7 ^ 1 : sel >> 7];
        break;
    case 3:
        wr.opcode = what & 8 ? RDMA_WR_RDMA_READ : RDMA_WR_RDMA_WRITE;
        wr.wr.rdma.remote_addr = what & 4 ? fuzz_u16(&in)
                                          : FUZZ_IOVA + fuzz_u16(&in);
        wr.wr.rdma.rkey = key;
        wr.num_sge = 1;
        wr.sg_list = &sge;
        env = envs[sel >> 7 ^ 1];
        break;
    }
    fuzz_post_send(env, which, &wr);
}

static void post_recv(void)
{
    uint8_t sel = fuzz_u8(&in);
    unsigned which = sel % FUZZ_QPS;
    RdmaSge sge[4] = { { FUZZ_IOVA, 0x4000, FUZZ_KEY_LOCAL } };
    RdmaRecvWr wr = { .num_sge = 1, .sg_list = sge };

    if (which >= FUZZ_RC_SRQ) {
        sge[0].lkey = FUZZ_KEY_SRQ;
    }
    if (sel & 0x40) {
        wr.num_sge = fuzz_u8(&in) % (G_N_ELEMENTS(sge) + 1);
        pick_sges(sge, wr.num_sge);
        wr.status = fuzz_u8(&in) & 1;
    }
    fuzz_post_recv(envs[sel >> 7], which, &wr);
}

static void deliver(unsigned to, const uint8_t *frame, size_t len)
{
    g_autofree uint8_t *copy = g_memdup2(frame, len);

    roce_rx(envs[to]->engine, copy, len, envs[to]->now);
    fuzz_check(envs[to]);
}

static void deliver_held(void)
{
    unsigned i;

    for (i = 0; i < n_held; i++) {
        deliver(held[i].to, held[i].frame, held[i].len);
    }
    n_held = 0;
}

/* Take at most @max frames from one side; returns how many there were. */
static unsigned carry(unsigned from, unsigned max, bool badly)
{
    uint8_t frame[ROCE_MAX_FRAME];
    unsigned n;
    size_t len;

    for (n = 0; n < max; n++) {
        uint8_t fate = badly ? fuzz_u8(&in) : 0;

        len = fuzz_take_frame(envs[from], frame);
        if (!len) {
            break;
        }
        switch (fate & 7) {
        case 1:
            continue;                           /* lost */
        case 2:
            deliver(!from, frame, len);         /* twice */
            break;
        case 3:
            frame[fuzz_u16(&in) % len] ^= 1 << (fate >> 5);
            break;
        case 4:
            if (n_held < MAX_HELD) {
                memcpy(held[n_held].frame, frame, len);
                held[n_held].len = len;
                held[n_held++].to = !from;
                continue;
            }
            break;
        case 5:
            deliver_held();
            break;
        case 6:
            len -= fate >> 3;                   /* cut off */
            break;
        }
        deliver(!from, frame, len);
    }
    return n;
}

static void pass_time(int64_t delta)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        envs[i]->now += delta;
        roce_expire(envs[i]->engine, envs[i]->now, envs[i]->now);
        fuzz_check(envs[i]);
    }
}

static void reconnect(unsigned which)
{
    unsigned i;

    n_held = 0;
    for (i = 0; i < 2; i++) {
        fuzz_qp_reset(envs[i], which);
        fuzz_qp_connect(envs[i], which, which & 1, true);
    }
}

static void owner_change(void)
{
    uint8_t sel = fuzz_u8(&in);
    unsigned which = sel % FUZZ_QPS;
    FuzzEnv *env = envs[sel >> 7];
    RdmaQpAttr attr = { .en_sqd_async_notify = 1 };
    uint8_t gid[RDMA_GID_LEN];

    switch (sel >> 4 & 7) {
    case 0:
        reconnect(which);
        break;
    case 1:
        /* The peer's address is also ours: queue pairs talk to themselves */
        fuzz_gid(!env->side, which, gid);
        roce_add_gid(env->engine, 2 + which % 2, gid, RDMA_NO_VLAN);
        break;
    case 2:
        roce_del_gid(env->engine, 2 + which % 2);
        break;
    case 3:
        attr.qp_state = RDMA_QPS_SQD;
        roce_qp_modify(env->engine, fuzz_qpns[which],
                       RDMA_QP_STATE | RDMA_QP_EN_SQD_ASYNC_NOTIFY, &attr);
        break;
    case 4:
        attr.qp_state = RDMA_QPS_RTS;
        roce_qp_modify(env->engine, fuzz_qpns[which], RDMA_QP_STATE, &attr);
        break;
    case 5:
    case 6:
        fuzz_qp_modify(env, which, &in);
        break;
    case 7:
        if (which & 1) {
            env->blocked = !env->blocked;
            roce_set_tx_blocked(env->engine, env->blocked);
        } else {
            fuzz_group(sel >> 7, gid);
            roce_mcast_attach(env->engine, fuzz_qpns[which], gid);
        }
        break;
    }
}

/* Let all work requests end. */
static void finish(void)
{
    RdmaQpAttr rts = { .qp_state = RDMA_QPS_RTS };
    RdmaQpAttr err = { .qp_state = RDMA_QPS_ERR };
    unsigned rounds = 0, i, w;

    deliver_held();
    for (i = 0; i < 2; i++) {
        roce_set_tx_blocked(envs[i]->engine, false);
        for (w = 0; w < FUZZ_QPS; w++) {
            /* SQD or SQE: go on; others refuse */
            roce_qp_modify(envs[i]->engine, fuzz_qpns[w], RDMA_QP_STATE,
                           envs[i]->qp[w].odd ? &err : &rts);
        }
    }
    for (;;) {
        unsigned moved = carry(0, 1000000, false) +
                         carry(1, 1000000, false);
        int64_t next = MIN(roce_next_deadline(envs[0]->engine),
                           roce_next_deadline(envs[1]->engine));

        if (!moved && next == ROCE_NO_DEADLINE) {
            break;
        }
        /* 16 WQEs in each of a few QPs, a few retries of each */
        if (++rounds > 20000) {
            g_error("the engines do not come to rest");
        }
        if (!moved) {
            pass_time(MAX(next - envs[0]->now, 0));
        }
    }

    for (i = 0; i < 2; i++) {
        for (w = 0; w < FUZZ_QPS; w++) {
            uint32_t qpn = fuzz_qpns[w];

            if (envs[i]->host->retired[qpn][RDMA_SQ] !=
                envs[i]->qp[w].posted[RDMA_SQ]) {
                g_error("a send request of QP %u hangs", qpn);
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned n;

    envs[0] = fuzz_env_new(0);
    envs[1] = fuzz_env_new(1);
    n_held = 0;
    in = (FuzzInput) { data, size };

    for (n = 0; in.left && n < MAX_RECORDS; n++) {
        uint8_t kind = fuzz_u8(&in);

        switch (kind % N_KINDS) {
        case POST_SEND:
            post_send();
            break;
        case POST_SEND_GOOD:
            post_send_good();
            break;
        case POST_SEND_PIECES:
            post_send_pieces();
            break;
        case POST_REGISTRATION:
            post_registration();
            break;
        case POST_WINDOW:
            post_window();
            break;
        case POST_RECV:
            post_recv();
            break;
        case CARRY:
            carry(kind >> 7, 1 + (kind & 0x7f), false);
            break;
        case CARRY_BADLY:
            carry(kind >> 7, 1 + (kind & 0x3f), true);
            break;
        case PASS_TIME:
            pass_time(INT64_C(1) << fuzz_u8(&in) % 32);
            break;
        case OWNER_CHANGE:
            owner_change();
            break;
        }
        fuzz_check(envs[0]);
        fuzz_check(envs[1]);
    }
    finish();
    fuzz_env_free(envs[0]);
    fuzz_env_free(envs[1]);
    return 0;
}
