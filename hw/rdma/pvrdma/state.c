/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * May the device access guest memory? That depends on the driver, the bus and
 * the VM.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "int.h"

static bool is_bus_master(Pvrdma *s)
{
    return pci_get_word(s->parent_obj.config + PCI_COMMAND) &
           PCI_COMMAND_MASTER;
}

/*
 * May the device access guest memory while the VM runs? A device that was
 * unplugged has no configuration space any more.
 */
static bool is_ready(Pvrdma *s)
{
    return s->active && !s->hca.unrealizing && is_bus_master(s);
}

bool pvrdma_is_active(Pvrdma *s)
{
    return is_ready(s) && s->vm_running &&
           !rdma_hca_is_pending(&s->hca, PVRDMA_PENDING_RESET);
}

void pvrdma_update_running_inside(RdmaHca *hca)
{
    Pvrdma *s = pvrdma_of(hca);
    bool ready = is_ready(s);
    bool running = ready && s->vm_running;

    if (rdma_hca_set_running(hca, running, ready) && running) {
        /* Kicks were ignored until now. */
        rdma_hca_kick_all(hca);
        rdma_hca_bh_schedule(hca);
    }
}

void pvrdma_update_running(Pvrdma *s)
{
    if (rdma_hca_busy(&s->hca)) {
        rdma_hca_bh_schedule(&s->hca);
        return;
    }
    rdma_hca_enter(&s->hca);
    pvrdma_update_running_inside(&s->hca);
    rdma_hca_leave(&s->hca);
}

bool pvrdma_has_context(const Pvrdma *s, uint32_t ctx)
{
    return ctx == PVRDMA_KERNEL ||
           (ctx < s->conf.max_uar && test_bit(ctx, s->contexts));
}
