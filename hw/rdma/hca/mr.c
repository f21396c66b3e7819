/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions: access rights, keys, and the pages that are charged to them
 */
#include "qemu/osdep.h"
#include "qemu/guest-random.h"
#include "trace.h"
#include "int.h"

#define ACCESS_KNOWN (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE | \
                      RDMA_ACCESS_MW_BIND | RDMA_ACCESS_HINTS | \
                      RDMA_ACCESS_ON_DEMAND)
/* Flags that the backend gets; the others have no effect. */
#define ACCESS_EFFECTIVE (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE | \
                          RDMA_ACCESS_MW_BIND | RDMA_ACCESS_FLUSH_GLOBAL)
/* Flags that let peers access the region, so that it has an rkey. */
#define ACCESS_PEERS (RDMA_ACCESS_REMOTE | RDMA_ACCESS_FLUSH)

static int check_access(RdmaHca *hca, uint32_t access)
{
    uint32_t known = ACCESS_KNOWN;

    if (hca->extensions & RDMA_EXT_FLUSH) {
        known |= RDMA_ACCESS_FLUSH;
    }
    if (!rdma_hca_check_flags("access", access, known)) {
        return -EINVAL;
    }
    if (access & (RDMA_ACCESS_ON_DEMAND | RDMA_ACCESS_FLUSH_PERSISTENT)) {
        return -ENOTSUP;
    }
    /* Remote write and atomic need local write (IBTA 10.6.3.1). */
    if ((access & (RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_ATOMIC)) &&
        !(access & RDMA_ACCESS_LOCAL_WRITE)) {
        rdma_hca_guest_error("access 0x%x has remote write or atomic without "
                             "local write", access);
        return -EINVAL;
    }
    return 0;
}

static int check_mem_mgt(RdmaHca *hca)
{
    if (rdma_hca_has_mem_mgt(hca)) {
        return 0;
    }
    rdma_hca_guest_error("fast registration without the capability "
                         "MEM_MGT_EXTENSIONS");
    return -ENOTSUP;
}

uint32_t rdma_hca_mr_new_key(uint32_t mrn)
{
    uint8_t low;

    qemu_guest_getrandom_nofail(&low, sizeof(low));
    return mrn << 8 | low;
}

void rdma_hca_mr_add(RdmaHca *hca, RdmaHcaMr *mr)
{
    mr->pd = rdma_hca_table_get(&hca->pds, mr->pdn);
    mr->pd->users++;
    hca->n_mws += mr->mw_type != 0;
    rdma_hca_table_set(&hca->mrs, mr->mrn, mr);
}

void rdma_hca_mr_remove(RdmaHca *hca, RdmaHcaMr *mr)
{
    rdma_hca_table_clear(&hca->mrs, mr->mrn);
    hca->charged_pages -= mr->npages + mr->pending;
    hca->n_mws -= mr->mw_type != 0;
    mr->pd->users--;
    g_free(mr);
}

/* Check the page list @p and read it into @attr. */
static int read_pages(RdmaHca *hca, RdmaHcaPages *p, RdmaMrAttr *attr)
{
    int ret = rdma_hca_pages_check(hca, p);

    attr->iova = p->iova;
    attr->length = p->length;
    attr->npages = p->npages;
    attr->page_shift = p->page_shift;
    return ret ?: rdma_hca_pages_read_on(hca, p, &attr->pages);
}

static int check_create(RdmaHca *hca, const RdmaMrAttr *attr)
{
    int ret = attr->type == RDMA_MR_FAST_REG ? check_mem_mgt(hca) : 0;

    if (!ret) {
        ret = check_access(hca, attr->access);
    }
    if (ret) {
        return ret;
    }
    if (attr->type == RDMA_MR_DMA && (attr->access & ACCESS_PEERS)) {
        rdma_hca_guest_error("access 0x%x to all of memory has remote rights, "
                             "which are refused", attr->access);
        return -EPERM;
    }
    if (attr->type == RDMA_MR_FAST_REG &&
        !rdma_hca_check_range("max_num_sg", attr->max_pages, 1,
                              RDMA_HCA_MAX_PAGE_LIST)) {
        return -EINVAL;
    }
    if (!rdma_hca_table_get(&hca->pds, attr->pdn)) {
        return -ENOENT;
    }
    return hca->mrs.count - hca->n_mws < hca->limits.max_mr &&
           hca->mrs.count < hca->mrs.end - hca->mrs.first ? 0 : -ENOMEM;
}

static int create(RdmaHca *hca, RdmaMrAttr *attr)
{
    RdmaHcaMr *mr;
    int ret;

    rdma_hca_table_find(&hca->mrs, &attr->mrn);
    attr->access &= ACCESS_EFFECTIVE;
    attr->lkey = rdma_hca_mr_new_key(attr->mrn);
    /* A fast registration needs an rkey: REG_MR sets its access rights. */
    attr->rkey = (attr->access & ACCESS_PEERS) ||
                 attr->type == RDMA_MR_FAST_REG ? attr->lkey : 0;
    mr = g_new0(RdmaHcaMr, 1);
    mr->mrn = attr->mrn;
    mr->pdn = attr->pdn;
    mr->type = attr->type;
    mr->max_pages = attr->max_pages;
    mr->npages = attr->npages;
    rdma_hca_mr_add(hca, mr);
    trace_rdma_hca_mr_create(hca->owner, mr->mrn, mr->type, attr->lkey,
                             attr->access, attr->iova, attr->length);
    ret = hca->bc->create_mr(hca->backend, attr);
    if (ret) {
        rdma_hca_mr_remove(hca, mr);
        rdma_hca_table_search_from(&hca->mrs, attr->mrn);
        return ret;
    }
    mr->key = attr->lkey;
    mr->rkey = attr->rkey;
    return 0;
}

int rdma_hca_mr_create(RdmaHca *hca, RdmaMrAttr *attr, RdmaHcaPages *p)
{
    int ret = check_create(hca, attr);

    if (!ret && attr->type == RDMA_MR_USER) {
        ret = read_pages(hca, p, attr);
    }
    if (ret) {
        return ret;
    }
    ret = create(hca, attr);
    if (attr->npages) {
        rdma_hca_pages_finish(hca, ret, attr->pages, p);
    }
    return ret;
}

static int check_rereg(RdmaHca *hca, const RdmaHcaMr *mr, uint32_t flags,
                       const RdmaMrAttr *attr)
{
    if (!hca->bc->modify_mr) {
        return -ENOTSUP;
    }
    if (!mr) {
        return -ENOENT;
    }
    if (!flags || mr->type != RDMA_MR_USER ||
        !rdma_hca_check_flags("flags", flags, RDMA_REREG_FLAGS)) {
        return -EINVAL;
    }
    if ((flags & RDMA_REREG_PD) &&
        !rdma_hca_table_get(&hca->pds, attr->pdn)) {
        return -ENOENT;
    }
    return flags & RDMA_REREG_ACCESS ? check_access(hca, attr->access) : 0;
}

/*
 * Set the keys of a reregistration. A new translation gets a new key, so that
 * holders of the old key lose access.
 */
static void renew_keys(const RdmaHcaMr *mr, uint32_t flags, RdmaMrAttr *attr)
{
    bool peers = flags & RDMA_REREG_ACCESS ? attr->access & ACCESS_PEERS
                                           : mr->rkey != 0;

    attr->lkey = mr->key;
    while ((flags & RDMA_REREG_TRANSLATION) && attr->lkey == mr->key) {
        attr->lkey = rdma_hca_mr_new_key(mr->mrn);
    }
    attr->rkey = peers ? attr->lkey : 0;
}

static int rereg(RdmaHca *hca, RdmaHcaMr *mr, uint32_t flags, RdmaMrAttr *attr)
{
    int ret;

    attr->type = mr->type;
    attr->access &= flags & RDMA_REREG_ACCESS ? ACCESS_EFFECTIVE : 0;
    if (!(flags & RDMA_REREG_PD)) {
        attr->pdn = mr->pdn;
    }
    renew_keys(mr, flags, attr);
    trace_rdma_hca_mr_rereg(hca->owner, mr->mrn, flags, attr->lkey);
    /* Both lists are charged until the backend has taken the new one. */
    ret = hca->bc->modify_mr(hca->backend, flags, attr);
    if (ret) {
        hca->charged_pages -= attr->npages;
        return ret;
    }
    mr->key = attr->lkey;
    mr->rkey = attr->rkey;
    mr->pd->users--;
    mr->pdn = attr->pdn;
    mr->pd = rdma_hca_table_get(&hca->pds, mr->pdn);
    mr->pd->users++;
    if (attr->npages) {
        hca->charged_pages -= mr->npages;
        mr->npages = attr->npages;
    }
    return 0;
}

int rdma_hca_mr_rereg(RdmaHca *hca, uint32_t flags, RdmaMrAttr *attr,
                      RdmaHcaPages *p)
{
    RdmaHcaMr *mr = rdma_hca_mr_get(hca, attr->mrn);
    int ret = check_rereg(hca, mr, flags, attr);

    if (!ret && (flags & RDMA_REREG_TRANSLATION)) {
        ret = read_pages(hca, p, attr);
    }
    if (ret) {
        return ret;
    }
    ret = rereg(hca, mr, flags, attr);
    if (attr->npages) {
        rdma_hca_pages_finish(hca, ret, attr->pages, p);
    }
    return ret;
}

static int check_map(RdmaHca *hca, const RdmaHcaMr *mr, uint32_t npages)
{
    int ret = check_mem_mgt(hca);

    if (ret) {
        return ret;
    }
    if (!mr) {
        return -ENOENT;
    }
    return mr->type == RDMA_MR_FAST_REG &&
           rdma_hca_check_range("npages", npages, 0, mr->max_pages)
           ? 0 : -EINVAL;
}

static int map(RdmaHca *hca, RdmaHcaMr *mr, const RdmaHcaPages *p,
               uint64_t *pages)
{
    uint32_t in_use;
    int ret;

    trace_rdma_hca_mr_map(hca->owner, mr->mrn, p->iova, p->length);
    ret = hca->bc->map_mr(hca->backend, mr->mrn, p->iova, p->length, pages,
                          p->npages);
    if (ret) {
        hca->charged_pages -= p->npages;
        return ret;
    }
    /*
     * A REG_MR may have put the pending list to use, or the backend has dropped
     * it: charge the longer one.
     */
    in_use = MAX(mr->npages, mr->pending);
    hca->charged_pages -= mr->npages + mr->pending - in_use;
    mr->npages = in_use;
    mr->pending = p->npages;
    return 0;
}

int rdma_hca_mr_map(RdmaHca *hca, uint32_t mrn, RdmaHcaPages *p)
{
    RdmaHcaMr *mr = rdma_hca_mr_get(hca, mrn);
    uint64_t *pages;
    int ret = check_map(hca, mr, p->npages) ?: rdma_hca_pages_check(hca, p) ?:
              rdma_hca_pages_read_on(hca, p, &pages);

    if (ret) {
        return ret;
    }
    ret = map(hca, mr, p, pages);
    rdma_hca_pages_finish(hca, ret, pages, p);
    return ret;
}

int rdma_hca_mr_dereg(RdmaHca *hca, uint32_t mrn)
{
    RdmaHcaMr *mr = rdma_hca_mr_get(hca, mrn);
    int ret = !mr ? -ENOENT :
              hca->bc->destroy(hca->backend, RDMA_OBJECT_MR, mrn);

    if (!ret) {
        trace_rdma_hca_mr_dereg(hca->owner, mrn);
        rdma_hca_mr_remove(hca, mr);
    }
    return ret;
}

void rdma_hca_pages_charge_mr(RdmaHca *hca, const RdmaHcaInflight *inflight)
{
    RdmaHcaMr *mr;

    if (!inflight->npages) {
        return;
    }
    hca->charged_pages -= inflight->npages;
    mr = rdma_hca_mr_get(hca, inflight->mrn);
    if (mr && mr->type == RDMA_MR_FAST_REG) {
        uint32_t npages = MAX(mr->npages, MIN(inflight->npages,
                                              mr->max_pages));

        hca->charged_pages += npages - mr->npages;
        mr->npages = npages;
    }
}
