/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzers of the virtio-rdma device: actions of the input besides verbs, on
 * rings, registers, configuration space, memory and time.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/timer.h"
#include "hw/core/boards.h"
#include "hw/pci/pci_bridge.h"
#include "hw/pci/pci_bus.h"
#include "hw/pci/pci_regs.h"
#include "monitor/qdev.h"
#include "net/net.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-net.h"
#include "qobject/qdict.h"
#include "rdma-fuzz.h"
#include "standard-headers/linux/virtio_blk.h"
#include "standard-headers/linux/virtio_pci.h"
#include "standard-headers/linux/virtio_ring.h"

#define COMMON(field) offsetof(struct virtio_pci_common_cfg, field)

static FuzzFunction *pick_function(uint8_t sel)
{
    FuzzGuest *g = &fuzz_guest;
    FuzzFunction *f = sel < 0xc0 ? &g->rdma : sel < 0xf0 ? &g->blk : &g->iommu;

    return f->proxy ? f : &g->rdma;
}

static unsigned pick_vq(uint8_t sel)
{
    return sel % (fuzz_guest.n_vqs + 1);
}

static uint64_t pick_addr(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    switch (sel & 7) {
    case 0:
        return fuzz_pick_va(in);
    case 1:
        return FUZZ_BUFFERS + in_u16(in);
    case 2:
        /* The device's control register, with its function reset */
        return fuzz_config_addr(FUZZ_RDMA_DEVFN,
                                fuzz_guest.rdma.proxy->pci_dev.exp.exp_cap +
                                (sel & 8 ? PCI_EXP_DEVCTL : in_u8(in)));
    case 3:
        return fuzz_config_addr(sel & 8 ? FUZZ_PORT_DEVFN : FUZZ_RDMA_DEVFN,
                                in_u8(in));
    case 4:
        return FUZZ_RDMA_BAR + (sel & 8 ? in_u16(in) :
                                fuzz_guest.rdma.proxy->notify.offset +
                                4 * in_u8(in));
    case 5:
        return FUZZ_BLK_BAR + COMMON(device_status);
    case 6:
        return FUZZ_RDMA_BAR + COMMON(device_status);
    default:
        return FUZZ_RINGS + in_u32(in) % (FUZZ_MAX_VQS << 12);
    }
}

/*
 * Write any descriptors, or one chain of many, and set the index to any value.
 */
void fuzz_op_ring(FuzzIn *in)
{
    FuzzGuest *g = &fuzz_guest;
    FuzzRing *r = &g->ring[pick_vq(in_u8(in)) % FUZZ_MAX_VQS];
    uint64_t mem = FUZZ_RINGS + r->index * 0x1000ull;
    uint8_t sel = in_u8(in);
    bool chain = sel & 0x20;
    uint8_t n = 1 + in_u8(in) % (chain ? FUZZ_RING_SIZE + 2 : 8);
    uint16_t at = sel & 1 ? r->next : in_u8(in) % FUZZ_RING_SIZE;
    uint8_t common = chain ? in_u8(in) & ~VRING_DESC_F_NEXT : 0;

    for (unsigned i = 0; i < n; i++) {
        uint8_t flags = chain ? common | (i + 1 < n) : in_u8(in);
        uint64_t addr = sel & 2 ? pick_addr(in) : FUZZ_DATA + 4096 * (i % 8);
        uint32_t len = chain ? 64 : sel & 4 ? in_u32(in) : in_u8(in);
        uint64_t desc = mem + (at + i) % FUZZ_RING_SIZE * 16;

        fuzz_store(desc, addr, 8);
        fuzz_store(desc + 8, len, 4);
        if (g->packed) {
            bool lap = r->lap ^ ((at + i) / FUZZ_RING_SIZE & 1) ^
                       (flags >> 7);

            fuzz_store(desc + 12, sel & 8 ? in_u16(in) : at, 2);
            fuzz_store(desc + 14, (flags & 0x17) |
                       1u << (lap ? VRING_PACKED_DESC_F_USED
                                  : VRING_PACKED_DESC_F_AVAIL), 2);
        } else {
            fuzz_store(desc + 12, flags & 7, 2);
            fuzz_store(desc + 14, flags >> 3, 2);
            fuzz_store(mem + 0x800 + 4 + 2 * ((r->put + i) % FUZZ_RING_SIZE),
                       sel & 8 ? in_u16(in) : (at + i) % FUZZ_RING_SIZE, 2);
        }
    }
    if (g->packed) {
        fuzz_store(mem + 0x800, in_u32(in), 4);
    } else {
        r->put = sel & 16 ? in_u16(in) : r->put + n;
        fuzz_store(mem + 0x800, in_u8(in) & 1, 2);
        fuzz_store(mem + 0x800 + 2, r->put, 2);
        fuzz_store(mem + 0x800 + 4 + 2 * FUZZ_RING_SIZE, in_u16(in), 2);
    }
    if (sel & 1) {
        r->lap ^= (at + n) / FUZZ_RING_SIZE & 1;
        r->next = (at + n) % FUZZ_RING_SIZE;
    }
    fuzz_kick(&g->rdma, r->index);
}

void fuzz_op_kick(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    fuzz_kick(&fuzz_guest.rdma, sel < 0xf0 ? pick_vq(sel) : in_u16(in) % 1024);
}

void fuzz_op_register(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    FuzzFunction *f = pick_function(in_u8(in));
    uint64_t at = f->bar + (sel & 4 ? in_u16(in) : in_u8(in) % 0x40);
    unsigned size = 1 << (sel & 3);

    if (sel & 8) {
        fuzz_load(at, size);
        return;
    }
    if (sel & 16) {
        fuzz_store(f->bar + COMMON(queue_select), pick_vq(in_u8(in)), 2);
    }
    fuzz_store(at, sel & 32 ? pick_addr(in) : in_u32(in), size);
    fuzz_settle();
}

void fuzz_op_pci(FuzzIn *in)
{
    static const int devfns[] = {
        FUZZ_RDMA_DEVFN, FUZZ_RDMA_DEVFN, FUZZ_PORT_DEVFN, FUZZ_BLK_DEVFN,
    };
    static const uint8_t registers[] = {
        PCI_COMMAND, PCI_BASE_ADDRESS_1, PCI_BASE_ADDRESS_4, PCI_MEMORY_BASE,
    };
    uint8_t sel = in_u8(in);
    uint32_t at = sel & 4 ? registers[sel >> 6] :
                  sel & 8 ? in_u16(in) % 4096 : in_u8(in);
    uint64_t addr = fuzz_config_addr(devfns[sel & 3], at);

    if (sel & 16) {
        fuzz_store(addr, in_u8(in), sel & 32 ? 2 : 1);
    } else {
        fuzz_store(addr, in_u32(in), 4);
    }
    fuzz_settle();
}

/* Set an MSI-X message that reaches a register, and arm the CQ. */
void fuzz_op_vector(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    FuzzFunction *f = pick_function(sel);
    uint64_t entry = f->bar + FUZZ_MSIX + sel % 8 * PCI_MSIX_ENTRY_SIZE;
    uint64_t addr = pick_addr(in);
    uint8_t what = in_u8(in);
    uint32_t data = what & 1 ? in_u32(in) :
                    what & 2 ? PCI_EXP_DEVCTL_BCR_FLR :
                    what & 4 ? PCI_EXP_SLTCTL_PCC | PCI_EXP_SLTCTL_PWR_IND_OFF :
                    in_u8(in);
    struct virtio_rdma_req_notify_cq_req req = {
        .cqn = cpu_to_le32(fuzz_guest.cqn[what >> 7]),
        .flags = cpu_to_le32(VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION),
    };

    fuzz_store(entry + PCI_MSIX_ENTRY_LOWER_ADDR, (uint32_t)addr, 4);
    fuzz_store(entry + PCI_MSIX_ENTRY_UPPER_ADDR, addr >> 32, 4);
    fuzz_store(entry + PCI_MSIX_ENTRY_DATA, data, 4);
    fuzz_store(entry + PCI_MSIX_ENTRY_VECTOR_CTRL, what & 8 ? 1 : 0, 4);
    if (what & 16) {
        fuzz_command(VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ, &req, sizeof(req), NULL,
                     0);
    }
}

/*
 * Give virtio-blk a read that takes a millisecond. Its reset waits for the read
 * in a nested event loop.
 */
static void read_block(void)
{
    FuzzFunction *f = &fuzz_guest.blk;
    FuzzRing *r = &fuzz_guest.blk_ring;
    uint64_t buf;
    QRdmaDesc desc[3];

    r->index = FUZZ_MAX_VQS + 1;
    fuzz_start(f, 1ull << VIRTIO_F_VERSION_1);
    fuzz_ring_setup(f, r);
    fuzz_store(f->bar + f->proxy->common.offset + COMMON(device_status), 0xf,
               1);
    buf = fuzz_ring_buffer(r);
    desc[0] = (QRdmaDesc) { buf, sizeof(struct virtio_blk_outhdr), false };
    desc[1] = (QRdmaDesc) { FUZZ_DATA + FUZZ_MR_SIZE, 512, true };
    desc[2] = (QRdmaDesc) { buf + FUZZ_BUF_SIZE / 2, 1, true };
    fuzz_ring_put(r, desc, ARRAY_SIZE(desc));
    fuzz_kick(f, 0);
}

/*
 * Reach the device's registers while it writes a completion: by the MSI-X
 * message that follows, or by the completion itself, whose buffer lies in
 * registers.
 */
void fuzz_op_nested(FuzzIn *in)
{
    FuzzGuest *g = &fuzz_guest;
    uint64_t port_exp = fuzz_config_addr(FUZZ_PORT_DEVFN, 0) +
        pci_bridge_get_device(pci_get_bus(&g->rdma.proxy->pci_dev))
            ->exp.exp_cap;
    uint64_t rdma_exp = fuzz_config_addr(FUZZ_RDMA_DEVFN,
                                         g->rdma.proxy->pci_dev.exp.exp_cap);
    uint64_t notify = FUZZ_RDMA_BAR + g->rdma.proxy->notify.offset;
    const struct {
        uint64_t addr;
        uint32_t data;
    } effects[] = {
        { rdma_exp + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_BCR_FLR },
        { port_exp + PCI_EXP_SLTCTL, PCI_EXP_SLTCTL_PCC |
                                     PCI_EXP_SLTCTL_PWR_IND_OFF },
        { FUZZ_RDMA_BAR + COMMON(device_status), 0 },
        { FUZZ_BLK_BAR + COMMON(device_status), 0 },
        { fuzz_config_addr(FUZZ_RDMA_DEVFN, PCI_COMMAND), 0 },
        { fuzz_config_addr(FUZZ_PORT_DEVFN, PCI_BRIDGE_CONTROL & ~3),
          PCI_BRIDGE_CTL_BUS_RESET << 16 },
        { FUZZ_RDMA_BAR + COMMON(queue_select),
          VIRTIO_RDMA_CQ_VQ(g->cqn[1]) },
        { notify + 4 * in_u8(in), 0 },
    };
    uint8_t sel = in_u8(in);
    uint64_t addr = effects[sel & 7].addr;
    uint32_t data = effects[sel & 7].data;
    uint32_t cqn = g->config->direct ? g->eqn : g->cqn[sel >> 3 & 1];
    FuzzRing *cq = &g->ring[VIRTIO_RDMA_CQ_VQ(cqn) % FUZZ_MAX_VQS];
    uint64_t entry = g->rdma.bar + FUZZ_MSIX + cq->index % 8 *
                                               PCI_MSIX_ENTRY_SIZE;
    struct virtio_rdma_req_notify_cq_req req = {
        .cqn = cpu_to_le32(cqn),
        .flags = cpu_to_le32(VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION),
    };
    uint64_t ring = FUZZ_RINGS + cq->index * 0x1000ull;
    QRdmaDesc desc = { addr, 64, true };

    if ((sel & 7) == 3) {
        read_block();
    }
    if (sel & 0x10) {
        fuzz_ring_put(cq, &desc, 1);
    } else {
        fuzz_store(entry + PCI_MSIX_ENTRY_LOWER_ADDR, addr, 4);
        fuzz_store(entry + PCI_MSIX_ENTRY_UPPER_ADDR, 0, 4);
        fuzz_store(entry + PCI_MSIX_ENTRY_DATA, data, 4);
        fuzz_store(entry + PCI_MSIX_ENTRY_VECTOR_CTRL, 0, 4);
        if (!g->packed) {
            /* used_event: the next one */
            fuzz_store(ring + 0x800 + 4 + 2 * FUZZ_RING_SIZE,
                       fuzz_load(ring + 0xa00 + 2, 2), 2);
        }
        if (g->config->direct) {
            fuzz_direct_arm(sel >> 3 & 1);
        } else {
            fuzz_command(VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ, &req, sizeof(req),
                         NULL, 0);
        }
    }
    fuzz_send_messages(1 + (sel >> 5), data);
}

void fuzz_op_queue_reset(FuzzIn *in)
{
    FuzzGuest *g = &fuzz_guest;
    uint8_t sel = in_u8(in);
    unsigned vq = pick_vq(sel);
    uint64_t common = g->rdma.bar + g->rdma.proxy->common.offset;

    fuzz_store(common + COMMON(queue_select), vq, 2);
    fuzz_store(common + offsetof(struct virtio_pci_modern_common_cfg,
                                 queue_reset), 1, 2);
    if (sel & 0x80) {
        fuzz_ring_setup(&g->rdma, &g->ring[vq % FUZZ_MAX_VQS]);
    }
    fuzz_settle();
}

void fuzz_op_restart(FuzzIn *in)
{
    fuzz_bring_up(false);
}

void fuzz_op_flr(FuzzIn *in)
{
    FuzzFunction *f = &fuzz_guest.rdma;
    uint64_t addr = fuzz_config_addr(f->devfn,
                                     f->proxy->pci_dev.exp.exp_cap +
                                     PCI_EXP_DEVCTL);

    fuzz_store(addr, PCI_EXP_DEVCTL_BCR_FLR, 2);
    fuzz_settle();
}

void fuzz_op_memory(FuzzIn *in)
{
    uint64_t addr = pick_addr(in);
    uint8_t n = 1 + in_u8(in) % 16;

    while (n--) {
        fuzz_store(addr++, in_u8(in), 1);
    }
    fuzz_settle();
}

/*
 * Another processor changes memory while the device works: from now on each
 * read of the device finds a changed byte.
 */
void fuzz_op_tear(FuzzIn *in)
{
    fuzz_guest.tears = in_u8(in) % 64;
    fuzz_guest.tear_at = in_u8(in);
    fuzz_guest.tear_by = in_u8(in);
}

/* Called before the device reads @len bytes of memory. */
void __wrap_fuzz_dma_read_cb(size_t addr, size_t len, MemoryRegion *mr)
{
    FuzzGuest *g = &fuzz_guest;

    if (g->tears && len && mr == current_machine->ram) {
        uint8_t *ram = memory_region_get_ram_ptr(mr);

        g->tears--;
        ram[addr + g->tear_at % len] ^= g->tear_by;
    }
    __real_fuzz_dma_read_cb(addr, len, mr);
}

void fuzz_op_time(FuzzIn *in)
{
    int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

    qemu_clock_advance_virtual_time(now + (1ll << in_u8(in) % 34));
    fuzz_settle();
}

/* The administrator of the host unplugs the cable. */
void fuzz_op_link(FuzzIn *in)
{
    qmp_set_link("n0", in_u8(in) & 1, NULL);
    fuzz_settle();
}

/* ... or asks the guest for the device. */
void fuzz_op_plug(FuzzIn *in)
{
    qdev_unplug(DEVICE(fuzz_guest.rdma.proxy), NULL);
    qemu_clock_advance_virtual_time(qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                                    in_u8(in) * 50000000ll);
    fuzz_settle();
}
