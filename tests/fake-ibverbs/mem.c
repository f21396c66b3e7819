/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The double of libibverbs: protection domains, regions, windows and keys. */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "internal.h"

/* lkeys, rkeys and rkeys of windows have separate ranges. */
#define LKEY(n) (0x5a000000u + ((n) << 8) + 0x11)
#define RKEY(n) (0xa5000000u + ((n) << 8) + 0x22)
#define REMOTE_WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    int err = fake_alive(context, fake_begin("alloc_pd"));
    FakePd *pd = NULL;

    if (!err && fake_full(FAKE_PD, fake.attr.max_pd)) {
        err = ENOMEM;
    }
    if (!err) {
        pd = fake_new(FAKE_PD, sizeof(*pd));
        pd->ibv.context = context;
        pd->ibv.handle = pd->obj.number;
    }
    return fake_end_ptr("alloc_pd", err, err ? NULL : &pd->ibv, "pd=0x%x",
                        pd ? pd->obj.number : 0);
}

int ibv_dealloc_pd(struct ibv_pd *ibv)
{
    FakePd *pd = FAKE(FakePd, ibv);
    int err = fake_begin_destroy("dealloc_pd", pd, FAKE_PD, &ibv->context);
    uint32_t number;

    number = pd->obj.number;
    if (!err) {
        fake_free(pd);
    }
    return fake_end("dealloc_pd", err, "pd=0x%x", number);
}

/* A mapping of /proc/self/maps */
typedef struct Map {
    uintptr_t start;
    uintptr_t end;
    bool readable;
    bool writable;
    bool shared;
} Map;

/*
 * Store the mappings that cover [@start, @end) in *@maps. Returns 0, or -EFAULT
 * if a part is missing or protected.
 */
static int find_maps(uintptr_t start, uintptr_t end, bool write,
                     GArray *maps)
{
    g_autofree char *text = NULL;
    uintptr_t at = start;
    Map m;

    if (!g_file_get_contents("/proc/self/maps", &text, NULL, NULL)) {
        return -EFAULT;
    }
    for (char *line = text; line && at < end;
         line = strchr(line, '\n'), line += !!line) {
        char perm[5];

        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &m.start, &m.end,
                   perm) != 3 || m.end <= at) {
            continue;
        }
        m.readable = perm[0] == 'r';
        m.writable = perm[1] == 'w';
        m.shared = perm[3] == 's';
        if (m.start > at || !m.readable || (write && !m.writable)) {
            return -EFAULT;
        }
        m.start = at;
        m.end = MIN(m.end, end);
        at = m.end;
        g_array_append_val(maps, m);
    }
    return at < end ? -EFAULT : 0;
}

/*
 * Map the region's pages a second time, if all of them are shared. Other memory
 * must stay mapped.
 */
static int pin(FakeMr *mr, uint8_t *addr, size_t length, bool write)
{
    uintptr_t page = qemu_real_host_page_size();
    uintptr_t start = ROUND_DOWN((uintptr_t)addr, page);
    uintptr_t end = ROUND_UP((uintptr_t)addr + length, page);
    g_autoptr(GArray) maps = g_array_new(false, false, sizeof(Map));
    uint8_t *own;
    int err;

    mr->base = addr;
    if (!length || fake.keeps_nothing) {
        return 0;
    }
    err = find_maps(start, end, write, maps);
    if (err) {
        return err;
    }
    if (fake.locked + (end - start) > fake.memlock) {
        return -ENOMEM;
    }
    for (guint i = 0; i < maps->len; i++) {
        if (!g_array_index(maps, Map, i).shared) {
            return 0;
        }
    }
    own = mmap(NULL, end - start, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (own == MAP_FAILED) {
        return -ENOMEM;
    }
    for (guint i = 0; i < maps->len; i++) {
        Map *m = &g_array_index(maps, Map, i);

        /* An old size of 0 asks for the same pages once more */
        if (mremap((void *)m->start, 0, m->end - m->start,
                   MREMAP_MAYMOVE | MREMAP_FIXED,
                   own + (m->start - start)) == MAP_FAILED) {
            munmap(own, end - start);
            /* The kernel cannot duplicate mappings of huge pages */
            return maps->len == 1 && errno == EINVAL ? 0 : -ENOMEM;
        }
    }
    mr->pinned = own;
    mr->pinned_len = end - start;
    mr->base = own + ((uintptr_t)addr - start);
    fake.locked += mr->pinned_len;
    return 0;
}

void fake_unpin(FakeMr *mr)
{
    if (mr->pinned) {
        munmap(mr->pinned, mr->pinned_len);
        fake.locked -= mr->pinned_len;
        mr->pinned = NULL;
    }
}

static struct ibv_mr *reg_mr(const char *verb, struct ibv_pd *ibv_pd,
                             void *addr, size_t length, uint64_t iova,
                             unsigned access)
{
    FakePd *pd = FAKE(FakePd, ibv_pd);
    int err = fake_begin_on(verb, pd, FAKE_PD, &ibv_pd->context);
    FakeMr *mr = NULL;

    if (!err && ((access & (REMOTE_WRITES)) &&
                 !(access & IBV_ACCESS_LOCAL_WRITE))) {
        err = EINVAL;
    }
    if (!err && fake_full(FAKE_MR, fake.attr.max_mr)) {
        err = ENOMEM;
    }
    if (!err && iova + length < iova) {
        err = EINVAL;
    }
    if (!err) {
        mr = fake_new(FAKE_MR, sizeof(*mr));
        err = -pin(mr, addr, length, access & IBV_ACCESS_LOCAL_WRITE);
        if (err) {
            fake_free(mr);
            mr = NULL;
        }
    }
    if (!err) {
        pd->obj.users++;
        mr->iova = iova;
        mr->access = access;
        mr->ibv = (struct ibv_mr) {
            .context = ibv_pd->context,
            .pd = ibv_pd,
            .addr = addr,
            .length = length,
            .handle = mr->obj.number,
            .lkey = LKEY(mr->obj.number),
            .rkey = RKEY(mr->obj.number),
        };
    }
    return fake_end_ptr(verb, err, err ? NULL : &mr->ibv,
                        "mr=0x%x iova=0x%" PRIx64 " length=0x%zx access=0x%x",
                        mr ? mr->obj.number : 0, iova, length, access);
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
                          int access)
{
    return reg_mr("reg_mr", pd, addr, length, (uintptr_t)addr, access);
}

#undef ibv_reg_mr_iova
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
                               uint64_t iova, int access)
{
    return reg_mr("reg_mr_iova", pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                uint64_t iova, unsigned int access)
{
    return reg_mr("reg_mr_iova2", pd, addr, length, iova, access);
}

int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *ibv_pd,
                 void *addr, size_t length, int access)
{
    FakeMr *mr = FAKE(FakeMr, ibv);
    int err = fake_begin_on("rereg_mr", mr, FAKE_MR, &ibv->context);
    FakePd *pd = FAKE(FakePd, ibv_pd);
    FakeMr new;

    if (!err && (!flags || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))) {
        fake_end("rereg_mr", EINVAL, "flags=%d", flags);
        errno = EINVAL;
        return IBV_REREG_MR_ERR_INPUT;
    }
    if (!err && mr->obj.users) {
        err = EBUSY;
    }
    if (!(flags & IBV_REREG_MR_CHANGE_ACCESS)) {
        access = mr->access;
    }
    if (!err && (flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
        new = *mr;
        new.pinned = NULL;
        err = -pin(&new, addr, length, access & IBV_ACCESS_LOCAL_WRITE);
        if (!err) {
            fake_unpin(mr);
            new.ibv.addr = addr;
            new.ibv.length = length;
            new.iova = (uintptr_t)addr;
            *mr = new;
        }
    }
    if (!err && (flags & IBV_REREG_MR_CHANGE_PD)) {
        fake_check(pd, FAKE_PD);
        FAKE(FakePd, ibv->pd)->obj.users--;
        pd->obj.users++;
        ibv->pd = ibv_pd;
    }
    if (!err) {
        mr->access = access;
    }
    errno = fake_end("rereg_mr", err, "mr=0x%x flags=%d", mr->obj.number,
                     flags);
    return err ? IBV_REREG_MR_ERR_CMD : 0;
}

int ibv_dereg_mr(struct ibv_mr *ibv)
{
    FakeMr *mr = FAKE(FakeMr, ibv);
    int err = fake_begin_destroy("dereg_mr", mr, FAKE_MR, &ibv->context);
    uint32_t number;

    number = mr->obj.number;
    if (!err) {
        FAKE(FakePd, ibv->pd)->obj.users--;
        fake_unpin(mr);
        fake_free(mr);
    }
    return fake_end("dereg_mr", err, "mr=0x%x", number);
}

/* [@addr, @addr + @len) within [@start, @start + @size) */
static bool inside(uint64_t addr, uint64_t len, uint64_t start, uint64_t size)
{
    return addr >= start && len <= size && addr - start <= size - len;
}

enum ibv_wc_status fake_local(struct ibv_pd *pd, const struct ibv_sge *sge,
                              unsigned num_sge, bool write, GArray *iov)
{
    for (unsigned i = 0; i < num_sge; i++) {
        FakeMr *mr = fake_find(FAKE_MR, (sge[i].lkey - LKEY(0)) >> 8);
        FakeIov piece;

        if (!sge[i].length) {
            continue;
        }
        if (!sge[i].lkey) {
            /* As rxe does, since Linux 6.1.192 at the latest */
            return IBV_WC_LOC_QP_OP_ERR;
        }
        if (!mr || mr->ibv.lkey != sge[i].lkey || mr->ibv.pd != pd ||
            !inside(sge[i].addr, sge[i].length, mr->iova, mr->ibv.length) ||
            (write && !(mr->access & IBV_ACCESS_LOCAL_WRITE))) {
            return IBV_WC_LOC_PROT_ERR;
        }
        piece.at = mr->base + (sge[i].addr - mr->iova);
        piece.len = sge[i].length;
        g_array_append_val(iov, piece);
    }
    return IBV_WC_SUCCESS;
}

static FakeMw *window(FakeQp *qp, uint32_t rkey)
{
    GList *all = fake_all(FAKE_MW);
    FakeMw *found = NULL;

    for (GList *l = all; l && !found; l = l->next) {
        FakeMw *mw = l->data;

        if (mw->mr && mw->ibv.rkey == rkey && mw->ibv.pd == qp->ibv.pd &&
            (!mw->qp || mw->qp == qp)) {
            found = mw;
        }
    }
    g_list_free(all);
    return found;
}

uint8_t *fake_remote(FakeQp *qp, uint32_t rkey, uint64_t addr, uint64_t len,
                     int access)
{
    FakeMr *mr = fake_find(FAKE_MR, (rkey - RKEY(0)) >> 8);
    FakeMw *mw;

    if (mr && mr->ibv.rkey == rkey) {
        if (mr->ibv.pd != qp->ibv.pd || (mr->access & access) != access ||
            !inside(addr, len, mr->iova, mr->ibv.length)) {
            return NULL;
        }
        return mr->base + (addr - mr->iova);
    }
    mw = window(qp, rkey);
    if (!mw || (mw->access & access) != access) {
        return NULL;
    }
    if (mw->access & IBV_ACCESS_ZERO_BASED) {
        addr += mw->addr;
    }
    if (!inside(addr, len, mw->addr, mw->len)) {
        return NULL;
    }
    return mw->mr->base + (addr - mw->mr->iova);
}

static void unbind(FakeMw *mw)
{
    if (mw->mr) {
        mw->mr->obj.users--;
        mw->mr = NULL;
        mw->qp = NULL;
    }
}

void fake_unbind_qp(FakeQp *qp)
{
    GList *all = fake_all(FAKE_MW);

    for (GList *l = all; l; l = l->next) {
        FakeMw *mw = l->data;

        if (mw->qp == qp) {
            unbind(mw);
        }
    }
    g_list_free(all);
}

bool fake_bind(FakeQp *qp, FakeMw *mw, uint32_t rkey,
               const struct ibv_mw_bind_info *info)
{
    FakeMr *mr;

    if (mw->ibv.pd != qp->ibv.pd) {
        return false;
    }
    if (!info->length) {
        unbind(mw);
        mw->ibv.rkey = rkey;
        return true;
    }
    mr = FAKE(FakeMr, info->mr);
    fake_check(mr, FAKE_MR);
    if (!(mr->access & IBV_ACCESS_MW_BIND) || mr->ibv.pd != qp->ibv.pd ||
        !inside(info->addr, info->length, mr->iova, mr->ibv.length) ||
        ((info->mw_access_flags & REMOTE_WRITES) &&
         !(mr->access & IBV_ACCESS_LOCAL_WRITE)) ||
        (mw->ibv.type == IBV_MW_TYPE_2 && mw->mr)) {
        return false;
    }
    unbind(mw);
    mr->obj.users++;
    mw->mr = mr;
    mw->addr = info->addr;
    mw->len = info->length;
    mw->access = info->mw_access_flags;
    mw->qp = mw->ibv.type == IBV_MW_TYPE_2 ? qp : NULL;
    mw->ibv.rkey = rkey;
    return true;
}

bool fake_invalidate(FakeQp *qp, uint32_t rkey)
{
    FakeMw *mw = window(qp, rkey);

    if (!mw || mw->ibv.type != IBV_MW_TYPE_2) {
        return false;
    }
    unbind(mw);
    return true;
}

struct ibv_mw *fake_alloc_mw(struct ibv_pd *ibv_pd, enum ibv_mw_type type)
{
    FakePd *pd = FAKE(FakePd, ibv_pd);
    int err = fake_begin_on("alloc_mw", pd, FAKE_PD, &ibv_pd->context);
    FakeMw *mw = NULL;

    if (!err && type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
        err = EINVAL;
    }
    if (!err && fake_full(FAKE_MW, fake.attr.max_mw)) {
        err = ENOMEM;
    }
    if (!err) {
        mw = fake_new(FAKE_MW, sizeof(*mw));
        pd->obj.users++;
        mw->ibv = (struct ibv_mw) {
            .context = ibv_pd->context,
            .pd = ibv_pd,
            .rkey = (mw->obj.number << 8) + 0xc3000033,
            .handle = mw->obj.number,
            .type = type,
        };
    }
    return fake_end_ptr("alloc_mw", err, err ? NULL : &mw->ibv, "mw=0x%x",
                        mw ? mw->obj.number : 0);
}

int fake_dealloc_mw(struct ibv_mw *ibv)
{
    FakeMw *mw = FAKE(FakeMw, ibv);
    int err = fake_begin_on("dealloc_mw", mw, FAKE_MW, &ibv->context);
    uint32_t number;

    number = mw->obj.number;
    if (!err) {
        unbind(mw);
        FAKE(FakePd, ibv->pd)->obj.users--;
        fake_free(mw);
    }
    return fake_end("dealloc_mw", err, "mw=0x%x", number);
}
