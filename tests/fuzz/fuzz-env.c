/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include "fuzz-env.h"

#define MEMORY (256u << 10)
#define PATTERN 0xa5

const uint32_t fuzz_qpns[FUZZ_QPS] = {
    [FUZZ_GSI] = RDMA_QPN_GSI,
    [FUZZ_RC] = 16,
    [FUZZ_RC_RTR] = 17,
    [FUZZ_UC] = 18,
    [FUZZ_UD] = 19,
    [FUZZ_RC_SMALL] = 20,
    [FUZZ_RC_SRQ] = 21,
    [FUZZ_UC_SRQ] = 22,
    [FUZZ_UD_SRQ] = 23,
};

static const RdmaQpType types[FUZZ_QPS] = {
    [FUZZ_GSI] = RDMA_QPT_GSI,
    [FUZZ_RC] = RDMA_QPT_RC,
    [FUZZ_RC_RTR] = RDMA_QPT_RC,
    [FUZZ_UC] = RDMA_QPT_UC,
    [FUZZ_UD] = RDMA_QPT_UD,
    [FUZZ_RC_SMALL] = RDMA_QPT_RC,
    [FUZZ_RC_SRQ] = RDMA_QPT_RC,
    [FUZZ_UC_SRQ] = RDMA_QPT_UC,
    [FUZZ_UD_SRQ] = RDMA_QPT_UD,
};

bool fuzz_is_ud(unsigned which)
{
    return types[which] == RDMA_QPT_UD || types[which] == RDMA_QPT_GSI;
}

static bool uses_srq(unsigned which)
{
    return which >= FUZZ_RC_SRQ;
}

#define MUST(cond) do { \
        if (!(cond)) { \
            g_error("%s:%d: broken rule: %s", __FILE__, __LINE__, #cond); \
        } \
    } while (0)

void fuzz_gid(unsigned side, unsigned index, uint8_t gid[RDMA_GID_LEN])
{
    const uint8_t ip[4] = { 10, 0, 0, 1 + side };

    if (index % 2 == 0) {
        roce_gid_from_ipv4(gid, ip);
    } else {
        memset(gid, 0, RDMA_GID_LEN);
        gid[0] = 0xfd;
        gid[15] = 1 + side;
    }
}

static void fuzz_mac(unsigned side, uint8_t mac[RDMA_MAC_LEN])
{
    const uint8_t bytes[RDMA_MAC_LEN] = { 0x52, 0x54, 0, 0, 0, 1 + side };

    memcpy(mac, bytes, RDMA_MAC_LEN);
}

void fuzz_group(unsigned which, uint8_t gid[RDMA_GID_LEN])
{
    memset(gid, 0, RDMA_GID_LEN);
    if (which & 1) {
        gid[0] = 0xff;
        gid[1] = 0x0e;
    } else {
        gid[10] = gid[11] = 0xff;
        gid[12] = 239;
    }
    gid[15] = 1 + (which >> 1 & 1);
}

void fuzz_path_to(const FuzzEnv *env, bool is_ipv4, RocePath *path)
{
    *path = (RocePath) {
        .is_ipv4 = is_ipv4,
        .hop_limit = 64,
        .udp_sport = 0xc000,
    };
    fuzz_mac(!env->side, path->smac);
    fuzz_mac(env->side, path->dmac);
    fuzz_gid(!env->side, !is_ipv4, path->sgid);
    fuzz_gid(env->side, !is_ipv4, path->dgid);
}

static uint64_t *fast_pages(FuzzEnv *env, unsigned npages)
{
    uint64_t *pages = g_new(uint64_t, npages);
    unsigned i;

    for (i = 0; i < npages; i++) {
        /* Two and two of them adjoin */
        pages[i] = env->fast_pages + (i ^ 2) % 4 * RDMA_PAGE_SIZE;
    }
    return pages;
}

void fuzz_reg_pages(FuzzEnv *env, RdmaSendWr *wr, unsigned npages)
{
    wr->wr.reg.npages = npages;
    wr->wr.reg.pages = fast_pages(env, npages);
    wr->wr.reg.iova = FUZZ_IOVA;
    wr->wr.reg.length = (uint64_t)npages * RDMA_PAGE_SIZE;
}

uint32_t fuzz_window_key(FuzzEnv *env, uint32_t mwn)
{
    RoceMwImage image;

    MUST(roce_export_mw(env->engine, mwn, &image) == 0);
    return image.attr.rkey;
}

void fuzz_map_fast_region(FuzzEnv *env, unsigned npages)
{
    uint64_t *pages = fast_pages(env, npages);

    if (roce_mr_map(env->engine, FUZZ_KEY_FAST >> 8, FUZZ_IOVA,
                    (uint64_t)npages * RDMA_PAGE_SIZE, pages, npages) < 0) {
        g_free(pages);
    }
}

static void add_fast_region(FuzzEnv *env)
{
    RdmaMrAttr attr = {
        .mrn = FUZZ_KEY_FAST >> 8,
        .pdn = FUZZ_PDN,
        .type = RDMA_MR_FAST_REG,
        .lkey = FUZZ_KEY_FAST,
        .rkey = FUZZ_KEY_FAST,
        .max_pages = 4,
    };

    env->fast_pages = wire_host_alloc(env->host, 4);
    MUST(roce_mr_create(env->engine, &attr) == 0);
    fuzz_map_fast_region(env, 4);
}

static void add_windows(FuzzEnv *env)
{
    RdmaMwAttr attr = {
        .mwn = FUZZ_KEY_MW >> 8,
        .pdn = FUZZ_PDN,
        .type = RDMA_MW_TYPE_1,
        .rkey = FUZZ_KEY_MW,
    };

    MUST(roce_mw_create(env->engine, &attr) == 0);
    attr.mwn = FUZZ_KEY_MW2 >> 8;
    attr.rkey = FUZZ_KEY_MW2;
    attr.type = RDMA_MW_TYPE_2;
    MUST(roce_mw_create(env->engine, &attr) == 0);
}

static void add_srq(FuzzEnv *env)
{
    RdmaSrqAttr attr = {
        .srqn = FUZZ_SRQ,
        .pdn = FUZZ_SRQ_PDN,
        .max_wr = FUZZ_SRQ_WR,
        .max_sge = FUZZ_SRQ_SGE,
        .limit = 2,
    };

    MUST(roce_srq_create(env->engine, &attr) == 0);
    env->srq_ids = g_hash_table_new(g_direct_hash, g_direct_equal);
}

static void add_regions(FuzzEnv *env)
{
    const uint32_t all = RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE |
                         RDMA_ACCESS_MW_BIND | RDMA_ACCESS_FLUSH_GLOBAL;
    RdmaMrAttr dma = {
        .mrn = FUZZ_KEY_DMA >> 8,
        .pdn = FUZZ_PDN,
        .type = RDMA_MR_DMA,
        .access = RDMA_ACCESS_LOCAL_WRITE,
        .lkey = FUZZ_KEY_DMA,
        .length = UINT64_MAX,
    };
    RdmaMrAttr holes = {
        .mrn = FUZZ_KEY_HOLES >> 8,
        .pdn = FUZZ_PDN,
        .type = RDMA_MR_USER,
        .access = all,
        .lkey = FUZZ_KEY_HOLES,
        .rkey = FUZZ_KEY_HOLES,
        .iova = FUZZ_IOVA,
        .length = 4 * RDMA_PAGE_SIZE,
        .npages = 4,
        .pages = g_new(uint64_t, 4),
    };
    WireHost *h = env->host;

    /* The beginning of memory, which must never change */
    wire_host_add_region(h, FUZZ_KEY_READ, FUZZ_PDN, RDMA_ACCESS_REMOTE_READ |
                         RDMA_ACCESS_MW_BIND, FUZZ_IOVA + 5, 9001);
    wire_host_add_region(h, FUZZ_KEY_OTHER, FUZZ_PDN + 1, all, FUZZ_IOVA,
                         FUZZ_REGION);
    MUST(h->used <= FUZZ_PROTECTED);
    h->used = FUZZ_PROTECTED;
    memset(h->mem, PATTERN, FUZZ_PROTECTED);

    wire_host_add_region(h, FUZZ_KEY_ALL, FUZZ_PDN, all, FUZZ_IOVA,
                         FUZZ_REGION);
    wire_host_add_region(h, FUZZ_KEY_LOCAL, FUZZ_PDN,
                         RDMA_ACCESS_LOCAL_WRITE, FUZZ_IOVA, FUZZ_REGION);

    wire_host_add_region(h, FUZZ_KEY_SRQ, FUZZ_SRQ_PDN, all, FUZZ_IOVA,
                         FUZZ_REGION);

    holes.pages[0] = wire_host_alloc(h, 1);
    holes.pages[1] = 0;
    holes.pages[2] = wire_host_alloc(h, 1);
    holes.pages[3] = UINT64_C(0xfffffffffffff000);
    MUST(roce_mr_create(env->engine, &holes) == 0);
    MUST(roce_mr_create(env->engine, &dma) == 0);
    add_fast_region(env);
    add_windows(env);
}

void fuzz_qp_create(FuzzEnv *env, unsigned which)
{
    RdmaQpInitAttr init = {
        .qpn = fuzz_qpns[which],
        .pdn = FUZZ_PDN,
        .qp_type = types[which],
        .send_cqn = FUZZ_CQN,
        .recv_cqn = FUZZ_CQN + which % 2,
        .cap = { FUZZ_SEND_WR, FUZZ_RECV_WR, FUZZ_SEND_SGE, 3, FUZZ_INLINE },
    };
    unsigned q;

    if (env->qp[which].exists) {
        return;
    }
    if (which == FUZZ_RC_SMALL) {
        init.cap = (RdmaQpCap) { 3, 3, 1, 1, 0 };
    }
    if (uses_srq(which)) {
        init.has_srq = true;
        init.srqn = FUZZ_SRQ;
    }
    MUST(roce_qp_create(env->engine, &init) == 0);
    env->qp[which].exists = true;
    env->qp[which].odd = false;
    for (q = 0; q < 2; q++) {
        env->qp[which].posted[q] = 0;
        env->qp[which].last_id[q] = 0;
        env->qp[which].retired_at_create[q] =
            env->host->retired[init.qpn][q];
    }
}

void fuzz_qp_modify(FuzzEnv *env, unsigned which, FuzzInput *in)
{
    uint32_t mask = fuzz_u32(in);
    RdmaQpAttr attr = {
        .qp_state = fuzz_u8(in) % 8,
        .cur_qp_state = fuzz_u8(in) % 8,
        .path_mtu = fuzz_u8(in) % 8,
        .qkey = fuzz_u32(in),
        .rq_psn = fuzz_u32(in),
        .sq_psn = fuzz_u32(in),
        .dest_qp_num = fuzz_u8(in) % 64,
        .qp_access_flags = fuzz_u8(in),
        .pkey_index = fuzz_u8(in) % 2,
        .port_num = fuzz_u8(in) % 3,
        .max_rd_atomic = fuzz_u8(in) % 8,
        .max_dest_rd_atomic = fuzz_u8(in) % 8,
        .min_rnr_timer = fuzz_u8(in) % 64,
        .timeout = fuzz_u8(in) % 64,
        .retry_cnt = fuzz_u8(in) % 16,
        .rnr_retry = fuzz_u8(in) % 16,
        .ah_attr = { .ah_flags = 1, .port_num = 1 },
    };

    attr.rate_limit = (mask >> 26 & 3) * 1000;
    attr.ah_attr.static_rate = mask >> 28 & 7;
    attr.ah_attr.sgid_index = fuzz_u8(in) % 8;
    attr.ah_attr.port_num = fuzz_u8(in) % 3;
    attr.ah_attr.traffic_class = fuzz_u8(in);
    fuzz_gid(fuzz_u8(in) & 1, fuzz_u8(in), attr.ah_attr.dgid);
    if (mask & 1u << 31) {
        /* More likely to be accepted: the attributes that RC needs for RTR */
        mask = RDMA_QP_STATE | RDMA_QP_AV | RDMA_QP_PATH_MTU |
               RDMA_QP_DEST_QPN | RDMA_QP_RQ_PSN |
               RDMA_QP_MAX_DEST_RD_ATOMIC | RDMA_QP_MIN_RNR_TIMER;
        attr.qp_state = RDMA_QPS_RTR;
    }
    if (attr.qp_state == RDMA_QPS_RESET && (mask & RDMA_QP_STATE)) {
        fuzz_qp_reset(env, which);
    } else if (roce_qp_modify(env->engine, fuzz_qpns[which], mask,
                              &attr) == 0) {
        env->qp[which].odd = true;
    }
}

/* WRs that the consumer has posted to a queue, and the engine has not taken */
static uint32_t waiting(const FuzzEnv *env, unsigned which, RdmaQueue q)
{
    const Consumer *c = env->host->consumer;
    uint32_t qpn = fuzz_qpns[which];

    return q == RDMA_SQ ? consumer_sends(c, qpn)
                        : consumer_recvs(c, RDMA_RQ, qpn);
}

/* The consumer gives its queues up: WQEs that wait there count as retired. */
static void drop_queues(FuzzEnv *env, unsigned which)
{
    uint32_t qpn = fuzz_qpns[which];
    unsigned q;

    for (q = 0; q < 2; q++) {
        env->host->retired[qpn][q] += waiting(env, which, q);
    }
    consumer_drop_qp(env->host->consumer, qpn);
}

void fuzz_qp_destroy(FuzzEnv *env, unsigned which)
{
    if (env->qp[which].exists) {
        MUST(roce_qp_destroy(env->engine, fuzz_qpns[which]) == 0);
        drop_queues(env, which);
        env->qp[which].exists = false;
    }
}

bool fuzz_qp_connect(FuzzEnv *env, unsigned which, bool ipv6, bool rts)
{
    bool rc = types[which] == RDMA_QPT_RC;
    bool ud = fuzz_is_ud(which);
    bool small = which == FUZZ_RC_SMALL;
    RdmaQpAttr attr = {
        .qp_state = RDMA_QPS_INIT,
        .port_num = 1,
        .qkey = types[which] == RDMA_QPT_GSI ? RDMA_GSI_QKEY : FUZZ_QKEY,
        .qp_access_flags = RDMA_ACCESS_REMOTE | RDMA_ACCESS_LOCAL_WRITE |
                           RDMA_ACCESS_FLUSH_GLOBAL,
        .path_mtu = small ? RDMA_MTU_256 : RDMA_MTU_1024,
        .dest_qp_num = fuzz_qpns[which],
        /* Close to the wrap */
        .rq_psn = small ? 0xfffffa : 0,
        .sq_psn = small ? 0xfffffa : 0,
        .max_rd_atomic = small ? 1 : 4,
        .max_dest_rd_atomic = small ? 1 : 4,
        .min_rnr_timer = small ? 20 : 1,
        .timeout = 10,
        .retry_cnt = small ? 1 : 3,
        .rnr_retry = small ? 1 : 3,
        .ah_attr = { .ah_flags = 1, .port_num = 1, .sgid_index = ipv6 },
    };
    uint32_t qpn = fuzz_qpns[which];

    fuzz_gid(!env->side, ipv6, attr.ah_attr.dgid);
    fuzz_mac(!env->side, attr.ah_attr.dmac);
    if (roce_qp_modify(env->engine, qpn,
                       RDMA_QP_STATE | RDMA_QP_PKEY_INDEX | RDMA_QP_PORT |
                       (ud ? RDMA_QP_QKEY : RDMA_QP_ACCESS_FLAGS),
                       &attr) < 0) {
        return false;
    }
    attr.qp_state = RDMA_QPS_RTR;
    if (roce_qp_modify(env->engine, qpn,
        RDMA_QP_STATE |
        (ud ? 0 : RDMA_QP_AV | RDMA_QP_PATH_MTU | RDMA_QP_DEST_QPN |
                  RDMA_QP_RQ_PSN) |
        (rc ? RDMA_QP_MAX_DEST_RD_ATOMIC | RDMA_QP_MIN_RNR_TIMER : 0),
        &attr) < 0) {
        return false;
    }
    if (!rts) {
        return true;
    }
    attr.qp_state = RDMA_QPS_RTS;
    if (roce_qp_modify(env->engine, qpn,
        RDMA_QP_STATE | RDMA_QP_SQ_PSN |
        (rc ? RDMA_QP_TIMEOUT | RDMA_QP_RETRY_CNT | RDMA_QP_RNR_RETRY |
              RDMA_QP_MAX_QP_RD_ATOMIC : 0),
        &attr) < 0) {
        /* A broken CQ moves the QP to ERR at once */
        MUST(env->cq_was_broken);
        return false;
    }
    return true;
}

FuzzEnv *fuzz_env_new(unsigned side)
{
    RoceConfig config = {
        .max_qp = 32, .max_mr = 16, .gid_table_len = 4, .max_rd_atomic = 4,
        .max_srq = 2, .max_mcast_grp = 2, .max_mcast_qp_attach = 2,
    };
    FuzzEnv *env = g_new0(FuzzEnv, 1);
    uint8_t mac[RDMA_MAC_LEN], gid[RDMA_GID_LEN];
    unsigned i;

    env->side = side;
    env->host = wire_host_new(&config, MEMORY);
    env->host->scattered = true;
    env->engine = env->host->engine;
    fuzz_mac(side, mac);
    roce_set_mac(env->engine, mac);
    roce_set_link_mtu(env->engine, 9000);
    roce_set_extensions(env->engine, RDMA_EXT_FLUSH | RDMA_EXT_ATOMIC_WRITE);
    roce_set_link(env->engine, true);
    for (i = 0; i < FUZZ_GIDS; i++) {
        fuzz_gid(side, i, gid);
        MUST(roce_add_gid(env->engine, i, gid, RDMA_NO_VLAN) == 0);
    }
    add_regions(env);
    add_srq(env);
    for (i = 0; i < FUZZ_QPS; i++) {
        fuzz_qp_create(env, i);
        MUST(fuzz_qp_connect(env, i, i % 2, i != FUZZ_RC_RTR));
    }
    return env;
}

void fuzz_env_free(FuzzEnv *env)
{
    const uint8_t *mem = env->host->mem;

    MUST(mem[0] == PATTERN && !memcmp(mem, mem + 1, FUZZ_PROTECTED - 1));
    wire_host_free(env->host);
    g_hash_table_unref(env->srq_ids);
    g_free(env);
}

/* May the consumer post there? */
static bool has_room(const FuzzEnv *env, unsigned which, RdmaQueue q)
{
    uint32_t qpn = fuzz_qpns[which];
    uint64_t retired = env->host->retired[qpn][q] -
                       env->qp[which].retired_at_create[q];
    RdmaQpAttr attr;

    if (!env->qp[which].exists) {
        return false;
    }
    MUST(roce_qp_query(env->engine, qpn, &attr) == 0);
    switch (attr.qp_state) {
    case RDMA_QPS_RESET:
        return false;
    case RDMA_QPS_INIT:
    case RDMA_QPS_RTR:
        if (q == RDMA_SQ) {
            return false;
        }
        break;
    default:
        break;
    }
    return env->qp[which].posted[q] - retired <
           (q == RDMA_SQ ? attr.cap.max_send_wr : attr.cap.max_recv_wr);
}

void fuzz_post_send(FuzzEnv *env, unsigned which, RdmaSendWr *wr)
{
    uint32_t qpn = fuzz_qpns[which];
    bool ud = fuzz_is_ud(which);
    uint64_t *pages = !ud && wr->opcode == RDMA_WR_REG_MR ? wr->wr.reg.pages
                                                          : NULL;

    if (has_room(env, which, RDMA_SQ)) {
        wr->wr_id = env->qp[which].posted[RDMA_SQ]++;
        if (ud) {
            consumer_post_datagram(env->host->consumer, qpn, wr);
        } else {
            consumer_post_send(env->host->consumer, qpn, wr);
        }
        if (wr->status == RDMA_WC_SUCCESS && !ud && wr->wr.reg.npages) {
            pages = NULL;
        }
        roce_kick(env->engine, RDMA_SQ, qpn);
    }
    g_free(pages);
}

static void post_srq(FuzzEnv *env, RdmaRecvWr *wr)
{
    if (consumer_recvs(env->host->consumer, RDMA_SRQ, FUZZ_SRQ) < FUZZ_SRQ_WR) {
        g_hash_table_add(env->srq_ids, GSIZE_TO_POINTER(env->srq_posted));
        wr->wr_id = env->srq_posted++ | FUZZ_ID_RECV | FUZZ_ID_SRQ;
        consumer_post_srq_recv(env->host->consumer, FUZZ_SRQ, wr);
    }
}

void fuzz_post_recv(FuzzEnv *env, unsigned which, RdmaRecvWr *wr)
{
    if (uses_srq(which)) {
        post_srq(env, wr);
        return;
    }
    if (has_room(env, which, RDMA_RQ)) {
        wr->wr_id = env->qp[which].posted[RDMA_RQ]++ | FUZZ_ID_RECV;
        consumer_post_recv(env->host->consumer, fuzz_qpns[which], wr);
        roce_kick(env->engine, RDMA_RQ, fuzz_qpns[which]);
    }
}

size_t fuzz_take_frame(FuzzEnv *env, uint8_t frame[ROCE_MAX_FRAME])
{
    static RoceTxFrame tx;
    size_t len = 0;
    RocePacket pkt;
    unsigned i;

    if (!roce_poll_tx(env->engine, env->now, &tx)) {
        MUST(env->host->maps == 0);
        return 0;
    }
    MUST(tx.iovcnt <= ROCE_TX_MAX_IOV);
    for (i = 0; i < tx.iovcnt; i++) {
        MUST(tx.iov[i].iov_len <= ROCE_MAX_FRAME - len);
        memcpy(frame + len, tx.iov[i].iov_base, tx.iov[i].iov_len);
        len += tx.iov[i].iov_len;
    }
    MUST(len == tx.size);
    roce_tx_done(env->engine, &tx);
    MUST(env->host->maps == 0);

    MUST(roce_parse(frame, len, &pkt) == ROCE_PARSE_OK);
    MUST(roce_icrc_ok(&pkt));
    MUST(pkt.payload + pkt.payload_len + pkt.bth.pad + ROCE_ICRC_LEN ==
         frame + len);
    return len;
}

static unsigned find_qp(uint32_t qpn)
{
    unsigned i;

    for (i = 0; i < FUZZ_QPS && fuzz_qpns[i] != qpn; i++) {
        /* next */
    }
    MUST(i < FUZZ_QPS);
    return i;
}

void fuzz_bind_windows(FuzzEnv *env)
{
    static const struct {
        uint32_t key, access;
    } windows[] = {
        { FUZZ_KEY_MW, RDMA_ACCESS_REMOTE | RDMA_ACCESS_ZERO_BASED },
        { FUZZ_KEY_MW2, RDMA_ACCESS_REMOTE_READ },
    };
    uint8_t frame[ROCE_MAX_FRAME];
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(windows); i++) {
        RdmaSendWr wr = { .opcode = RDMA_WR_BIND_MW };

        wr.wr.bind.rkey = windows[i].key;
        wr.wr.bind.new_rkey = windows[i].key;
        wr.wr.bind.lkey = FUZZ_KEY_ALL;
        wr.wr.bind.access = windows[i].access;
        wr.wr.bind.addr = FUZZ_IOVA + 0x100;
        wr.wr.bind.length = FUZZ_REGION / 2;
        fuzz_post_send(env, FUZZ_RC, &wr);
    }
    MUST(fuzz_take_frame(env, frame) == 0);
    MUST(roce_mr_destroy(env->engine, FUZZ_KEY_ALL >> 8) == -EBUSY);
}

/*
 * WQEs complete in the order of posting, each at most once, and each receive
 * WQE does. Those of the SRQ complete at most once.
 */
static void check_completions(FuzzEnv *env)
{
    GArray *wcs = env->host->wcs;

    for (; env->wcs_seen < wcs->len; env->wcs_seen++) {
        const RdmaWc *wc = &g_array_index(wcs, WireWc, env->wcs_seen).wc;
        unsigned which = find_qp(wc->qp_num);
        RdmaQueue q = wc->wr_id & FUZZ_ID_RECV ? RDMA_RQ : RDMA_SQ;
        uint64_t id = wc->wr_id & ~(FUZZ_ID_RECV | FUZZ_ID_SRQ);
        uint64_t *last = &env->qp[which].last_id[q];

        MUST(wc->status <= RDMA_WC_GENERAL_ERR);
        MUST(!(wc->wr_id & FUZZ_ID_SRQ) ==
             !(q == RDMA_RQ && uses_srq(which)));
        if (wc->wr_id & FUZZ_ID_SRQ) {
            MUST(g_hash_table_remove(env->srq_ids, GSIZE_TO_POINTER(id)));
            continue;
        }
        MUST(id < env->qp[which].posted[q]);
        MUST(q == RDMA_RQ ? id == *last : id >= *last);
        if (wc->status == RDMA_WC_SUCCESS) {
            MUST(!(wc->opcode & RDMA_WC_RECV) == (q == RDMA_SQ));
        }
        *last = id + 1;
    }
}

void fuzz_qp_reset(FuzzEnv *env, unsigned which)
{
    RdmaQpAttr attr = { .qp_state = RDMA_QPS_RESET };
    unsigned q;

    if (!env->qp[which].exists) {
        return;
    }
    MUST(roce_qp_modify(env->engine, fuzz_qpns[which], RDMA_QP_STATE,
                        &attr) == 0);
    env->qp[which].odd = false;
    drop_queues(env, which);
    for (q = 0; q < 2; q++) {
        MUST(env->host->retired[fuzz_qpns[which]][q] -
             env->qp[which].retired_at_create[q] ==
             env->qp[which].posted[q]);
    }
    /* RESET retires without completing */
    check_completions(env);
    env->qp[which].last_id[RDMA_RQ] = env->qp[which].posted[RDMA_RQ];
}

static void check_srq(const FuzzEnv *env)
{
    const Consumer *c = env->host->consumer;
    RdmaInspection now;

    MUST(roce_inspect(env->engine, RDMA_OBJECT_SRQ, FUZZ_SRQ, &now) == 0);
    MUST(now.srq.recvs <= 1);
    MUST(now.srq.recvs + consumer_recvs(c, RDMA_SRQ, FUZZ_SRQ) <=
         g_hash_table_size(env->srq_ids));
}

/* WRs are with the consumer, in the engine, or retired. */
static void check_queues(const FuzzEnv *env, unsigned which)
{
    uint32_t qpn = fuzz_qpns[which];
    RdmaInspection now;
    uint32_t held[2];
    uint64_t out[2];
    unsigned q;

    MUST(roce_inspect(env->engine, RDMA_OBJECT_QP, qpn, &now) == 0);
    held[RDMA_SQ] = now.qp.sends;
    held[RDMA_RQ] = now.qp.recvs;
    MUST(now.qp.recvs <= 1);
    for (q = 0; q < 2; q++) {
        uint64_t retired = env->host->retired[qpn][q] -
                           env->qp[which].retired_at_create[q];

        MUST(retired <= env->qp[which].posted[q]);
        out[q] = env->qp[which].posted[q] - retired;
        MUST(out[q] <= (which == FUZZ_RC_SMALL ? 3 : FUZZ_SEND_WR));
        if (q == RDMA_SQ || !uses_srq(which)) {
            MUST(out[q] == held[q] + waiting(env, which, q));
        }
    }
    /* A retired receive has completed: all of them do */
    MUST(env->cq_was_broken || env->qp[which].last_id[RDMA_RQ] ==
         env->qp[which].posted[RDMA_RQ] - out[RDMA_RQ]);
}

void fuzz_check(FuzzEnv *env)
{
    unsigned i;

    MUST(env->host->maps == 0);
    check_completions(env);
    check_srq(env);
    for (i = 0; i < FUZZ_QPS; i++) {
        if (env->qp[i].exists) {
            check_queues(env, i);
        }
    }
}
