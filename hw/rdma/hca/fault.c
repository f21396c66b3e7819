/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults that the user adds, so that programs and drivers of the guest see
 * errors. This file decides which work request, completion or command a fault
 * strikes.
 *
 * A fault of a work request changes the request before the backend gets it. The
 * request then fails in order, with all consequences of a real error. While no
 * fault is active, the data path checks only RdmaHca.fault_points and a flag of
 * the QP.
 */
#include "qemu/osdep.h"
#include "migration/blocker.h"
#include "qapi/error.h"
#include "qemu/timer.h"
#include "trace.h"
#include "int.h"

#define MAX_NS (RDMA_HCA_FAULT_MAX_DURATION_MS * (int64_t)SCALE_MS)
/* A time that is always due, where 0 means none */
#define PAST_NS (-1)

/*
 * No region of this project's adapters has this key: the upper 24 bits are the
 * number of the region, which begins at 1.
 */
#define NO_KEY 0

/* A work request or a completion that a fault may strike */
typedef struct Work {
    RdmaHcaQp *qp;                  /* NULL: a receive of an SRQ */
    RdmaCompletionOpcode opcode;
    /* The peer, if the WR or the completion names it */
    const RdmaAv *av;
    bool has_dest_qpn;
    uint32_t dest_qpn;
} Work;

/* Kinds of faults */

#define OP(opcode) (1u << RDMA_COMPLETION_OPCODE_##opcode)
#define OPS_ALL UINT32_MAX
#define OPS_SEND (~(OP(RECV) | OP(RECV_RDMA_WITH_IMM)))
/* The request names memory of the peer by an rkey. */
#define OPS_RKEY (OP(RDMA_WRITE) | OP(RDMA_READ) | OP(COMP_SWAP) | \
                  OP(FETCH_ADD) | OP(ATOMIC_WRITE) | OP(FLUSH))
/* It names memory by an lkey. */
#define OPS_LKEY (OP(SEND) | (OPS_RKEY & ~OP(FLUSH)) | OP(RECV))

static const struct {
    uint8_t point;                  /* RDMA_HCA_FAULT_AT_*, or 0 */
    uint32_t opcodes;               /* that the fault can strike */
} kinds[RDMA_FAULT_KIND__MAX] = {
    [RDMA_FAULT_KIND_COMPLETION_ERROR] = {
        RDMA_HCA_FAULT_AT_SEND, ~OP(RECV_RDMA_WITH_IMM)
    },
    [RDMA_FAULT_KIND_LOCAL_ACCESS] = { RDMA_HCA_FAULT_AT_SEND, OPS_LKEY },
    [RDMA_FAULT_KIND_REMOTE_ACCESS] = { RDMA_HCA_FAULT_AT_SEND, OPS_RKEY },
    [RDMA_FAULT_KIND_QP_FATAL] = { RDMA_HCA_FAULT_AT_SEND, OPS_SEND },
    [RDMA_FAULT_KIND_QP_STUCK] = { RDMA_HCA_FAULT_AT_SEND, OPS_SEND },
    [RDMA_FAULT_KIND_CQ_OVERRUN] = { RDMA_HCA_FAULT_AT_COMPLETE, OPS_ALL },
    [RDMA_FAULT_KIND_COMPLETION_DELAY] = {
        RDMA_HCA_FAULT_AT_COMPLETE, OPS_ALL
    },
    [RDMA_FAULT_KIND_COMPLETION_REORDER] = {
        RDMA_HCA_FAULT_AT_COMPLETE, OPS_ALL
    },
    [RDMA_FAULT_KIND_COMMAND_ERROR] = { RDMA_HCA_FAULT_AT_COMMAND },
    [RDMA_FAULT_KIND_COMMAND_DELAY] = { RDMA_HCA_FAULT_AT_COMMAND },
};

bool rdma_hca_fault_can_strike(RdmaFaultKind kind, RdmaCompletionOpcode opcode)
{
    return kinds[kind].opcodes & (1u << opcode);
}

RdmaHcaFault *rdma_hca_fault_find(RdmaHca *hca, const char *id)
{
    RdmaHcaFault *f = hca->faults ? QTAILQ_FIRST(&hca->faults->list) : NULL;

    while (f && strcmp(f->spec->id, id)) {
        f = QTAILQ_NEXT(f, next);
    }
    return f;
}

/* Which faults are active, and where the data path has to check for them */

/* Not for a fault of the port */
static const RdmaFaultTrigger *trigger_of(const RdmaHcaFault *f)
{
    return qapi_RdmaFaultWork_base(rdma_hca_fault_work(f));
}

static bool may_strike(const RdmaHcaFault *f)
{
    const RdmaFaultTrigger *t = trigger_of(f);

    return !t->times || f->hits < t->times;
}

static bool any_qp_is_stuck(RdmaHca *hca, const RdmaHcaFault *f)
{
    const RdmaHcaQp *qp;

    RDMA_HCA_FOREACH(&hca->qps, n, qp) {
        if (qp->fault.stuck == f) {
            return true;
        }
    }
    return false;
}

bool rdma_hca_fault_is_active(RdmaHca *hca, const RdmaHcaFault *f)
{
    if (f->spec->kind == RDMA_FAULT_KIND_PORT_DOWN) {
        return hca->faults->port_until;
    }
    return may_strike(f) || any_qp_is_stuck(hca, f);
}

/* Where the fault can strike; 0: nowhere any more */
static uint8_t point_of(const RdmaHcaFault *f)
{
    uint8_t point = kinds[f->spec->kind].point;

    if (!point || !may_strike(f)) {
        return 0;
    }
    return point == RDMA_HCA_FAULT_AT_SEND &&
           rdma_hca_fault_work(f)->has_opcode &&
           rdma_hca_fault_work(f)->opcode == RDMA_COMPLETION_OPCODE_RECV
           ? RDMA_HCA_FAULT_AT_RECV : point;
}

static void update_points(RdmaHca *hca)
{
    const RdmaHcaFaults *fs = hca->faults;
    const RdmaHcaFault *f;
    uint8_t points = 0;

    QTAILQ_FOREACH(f, &fs->list, next) {
        points |= point_of(f);
    }
    if (fs->n_held) {
        points |= RDMA_HCA_FAULT_AT_COMPLETE;
    }
    if (fs->command_until) {
        points |= RDMA_HCA_FAULT_AT_COMMAND;
    }
    hca->fault_points = points;
}

/* Time */

static int64_t now_ns(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

/* loadvm may set the clock back, so a time too far ahead is due, too. */
bool rdma_hca_fault_is_due(int64_t until)
{
    int64_t t = now_ns();

    return until <= t || (until != INT64_MAX && until - t > MAX_NS);
}

static int64_t end_ns(const RdmaHcaFault *f)
{
    return f->ms ? now_ns() + f->ms * (int64_t)SCALE_MS : INT64_MAX;
}

/* Set *@next to @until if that is earlier. An @until of 0 has no effect. */
static void note_deadline(int64_t *next, int64_t until)
{
    if (until && until < *next) {
        *next = until;
    }
}

/* Note the deadlines of work that only an active device continues. */
static void note_work_deadlines(RdmaHca *hca, int64_t *next)
{
    const RdmaHcaHeld *held;
    const RdmaHcaQp *qp;

    if (!rdma_hca_fault_is_due(hca->faults->command_until)) {
        note_deadline(next, hca->faults->command_until);
    }
    QTAILQ_FOREACH(held, &hca->faults->held, next) {
        note_deadline(next, held->until);
    }
    RDMA_HCA_FOREACH(&hca->qps, n, qp) {
        if (qp->fault.stuck) {
            note_deadline(next, qp->fault.until);
        }
    }
}

static void update_timer(RdmaHca *hca)
{
    RdmaHcaFaults *fs = hca->faults;
    int64_t next = INT64_MAX;

    note_deadline(&next, fs->port_until);
    if (rdma_hca_is_active(hca)) {
        note_work_deadlines(hca, &next);
    }
    if (next == INT64_MAX) {
        timer_del(fs->timer);
    } else {
        timer_mod_ns(fs->timer, next);
    }
}

void rdma_hca_faults_update(RdmaHca *hca)
{
    RdmaHcaFaults *fs = hca->faults;

    if (fs) {
        update_points(hca);
        update_timer(hca);
        if (!fs->count && !fs->n_held && !fs->command_until) {
            migrate_del_blocker(&fs->blocker);
        }
    }
}

static void on_timer(void *opaque)
{
    rdma_hca_bh_schedule(opaque);
}

static void set_port(RdmaHca *hca, int64_t until)
{
    if (!hca->faults->port_until != !until) {
        hca->bc->set_port(hca->backend, !until);
    }
    hca->faults->port_until = until;
}

/* The fault of the QP is over: do not hold back its sends. */
static void release_qp(RdmaHcaQp *qp)
{
    qp->fault.held_back = false;
    qp->fault.fatal = false;
    qp->fault.stuck = NULL;
}

void rdma_hca_faults_expire(RdmaHca *hca)
{
    RdmaHcaFaults *fs = hca->faults;
    RdmaHcaQp *qp;

    if (fs->port_until && rdma_hca_fault_is_due(fs->port_until)) {
        set_port(hca, 0);
    }
    RDMA_HCA_FOREACH(&hca->qps, n, qp) {
        if (qp->fault.stuck && rdma_hca_fault_is_due(qp->fault.until)) {
            release_qp(qp);
            rdma_hca_qp_schedule(hca, qp);
        }
    }
    rdma_hca_faults_update(hca);
}

/* Add and remove faults */

static RdmaHcaFaults *get_faults(RdmaHca *hca)
{
    RdmaHcaFaults *fs = hca->faults;

    if (!fs) {
        fs = g_new0(RdmaHcaFaults, 1);
        QTAILQ_INIT(&fs->list);
        QTAILQ_INIT(&fs->held);
        fs->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, on_timer, hca);
        hca->faults = fs;
    }
    return fs;
}

static bool block_migration(RdmaHcaFaults *fs, const char *device, Error **errp)
{
    if (fs->blocker) {
        return true;
    }
    error_setg(&fs->blocker, "RDMA device '%s' cannot migrate: it has faults, "
               "or a fault still delays completions or a command. Use "
               "rdma-fault-remove, and let the VM run until they are done",
               device);
    return migrate_add_blocker(&fs->blocker, errp) == 0;
}

bool rdma_hca_fault_add(RdmaHca *hca, RdmaHcaFault *f, Error **errp)
{
    RdmaHcaFaults *fs = get_faults(hca);
    RdmaHcaQp *qp;

    if (!block_migration(fs, f->spec->device, errp)) {
        return false;
    }
    QTAILQ_INSERT_TAIL(&fs->list, f, next);
    fs->count++;
    RDMA_HCA_FOREACH(&hca->qps, n, qp) {
        /* Match the next send again: the new fault may strike it, too. */
        if (!qp->fault.held_back) {
            qp->fault.next_is_matched = false;
        }
    }
    trace_rdma_hca_fault_add(hca->owner, f->spec->id,
                             RdmaFaultKind_str(f->spec->kind));
    if (f->spec->kind == RDMA_FAULT_KIND_PORT_DOWN) {
        set_port(hca, end_ns(f));
    }
    rdma_hca_faults_update(hca);
    return true;
}

void rdma_hca_fault_free(RdmaHcaFault *f)
{
    qapi_free_RdmaFault(f->spec);
    g_free(f);
}

/* The last fault is gone: what faults have delayed is due. */
static void end_delays(RdmaHca *hca)
{
    RdmaHcaFaults *fs = hca->faults;
    RdmaHcaHeld *held;
    RdmaHcaCq *cq;

    QTAILQ_FOREACH(held, &fs->held, next) {
        held->until = 0;
        held->reorder = false;
    }
    RDMA_HCA_FOREACH(&hca->cqs, n, cq) {
        cq->n_reordered = 0;
    }
    if (fs->command_until) {
        fs->command_until = PAST_NS;
    }
    rdma_hca_bh_schedule(hca);
}

void rdma_hca_fault_remove(RdmaHca *hca, RdmaHcaFault *f)
{
    RdmaHcaFaults *fs = hca->faults;
    RdmaHcaQp *qp;

    trace_rdma_hca_fault_remove(hca->owner, f->spec->id, f->matches, f->hits);
    if (f->spec->kind == RDMA_FAULT_KIND_PORT_DOWN) {
        set_port(hca, 0);
    }
    RDMA_HCA_FOREACH(&hca->qps, n, qp) {
        if (qp->fault.stuck == f) {
            release_qp(qp);
            rdma_hca_qp_schedule(hca, qp);
        }
        if (qp->fault.next_fault == f) {
            qp->fault.next_fault = NULL;
        }
        qp->fault.last_fault = NULL;
    }
    QTAILQ_REMOVE(&fs->list, f, next);
    rdma_hca_fault_free(f);
    if (!--fs->count) {
        end_delays(hca);
    }
    rdma_hca_faults_update(hca);
}

void rdma_hca_fault_forget_qp(RdmaHcaQp *qp)
{
    release_qp(qp);
    qp->fault.next_is_matched = false;
    qp->fault.next_fault = NULL;
}

void rdma_hca_fault_command_end(RdmaHca *hca)
{
    if (hca->faults && hca->faults->command_until) {
        hca->faults->command_until = 0;
        rdma_hca_faults_update(hca);
    }
}

void rdma_hca_faults_free(RdmaHca *hca)
{
    RdmaHcaFaults *fs = hca->faults;
    RdmaHcaFault *f, *next;

    if (!fs) {
        return;
    }
    QTAILQ_FOREACH_SAFE(f, &fs->list, next, next) {
        rdma_hca_fault_free(f);
    }
    timer_free(fs->timer);
    migrate_del_blocker(&fs->blocker);
    g_free(fs);
    hca->faults = NULL;
    hca->fault_points = 0;
}

/* Decide which fault strikes */

/* The upper half of the next state of a linear congruential generator */
static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 32;
}

/* A work request, completion or command matches @f: does the fault strike? */
static bool try_strike(RdmaHca *hca, RdmaHcaFault *f)
{
    f->matches++;
    if (f->matches <= trigger_of(f)->after ||
        next_random(&f->random) >= f->threshold) {
        return false;
    }
    f->hits++;
    trace_rdma_hca_fault_hit(hca->owner, f->spec->id,
                             RdmaFaultKind_str(f->spec->kind), f->hits);
    if (!may_strike(f)) {
        update_points(hca);
    }
    return true;
}

static bool matches_peer(RdmaHca *hca, const RdmaHcaFault *f, const Work *w)
{
    const RdmaFaultWork *want = rdma_hca_fault_work(f);
    const RdmaAv *av = w->av;
    bool has_dest_qpn = w->has_dest_qpn;
    uint32_t dest_qpn = w->dest_qpn;
    RdmaInspection in;

    if (!want->dgid && !want->has_dest_qpn) {
        return true;
    }
    if (!w->qp) {
        return false;
    }
    if (!rdma_qp_is_datagram(w->qp->init.qp_type)) {
        if (hca->bc->inspect(hca->backend, RDMA_OBJECT_QP, w->qp->init.qpn,
                             &in)) {
            return false;
        }
        av = in.qp.known & RDMA_QP_AV ? &in.qp.attr.ah_attr : NULL;
        has_dest_qpn = in.qp.known & RDMA_QP_DEST_QPN;
        dest_qpn = in.qp.attr.dest_qp_num;
    }
    return (!want->dgid ||
            (av && !memcmp(av->dgid, f->dgid, RDMA_GID_LEN))) &&
           (!want->has_dest_qpn ||
            (has_dest_qpn && dest_qpn == want->dest_qpn));
}

/*
 * A fault strikes the GSI only if the user names its number: without the GSI
 * RDMA CM does not work for any program of the guest.
 */
static bool matches_qp(const RdmaFaultWork *want, const Work *w)
{
    if (want->has_qpn) {
        return w->qp && w->qp->init.qpn == want->qpn;
    }
    return !w->qp || w->qp->init.qp_type != RDMA_QPT_GSI;
}

static bool matches(RdmaHca *hca, const RdmaHcaFault *f, const Work *w)
{
    const RdmaFaultWork *want = rdma_hca_fault_work(f);

    return (!want->has_opcode || want->opcode == w->opcode) &&
           rdma_hca_fault_can_strike(f->spec->kind, w->opcode) &&
           matches_qp(want, w) && matches_peer(hca, f, w);
}

/* The first fault at @point that strikes @w, or NULL */
static RdmaHcaFault *pick_fault(RdmaHca *hca, uint8_t point, const Work *w)
{
    RdmaHcaFault *f;

    QTAILQ_FOREACH(f, &hca->faults->list, next) {
        if (point_of(f) == point && matches(hca, f, w) &&
            try_strike(hca, f)) {
            return f;
        }
    }
    return NULL;
}

/*
 * The fault that strikes the send @w of @qp, or NULL. A send that was put back
 * is not matched a second time: it gets the fault that it had.
 */
static RdmaHcaFault *pick_send_fault(RdmaHca *hca, RdmaHcaQp *qp, const Work *w)
{
    RdmaHcaFault *f = qp->fault.next_fault;

    qp->fault.next_fault = NULL;
    if (!qp->fault.next_is_matched) {
        return pick_fault(hca, RDMA_HCA_FAULT_AT_SEND, w);
    }
    qp->fault.next_is_matched = false;
    if (!f || !may_strike(f)) {
        return NULL;
    }
    /* rdma_hca_fault_put_back() has taken back the first hit. */
    f->hits++;
    if (!may_strike(f)) {
        update_points(hca);
    }
    return f;
}

static uint32_t *rkey_of(RdmaSendWr *wr)
{
    switch (wr->opcode) {
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        return &wr->wr.atomic.rkey;
    case RDMA_WR_FLUSH:
        return &wr->wr.flush.rkey;
    default:
        return &wr->wr.rdma.rkey;
    }
}

static void hold_back(RdmaHca *hca, RdmaHcaQp *qp)
{
    qp->fault.held_back = true;
    qp->fault.next_is_matched = true;
    rdma_hca_qp_schedule(hca, qp);
}

bool rdma_hca_fault_send(RdmaHca *hca, RdmaHcaQp *qp, RdmaSendWr *wr)
{
    bool ud = rdma_qp_is_datagram(qp->init.qp_type);
    Work w = {
        .qp = qp,
        .opcode = ud ? RDMA_COMPLETION_OPCODE_SEND
                     : rdma_hca_error_opcode(rdma_wc_opcode(wr->opcode)),
        .av = ud ? &wr->wr.ud.av : NULL,
        .has_dest_qpn = ud,
        .dest_qpn = ud ? wr->wr.ud.remote_qpn : 0,
    };
    RdmaHcaFault *f;

    f = pick_send_fault(hca, qp, &w);
    if (!f) {
        return true;
    }
    qp->fault.last_fault = f;
    switch (f->spec->kind) {
    case RDMA_FAULT_KIND_COMPLETION_ERROR:
        wr->status = f->spec->u.completion_error.status;
        return true;
    case RDMA_FAULT_KIND_LOCAL_ACCESS:
        wr->status = RDMA_WC_LOC_PROT_ERR;
        return true;
    case RDMA_FAULT_KIND_REMOTE_ACCESS:
        *rkey_of(wr) = NO_KEY;
        return true;
    case RDMA_FAULT_KIND_QP_FATAL:
        qp->fault.fatal = true;
        hold_back(hca, qp);
        return false;
    case RDMA_FAULT_KIND_QP_STUCK:
        qp->fault.stuck = f;
        qp->fault.until = end_ns(f);
        hold_back(hca, qp);
        if (f->ms) {
            timer_mod_anticipate_ns(hca->faults->timer, qp->fault.until);
        }
        return false;
    default:
        return true;
    }
}

void rdma_hca_fault_put_back(RdmaHca *hca, RdmaHcaQp *qp)
{
    RdmaHcaFault *f = qp->fault.last_fault;

    if (f) {
        f->hits--;
        update_points(hca);
    }
    qp->fault.next_fault = f;
    qp->fault.next_is_matched = hca->fault_points & RDMA_HCA_FAULT_AT_SEND;
}

void rdma_hca_fault_recv(RdmaHca *hca, RdmaHcaQp *qp, RdmaRecvWr *wr)
{
    Work w = { .qp = qp, .opcode = RDMA_COMPLETION_OPCODE_RECV };
    const RdmaHcaFault *f = pick_fault(hca, RDMA_HCA_FAULT_AT_RECV, &w);

    if (!f) {
        return;
    }
    wr->status = f->spec->kind == RDMA_FAULT_KIND_COMPLETION_ERROR
                 ? f->spec->u.completion_error.status : RDMA_WC_LOC_PROT_ERR;
}

RdmaHcaFault *rdma_hca_fault_complete(RdmaHca *hca, RdmaHcaQp *qp,
                                      const RdmaWc *wc)
{
    Work w = {
        .qp = qp,
        .opcode = rdma_hca_error_opcode(wc->opcode),
        .has_dest_qpn = wc->opcode >= RDMA_WC_RECV,
        .dest_qpn = wc->src_qp,
    };

    return pick_fault(hca, RDMA_HCA_FAULT_AT_COMPLETE, &w);
}

static int errno_of(RdmaCommandStatus status)
{
    static const int errnos[RDMA_COMMAND_STATUS__MAX] = {
        [RDMA_COMMAND_STATUS_ERR] = EIO,
        [RDMA_COMMAND_STATUS_INVAL] = EINVAL,
        [RDMA_COMMAND_STATUS_NOMEM] = ENOMEM,
        [RDMA_COMMAND_STATUS_BUSY] = EBUSY,
        [RDMA_COMMAND_STATUS_NOENT] = ENOENT,
        [RDMA_COMMAND_STATUS_PERM] = EPERM,
        [RDMA_COMMAND_STATUS_NOTSUPP] = ENOTSUP,
    };

    return errnos[status];
}

int rdma_hca_command_begin(RdmaHca *hca, RdmaCommand cmd, bool again,
                           uint32_t qpn)
{
    RdmaHcaFaults *fs = hca->faults;
    RdmaHcaFault *f;

    if (likely(!(hca->fault_points & RDMA_HCA_FAULT_AT_COMMAND))) {
        return 0;
    }
    if (fs->command_until) {
        if (!rdma_hca_fault_is_due(fs->command_until)) {
            return -EINPROGRESS;
        }
        fs->command_until = 0;
        rdma_hca_faults_update(hca);
        return 0;
    }
    QTAILQ_FOREACH(f, &fs->list, next) {
        const RdmaFaultCommand *want = rdma_hca_fault_command(f);

        if (again || point_of(f) != RDMA_HCA_FAULT_AT_COMMAND ||
            (want->has_command && want->command != cmd) ||
            (want->has_qpn && want->qpn != qpn) || !try_strike(hca, f)) {
            continue;
        }
        if (f->spec->kind == RDMA_FAULT_KIND_COMMAND_ERROR) {
            return -errno_of(f->spec->u.command_error.status);
        }
        fs->command_until = end_ns(f);
        rdma_hca_faults_update(hca);
        return -EINPROGRESS;
    }
    return 0;
}
