/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reset: by the driver, by a new one, or by the machine.
 */
#include "qemu/osdep.h"
#include "qemu/bitmap.h"
#include "qemu/timer.h"
#include "trace.h"
#include "int.h"

void pvrdma_reset(Pvrdma *s)
{
    if (!rdma_hca_enter_or_put_off(&s->hca, PVRDMA_PENDING_RESET)) {
        return;
    }
    trace_pvrdma_reset(s);
    s->active = false;
    pvrdma_update_running_inside(&s->hca);
    pvrdma_cmd_forget(s);
    rdma_hca_reset(&s->hca);
    s->dsr = 0;
    s->err = 0;
    s->imr = 0;
    pvrdma_reset_icr(s);
    bitmap_zero(s->contexts, s->conf.max_uar);
    timer_del(s->retry);
    rdma_hca_leave(&s->hca);
}
