/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma_verify: two processes exchange messages of every kind over verbs and
 * check every byte of every buffer, and that every completion arrives exactly
 * once and in order.
 *
 * Both ends are requester and responder at the same time. A run is made of
 * rounds; in a round each message has buffers of its own, so that at its end
 * the whole of memory is compared with what the plan says it must hold,
 * guards between the buffers included. The ends meet over TCP before and
 * after each round.
 *
 *   server: rdma_verify -d DEVICE -g GID_INDEX [-p PORT]
 *   client: the same, options that describe the run, and the server's address
 *
 * SIGTERM to the client ends the run in good order, after the round.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "verify.h"

#define CQ_BATCH    32
/* Marks the request that checks whether the peer is alive. */
#define PROBE       UINT64_MAX
#define IDLE_LIMIT  3.0

struct params par = {
    .seed = 1, .type = IBV_QPT_RC, .mtu = 1024, .size = 4096, .count = 64,
    .rounds = 2, .qps = 1, .sq_depth = 32, .rq_depth = 64, .pieces = 1,
    .ack_timeout = 14, .retries = 7, .timeout = 60,
};
int me, peer_fd = -1;
uint32_t now_round;
struct ibv_context *context;
struct ibv_comp_channel *channel;
struct ibv_cq *send_cq, *recv_cq;
struct ibv_mr *send_mr, *land_mr, *expose_mr;
struct address mine, theirs;
struct pair pairs[MAX_QPS];
size_t tx_stride, rx_stride;

static double deadline, longest_pause;
static uint64_t total_sent, total_received;
static volatile sig_atomic_t enough;    /* the client was told to end */
static bool ended;

static void end_soon(int number)
{
    (void)number;
    enough = 1;
}

void __attribute__((noreturn, format(printf, 1, 2)))
fail(const char *fmt, ...)
{
    va_list args;

    printf("FAIL (%s, round %u): ", me ? "client" : "server", now_round);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    exit(1);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void check_deadline(void)
{
    uint32_t q;

    if (seconds() < deadline) {
        return;
    }
    for (q = 0; q < par.qps; q++) {
        printf("qp %u: %u of %u requests done, %u of %u messages received, "
               "%u receives posted%s%s\n", q, pairs[q].retired,
               pairs[q].posted, pairs[q].received, pairs[q].recv_due,
               pairs[q].recv_posted, pairs[q].probing ? ", probing" : "",
               pairs[q].broken ? ", broken" : "");
    }
    fail("no end after %u seconds", par.timeout);
}

struct plan plan(int who, uint32_t q, uint32_t i)
{
    return plan_of(&par, who, now_round, q, i);
}

size_t grh(void)
{
    return par.type == IBV_QPT_UD ? GRH_BYTES : 0;
}

static bool post_one_recv(uint32_t q)
{
    struct pair *pr = &pairs[q];
    struct ibv_sge sge = {
        .addr = (uintptr_t)(pr->buf.rx + pr->recv_posted * rx_stride),
        .length = par.size + grh(),
        .lkey = land_mr->lkey,
    };
    struct ibv_recv_wr wr = {
        .wr_id = pr->recv_posted, .sg_list = &sge, .num_sge = 1,
    }, *bad;
    int ret;

    if (pr->recv_posted == pr->recv_due ||
        pr->recv_posted - pr->received >= par.rq_depth || pr->broken) {
        return false;
    }
    ret = ibv_post_recv(pr->qp, &wr, &bad);
    if (ret) {
        fail("qp %u: ibv_post_recv: %s", q, strerror(ret));
    }
    pr->recv_posted++;
    return true;
}

static bool post_recvs(uint32_t q)
{
    bool any = false;

    while (post_one_recv(q)) {
        any = true;
    }
    return any;
}

/*
 * Cut a buffer into pieces whose lengths depend on the message. None is
 * empty: an empty message has no pieces.
 */
static int cut(struct ibv_sge *sge, void *at, uint32_t len, uint32_t lkey,
               uint64_t key)
{
    unsigned char *from = at;
    uint32_t pieces = 1 + key % par.pieces, n, i;
    int used = 0;

    for (i = 0; i < pieces; i++) {
        n = i == pieces - 1 ? len : mix(key + i) % (len + 1ull);
        if (n) {
            sge[used++] = (struct ibv_sge) { (uintptr_t)from, n, lkey };
        }
        from += n;
        len -= n;
    }
    return used;
}

static bool post_send(uint32_t q)
{
    static const enum ibv_wr_opcode opcodes[OP_COUNT] = {
        [OP_SEND] = IBV_WR_SEND,
        [OP_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
        [OP_WRITE] = IBV_WR_RDMA_WRITE,
        [OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
        [OP_READ] = IBV_WR_RDMA_READ,
        [OP_FADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
        [OP_CAS] = IBV_WR_ATOMIC_CMP_AND_SWP,
    };
    struct pair *pr = &pairs[q];
    struct buffers *b = &pr->buf;
    struct ibv_sge sge[MAX_PIECES];
    struct ibv_send_wr wr = { 0 }, *bad;
    struct plan p;
    uint32_t i = pr->posted;
    int ret;

    if (i == par.count || i - pr->retired >= par.sq_depth || pr->broken) {
        return false;
    }
    p = plan(me, q, i);
    wr.wr_id = i;
    wr.opcode = opcodes[p.op];
    wr.send_flags = p.signalled ? IBV_SEND_SIGNALED : 0;
    wr.sg_list = sge;
    wr.imm_data = htonl(p.imm);
    switch (p.op) {
    case OP_READ:
        wr.num_sge = cut(sge, b->back + i * tx_stride, p.len, land_mr->lkey,
                         p.key);
        wr.wr.rdma.remote_addr = peer_address(b->source + i * tx_stride);
        wr.wr.rdma.rkey = theirs.rkey;
        break;
    case OP_FADD:
    case OP_CAS:
        wr.num_sge = 1;
        sge[0] = (struct ibv_sge) { (uintptr_t)&b->results[i],
                                    sizeof(uint64_t), land_mr->lkey };
        wr.wr.atomic.rkey = theirs.rkey;
        wr.wr.atomic.remote_addr = peer_address(
            p.op == OP_FADD ? &b->words->counter : &b->words->swapped);
        wr.wr.atomic.compare_add = p.operand;
        if (p.op == OP_CAS) {
            wr.wr.atomic.compare_add = pr->far.swapped + p.cas_fails;
            wr.wr.atomic.swap = p.operand;
        }
        words_step(&pr->far, &p);
        break;
    default:
        wr.num_sge = cut(sge, b->tx + i * tx_stride, p.len, send_mr->lkey,
                         p.key);
        if (p.len <= par.inlined) {
            wr.send_flags |= IBV_SEND_INLINE;
        }
        wr.wr.rdma.remote_addr = peer_address(b->target + i * tx_stride);
        wr.wr.rdma.rkey = theirs.rkey;
    }
    if (par.type == IBV_QPT_UD) {
        wr.wr.ud.ah = pr->ah;
        wr.wr.ud.remote_qpn = theirs.qpn[q];
        wr.wr.ud.remote_qkey = QKEY;
    }
    ret = ibv_post_send(pr->qp, &wr, &bad);
    if (ret) {
        fail("qp %u: ibv_post_send of %s: %s", q, op_name(p.op),
             strerror(ret));
    }
    pr->posted++;
    return true;
}

static uint32_t index_of(uint32_t qp_num)
{
    uint32_t q = 0;

    while (q < par.qps && pairs[q].qp->qp_num != qp_num) {
        q++;
    }
    if (q == par.qps) {
        fail("completion for unknown queue pair 0x%x", qp_num);
    }
    return q;
}

/*
 * The cause of the error state may be in the other queue, before the
 * completions that were flushed there.
 */
static void fail_for(struct ibv_wc wc, uint32_t q, bool is_send)
{
    struct ibv_wc other;

    while (wc.status == IBV_WC_WR_FLUSH_ERR &&
           ibv_poll_cq(is_send ? recv_cq : send_cq, 1, &other) > 0) {
        if (other.qp_num == wc.qp_num && other.status != IBV_WC_SUCCESS &&
            other.status != IBV_WC_WR_FLUSH_ERR) {
            wc = other;
            is_send = !is_send;
        }
    }
    fail("qp %u: %s request %llu: %s (vendor error 0x%x)", q,
         is_send ? "send" : "receive", (unsigned long long)wc.wr_id,
         ibv_wc_status_str(wc.status), wc.vendor_err);
}

/* Whether the completion reports the expected break. */
static bool broken(const struct ibv_wc *wc, uint32_t q, bool is_send)
{
    struct pair *pr = &pairs[q];

    if (wc->status == IBV_WC_SUCCESS) {
        if (pr->broken) {
            fail("qp %u: success after the break", q);
        }
        return false;
    }
    if (!expect_break()) {
        fail_for(*wc, q, is_send);
    }
    if (wc->status != IBV_WC_WR_FLUSH_ERR) {
        if (!is_send || pr->why) {
            fail("qp %u: %s as well", q, ibv_wc_status_str(wc->status));
        }
        pr->why = wc->status;
    } else if (is_send) {
        pr->send_flushed++;
    } else {
        pr->recv_flushed++;
    }
    pr->broken = true;
    return true;
}

static void sent(const struct ibv_wc *wc)
{
    static const enum ibv_wc_opcode opcodes[OP_COUNT] = {
        [OP_SEND] = IBV_WC_SEND,
        [OP_SEND_IMM] = IBV_WC_SEND,
        [OP_WRITE] = IBV_WC_RDMA_WRITE,
        [OP_WRITE_IMM] = IBV_WC_RDMA_WRITE,
        [OP_READ] = IBV_WC_RDMA_READ,
        [OP_FADD] = IBV_WC_FETCH_ADD,
        [OP_CAS] = IBV_WC_COMP_SWAP,
    };
    uint32_t q = index_of(wc->qp_num);
    struct pair *pr = &pairs[q];
    uint32_t i = pr->retired;

    if (wc->wr_id == PROBE && pr->probing) {
        pr->probing = false;
        broken(wc, q, true);
        return;
    }
    while (i < pr->posted && !plan(me, q, i).signalled) {
        i++;
    }
    if (i >= pr->posted || wc->wr_id != i) {
        fail("qp %u: send completion of request %llu, expected %u of %u", q,
             (unsigned long long)wc->wr_id, i, pr->posted);
    }
    pr->retired = i + 1;
    if (broken(wc, q, true)) {
        return;
    }
    if (wc->opcode != opcodes[plan(me, q, i).op]) {
        fail("qp %u: completion of %s has opcode %d", q,
             op_name(plan(me, q, i).op), wc->opcode);
    }
    total_sent++;
}

static void received(const struct ibv_wc *wc)
{
    uint32_t q = index_of(wc->qp_num), i, at;
    struct pair *pr = &pairs[q];
    bool imm;
    struct plan p;

    if (pr->received >= pr->recv_posted || wc->wr_id != pr->received) {
        fail("qp %u: receive completion of request %llu, expected %u of %u",
             q, (unsigned long long)wc->wr_id, pr->received,
             pr->recv_posted);
    }
    at = pr->received++;
    if (broken(wc, q, false)) {
        return;
    }
    i = pr->next;
    if (par.lossy) {
        /* A lossy link may lose, repeat and reorder whole messages. */
        i = ntohl(wc->imm_data) >> 8;
        if (i >= par.count || !plan(!me, q, i).takes_receive) {
            fail("qp %u: immediate data 0x%x was never sent", q,
                 ntohl(wc->imm_data));
        }
    }
    while (i < par.count && !plan(!me, q, i).takes_receive) {
        i++;
    }
    pr->next = i + 1;
    p = plan(!me, q, i);
    imm = p.op != OP_SEND;
    if (wc->opcode != (p.op == OP_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM :
                       IBV_WC_RECV)) {
        fail("qp %u: receive of %s has opcode %d", q, op_name(p.op),
             wc->opcode);
    }
    if (wc->byte_len != p.len + (p.op == OP_WRITE_IMM ? 0 : grh())) {
        fail("qp %u: receive of %s %u has %u bytes, must be %u", q,
             op_name(p.op), i, wc->byte_len, p.len);
    }
    if (imm != !!(wc->wc_flags & IBV_WC_WITH_IMM) ||
        (imm && ntohl(wc->imm_data) != p.imm)) {
        fail("qp %u: receive of %s %u has flags 0x%x, immediate 0x%x", q,
             op_name(p.op), i, wc->wc_flags, ntohl(wc->imm_data));
    }
    if (grh() && !(wc->wc_flags & IBV_WC_GRH)) {
        fail("qp %u: datagram without GRH", q);
    }
    if (grh() && wc->src_qp != theirs.qpn[q]) {
        fail("qp %u: datagram from queue pair 0x%x", q, wc->src_qp);
    }
    if (par.lossy) {
        unsigned char must[par.size + 1];
        const void *is = p.op == OP_WRITE_IMM ?
            pr->buf.target + i * tx_stride :
            pr->buf.rx + at * rx_stride + grh();

        fill(must, p.len, p.key);
        compare("message", is, must, p.len, tx_stride, q);
        pr->arrived[i] = true;
    }
    total_received++;
}

static int drain(struct ibv_cq *cq, void (*handle)(const struct ibv_wc *))
{
    struct ibv_wc wc[CQ_BATCH];
    int n = ibv_poll_cq(cq, CQ_BATCH, wc), i;

    if (n < 0) {
        fail("ibv_poll_cq: %s", strerror(-n));
    }
    for (i = 0; i < n; i++) {
        handle(&wc[i]);
    }
    return n;
}

static bool progress(void)
{
    return drain(send_cq, sent) + drain(recv_cq, received) > 0;
}

/* Sleep until a completion event, at most for some seconds. */
static void sleep_for_event(void)
{
    struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
    struct ibv_cq *cq;
    void *unused;
    int events;

    if (ibv_req_notify_cq(send_cq, 0) || ibv_req_notify_cq(recv_cq, 0)) {
        fail("ibv_req_notify_cq failed");
    }
    /* A completion from before the arming raises no event. */
    if (progress()) {
        return;
    }
    events = poll(&fd, 1, 5000);
    if (events == 0 && progress()) {
        /*
         * They may have come in the last moment, with the event still to come.
         */
        events = poll(&fd, 1, 5000);
        if (events == 0) {
            fail("completions without an event");
        }
    }
    if (events <= 0) {
        return;
    }
    if (ibv_get_cq_event(channel, &cq, &unused)) {
        fail("ibv_get_cq_event: %s", strerror(errno));
    }
    ibv_ack_cq_events(cq, 1);
}

/*
 * A write of no bytes, which the peer ignores: a queue pair with nothing
 * outstanding does not notice that the peer has died.
 */
static void probe(void)
{
    uint32_t q;

    for (q = 0; q < par.qps; q++) {
        struct ibv_send_wr wr = {
            .wr_id = PROBE, .opcode = IBV_WR_RDMA_WRITE,
            .send_flags = IBV_SEND_SIGNALED,
            .wr.rdma = { theirs.base, theirs.rkey },
        }, *bad;

        if (pairs[q].broken || pairs[q].probing ||
            pairs[q].posted > pairs[q].retired) {
            continue;
        }
        if (ibv_post_send(pairs[q].qp, &wr, &bad)) {
            fail("qp %u: cannot post a probe", q);
        }
        pairs[q].probing = true;
    }
}

static bool any_broken(void)
{
    uint32_t q = 0;

    while (q < par.qps && !pairs[q].broken) {
        q++;
    }
    return q < par.qps;
}

/*
 * Synchronize with the peer. Return false if it has gone, or has given up. The
 * client may end the run at the end of a round, by stage 'e' instead of 'c'.
 */
static bool meet(char stage)
{
    struct pollfd fd = { .fd = peer_fd, .events = POLLIN };
    double idle = seconds();
    char their_stage;

    if (!tell(&stage, 1)) {
        return false;
    }
    while (poll(&fd, 1, 200) <= 0) {
        check_deadline();
        if (expect_break()) {
            progress();
            if (any_broken()) {
                return false;
            }
            if (seconds() - idle > IDLE_LIMIT) {
                probe();
            }
        }
    }
    if (!hear(&their_stage, 1)) {
        return false;
    }
    if (their_stage == 'e' && stage == 'c') {
        ended = true;
    } else if (their_stage != stage && stage != 'e') {
        fail("peer is at stage %c, not %c", their_stage, stage);
    }
    return true;
}

/* --- a run --- */

static void start_round(void)
{
    struct pair *pr;
    uint32_t q, i;

    for (q = 0; q < par.qps; q++) {
        pr = &pairs[q];
        pr->posted = pr->retired = 0;
        pr->recv_posted = pr->received = pr->recv_due = pr->next = 0;
        pr->far = words_of(&par, me, now_round, q);
        for (i = 0; i < par.count; i++) {
            pr->recv_due += plan(!me, q, i).takes_receive;
        }
        if (par.lossy) {
            pr->arrived = calloc(par.count, sizeof(*pr->arrived));
            if (!pr->arrived) {
                fail("no memory for %u messages", par.count);
            }
        }
        prepare(q);
        post_recvs(q);
    }
}

static bool round_done(void)
{
    uint32_t q;

    for (q = 0; q < par.qps; q++) {
        if (pairs[q].retired < par.count ||
            (!par.lossy && pairs[q].received < pairs[q].recv_due)) {
            return false;
        }
    }
    return true;
}

/* Post and reap until the round is done; false when the peer broke. */
static bool traffic(void)
{
    double idle = seconds(), pause;
    uint32_t q;
    bool busy;

    while (!round_done()) {
        busy = false;
        for (q = 0; q < par.qps; q++) {
            while (post_send(q)) {
                busy = true;
            }
        }
        busy |= progress();
        for (q = 0; q < par.qps; q++) {
            busy |= post_recvs(q);
        }
        if (busy) {
            pause = seconds() - idle;
            longest_pause = pause > longest_pause ? pause : longest_pause;
            idle += pause;
            continue;
        }
        check_deadline();
        if (any_broken()) {
            return false;
        }
        if (expect_break() && seconds() - idle > IDLE_LIMIT) {
            probe();
        }
        if (par.events) {
            sleep_for_event();
        }
    }
    /* The last request may have failed. */
    return !any_broken();
}

/* Whether enough messages have arrived over a lossy link */
static bool enough_have_arrived(void)
{
    uint32_t q, i, n;

    for (q = 0; q < par.qps; q++) {
        for (i = n = 0; i < par.count; i++) {
            n += pairs[q].arrived[i];
        }
        if (100 * n < par.min_arrived * pairs[q].recv_due) {
            return false;
        }
    }
    return true;
}

/* Messages of a lossy link may arrive after the sender has finished. */
static void await_late_messages(void)
{
    double end = seconds() + 1;

    while (seconds() < end || !enough_have_arrived()) {
        check_deadline();
        progress();
    }
}

static bool run_round(void)
{
    uint64_t before;
    uint32_t q;

    start_round();
    if (!meet('a') || !traffic() || !meet('b')) {
        return false;
    }
    if (par.lossy) {
        await_late_messages();
    }
    for (q = 0; q < par.qps; q++) {
        verify(q);
    }
    /* A probe of an idle queue pair, or a datagram, may still be in flight. */
    before = total_sent + total_received;
    progress();
    if (total_sent + total_received != before && !par.lossy) {
        fail("completions of a round that was over");
    }
    ended = me && enough;
    return meet(ended ? 'e' : 'c');
}

/* All outstanding requests have to complete as flushed, each once. */
static void after_break(void)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct pair *pr;
    uint32_t q;

    for (q = 0; q < par.qps; q++) {
        pr = &pairs[q];
        while (!pr->broken || pr->probing || pr->retired < pr->posted ||
               pr->received < pr->recv_posted) {
            check_deadline();
            probe();
            progress();
        }
    }
    usleep(200000);
    if (progress()) {
        fail("completions after everything was flushed");
    }
    for (q = 0; q < par.qps; q++) {
        pr = &pairs[q];
        if (ibv_query_qp(pr->qp, &attr, IBV_QP_STATE, &init) ||
            attr.qp_state != IBV_QPS_ERR) {
            fail("qp %u is not in the error state", q);
        }
        printf("qp %u broke with %s, %u sends and %u receives flushed\n", q,
               ibv_wc_status_str(pr->why), pr->send_flushed,
               pr->recv_flushed);
        if (pr->why != IBV_WC_RETRY_EXC_ERR) {
            fail("qp %u: not for exhausted retries", q);
        }
    }
    printf("BROKEN as expected\n");
}

static void tear_down(void)
{
    uint32_t q;

    for (q = 0; q < par.qps; q++) {
        free(pairs[q].arrived);
        if (pairs[q].ah && ibv_destroy_ah(pairs[q].ah)) {
            fail("ibv_destroy_ah failed");
        }
        if (ibv_destroy_qp(pairs[q].qp)) {
            fail("ibv_destroy_qp failed");
        }
    }
    if (ibv_destroy_cq(send_cq) || ibv_destroy_cq(recv_cq)) {
        fail("ibv_destroy_cq failed");
    }
    release();
}

int main(int argc, char **argv)
{
    const char *device = NULL, *port = "18515", *server;
    struct sigaction on_term = {
        .sa_handler = end_soon, .sa_flags = SA_RESTART,
    };
    int gid = 0;
    bool all;

    setvbuf(stdout, NULL, _IOLBF, 0);
    server = parse_options(argc, argv, &device, &gid, &port);
    me = server != NULL;
    if (me) {
        sigaction(SIGTERM, &on_term, NULL);
    }
    connect_peer(server, port);
    if (me ? !tell(&par, sizeof(par)) : !hear(&par, sizeof(par))) {
        fail("cannot agree on the parameters");
    }
    deadline = seconds() + par.timeout;
    open_device(device);
    set_up(gid);
    do {
        all = run_round();
        if (all) {
            now_round++;
            printf("round %u done\n", now_round);
        }
    } while (all && now_round != par.rounds && !ended);
    if (!all && !expect_break()) {
        fail("lost the peer");
    }
    if (!all) {
        after_break();
    }
    tear_down();
    printf("%u rounds, longest pause %.0f ms\n", now_round,
           longest_pause * 1000);
    printf("OK: %llu requests completed, %llu messages received\n",
           (unsigned long long)total_sent,
           (unsigned long long)total_received);
    return 0;
}
