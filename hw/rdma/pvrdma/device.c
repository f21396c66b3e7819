/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entry points of pvrdma for QEMU, its PCI bus and the core.
 */
#include "qemu/osdep.h"
#include "hw/pci/msix.h"
#include "migration/vmstate.h"
#include "qapi/error.h"
#include "qemu/bitmap.h"
#include "qemu/host-utils.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "system/rdma-series.h"
#include "system/runstate.h"
#include "int.h"

static void vm_changed(void *opaque, bool running, RunState state)
{
    Pvrdma *s = opaque;

    s->vm_running = running;
    pvrdma_update_running(s);
}

static void retry(void *opaque)
{
    Pvrdma *s = opaque;

    rdma_hca_bh_schedule(&s->hca);
}

static void reset(DeviceState *dev)
{
    pvrdma_reset(PVRDMA(dev));
}

/* Callbacks of the core */

static bool is_active(RdmaHca *hca)
{
    return pvrdma_is_active(pvrdma_of(hca));
}

static bool has_driver(RdmaHca *hca)
{
    return pvrdma_of(hca)->active;
}

static bool port_changed(RdmaHca *hca)
{
    return pvrdma_of(hca)->vm_running;
}

static void serve(RdmaHca *hca)
{
    pvrdma_cmd_run(pvrdma_of(hca));
    pvrdma_notify_events(pvrdma_of(hca));
}

static void resume(RdmaHca *hca)
{
    pvrdma_of(hca)->cmd.waiting = false;
    rdma_hca_bh_schedule(hca);
}

static void flush(RdmaHca *hca)
{
    pvrdma_notify_completions(pvrdma_of(hca));
}

static void run_pending(RdmaHca *hca, uint32_t pending)
{
    if (pending & PVRDMA_PENDING_RESET) {
        pvrdma_reset(pvrdma_of(hca));
    }
}

static const RdmaHcaOps hca_ops = {
    .is_active = is_active,
    .has_driver = has_driver,
    .has_events = has_driver,
    .event_pending = rdma_hca_bh_schedule,
    .port_changed = port_changed,
    .decode_send = pvrdma_decode_send,
    .decode_recv = pvrdma_decode_recv,
    .cq = &pvrdma_cqs,
    .srq = &pvrdma_srqs,
    .qp = &pvrdma_qps,
    .update_running = pvrdma_update_running_inside,
    .serve = serve,
    .resume = resume,
    .flush = flush,
    .run_pending = run_pending,
};

/* Realize */

static bool attach(Pvrdma *s, Error **errp)
{
    const PvrdmaConf *conf = &s->conf;
    RdmaBackendLimits *l = &s->hca.limits;

    *l = (RdmaBackendLimits) {
        .max_qp = conf->max_qp,
        .max_qp_wr = conf->max_qp_wr,
        .max_send_sge = conf->max_sge,
        .max_recv_sge = conf->max_sge,
        .max_cq = conf->max_cq,
        .max_cqe = conf->max_cqe,
        .max_mr = conf->max_mr,
        .max_pd = conf->max_pd,
        .max_mr_size = conf->max_mr_size,
        .max_rd_atomic = conf->max_rd_atomic,
        .gid_table_len = conf->gid_table_len,
        .max_srq = conf->max_srq,
        .max_srq_wr = conf->max_srq_wr,
        .max_srq_sge = conf->max_sge,
        .max_reg_pages = PVRDMA_MAX_PAGE_LIST,
        .any_gid = !conf->allowed_gids,
        .atomic_cap = RDMA_ATOMIC_HCA,
        .device_cap_flags = RDMA_HCA_CAP_MEM_MGT_EXTENSIONS,
    };
    /* Without an IOMMU this is address_space_memory: rdma-verbs needs that. */
    if (!rdma_hca_attach(&s->hca,
                         pci_device_iommu_address_space(&s->parent_obj),
                         errp)) {
        return false;
    }
    l->max_qp_wr = pow2floor(l->max_qp_wr);
    l->max_send_sge = pow2floor(MIN(l->max_send_sge, l->max_recv_sge));
    l->max_recv_sge = l->max_send_sge;
    l->max_cqe = pow2floor(l->max_cqe);
    l->max_srq_wr = pow2floor(l->max_srq_wr);
    l->max_srq_sge = pow2floor(l->max_srq_sge);
    if (l->host_numbers) {
        /* A REG_MR names its region by a key, which the host has chosen. */
        l->device_cap_flags &= ~RDMA_HCA_CAP_MEM_MGT_EXTENSIONS;
    }
    return true;
}

static bool add_bars(Pvrdma *s, Error **errp)
{
    PCIDevice *pci = PCI_DEVICE(s);

    pci_config_set_interrupt_pin(pci->config, 1);
    /* Refuse a migration stream with another pin: pci_set_irq() asserts. */
    pci->cmask[PCI_INTERRUPT_PIN] = 0xff;
    pvrdma_regs_init(s);
    if (msix_init_exclusive_bar(pci, PVRDMA_NUM_VECTORS, PVRDMA_BAR_MSIX,
                                errp) < 0) {
        return false;
    }
    for (unsigned i = 0; i < PVRDMA_NUM_VECTORS; i++) {
        msix_vector_use(pci, i);
    }
    return true;
}

static void realize(PCIDevice *pci, Error **errp)
{
    Pvrdma *s = PVRDMA(pci);

    if (PCI_FUNC(pci->devfn) == 0) {
        error_setg(errp, "pvrdma cannot be function 0 of its slot, where its "
                   "driver looks for a vmxnet3: add vmxnet3 with "
                   "addr=N.0,multifunction=on, and pvrdma with addr=N.1");
        return;
    }
    rdma_hca_init(&s->hca, &hca_ops, OBJECT(s), DEVICE(s));
    if (!pvrdma_conf_check(s, errp)) {
        return;
    }
    if (!rdma_hca_backend_get(&s->hca, s->conf.netdev, s->conf.rdmadev,
                              &s->conf.mac, errp) ||
        !attach(s, errp)) {
        rdma_hca_backend_put(&s->hca);
        return;
    }
    if (!pvrdma_limits_check(s, errp) || !add_bars(s, errp)) {
        rdma_hca_detach(&s->hca);
        return;
    }
    s->hca.max_mr_pages = s->conf.max_mr_pages;
    s->contexts = bitmap_new(s->conf.max_uar);
    s->wqe = g_malloc0(RDMA_PAGE_SIZE);
    QTAILQ_INIT(&s->fired);
    s->retry = timer_new_ms(QEMU_CLOCK_VIRTUAL, retry, s);
    rdma_hca_start(&s->hca);
    s->vm_running = runstate_is_running();
    s->vm_change = qemu_add_vm_change_state_handler(vm_changed, s);
    vmstate_register_any(VMSTATE_IF(s), &vmstate_pvrdma_limits, s);
}

static void end(RdmaHca *hca)
{
    Pvrdma *s = pvrdma_of(hca);

    qemu_del_vm_change_state_handler(s->vm_change);
    rdma_hca_detach(hca);
    pvrdma_cmd_forget(s);
    rdma_hca_free(hca);
    timer_free(s->retry);
    g_free(s->contexts);
    g_free(s->wqe);
}

static void pvrdma_exit(PCIDevice *pci)
{
    Pvrdma *s = PVRDMA(pci);

    vmstate_unregister(VMSTATE_IF(s), &vmstate_pvrdma_limits, s);
    rdma_hca_end(&s->hca, end);
    msix_uninit_exclusive_bar(pci);
}

static void write_config(PCIDevice *pci, uint32_t addr, uint32_t value,
                         int len)
{
    Pvrdma *s = PVRDMA(pci);

    pci_default_write_config(pci, addr, value, len);
    if (ranges_overlap(addr, len, PCI_COMMAND, 2)) {
        pvrdma_update_running(s);
    }
}

static void instance_init(Object *obj)
{
    qemu_cond_init(&PVRDMA(obj)->cmd.done);
}

static void instance_finalize(Object *obj)
{
    rdma_hca_gids_free(&PVRDMA(obj)->hca);
    qemu_cond_destroy(&PVRDMA(obj)->cmd.done);
}

static void class_init(ObjectClass *klass, RdmaClassData data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);

    pvrdma_props_init(klass);
    dc->desc = "RDMA adapter (RoCEv2) for the driver vmw_pvrdma";
    dc->vmsd = &vmstate_pvrdma;
    device_class_set_legacy_reset(dc, reset);
    set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
    pc->realize = realize;
    pc->exit = pvrdma_exit;
    pc->config_write = write_config;
    pc->vendor_id = PVRDMA_PCI_VENDOR;
    pc->device_id = PVRDMA_PCI_DEVICE;
    pc->class_id = PCI_CLASS_NETWORK_OTHER;
}

static const TypeInfo pvrdma_info = {
    .name = TYPE_PVRDMA,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(Pvrdma),
    .instance_init = instance_init,
    .instance_finalize = instance_finalize,
    .class_init = class_init,
    .interfaces = (InterfaceInfo[]) {
        { INTERFACE_CONVENTIONAL_PCI_DEVICE },
        { }
    },
};

static void register_types(void)
{
    type_register_static(&pvrdma_info);
}

type_init(register_types)
