/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzer: a hostile migration stream for an engine.
 *
 * The input chooses how far two engines with open queue pairs get with each
 * other, and then changes to the images of one engine's objects. Images that a
 * third engine accepts are put to work, and get the rest of the peer's frames.
 */
#include "rdma/roce-state.h"
#include "fuzz-env.h"

#define MAX_POSTS 24
#define MAX_PATCHES 32
#define MAX_GROUPS 4
#define MAX_RECVS 32

/* Memory of the engine that loads, for all addresses */
static uint8_t scratch[2 * RDMA_PAGE_SIZE];
/* Receives that its consumer has, for all queues together */
static unsigned recvs_left;

static void *load_map(void *opaque, uint64_t addr, uint64_t *len, bool write)
{
    *len = MIN(*len, sizeof(scratch) - addr % RDMA_PAGE_SIZE);
    return scratch + addr % RDMA_PAGE_SIZE;
}

static void load_unmap(void *opaque, void *host, uint64_t len, bool write,
                       uint64_t access_len)
{
}

static bool load_atomic(void *opaque, uint64_t addr, uint32_t opcode,
                        uint64_t compare_add, uint64_t swap, uint64_t *old)
{
    *old = addr;
    return true;
}

static void load_retire(void *opaque, uint32_t qpn, RdmaQueue queue,
                        uint32_t count)
{
}

static bool load_complete(void *opaque, uint32_t cqn, const RdmaWc *wc,
                          bool solicited)
{
    return wc->wr_id % 16 != 15;
}

/* Events name existing objects */
static void load_event(void *opaque, const RdmaEvent *event)
{
    if (event->id >= 64) {
        g_error("event %u of %u", event->type, event->id);
    }
}

/* A message, or ERR, takes one receive of the consumer. */
static bool load_next_recv(void *opaque, RdmaQueue queue, uint32_t id,
                           bool flush, RdmaRecvWr *wr)
{
    static const RdmaSge sge = { FUZZ_IOVA, 8192, FUZZ_KEY_ALL };

    if (!recvs_left) {
        return false;
    }
    *wr = (RdmaRecvWr) {
        .wr_id = recvs_left--,
        .num_sge = 1,
        .sg_list = &sge,
    };
    return true;
}

static void load_wake(void *opaque)
{
}

static const RoceOps load_ops = {
    .map = load_map,
    .unmap = load_unmap,
    .atomic = load_atomic,
    .consumer = {
        .retire = load_retire,
        .complete = load_complete,
        .event = load_event,
        .next_recv = load_next_recv,
    },
    .wake = load_wake,
};

/* Work for the QPs */
static void work(FuzzEnv *env, FuzzInput *in)
{
    static const uint8_t opcodes[] = {
        RDMA_WR_SEND, RDMA_WR_RDMA_WRITE, RDMA_WR_RDMA_READ,
        RDMA_WR_ATOMIC_FETCH_AND_ADD, RDMA_WR_LOCAL_INV, RDMA_WR_REG_MR,
        RDMA_WR_BIND_MW, RDMA_WR_FLUSH, RDMA_WR_ATOMIC_WRITE,
    };
    unsigned n = fuzz_u8(in) % MAX_POSTS;

    while (n--) {
        unsigned which = fuzz_u8(in) % FUZZ_QPS;
        RdmaSge sge = {
            .addr = FUZZ_IOVA + fuzz_u16(in) % 4096,
            .length = fuzz_u16(in) % 8192,
            .lkey = FUZZ_KEY_ALL,
        };
        RdmaSendWr wr = {
            .opcode = opcodes[fuzz_u8(in) % G_N_ELEMENTS(opcodes)],
            .send_flags = fuzz_u8(in) & (RDMA_SEND_SIGNALED |
                                         RDMA_SEND_FENCE),
            .num_sge = 1,
            .sg_list = &sge,
        };
        RdmaRecvWr recv = { .num_sge = 1, .sg_list = &sge };

        if (fuzz_u8(in) % 4 == 0) {
            fuzz_post_recv(env, which, &recv);
            continue;
        }
        switch (wr.opcode) {
        case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        case RDMA_WR_ATOMIC_WRITE:
            sge.length = 8;
            break;
        case RDMA_WR_REG_MR:
            wr.wr.reg.mrn = FUZZ_KEY_FAST >> 8;
            wr.wr.reg.key = FUZZ_KEY_FAST;
            wr.wr.reg.access = RDMA_ACCESS_LOCAL_WRITE;
            if (!fuzz_is_ud(which)) {
                fuzz_reg_pages(env, &wr, sge.length % 5);
            }
            break;
        case RDMA_WR_FLUSH:
            wr.wr.flush.remote_addr = FUZZ_IOVA;
            wr.wr.flush.rkey = FUZZ_KEY_ALL;
            wr.wr.flush.type = 1 + sge.length % 3;
            wr.wr.flush.level = sge.addr & 1;
            break;
        case RDMA_WR_BIND_MW:
            wr.wr.bind.rkey = sge.addr & 1 ? FUZZ_KEY_MW2 : FUZZ_KEY_MW;
            wr.wr.bind.new_rkey = wr.wr.bind.rkey;
            wr.wr.bind.lkey = FUZZ_KEY_ALL;
            wr.wr.bind.access = RDMA_ACCESS_REMOTE_READ;
            wr.wr.bind.addr = sge.addr;
            wr.wr.bind.length = sge.length;
            break;
        }
        fuzz_post_send(env, which, &wr);
    }
}

static void join_groups(FuzzEnv *env, FuzzInput *in)
{
    uint8_t gid[RDMA_GID_LEN], which = fuzz_u8(in);
    unsigned i;

    for (i = 0; i < MAX_GROUPS; i++) {
        fuzz_group(i, gid);
        if (which >> i & 1) {
            roce_mcast_attach(env->engine, fuzz_qpns[FUZZ_UD], gid);
        }
        if (which >> i & 16) {
            roce_mcast_attach(env->engine, fuzz_qpns[FUZZ_UD_SRQ], gid);
        }
    }
}

/* Some frames each way, of which @env does not get all. */
static void talk(FuzzEnv *env, FuzzEnv *peer, FuzzInput *in)
{
    static uint8_t frame[ROCE_MAX_FRAME];
    unsigned n = fuzz_u8(in) % 64;
    uint16_t lost = fuzz_u16(in);
    size_t len, got = 1;

    for (; n && got; n--) {
        got = fuzz_take_frame(env, frame);
        if (got) {
            roce_rx(peer->engine, frame, got, peer->now);
        }
        len = fuzz_take_frame(peer, frame);
        if (len && !(lost >> n % 16 & 1)) {
            roce_rx(env->engine, frame, len, env->now);
        }
        got += len;
    }
}

typedef struct Span {
    void *at;
    size_t size;
} Span;

static void patch(FuzzInput *in, const Span *spans, unsigned nspans)
{
    unsigned n = fuzz_u8(in) % MAX_PATCHES;

    while (n-- && in->left) {
        const Span *span = &spans[fuzz_u8(in) % nspans];
        uint16_t at = fuzz_u16(in);
        uint32_t value = fuzz_u32(in);
        size_t len = fuzz_u8(in) % 4 + 1;

        if (span->size >= len) {
            memcpy((uint8_t *)span->at + at % (span->size - len + 1), &value,
                   len);
        }
    }
}

static void patch_qp(FuzzInput *in, RoceQpImage *q)
{
    const Span spans[] = {
        { &q->s.attr, sizeof(q->s.attr) },
        { &q->s.sq, sizeof(q->s.sq) },
        { &q->s.rq, sizeof(q->s.rq) },
        { &q->s.resp, sizeof(q->s.resp) },
        { &q->init, offsetof(RdmaQpInitAttr, sq_sig_all) },
        { &q->init.send_cqn, offsetof(RdmaQpInitAttr, has_srq) -
                             offsetof(RdmaQpInitAttr, send_cqn) },
        { &q->init.srqn, sizeof(q->init.srqn) },
        { &q->send_cq_failed, 2 },
        { q->send, q->n_send * sizeof(*q->send) },
        { q->send_sges, q->n_send_sges * sizeof(*q->send_sges) },
        { q->pages, q->n_pages * sizeof(*q->pages) },
        { q->recv, q->n_recv * sizeof(*q->recv) },
        { q->recv_sges, q->n_recv_sges * sizeof(*q->recv_sges) },
        { q->res, q->n_res * sizeof(*q->res) },
    };

    patch(in, spans, G_N_ELEMENTS(spans));
    q->init.has_srq ^= fuzz_u8(in) % 8 == 7;
}

static void patch_mr(FuzzInput *in, RoceMrImage *m)
{
    uint32_t npages = m->attr.npages, pending = m->pending_npages;
    const Span spans[] = {
        { &m->attr, offsetof(RdmaMrAttr, pages) },
        { &m->attr.page_shift, 1 },
        { &m->valid, 2 },
        { &m->pending_iova, offsetof(RoceMrImage, pending_pages) -
                            offsetof(RoceMrImage, pending_iova) },
        { m->attr.pages, npages * sizeof(uint64_t) },
        { m->pending_pages, pending * sizeof(uint64_t) },
    };

    patch(in, spans, G_N_ELEMENTS(spans));
    /* Lengths must not exceed the arrays */
    m->attr.npages = MIN(m->attr.npages, npages);
    m->pending_npages = MIN(m->pending_npages, pending);
}

static void load_srq(FuzzEnv *env, FuzzInput *in, RoceEngine *e)
{
    static const RdmaSrqAttr max = { .max_wr = 64, .max_sge = 64 };
    g_autofree char *why = NULL;
    RoceSrqImage image;

    if (roce_export_srq(env->engine, FUZZ_SRQ, &image) == 0) {
        const Span spans[] = {
            { &image.attr, sizeof(image.attr) },
            { image.recv, image.n_recv * sizeof(*image.recv) },
            { image.recv_sges,
              image.n_recv_sges * sizeof(*image.recv_sges) },
        };

        patch(in, spans, G_N_ELEMENTS(spans));
        if (roce_import_srq(e, &image, &max, &why) && !why) {
            g_error("a refusal without a reason");
        }
        roce_srq_image_clear(&image);
    }
}

/* After the QPs, because a patched number may be that of another QP */
static void load_windows(FuzzEnv *env, FuzzInput *in, RoceEngine *e)
{
    RoceMwImage image, copy;
    char *why;
    unsigned i;

    for (i = FUZZ_KEY_MW >> 8; i <= FUZZ_KEY_MW2 >> 8; i++) {
        const Span spans[] = {
            { &image, sizeof(image) },
        };

        if (roce_export_mw(env->engine, i, &image)) {
            continue;
        }
        patch(in, spans, G_N_ELEMENTS(spans));
        if (roce_import_mw(e, &image, &why)) {
            if (!why) {
                g_error("a refusal without a reason");
            }
            g_free(why);
        } else if (roce_export_mw(e, image.attr.mwn, &copy) ||
                   copy.bound != image.bound || copy.mrn != image.mrn) {
            g_error("a window that was let in is not there");
        }
    }
}

static void load_groups(FuzzEnv *env, FuzzInput *in, RoceEngine *e)
{
    uint8_t gids[MAX_GROUPS][RDMA_GID_LEN];
    const Span spans[] = { { gids, sizeof(gids) } };
    uint32_t i, j, n;

    for (i = 0; i < FUZZ_QPS; i++) {
        n = roce_get_mcast(env->engine, fuzz_qpns[i], gids, MAX_GROUPS);
        if (n) {
            patch(in, spans, 1);
        }
        for (j = 0; j < n; j++) {
            roce_mcast_attach(e, fuzz_qpns[i], gids[j]);
        }
    }
}

static void load_gids(FuzzEnv *env, FuzzInput *in, RoceEngine *e)
{
    uint8_t gid[RDMA_GID_LEN];
    const Span spans[] = { { gid, sizeof(gid) } };
    uint16_t vlan;
    unsigned i;

    for (i = 0; i < FUZZ_GIDS; i++) {
        if (roce_get_gid(env->engine, i, gid, &vlan)) {
            if (fuzz_u8(in) % 16 == 15) {
                patch(in, spans, 1);
                vlan = fuzz_u16(in);
            }
            roce_add_gid(e, i, gid, vlan);
        }
    }
}

static void drain(RoceEngine *e, int64_t now)
{
    static RoceTxFrame frame;
    unsigned n;

    for (n = 0; n < 400 && roce_poll_tx(e, now, &frame); n++) {
        roce_tx_done(e, &frame);
    }
}

static void exercise(RoceEngine *e, uint32_t qpn, int64_t now)
{
    static const RdmaQpState states[] = { RDMA_QPS_SQD, RDMA_QPS_ERR,
                                          RDMA_QPS_RESET };
    RoceQpImage image;
    unsigned i;

    if (roce_export_qp(e, qpn, &image)) {
        g_error("a QP that was let in is not there");
    }
    roce_qp_image_clear(&image);
    for (i = 0; i < 3; i++) {
        drain(e, now);
        now += 1000000;
        roce_expire(e, now, now);
    }
    for (i = 0; i < G_N_ELEMENTS(states); i++) {
        RdmaQpAttr attr = { .qp_state = states[i] };

        roce_qp_modify(e, qpn, RDMA_QP_STATE, &attr);
        drain(e, now);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const RoceConfig config = {
        .max_qp = 64, .max_mr = 64, .gid_table_len = 8, .max_rd_atomic = 16,
        .max_srq = 4, .max_mcast_grp = 4, .max_mcast_qp_attach = 4,
    };
    static const RdmaQpCap max = {
        .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 64,
        .max_recv_sge = 64, .max_inline_data = 1024,
    };
    FuzzInput in = { data, size };
    static uint8_t frame[ROCE_MAX_FRAME];
    FuzzEnv *env = fuzz_env_new(0), *peer = fuzz_env_new(1);
    RoceEngine *e = roce_new(&config, &load_ops, NULL);
    char *why;
    uint32_t loaded[FUZZ_QPS];
    unsigned i, n = 0;
    size_t len;

    recvs_left = MAX_RECVS;
    work(env, &in);
    work(peer, &in);
    join_groups(env, &in);
    talk(env, peer, &in);
    roce_set_link_mtu(e, 9000);
    roce_set_extensions(e, RDMA_EXT_FLUSH | RDMA_EXT_ATOMIC_WRITE);
    roce_set_link(e, true);
    load_gids(env, &in, e);
    for (i = 1; i < 16; i++) {
        RoceMrImage image;

        if (roce_export_mr(env->engine, i, &image) == 0) {
            patch_mr(&in, &image);
            roce_import_mr(e, &image, &why);
            g_free(why);
            roce_mr_image_clear(&image);
        }
    }
    load_srq(env, &in, e);
    for (i = 0; i < FUZZ_QPS; i++) {
        RoceQpImage image;

        if (roce_export_qp(env->engine, fuzz_qpns[i], &image) == 0) {
            patch_qp(&in, &image);
            if (roce_import_qp(e, &image, &max, &why) == 0) {
                loaded[n++] = image.init.qpn;
            } else if (!why) {
                g_error("a refusal without a reason");
            }
            g_free(why);
            roce_qp_image_clear(&image);
        }
    }
    load_groups(env, &in, e);
    load_windows(env, &in, e);
    roce_resume(e, env->now);
    for (i = 0; i < 64 && (len = fuzz_take_frame(peer, frame)); i++) {
        roce_rx(e, frame, len, env->now);
    }
    for (i = 0; i < n; i++) {
        exercise(e, loaded[i], env->now);
    }
    for (i = 0; i < FUZZ_QPS; i++) {
        roce_qp_destroy(e, fuzz_qpns[i]);
    }
    roce_free(e);
    fuzz_env_free(peer);
    fuzz_env_free(env);
    return 0;
}
