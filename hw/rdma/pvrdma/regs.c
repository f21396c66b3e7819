/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registers, and doorbells, which are pages of the UAR.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "trace.h"
#include "int.h"

#define REGS_SIZE 4096

static uint32_t mac_word(Pvrdma *s, unsigned first, unsigned n)
{
    RdmaPortAttr port = {};
    uint32_t word = 0;

    rdma_hca_port_get(&s->hca, &port);
    for (unsigned i = 0; i < n; i++) {
        word |= (uint32_t)port.mac[first + i] << (8 * i);
    }
    return word;
}

static uint64_t regs_read(void *opaque, hwaddr addr, unsigned size)
{
    Pvrdma *s = opaque;

    switch (addr) {
    case PVRDMA_REG_VERSION:
        return pvrdma_version(s);
    case PVRDMA_REG_ERR:
        return s->err;
    case PVRDMA_REG_ICR:
        return pvrdma_read_icr(s);
    case PVRDMA_REG_IMR:
        return s->imr;
    case PVRDMA_REG_MAC_LOW:
        return mac_word(s, 0, 4);
    case PVRDMA_REG_MAC_HIGH:
        return mac_word(s, 4, 2);
    default:
        return 0;
    }
}

static void control(Pvrdma *s, uint32_t value)
{
    switch (value) {
    case PVRDMA_CTL_ACTIVATE:
        s->err = s->dsr ? 0 : EINVAL;
        s->active = s->dsr;
        pvrdma_update_running(s);
        break;
    case PVRDMA_CTL_UNQUIESCE:
        s->err = s->active ? 0 : EPERM;
        break;
    case PVRDMA_CTL_RESET:
        pvrdma_reset(s);
        break;
    default:
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: unknown value %u of CTL\n",
                      value);
        s->err = EINVAL;
    }
}

static void regs_write(void *opaque, hwaddr addr, uint64_t value,
                       unsigned size)
{
    Pvrdma *s = opaque;

    trace_pvrdma_reg_write(s, addr, value);
    switch (addr) {
    case PVRDMA_REG_DSR_LOW:
        s->dsr_low = value;
        break;
    case PVRDMA_REG_DSR_HIGH:
        pvrdma_dsr_set(s, value << 32 | s->dsr_low);
        break;
    case PVRDMA_REG_CTL:
        control(s, value);
        break;
    case PVRDMA_REG_REQUEST:
        pvrdma_cmd_request(s);
        break;
    case PVRDMA_REG_IMR:
        s->imr = value;
        /* Events and completions may wait for this. */
        rdma_hca_bh_schedule(&s->hca);
        break;
    }
}

static const MemoryRegionOps regs_ops = {
    .read = regs_read,
    .write = regs_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 4 },
};

/* Doorbells. Those for an object of another context have no effect. */

static void ring_qp(Pvrdma *s, uint32_t ctx, uint32_t value)
{
    RdmaHcaQp *qp = rdma_hca_table_get(&s->hca.qps,
                                       value & PVRDMA_UAR_HANDLE);

    if (!qp || qp->pd->context != ctx) {
        return;
    }
    /* rdma_hca_ring() may run a reset that frees the QP: look it up again. */
    if ((value & PVRDMA_UAR_QP_RECV) && !qp->srq) {
        rdma_hca_ring(&s->hca, &qp->rq);
        qp = rdma_hca_table_get(&s->hca.qps, value & PVRDMA_UAR_HANDLE);
    }
    if ((value & PVRDMA_UAR_QP_SEND) && qp) {
        rdma_hca_ring(&s->hca, &qp->sq);
    }
}

static void ring_cq(Pvrdma *s, uint32_t ctx, uint32_t value)
{
    RdmaHcaCq *cq = rdma_hca_cq_get(&s->hca, value & PVRDMA_UAR_HANDLE);

    if (!cq || pvrdma_cq(cq)->ctx != ctx) {
        return;
    }
    if (value & PVRDMA_UAR_CQ_ARM) {
        pvrdma_cq(cq)->arm = PVRDMA_ARM_NEXT;
    } else if ((value & PVRDMA_UAR_CQ_ARM_SOLICITED) &&
               pvrdma_cq(cq)->arm == PVRDMA_ARM_NONE) {
        pvrdma_cq(cq)->arm = PVRDMA_ARM_SOLICITED;
    }
}

static void ring_srq(Pvrdma *s, uint32_t ctx, uint32_t value)
{
    RdmaHcaSrq *srq = rdma_hca_table_get(&s->hca.srqs,
                                         value & PVRDMA_UAR_HANDLE);

    if (srq && srq->pd->context == ctx && (value & PVRDMA_UAR_SRQ_RECV)) {
        rdma_hca_ring(&s->hca, &srq->wq);
    }
}

static uint64_t uar_read(void *opaque, hwaddr addr, unsigned size)
{
    return 0;
}

static void uar_write(void *opaque, hwaddr addr, uint64_t value, unsigned size)
{
    uint32_t ctx = addr / RDMA_PAGE_SIZE;
    Pvrdma *s = opaque;

    if (!pvrdma_is_active(s)) {
        return;
    }
    trace_pvrdma_doorbell(s, addr, value);
    switch (addr % RDMA_PAGE_SIZE) {
    case PVRDMA_UAR_QP:
        ring_qp(s, ctx, value);
        break;
    case PVRDMA_UAR_CQ:
        ring_cq(s, ctx, value);
        break;
    case PVRDMA_UAR_SRQ:
        ring_srq(s, ctx, value);
        break;
    }
}

static const MemoryRegionOps uar_ops = {
    .read = uar_read,
    .write = uar_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 4 },
};

void pvrdma_regs_init(Pvrdma *s)
{
    PCIDevice *pci = PCI_DEVICE(s);

    memory_region_init_io(&s->regs, OBJECT(s), &regs_ops, s, "pvrdma-regs",
                          REGS_SIZE);
    pci_register_bar(pci, PVRDMA_BAR_REGS, PCI_BASE_ADDRESS_SPACE_MEMORY,
                     &s->regs);
    memory_region_init_io(&s->uar, OBJECT(s), &uar_ops, s, "pvrdma-uar",
                          (uint64_t)s->conf.max_uar * RDMA_PAGE_SIZE);
    pci_register_bar(pci, PVRDMA_BAR_UAR, PCI_BASE_ADDRESS_SPACE_MEMORY,
                     &s->uar);
}
