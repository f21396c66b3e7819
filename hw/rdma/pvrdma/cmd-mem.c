/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands of contexts, protection domains and memory regions.
 */
#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/bswap.h"
#include "qemu/log.h"
#include "int.h"

/* Bits of VERSION_WIDE_PFN that older drivers leave undefined */
#define NARROW_PFN 0xffffffffull

static bool has_objects(Pvrdma *s, uint32_t ctx)
{
    RdmaHcaPd *pd;
    RdmaHcaCq *cq;

    RDMA_HCA_FOREACH(&s->hca.pds, n, pd) {
        if (pd->context == ctx) {
            return true;
        }
    }
    RDMA_HCA_FOREACH(&s->hca.cqs, n, cq) {
        if (pvrdma_cq(cq)->ctx == ctx) {
            return true;
        }
    }
    return false;
}

/*
 * A context has the number of its UAR page. One without objects may be of a
 * driver that was interrupted while it waited for the reply: it never destroys
 * that context, but uses the page again.
 */
int pvrdma_create_uc(Pvrdma *s, const void *req, void *rsp)
{
    const PvrdmaCmdCreateUc *cmd = req;
    PvrdmaRspHandle *p = rsp;
    uint64_t base = pci_get_bar_addr(PCI_DEVICE(s), PVRDMA_BAR_UAR) >>
                    RDMA_PAGE_SHIFT;
    uint64_t mask = s->driver_version < PVRDMA_VERSION_WIDE_PFN ? NARROW_PFN
                                                                : UINT64_MAX;
    uint64_t page = (le64_to_cpu(cmd->pfn) - base) & mask;

    if (!rdma_hca_check_range("UAR page", page, 1, s->conf.max_uar - 1)) {
        return -EINVAL;
    }
    if (test_and_set_bit(page, s->contexts) && has_objects(s, page)) {
        return -EBUSY;
    }
    p->handle = cpu_to_le32(page);
    return 0;
}

/* Whose objects to destroy: those of a PD, or, if @pdn is 0, of a context */
typedef struct Owner {
    uint32_t pdn;
    uint32_t ctx;
} Owner;

static bool owns_pd(const Owner *owner, const RdmaHcaPd *pd)
{
    return owner->pdn ? pd->pdn == owner->pdn : pd->context == owner->ctx;
}

static bool owns_qp(const Owner *owner, const void *obj)
{
    return owns_pd(owner, ((const RdmaHcaQp *)obj)->pd);
}

static bool owns_srq(const Owner *owner, const void *obj)
{
    return owns_pd(owner, ((const RdmaHcaSrq *)obj)->pd);
}

static bool owns_mr(const Owner *owner, const void *obj)
{
    return owns_pd(owner, ((const RdmaHcaMr *)obj)->pd);
}

static bool owns_pd_itself(const Owner *owner, const void *obj)
{
    return owns_pd(owner, obj);
}

static bool owns_cq(const Owner *owner, const void *obj)
{
    return !owner->pdn && ((const PvrdmaCq *)obj)->ctx == owner->ctx;
}

static int mr_drop(Pvrdma *s, uint32_t mrn)
{
    return rdma_hca_mr_dereg(&s->hca, mrn);
}

static int pd_drop(Pvrdma *s, uint32_t pdn)
{
    return rdma_hca_pd_destroy(&s->hca, pdn);
}

/* An object comes before those that it uses. */
static const struct {
    size_t table;                   /* offset in RdmaHca */
    bool (*owns)(const Owner *owner, const void *obj);
    int (*drop)(Pvrdma *s, uint32_t id);
} kinds[] = {
    { offsetof(RdmaHca, qps), owns_qp, pvrdma_qp_drop },
    { offsetof(RdmaHca, srqs), owns_srq, pvrdma_srq_drop },
    { offsetof(RdmaHca, mrs), owns_mr, mr_drop },
    { offsetof(RdmaHca, pds), owns_pd_itself, pd_drop },
    { offsetof(RdmaHca, cqs), owns_cq, pvrdma_cq_drop },
};

/*
 * Destroy all objects of a PD or context: a driver that was interrupted while
 * it waited for a new object does not know that object, and never destroys it.
 *
 * Each table is read once, because there may be many PDs and many objects.
 *
 * After -EINPROGRESS the command goes on at the object that was in progress.
 * The backend has the result for that one, and would return it for another one,
 * such as one that it could not destroy.
 */
static int drop_all(Pvrdma *s, const Owner *owner)
{
    PvrdmaDrop *d = &s->cmd.drop;

    for (; d->kind < ARRAY_SIZE(kinds); d->kind++, d->id = 0) {
        const RdmaHcaTable *t = (void *)&s->hca + kinds[d->kind].table;
        void *obj;

        for (; (obj = rdma_hca_table_next(t, &d->id)); d->id++) {
            int ret = kinds[d->kind].owns(owner, obj)
                      ? kinds[d->kind].drop(s, d->id) : 0;

            if (ret == -EINPROGRESS) {
                return ret;
            }
            d->ret = ret ?: d->ret;
        }
    }
    return d->ret;
}

int pvrdma_destroy_uc(Pvrdma *s, const void *req, void *rsp)
{
    const Owner owner = { .ctx = pvrdma_handle_of(req) };
    int ret;

    if (owner.ctx == PVRDMA_KERNEL || !pvrdma_has_context(s, owner.ctx)) {
        return -ENOENT;
    }
    ret = drop_all(s, &owner);
    if (!ret) {
        clear_bit(owner.ctx, s->contexts);
    }
    return ret;
}

int pvrdma_create_pd(Pvrdma *s, const void *req, void *rsp)
{
    uint32_t ctx = pvrdma_handle_of(req);
    PvrdmaRspHandle *p = rsp;
    RdmaHcaPd *pd;
    uint32_t pdn;
    int ret;

    if (!pvrdma_has_context(s, ctx)) {
        return -ENOENT;
    }
    ret = rdma_hca_pd_create(&s->hca, &pdn);
    if (!ret) {
        pd = rdma_hca_table_get(&s->hca.pds, pdn);
        pd->context = ctx;
        p->handle = cpu_to_le32(pdn);
    }
    return ret;
}

int pvrdma_destroy_pd(Pvrdma *s, const void *req, void *rsp)
{
    const Owner owner = { .pdn = pvrdma_handle_of(req) };
    RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, owner.pdn);

    return pd && pd->users ? drop_all(s, &owner) : pd_drop(s, owner.pdn);
}

/* All of memory is for the kernel: a process could name any page. */
static int get_type(Pvrdma *s, const PvrdmaCmdCreateMr *cmd, RdmaMrAttr *attr)
{
    RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, attr->pdn);
    uint32_t flags = le32_to_cpu(cmd->flags);

    switch (flags) {
    case 0:
        attr->type = RDMA_MR_USER;
        return 0;
    case PVRDMA_MR_DMA:
        attr->type = RDMA_MR_DMA;
        break;
    case PVRDMA_MR_FAST_REG:
        attr->type = RDMA_MR_FAST_REG;
        attr->max_pages = le32_to_cpu(cmd->nchunks);
        if (!rdma_hca_check_range("nchunks", attr->max_pages, 1,
                                  PVRDMA_MAX_PAGE_LIST)) {
            return -EINVAL;
        }
        break;
    default:
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: flags 0x%x of a region are "
                      "neither 0, 1 nor 2\n", flags);
        return -EINVAL;
    }
    if (pd && pd->context != PVRDMA_KERNEL) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: a process may not have a "
                      "region with flags 0x%x\n", flags);
        return -EPERM;
    }
    return 0;
}

int pvrdma_create_mr(Pvrdma *s, const void *req, void *rsp)
{
    const PvrdmaCmdCreateMr *cmd = req;
    PvrdmaRspCreateMr *p = rsp;
    RdmaHcaPages pages = {
        .iova = le64_to_cpu(cmd->start),
        .length = le64_to_cpu(cmd->length),
        .table = le64_to_cpu(cmd->dir),
        .npages = le32_to_cpu(cmd->nchunks),
        .levels = PVRDMA_DIR_LEVELS,
    };
    RdmaMrAttr attr = {
        .pdn = le32_to_cpu(cmd->pd),
        .access = le32_to_cpu(cmd->access),
    };
    int ret = get_type(s, cmd, &attr);

    if (!ret) {
        ret = rdma_hca_mr_create(&s->hca, &attr, &pages);
    }
    p->handle = cpu_to_le32(attr.mrn);
    p->lkey = cpu_to_le32(attr.lkey);
    p->rkey = cpu_to_le32(attr.rkey);
    return ret;
}

int pvrdma_destroy_mr(Pvrdma *s, const void *req, void *rsp)
{
    return rdma_hca_mr_dereg(&s->hca, pvrdma_handle_of(req));
}
