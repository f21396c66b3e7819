/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions and windows. A region of the guest is one of the host's, at
 * the guest's own addresses and with the host's keys.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "int.h"
#include "../trace.h"

/* Rights for which the host may write to the pages */
#define ACCESS_WRITES (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE | \
                       RDMA_ACCESS_REMOTE_ATOMIC | RDMA_ACCESS_MW_BIND)

typedef struct MrJob {
    VerbsJob job;
    VerbsMr *mr;                    /* what is made, or destroyed */
    VerbsMr *old;                   /* what it replaces, or NULL */
    struct ibv_pd *pd;
    uint64_t *pages;
    uint32_t npages;
    uint8_t page_shift;
    RdmaMwType mw_type;
} MrJob;

/* What tells one registration from another, besides the list of pages. */
typedef struct MrKey {
    uint32_t pdn;
    uint32_t type;
    uint32_t access;
    uint32_t npages;
    uint64_t iova;
    uint64_t length;
    uint64_t page_shift;
    uint32_t mrn;                   /* of modify MR */
    uint32_t mask;
} MrKey;

static MrKey mr_key(const RdmaMrAttr *attr, uint32_t mask)
{
    return (MrKey) {
        .pdn = attr->pdn,
        .type = attr->type,
        .access = attr->access,
        .npages = attr->npages,
        .iova = attr->iova,
        .length = attr->length,
        .page_shift = attr->page_shift,
        .mrn = mask ? attr->mrn : 0,
        .mask = mask,
    };
}

static void mr_free(VerbsMr *mr)
{
    if (mr) {
        verbs_mem_free(mr->mem);
        g_free(mr);
    }
}

static void say_why(int ret, uint64_t length)
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
 * What the host's kernel counts for a region: all of its pages, as often as
 * they are registered.
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
 * Of a region that the host has made nothing can be wrong but windows that are
 * bound to it, which not every driver calls EBUSY.
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

/* Jobs that make a region */

static int reg(MrJob *j, VerbsMem *mem)
{
    RdmaVerbs *v = j->job.v;
    VerbsMr *mr = j->mr;
    uint64_t page_size = 1ull << (j->page_shift ?: RDMA_PAGE_SHIFT);
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
    mr->mr = ibv_reg_mr_iova2(j->pd, addr + (mr->iova & (page_size - 1)),
                              mr->length, mr->iova, mr->access);
    ret = mr->mr ? 0 : -(errno ?: EIO);
    verbs_mem_unmap(mem, addr);
    if (ret) {
        say_why(ret, mr->length);
    } else {
        mr->pinned = bytes;
        v->pinned += bytes;
    }
    return ret;
}

static int create_work(VerbsJob *job)
{
    MrJob *j = container_of(job, MrJob, job);
    VerbsMr *mr = j->mr;
    int ret;

    if (!mr->length) {
        return -EINVAL;
    }
    ret = verbs_mem_find(j->pages, j->npages, j->page_shift,
                         mr->access & ACCESS_WRITES, &mr->mem);
    return ret ?: reg(j, mr->mem);
}

static void create_undo(VerbsJob *job)
{
    VerbsMr *mr = container_of(job, MrJob, job)->mr;

    if (!ibv_dereg_mr(mr->mr)) {
        unpin(job->v, mr);
    }
}

/* The region is the guest's from now on: put its keys into the attributes. */
static void create_take(VerbsJob *job, void *out)
{
    RdmaVerbs *v = job->v;
    VerbsMr *mr = g_steal_pointer(&container_of(job, MrJob, job)->mr);
    RdmaMrAttr *attr = out;

    mr->mrn = attr->mrn;
    attr->lkey = mr->mr->lkey;
    attr->rkey = mr->mr->rkey;
    verbs_put(v->mrs, mr->mrn, mr);
    verbs_put(v->mrs_by_key, mr->mr->lkey, mr);
    trace_rdma_verbs_mr(v, mr->mrn, attr->lkey, attr->rkey, mr->length);
}

static void create_free(VerbsJob *job)
{
    MrJob *j = container_of(job, MrJob, job);

    mr_free(j->mr);
    rdma_backend_free(j->pages, j->npages * sizeof(*j->pages));
    g_free(j);
}

static const VerbsJobOps create_ops = {
    .work = create_work,
    .undo = create_undo,
    .take = create_take,
    .free = create_free,
};

static VerbsMr *mr_new(const RdmaMrAttr *attr)
{
    VerbsMr *mr = g_new0(VerbsMr, 1);

    mr->mrn = attr->mrn;
    mr->pdn = attr->pdn;
    mr->access = attr->access;
    mr->iova = attr->iova;
    mr->length = attr->length;
    mr->page_shift = attr->page_shift;
    return mr;
}

/* For QP 1 only, which the host does not know: the key is the device's. */
static int create_dma_mr(RdmaVerbs *v, RdmaMrAttr *attr)
{
    VerbsMr *mr = mr_new(attr);

    mr->dma_key = attr->lkey;
    verbs_put(v->mrs, attr->mrn, mr);
    attr->rkey = 0;
    return 0;
}

static int create_mr(RdmaBackend *rb, RdmaMrAttr *attr)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsPd *pd = verbs_get_pd(v, attr->pdn);
    const MrKey key = mr_key(attr, 0);
    MrJob *j;
    int ret;

    if (attr->type == RDMA_MR_DMA || attr->pages) {
        verbs_job_abandon(v);
    }
    if (attr->type == RDMA_MR_DMA) {
        return create_dma_mr(v, attr);
    }
    if (attr->type != RDMA_MR_USER) {
        return -ENOTSUP;
    }
    if (verbs_job_ask(v, &create_ops, &key, sizeof(key), attr, &ret)) {
        return ret;
    }
    if (!pd) {
        return -ENOENT;
    }
    j = g_new0(MrJob, 1);
    j->mr = mr_new(attr);
    j->pd = pd->pd;
    j->pages = attr->pages;
    j->npages = attr->npages;
    j->page_shift = attr->page_shift;
    return verbs_job_begin(v, &j->job, &create_ops, &key, sizeof(key));
}

/* Jobs that destroy a region or a window */

static int destroy_host(RdmaVerbs *v, VerbsMr *mr)
{
    int ret = verbs_dev_destroyed(v, mr->mw ? ibv_dealloc_mw(mr->mw) :
                                     mr->mr ? dereg(mr->mr) : 0);

    if (!ret) {
        unpin(v, mr);
    }
    return ret;
}

static int destroy_work(VerbsJob *job)
{
    return destroy_host(job->v, container_of(job, MrJob, job)->mr);
}

static void forget_keys(RdmaVerbs *v, VerbsMr *mr)
{
    if (mr->mr) {
        verbs_drop(v->mrs_by_key, mr->mr->lkey, mr);
    }
    if (mr->mw) {
        verbs_drop(v->mws_by_key, mr->mw->rkey >> 8, mr);
    }
}

static void remember_keys(RdmaVerbs *v, VerbsMr *mr)
{
    if (mr->mr) {
        verbs_put(v->mrs_by_key, mr->mr->lkey, mr);
    }
    if (mr->mw) {
        verbs_put(v->mws_by_key, mr->mw->rkey >> 8, mr);
    }
}

static void destroy_done(VerbsJob *job)
{
    RdmaVerbs *v = job->v;
    VerbsMr *mr = container_of(job, MrJob, job)->mr;

    if (!job->ret) {
        verbs_drop(v->mrs, mr->mrn, mr);
        mr_free(mr);
    } else if (verbs_get(v->mrs, mr->mrn) == mr) {
        /* Windows are bound to it */
        mr->dead = false;
        remember_keys(v, mr);
    } else {
        /* Behind a reset: now it is only the host's */
        mr_free(mr);
    }
}

static const VerbsJobOps destroy_ops = {
    .work = destroy_work,
    .done = destroy_done,
};

int verbs_mr_destroy(RdmaBackend *rb, uint32_t mrn)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsMr *mr = verbs_get(v->mrs, mrn);
    MrJob *j;
    int ret;

    if (verbs_job_ask(v, &destroy_ops, &mrn, sizeof(mrn), NULL, &ret)) {
        return ret;
    }
    if (!mr) {
        return 0;
    }
    if (mr->dead) {
        return verbs_job_await_others(v);
    }
    forget_keys(v, mr);
    mr->dead = true;
    j = g_new0(MrJob, 1);
    j->mr = mr;
    return verbs_job_begin(v, &j->job, &destroy_ops, &mrn, sizeof(mrn));
}

/*
 * Reregistration: few devices can do that, and keys may change anyway, so a
 * new region takes the place of the old one.
 */

static int modify_work(VerbsJob *job)
{
    MrJob *j = container_of(job, MrJob, job);
    VerbsMr *mr = j->mr;
    VerbsMem *mem = j->old->mem;
    int ret = 0;

    if (j->npages) {
        ret = verbs_mem_find(j->pages, j->npages, j->page_shift,
                             mr->access & ACCESS_WRITES, &mr->mem);
        mem = mr->mem;
    } else if ((mr->access & ACCESS_WRITES) && verbs_mem_is_read_only(mem)) {
        ret = -EFAULT;
    }
    if (!ret) {
        ret = reg(j, mem);
    }
    if (!ret) {
        ret = -dereg(j->old->mr);
        /* Windows may be bound to it */
        if (ret && !ibv_dereg_mr(mr->mr)) {
            unpin(job->v, mr);
        } else if (!ret) {
            unpin(job->v, j->old);
        }
        /* Only one is left, for modified_destroy_work() */
        *(ret ? &mr->mr : &j->old->mr) = NULL;
    }
    return ret;
}

static void modify_done(VerbsJob *job)
{
    RdmaVerbs *v = job->v;
    MrJob *j = container_of(job, MrJob, job);
    VerbsMr *old = g_steal_pointer(&j->old);
    VerbsMr *made = g_steal_pointer(&j->mr);

    if (verbs_get(v->mrs, old->mrn) != old) {
        /* A reset came meanwhile, and left both to a job of its own */
        return;
    }
    old->next = NULL;
    old->dead = false;
    if (job->ret) {
        mr_free(made);
        remember_keys(v, old);
        return;
    }
    if (!made->mem) {
        made->mem = g_steal_pointer(&old->mem);
    }
    mr_free(old);
    verbs_put(v->mrs, made->mrn, made);
    remember_keys(v, made);
}

/* What modify_work() has left, behind a reset */
static int modified_destroy_work(VerbsJob *job)
{
    VerbsMr *mr = container_of(job, MrJob, job)->mr;

    return destroy_host(job->v, mr->mr ? mr : mr->next);
}

static void modified_destroy_done(VerbsJob *job)
{
    VerbsMr *mr = container_of(job, MrJob, job)->mr;

    mr_free(mr->next);
    mr_free(mr);
}

static const VerbsJobOps modified_destroy_ops = {
    .work = modified_destroy_work,
    .done = modified_destroy_done,
};

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
    .free = create_free,
};

static int modify_mr(RdmaBackend *rb, uint32_t mask, RdmaMrAttr *attr)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    const MrKey key = mr_key(attr, mask);
    VerbsMr *mr = verbs_get(v->mrs, attr->mrn);
    VerbsPd *pd = verbs_get_pd(v, attr->pdn);
    MrJob *j;
    int ret;

    if (attr->pages) {
        verbs_job_abandon(v);
    }
    if (verbs_job_ask(v, &modify_ops, &key, sizeof(key), attr, &ret)) {
        return ret;
    }
    if (!mr || !mr->mr || mr->dead || !pd) {
        return -ENOENT;
    }
    j = g_new0(MrJob, 1);
    j->mr = mr_new(attr);
    j->old = mr;
    j->pd = pd->pd;
    if (mask & RDMA_REREG_TRANSLATION) {
        j->pages = attr->pages;
        j->npages = attr->npages;
        j->page_shift = attr->page_shift;
    } else {
        j->mr->iova = mr->iova;
        j->mr->length = mr->length;
        j->page_shift = mr->page_shift;
    }
    if (!(mask & RDMA_REREG_ACCESS)) {
        j->mr->access = mr->access;
    }
    j->mr->page_shift = j->page_shift;
    mr->dead = true;
    mr->next = j->mr;
    verbs_drop(v->mrs_by_key, mr->mr->lkey, mr);
    return verbs_job_begin(v, &j->job, &modify_ops, &key, sizeof(key));
}

/* Windows */

static int mw_work(VerbsJob *job)
{
    MrJob *j = container_of(job, MrJob, job);

    j->mr->mw = ibv_alloc_mw(j->pd, (enum ibv_mw_type)j->mw_type);
    return j->mr->mw ? 0 : -(errno ?: EIO);
}

static void mw_undo(VerbsJob *job)
{
    ibv_dealloc_mw(container_of(job, MrJob, job)->mr->mw);
}

static void mw_take(VerbsJob *job, void *out)
{
    VerbsMr *mr = g_steal_pointer(&container_of(job, MrJob, job)->mr);
    RdmaMwAttr *attr = out;

    mr->mrn = attr->mwn;
    attr->rkey = mr->mw->rkey;
    verbs_put(job->v->mrs, mr->mrn, mr);
    remember_keys(job->v, mr);
}

static const VerbsJobOps mw_ops = {
    .work = mw_work,
    .undo = mw_undo,
    .take = mw_take,
    .free = create_free,
};

static int create_mw(RdmaBackend *rb, RdmaMwAttr *attr)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsPd *pd = verbs_get_pd(v, attr->pdn);
    const uint32_t key[] = { attr->pdn, attr->type };
    MrJob *j;
    int ret;

    if (verbs_job_ask(v, &mw_ops, key, sizeof(key), attr, &ret)) {
        return ret;
    }
    if (!pd) {
        return -ENOENT;
    }
    j = g_new0(MrJob, 1);
    j->mr = g_new0(VerbsMr, 1);
    j->mr->pdn = attr->pdn;
    j->pd = pd->pd;
    j->mw_type = attr->type;
    return verbs_job_begin(v, &j->job, &mw_ops, key, sizeof(key));
}

static void reset_kind(RdmaVerbs *v, bool windows)
{
    GHashTableIter iter;
    VerbsMr *mr;

    g_hash_table_iter_init(&iter, v->mrs);
    while (g_hash_table_iter_next(&iter, NULL, (void **)&mr)) {
        if ((mr->mw != NULL) != windows) {
            continue;
        }
        g_hash_table_iter_remove(&iter);
        /* Else a command destroys it */
        if (!mr->dead || mr->next) {
            MrJob *j = g_new0(MrJob, 1);

            j->mr = mr;
            verbs_job_start(v, &j->job, mr->next ? &modified_destroy_ops
                                                 : &destroy_ops);
        }
    }
}

void verbs_mws_reset(RdmaVerbs *v)
{
    g_hash_table_remove_all(v->mws_by_key);
    reset_kind(v, true);
}

void verbs_mrs_reset(RdmaVerbs *v)
{
    g_hash_table_remove_all(v->mrs_by_key);
    reset_kind(v, false);
}

void verbs_mr_class_init(RdmaBackendClass *rbc)
{
    rbc->create_mr = create_mr;
    rbc->modify_mr = modify_mr;
    rbc->create_mw = create_mw;
}
