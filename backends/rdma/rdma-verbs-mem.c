/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages of the guest as one range of virtual addresses, which is what a
 * device of the host registers.
 *
 * Pages that are neighbours already are taken as they are. Others are mapped
 * once more, in the order of the region, from the file that is behind the
 * guest's RAM. The registration pins the pages, so the mapping is only needed
 * while it is made.
 *
 * Context: worker, but for verbs_mem_free().
 */
#include "qemu/osdep.h"
#include "exec/address-spaces.h"
#include "exec/memory.h"
#include "exec/ramblock.h"
#include "qemu/error-report.h"
#include "qemu/rcu.h"
#include "rdma-verbs-int.h"

/* Pages that are looked up in one section of RCU. */
#define FIND_SLICE 1024

/* Memory that lies together in RAM of one block. */
typedef struct VerbsRun {
    RAMBlock *rb;
    uint8_t *host;
    uint64_t len;
    uint64_t fd_offset;
    uint64_t page_size;             /* of the file */
    int fd;                         /* -1: it cannot be mapped again */
} VerbsRun;

struct VerbsMem {
    GArray *runs;                   /* of VerbsRun */
    GPtrArray *regions;             /* of MemoryRegion; a reference each */
    uint64_t len;
};

static void keep_region(VerbsMem *m, MemoryRegion *mr)
{
    for (guint i = 0; i < m->regions->len; i++) {
        if (g_ptr_array_index(m->regions, i) == mr) {
            return;
        }
    }
    memory_region_ref(mr);
    g_ptr_array_add(m->regions, mr);
}

static void add_run(VerbsMem *m, MemoryRegion *mr, hwaddr offset, uint64_t len)
{
    RAMBlock *rb = mr->ram_block;
    uint8_t *host = (uint8_t *)memory_region_get_ram_ptr(mr) + offset;
    VerbsRun *last = m->runs->len ? &g_array_index(m->runs, VerbsRun,
                                                   m->runs->len - 1) : NULL;
    VerbsRun run = {
        .rb = rb,
        .host = host,
        .len = len,
        .fd = -1,
        .page_size = qemu_ram_pagesize(rb),
    };

    m->len += len;
    if (last && last->rb == rb && last->host + last->len == host) {
        last->len += len;
        return;
    }
    keep_region(m, mr);
    if (qemu_ram_is_shared(rb) && rb->fd >= 0) {
        run.fd = rb->fd;
        run.fd_offset = rb->fd_offset +
                        (host - (uint8_t *)qemu_ram_get_host_addr(rb));
    }
    g_array_append_val(m->runs, run);
}

/* @len bytes at @addr */
static int find(VerbsMem *m, hwaddr addr, hwaddr len, bool write)
{
    while (len) {
        hwaddr offset, n = len;
        MemoryRegion *mr = address_space_translate(&address_space_memory, addr,
                                                   &offset, &n, write,
                                                   MEMTXATTRS_UNSPECIFIED);

        if (!n || !memory_access_is_direct(mr, write,
                                           MEMTXATTRS_UNSPECIFIED)) {
            return -EFAULT;
        }
        add_run(m, mr, offset, n);
        addr += n;
        len -= n;
    }
    return 0;
}

int verbs_mem_find(const uint64_t *pages, uint32_t npages, uint8_t page_shift,
                   bool write, VerbsMem **mem)
{
    hwaddr size = 1ull << (page_shift ?: RDMA_PAGE_SHIFT);
    VerbsMem *m = g_new0(VerbsMem, 1);
    uint32_t i = 0;
    int ret = 0;

    m->runs = g_array_new(false, false, sizeof(VerbsRun));
    m->regions = g_ptr_array_new();
    while (i < npages && !ret) {
        uint32_t end = MIN(npages, i + FIND_SLICE);

        RCU_READ_LOCK_GUARD();
        while (i < end && !ret) {
            ret = find(m, pages[i++], size, write);
        }
    }
    *mem = m;
    return ret;
}

static int map_run(uint8_t *at, const VerbsRun *run)
{
    if (run->fd < 0) {
        warn_report_once("rdma-verbs: a region of the guest is not contiguous "
                         "in RAM that cannot be mapped again: use -object "
                         "memory-backend-memfd,share=on for all memory");
        return -EINVAL;
    }
    if ((run->fd_offset | run->len) & (run->page_size - 1)) {
        warn_report_once("rdma-verbs: a region of the guest is scattered in "
                         "parts of huge pages of %" PRIu64 " bytes, which "
                         "cannot be mapped again: use memory of smaller pages",
                         run->page_size);
        return -EINVAL;
    }
    if (mmap(at, run->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             run->fd, run->fd_offset) == MAP_FAILED) {
        return -errno;
    }
    return 0;
}

void *verbs_mem_map(VerbsMem *m, int *ret)
{
    uint8_t *addr, *at;

    *ret = 0;
    if (m->runs->len == 1) {
        return g_array_index(m->runs, VerbsRun, 0).host;
    }
    addr = mmap(NULL, m->len, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (addr == MAP_FAILED) {
        *ret = -errno;
        return NULL;
    }
    at = addr;
    for (guint i = 0; i < m->runs->len; i++) {
        const VerbsRun *run = &g_array_index(m->runs, VerbsRun, i);

        *ret = map_run(at, run);
        if (*ret) {
            break;
        }
        at += run->len;
    }
    if (*ret == -ENOMEM) {
        warn_report_once("rdma-verbs: a region of the guest lies in %u parts, "
                         "more than this process may map: raise the sysctl "
                         "vm.max_map_count of the host", m->runs->len);
    }
    if (*ret) {
        munmap(addr, m->len);
        return NULL;
    }
    return addr;
}

void verbs_mem_unmap(VerbsMem *m, void *addr)
{
    if (m->runs->len > 1) {
        munmap(addr, m->len);
    }
}

void verbs_mem_free(VerbsMem *m)
{
    if (!m) {
        return;
    }
    for (guint i = 0; i < m->regions->len; i++) {
        memory_region_unref(g_ptr_array_index(m->regions, i));
    }
    g_ptr_array_free(m->regions, true);
    g_array_free(m->runs, true);
    g_free(m);
}
