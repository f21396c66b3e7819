/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pages of the guest as one range of virtual addresses, as the host's device
 * registers it.
 *
 * A contiguous region is used where it is mapped. The pages of other regions
 * are mapped once more, in their order, from the file of the guest's RAM. The
 * registration pins the pages, so the mapping is needed only until then.
 *
 * Page faults of all threads need the kernel's lock for the address space, also
 * those of the thread with the BQL. So no call maps or unmaps much at once.
 *
 * Context: worker. verbs_mem_free() and verbs_mem_lock_limit() also run under
 * the BQL.
 */
#include "qemu/osdep.h"
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "qemu/atomic.h"
#include "qemu/error-report.h"
#include "qemu/host-utils.h"
#include "qemu/rcu.h"
#include "system/address-spaces.h"
#include "system/memory.h"
#include "system/ramblock.h"
#include "int.h"

/* Pages to look up in one RCU critical section */
#define FIND_SLICE 1024
/* Mappings to remove in one call */
#define UNMAP_SLICE 128
/*
 * Mappings reserved for the rest of QEMU. It has some hundreds, and most of its
 * code ends the process if a mapping fails.
 */
#define MAPS_RESERVED 4096
/* vm.max_map_count, if it cannot be read */
#define MAPS_DEFAULT 65530

/* Contiguous memory in one RAM block */
typedef struct VerbsRun {
    RAMBlock *rb;
    uint8_t *host;
    uint64_t len;
} VerbsRun;

struct VerbsMem {
    VerbsRun *runs;
    size_t nruns;
    size_t capacity;                /* in @runs */
    GHashTable *regions;            /* set of MemoryRegion; a reference each */
    uint64_t len;
    bool read_only;                 /* some of it is ROM */
};

/* Mappings by all workers of this process */
static size_t maps_used;

static int add_run(VerbsMem *m, MemoryRegion *mr, hwaddr offset, uint64_t len)
{
    uint8_t *host = (uint8_t *)memory_region_get_ram_ptr(mr) + offset;
    VerbsRun *last = m->nruns ? &m->runs[m->nruns - 1] : NULL;

    if (last && last->rb == mr->ram_block && last->host + last->len == host) {
        last->len += len;
        m->len += len;
        return 0;
    }
    if (m->nruns == m->capacity) {
        size_t capacity = m->capacity ? m->capacity * 2 : 16;
        VerbsRun *runs = g_try_renew(VerbsRun, m->runs, capacity);

        if (!runs) {
            return -ENOMEM;
        }
        m->runs = runs;
        m->capacity = capacity;
    }
    /* The set keeps one reference. */
    memory_region_ref(mr);
    g_hash_table_add(m->regions, mr);
    m->runs[m->nruns++] = (VerbsRun) { mr->ram_block, host, len };
    m->len += len;
    return 0;
}

/* Append the memory of @len bytes at @addr. */
static int append_range(VerbsMem *m, hwaddr addr, hwaddr len, bool write)
{
    while (len) {
        hwaddr offset, n = len;
        MemoryRegion *mr = address_space_translate(&address_space_memory, addr,
                                                   &offset, &n, write,
                                                   MEMTXATTRS_UNSPECIFIED);
        int ret;

        if (!n || !memory_access_is_direct(mr, write,
                                           MEMTXATTRS_UNSPECIFIED)) {
            return -EFAULT;
        }
        m->read_only |= !memory_access_is_direct(mr, true,
                                                 MEMTXATTRS_UNSPECIFIED);
        ret = add_run(m, mr, offset, n);
        if (ret) {
            return ret;
        }
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

    m->regions = g_hash_table_new_full(NULL, NULL,
                                       (GDestroyNotify)memory_region_unref,
                                       NULL);
    while (i < npages && !ret) {
        uint32_t end = MIN(npages, i + FIND_SLICE);

        RCU_READ_LOCK_GUARD();
        while (i < end && !ret) {
            uint32_t first = i++;

            while (i < end && pages[i] == pages[i - 1] + size) {
                i++;
            }
            ret = append_range(m, pages[first], (i - first) * size, write);
        }
    }
    *mem = m;
    return ret;
}

static size_t max_maps(void)
{
    g_autofree char *text = NULL;
    uint64_t max = MAPS_DEFAULT;

    if (g_file_get_contents("/proc/sys/vm/max_map_count", &text, NULL, NULL)) {
        max = g_ascii_strtoull(text, NULL, 10);
    }
    return max > MAPS_RESERVED ? max - MAPS_RESERVED : 0;
}

static void release_maps(const VerbsMem *m)
{
    qatomic_sub(&maps_used, m->nruns);
}

/* On success, release_maps() gives them back. */
static int reserve_maps(const VerbsMem *m)
{
    if (qatomic_fetch_add(&maps_used, m->nruns) + m->nruns <= max_maps()) {
        return 0;
    }
    release_maps(m);
    warn_report_once("rdma-verbs: a region of the guest of %" PRIu64 " bytes "
                     "lies in %zu parts, more than this process may map: "
                     "allow the host more, for example with "
                     "\"sysctl -w vm.max_map_count=%" PRIu64 "\", or use "
                     "huge pages in the guest", m->len, m->nruns,
                     pow2ceil(m->nruns + MAPS_RESERVED));
    return -ENOMEM;
}

static int map_run(uint8_t *at, const VerbsRun *run)
{
    RAMBlock *rb = run->rb;
    uint64_t page_size = qemu_ram_pagesize(rb);
    uint64_t offset;

    if (!qemu_ram_is_shared(rb) || rb->fd < 0) {
        warn_report_once("rdma-verbs: a region of the guest is not contiguous "
                         "in RAM that cannot be mapped again (%s): use "
                         "-object memory-backend-memfd,share=on for all "
                         "memory", rb->idstr);
        return -EINVAL;
    }
    offset = rb->fd_offset + (run->host - (uint8_t *)
                              qemu_ram_get_host_addr(rb));
    if (((uintptr_t)at | offset | run->len) & (page_size - 1)) {
        warn_report_once("rdma-verbs: a region of the guest is scattered in "
                         "parts of huge pages of %" PRIu64 " bytes, which "
                         "cannot be mapped again: use memory of smaller pages",
                         page_size);
        return -EINVAL;
    }
    if (mmap(at, run->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             rb->fd, offset) == MAP_FAILED) {
        return -errno;
    }
    return 0;
}

/* Reserve addresses, aligned for the largest pages. NULL: there are none. */
static uint8_t *reserve(const VerbsMem *m)
{
    uint64_t align = qemu_real_host_page_size();
    uint8_t *all, *addr;
    size_t before, after;

    for (size_t i = 0; i < m->nruns; i++) {
        align = MAX(align, qemu_ram_pagesize(m->runs[i].rb));
    }
    all = mmap(NULL, m->len + align, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) {
        return NULL;
    }
    addr = (uint8_t *)ROUND_UP((uintptr_t)all, align);
    before = addr - all;
    after = align - before;
    if (before) {
        munmap(all, before);
    }
    if (after) {
        munmap(addr + m->len, after);
    }
    return addr;
}

/* Unmap at @addr: the first @n runs are mapped, the others only reserved. */
static void unmap(const VerbsMem *m, uint8_t *addr, size_t n)
{
    uint8_t *at = addr, *end = addr;

    for (size_t i = 0; i < n; i++) {
        end += m->runs[i].len;
        if (i % UNMAP_SLICE == UNMAP_SLICE - 1) {
            munmap(at, end - at);
            at = end;
        }
    }
    if (at < addr + m->len) {
        munmap(at, addr + m->len - at);
    }
}

void *verbs_mem_map(VerbsMem *m, int *ret)
{
    uint8_t *addr, *at;
    size_t i;

    *ret = 0;
    if (m->nruns == 1) {
        return m->runs[0].host;
    }
    *ret = reserve_maps(m);
    if (*ret) {
        return NULL;
    }
    addr = reserve(m);
    if (!addr) {
        *ret = -ENOMEM;
        release_maps(m);
        return NULL;
    }
    at = addr;
    for (i = 0; i < m->nruns; i++) {
        *ret = map_run(at, &m->runs[i]);
        if (*ret) {
            unmap(m, addr, i);
            release_maps(m);
            return NULL;
        }
        at += m->runs[i].len;
    }
    return addr;
}

void verbs_mem_unmap(VerbsMem *m, void *addr)
{
    if (m->nruns > 1) {
        unmap(m, addr, m->nruns);
        release_maps(m);
    }
}

bool verbs_mem_is_read_only(const VerbsMem *m)
{
    return m->read_only;
}

void verbs_mem_free(VerbsMem *m)
{
    if (!m) {
        return;
    }
    g_hash_table_destroy(m->regions);
    rdma_backend_free(m->runs, m->nruns * sizeof(*m->runs));
    g_free(m);
}

/* With CAP_IPC_LOCK there is no limit of locked memory. */
static bool may_lock_all(void)
{
    struct __user_cap_header_struct head = {
        .version = _LINUX_CAPABILITY_VERSION_3,
    };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

    return !syscall(SYS_capget, &head, data) &&
           (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &
            CAP_TO_MASK(CAP_IPC_LOCK));
}

uint64_t verbs_mem_lock_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        may_lock_all()) {
        return UINT64_MAX;
    }
    return limit.rlim_cur;
}
