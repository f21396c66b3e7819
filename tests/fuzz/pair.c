/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzer: the whole life of two engines.
 *
 * The input chooses actions of their owners: create and destroy objects,
 * connect QPs, post, move a node to another engine. It also chooses faults of
 * the network: lose, double, reorder and spoil frames, and forge frames with a
 * valid ICRC. Actions that a callback asks for are done as soon as the engine
 * has returned. pair-model.c checks each call of the engines. At the end the
 * network is good and time passes: every QP must come to rest, and all objects
 * must be destroyed.
 */
#include "pair.h"

#define MAX_RECORDS 400

enum {
    POST_GOOD,
    POST_ANY,
    POST_MESSAGE,
    POST_RECV,
    POST_MEMORY,
    RUN,
    RUN_BADLY,
    PASS_TIME,
    OBJECTS,
    CONNECT,
    OWNER,
    FORGE,
    MOVE,
    N_KINDS
};

/* Objects */

static bool connect_one(PairNode *p, unsigned slot, uint32_t psn[2],
                        uint8_t how)
{
    PairNode *peer = pair_peer(p, slot);
    PairQp *qp = &p->qp[slot];
    /* How IBTA's masks go from state to state: roce-link knows */
    LinkQpSpec spec = link_spec();
    RdmaQpState to;
    RdmaQpAttr attr;
    uint32_t mask;

    if (!qp->exists) {
        return false;
    }
    pair_qp_reset(p, slot);
    spec.type = pair_type(slot);
    spec.qpn[p->side] = PAIR_QPN(slot);
    spec.qpn[!p->side] = PAIR_QPN(pair_peer_slot(slot));
    spec.mtu = slot == PAIR_RC_LITTLE ? RDMA_MTU_256 : RDMA_MTU_1024;
    spec.ipv6 = slot & 1;
    spec.psn[p->side] = psn[0];
    spec.psn[!p->side] = psn[1];
    spec.timeout = 8 + (how & 3);
    spec.retry_cnt = how >> 2 & 7;
    spec.rnr_retry = how >> 4 & 3;
    spec.min_rnr_timer = 1 + (how & 7);
    spec.rd_atomic[p->side] = 2;
    spec.dest_rd_atomic[p->side] = 2;
    spec.access = (how & 0xc0) == 0xc0 ? how & 0xf : LINK_ALL_ACCESS;
    qp->access = spec.access;
    for (to = RDMA_QPS_INIT; to <= RDMA_QPS_RTS; to++) {
        mask = link_attr(pair.l, &spec, p->side, to, &attr);
        attr.ah_attr = link_av(p->n, peer->n, spec.ipv6);
        attr.ah_attr.static_rate = (how & 0x3c) == 0x3c ? 2 : 0;
        if (roce_qp_modify(p->n->e, PAIR_QPN(slot), mask, &attr) < 0) {
            return false;
        }
    }
    return true;
}

static void connect(unsigned slot, uint8_t how)
{
    unsigned other = pair_peer_slot(slot);
    PairNode *p = &pair.node[how & 1], *peer = pair_peer(p, slot);
    uint32_t psn[2] = {
        g_rand_int(pair.l->rand) & RDMA_24BIT_MASK,
        g_rand_int(pair.l->rand) & RDMA_24BIT_MASK,
    };
    uint32_t back[2] = { psn[1], psn[0] };

    pair_lose_frames(PAIR_QPN(slot));
    pair_lose_frames(PAIR_QPN(other));
    if (connect_one(p, slot, psn, how) &&
        connect_one(peer, other, back, how)) {
        pair_qp_connected(p, slot);
        pair_qp_connected(peer, other);
    }
}

static void set_state(PairNode *p, unsigned slot, RdmaQpState to)
{
    RdmaQpAttr attr = { .qp_state = to, .en_sqd_async_notify = 1 };
    uint32_t mask = RDMA_QP_STATE;

    if (to == RDMA_QPS_SQD) {
        mask |= RDMA_QP_EN_SQD_ASYNC_NOTIFY;
    }
    if (roce_qp_modify(p->n->e, PAIR_QPN(slot), mask, &attr) == 0 &&
        to == RDMA_QPS_RTS) {
        /* The QP may come from SQE */
        p->qp[slot].failed = false;
    }
}

/* An action that a callback may ask for; also a record of the input */
void pair_change(PairNode *p, uint8_t what, uint8_t slot)
{
    slot %= PAIR_QPS;
    switch (what & 15) {
    case 0:
        pair_qp_destroy(p, slot);
        break;
    case 1:
        pair_qp_create(p, slot);
        break;
    case 2:
        set_state(p, slot, RDMA_QPS_ERR);
        break;
    case 3:
        pair_qp_reset(p, slot);
        break;
    case 4:
        pair_mr_destroy(p, slot % PAIR_MRS);
        break;
    case 5:
        pair_mr_create(p, slot % PAIR_MRS, what);
        break;
    case 6:
        pair_mr_modify(p, PAIR_MR_CHANGING, what >> 4);
        break;
    case 7:
        pair_mw_destroy(p, slot & 1);
        break;
    case 8:
        pair_mw_create(p, slot & 1);
        break;
    case 9:
        pair_srq_destroy(p);
        break;
    case 10:
        pair_srq_create(p);
        break;
    case 11:
        pair_move(p);
        break;
    case 12:
        p->n->cq_room[2 * PAIR_QPN(slot) + (what >> 4 & 1)] = what >> 5;
        break;
    case 13:
        set_state(p, slot, what & 0x10 ? RDMA_QPS_SQD : RDMA_QPS_RTS);
        break;
    default:
        connect(slot, what);
        break;
    }
}

/* Create the objects of a node that do not exist. */
static void create_all(PairNode *p)
{
    unsigned i;

    for (i = 0; i < PAIR_MRS; i++) {
        pair_mr_create(p, i, RDMA_ACCESS_REMOTE);
    }
    for (i = 0; i < PAIR_MWS; i++) {
        pair_mw_create(p, i);
    }
    pair_srq_create(p);
    for (i = 0; i < PAIR_QPS; i++) {
        pair_qp_create(p, i);
    }
}

static void add_gids(PairNode *p)
{
    roce_add_gid(p->n->e, 0, p->n->gid4, RDMA_NO_VLAN);
    roce_add_gid(p->n->e, 1, p->n->gid6, RDMA_NO_VLAN);
}

static void owner(void)
{
    uint8_t sel = fuzz_u8(&pair_in), what = fuzz_u8(&pair_in);
    PairNode *p = &pair.node[sel >> 7];
    unsigned slot = PAIR_UD + (sel & 1);
    uint8_t gid[RDMA_GID_LEN];

    switch (what % 10) {
    case 0:
        link_set_up(p->n, sel & 0x40);
        break;
    case 1:
        p->blocked = sel & 0x40;
        roce_set_tx_blocked(p->n->e, p->blocked);
        break;
    case 2:
        roce_del_gid(p->n->e, sel & 1);
        break;
    case 3:
        add_gids(p);
        break;
    case 4:
        link_set_extensions(p->n, sel & 3);
        break;
    case 5:
        p->n->hole = sel & 0x40 ? LINK_DMA_BASE + RDMA_PAGE_SIZE * (sel & 0x3f)
                                : UINT64_MAX;
        break;
    case 6:
        pair_group_gid(sel >> 1, gid);
        roce_mcast_attach(p->n->e, PAIR_QPN(slot), gid);
        break;
    case 7:
        pair_group_gid(sel >> 1, gid);
        roce_mcast_detach(p->n->e, PAIR_QPN(slot), gid);
        break;
    case 8:
        pair_enter(p);
        roce_resume(p->n->e, pair.l->now);
        pair_done(p, RX_WORK);
        break;
    case 9:
        pair_reset(p);
        add_gids(p);
        create_all(p);
        break;
    }
}

/* The end */

static void come_to_rest(void)
{
    unsigned rounds = 0;

    do {
        while (pair_run(256)) {
            /* 12 WQEs in each of a few QPs, a few retries of each */
            MUST(++rounds < 20000);
        }
        MUST(++rounds < 20000);
    } while (pair_flying->len || pair_pass_time(LINK_FOREVER));
}

static void finish(void)
{
    unsigned side, i;

    pair.callbacks = 0;
    for (side = 0; side < 2; side++) {
        PairNode *p = &pair.node[side];

        p->n_wanted = 0;
        p->blocked = false;
        roce_set_tx_blocked(p->n->e, false);
        link_set_up(p->n, true);
        p->n->hole = UINT64_MAX;
        for (i = 0; i < PAIR_QPS; i++) {
            set_state(p, i, RDMA_QPS_RTS);
        }
    }
    come_to_rest();
    for (side = 0; side < 2; side++) {
        PairNode *p = &pair.node[side];

        for (i = 0; i < PAIR_QPS; i++) {
            pair_check_done(p, i);
            set_state(p, i, RDMA_QPS_ERR);
            /* Ring for receives that were posted without a kick. */
            roce_kick(p->n->e, RDMA_RQ, PAIR_QPN(i));
        }
    }
    come_to_rest();
    for (side = 0; side < 2; side++) {
        PairNode *p = &pair.node[side];

        for (i = 0; i < PAIR_QPS; i++) {
            MUST(p->qp[i].q[RDMA_RQ].retired == p->qp[i].q[RDMA_RQ].posted);
        }
        pair_check(p);
    }
    pair_check_counters();
    for (side = 0; side < 2; side++) {
        PairNode *p = &pair.node[side];

        for (i = 0; i < PAIR_QPS; i++) {
            pair_qp_destroy(p, i);
        }
        for (i = 0; i < PAIR_MWS; i++) {
            pair_mw_destroy(p, i);
        }
        for (i = 0; i < PAIR_MRS; i++) {
            pair_mr_destroy(p, i);
            MUST(!roce_has_mr(p->n->e, i + 1));
        }
        pair_srq_destroy(p);
        MUST(!p->has_srq);
        MUST(pair_transmit(p, 1) == 1 && pair_flying->len == 0);
        MUST(roce_next_deadline(p->n->e) == ROCE_NO_DEADLINE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned n, i;

    pair_in = (FuzzInput) { data, size };
    pair_new(fuzz_u8(&pair_in));
    pair.callbacks = fuzz_u8(&pair_in) / 4;
    pair_flying = g_ptr_array_new();
    create_all(&pair.node[0]);
    create_all(&pair.node[1]);
    for (i = 0; i < PAIR_QPS; i++) {
        connect(i, 0x18 | (i & 1));
    }
    for (n = 0; pair_in.left && n < MAX_RECORDS; n++) {
        uint8_t kind = fuzz_u8(&pair_in), what;

        switch (kind % N_KINDS) {
        case POST_GOOD:
            pair_post_good();
            break;
        case POST_ANY:
            pair_post_any();
            break;
        case POST_MESSAGE:
            pair_post_message();
            break;
        case POST_RECV:
            pair_post_receives();
            break;
        case POST_MEMORY:
            pair_post_memory();
            break;
        case RUN:
            pair_run(1 + kind / 8);
            break;
        case RUN_BADLY:
            pair_run_badly(1 + kind / 16);
            break;
        case PASS_TIME:
            pair_pass_time(INT64_C(1) << (kind / N_KINDS * 2));
            break;
        case OBJECTS:
            what = fuzz_u8(&pair_in);
            pair_change(&pair.node[what >> 7], what, fuzz_u8(&pair_in));
            break;
        case CONNECT:
            what = fuzz_u8(&pair_in);
            connect(kind / N_KINDS % PAIR_QPS, what);
            break;
        case OWNER:
            owner();
            break;
        case FORGE:
            pair_forge();
            break;
        case MOVE:
            pair_move(&pair.node[kind >> 7]);
            break;
        }
        pair_check(&pair.node[0]);
        pair_check(&pair.node[1]);
    }
    finish();
    g_ptr_array_set_free_func(pair_flying, g_free);
    g_ptr_array_unref(pair_flying);
    pair_free();
    return 0;
}
