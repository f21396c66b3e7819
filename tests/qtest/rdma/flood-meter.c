/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "flood-meter.h"

static uint64_t *longest_turn;      /* of tests/bench/turn-meter.c */
static GString *table;

const char *flood_options(void)
{
    return g_getenv("TURN_OPTIONS") ?: "";
}

static void open_meter(void)
{
    const char *path = g_getenv("TURN_METER");
    int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
    void *map;

    if (fd < 0) {
        return;
    }
    g_assert_cmpint(ftruncate(fd, sizeof(*longest_turn)), ==, 0);
    map = mmap(NULL, sizeof(*longest_turn), PROT_READ | PROT_WRITE,
               MAP_SHARED, fd, 0);
    close(fd);
    g_assert(map != MAP_FAILED);
    longest_turn = map;
}

void flood_meter_start(FloodMeter *m, const char *name)
{
    if (longest_turn) {
        *longest_turn = 0;
    }
    m->name = name;
    m->wait = 0;
    m->begin = g_get_monotonic_time();
}

void flood_meter_look(FloodMeter *m, QRdma *d)
{
    gint64 before = g_get_monotonic_time();

    qrdma_config_read(d, 0, 4);
    m->wait = MAX(m->wait, g_get_monotonic_time() - before);
}

void flood_meter_end(const FloodMeter *m)
{
    gint64 all = g_get_monotonic_time() - m->begin;

    g_string_append_printf(table, "# %-36s %9.2f %9.2f %9.1f\n", m->name,
                           longest_turn ? *longest_turn / 1e6 : 0,
                           m->wait / 1e3, all / 1e3);
}

int flood_run_all(void)
{
    int ret;

    open_meter();
    table = g_string_new(NULL);
    ret = g_test_run();
    printf("# %-36s %9s %9s %9s\n%s", "longest, in ms", "turn", "wait", "all",
           table->str);
    g_string_free(table, true);
    return ret;
}
