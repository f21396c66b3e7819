/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long rdma-verbs takes to register memory, and how long QEMU's main loop
 * holds the BQL meanwhile. In "make check" it shows that regions in many parts
 * come and go; "make bench BENCH=verbs-mr" prints the times.
 *
 * From the environment: MR_BENCH_MIB, the size of a region; MR_BENCH_IBDEV, the
 * host's device, else it is a double of libibverbs that takes no time; and what
 * tests/bench/turn-meter.c needs.
 */
#include "qemu/osdep.h"
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include "qemu/bswap.h"
#include "qemu/memfd.h"
#include "qemu/units.h"
#include "libqos/virtio-rdma.h"
#include "tests/fake-ibverbs/client.h"

#define PAGE RDMA_PAGE_SIZE
#define BASE (64 * MiB)             /* guest address of what is registered */
#define ROUNDS 3

/* Times in ms. Those of turns are of the main loop's longest turn. */
typedef struct Times {
    double all;
    double turn_cpu;
    double turn_locks;              /* with waits for locks */
    double wait;                    /* for the read of a register */
} Times;

typedef struct Kind {
    const char *name;
    uint32_t part;                  /* contiguous pages; 0: all pages are */
} Kind;

static const Kind kinds[] = {
    { "contiguous", 0 },
    { "parts-of-64-KiB", 16 },
    { "parts-of-4-KiB", 1 },
};

static uint64_t bytes;
static volatile uint64_t *longest_turn;     /* CPU, with locks */
static GString *table;

static double ms_since(gint64 start)
{
    return (g_get_monotonic_time() - start) / 1e3;
}

/* The host alone: one mapping of such memory */

static struct ibv_context *open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = NULL;

    for (int i = 0; list && list[i] && !ctx; i++) {
        if (!strcmp(ibv_get_device_name(list[i]), name)) {
            ctx = ibv_open_device(list[i]);
        }
    }
    g_assert_nonnull(ctx);
    ibv_free_device_list(list);
    return ctx;
}

static void test_host_alone(void)
{
    const char *ibdev = g_getenv("MR_BENCH_IBDEV");
    double reg = 0, dereg = 0;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    int fd;
    void *mem;

    ctx = open_device(ibdev);
    pd = ibv_alloc_pd(ctx);
    fd = qemu_memfd_create("bench", bytes, false, 0, 0, NULL);
    mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    g_assert(pd && mem != MAP_FAILED);
    memset(mem, 1, bytes);
    for (int i = 0; i < ROUNDS; i++) {
        gint64 start = g_get_monotonic_time();
        struct ibv_mr *mr = ibv_reg_mr(pd, mem, bytes, IBV_ACCESS_LOCAL_WRITE);
        double took = ms_since(start);

        g_assert_nonnull(mr);
        reg = i ? MIN(reg, took) : took;
        start = g_get_monotonic_time();
        g_assert_cmpint(ibv_dereg_mr(mr), ==, 0);
        took = ms_since(start);
        dereg = i ? MIN(dereg, took) : took;
    }
    g_string_append_printf(table, "# %-18s %-7s %9.1f\n# %-18s %-7s %9.1f\n",
                           "host alone", "reg", reg, "", "dereg", dereg);
    munmap(mem, bytes);
    close(fd);
    ibv_dealloc_pd(pd);
    ibv_close_device(ctx);
}

/* By the device */

/* @n pages after BASE, in parts in random order. */
static uint64_t *make_list(uint32_t n, uint32_t part)
{
    uint64_t *pages = g_new(uint64_t, n);
    uint32_t nparts = part ? n / part : 1;
    g_autofree uint32_t *order = g_new(uint32_t, nparts);
    GRand *dice = g_rand_new_with_seed(1);

    for (uint32_t i = 0; i < nparts; i++) {
        uint32_t k = g_rand_int_range(dice, 0, i + 1);

        order[i] = order[k];
        order[k] = i;
    }
    part = n / nparts;
    for (uint32_t i = 0; i < n; i++) {
        pages[i] = cpu_to_le64(BASE + (uint64_t)PAGE *
                               (order[i / part] * part + i % part));
    }
    g_rand_free(dice);
    return pages;
}

static Times command(QRdma *d, uint8_t cmd, const void *req, size_t len,
                     void *rsp, size_t rsp_len)
{
    QRdmaRing *ring = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);
    uint64_t at = qrdma_alloc(d, PAGE);
    const QRdmaDesc desc[] = {
        { at, 1 + len }, { at + 2048, 1 + rsp_len, true },
    };
    Times t = {};
    uint16_t head;
    uint32_t used;
    gint64 start;

    qtest_writeb(d->host->qts, at, cmd);
    qtest_writeb(d->host->qts, at + 2048, 0xff);
    qrdma_write(d, at + 1, req, len);
    qrdma_ring_add(ring, desc, 2);
    if (longest_turn) {
        longest_turn[0] = longest_turn[1] = 0;
    }
    start = g_get_monotonic_time();
    qrdma_ring_kick(ring);
    do {
        gint64 before = g_get_monotonic_time();

        qrdma_config_read(d, 0, 4);
        t.wait = MAX(t.wait, ms_since(before));
    } while (!qrdma_ring_get(ring, &head, &used));
    t.all = ms_since(start);
    /* Bottom halves and RCU free memory later on */
    for (int i = 0; i < 200; i++) {
        qrdma_config_read(d, 0, 4);
    }
    if (longest_turn) {
        t.turn_cpu = longest_turn[0] / 1e6;
        t.turn_locks = longest_turn[1] / 1e6;
    }
    assert_ok(qtest_readb(d->host->qts, at + 2048));
    qrdma_read(d, at + 2049, rsp, rsp_len);
    return t;
}

/* Keep the least time, because other programs use the machine, too. */
static void keep_least(Times *least, Times t, bool first)
{
    if (first) {
        *least = t;
        return;
    }
    least->all = MIN(least->all, t.all);
    least->turn_cpu = MIN(least->turn_cpu, t.turn_cpu);
    least->turn_locks = MIN(least->turn_locks, t.turn_locks);
    least->wait = MIN(least->wait, t.wait);
}

static void put_row(const char *name, const char *what, const Times *t)
{
    g_string_append_printf(table, "# %-18s %-7s %9.1f %9.2f %9.2f %9.2f\n",
                           name, what, t->all, t->turn_cpu, t->turn_locks,
                           t->wait);
}

static uint64_t max_map_count(void)
{
    g_autofree char *text = NULL;

    return g_file_get_contents("/proc/sys/vm/max_map_count", &text, NULL,
                               NULL) ? g_ascii_strtoull(text, NULL, 10) : 0;
}

static void measure(QRdma *d, const Kind *kind)
{
    uint32_t npages = bytes / PAGE;
    g_autofree uint64_t *pages = make_list(npages, kind->part);
    uint64_t list = qrdma_alloc(d, npages * sizeof(uint64_t));
    struct virtio_rdma_reg_user_mr_req req = {
        .pdn = cpu_to_le32(qrdma_alloc_pd(d)->pdn),
        .access = cpu_to_le32(RDMA_ACCESS_LOCAL_WRITE),
        .length = cpu_to_le64(bytes),
        .pages = cpu_to_le64(list),
        .npages = cpu_to_le32(npages),
    };
    struct virtio_rdma_dereg_mr_req dereg;
    struct virtio_rdma_mr_rsp rsp;
    Times made = {}, gone = {};

    qrdma_write(d, list, pages, npages * sizeof(uint64_t));
    for (int i = 0; i < ROUNDS; i++) {
        keep_least(&made, command(d, VIRTIO_RDMA_CMD_REG_USER_MR, &req,
                                  sizeof(req), &rsp, sizeof(rsp)), !i);
        dereg.mrn = rsp.mrn;
        keep_least(&gone, command(d, VIRTIO_RDMA_CMD_DEREG_MR, &dereg,
                                  sizeof(dereg), NULL, 0), !i);
    }
    put_row(kind->name, "reg", &made);
    put_row("", "dereg", &gone);
}

static void test_registration(gconstpointer data)
{
    const char *ibdev = g_getenv("MR_BENCH_IBDEV");
    FakeVerbs *fake = ibdev ? NULL : fake_verbs_new("keep off");
    const Kind *kind = data;
    uint64_t size = BASE + bytes;
    QRdmaHost *host;
    QRdma *d;

    if (kind->part && bytes / PAGE / kind->part + 4096 > max_map_count()) {
        g_test_skip("vm.max_map_count of the machine is too small");
        return;
    }
    host = qrdma_host_start_machine(
        "pc,memory-backend=mem", "-m %" PRIu64 "M "
        "-object memory-backend-memfd,id=mem,size=%" PRIu64 ",share=on "
        "-object rdma-verbs,id=r0,ibdev=%s "
        "-device virtio-rdma-pci,rdmadev=r0,addr=4", size / MiB, size,
        ibdev ?: FAKE_IBVERBS_DEVICE);
    if (fake) {
        fake_verbs_started(fake);
    }
    d = qrdma_open(host, QPCI_DEVFN(4, 0));
    qrdma_start(d, 0, 0);
    /* As if the guest had used all of its memory */
    for (uint64_t at = 0; at < bytes; at += 8 * MiB) {
        qtest_memset(host->qts, BASE + at, 1, 8 * MiB);
    }
    measure(d, kind);
    qrdma_host_stop(host);
    if (fake) {
        fake_verbs_free(fake);
    }
}

static void open_meter(void)
{
    const char *path = g_getenv("TURN_METER");
    int fd = path ? open(path, O_RDWR | O_CREAT, 0600) : -1;
    void *map;

    if (fd < 0) {
        return;
    }
    g_assert_cmpint(ftruncate(fd, 2 * sizeof(*longest_turn)), ==, 0);
    map = mmap(NULL, 2 * sizeof(*longest_turn), PROT_READ | PROT_WRITE,
               MAP_SHARED, fd, 0);
    close(fd);
    g_assert(map != MAP_FAILED);
    longest_turn = map;
}

int main(int argc, char **argv)
{
    const char *mib = g_getenv("MR_BENCH_MIB");
    int ret;

    g_test_init(&argc, &argv, NULL);
    bytes = (mib ? atoi(mib) : 32) * MiB;
    open_meter();
    table = g_string_new(NULL);
    /* The double takes no time */
    if (getenv("MR_BENCH_IBDEV")) {
        qtest_add_func("/rdma-verbs/registration/host-alone", test_host_alone);
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        g_autofree char *path = g_strdup_printf("/rdma-verbs/registration/%s",
                                                kinds[i].name);

        qtest_add_data_func(path, &kinds[i], test_registration);
    }
    ret = g_test_run();
    printf("# %-26s %9s %9s %9s %9s\n%s", "ms; least of 3", "all", "turn CPU",
           "and locks", "wait", table->str);
    return ret;
}
