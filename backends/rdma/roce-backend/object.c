/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RoCE backend: the RoCEv2 engine (rdma/roce.h) on a QEMU netdev. This file
 * has the object, its class methods, and its port.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qom/object_interfaces.h"
#include "system/rdma-backend.h"
#include "system/rdma-series.h"
#include "rdma/roce.h"
#include "int.h"
#include "../trace.h"

OBJECT_DEFINE_SIMPLE_TYPE(RdmaRoce, rdma_roce, RDMA_BACKEND_ROCE, RDMA_BACKEND)

#define ROCE_MAX_RD_ATOMIC 16
#define ROCE_MAX_GIDS 256

/* The longest RC message (IBTA 9.7.4.1.7: 2^31 bytes). */
#define ROCE_MAX_MSG_SZ 0x80000000u

/* Nominal, as nothing paces the wire: 4X EDR, 100 Gb/s */
#define ROCE_ACTIVE_WIDTH 2
#define ROCE_ACTIVE_SPEED 32

/* Other ports can find this one by its addresses while the device runs. */
static void roce_update_shm(RdmaRoce *r)
{
    if (!r->shm) {
        return;
    }
    if (r->running && r->port.link_up) {
        rdma_roce_shm_open(r->shm, &r->port.mac, &r->port.nic_mac);
    } else {
        rdma_roce_shm_close(r->shm);
    }
    /* The frame that waited for room was dropped. */
    r->shm_blocked = false;
}

static bool roce_update_port(RdmaRoce *r)
{
    RdmaRoceNetPort old = r->port;
    bool moved = false;

    rdma_roce_net_port(r->net, &r->port);
    r->port.link_up &= !r->port_off;
    if (memcmp(&old.mac, &r->port.mac, sizeof(old.mac)) ||
        memcmp(&old.nic_mac, &r->port.nic_mac, sizeof(old.nic_mac))) {
        roce_set_mac(r->engine, r->port.mac.a);
        roce_set_nic_mac(r->engine, r->port.nic_mac.a);
        moved = true;
    }
    if (moved || old.link_up != r->port.link_up) {
        roce_update_shm(r);
    }
    if (old.link_up == r->port.link_up && old.mtu == r->port.mtu &&
        !memcmp(&old.mac, &r->port.mac, sizeof(old.mac))) {
        return false;
    }
    trace_rdma_roce_port(r, r->port.link_up, r->port.mtu);
    roce_set_link_mtu(r->engine, r->port.mtu);
    roce_set_link(r->engine, r->port.link_up);
    return true;
}

static void roce_net_changed(void *opaque)
{
    RdmaRoce *r = opaque;
    RdmaBackend *rb = RDMA_BACKEND(r);

    if (!r->engine || !r->net || !r->bh) {
        return;
    }
    if (rdma_backend_busy(rb)) {
        rdma_backend_put_off(rb, ROCE_PENDING_PORT);
        return;
    }
    rdma_backend_enter(rb);
    if (roce_update_port(r)) {
        /* The netdev may have dropped frames that it had queued. */
        r->net_blocked = false;
        r->net_waits = false;
        if (r->net_bh) {
            qemu_bh_schedule(r->net_bh);
        }
        qemu_bh_schedule(r->bh);
        rb->client_ops->port_changed(rb->client_opaque);
    }
    rdma_backend_leave(rb);
}

static const RdmaRoceNetOps roce_net_ops = {
    .receive = rdma_roce_on_receive,
    .cork = rdma_roce_on_cork,
    .sent = rdma_roce_on_sent,
    .changed = roce_net_changed,
};

/* Class methods */

static bool rdma_roce_attach(RdmaBackend *rb, Error **errp)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);
    RdmaRoceNetConf conf = {
        .owner = OBJECT(r),
        .netdev_id = r->netdev_id,
        .mtu = r->mtu,
        .mac = r->mac,
    };
    RoceOps ops = rdma_roce_ops(rb);
    RoceConfig config;

    /* Forget an earlier device. */
    memset(&r->engine, 0, sizeof(*r) - offsetof(RdmaRoce, engine));
    rb->limits.max_rd_atomic = MIN(rb->limits.max_rd_atomic,
                                   ROCE_MAX_RD_ATOMIC);
    rb->limits.gid_table_len = MIN(rb->limits.gid_table_len, ROCE_MAX_GIDS);
    rb->limits.max_srq_wr = MIN(rb->limits.max_srq_wr, ROCE_MAX_WR);
    rb->limits.extensions &= RDMA_EXT_FLUSH | RDMA_EXT_ATOMIC_WRITE;

    r->net = rdma_roce_net_new(&conf, &roce_net_ops, r, errp);
    if (!r->net) {
        return false;
    }
    config = (RoceConfig) {
        .max_qp = rb->limits.max_qp,
        .max_mr = rb->limits.max_mr + rb->limits.max_mw,
        .gid_table_len = rb->limits.gid_table_len,
        .max_rd_atomic = rb->limits.max_rd_atomic,
        .max_srq = rb->limits.max_srq,
        .max_mcast_grp = rb->limits.max_mcast_grp,
        .max_mcast_qp_attach = rb->limits.max_mcast_qp_attach,
    };
    r->engine = roce_new(&config, &ops, r);
    roce_set_dcqcn(r->engine, r->dcqcn_rate * 1000);
    if (r->shm_dir) {
        r->shm = rdma_roce_shm_new(r->shm_dir, rb->ctx, r->shm_poll_max,
                                   &rdma_roce_shm_ops, r);
    }
    rdma_roce_run_begin(r);
    roce_update_port(r);
    return true;
}

static void rdma_roce_detach(RdmaBackend *rb)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);

    WITH_QEMU_LOCK_GUARD(&rb->lock) {
        r->running = false;
        if (r->shm) {
            rdma_roce_shm_close(r->shm);
        }
    }
    rdma_roce_run_end(r);
    g_clear_pointer(&r->shm, rdma_roce_shm_free);
    rdma_roce_net_free(r->net);
    r->net = NULL;
    roce_free(r->engine);
    r->engine = NULL;
}

static void rdma_roce_run_pending(RdmaBackend *rb, uint32_t pending)
{
    RdmaRoce *r = container_of(rb, RdmaRoce, parent_obj);

    if ((pending & ROCE_PENDING_RUN) && r->bh) {
        qemu_bh_schedule(r->bh);
    }
    if (pending & ROCE_PENDING_PORT) {
        roce_net_changed(r);
    }
}

static void rdma_roce_reset(RdmaBackend *rb)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);

    roce_reset(r->engine);
    roce_set_extensions(r->engine, 0);
    rdma_roce_frames_drop(&r->deferred);
}

static void rdma_roce_set_run_state(RdmaBackend *rb, RdmaRunState state)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);

    r->running = state == RDMA_RUN_RUNNING;
    if (r->running) {
        roce_resume(r->engine, rdma_roce_now());
        qemu_bh_schedule(r->bh);
    } else {
        rdma_roce_frames_drop(&r->deferred);
    }
    roce_update_shm(r);
}

static char *rdma_roce_info_str(RdmaBackend *rb)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);

    return g_strdup_printf("netdev %s, " MAC_FMT ", %s", r->netdev_id,
                           MAC_ARG(r->port.mac.a),
                           r->port.link_up ? "up" : "down");
}

static void rdma_roce_query_port(RdmaBackend *rb, RdmaPortAttr *attr)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);
    bool link_up = rdma_roce_net_link_up(r->net) && !r->port_off;

    /*
     * Read the link, because QEMU without net-client-notify-stream-data does
     * not report that a stream has connected.
     */
    if (link_up != r->port.link_up && rdma_backend_busy(rb)) {
        /*
         * A command calls, so this thread runs the update when it leaves, with
         * the BQL. Otherwise an iothread could run it, without the BQL.
         */
        rdma_backend_put_off(rb, ROCE_PENDING_PORT);
    }
    *attr = (RdmaPortAttr) {
        .state = link_up ? RDMA_PORT_ACTIVE : RDMA_PORT_DOWN,
        .max_mtu = RDMA_MTU_4096,
        .active_mtu = roce_port_mtu(r->engine),
        .phys_mtu = r->port.mtu,
        .max_msg_sz = ROCE_MAX_MSG_SZ,
        .active_width = ROCE_ACTIVE_WIDTH,
        .active_speed = ROCE_ACTIVE_SPEED,
    };
    memcpy(attr->mac, r->port.mac.a, sizeof(attr->mac));
}

static void rdma_roce_set_port(RdmaBackend *rb, bool up)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(rb);

    r->port_off = !up;
    roce_net_changed(r);
}

/* The object */

static void rdma_roce_complete(UserCreatable *uc, Error **errp)
{
    /* attach() looks the netdev up, as it may be added after this object. */
    if (!RDMA_BACKEND_ROCE(uc)->netdev_id) {
        error_setg(errp, "Parameter 'netdev' is required");
    }
}

static void rdma_roce_finalize(Object *obj)
{
    g_free(RDMA_BACKEND_ROCE(obj)->netdev_id);
    g_free(RDMA_BACKEND_ROCE(obj)->shm_dir);
}

static void rdma_roce_init(Object *obj)
{
    RDMA_BACKEND_ROCE(obj)->shm_poll_max = ROCE_SHM_POLL_MAX_NS;
}

static void rdma_roce_class_init(ObjectClass *oc, RdmaClassData data)
{
    UserCreatableClass *ucc = USER_CREATABLE_CLASS(oc);
    RdmaBackendClass *rbc = RDMA_BACKEND_CLASS(oc);

    ucc->complete = rdma_roce_complete;

    rbc->vmsd = &vmstate_rdma_roce;
    rbc->attach = rdma_roce_attach;
    rbc->detach = rdma_roce_detach;
    rbc->has_iothread = true;
    rbc->run_pending = rdma_roce_run_pending;
    rbc->reset = rdma_roce_reset;
    rbc->set_run_state = rdma_roce_set_run_state;
    rbc->info_str = rdma_roce_info_str;
    rbc->query_port = rdma_roce_query_port;
    rbc->set_port = rdma_roce_set_port;
    /* Send at once, as the bottom half would delay the first frame. */
    rbc->run = rdma_roce_run;
    rdma_roce_ctrl_class_init(rbc);

    rdma_roce_add_properties(oc);
}
