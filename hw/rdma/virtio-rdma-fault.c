/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults that the user has added, so that programs and drivers of the guest
 * see errors: which work request, completion or command one strikes.
 *
 * Those of a work request change it before the backend gets it, so that it
 * fails in its turn, with all that follows from that. While no fault is active
 * the data path looks at VirtIORdma.fault_points only, and at a flag of the QP.
 */
#include "qemu/osdep.h"
#include "migration/blocker.h"
#include "qapi/error.h"
#include "qemu/timer.h"
#include "trace.h"
#include "virtio-rdma-queue.h"

/* A key of no region: the upper 24 bits are its number, from 1 on. */
#define NO_KEY 0

/* A work request, or a completion, that may meet a fault */
typedef struct Work {
    VirtIORdmaQp *qp;               /* NULL: it is in an SRQ */
    uint8_t opcode;                 /* RdmaWcOpcode */
    /* The peer, if it is in the WR or the completion */
    const RdmaAv *av;
    bool has_dest_qpn;
    uint32_t dest_qpn;
} Work;

static bool is_recv(uint8_t opcode)
{
    return opcode == RDMA_WC_RECV || opcode == RDMA_WC_RECV_RDMA_WITH_IMM;
}

/* Which are there */

static bool may_strike(const VirtIORdmaFault *f)
{
    return !f->times || f->hits < f->times;
}

static bool has_stuck(VirtIORdma *s, const VirtIORdmaFault *f)
{
    const VirtIORdmaQp *qp;

    VIRTIO_RDMA_TABLE_FOREACH(&s->qps, n, qp) {
        if (qp->fault.stuck == f) {
            return true;
        }
    }
    return false;
}

bool virtio_rdma_fault_is_active(VirtIORdma *s, const VirtIORdmaFault *f)
{
    if (f->kind == RDMA_FAULT_KIND_PORT_DOWN) {
        return s->faults->port_until;
    }
    return may_strike(f) ||
           (f->kind == RDMA_FAULT_KIND_QP_STUCK && has_stuck(s, f));
}

static uint8_t points_of(const VirtIORdmaFault *f)
{
    if (f->kind == RDMA_FAULT_KIND_PORT_DOWN || !may_strike(f)) {
        return 0;
    }
    if (virtio_rdma_fault_is_of_command(f->kind)) {
        return VIRTIO_RDMA_FAULT_AT_COMMAND;
    }
    switch (f->kind) {
    case RDMA_FAULT_KIND_CQ_OVERRUN:
    case RDMA_FAULT_KIND_COMPLETION_DELAY:
    case RDMA_FAULT_KIND_COMPLETION_REORDER:
        return VIRTIO_RDMA_FAULT_AT_COMPLETE;
    default:
        return f->opcode == RDMA_WC_RECV ? VIRTIO_RDMA_FAULT_AT_RECV
                                         : VIRTIO_RDMA_FAULT_AT_SEND;
    }
}

static void update_points(VirtIORdma *s)
{
    const VirtIORdmaFaults *fs = s->faults;
    const VirtIORdmaFault *f;
    uint8_t points = 0;

    QTAILQ_FOREACH(f, &fs->list, next) {
        points |= points_of(f);
    }
    if (fs->n_held) {
        points |= VIRTIO_RDMA_FAULT_AT_COMPLETE;
    }
    if (fs->command_until) {
        points |= VIRTIO_RDMA_FAULT_AT_COMMAND;
    }
    s->fault_points = points;
}

/* Time */

static int64_t now(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

bool virtio_rdma_fault_is_due(int64_t until)
{
    return until <= now();
}

static int64_t end_of(const VirtIORdmaFault *f)
{
    return f->ms ? now() + f->ms * (int64_t)SCALE_MS : INT64_MAX;
}

static void earlier(int64_t *next, int64_t until)
{
    if (until && until < *next) {
        *next = until;
    }
}

/* What nobody does while the driver is not there, or the device is broken */
static void earlier_of_work(VirtIORdma *s, int64_t *next)
{
    const VirtIORdmaHeld *held;
    const VirtIORdmaQp *qp;

    if (!virtio_rdma_fault_is_due(s->faults->command_until)) {
        earlier(next, s->faults->command_until);
    }
    QTAILQ_FOREACH(held, &s->faults->held, next) {
        earlier(next, held->until);
    }
    VIRTIO_RDMA_TABLE_FOREACH(&s->qps, n, qp) {
        if (qp->fault.stuck) {
            earlier(next, qp->fault.until);
        }
    }
}

static void update_timer(VirtIORdma *s)
{
    VirtIORdmaFaults *fs = s->faults;
    int64_t next = INT64_MAX;

    earlier(&next, fs->port_until);
    if (virtio_rdma_active(s)) {
        earlier_of_work(s, &next);
    }
    if (next == INT64_MAX) {
        timer_del(fs->timer);
    } else {
        timer_mod_ns(fs->timer, next);
    }
}

void virtio_rdma_faults_update(VirtIORdma *s)
{
    VirtIORdmaFaults *fs = s->faults;

    if (fs) {
        update_points(s);
        update_timer(s);
        if (!fs->count && !fs->n_held && !fs->command_until) {
            migrate_del_blocker(&fs->blocker);
        }
    }
}

static void on_timer(void *opaque)
{
    virtio_rdma_bh_schedule(opaque);
}

static void set_port(VirtIORdma *s, int64_t until)
{
    if (!s->faults->port_until != !until) {
        s->bc->set_port(s->backend, !until);
    }
    s->faults->port_until = until;
}

void virtio_rdma_faults_expire(VirtIORdma *s)
{
    VirtIORdmaFaults *fs = s->faults;
    VirtIORdmaQp *qp;

    if (fs->port_until && virtio_rdma_fault_is_due(fs->port_until)) {
        set_port(s, 0);
    }
    VIRTIO_RDMA_TABLE_FOREACH(&s->qps, n, qp) {
        if (qp->fault.stuck && virtio_rdma_fault_is_due(qp->fault.until)) {
            virtio_rdma_fault_let_go(qp);
            virtio_rdma_qp_schedule(s, qp);
        }
    }
    virtio_rdma_faults_update(s);
}

/* Added and removed */

static VirtIORdmaFaults *get_faults(VirtIORdma *s)
{
    VirtIORdmaFaults *fs = s->faults;

    if (!fs) {
        fs = g_new0(VirtIORdmaFaults, 1);
        QTAILQ_INIT(&fs->list);
        QTAILQ_INIT(&fs->held);
        fs->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, on_timer, s);
        s->faults = fs;
    }
    return fs;
}

bool virtio_rdma_faults_block_migration(VirtIORdma *s, Error **errp)
{
    VirtIORdmaFaults *fs = get_faults(s);

    if (fs->blocker) {
        return true;
    }
    error_setg(&fs->blocker, "The RDMA device has faults, which do not "
               "migrate: remove them with rdma-fault-remove");
    return migrate_add_blocker(&fs->blocker, errp) == 0;
}

VirtIORdmaFault *virtio_rdma_fault_add(VirtIORdma *s,
                                       const VirtIORdmaFault *fault)
{
    VirtIORdmaFaults *fs = s->faults;
    VirtIORdmaFault *f = g_memdup2(fault, sizeof(*fault));
    VirtIORdmaQp *qp;

    QTAILQ_INSERT_TAIL(&fs->list, f, next);
    fs->count++;
    VIRTIO_RDMA_TABLE_FOREACH(&s->qps, n, qp) {
        /* A send that met another one may meet this one, too. */
        if (!qp->fault.held_back) {
            qp->fault.passed = false;
        }
    }
    virtio_rdma_faults_update(s);
    trace_virtio_rdma_fault_add(s, f->id, RdmaFaultKind_str(f->kind));
    return f;
}

void virtio_rdma_fault_start(VirtIORdma *s, const VirtIORdmaFault *f)
{
    if (f->kind == RDMA_FAULT_KIND_PORT_DOWN) {
        set_port(s, end_of(f));
        virtio_rdma_faults_update(s);
    }
}

void virtio_rdma_fault_remove(VirtIORdma *s, VirtIORdmaFault *f)
{
    VirtIORdmaFaults *fs = s->faults;
    VirtIORdmaQp *qp;

    trace_virtio_rdma_fault_remove(s, f->id, f->matches, f->hits);
    if (f->kind == RDMA_FAULT_KIND_PORT_DOWN) {
        set_port(s, 0);
    }
    VIRTIO_RDMA_TABLE_FOREACH(&s->qps, n, qp) {
        if (qp->fault.stuck == f) {
            virtio_rdma_fault_let_go(qp);
            virtio_rdma_qp_schedule(s, qp);
        }
    }
    QTAILQ_REMOVE(&fs->list, f, next);
    fs->count--;
    g_free(f);
    virtio_rdma_faults_update(s);
}

void virtio_rdma_fault_let_go(VirtIORdmaQp *qp)
{
    qp->fault.held_back = false;
    qp->fault.fatal = false;
    qp->fault.stuck = NULL;
}

void virtio_rdma_fault_forget_qp(VirtIORdmaQp *qp)
{
    virtio_rdma_fault_let_go(qp);
    qp->fault.passed = false;
}

void virtio_rdma_fault_forget_command(VirtIORdma *s)
{
    if (s->faults && s->faults->command_until) {
        s->faults->command_until = 0;
        virtio_rdma_faults_update(s);
    }
}

void virtio_rdma_faults_free(VirtIORdma *s)
{
    VirtIORdmaFaults *fs = s->faults;
    VirtIORdmaFault *f, *next;

    if (!fs) {
        return;
    }
    QTAILQ_FOREACH_SAFE(f, &fs->list, next, next) {
        g_free(f);
    }
    timer_free(fs->timer);
    migrate_del_blocker(&fs->blocker);
    g_free(fs);
    s->faults = NULL;
    s->fault_points = 0;
}

/* Which of them strikes */

/* The next number of the sequence (a linear congruence, its upper half) */
static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 32;
}

/* What matches @f has come: does it strike? */
static bool strikes(VirtIORdma *s, VirtIORdmaFault *f)
{
    f->matches++;
    if (f->matches <= f->after ||
        next_random(&f->random) >= f->probability) {
        return false;
    }
    f->hits++;
    trace_virtio_rdma_fault_hit(s, f->id, RdmaFaultKind_str(f->kind), f->hits);
    if (!may_strike(f)) {
        update_points(s);
    }
    return true;
}

static bool is_datagram(const VirtIORdmaQp *qp)
{
    return qp->init.qp_type == RDMA_QPT_UD || qp->init.qp_type == RDMA_QPT_GSI;
}

static bool has_peer(VirtIORdma *s, const VirtIORdmaFault *f, const Work *w)
{
    const RdmaAv *av = w->av;
    bool has_dest_qpn = w->has_dest_qpn;
    uint32_t dest_qpn = w->dest_qpn;
    RdmaInspection in;

    if (!(f->selects & (VIRTIO_RDMA_FAULT_DGID |
                        VIRTIO_RDMA_FAULT_DEST_QPN))) {
        return true;
    }
    if (!w->qp) {
        return false;
    }
    if (!is_datagram(w->qp)) {
        if (s->bc->inspect(s->backend, RDMA_OBJECT_QP, w->qp->init.qpn,
                           &in)) {
            return false;
        }
        av = in.qp.known & RDMA_QP_AV ? &in.qp.attr.ah_attr : NULL;
        has_dest_qpn = in.qp.known & RDMA_QP_DEST_QPN;
        dest_qpn = in.qp.attr.dest_qp_num;
    }
    return (!(f->selects & VIRTIO_RDMA_FAULT_DGID) ||
            (av && !memcmp(av->dgid, f->dgid, RDMA_GID_LEN))) &&
           (!(f->selects & VIRTIO_RDMA_FAULT_DEST_QPN) ||
            (has_dest_qpn && dest_qpn == f->dest_qpn));
}

/* Who breaks the GSI breaks RDMA CM for all: it has to be named. */
static bool has_number(const VirtIORdmaFault *f, const Work *w)
{
    if (f->selects & VIRTIO_RDMA_FAULT_QPN) {
        return w->qp && w->qp->init.qpn == f->qpn;
    }
    return !w->qp || w->qp->init.qp_type != RDMA_QPT_GSI;
}

static bool matches(VirtIORdma *s, const VirtIORdmaFault *f, const Work *w)
{
    return (f->opcode == VIRTIO_RDMA_FAULT_ANY || f->opcode == w->opcode) &&
           virtio_rdma_fault_suits(f->kind, w->opcode) &&
           has_number(f, w) && has_peer(s, f, w);
}

/* The fault of those at @point that strikes @w, or NULL */
static VirtIORdmaFault *meet(VirtIORdma *s, uint8_t point, const Work *w)
{
    VirtIORdmaFault *f;

    QTAILQ_FOREACH(f, &s->faults->list, next) {
        if ((points_of(f) & point) && matches(s, f, w) && strikes(s, f)) {
            return f;
        }
    }
    return NULL;
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

static void hold_back(VirtIORdma *s, VirtIORdmaQp *qp)
{
    qp->fault.held_back = true;
    qp->fault.passed = true;
    virtio_rdma_qp_schedule(s, qp);
}

bool virtio_rdma_fault_send(VirtIORdma *s, VirtIORdmaQp *qp, RdmaSendWr *wr,
                            RdmaSge *sge)
{
    bool ud = is_datagram(qp);
    Work w = {
        .qp = qp,
        .opcode = ud ? RDMA_WC_SEND : rdma_wc_opcode(wr->opcode),
        .av = ud ? &wr->wr.ud.av : NULL,
        .has_dest_qpn = ud,
        .dest_qpn = ud ? wr->wr.ud.remote_qpn : 0,
    };
    VirtIORdmaFault *f;

    if (qp->fault.passed) {
        qp->fault.passed = false;
        return true;
    }
    f = meet(s, VIRTIO_RDMA_FAULT_AT_SEND, &w);
    if (!f) {
        return true;
    }
    switch (f->kind) {
    case RDMA_FAULT_KIND_COMPLETION_ERROR:
        wr->status = f->status;
        return true;
    case RDMA_FAULT_KIND_LOCAL_ACCESS:
        for (uint32_t i = 0; i < wr->num_sge; i++) {
            sge[i].lkey = NO_KEY;
        }
        if (!wr->num_sge) {
            /* It has its data with it, or none. */
            wr->status = RDMA_WC_LOC_PROT_ERR;
        }
        return true;
    case RDMA_FAULT_KIND_REMOTE_ACCESS:
        *rkey_of(wr) = NO_KEY;
        return true;
    case RDMA_FAULT_KIND_QP_FATAL:
        qp->fault.fatal = true;
        hold_back(s, qp);
        return false;
    case RDMA_FAULT_KIND_QP_STUCK:
        qp->fault.stuck = f;
        qp->fault.until = end_of(f);
        hold_back(s, qp);
        if (f->ms) {
            timer_mod_anticipate_ns(s->faults->timer, qp->fault.until);
        }
        return false;
    default:
        return true;
    }
}

void virtio_rdma_fault_recv(VirtIORdma *s, VirtIORdmaQp *qp, RdmaRecvWr *wr,
                            RdmaSge *sge)
{
    Work w = { .qp = qp, .opcode = RDMA_WC_RECV };
    const VirtIORdmaFault *f = meet(s, VIRTIO_RDMA_FAULT_AT_RECV, &w);

    if (!f) {
        return;
    }
    if (f->kind == RDMA_FAULT_KIND_COMPLETION_ERROR || !wr->num_sge) {
        wr->status = f->kind == RDMA_FAULT_KIND_COMPLETION_ERROR
                     ? f->status : RDMA_WC_LOC_PROT_ERR;
        return;
    }
    for (uint32_t i = 0; i < wr->num_sge; i++) {
        sge[i].lkey = NO_KEY;
    }
}

VirtIORdmaFault *virtio_rdma_fault_complete(VirtIORdma *s, VirtIORdmaQp *qp,
                                            const RdmaWc *wc)
{
    Work w = {
        .qp = qp,
        .opcode = wc->opcode,
        .has_dest_qpn = is_recv(wc->opcode),
        .dest_qpn = wc->src_qp,
    };

    return meet(s, VIRTIO_RDMA_FAULT_AT_COMPLETE, &w);
}

static bool is_command_of_qp(uint8_t cmd, uint32_t qpn,
                             const VirtIORdmaReq *req)
{
    switch (cmd) {
    case VIRTIO_RDMA_CMD_MODIFY_QP:
    case VIRTIO_RDMA_CMD_QUERY_QP:
        return req->qp.qpn == qpn;
    case VIRTIO_RDMA_CMD_DESTROY_QP:
        return req->destroy.id == qpn;
    default:
        return false;
    }
}

static int errno_of(uint8_t status)
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

int virtio_rdma_fault_command(VirtIORdma *s, uint8_t cmd, bool again,
                              const VirtIORdmaReq *req)
{
    VirtIORdmaFaults *fs = s->faults;
    VirtIORdmaFault *f;

    if (fs->command_until) {
        if (!virtio_rdma_fault_is_due(fs->command_until)) {
            return -EINPROGRESS;
        }
        fs->command_until = 0;
        virtio_rdma_faults_update(s);
        return 0;
    }
    QTAILQ_FOREACH(f, &fs->list, next) {
        if (again || !(points_of(f) & VIRTIO_RDMA_FAULT_AT_COMMAND) ||
            (f->command != VIRTIO_RDMA_FAULT_ANY && f->command != cmd) ||
            ((f->selects & VIRTIO_RDMA_FAULT_QPN) &&
             !is_command_of_qp(cmd, f->qpn, req)) ||
            !strikes(s, f)) {
            continue;
        }
        if (f->kind == RDMA_FAULT_KIND_COMMAND_ERROR) {
            return -errno_of(f->status);
        }
        fs->command_until = end_of(f);
        virtio_rdma_faults_update(s);
        return -EINPROGRESS;
    }
    return 0;
}
