/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * FLUSH and ATOMIC WRITE: effect, order, access checks and duplicates (IBTA
 * A19).
 */
#include <string.h>
#include "roce-link.h"

#define BTH_OFF (14 + 20 + 8)       /* IPv4 */
#define READ_RESP_ONLY 0x10
#define FLUSH 0x1c
#define ATOMIC_WRITE 0x1d
/* In bmr, 8-byte aligned */
#define VALUE_OFF 4096

/* A log of the frames, and which of them to lose */
typedef struct Log {
    GByteArray *opcodes;            /* of both nodes */
    unsigned responses;             /* of node b */
    unsigned lose_responses;        /* lose the first ones */
    size_t len;                     /* of node a's last frame */
    uint8_t frame[256];
} Log;

static bool log_frame(RoceLink *l, unsigned from, const uint8_t *frame,
                      size_t len, void *opaque)
{
    Log *log = opaque;

    g_byte_array_append(log->opcodes, frame + BTH_OFF, 1);
    if (from == 0) {
        g_assert_cmpuint(len, <=, sizeof(log->frame));
        memcpy(log->frame, frame, len);
        log->len = len;
        return true;
    }
    return ++log->responses > log->lose_responses;
}

static void log_start(LinkPair *p, Log *log)
{
    memset(log, 0, sizeof(*log));
    log->opcodes = g_byte_array_new();
    p->l->filter = log_frame;
    p->l->filter_opaque = log;
}

static void log_end(LinkPair *p, Log *log)
{
    p->l->filter = NULL;
    g_byte_array_unref(log->opcodes);
}

static RdmaSendWr flush_wr(LinkPair *p, uint32_t type, uint32_t level)
{
    RdmaSendWr wr = link_wr(RDMA_WR_FLUSH, 1, NULL);

    wr.wr.flush.remote_addr = p->bmr->attr.iova + 16;
    wr.wr.flush.rkey = p->bmr->attr.rkey;
    wr.wr.flush.length = 100;
    wr.wr.flush.type = type;
    wr.wr.flush.level = level;
    return wr;
}

/* @value must stay valid as long as the WR. */
static RdmaSendWr atomic_write_wr(LinkPair *p, const uint8_t value[8])
{
    RdmaSendWr wr = link_wr(RDMA_WR_ATOMIC_WRITE, 1, NULL);

    wr.send_flags |= RDMA_SEND_INLINE;
    wr.inline_data = value;
    wr.inline_len = 8;
    wr.wr.rdma.remote_addr = p->bmr->attr.iova + VALUE_OFF;
    wr.wr.rdma.rkey = p->bmr->attr.rkey;
    return wr;
}

static void check_value(LinkPair *p, const char *value)
{
    uint8_t seen[8];

    link_read(p->bmr, VALUE_OFF, seen, 8);
    g_assert_cmpmem(seen, 8, value, 8);
}

static void test_flush(void)
{
    static const uint8_t feth_range[4] = { 0, 0, 0, 0x01 };
    static const uint8_t feth_mr[4] = { 0, 0, 0, 0x11 };
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned level;
    RdmaSendWr wr;
    RdmaWc wc;
    Log log;

    for (level = RDMA_FLUSH_RANGE; level <= RDMA_FLUSH_MR; level++) {
        log_start(&p, &log);
        wr = flush_wr(&p, RDMA_FLUSH_GLOBAL, level);
        link_post(p.a, p.aq, &wr);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        wc = link_expect(p.a, 1, RDMA_WC_SUCCESS);
        g_assert_cmpint(wc.opcode, ==, RDMA_WC_FLUSH);
        /* The packet has FETH and RETH, and nothing but the ICRC after them. */
        g_assert_cmpuint(log.len, ==, BTH_OFF + 12 + 4 + 16 + 4);
        g_assert_cmpmem(log.frame + BTH_OFF + 12, 4,
                        level == RDMA_FLUSH_MR ? feth_mr : feth_range, 4);
        g_assert_cmpuint(log.opcodes->len, ==, 2);
        g_assert_cmphex(log.opcodes->data[0], ==, FLUSH);
        g_assert_cmphex(log.opcodes->data[1], ==, READ_RESP_ONLY);
        log_end(&p, &log);
    }
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    link_pair_free(&p);
}

static void test_flush_any_length(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    const uint32_t lens[] = { 0, 1, 1024, 1025, LINK_PAIR_MEM };
    unsigned i;

    /* Each FLUSH has one PSN, whatever its length is. */
    for (i = 0; i < G_N_ELEMENTS(lens); i++) {
        RdmaSendWr wr = flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_RANGE);

        wr.wr.flush.remote_addr = p.bmr->attr.iova;
        wr.wr.flush.length = lens[i];
        link_post(p.a, p.aq, &wr);
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, 3000);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
        link_expect(p.a, 2, RDMA_WC_SUCCESS);
    }
    g_assert_cmpuint(roce_stats(p.a->e)->retransmits, ==, 0);
    link_pair_free(&p);
}

/* A FLUSH of a whole region ignores the address. */
static void test_flush_region_ignores_range(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaSendWr wr = flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_MR);

    wr.wr.flush.remote_addr = 0;
    wr.wr.flush.length = 0x70000000;
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/* When a FLUSH completes, memory has the data of the WRITEs before it. */
static void test_flush_after_writes(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaSendWr wr = flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_MR);
    RdmaSge sge = link_sge(p.amr, 0, LINK_PAIR_MEM);
    RdmaSendWr write = link_wr(RDMA_WR_RDMA_WRITE, 0, &sge);

    link_fill(p.amr, 5);
    link_set(p.bmr, 0);
    write.send_flags = 0;
    write.wr.rdma.remote_addr = p.bmr->attr.iova;
    write.wr.rdma.rkey = p.bmr->attr.rkey;
    link_post(p.a, p.aq, &write);
    link_post(p.a, p.aq, &wr);
    while (!link_wcs(p.a)) {
        link_run(p.l, LINK_DELAY);
    }
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, LINK_PAIR_MEM));
    link_pair_free(&p);
}

static void test_atomic_write(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    RdmaSendWr wr;
    RdmaSge sge;
    RdmaWc wc;
    Log log;

    /* An inline ATOMIC WRITE needs no max_inline_data. */
    spec.cap.max_inline_data = 0;
    p = link_pair(&spec);
    log_start(&p, &log);
    wr = atomic_write_wr(&p, (const uint8_t *)"in place");
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    wc = link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpint(wc.opcode, ==, RDMA_WC_ATOMIC_WRITE);
    check_value(&p, "in place");
    g_assert_cmpuint(p.b->atomics, ==, 1);
    g_assert_cmpuint(log.len, ==, BTH_OFF + 12 + 16 + 8 + 4);
    g_assert_cmpmem(log.frame + BTH_OFF + 28, 8, "in place", 8);
    g_assert_cmpuint(log.opcodes->len, ==, 2);
    g_assert_cmphex(log.opcodes->data[0], ==, ATOMIC_WRITE);
    g_assert_cmphex(log.opcodes->data[1], ==, READ_RESP_ONLY);

    link_write(p.amr, 3, "gathered", 8);
    sge = link_sge(p.amr, 3, 8);
    wr.send_flags &= ~RDMA_SEND_INLINE;
    wr.num_sge = 1;
    wr.sg_list = &sge;
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    check_value(&p, "gathered");
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    log_end(&p, &log);
    link_pair_free(&p);
}

/* The response is lost, so the same request is sent again, and no other. */
static void test_lost_response(gconstpointer data)
{
    bool flush = GPOINTER_TO_UINT(data) == RDMA_WR_FLUSH;
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaSendWr wr = flush ?
        flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_RANGE) :
        atomic_write_wr(&p, (const uint8_t *)"only one");
    Log log;

    log_start(&p, &log);
    log.lose_responses = 3;
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(p.b->atomics, ==, flush ? 0 : 1);
    g_assert_cmpuint(roce_stats(p.b->e)->rx_duplicates, ==, 3);
    g_assert_cmpuint(log.responses, ==, 4);
    log_end(&p, &log);
    link_pair_free(&p);
}

/*
 * A duplicate is not executed again. If it does not match the request with that
 * PSN, it gets no response.
 */
static void test_duplicate(gconstpointer data)
{
    bool flush = GPOINTER_TO_UINT(data) == RDMA_WR_FLUSH;
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaSendWr wr = flush ?
        flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_RANGE) :
        atomic_write_wr(&p, (const uint8_t *)"was here");
    RdmaSendWr other = flush ?
        atomic_write_wr(&p, (const uint8_t *)"another ") :
        flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_RANGE);
    uint8_t frame[256];
    size_t len;
    Log log;

    log_start(&p, &log);
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    len = log.len;
    memcpy(frame, log.frame, len);
    link_write(p.bmr, VALUE_OFF, "overlaid", 8);

    link_inject(p.l, 1, frame, len);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(log.responses, ==, 2);
    check_value(&p, "overlaid");

    /* The next PSN has the other operation, which gets its own response. */
    link_post(p.a, p.aq, &other);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(log.responses, ==, 3);
    link_inject(p.l, 1, frame, len);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(log.responses, ==, 4);
    g_assert_cmpuint(p.b->atomics, ==, 1);
    log_end(&p, &log);
    link_pair_free(&p);
}

/* No more requests are outstanding than the peer has resources. */
static void test_depth(gconstpointer data)
{
    bool flush = GPOINTER_TO_UINT(data) == RDMA_WR_FLUSH;
    LinkQpSpec spec = link_spec();
    RdmaSendWr wr;
    unsigned i;
    LinkPair p;
    Log log;

    spec.rd_atomic[0] = 2;
    spec.dest_rd_atomic[1] = 2;
    p = link_pair(&spec);
    wr = flush ? flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_RANGE)
               : atomic_write_wr(&p, (const uint8_t *)"many of ");
    log_start(&p, &log);
    for (i = 0; i < 7; i++) {
        link_post(p.a, p.aq, &wr);
    }
    link_pump(p.l);
    g_assert_cmpuint(log.opcodes->len, ==, 2);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    for (i = 0; i < 7; i++) {
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
    }
    log_end(&p, &log);
    link_pair_free(&p);
}

/* A peer that does not limit its FLUSHes must send some again. */
static void test_flush_without_limit(void)
{
    LinkQpSpec spec = link_spec();
    RdmaSendWr wr;
    unsigned i;
    LinkPair p;

    spec.rd_atomic[0] = 8;
    spec.dest_rd_atomic[1] = 2;
    p = link_pair(&spec);
    roce_set_tx_blocked(p.b->e, true);
    for (i = 0; i < 8; i++) {
        wr = flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_RANGE);
        wr.wr_id = i;
        link_post(p.a, p.aq, &wr);
    }
    link_run(p.l, 3 * LINK_DELAY);
    roce_set_tx_blocked(p.b->e, false);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    for (i = 0; i < 8; i++) {
        link_expect(p.a, i, RDMA_WC_SUCCESS);
    }
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_RTS);
    link_pair_free(&p);
}

/* A WQE with a fence is sent only after the responses have arrived. */
static void test_fence(gconstpointer data)
{
    bool flush = GPOINTER_TO_UINT(data) == RDMA_WR_FLUSH;
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaSendWr wr = flush ?
        flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_RANGE) :
        atomic_write_wr(&p, (const uint8_t *)"fenced..");
    RdmaSendWr fenced = atomic_write_wr(&p, (const uint8_t *)"and then");
    Log log;

    log_start(&p, &log);
    fenced.send_flags |= RDMA_SEND_FENCE;
    fenced.wr_id = 2;
    link_post(p.a, p.aq, &wr);
    link_post(p.a, p.aq, &fenced);
    link_pump(p.l);
    g_assert_cmpuint(log.opcodes->len, ==, 1);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmphex(log.opcodes->data[1], ==, READ_RESP_ONLY);
    g_assert_cmphex(log.opcodes->data[2], ==, ATOMIC_WRITE);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    log_end(&p, &log);
    link_pair_free(&p);
}

/* Requests that fail */

typedef enum Bad {
    FLUSH_QP_ACCESS,
    FLUSH_NO_RESOURCES,
    FLUSH_PERSISTENT,
    FLUSH_BOTH_TYPES,
    FLUSH_PEER_HAS_NONE,
    FLUSH_MR_ACCESS,
    FLUSH_WHOLE_MR_ACCESS,
    FLUSH_KEY,
    FLUSH_WHOLE_KEY,
    FLUSH_WHOLE_PD,
    FLUSH_RANGE_AFTER,
    FLUSH_RANGE_BEFORE,
    FLUSH_WINDOW,
    FLUSH_NO_TYPE,
    FLUSH_UNKNOWN_TYPE,
    FLUSH_UNKNOWN_LEVEL,
    FLUSH_DISABLED,
    FLUSH_INLINE,
    AW_QP_ACCESS,
    AW_NO_RESOURCES,
    AW_PEER_HAS_NONE,
    AW_MISALIGNED,
    AW_MR_ACCESS,
    AW_KEY,
    AW_RANGE,
    AW_NO_MEMORY,
    AW_INLINE_SHORT,
    AW_INLINE_LONG,
    AW_SGE_SHORT,
    AW_SGE_KEY,
    AW_DISABLED,
    NUM_BAD,
} Bad;

static const struct {
    const char *name;
    RdmaWcStatus status;
} bad[NUM_BAD] = {
    [FLUSH_QP_ACCESS] = { "flush/qp-access", RDMA_WC_REM_INV_REQ_ERR },
    [FLUSH_NO_RESOURCES] = { "flush/no-resources", RDMA_WC_REM_INV_REQ_ERR },
    [FLUSH_PERSISTENT] = { "flush/persistent", RDMA_WC_REM_ACCESS_ERR },
    [FLUSH_BOTH_TYPES] = { "flush/global-and-persistent",
                           RDMA_WC_REM_ACCESS_ERR },
    [FLUSH_PEER_HAS_NONE] = { "flush/peer-has-none", RDMA_WC_REM_INV_REQ_ERR },
    [FLUSH_MR_ACCESS] = { "flush/mr-access", RDMA_WC_REM_ACCESS_ERR },
    [FLUSH_WHOLE_MR_ACCESS] = { "flush/whole-mr-access",
                                RDMA_WC_REM_ACCESS_ERR },
    [FLUSH_KEY] = { "flush/key", RDMA_WC_REM_ACCESS_ERR },
    [FLUSH_WHOLE_KEY] = { "flush/whole-mr-key", RDMA_WC_REM_ACCESS_ERR },
    [FLUSH_WHOLE_PD] = { "flush/whole-mr-pd", RDMA_WC_REM_ACCESS_ERR },
    [FLUSH_RANGE_AFTER] = { "flush/range-after", RDMA_WC_REM_ACCESS_ERR },
    [FLUSH_RANGE_BEFORE] = { "flush/range-before", RDMA_WC_REM_ACCESS_ERR },
    [FLUSH_WINDOW] = { "flush/window", RDMA_WC_REM_ACCESS_ERR },
    [FLUSH_NO_TYPE] = { "flush/no-type", RDMA_WC_LOC_QP_OP_ERR },
    [FLUSH_UNKNOWN_TYPE] = { "flush/unknown-type", RDMA_WC_LOC_QP_OP_ERR },
    [FLUSH_UNKNOWN_LEVEL] = { "flush/unknown-level", RDMA_WC_LOC_QP_OP_ERR },
    [FLUSH_DISABLED] = { "flush/disabled", RDMA_WC_LOC_QP_OP_ERR },
    [FLUSH_INLINE] = { "flush/inline", RDMA_WC_LOC_QP_OP_ERR },
    [AW_QP_ACCESS] = { "atomic-write/qp-access", RDMA_WC_REM_INV_REQ_ERR },
    [AW_NO_RESOURCES] = { "atomic-write/no-resources",
                          RDMA_WC_REM_INV_REQ_ERR },
    [AW_PEER_HAS_NONE] = { "atomic-write/peer-has-none",
                           RDMA_WC_REM_INV_REQ_ERR },
    [AW_MISALIGNED] = { "atomic-write/misaligned", RDMA_WC_REM_INV_REQ_ERR },
    [AW_MR_ACCESS] = { "atomic-write/mr-access", RDMA_WC_REM_ACCESS_ERR },
    [AW_KEY] = { "atomic-write/key", RDMA_WC_REM_ACCESS_ERR },
    [AW_RANGE] = { "atomic-write/range", RDMA_WC_REM_ACCESS_ERR },
    [AW_NO_MEMORY] = { "atomic-write/no-memory", RDMA_WC_REM_OP_ERR },
    [AW_INLINE_SHORT] = { "atomic-write/inline-short", RDMA_WC_LOC_LEN_ERR },
    [AW_INLINE_LONG] = { "atomic-write/inline-long", RDMA_WC_LOC_LEN_ERR },
    [AW_SGE_SHORT] = { "atomic-write/sge-short", RDMA_WC_LOC_LEN_ERR },
    [AW_SGE_KEY] = { "atomic-write/sge-key", RDMA_WC_LOC_PROT_ERR },
    [AW_DISABLED] = { "atomic-write/disabled", RDMA_WC_LOC_QP_OP_ERR },
};

/* The event that the peer raises when it refuses; -1: none */
static int peer_event(RdmaWcStatus status)
{
    switch (status) {
    case RDMA_WC_REM_INV_REQ_ERR:
        return RDMA_EVENT_QP_REQ_ERR;
    case RDMA_WC_REM_ACCESS_ERR:
        return RDMA_EVENT_QP_ACCESS_ERR;
    case RDMA_WC_REM_OP_ERR:
        return RDMA_EVENT_QP_FATAL;
    default:
        return -1;
    }
}

/* The pair of QPs for a bad request, with the access that it needs */
static LinkPair bad_pair(Bad how)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;

    switch (how) {
    case FLUSH_QP_ACCESS:
        spec.access &= ~RDMA_ACCESS_FLUSH_GLOBAL;
        break;
    case AW_QP_ACCESS:
        spec.access &= ~RDMA_ACCESS_REMOTE_WRITE;
        break;
    case FLUSH_NO_RESOURCES:
    case AW_NO_RESOURCES:
        spec.dest_rd_atomic[1] = 0;
        break;
    case FLUSH_PERSISTENT:
    case FLUSH_BOTH_TYPES:
        spec.access |= RDMA_ACCESS_FLUSH_PERSISTENT;
        break;
    default:
        break;
    }
    p = link_pair(&spec);
    switch (how) {
    case FLUSH_PEER_HAS_NONE:
        link_set_extensions(p.b, RDMA_EXT_ATOMIC_WRITE);
        break;
    case AW_PEER_HAS_NONE:
        link_set_extensions(p.b, RDMA_EXT_FLUSH);
        break;
    case FLUSH_DISABLED:
        link_set_extensions(p.a, RDMA_EXT_ATOMIC_WRITE);
        break;
    case AW_DISABLED:
        link_set_extensions(p.a, RDMA_EXT_FLUSH);
        break;
    default:
        break;
    }
    return p;
}

/* Bind a window of type 1 to all of @mr; returns its key. */
static uint32_t bind_window(LinkPair *p, LinkMr *mr)
{
    RdmaMwAttr attr = {
        .mwn = p->b->next_mrn++, .pdn = LINK_PDN, .type = RDMA_MW_TYPE_1,
    };
    RdmaSendWr wr = link_wr(RDMA_WR_BIND_MW, 50, NULL);

    attr.rkey = attr.mwn << 8;
    g_assert_cmpint(roce_mw_create(p->b->e, &attr), ==, 0);
    wr.wr.bind.rkey = attr.rkey;
    wr.wr.bind.new_rkey = attr.rkey | 1;
    wr.wr.bind.lkey = mr->attr.lkey;
    wr.wr.bind.access = RDMA_ACCESS_REMOTE | RDMA_ACCESS_ZERO_BASED;
    wr.wr.bind.addr = mr->attr.iova;
    wr.wr.bind.length = 8192;
    link_post(p->b, p->bq, &wr);
    g_assert_true(link_run(p->l, LINK_FOREVER));
    link_expect(p->b, 50, RDMA_WC_SUCCESS);
    return attr.rkey | 1;
}

/* Make @wr wrong. Returns a region that it created for that, or NULL. */
static LinkMr *spoil_flush(LinkPair *p, Bad how, RdmaSendWr *wr)
{
    LinkMr *other = NULL;

    switch (how) {
    case FLUSH_PERSISTENT:
        wr->wr.flush.type = RDMA_FLUSH_PERSISTENT;
        break;
    case FLUSH_BOTH_TYPES:
        wr->wr.flush.type = RDMA_FLUSH_GLOBAL | RDMA_FLUSH_PERSISTENT;
        break;
    case FLUSH_WHOLE_MR_ACCESS:
        wr->wr.flush.level = RDMA_FLUSH_MR;
        /* fall through */
    case FLUSH_MR_ACCESS:
        other = link_mr(p->b, 8192, RDMA_ACCESS_LOCAL_WRITE |
                                    RDMA_ACCESS_REMOTE);
        wr->wr.flush.rkey = other->attr.rkey;
        wr->wr.flush.remote_addr = other->attr.iova;
        break;
    case FLUSH_WHOLE_KEY:
        wr->wr.flush.level = RDMA_FLUSH_MR;
        /* fall through */
    case FLUSH_KEY:
        wr->wr.flush.rkey ^= 1;
        break;
    case FLUSH_WHOLE_PD:
        other = link_mr_pd(p->b, 8192, LINK_ALL_ACCESS, LINK_PDN + 1);
        wr->wr.flush.rkey = other->attr.rkey;
        wr->wr.flush.level = RDMA_FLUSH_MR;
        break;
    case FLUSH_RANGE_AFTER:
        wr->wr.flush.length = LINK_PAIR_MEM - 15;
        break;
    case FLUSH_RANGE_BEFORE:
        wr->wr.flush.remote_addr = p->bmr->attr.iova - 1;
        break;
    case FLUSH_WINDOW:
        other = link_mr(p->b, 8192, LINK_ALL_ACCESS | RDMA_ACCESS_MW_BIND);
        wr->wr.flush.rkey = bind_window(p, other);
        wr->wr.flush.remote_addr = 0;
        break;
    case FLUSH_NO_TYPE:
        wr->wr.flush.type = 0;
        break;
    case FLUSH_UNKNOWN_TYPE:
        wr->wr.flush.type = 0x10 | RDMA_FLUSH_GLOBAL;
        break;
    case FLUSH_UNKNOWN_LEVEL:
        wr->wr.flush.level = 2;
        break;
    case FLUSH_INLINE:
        wr->send_flags |= RDMA_SEND_INLINE;
        break;
    default:
        break;
    }
    return other;
}

static LinkMr *spoil_atomic_write(LinkPair *p, Bad how, RdmaSendWr *wr,
                                  RdmaSge *sge)
{
    LinkMr *other = NULL;

    switch (how) {
    case AW_MISALIGNED:
        wr->wr.rdma.remote_addr += 4;
        break;
    case AW_MR_ACCESS:
        other = link_mr(p->b, 8192,
                        LINK_ALL_ACCESS & ~RDMA_ACCESS_REMOTE_WRITE);
        wr->wr.rdma.rkey = other->attr.rkey;
        wr->wr.rdma.remote_addr = other->attr.iova;
        break;
    case AW_KEY:
        wr->wr.rdma.rkey ^= 1;
        break;
    case AW_RANGE:
        wr->wr.rdma.remote_addr = p->bmr->attr.iova + LINK_PAIR_MEM;
        break;
    case AW_NO_MEMORY:
        p->b->hole = link_dma(p->bmr, VALUE_OFF) & ~UINT64_C(0xfff);
        break;
    case AW_INLINE_SHORT:
        wr->inline_len = 7;
        break;
    case AW_INLINE_LONG:
        wr->inline_len = 16;
        break;
    case AW_SGE_SHORT:
    case AW_SGE_KEY:
        *sge = link_sge(p->amr, 0, how == AW_SGE_SHORT ? 4 : 8);
        sge->lkey ^= how == AW_SGE_KEY;
        wr->send_flags &= ~RDMA_SEND_INLINE;
        wr->num_sge = 1;
        wr->sg_list = sge;
        break;
    default:
        break;
    }
    return other;
}

static void test_bad(gconstpointer data)
{
    Bad how = GPOINTER_TO_UINT(data);
    int event = peer_event(bad[how].status);
    LinkPair p = bad_pair(how);
    LinkMr *other;
    RdmaSge sge;
    RdmaSendWr wr;

    if (how < AW_QP_ACCESS) {
        wr = flush_wr(&p, RDMA_FLUSH_GLOBAL, RDMA_FLUSH_RANGE);
        other = spoil_flush(&p, how, &wr);
    } else {
        wr = atomic_write_wr(&p, (const uint8_t *)"bad bad bad bad!");
        other = spoil_atomic_write(&p, how, &wr, &sge);
    }
    link_set(p.bmr, 0x11);
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, bad[how].status);
    g_assert_cmpint(link_state(p.a, p.aq), ==, RDMA_QPS_ERR);
    g_assert_cmpuint(p.b->atomics, ==, 0);
    check_value(&p, "\x11\x11\x11\x11\x11\x11\x11\x11");
    if (event >= 0) {
        g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
        g_assert_cmpuint(link_events(p.b, event), ==, 1);
    } else {
        g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_RTS);
        g_assert_cmpuint(p.b->events->len, ==, 0);
    }
    g_clear_pointer(&other, link_mr_free);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *path;
        void (*test)(gconstpointer data);
    } both[] = {
        { "lost-response", test_lost_response },
        { "duplicate", test_duplicate },
        { "depth", test_depth },
        { "fence", test_fence },
    };
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/placement/flush", test_flush);
    g_test_add_func("/roce/placement/flush/any-length",
                    test_flush_any_length);
    g_test_add_func("/roce/placement/flush/region-ignores-range",
                    test_flush_region_ignores_range);
    g_test_add_func("/roce/placement/flush/after-writes",
                    test_flush_after_writes);
    g_test_add_func("/roce/placement/flush/without-limit",
                    test_flush_without_limit);
    g_test_add_func("/roce/placement/atomic-write", test_atomic_write);
    for (i = 0; i < G_N_ELEMENTS(both); i++) {
        g_autofree char *flush = g_strdup_printf("/roce/placement/flush/%s",
                                                 both[i].path);
        g_autofree char *aw =
            g_strdup_printf("/roce/placement/atomic-write/%s", both[i].path);

        g_test_add_data_func(flush, GUINT_TO_POINTER(RDMA_WR_FLUSH),
                             both[i].test);
        g_test_add_data_func(aw, GUINT_TO_POINTER(RDMA_WR_ATOMIC_WRITE),
                             both[i].test);
    }
    for (i = 0; i < NUM_BAD; i++) {
        g_autofree char *path = g_strdup_printf("/roce/placement/bad/%s",
                                                bad[i].name);

        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_bad);
    }
    return g_test_run();
}
