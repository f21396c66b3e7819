/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The front end's bitmap of written pages, its "log". The front end migrates
 * memory while the device runs, and sends the pages in the log again.
 *
 * QEMU's dirty bitmaps record the writes, whatever path of the device they
 * take. A timer copies these bits to the log, and so does each stop of the
 * device. The front end reads the log for the last time after the stop.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/timer.h"
#include "server.h"

#define UPDATE_NS (100 * SCALE_MS)
/* An update for terabytes of memory takes long: leave the device this share. */
#define DEVICE_SHARE 9

static void add_page(VhostUserServer *s, hwaddr page)
{
    /* The front end sees to it that the log has all of its memory. */
    if (page / 8 < s->log.size) {
        qatomic_or(&s->log.map.data[page / 8], 1 << page % 8);
    }
}

void vus_log_update(VhostUserServer *s)
{
    if (s->tracks_writes && s->log.map.pages) {
        vus_memory_take_written(s, add_page);
    }
}

static void on_timer(void *opaque)
{
    VhostUserServer *s = opaque;
    int64_t begin = qemu_clock_get_ns(QEMU_CLOCK_REALTIME), end;

    vus_log_update(s);
    end = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
    timer_mod(s->log.timer, end + MAX(UPDATE_NS, DEVICE_SHARE * (end - begin)));
}

bool vus_log_set(VhostUserServer *s, int fd, uint64_t offset, uint64_t size,
                 Error **errp)
{
    VusMap map;

    if (!vus_map(&map, fd, offset, size, errp)) {
        return false;
    }
    vus_unmap(&s->log.map);
    s->log.map = map;
    s->log.size = size;
    return true;
}

void vus_log_enable(VhostUserServer *s, bool on)
{
    vus_memory_track(s, on);
    if (on && !s->log.timer) {
        s->log.timer = timer_new_ns(QEMU_CLOCK_REALTIME, on_timer, s);
        on_timer(s);
    } else if (!on && s->log.timer) {
        timer_free(s->log.timer);
        s->log.timer = NULL;
    }
}

void vus_log_clear(VhostUserServer *s)
{
    vus_log_enable(s, false);
    vus_unmap(&s->log.map);
}
