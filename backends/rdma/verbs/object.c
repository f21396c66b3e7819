/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host ibverbs backend: queue pairs, regions and completion queues of the
 * guest are objects of an RDMA device of the host.
 *
 * This file is the object: its properties, and how a device takes, resets and
 * leaves it.
 */
#include "qemu/osdep.h"
#include "hw/core/boards.h"
#include "qapi/error.h"
#include "qom/object_interfaces.h"
#include "system/address-spaces.h"
#include "system/hostmem.h"
#include "system/memory.h"
#include "system/numa.h"
#include "system/ramblock.h"
#include "system/rdma-series.h"
#include "system/rdma-setting.h"
#include "int.h"

OBJECT_DEFINE_SIMPLE_TYPE(RdmaVerbs, verbs, RDMA_BACKEND_VERBS, RDMA_BACKEND)

/* The machine's memory */

static bool can_map(MemoryRegion *mr)
{
    return mr->ram_block && qemu_ram_is_shared(mr->ram_block) &&
           mr->ram_block->fd >= 0;
}

/* Regions consist of pages that are mapped once more, so RAM must be shared. */
static bool check_ram(Error **errp)
{
    MachineState *ms = current_machine;
    bool ok = true;

    if (ms->numa_state && ms->numa_state->num_nodes &&
        ms->numa_state->nodes[0].node_memdev) {
        for (int i = 0; i < ms->numa_state->num_nodes; i++) {
            HostMemoryBackend *m = ms->numa_state->nodes[i].node_memdev;

            ok = ok && (!m || can_map(host_memory_backend_get_memory(m)));
        }
    } else {
        ok = ms->ram && can_map(ms->ram);
    }
    if (!ok) {
        error_setg(errp, "the memory of the machine cannot be mapped by the "
                   "host's RDMA device page by page: it is not shared");
        error_append_hint(errp, "Use -object memory-backend-memfd,id=mem,"
                          "size=...,share=on -machine memory-backend=mem\n");
    }
    return ok;
}

/* With gid-mode=add the guest chooses addresses of the host's net device. */
static bool check_gid_mode(RdmaVerbs *v, Error **errp)
{
    if (v->gid_mode != RDMA_GID_MODE_ADD) {
        return true;
    }
    if (v->parent_obj.limits.any_gid) {
        error_setg(errp, "gid-mode=add would let the guest give the host any "
                   "address");
        error_append_hint(errp, "List those of the guest with allowed-gids= "
                          "of the device.\n");
        return false;
    }
    return verbs_netlink_check(errp);
}

/* Class methods */

static void free_tables(RdmaVerbs *v)
{
    g_clear_pointer(&v->pds, g_hash_table_destroy);
    g_clear_pointer(&v->cqs, g_hash_table_destroy);
    g_clear_pointer(&v->mrs, g_hash_table_destroy);
    g_clear_pointer(&v->srqs, g_hash_table_destroy);
    g_clear_pointer(&v->qps, g_hash_table_destroy);
    g_clear_pointer(&v->qps_by_wire, g_hash_table_destroy);
    g_clear_pointer(&v->qps_by_id, g_hash_table_destroy);
    g_clear_pointer(&v->srqs_by_id, g_hash_table_destroy);
    g_clear_pointer(&v->mws_by_key, g_hash_table_destroy);
    g_clear_pointer(&v->mrs_by_key, g_hash_table_destroy);
    g_clear_pointer(&v->pulls, g_hash_table_destroy);
    g_clear_pointer(&v->groups, g_hash_table_destroy);
    g_queue_clear(&v->pull_order);
}

static void make_tables(RdmaVerbs *v)
{
    v->pds = g_hash_table_new(NULL, NULL);
    v->cqs = g_hash_table_new(NULL, NULL);
    v->mrs = g_hash_table_new(NULL, NULL);
    v->srqs = g_hash_table_new(NULL, NULL);
    v->qps = g_hash_table_new(NULL, NULL);
    v->qps_by_wire = g_hash_table_new(NULL, NULL);
    v->qps_by_id = g_hash_table_new(NULL, NULL);
    v->srqs_by_id = g_hash_table_new(NULL, NULL);
    v->mws_by_key = g_hash_table_new(NULL, NULL);
    v->mrs_by_key = g_hash_table_new(NULL, NULL);
    v->pulls = g_hash_table_new(NULL, NULL);
    v->groups = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                      (GDestroyNotify)g_bytes_unref, NULL);
}

static bool verbs_attach(RdmaBackend *rb, Error **errp)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);

    if (rb->dma_as != &address_space_memory) {
        error_setg(errp, "rdma-verbs cannot be used behind an IOMMU of the "
                   "guest: use the device without iommu_platform=on");
        return false;
    }
    if (!check_gid_mode(v, errp) || !check_ram(errp) ||
        !verbs_dev_open(v, errp)) {
        return false;
    }
    if (ram_block_discard_disable(true)) {
        error_setg(errp, "rdma-verbs pins memory of the guest, which a "
                   "virtio-mem or another device of this machine discards");
        goto fail_discard;
    }
    verbs_dev_limit(v, &rb->limits);
    if (!verbs_cqs_init(v, errp)) {
        goto fail_cqs;
    }
    if (!verbs_events_init(v, errp)) {
        goto fail_events;
    }
    v->running = false;
    make_tables(v);
    verbs_ahs_init(v);
    verbs_gids_init(v);
    v->pinned = 0;
    verbs_worker_start(v);
    verbs_counters_reset(v);
    verbs_mrs_check_limits(v, current_machine->ram_size);
    return true;

fail_events:
    verbs_cqs_free(v);
fail_cqs:
    ram_block_discard_disable(false);
fail_discard:
    verbs_dev_close(v);
    return false;
}

/*
 * Drop all objects in the order that the host requires. Access to memory stops
 * before return; jobs destroy the objects, while the guest may create new ones.
 */
static void drop_objects(RdmaVerbs *v)
{
    verbs_job_abandon(v);
    /*
     * Windows before the queue pairs and the regions that they are bound to:
     * rxe waits 50 s for the window of a QP that is destroyed.
     */
    verbs_objs_reset(v, &verbs_mw_kind);
    verbs_qps_reset(v);
    verbs_ahs_drop(v, NULL);
    verbs_objs_reset(v, &verbs_srq_kind);
    verbs_mrs_reset_changing(v);
    verbs_objs_reset(v, &verbs_mr_kind);
    verbs_objs_reset(v, &verbs_cq_kind);
    verbs_objs_reset(v, &verbs_pd_kind);
    g_hash_table_remove_all(v->srqs_by_id);
    verbs_gids_reset(v);
}

/* The host's device was gone: open it again if it is back. */
static bool replace_device(RdmaVerbs *v)
{
    struct ibv_comp_channel *channel = v->channel;
    VerbsDev old = v->dev;
    QEMUBH *bh = v->cq_bh;

    if (!verbs_dev_open(v, NULL)) {
        goto fail;
    }
    if (!verbs_cqs_init(v, NULL)) {
        verbs_dev_close(v);
        goto fail;
    }
    qemu_set_fd_handler(channel->fd, NULL, NULL, NULL);
    qemu_set_fd_handler(old.ctx->async_fd, NULL, NULL, NULL);
    ibv_destroy_comp_channel(channel);
    qemu_bh_delete(bh);
    ibv_close_device(old.ctx);
    /* Also the bytes that the vanished device did not release */
    v->pinned = 0;
    return verbs_events_init(v, NULL);

fail:
    v->dev = old;
    v->channel = channel;
    v->cq_bh = bh;
    return false;
}

static void verbs_reset(RdmaBackend *rb)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);

    drop_objects(v);
    if (v->dev.gone) {
        /* Jobs use the old device. */
        verbs_worker_stop(v);
        if (!replace_device(v)) {
            v->dev.gone = true;
        }
        verbs_worker_start(v);
    }
    verbs_counters_reset(v);
}

static void verbs_detach(RdmaBackend *rb)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);

    v->running = false;
    drop_objects(v);
    verbs_worker_stop(v);
    verbs_events_free(v);
    verbs_cqs_free(v);
    verbs_gids_free(v);
    verbs_ahs_free(v);
    free_tables(v);
    verbs_dev_close(v);
    g_clear_pointer(&v->gsi_refusal, g_free);
    ram_block_discard_disable(false);
}

static void verbs_run_pending(RdmaBackend *rb, uint32_t pending)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);

    if (pending & VERBS_PENDING_CQS) {
        qemu_bh_schedule(v->cq_bh);
    }
    if (pending & VERBS_PENDING_EVENTS) {
        verbs_events_resume(v);
    }
    if (pending & VERBS_PENDING_MADS) {
        verbs_gsi_resume(v);
    }
}

static void verbs_abandon(RdmaBackend *rb)
{
    verbs_job_abandon(RDMA_BACKEND_VERBS(rb));
}

static void verbs_set_run_state(RdmaBackend *rb, RdmaRunState state)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);

    if (state == RDMA_RUN_NO_DMA) {
        verbs_qps_stop(v);
        return;
    }
    v->running = state == RDMA_RUN_RUNNING;
    verbs_cqs_set_running(v, v->running);
}

static int verbs_destroy(RdmaBackend *rb, RdmaObjectType type, uint32_t id)
{
    static const VerbsKind *const kinds[] = {
        [RDMA_OBJECT_PD] = &verbs_pd_kind,
        [RDMA_OBJECT_CQ] = &verbs_cq_kind,
        [RDMA_OBJECT_MR] = &verbs_mr_kind,
        [RDMA_OBJECT_MW] = &verbs_mw_kind,
        [RDMA_OBJECT_SRQ] = &verbs_srq_kind,
        [RDMA_OBJECT_QP] = &verbs_qp_kind,
    };
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);

    return type == RDMA_OBJECT_GID ? verbs_gid_del(v, id)
                                   : verbs_obj_destroy(v, kinds[type], id);
}

static char *verbs_info_str(RdmaBackend *rb)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    const char *state = v->dev.gone ? "gone" :
                        v->dev.port.state == RDMA_PORT_ACTIVE ? "up" : "down";
    /* QP 1 is not on the host. */
    unsigned nqp = g_hash_table_size(v->qps) -
                   !!verbs_get(v->qps, RDMA_QPN_GSI);

    return g_strdup_printf("%s port %u, %s; QPs %u, CQs %u, SRQs %u, "
                           "MRs and MWs %u", v->ibdev, v->port_num, state, nqp,
                           g_hash_table_size(v->cqs),
                           g_hash_table_size(v->srqs),
                           g_hash_table_size(v->mrs));
}

static void verbs_query_port(RdmaBackend *rb, RdmaPortAttr *attr)
{
    *attr = RDMA_BACKEND_VERBS(rb)->dev.port;
}

/* The object */

static const RdmaSetting settings[] = {
    { "ibdev", RDMA_SETTING_STR, offsetof(RdmaVerbs, ibdev), 0, 0,
      "name of the host's RDMA device, as rdma link shows it" },
    { "port", RDMA_SETTING_UINT8, offsetof(RdmaVerbs, port_num), 0, 0,
      "port of the device (default: 1)" },
    { "max-memory", RDMA_SETTING_SIZE, offsetof(RdmaVerbs, max_memory), 0, 0,
      "bytes of memory that the guest may have registered at a time "
      "(default: 0, no limit)" },
    { "cm", RDMA_SETTING_BOOL, offsetof(RdmaVerbs, cm), 0, 0,
      "take the MADs of the connection manager from the host if it does not "
      "use them: the guest then has QP 1 and RDMA CM (default: on)" },
};

static int get_gid_mode(Object *obj, Error **errp)
{
    return RDMA_BACKEND_VERBS(obj)->gid_mode;
}

static void set_gid_mode(Object *obj, int value, Error **errp)
{
    if (rdma_backend_may_set(obj, "gid-mode", errp)) {
        RDMA_BACKEND_VERBS(obj)->gid_mode = value;
    }
}

static void verbs_complete(UserCreatable *uc, Error **errp)
{
    if (!RDMA_BACKEND_VERBS(uc)->ibdev) {
        error_setg(errp, "Parameter 'ibdev' is required");
    }
}

static void verbs_init(Object *obj)
{
    RDMA_BACKEND_VERBS(obj)->port_num = 1;
    RDMA_BACKEND_VERBS(obj)->cm = true;
}

static void verbs_finalize(Object *obj)
{
    g_free(RDMA_BACKEND_VERBS(obj)->ibdev);
}

static void verbs_class_init(ObjectClass *oc, RdmaClassData data)
{
    UserCreatableClass *ucc = USER_CREATABLE_CLASS(oc);
    RdmaBackendClass *rbc = RDMA_BACKEND_CLASS(oc);

    ucc->complete = verbs_complete;

    rbc->attach = verbs_attach;
    rbc->detach = verbs_detach;
    rbc->run_pending = verbs_run_pending;
    rbc->reset = verbs_reset;
    rbc->set_run_state = verbs_set_run_state;
    rbc->abandon = verbs_abandon;
    rbc->destroy = verbs_destroy;
    rbc->info_str = verbs_info_str;
    rbc->query_port = verbs_query_port;
    rbc->add_gid = verbs_gid_add;
    rbc->inspect = verbs_inspect;
    rbc->set_mcast = verbs_set_mcast;
    rbc->kick = verbs_kick;
    rbc->run = verbs_pull_run;
    verbs_cq_class_init(rbc);
    verbs_mr_class_init(rbc);
    verbs_srq_class_init(rbc);
    verbs_qp_class_init(rbc);
    verbs_counters_class_init(rbc);

    rdma_settings_add(oc, settings, ARRAY_SIZE(settings));
    object_class_property_add_enum(oc, "gid-mode", "RdmaGidMode",
                                   &RdmaGidMode_lookup, get_gid_mode,
                                   set_gid_mode);
    object_class_property_set_description(oc, "gid-mode",
        "what to do for the guest's GIDs: match them with those of the host, "
        "or add them (default: match)");
}
