/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks of the images of memory regions and windows.
 */
#include <glib.h>
#include "state-check.h"

/* Memory regions */

static char *check_mapping(const RoceMrImage *image, bool mapped, bool pending)
{
    const RdmaMrAttr *attr = &image->attr;

    if (mapped) {
        const RocePageList list = {
            .prefix = "",
            .iova = attr->iova,
            .length = attr->length,
            .pages = attr->pages,
            .npages = attr->npages,
            .shift = attr->page_shift,
        };

        REFUSE_AS(roce_check_page_list(&list));
    } else {
        REFUSE_IF(attr->npages, "npages %u is not 0, but the region has no "
                  "page list", attr->npages);
    }
    if (pending) {
        const RocePageList list = {
            .prefix = "pending_",
            .iova = image->pending_iova,
            .length = image->pending_length,
            .pages = image->pending_pages,
            .npages = image->pending_npages,
            .shift = RDMA_PAGE_SHIFT,
        };

        REFUSE_AS(roce_check_page_list(&list));
    } else {
        REFUSE_IF(image->pending_npages, "pending_npages %u is not 0, but "
                  "pending is 0", image->pending_npages);
    }
    return NULL;
}

/* Check a region of @type, which is always valid and cannot be registered. */
static char *check_valid(const RoceMrImage *image, const char *type)
{
    REFUSE_IF(!image->valid, "valid is 0, but a %s region is always valid",
              type);
    REFUSE_IF(image->pending, "pending is 1, but a %s region is never "
              "registered", type);
    return NULL;
}

char *roce_check_mr(const RoceEngine *e, const RoceMrImage *image)
{
    const RdmaMrAttr *attr = &image->attr;
    uint8_t max_shift = attr->type == RDMA_MR_USER ? ROCE_MAX_PAGE_SHIFT
                                                   : RDMA_PAGE_SHIFT;

    REFUSE_IF(attr->mrn < 1 || attr->mrn > e->config.max_mr,
              "mrn %u is not in 1..%u", attr->mrn, e->config.max_mr);
    REFUSE_IF(roce_table_get(&e->mrs, attr->mrn), "mrn %u is in use",
              attr->mrn);
    REFUSE_IF(attr->lkey >> 8 != attr->mrn, "lkey 0x%x is one of mrn %u, "
              "not of %u", attr->lkey, attr->lkey >> 8, attr->mrn);
    REFUSE_IF(attr->rkey && attr->rkey >> 8 != attr->mrn, "rkey 0x%x is one "
              "of mrn %u, not of %u", attr->rkey, attr->rkey >> 8, attr->mrn);
    REFUSE_NOT_BOOL(image, valid);
    REFUSE_NOT_BOOL(image, pending);
    REFUSE_IF(attr->page_shift < RDMA_PAGE_SHIFT ||
              attr->page_shift > max_shift,
              "page_shift %u is not in %u..%u, the limits of type %u",
              attr->page_shift, RDMA_PAGE_SHIFT, max_shift, attr->type);

    switch (attr->type) {
    case RDMA_MR_DMA:
        REFUSE_AS(check_valid(image, "DMA"));
        REFUSE_IF(attr->rkey, "rkey 0x%x is not 0, but a DMA region has none",
                  attr->rkey);
        return check_mapping(image, false, false);
    case RDMA_MR_USER:
        REFUSE_AS(check_valid(image, "user"));
        return check_mapping(image, true, false);
    case RDMA_MR_FAST_REG:
        REFUSE_IF(attr->npages > attr->max_pages,
                  "npages %u exceeds max_pages %u", attr->npages,
                  attr->max_pages);
        REFUSE_IF(image->pending_npages > attr->max_pages,
                  "pending_npages %u exceeds max_pages %u",
                  image->pending_npages, attr->max_pages);
        return check_mapping(image, image->valid, image->pending);
    default:
        return g_strdup_printf("unknown type %u", attr->type);
    }
}

/* Memory windows */

/* The reason why roce_mw_region_ok() returned false */
static char *explain_binding(const RoceMr *mr, const RoceMwImage *image)
{
    uint32_t access = image->access;

    REFUSE_IF(access & ~ROCE_MW_ACCESS,
              "access 0x%x has rights beyond 0x%x, those of a window", access,
              ROCE_MW_ACCESS);
    REFUSE_IF(!mr, "mrn %u is not a memory region", image->mrn);
    REFUSE_IF(!mr->valid, "mrn %u is a region that is not valid", image->mrn);
    REFUSE_IF(mr->attr.type == RDMA_MR_DMA,
              "mrn %u is a DMA region, which takes no windows", image->mrn);
    REFUSE_IF(!(mr->attr.access & RDMA_ACCESS_MW_BIND),
              "MR %u has access 0x%x, without the right to bind windows (0x%x)",
              image->mrn, mr->attr.access, RDMA_ACCESS_MW_BIND);
    REFUSE_IF((access & (RDMA_ACCESS_REMOTE_WRITE |
                         RDMA_ACCESS_REMOTE_ATOMIC)) &&
              !(mr->attr.access & RDMA_ACCESS_LOCAL_WRITE),
              "access 0x%x of the window lets peers write, but MR %u has "
              "access 0x%x", access, image->mrn, mr->attr.access);
    REFUSE_IF(!image->length, "length of a bound window is 0");
    return g_strdup_printf("addr 0x%" PRIx64 " and length %" PRIu64 " are not "
                           "in MR %u with iova 0x%" PRIx64 " and length %"
                           PRIu64, image->addr, image->length, image->mrn,
                           mr->attr.iova, mr->attr.length);
}

static char *check_binding(const RoceEngine *e, const RoceMwImage *image)
{
    const RoceMr *mr = roce_mr_find(e, image->mrn);
    const RoceQp *qp = roce_qp_find(e, image->qpn);
    RoceMwBinding binding = {
        .addr = image->addr,
        .length = image->length,
        .access = image->access,
    };

    if (!roce_mw_region_ok(mr, &binding)) {
        return explain_binding(mr, image);
    }
    REFUSE_IF(mr->attr.pdn != image->attr.pdn,
              "window bound to MR %u of PD %u, not of PD %u", image->mrn,
              mr->attr.pdn, image->attr.pdn);
    if (image->attr.type == RDMA_MW_TYPE_2) {
        REFUSE_IF(!qp, "qpn %u is not a queue pair", image->qpn);
        REFUSE_IF(roce_is_ud(qp), "qpn %u is of type %s, which binds no "
                  "windows", image->qpn, roce_qp_type_name(qp->init.qp_type));
        REFUSE_IF(qp->init.pdn != image->attr.pdn,
                  "window bound by QP %u of PD %u, not of PD %u", image->qpn,
                  qp->init.pdn, image->attr.pdn);
    } else {
        REFUSE_IF(image->qpn, "qpn %u is not 0, but the type is %u, not %u",
                  image->qpn, image->attr.type, RDMA_MW_TYPE_2);
    }
    return NULL;
}

char *roce_check_mw(const RoceEngine *e, const RoceMwImage *image)
{
    static const char unbound[] = "is not 0, but the window is not bound";

    REFUSE_NOT_BOOL(image, bound);
    if (image->bound) {
        return check_binding(e, image);
    }
    REFUSE_IF(image->mrn, "mrn %u %s", image->mrn, unbound);
    REFUSE_IF(image->qpn, "qpn %u %s", image->qpn, unbound);
    REFUSE_IF(image->access, "access 0x%x %s", image->access, unbound);
    REFUSE_IF(image->addr, "addr 0x%" PRIx64 " %s", image->addr, unbound);
    REFUSE_IF(image->length, "length %" PRIu64 " %s", image->length, unbound);
    return NULL;
}

char *roce_explain_mw(const RoceEngine *e, const RdmaMwAttr *attr)
{
    REFUSE_IF(attr->mwn < 1 || attr->mwn > e->config.max_mr,
              "mwn %u is not in 1..%u", attr->mwn, e->config.max_mr);
    REFUSE_IF(attr->rkey >> 8 != attr->mwn, "rkey 0x%x is one of mwn %u, "
              "not of %u", attr->rkey, attr->rkey >> 8, attr->mwn);
    REFUSE_IF(attr->type != RDMA_MW_TYPE_1 && attr->type != RDMA_MW_TYPE_2,
              "unknown type %u", attr->type);
    return g_strdup_printf("mwn %u is in use", attr->mwn);
}
