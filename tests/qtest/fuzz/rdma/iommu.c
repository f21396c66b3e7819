/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzers of the virtio-rdma device: the guest's IOMMU.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-fuzz.h"
#include "standard-headers/linux/virtio_iommu.h"
#include "standard-headers/linux/virtio_pci.h"

#define DOMAIN 1

static void request(const void *req, size_t len)
{
    size_t tail = sizeof(struct virtio_iommu_req_tail);
    FuzzRing *r = &fuzz_guest.iommu_ring;
    uint64_t buf = fuzz_ring_buffer(r);
    QRdmaDesc desc[] = {
        { buf, len - tail, false },
        { buf + FUZZ_BUF_SIZE / 2, tail, true },
    };

    fuzz_write(buf, req, len);
    fuzz_ring_put(r, desc, 2);
    fuzz_kick(&fuzz_guest.iommu, 0);
}

static void map(uint64_t virt, uint64_t phys, uint64_t size, uint32_t flags)
{
    struct virtio_iommu_req_map req = {
        .head.type = VIRTIO_IOMMU_T_MAP,
        .domain = cpu_to_le32(DOMAIN),
        .virt_start = cpu_to_le64(virt),
        .virt_end = cpu_to_le64(virt + size - 1),
        .phys_start = cpu_to_le64(phys),
        .flags = cpu_to_le32(flags),
    };

    request(&req, sizeof(req));
}

static void unmap(uint64_t virt, uint64_t size)
{
    struct virtio_iommu_req_unmap req = {
        .head.type = VIRTIO_IOMMU_T_UNMAP,
        .domain = cpu_to_le32(DOMAIN),
        .virt_start = cpu_to_le64(virt),
        .virt_end = cpu_to_le64(virt + size - 1),
    };

    request(&req, sizeof(req));
}

static void attach(uint8_t type)
{
    struct virtio_iommu_req_attach req = {
        .head.type = type,
        .domain = cpu_to_le32(DOMAIN),
        .endpoint = cpu_to_le32(FUZZ_RDMA_DEVFN),
    };

    request(&req, sizeof(req));
}

void fuzz_iommu_attach(void)
{
    FuzzFunction *f = &fuzz_guest.iommu;
    FuzzRing *r = &fuzz_guest.iommu_ring;

    r->index = FUZZ_MAX_VQS;
    fuzz_start(f, 1ull << VIRTIO_F_VERSION_1 |
                  1ull << VIRTIO_IOMMU_F_MAP_UNMAP);
    fuzz_ring_setup(f, r);
    fuzz_store(f->bar + f->proxy->common.offset +
               offsetof(struct virtio_pci_common_cfg, device_status), 0xf, 1);
    attach(VIRTIO_IOMMU_T_ATTACH);
    /* In pieces, so that the input can take some of them away */
    for (uint64_t at = 0; at < FUZZ_MEM_END; at += 0x40000) {
        map(at, at, 0x40000, VIRTIO_IOMMU_MAP_F_READ |
                             VIRTIO_IOMMU_MAP_F_WRITE);
    }
}

void fuzz_op_iommu(FuzzIn *in)
{
    static const uint64_t places[] = {
        0, FUZZ_RINGS, FUZZ_BUFFERS, FUZZ_TABLES, FUZZ_DATA, FUZZ_ECAM,
        FUZZ_RDMA_BAR, FUZZ_BLK_BAR,
    };
    uint8_t what = in_u8(in), pages = in_u8(in);
    uint64_t size = (uint64_t)(1 + pages) << 12;
    uint64_t virt = places[what >> 3 & 7];

    if (!fuzz_guest.iommu.proxy) {
        return;
    }
    switch (what & 7) {
    case 0:
        attach(VIRTIO_IOMMU_T_DETACH);
        break;
    case 1:
        attach(VIRTIO_IOMMU_T_ATTACH);
        break;
    case 2:
    case 3:
        unmap(virt, what & 0x40 ? FUZZ_MEM_END : (size | 0x3ffff) + 1);
        break;
    case 4:
        map(virt, places[in_u8(in) & 7], size, VIRTIO_IOMMU_MAP_F_READ);
        break;
    default:
        map(virt, places[in_u8(in) & 7], size, VIRTIO_IOMMU_MAP_F_READ |
                                               VIRTIO_IOMMU_MAP_F_WRITE);
        break;
    }
}
