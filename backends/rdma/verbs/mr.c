/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions and windows. A region of the guest is a region of the host, at
 * the guest's addresses and with the host's keys.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "int.h"
#include "../trace.h"

/* Access rights with which the host may write to the pages */
#define ACCESS_WRITES (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE | \
                       RDMA_ACCESS_REMOTE_ATOMIC | RDMA_ACCESS_MW_BIND)

static void warn_reg_failed(int ret, uint64_t length)
{
    uint64_t limit = verbs_mem_lock_limit();

    if (ret == -ENOMEM && limit != UINT64_MAX) {
        warn_report_once("rdma-verbs: the host does not register a region of "
                         "%" PRIu64 " bytes: no memory, or more than QEMU may "
                         "lock, which is %" PRIu64 " bytes: raise the limit "
                         "(ulimit -l, LimitMEMLOCK= of systemd, memtune of "
                         "libvirt), or give QEMU CAP_IPC_LOCK", length, limit);
    } else if (ret == -ENOMEM) {
        warn_report_once("rdma-verbs: the host does not register a region of "
                         "%" PRIu64 " bytes: its memory, or its RDMA device's "
                         "room for regions, is used up", length);
    } else if (ret == -EFAULT || ret == -EOPNOTSUPP) {
        warn_report_once("rdma-verbs: the host does not pin the memory of the "
                         "machine: %s: use -object memory-backend-memfd,"
                         "share=on, or a file on tmpfs or hugetlbfs",
                         strerror(-ret));
    }
}

/*
 * Bytes that the host's kernel counts as locked for a region: all of its pages,
 * once for each registration.
 */
static uint64_t pinned_bytes(const VerbsMr *mr)
{
    return ROUND_UP((mr->iova & (RDMA_PAGE_SIZE - 1)) + mr->length,
                    RDMA_PAGE_SIZE);
}

/* Is there room for @bytes more? */
static bool may_pin(const RdmaVerbs *v, uint64_t bytes)
{
    if (!v->max_memory || (bytes <= v->max_memory &&
                           v->pinned <= v->max_memory - bytes)) {
        return true;
    }
    warn_report_once("rdma-verbs: the guest has %" PRIu64 " bytes registered, "
                     "and is refused %" PRIu64 " more: property max-memory "
                     "allows %" PRIu64, v->pinned, bytes, v->max_memory);
    return false;
}

/*
 * The only reason to refuse is that windows are bound to the region. Not every
 * driver returns EBUSY for that.
 */
static int dereg(struct ibv_mr *mr)
{
    int err = ibv_dereg_mr(mr);

    return err == EINVAL ? EBUSY : err;
}

static void unpin(RdmaVerbs *v, VerbsMr *mr)
{
    v->pinned -= mr->pinned;
    mr->pinned = 0;
}

void verbs_mrs_check_limits(RdmaVerbs *v, uint64_t ram_size)
{
    uint64_t want = v->max_memory ? MIN(v->max_memory, ram_size) : ram_size;
    uint64_t limit = verbs_mem_lock_limit();

    if (limit < want) {
        warn_report("rdma-verbs: the guest may register %" PRIu64 " bytes, but "
                    "QEMU may lock only %" PRIu64 ": raise the limit (ulimit "
                    "-l, LimitMEMLOCK= of systemd, memtune of libvirt), or "
                    "set property max-memory", want, limit);
    }
}

/* Worker: have the host register @mem as @mr. */
static int reg(RdmaVerbs *v, VerbsMr *mr, VerbsMem *mem)
{
    uint64_t page_size = 1ull << (mr->page_shift ?: RDMA_PAGE_SHIFT);
    uint64_t bytes = pinned_bytes(mr);
    uint8_t *addr;
    int ret;

    if (!may_pin(v, bytes)) {
        return -ENOMEM;
    }
    addr = verbs_mem_map(mem, &ret);
    if (!addr) {
        return ret ?: -EINVAL;
    }
    mr->mr = ibv_reg_mr_iova2(mr->pd, addr + (mr->iova & (page_size - 1)),
                              mr->length, mr->iova, mr->access);
    ret = verbs_create_result(mr->mr);
    verbs_mem_unmap(mem, addr);
    if (ret) {
        warn_reg_failed(ret, mr->length);
    } else {
        mr->pinned = bytes;
        v->pinned += bytes;
    }
    return ret;
}

/* Worker: find the memory of the pages, and free the list of pages. */
static int find_memory(VerbsMr *mr)
{
    int ret = verbs_mem_find(mr->pages, mr->npages, mr->page_shift,
                             mr->access & ACCESS_WRITES, &mr->mem);

    rdma_backend_free(g_steal_pointer(&mr->pages),
                      mr->npages * sizeof(*mr->pages));
    return ret;
}

static int host_reg(RdmaVerbs *v, void *obj)
{
    VerbsMr *mr = obj;

    return find_memory(mr) ?: reg(v, mr, mr->mem);
}

static int host_destroy(RdmaVerbs *v, void *obj)
{
    VerbsMr *mr = obj;
    int ret = verbs_dev_destroyed(v, mr->mw ? ibv_dealloc_mw(mr->mw) :
                                     mr->mr ? dereg(mr->mr) : 0);

    if (!ret) {
        unpin(v, mr);
    }
    return ret;
}

static void forget_keys(RdmaVerbs *v, void *obj)
{
    VerbsMr *mr = obj;

    if (mr->mr) {
        verbs_remove(v->mrs_by_key, mr->mr->lkey, mr);
    }
    if (mr->mw) {
        verbs_remove(v->mws_by_key, mr->mw->rkey >> 8, mr);
    }
}

static void remember_keys(RdmaVerbs *v, void *obj)
{
    VerbsMr *mr = obj;

    if (mr->mr) {
        verbs_put(v->mrs_by_key, mr->mr->lkey, mr);
    }
    if (mr->mw) {
        verbs_put(v->mws_by_key, mr->mw->rkey >> 8, mr);
    }
}

static void mr_free(RdmaVerbs *v, void *obj)
{
    VerbsMr *mr = obj;

    if (mr) {
        verbs_mem_free(mr->mem);
        rdma_backend_free(mr->pages, mr->npages * sizeof(*mr->pages));
        g_free(mr);
    }
}

/* The command gets the keys of the region. */
static void mr_created(RdmaVerbs *v, void *obj, void *out)
{
    VerbsMr *mr = obj;
    RdmaMrAttr *attr = out;

    attr->lkey = mr->mr->lkey;
    attr->rkey = mr->mr->rkey;
    remember_keys(v, mr);
    trace_rdma_verbs_mr(v, attr->mrn, attr->lkey, attr->rkey, mr->length);
}

static bool is_mr(const void *obj)
{
    return !((const VerbsMr *)obj)->mw;
}

/* The host destroys no region that windows are bound to. */
const VerbsKind verbs_mr_kind = {
    .table = offsetof(RdmaVerbs, mrs),
    .is_kind = is_mr,
    .create = host_reg,
    .destroy = host_destroy,
    .created = mr_created,
    .destroy_begins = forget_keys,
    .destroy_failed = remember_keys,
    .free = mr_free,
};

static VerbsMr *mr_new(const RdmaMrAttr *attr, const VerbsPd *pd)
{
    VerbsMr *mr = g_new0(VerbsMr, 1);

    mr->obj.num = attr->mrn;
    mr->pdn = attr->pdn;
    mr->pd = pd ? pd->pd : NULL;
    mr->access = attr->access;
    mr->iova = attr->iova;
    mr->length = attr->length;
    mr->page_shift = attr->page_shift;
    mr->pages = attr->pages;
    mr->npages = attr->npages;
    return mr;
}

/* For QP 1 only, which is not on the host: the device chooses the key. */
static int create_dma_mr(RdmaVerbs *v, RdmaMrAttr *attr)
{
    VerbsMr *mr = mr_new(attr, NULL);

    mr->dma_key = attr->lkey;
    verbs_put(v->mrs, attr->mrn, mr);
    attr->rkey = 0;
    return 0;
}

static int create_mr(RdmaBackend *rb, RdmaMrAttr *attr)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsPd *pd = verbs_get_live(v->pds, attr->pdn);
    int ret;

    if (attr->type == RDMA_MR_DMA) {
        return create_dma_mr(v, attr);
    }
    if (attr->type != RDMA_MR_USER) {
        return -ENOTSUP;
    }
    if (verbs_obj_lookup(v, &verbs_mr_kind, attr, &ret)) {
        return ret;
    }
    if (!pd) {
        return -ENOENT;
    }
    return verbs_obj_create(v, &verbs_mr_kind, mr_new(attr, pd), attr->mrn);
}

/*
 * Reregistration: few devices support it, and keys may change anyway. So a new
 * region takes the place of the old one.
 */

static int modify_work(VerbsJob *job)
{
    VerbsMr *old = job->obj, *mr = old->replacement;
    int ret = 0;

    if (mr->npages) {
        ret = find_memory(mr);
    } else if ((mr->access & ACCESS_WRITES) &&
               verbs_mem_is_read_only(old->mem)) {
        ret = -EFAULT;
    }
    ret = ret ?: reg(job->v, mr, mr->mem ?: old->mem);
    if (!ret) {
        ret = -dereg(old->mr);
        /* Windows may be bound to the old region. */
        if (ret && !ibv_dereg_mr(mr->mr)) {
            unpin(job->v, mr);
        } else if (!ret) {
            unpin(job->v, old);
        }
        /* The one that is left is for changed_destroy_work(). */
        *(ret ? &mr->mr : &old->mr) = NULL;
    }
    return ret;
}

static void modify_done(VerbsJob *job)
{
    RdmaVerbs *v = job->v;
    VerbsMr *old = job->obj, *made = old->replacement;

    if (verbs_get(v->mrs, old->obj.num) != old) {
        /* A reset came meanwhile, and a job of its own frees both. */
        return;
    }
    old->replacement = NULL;
    old->obj.destroying = false;
    if (job->ret) {
        mr_free(v, made);
        remember_keys(v, old);
        return;
    }
    if (!made->mem) {
        made->mem = g_steal_pointer(&old->mem);
    }
    mr_free(v, old);
    verbs_put(v->mrs, made->obj.num, made);
    remember_keys(v, made);
}

/* A reset came: destroy the region that modify_work() has left. */

static int changed_destroy_work(VerbsJob *job)
{
    VerbsMr *mr = job->obj;

    return host_destroy(job->v, mr->mr ? mr : mr->replacement);
}

static void changed_destroy_done(VerbsJob *job)
{
    VerbsMr *mr = job->obj;

    mr_free(job->v, mr->replacement);
    mr_free(job->v, mr);
}

static const VerbsJobOps changed_destroy_ops = {
    .work = changed_destroy_work,
    .done = changed_destroy_done,
};

void verbs_mrs_reset_changing(RdmaVerbs *v)
{
    GHashTableIter iter;
    VerbsMr *mr;

    g_hash_table_iter_init(&iter, v->mrs);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&mr)) {
        if (mr->replacement) {
            g_hash_table_iter_remove(&iter);
            verbs_job_start(verbs_job_new(v, &changed_destroy_ops, mr));
        }
    }
}

static void modify_take(VerbsJob *job, void *out)
{
    RdmaMrAttr *attr = out;
    VerbsMr *mr = verbs_get(job->v->mrs, attr->mrn);

    if (mr) {
        attr->lkey = mr->mr->lkey;
        attr->rkey = mr->mr->rkey;
    }
}

static const VerbsJobOps modify_ops = {
    .work = modify_work,
    .done = modify_done,
    .take = modify_take,
};

static int modify_mr(RdmaBackend *rb, uint32_t mask, RdmaMrAttr *attr)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsMr *old = verbs_get_live(v->mrs, attr->mrn), *mr;
    VerbsPd *pd = verbs_get_live(v->pds, attr->pdn);
    VerbsJob *job;
    int ret;

    job = verbs_job_command(v, &modify_ops, old && old->mr && pd ? old : NULL,
                            attr, &ret);
    if (!job) {
        return ret;
    }
    mr = mr_new(attr, pd);
    if (!(mask & RDMA_REREG_TRANSLATION)) {
        mr->iova = old->iova;
        mr->length = old->length;
        mr->page_shift = old->page_shift;
        mr->pages = NULL;
        mr->npages = 0;
    }
    if (!(mask & RDMA_REREG_ACCESS)) {
        mr->access = old->access;
    }
    old->obj.destroying = true;
    old->replacement = mr;
    forget_keys(v, old);
    return verbs_job_begin(job);
}

/* Windows */

static int host_alloc_mw(RdmaVerbs *v, void *obj)
{
    VerbsMr *mw = obj;

    mw->mw = ibv_alloc_mw(mw->pd, (enum ibv_mw_type)mw->mw_type);
    return verbs_create_result(mw->mw);
}

static void mw_created(RdmaVerbs *v, void *obj, void *out)
{
    VerbsMr *mw = obj;
    RdmaMwAttr *attr = out;

    attr->rkey = mw->mw->rkey;
    remember_keys(v, mw);
}

static bool is_mw(const void *obj)
{
    return !is_mr(obj);
}

const VerbsKind verbs_mw_kind = {
    .table = offsetof(RdmaVerbs, mrs),
    .is_kind = is_mw,
    .create = host_alloc_mw,
    .destroy = host_destroy,
    .created = mw_created,
    .destroy_begins = forget_keys,
    .destroy_failed = remember_keys,
    .free = mr_free,
};

static int create_mw(RdmaBackend *rb, RdmaMwAttr *attr)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsPd *pd = verbs_get_live(v->pds, attr->pdn);
    VerbsMr *mw;
    int ret;

    if (verbs_obj_lookup(v, &verbs_mw_kind, attr, &ret)) {
        return ret;
    }
    if (!pd) {
        return -ENOENT;
    }
    mw = g_new0(VerbsMr, 1);
    mw->pdn = attr->pdn;
    mw->pd = pd->pd;
    mw->mw_type = attr->type;
    return verbs_obj_create(v, &verbs_mw_kind, mw, attr->mwn);
}

void verbs_mr_class_init(RdmaBackendClass *rbc)
{
    rbc->create_mr = create_mr;
    rbc->modify_mr = modify_mr;
    rbc->create_mw = create_mw;
}
