/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzers of the virtio-rdma device: the machine, its devices and queues.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/keyval.h"
#include "qemu/main-loop.h"
#include "qemu/aio-wait.h"
#include "hw/core/boards.h"
#include "hw/pci/pci_regs.h"
#include "monitor/qdev.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-net.h"
#include "qobject/qdict.h"
#include "rdma-fuzz.h"
#include "standard-headers/linux/virtio_pci.h"
#include "standard-headers/linux/virtio_ring.h"
#include "system/address-spaces.h"
#include "system/iothread.h"
#include "system/ramblock.h"

#define DEVICE \
    "virtio-rdma-pci,id=rdma0,bus=rp0,max-qp=8,max-cq=4," \
    "max-srq=2,max-mr=24,max-mw=16,max-pd=4,max-mcast-grp=4," \
    "gid-table-len=4,max-srq-wr=64,max-cqe=200"
#define PORT "netdev=n0,mac=52:54:00:12:34:01"
#define MCH_PCIEXBAR 0x60
#define BIOS_SIZE 65536
#define PORT_WINDOW 0xe000
#define MAX_TURNS 20
#define NOTIFY_STEP 4               /* bytes from doorbell to doorbell */

#define COMMON(field) offsetof(struct virtio_pci_common_cfg, field)

FuzzGuest fuzz_guest;

uint8_t in_u8(FuzzIn *in)
{
    if (!in->left) {
        return 0;
    }
    in->left--;
    return *in->p++;
}

uint16_t in_u16(FuzzIn *in)
{
    uint16_t low = in_u8(in);

    return in_u8(in) << 8 | low;
}

uint32_t in_u32(FuzzIn *in)
{
    uint32_t low = in_u16(in);

    return (uint32_t)in_u16(in) << 16 | low;
}

uint64_t in_u64(FuzzIn *in)
{
    uint64_t low = in_u32(in);

    return (uint64_t)in_u32(in) << 32 | low;
}

static char *device_params(void)
{
    const FuzzConfig *config = fuzz_guest.config;

    return g_strconcat(DEVICE, config->shm ? ",rdmadev=r0" : "," PORT,
                       config->iothread ? ",iothread=io0" : "",
                       config->props, NULL);
}

GString *fuzz_machine(const FuzzConfig *config)
{
    GString *s = g_string_new(TARGET_NAME);
    int bios = memfd_create("bios", 0), fds[2];

    fuzz_guest.config = config;
    g_assert_cmpint(ftruncate(bios, BIOS_SIZE), ==, 0);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), ==, 0);
    g_unix_set_fd_nonblocking(fds[0], true, NULL);
    fuzz_guest.wire = fds[0];
    g_string_append_printf(s,
        " -display none -nodefaults -m 8 -seed 1"
        /* Its timer would take most of the time when virtual time advances. */
        " -machine q35,accel=qtest,pit=off"
        " -bios /proc/self/fd/%d"
        " -netdev dgram,id=n0,local.type=fd,local.str=%d %s",
        bios, fds[1], getenv("FUZZ_ARGS") ?: "");
    return s;
}

GString *fuzz_cmdline(FuzzTarget *t)
{
    /* The beginning of a Target */
    const FuzzConfig *config = t->opaque;
    GString *s = fuzz_machine(config);
    g_autofree char *backend = NULL, *device = device_params();

    if (config->shm) {
        backend = g_strdup_printf("-object rdma-roce,id=r0," PORT ",shm-dir=%s",
                                  fuzz_shm_dir());
    }
    g_string_append_printf(s,
        " -global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=%s"
        " -blockdev null-co,node-name=b0,latency-ns=1000000"
        " -device virtio-blk-pci,id=blk0,drive=b0,addr=5"
        " %s"
        " -device pcie-root-port,id=rp0,addr=4,chassis=1"
        " %s %s -device %s",
        config->iothread ? "on" : "off",
        config->iommu ? "-device virtio-iommu-pci,id=iommu0,addr=6" : "",
        config->iothread ? "-object iothread,id=io0" : "", backend ?: "",
        device);
    return s;
}

static void find_function(FuzzFunction *f, const char *id, int devfn,
                          uint64_t bar)
{
    g_autofree char *path = g_strdup_printf("/machine/peripheral/%s", id);
    Object *obj = object_resolve_path(path, NULL);

    f->devfn = devfn;
    f->bar = bar;
    f->proxy = obj ? VIRTIO_PCI(obj) : NULL;
    f->vdev = obj ? virtio_bus_get_device(&f->proxy->bus) : NULL;
}

void fuzz_find_devices(void)
{
    find_function(&fuzz_guest.rdma, "rdma0", FUZZ_RDMA_DEVFN, FUZZ_RDMA_BAR);
    find_function(&fuzz_guest.blk, "blk0", FUZZ_BLK_DEVFN, FUZZ_BLK_BAR);
    find_function(&fuzz_guest.iommu, "iommu0", FUZZ_IOMMU_DEVFN,
                  FUZZ_IOMMU_BAR);
}

void fuzz_plug(void)
{
    g_autofree char *params = device_params();
    QDict *opts;

    qmp_set_link("n0", true, &error_abort);
    if (object_resolve_path("/machine/peripheral/rdma0", NULL)) {
        return;
    }
    opts = keyval_parse(params, "driver", NULL, &error_abort);
    object_unref(OBJECT(qdev_device_add_from_qdict(opts, false,
                                                   &error_abort)));
    qobject_unref(opts);
}

void fuzz_write(uint64_t addr, const void *data, size_t len)
{
    address_space_write(&address_space_memory, addr, MEMTXATTRS_UNSPECIFIED,
                        data, len);
}

void fuzz_read(uint64_t addr, void *data, size_t len)
{
    unsigned tears = fuzz_guest.tears;

    /* Reads of the guest itself do not count as reads of the device. */
    fuzz_guest.tears = 0;
    memset(data, 0, len);
    address_space_read(&address_space_memory, addr, MEMTXATTRS_UNSPECIFIED,
                       data, len);
    fuzz_guest.tears = tears;
}

void fuzz_store(uint64_t addr, uint64_t value, unsigned size)
{
    uint64_t le = cpu_to_le64(value);

    fuzz_write(addr, &le, size);
}

uint64_t fuzz_load(uint64_t addr, unsigned size)
{
    uint64_t le = 0;

    fuzz_read(addr, &le, size);
    return le64_to_cpu(le);
}

uint64_t fuzz_config_addr(int devfn, uint32_t offset)
{
    return FUZZ_ECAM + ((uint64_t)devfn << 12) + offset;
}

static void nothing(void *opaque)
{

}

/* Let the iothread end its turn. */
static void await_iothread(void)
{
    if (fuzz_guest.config->iothread) {
        aio_wait_bh_oneshot(iothread_get_aio_context(iothread_by_id("io0")),
                            nothing, NULL);
    }
}

void fuzz_settle(void)
{
    await_iothread();
    for (int i = 0; i < MAX_TURNS && g_main_context_pending(NULL); i++) {
        main_loop_wait(true);
        await_iothread();
    }
}

static void enable_function(FuzzFunction *f)
{
    uint64_t config = fuzz_config_addr(f->devfn, 0);

    if (!f->proxy) {
        return;
    }
    fuzz_store(config + PCI_BASE_ADDRESS_1, f->bar + FUZZ_MSIX, 4);
    if (f == &fuzz_guest.rdma) {
        fuzz_store(config + PCI_BASE_ADDRESS_2, FUZZ_DOORBELLS, 4);
    }
    fuzz_store(config + PCI_BASE_ADDRESS_4, f->bar, 4);
    fuzz_store(config + PCI_BASE_ADDRESS_5, 0, 4);
    fuzz_store(config + PCI_COMMAND,
               PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
    if (f->proxy->pci_dev.msix_cap) {
        fuzz_store(config + f->proxy->pci_dev.msix_cap + PCI_MSIX_FLAGS,
                   PCI_MSIX_FLAGS_ENABLE, 2);
    }
}

static void clear_memory(void)
{
    uint8_t *ram = memory_region_get_ram_ptr(current_machine->ram);

    memset(ram, 0, 0xa0000);
    memset(ram + FUZZ_MEM, 0, FUZZ_MEM_END - FUZZ_MEM);
}

void fuzz_drop_intx(PCIDevice *pci)
{
    pci->irq_state = 0;
}

void fuzz_machine_reset(void)
{
    uint64_t port = fuzz_config_addr(FUZZ_PORT_DEVFN, 0);
    uint32_t le = cpu_to_le32(0x80000000u | MCH_PCIEXBAR);

    fuzz_reset(NULL);
    fuzz_settle();
    clear_memory();

    /* The ECAM */
    address_space_write(&address_space_io, 0xcf8, MEMTXATTRS_UNSPECIFIED,
                        &le, 4);
    le = cpu_to_le32(FUZZ_ECAM | 1);
    address_space_write(&address_space_io, 0xcfc, MEMTXATTRS_UNSPECIFIED,
                        &le, 4);
    fuzz_store(port + PCI_PRIMARY_BUS, 1 << 16 | 1 << 8, 4);
    fuzz_store(port + PCI_MEMORY_BASE, PORT_WINDOW, 2);
    fuzz_store(port + PCI_MEMORY_LIMIT, PORT_WINDOW | 0xf0, 2);
    fuzz_store(port + PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER,
               2);
    fuzz_find_devices();
    enable_function(&fuzz_guest.rdma);
    enable_function(&fuzz_guest.blk);
    enable_function(&fuzz_guest.iommu);
}

static uint64_t ring_mem(const FuzzRing *r)
{
    return FUZZ_RINGS + r->index * 0x1000ull;
}

static void common_store(FuzzFunction *f, size_t field, uint64_t value,
                         unsigned size)
{
    fuzz_store(f->bar + f->proxy->common.offset + field, value, size);
}

static void ring_place(FuzzFunction *f, FuzzRing *r, size_t low,
                       uint64_t addr)
{
    common_store(f, low, (uint32_t)addr, 4);
    common_store(f, low + 4, addr >> 32, 4);
}

void fuzz_ring_setup(FuzzFunction *f, FuzzRing *r)
{
    static const uint8_t zeroes[0x1000];
    uint64_t mem = ring_mem(r);
    unsigned vq = f == &fuzz_guest.rdma ? r->index : 0;

    r->size = FUZZ_RING_SIZE;
    r->put = 0;
    r->next = 0;
    r->lap = false;
    fuzz_write(mem, zeroes, sizeof(zeroes));
    common_store(f, COMMON(queue_select), vq, 2);
    common_store(f, COMMON(queue_size), r->size, 2);
    ring_place(f, r, COMMON(queue_desc_lo), mem);
    ring_place(f, r, COMMON(queue_avail_lo), mem + 0x800);
    ring_place(f, r, COMMON(queue_used_lo), mem + 0xa00);
    common_store(f, COMMON(queue_msix_vector), vq % 8, 2);
    common_store(f, COMMON(queue_enable), 1, 2);
}

bool fuzz_start(FuzzFunction *f, uint64_t features)
{
    uint64_t status = f->bar + f->proxy->common.offset +
                      COMMON(device_status);

    fuzz_store(status, 0, 1);
    fuzz_store(status, VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER,
               1);
    for (int i = 0; i < 2; i++) {
        common_store(f, COMMON(guest_feature_select), i, 4);
        common_store(f, COMMON(guest_feature), (uint32_t)(features >> 32 * i),
                     4);
    }
    fuzz_store(status, VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER |
                       VIRTIO_CONFIG_S_FEATURES_OK, 1);
    return fuzz_load(status, 1) & VIRTIO_CONFIG_S_FEATURES_OK;
}

uint64_t fuzz_ring_buffer(const FuzzRing *r)
{
    return FUZZ_BUFFERS + (r->index * FUZZ_RING_SIZE + r->next) *
                          (uint64_t)FUZZ_BUF_SIZE;
}

static void put_split(FuzzRing *r, const QRdmaDesc *desc, unsigned n)
{
    uint64_t mem = ring_mem(r);
    uint16_t head = r->next;

    for (unsigned i = 0; i < n; i++) {
        uint16_t next = (r->next + 1) % r->size;
        struct vring_desc d = {
            .addr = cpu_to_le64(desc[i].addr),
            .len = cpu_to_le32(desc[i].len),
            .flags = cpu_to_le16((desc[i].write ? VRING_DESC_F_WRITE : 0) |
                                 (i + 1 < n ? VRING_DESC_F_NEXT : 0)),
            .next = cpu_to_le16(next),
        };

        fuzz_write(mem + r->next * sizeof(d), &d, sizeof(d));
        r->next = next;
    }
    fuzz_store(mem + 0x800 + 4 + 2 * (r->put % r->size), head, 2);
    r->put++;
    fuzz_store(mem + 0x800 + 2, r->put, 2);
}

static void put_packed(FuzzRing *r, const QRdmaDesc *desc, unsigned n)
{
    /* The first descriptor last: its flags make all of them available */
    for (int i = n - 1; i >= 0; i--) {
        unsigned at = r->next + i;
        bool lap = r->lap ^ (at / r->size & 1);
        struct vring_packed_desc d = {
            .addr = cpu_to_le64(desc[i].addr),
            .len = cpu_to_le32(desc[i].len),
            .id = cpu_to_le16(r->next),
            .flags = cpu_to_le16(
                1u << (lap ? VRING_PACKED_DESC_F_USED
                           : VRING_PACKED_DESC_F_AVAIL) |
                (desc[i].write ? VRING_DESC_F_WRITE : 0) |
                (i + 1 < n ? VRING_DESC_F_NEXT : 0)),
        };

        fuzz_write(ring_mem(r) + at % r->size * sizeof(d), &d, sizeof(d));
    }
    r->lap ^= (r->next + n) / r->size & 1;
    r->next = (r->next + n) % r->size;
    r->put++;
}

void fuzz_ring_put(FuzzRing *r, const QRdmaDesc *desc, unsigned n)
{
    if (fuzz_guest.packed && r->index < FUZZ_MAX_VQS) {
        put_packed(r, desc, n);
    } else {
        put_split(r, desc, n);
    }
}

void fuzz_notify(FuzzFunction *f, unsigned vq)
{
    fuzz_store(f->bar + f->proxy->notify.offset +
               vq * NOTIFY_STEP, vq, 2);
}

void fuzz_kick(FuzzFunction *f, unsigned vq)
{
    fuzz_notify(f, vq);
    fuzz_settle();
}

FuzzRing *fuzz_rq(unsigned place)
{
    FuzzGuest *g = &fuzz_guest;

    return &g->ring[VIRTIO_RDMA_RQ_VQ(g->max_cq, g->qpn[place]) %
                    FUZZ_MAX_VQS];
}
