/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory, which the front end shares by file descriptors.
 *
 * Each region is an object. The device may still use a buffer in a region when
 * the front end removes it, so the object lives until its last user has
 * released it.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/mmap-alloc.h"
#include "qemu/module.h"
#include "qemu/range.h"
#include "qemu/rcu.h"
#include "qemu/units.h"
#include "server.h"

#define TYPE_VUS_MEMORY "vhost-user-server-memory"
OBJECT_DECLARE_SIMPLE_TYPE(VusMemory, VUS_MEMORY)

/* QEMU allocates dirty bits for each page of a region, even for unused ones. */
#define MAX_MEMORY (4 * TiB)

struct VusMemory {
    Object parent_obj;

    MemoryRegion mr;
    VusRegion region;
    VusMap map;
    QLIST_ENTRY(VusMemory) next;
};

static bool check_region(const VusMemoryList *list, const VusRegion *r,
                         Error **errp)
{
    uint64_t page = qemu_real_host_page_size();
    uint64_t total = r->size;
    uint32_t count = 1;
    VusMemory *m;

    if (!r->size || r->size > MAX_MEMORY ||
        (r->guest_addr | r->size | r->offset) & (page - 1)) {
        error_setg(errp, "memory at 0x%" PRIx64 " has 0x%" PRIx64 " bytes at "
                   "0x%" PRIx64 " of its file: expected multiples of the page "
                   "size 0x%" PRIx64 ", and at most 0x%" PRIx64,
                   r->guest_addr, r->size, r->offset, page,
                   (uint64_t)MAX_MEMORY);
        return false;
    }
    if (r->guest_addr > UINT64_MAX - r->size ||
        r->user_addr > UINT64_MAX - r->size ||
        r->offset > INT64_MAX - r->size) {
        error_setg(errp, "memory at 0x%" PRIx64 " with 0x%" PRIx64 " bytes "
                   "wraps around", r->guest_addr, r->size);
        return false;
    }
    QLIST_FOREACH(m, list, next) {
        const VusRegion *other = &m->region;

        if (ranges_overlap(r->guest_addr, r->size, other->guest_addr,
                           other->size) ||
            ranges_overlap(r->user_addr, r->size, other->user_addr,
                           other->size)) {
            error_setg(errp, "memory at 0x%" PRIx64 " with 0x%" PRIx64
                       " bytes overlaps memory at 0x%" PRIx64, r->guest_addr,
                       r->size, other->guest_addr);
            return false;
        }
        total += other->size;
        count++;
    }
    if (total > MAX_MEMORY || count > VUS_MAX_REGIONS) {
        error_setg(errp, "0x%" PRIx64 " bytes of memory in %u regions: "
                   "expected at most 0x%" PRIx64 " bytes in %d regions", total,
                   count, (uint64_t)MAX_MEMORY, VUS_MAX_REGIONS);
        return false;
    }
    return true;
}

/*
 * If the front end shrinks the file later, an access ends this process
 * (SIGBUS). F_SEAL_SHRINK would prevent that, but is not required: only files
 * in memory can have seals.
 */
bool vus_map(VusMap *map, int fd, uint64_t offset, uint64_t size, Error **errp)
{
    size_t page = qemu_fd_getpagesize(fd);
    uint64_t start = ROUND_DOWN(offset, page);
    uint64_t len = ROUND_UP(offset + size - start, page);
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || size > st.st_size ||
        offset > st.st_size - size) {
        error_setg(errp, "0x%" PRIx64 " bytes at 0x%" PRIx64 " of a file: "
                   "expected a regular file with all of them", size, offset);
        return false;
    }
    map->pages = mmap(NULL, len, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, fd, start);
    if (map->pages == MAP_FAILED) {
        map->pages = NULL;
        error_setg_errno(errp, errno, "cannot map 0x%" PRIx64 " bytes", size);
        return false;
    }
    map->len = len;
    map->data = (uint8_t *)map->pages + (offset - start);
    return true;
}

void vus_unmap(VusMap *map)
{
    if (map->pages) {
        munmap(map->pages, map->len);
        map->pages = NULL;
    }
}

static bool map_region(VusMemory *m, int fd, Error **errp)
{
    const VusRegion *r = &m->region;

    if (!vus_map(&m->map, fd, r->offset, r->size, errp)) {
        error_prepend(errp, "memory at 0x%" PRIx64 ": ", r->guest_addr);
        return false;
    }
    memory_region_init_ram_ptr(&m->mr, OBJECT(m), "vhost-user", r->size,
                               m->map.data);
    return true;
}

static VusMemory *new_memory(VusMemoryList *list, const VusRegion *region,
                             int fd, Error **errp)
{
    VusMemory *m;

    if (!check_region(list, region, errp)) {
        return NULL;
    }
    m = VUS_MEMORY(object_new(TYPE_VUS_MEMORY));
    m->region = *region;
    if (!map_region(m, fd, errp)) {
        object_unref(m);
        return NULL;
    }
    QLIST_INSERT_HEAD(list, m, next);
    return m;
}

/*
 * Wait until memory that the front end has taken back is free: its dirty bits
 * exist until then. The RCU thread that frees them needs the BQL. Without this
 * wait the main loop could keep the BQL while a front end changes its memory in
 * a loop.
 */
static void free_removed(VhostUserServer *s)
{
    if (s->memory_removed) {
        s->memory_removed = false;
        drain_call_rcu();
    }
}

/*
 * The VGA client of QEMU's dirty bitmaps can be switched by region, and no VGA
 * uses the memory of a front end. All bits of a new block are set.
 */
static void track(VusMemory *m, bool on)
{
    memory_region_set_log(&m->mr, on, DIRTY_MEMORY_VGA);
    if (on) {
        memory_region_reset_dirty(&m->mr, 0, m->region.size, DIRTY_MEMORY_VGA);
    }
}

static void plug(VhostUserServer *s, VusMemory *m)
{
    memory_region_add_subregion(&s->root, m->region.guest_addr, &m->mr);
    if (s->tracks_writes) {
        track(m, true);
    }
}

static void unplug(VhostUserServer *s, VusMemory *m)
{
    memory_region_del_subregion(&s->root, &m->mr);
    QLIST_REMOVE(m, next);
    object_unref(m);
    s->memory_removed = true;
}

bool vus_memory_add(VhostUserServer *s, const VusRegion *region, int fd,
                    Error **errp)
{
    VusMemory *m;

    free_removed(s);
    m = new_memory(&s->memory, region, fd, errp);
    if (!m) {
        return false;
    }
    plug(s, m);
    return true;
}

bool vus_memory_remove(VhostUserServer *s, const VusRegion *region,
                       Error **errp)
{
    VusMemory *m;

    QLIST_FOREACH(m, &s->memory, next) {
        if (m->region.guest_addr == region->guest_addr &&
            m->region.user_addr == region->user_addr &&
            m->region.size == region->size) {
            unplug(s, m);
            return true;
        }
    }
    error_setg(errp, "there is no memory at 0x%" PRIx64 " with 0x%" PRIx64
               " bytes", region->guest_addr, region->size);
    return false;
}

bool vus_memory_init(VhostUserServer *s, Error **errp)
{
    QLIST_INIT(&s->memory);
    /*
     * The first RAM block of this QEMU. QEMU uses the numbers of removed pages
     * again only if they follow those of another block, and its bits for pages
     * never shrink.
     */
    return memory_region_init_ram_flags_nomigrate(
        &s->first_block, OBJECT(s), "vhost-user-server.first-block",
        qemu_real_host_page_size(), 0, errp);
}

void vus_memory_clear(VhostUserServer *s)
{
    VusMemory *m, *next;

    memory_region_transaction_begin();
    QLIST_FOREACH_SAFE(m, &s->memory, next, next) {
        unplug(s, m);
    }
    memory_region_transaction_commit();
}

bool vus_memory_replace(VhostUserServer *s, const VusRegion *regions,
                        const int *fds, uint32_t n, Error **errp)
{
    VusMemoryList list = QLIST_HEAD_INITIALIZER(list);
    VusMemory *m, *next;
    bool ok = true;

    free_removed(s);
    for (uint32_t i = 0; i < n && ok; i++) {
        ok = new_memory(&list, &regions[i], fds[i], errp);
    }
    memory_region_transaction_begin();
    if (ok) {
        vus_memory_clear(s);
    }
    QLIST_FOREACH_SAFE(m, &list, next, next) {
        QLIST_REMOVE(m, next);
        if (ok) {
            QLIST_INSERT_HEAD(&s->memory, m, next);
            plug(s, m);
        } else {
            object_unref(m);
        }
    }
    memory_region_transaction_commit();
    return ok;
}

bool vus_memory_find(VhostUserServer *s, uint64_t user_addr, uint64_t len,
                     hwaddr *guest_addr)
{
    VusMemory *m;

    QLIST_FOREACH(m, &s->memory, next) {
        uint64_t offset = user_addr - m->region.user_addr;

        if (offset < m->region.size && len <= m->region.size - offset) {
            *guest_addr = m->region.guest_addr + offset;
            return true;
        }
    }
    return false;
}

void vus_memory_track(VhostUserServer *s, bool on)
{
    VusMemory *m;

    if (s->tracks_writes == on) {
        return;
    }
    s->tracks_writes = on;
    memory_region_transaction_begin();
    QLIST_FOREACH(m, &s->memory, next) {
        track(m, on);
    }
    memory_region_transaction_commit();
}

/* A snapshot of the bits of a part takes 32 KiB. */
#define PART_SIZE GiB
/* Most groups of pages have not been written at all. */
#define GROUP_SIZE (2 * MiB)

static void take_group(VhostUserServer *s, VusMemory *m,
                       DirtyBitmapSnapshot *snapshot, hwaddr from, hwaddr to,
                       VusWritten *written)
{
    if (!memory_region_snapshot_get_dirty(&m->mr, snapshot, from, to - from)) {
        return;
    }
    for (hwaddr at = from; at < to; at += VUS_LOG_PAGE) {
        if (memory_region_snapshot_get_dirty(&m->mr, snapshot, at,
                                             VUS_LOG_PAGE)) {
            written(s, (m->region.guest_addr + at) / VUS_LOG_PAGE);
        }
    }
}

static void take_part(VhostUserServer *s, VusMemory *m, hwaddr from, hwaddr to,
                      VusWritten *written)
{
    g_autofree DirtyBitmapSnapshot *snapshot =
        memory_region_snapshot_and_clear_dirty(&m->mr, from, to - from,
                                               DIRTY_MEMORY_VGA);

    for (hwaddr at = from; at < to; at += GROUP_SIZE) {
        take_group(s, m, snapshot, at, MIN(at + GROUP_SIZE, to), written);
    }
}

void vus_memory_take_written(VhostUserServer *s, VusWritten *written)
{
    VusMemory *m;

    QLIST_FOREACH(m, &s->memory, next) {
        for (hwaddr at = 0; at < m->region.size; at += PART_SIZE) {
            take_part(s, m, at, MIN(at + PART_SIZE, m->region.size), written);
        }
    }
}

static void memory_finalize(Object *obj)
{
    vus_unmap(&VUS_MEMORY(obj)->map);
}

static const TypeInfo memory_info = {
    .name = TYPE_VUS_MEMORY,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(VusMemory),
    .instance_finalize = memory_finalize,
};

static void memory_register(void)
{
    type_register_static(&memory_info);
}

type_init(memory_register)
