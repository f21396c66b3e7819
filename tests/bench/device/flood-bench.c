/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "flood-bench.h"

static const FloodBench *bench;
/* The times of tests/bench/turn-meter.c, in ns: CPU time, and with locks */
static uint64_t *longest;
#define CLOCKS 2
static GString *table;

static void open_meter(void)
{
    const char *path = g_getenv("TURN_METER");
    int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
    void *map;

    if (fd < 0) {
        return;
    }
    g_assert_cmpint(ftruncate(fd, CLOCKS * sizeof(*longest)), ==, 0);
    map = mmap(NULL, CLOCKS * sizeof(*longest), PROT_READ | PROT_WRITE,
               MAP_SHARED, fd, 0);
    close(fd);
    g_assert(map != MAP_FAILED);
    longest = map;
}

/* How long the read of a register takes: it waits for the BQL. */
static gint64 register_wait(QRdma *d)
{
    gint64 before = g_get_monotonic_time();

    qrdma_config_read(d, 0, 4);
    return g_get_monotonic_time() - before;
}

static void measure(Flood *f, QRdma *d, const FloodOps *ops)
{
    gint64 begin, all, wait = 0;

    if (longest) {
        memset(longest, 0, CLOCKS * sizeof(*longest));
    }
    begin = g_get_monotonic_time();
    ops->start(f);
    do {
        wait = MAX(wait, register_wait(d));
    } while (!ops->done(f));
    all = g_get_monotonic_time() - begin;
    g_string_append_printf(table, "# %-36s %9.2f %9.2f %9.2f %9.1f\n",
                           ops->name, longest ? longest[0] / 1e6 : 0,
                           longest ? longest[1] / 1e6 : 0,
                           wait / 1e3, all / 1e3);
}

static void flood(gconstpointer data)
{
    const FloodOps *ops = data;
    QRdmaHost *host = qrdma_host_start(
        "-m 256 -netdev hubport,id=n0,hubid=0 -netdev hubport,id=n1,hubid=0 "
        "%s %s", bench->options, g_getenv("TURN_OPTIONS") ?: "");
    QRdma *d = qrdma_open(host, QPCI_DEVFN(4, 0));
    Flood *f = bench->new(host, d);

    ops->prepare(f);
    qrdma_settle(d);
    measure(f, d, ops);
    qrdma_host_stop(host);
    g_free(f);
}

int flood_bench_main(int argc, char **argv, const FloodBench *b)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    bench = b;
    for (size_t i = 0; i < bench->num_floods; i++) {
        g_autofree char *name = g_strdup(bench->floods[i].name);
        g_autofree char *path =
            g_strconcat(bench->path, g_strdelimit(name, " ,", '-'), NULL);

        qtest_add_data_func(path, &bench->floods[i], flood);
    }
    open_meter();
    table = g_string_new(NULL);
    ret = g_test_run();
    printf("# %-36s %9s %9s %9s %9s\n%s", "longest, in ms", "turn",
           "and locks", "wait", "all", table->str);
    g_string_free(table, true);
    return ret;
}
