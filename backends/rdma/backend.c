/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA backend: the abstract class; how devices attach and detach, and threads
 * enter and leave.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "qom/object_interfaces.h"
#include "system/rdma-backend.h"
#include "system/rdma-series.h"
#include "trace.h"

OBJECT_DEFINE_TYPE_EXTENDED(RdmaBackend, rdma_backend, RDMA_BACKEND, OBJECT,
                            true, { TYPE_USER_CREATABLE }, { })

bool rdma_backend_attach(RdmaBackend *rb, const RdmaBackendClientOps *ops,
                         void *opaque, AddressSpace *dma_as, AioContext *ctx,
                         RdmaBackendLimits *limits, Error **errp)
{
    RdmaBackendClass *rbc = RDMA_BACKEND_GET_CLASS(rb);
    const char *name = object_get_canonical_path_component(OBJECT(rb));

    if (rb->client_ops) {
        error_setg(errp, "RDMA backend '%s' is already in use by another "
                   "device", name ? name : object_get_typename(OBJECT(rb)));
        return false;
    }
    if (ctx && !rbc->has_iothread) {
        error_setg(errp, "RDMA backend '%s' (%s) does not work in an iothread: "
                   "leave iothread out", name ? name : "",
                   object_get_typename(OBJECT(rb)));
        return false;
    }

    rb->ctx = ctx;
    rb->client_ops = ops;
    rb->client_opaque = opaque;
    rb->dma_as = dma_as;
    rb->limits = *limits;
    if (!rbc->attach(rb, errp)) {
        rb->client_ops = NULL;
        rb->client_opaque = NULL;
        rb->dma_as = NULL;
        return false;
    }
    rdma_ram_init(&rb->ram, dma_as);
    *limits = rb->limits;
    trace_rdma_backend_attach(rb, object_get_typename(OBJECT(rb)),
                              limits->max_qp, limits->max_mr);
    return true;
}

void rdma_backend_detach(RdmaBackend *rb)
{
    if (!rb->client_ops) {
        return;
    }
    trace_rdma_backend_detach(rb);
    RDMA_BACKEND_GET_CLASS(rb)->detach(rb);
    rdma_ram_cleanup(&rb->ram);
    qatomic_set(&rb->pending, 0);
    rb->client_ops = NULL;
    rb->client_opaque = NULL;
    rb->dma_as = NULL;
    rb->guard = NULL;
}

/* The address of `self` identifies the thread. */
static __thread char self;

bool rdma_backend_busy(const RdmaBackend *rb)
{
    return qatomic_read(&rb->owner) == &self;
}

/* The thread has the lock. */
static void entered(RdmaBackend *rb)
{
    if (rb->busy++) {
        return;
    }
    qatomic_set(&rb->owner, &self);
    /* The BQL protects it. Without the BQL no register is accessed. */
    if (rb->guard && bql_locked()) {
        rb->guard_was = rb->guard->engaged_in_io;
        rb->guard->engaged_in_io = true;
    }
}

void rdma_backend_enter(RdmaBackend *rb)
{
    if (rb->ctx && qemu_rec_mutex_trylock(&rb->lock)) {
        qatomic_inc(&rb->waiting);
        qemu_rec_mutex_lock(&rb->lock);
        qatomic_dec(&rb->waiting);
    }
    entered(rb);
}

bool rdma_backend_enter_if_free(RdmaBackend *rb)
{
    if (rb->ctx && qemu_rec_mutex_trylock(&rb->lock)) {
        return false;
    }
    entered(rb);
    return true;
}

/*
 * Lock, unless other threads wait. A mutex does not queue: the thread that has
 * just unlocked it would take it again before a waiting thread wakes up.
 */
static bool lock_in_turn(RdmaBackend *rb)
{
    return (rdma_backend_busy(rb) || !rdma_backend_wanted(rb)) &&
           !qemu_rec_mutex_trylock(&rb->lock);
}

void rdma_backend_put_off(RdmaBackend *rb, uint32_t pending)
{
    qatomic_or(&rb->pending, pending);
}

void rdma_backend_forget_pending(RdmaBackend *rb, uint32_t pending)
{
    if (qatomic_read(&rb->pending) & pending) {
        qatomic_and(&rb->pending, ~pending);
    }
}

static void run_pending(RdmaBackend *rb)
{
    const uint32_t own = RDMA_PENDING_DEVICE(0) - 1;
    uint32_t pending = qatomic_xchg(&rb->pending, 0);

    if (pending & own) {
        rb->bc->run_pending(rb, pending & own);
    }
    if ((pending & ~own) && rb->client_ops) {
        rb->client_ops->run_pending(rb->client_opaque, pending & ~own);
    }
}

bool rdma_backend_try_enter(RdmaBackend *rb, uint32_t pending)
{
    if (rb->ctx && !lock_in_turn(rb)) {
        rdma_backend_put_off(rb, pending);
        /*
         * Pairs with unlock(): the thread that has or awaits the lock sees this
         * when it unlocks, or it has unlocked before the second try.
         */
        qatomic_set_mb(&rb->contended, true);
        if (!lock_in_turn(rb)) {
            return false;
        }
    }
    entered(rb);
    return true;
}

static void unlock(RdmaBackend *rb)
{
    if (!rb->ctx) {
        return;
    }
    qemu_rec_mutex_unlock(&rb->lock);
    if (!bql_locked()) {
        return;
    }
    /* Pairs with rdma_backend_try_enter() */
    smp_mb();
    if (qatomic_read(&rb->contended)) {
        qatomic_set(&rb->contended, false);
        run_pending(rb);
    }
}

void rdma_backend_kick(RdmaBackend *rb, RdmaQueue queue, uint32_t id)
{
    assert(rb->busy);
    rb->kicked = true;
    rb->bc->kick(rb, queue, id);
}

void rdma_backend_leave(RdmaBackend *rb)
{
    assert(rb->busy);
    if (rb->busy == 1 && rb->client_ops) {
        if (rb->kicked) {
            rb->kicked = false;
            rb->bc->run(rb);
        }
        rb->client_ops->flush(rb->client_opaque);
    }
    if (--rb->busy) {
        if (rb->ctx) {
            qemu_rec_mutex_unlock(&rb->lock);
        }
        return;
    }
    qatomic_set(&rb->owner, NULL);
    object_ref(OBJECT(rb));
    if (rb->guard && bql_locked()) {
        rb->guard->engaged_in_io = rb->guard_was;
    }
    if (qatomic_read(&rb->pending)) {
        run_pending(rb);
    }
    unlock(rb);
    object_unref(OBJECT(rb));
}

static const char *state_name(uint8_t state)
{
    return state <= RDMA_QPS_ERR ? rdma_qp_state_name(state) : "?";
}

void rdma_backend_qp_refused(RdmaBackend *rb, uint32_t qpn,
                             const RdmaQpRefusal *r)
{
    static const char *const why[] = {
        [RDMA_QP_REFUSED_RANGE] = "is out of range",
        [RDMA_QP_REFUSED_MISSING] = "is missing in attr_mask",
        [RDMA_QP_REFUSED_EXTRA] = "is not allowed in attr_mask",
    };
    const char *from = state_name(r->from);
    const char *to = state_name(r->to);
    const char *text = r->why ?: why[r->type];
    g_autofree char *value = NULL;

    trace_rdma_backend_qp_refused(rb, qpn, from, to, r->attr, text, r->value,
                                  r->min, r->max);
    switch (r->type) {
    case RDMA_QP_REFUSED_RANGE:
        value = g_strdup_printf("is %" PRIu64 ", not %" PRIu64 " to %" PRIu64,
                                r->value, r->min, r->max);
        break;
    case RDMA_QP_REFUSED_MISSING:
    case RDMA_QP_REFUSED_EXTRA:
        value = g_strdup_printf("%s 0x%" PRIx64 ": 0x%" PRIx64 " is required, "
                                "0x%" PRIx64 " allowed", text, r->value,
                                r->min, r->max);
        break;
    case RDMA_QP_REFUSED_VALUE:
        value = g_strdup_printf("0x%" PRIx64 " %s", r->value, text);
        break;
    }
    qemu_log_mask(LOG_GUEST_ERROR, "rdma: QP %u: MODIFY_QP from %s to %s: "
                  "%s %s\n", qpn, from, to, r->attr, value);
}

RdmaBackend *rdma_backend_new_default(Object *owner, const char *netdev_id,
                                      Error **errp)
{
    return RDMA_BACKEND(object_new_with_props(TYPE_RDMA_BACKEND_DEFAULT, owner,
                                              TYPE_RDMA_BACKEND_DEFAULT, errp,
                                              "netdev", netdev_id, NULL));
}

bool rdma_backend_may_set(Object *obj, const char *name, Error **errp)
{
    if (RDMA_BACKEND(obj)->client_ops) {
        error_setg(errp, "Property '%s.%s' cannot be set while a device uses "
                   "the backend", object_get_typename(obj), name);
        return false;
    }
    return true;
}

static bool rdma_backend_prepare_delete(UserCreatable *uc, Error **errp)
{
    if (RDMA_BACKEND(uc)->client_ops) {
        error_setg(errp, "object '%s' is in use, can not be deleted",
                   object_get_canonical_path_component(OBJECT(uc)));
        return false;
    }
    return true;
}

static char *rdma_backend_get_info(Object *obj, Error **errp)
{
    RdmaBackend *rb = RDMA_BACKEND(obj);

    return rb->client_ops ? RDMA_BACKEND_GET_CLASS(rb)->info_str(rb)
                          : g_strdup("no device uses it");
}

static void rdma_backend_class_init(ObjectClass *oc, RdmaClassData data)
{
    UserCreatableClass *ucc = USER_CREATABLE_CLASS(oc);

    ucc->prepare_delete = rdma_backend_prepare_delete;
    object_class_property_add_str(oc, "info", rdma_backend_get_info, NULL);
    object_class_property_set_description(oc, "info",
        "what it is connected to, and what of that is in use");
}

static void rdma_backend_init(Object *obj)
{
    RdmaBackend *rb = RDMA_BACKEND(obj);

    rb->bc = RDMA_BACKEND_GET_CLASS(obj);
    qemu_rec_mutex_init(&rb->lock);
}

static void rdma_backend_finalize(Object *obj)
{
    qemu_rec_mutex_destroy(&RDMA_BACKEND(obj)->lock);
}
