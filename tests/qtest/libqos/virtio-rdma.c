/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma client for tests: machines and devices.
 */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "libqos-pc.h"
#include "malloc-pc.h"
#include "pci-pc.h"
#include "virtio-rdma.h"
#include "standard-headers/linux/pci_regs.h"

void qrdma_add_tests(const char *prefix, const QRdmaTest *tests)
{
    for (; tests->name; tests++) {
        g_autofree char *path = g_strconcat(prefix, tests->name, NULL);

        if (tests->run) {
            qtest_add_func(path, tests->run);
        } else {
            qtest_add_data_func(path, tests->data, tests->run_case);
        }
    }
}

bool qrdma_uses_demo;

const char *qrdma_ibdev(void)
{
    return g_getenv(QRDMA_IBDEV);
}

int64_t qrdma_patience(void)
{
    const char *seconds = g_getenv("RDMA_TEST_WAIT");

    return (seconds ? g_ascii_strtoll(seconds, NULL, 10) : 20) *
           G_USEC_PER_SEC;
}

/* Register of i440FX: 32 KiB of legacy memory */
#define PAM1 0x5a
#define PAM1_RAM 0x33

/* Memory behind a root port: 0xe0000000 to 0xe0ffffff */
#define BUS_WINDOW 0xe000
/* Where firmware has q35 map configuration space, and the register for that */
#define ECAM 0xb0000000ull
#define MCH_PCIEXBAR 0x60

/* RAM of machines, and the end of the holes that a PC has in it */
#define RAM_SIZE (64u << 20)
#define RAM_HOLES_END (1u << 20)

/*
 * Map a new file as RAM that the test and QEMU share. Returns QEMU's arguments.
 * @ram_fd: for the file, which QEMU inherits. The caller closes it afterwards.
 */
static char *share_ram(QRdmaHost *host, int *ram_fd)
{
    int fd = memfd_create("rdma-test", 0);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, RAM_SIZE), ==, 0);
    host->ram = mmap(NULL, RAM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    g_assert_true(host->ram != MAP_FAILED);
    *ram_fd = fd;
    return g_strdup_printf("-object memory-backend-file,id=ram,size=%u,"
                           "share=on,mem-path=/proc/self/fd/%d "
                           "-machine memory-backend=ram ", RAM_SIZE, fd);
}

QRdmaHost *qrdma_host_start_as(const char *machine, bool shared,
                               const char *fmt, ...)
{
    QRdmaHost *host = g_new0(QRdmaHost, 1);
    const char *ibdev = qrdma_ibdev();
    g_autofree char *args = NULL;
    g_autofree char *verbs = NULL;
    g_autofree char *ram = NULL;
    int ram_fd;
    va_list ap;

    va_start(ap, fmt);
    args = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    if (ibdev) {
        verbs = g_strdup_printf("-object rdma-verbs,id=v0,ibdev=%s "
                                "-object rdma-verbs,id=v1,ibdev=%s ",
                                ibdev, ibdev);
    }
    /* rdma-verbs needs shared RAM. */
    if (shared || ibdev) {
        ram = share_ram(host, &ram_fd);
    }
    host->qts = qtest_initf("-machine %s -nodefaults -m 64 %s%s%s", machine,
                            ram ?: "", verbs ?: "", args);
    if (ram) {
        close(ram_fd);
    }
    pc_alloc_init(&host->alloc, host->qts, ALLOC_NO_FLAGS);
    host->bus = qpci_new_pc(host->qts, &host->alloc);
    host->devices = g_ptr_array_new();
    return host;
}

static void close_devices(QRdmaHost *host)
{
    while (host->devices->len) {
        qrdma_close(g_ptr_array_index(host->devices, 0));
    }
}

static void qrdma_host_free(QRdmaHost *host)
{
    g_ptr_array_free(host->devices, true);
    qpci_free_pc(host->bus);
    alloc_destroy(&host->alloc);
    if (host->ram) {
        munmap(host->ram, RAM_SIZE);
    }
    g_free(host);
}

void qrdma_host_stop(QRdmaHost *host)
{
    close_devices(host);
    qtest_quit(host->qts);
    qrdma_host_free(host);
}

void qrdma_host_kill(QRdmaHost *host)
{
    close_devices(host);
    /* libqtest accepts no other signal as an orderly end */
    qtest_kill_qemu(host->qts);
    qtest_quit(host->qts);
    qrdma_host_free(host);
}

void qrdma_qmp_refused(QTestState *qts, const char *cmd, const char *text)
{
    g_autoptr(QDict) rsp = qtest_qmp(qts, cmd, NULL);
    const char *desc;

    g_assert_true(qdict_haskey(rsp, "error"));
    desc = qdict_get_str(qdict_get_qdict(rsp, "error"), "desc");
    g_test_message("%s", desc);
    if (!strstr(desc, text)) {
        g_error("%s: \"%s\" does not speak of \"%s\"", cmd, desc, text);
    }
}

QDict *qrdma_query(QTestState *qts, const char *args)
{
    g_autofree char *cmd = g_strdup_printf(
        "{'execute': 'query-rdma', 'arguments': {%s}}", args);
    g_autoptr(QDict) rsp = qtest_qmp(qts, cmd, NULL);
    QList *devices = qdict_get_qlist(rsp, "return");

    g_assert_nonnull(devices);
    g_assert_cmpuint(qlist_size(devices), ==, 1);
    return qobject_to(QDict, qlist_pop(devices));
}

void qrdma_ipv4_gid(uint8_t gid[RDMA_GID_LEN], uint8_t host)
{
    const uint8_t ipv4[RDMA_GID_LEN] = { [10] = 0xff, 0xff, 10, 0, 0, host };

    memcpy(gid, ipv4, sizeof(ipv4));
}

char *qrdma_migration_status(QTestState *qts)
{
    g_autoptr(QDict) rsp = qtest_qmp_assert_success_ref(
        qts, "{'execute': 'query-migrate'}");

    return g_strdup(qdict_get_try_str(rsp, "status") ?: "none");
}

bool qrdma_migration_done(QTestState *qts)
{
    for (int i = 0; ; i++) {
        g_autofree char *status = qrdma_migration_status(qts);

        g_assert_cmpint(i, <, 60000);
        if (g_str_equal(status, "completed")) {
            return true;
        }
        if (g_str_equal(status, "failed")) {
            return false;
        }
        g_usleep(1000);
    }
}

unsigned qrdma_open_files(QTestState *qts)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd",
                                            (int)qtest_pid(qts));
    g_autoptr(GDir) files = g_dir_open(path, 0, NULL);
    unsigned count = 0;

    g_assert_nonnull(files);
    while (g_dir_read_name(files)) {
        count++;
    }
    return count;
}

uint64_t qrdma_private_memory(QTestState *qts)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/status",
                                            (int)qtest_pid(qts));
    g_autofree char *status = NULL;
    const char *found;

    g_assert_true(g_file_get_contents(path, &status, NULL, NULL));
    found = strstr(status, "VmData:");
    g_assert_nonnull(found);
    return g_ascii_strtoull(found + strlen("VmData:"), NULL, 10);
}

int64_t qrdma_qom_get(QTestState *qts, const char *path, const char *property)
{
    g_autoptr(QDict) rsp = qtest_qmp(
        qts, "{'execute': 'qom-get', 'arguments': "
        "{'path': %s, 'property': %s}}", path, property);

    return qdict_get_int(rsp, "return");
}

void qrdma_host_set_legacy_ram(QRdmaHost *host, bool is_ram)
{
    QPCIDevice *bridge = qpci_device_find(host->bus, QPCI_DEVFN(0, 0));

    g_assert_nonnull(bridge);
    qpci_config_writeb(bridge, PAM1, is_ram ? PAM1_RAM : 0);
    g_free(bridge);
}

void qrdma_enable_bus(QRdmaHost *host, int port_devfn)
{
    g_autofree QPCIDevice *port = qpci_device_find(host->bus, port_devfn);

    g_assert_nonnull(port);
    qpci_config_writel(port, PCI_PRIMARY_BUS, 1 << 16 | 1 << 8);
    qpci_config_writew(port, PCI_MEMORY_BASE, BUS_WINDOW);
    qpci_config_writew(port, PCI_MEMORY_LIMIT, BUS_WINDOW | 0xf0);
    qpci_config_writew(port, PCI_COMMAND,
                       PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
}

void qrdma_enable_ecam(QRdmaHost *host, int port_devfn)
{
    g_autofree QPCIDevice *mch = qpci_device_find(host->bus, 0);

    qpci_config_writel(mch, MCH_PCIEXBAR + 4, 0);
    qpci_config_writel(mch, MCH_PCIEXBAR, ECAM | 1);
    qrdma_enable_bus(host, port_devfn);
}

uint64_t qrdma_ecam(int devfn)
{
    return ECAM + ((uint64_t)devfn << 12);
}

QRdma *qrdma_open(QRdmaHost *host, int devfn)
{
    QPCIAddress addr = { .devfn = devfn };
    QRdma *d = g_new0(QRdma, 1);

    d->host = host;
    g_ptr_array_add(host->devices, d);
    d->mem = g_array_new(false, false, sizeof(uint64_t));
    d->objects = g_ptr_array_new_with_free_func(g_free);
    d->pci = virtio_pci_new(host->bus, &addr);
    g_assert_nonnull(d->pci);
    g_assert_cmpint(d->pci->vdev.device_type, ==, VIRTIO_ID_RDMA);
    qvirtio_pci_device_enable(d->pci);
    if (qpci_find_capability(d->pci->pdev, PCI_CAP_ID_MSIX, 0)) {
        qpci_msix_enable(d->pci->pdev);
        d->msix_vectors = qpci_msix_table_size(d->pci->pdev);
    }
    return d;
}

static void qrdma_release(QRdma *d)
{
    for (uint32_t i = 0; i < d->n_rings; i++) {
        g_free(d->rings[i].next);
        g_free(d->rings[i].fifo);
    }
    g_clear_pointer(&d->rings, g_free);
    d->n_rings = 0;
    d->event_buf = 0;
    for (guint i = 0; i < d->mem->len; i++) {
        guest_free(&d->host->alloc, g_array_index(d->mem, uint64_t, i));
    }
    g_array_set_size(d->mem, 0);
    g_ptr_array_set_size(d->objects, 0);
}

void qrdma_close(QRdma *d)
{
    qrdma_release(d);
    g_ptr_array_remove(d->host->devices, d);
    g_array_free(d->mem, true);
    g_ptr_array_free(d->objects, true);
    qvirtio_pci_destructor(&d->pci->obj);
    g_free(d->pci);
    g_free(d);
}

void qrdma_reset(QRdma *d)
{
    qvirtio_reset(&d->pci->vdev);
    qrdma_release(d);
}

uint8_t qrdma_device_status(QRdma *d)
{
    return d->pci->vdev.bus->get_status(&d->pci->vdev);
}

bool qrdma_needs_reset(QRdma *d)
{
    return qrdma_device_status(d) & VIRTIO_CONFIG_S_NEEDS_RESET;
}

uint64_t qrdma_config_read(QRdma *d, uint32_t offset, unsigned size)
{
    QPCIDevice *pdev = d->pci->pdev;
    uint64_t at = d->pci->device_cfg_offset + offset;

    switch (size) {
    case 1:
        return qpci_io_readb(pdev, d->pci->bar, at);
    case 2:
        return qpci_io_readw(pdev, d->pci->bar, at);
    case 4:
        return qpci_io_readl(pdev, d->pci->bar, at);
    case 8:
        return qpci_io_readq(pdev, d->pci->bar, at);
    default:
        g_assert_not_reached();
    }
}

void qrdma_config_write(QRdma *d, uint32_t offset, unsigned size,
                        uint64_t value)
{
    QPCIDevice *pdev = d->pci->pdev;
    uint64_t at = d->pci->device_cfg_offset + offset;

    switch (size) {
    case 1:
        qpci_io_writeb(pdev, d->pci->bar, at, value);
        break;
    case 2:
        qpci_io_writew(pdev, d->pci->bar, at, value);
        break;
    case 4:
        qpci_io_writel(pdev, d->pci->bar, at, value);
        break;
    default:
        g_assert_not_reached();
    }
}

void qrdma_get_config(QRdma *d, struct virtio_rdma_config *config)
{
    size_t size = d->demo ? QRDMA_DEMO_CONFIG_SIZE : sizeof(*config);
    g_autofree uint8_t *bytes = g_malloc(size);

    for (size_t i = 0; i < size; i++) {
        bytes[i] = qrdma_config_read(d, i, 1);
    }
    if (d->demo) {
        qrdma_demo_config(bytes, config);
    } else {
        memcpy(config, bytes, size);
    }
}

static bool ring_exists(QRdma *d, uint32_t i)
{
    uint32_t events = VIRTIO_RDMA_EVENT_VQ(d->max_cq, d->max_qp);

    if (i >= events) {
        return qrdma_has(d, QRDMA_F(VIRTIO_RDMA_F_VERSION_1));
    }
    /* QP 0 does not exist */
    return i != VIRTIO_RDMA_SQ_VQ(d->max_cq, 0) &&
           i != VIRTIO_RDMA_RQ_VQ(d->max_cq, 0);
}

void qrdma_prepare(QRdma *d, uint64_t features, uint16_t ring_size)
{
    const uint64_t not_of_device = QRDMA_DIRECT &
                                   ~QRDMA_F(VIRTIO_RDMA_F_DIRECT);
    QVirtioDevice *vdev = &d->pci->vdev;
    uint64_t offered;

    qrdma_reset(d);
    qvirtio_set_acknowledge(vdev);
    qvirtio_set_driver(vdev);
    offered = qvirtio_get_features(vdev);
    qrdma_uses_demo = d->demo;
    d->features = features ?: QRDMA_FEATURES;
    if (d->demo) {
        /* All else is not for a driver of this layout. */
        d->features = QRDMA_F(VIRTIO_F_VERSION_1);
    }
    /* An adapter of the host refuses drivers without this feature. */
    d->features |= offered & QRDMA_F(VIRTIO_RDMA_F_HOST_NUMBERS);
    if (d->direct && (offered & QRDMA_F(VIRTIO_RDMA_F_DIRECT)) &&
        (d->features & QRDMA_F(VIRTIO_RDMA_F_VERSION_1))) {
        d->features |= QRDMA_DIRECT;
    }
    d->direct_objects = d->features & not_of_device;
    d->features &= ~not_of_device;
    g_assert_cmphex(d->features & ~offered, ==, 0);
    qvirtio_set_features(vdev, d->features);

    d->ring_size = ring_size ?: QRDMA_RING_SIZE;
    d->max_qp = qrdma_config_le32(d, max_qp);
    d->max_qp_direct = qrdma_config_le32(d, max_qp_direct);
    d->max_cq = qrdma_config_le32(d, max_cq);
    d->max_cq_direct = qrdma_config_le32(d, max_cq_direct);
    d->max_srq = 0;
    d->max_srq_direct = qrdma_config_le32(d, max_srq_direct);
    d->cqe_size = d->demo ? QRDMA_DEMO_CQE_SIZE
                          : sizeof(struct virtio_rdma_cqe);
    /* A driver of the RFC takes the MAC address from the NIC. */
    for (int i = 0; i < RDMA_MAC_LEN && !d->demo; i++) {
        d->mac[i] = qrdma_config_read(
            d, offsetof(struct virtio_rdma_config, mac) + i, 1);
    }
    if (qrdma_has(d, QRDMA_F(VIRTIO_RDMA_F_VERSION_1))) {
        d->max_srq = qrdma_config_le32(d, max_srq);
        d->cqe_size = sizeof(struct virtio_rdma_cqe_ex);
    }
    d->n_rings = VIRTIO_RDMA_SRQ_VQ(d->max_cq, d->max_qp, d->max_srq);
    d->rings = g_new0(QRdmaRing, d->n_rings);
    for (uint32_t i = 0; i < d->n_rings; i++) {
        d->rings[i].dev = d;
        d->rings[i].pci.vq.index = i;
    }
    d->ctrl_req = qrdma_alloc(d, 4096);
    d->ctrl_rsp = qrdma_alloc(d, 4096);
    qrdma_ring_setup(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ), 1024);
    for (uint32_t i = 1; i < d->n_rings; i++) {
        if (ring_exists(d, i)) {
            qrdma_ring_setup(qrdma_ring(d, i), d->ring_size);
        }
    }
}

void qrdma_driver_ok(QRdma *d)
{
    qvirtio_set_driver_ok(&d->pci->vdev);
}

void qrdma_start(QRdma *d, uint64_t features, uint16_t ring_size)
{
    qrdma_prepare(d, features, ring_size);
    qrdma_driver_ok(d);
}

uint64_t qrdma_alloc(QRdma *d, uint64_t size)
{
    uint64_t addr = guest_alloc(&d->host->alloc, size);

    qrdma_memset(d, addr, 0, size);
    g_array_append_val(d->mem, addr);
    return addr;
}

/* Returns where the test can write this guest memory; NULL: by qtest only. */
static void *shared_ram(QRdmaHost *host, uint64_t addr, size_t size)
{
    return host->ram && addr >= RAM_HOLES_END && addr < RAM_SIZE &&
           size <= RAM_SIZE - addr ? host->ram + addr : NULL;
}

void qrdma_memset(QRdma *d, uint64_t addr, uint8_t byte, size_t size)
{
    void *ram = shared_ram(d->host, addr, size);

    if (ram) {
        memset(ram, byte, size);
    } else {
        qtest_memset(d->host->qts, addr, byte, size);
    }
}

void qrdma_write(QRdma *d, uint64_t addr, const void *data, size_t size)
{
    void *ram = shared_ram(d->host, addr, size);

    if (ram) {
        memcpy(ram, data, size);
    } else if (size) {
        qtest_bufwrite(d->host->qts, addr, data, size);
    }
}

void qrdma_read(QRdma *d, uint64_t addr, void *data, size_t size)
{
    if (size) {
        qtest_bufread(d->host->qts, addr, data, size);
    }
}

uint32_t qrdma_load_word(QRdma *d, uint64_t addr)
{
    uint32_t *word = shared_ram(d->host, addr, sizeof(*word));

    /* The device orders its accesses the other way round. */
    smp_mb();
    return word ? le32_to_cpu(qatomic_read(word))
                : qtest_readl(d->host->qts, addr);
}

void *qrdma_own(QRdma *d, size_t size)
{
    void *p = g_malloc0(size);

    g_ptr_array_add(d->objects, p);
    return p;
}

void qrdma_host_settle(QRdmaHost *host)
{
    /* each read is a turn of QEMU's main loop */
    for (int i = 0; i < 50; i++) {
        qtest_readb(host->qts, 0);
        g_usleep(100);
    }
}

void qrdma_settle(QRdma *d)
{
    qrdma_host_settle(d->host);
}

void qrdma_clock_step(QRdma *d, int64_t ns)
{
    qtest_clock_step(d->host->qts, ns);
}
