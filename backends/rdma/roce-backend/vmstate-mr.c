/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of the RoCE backend: memory regions and windows.
 */
#include "qemu/osdep.h"
#include "migration/qemu-file-types.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "rdma/roce-state.h"
#include "vmstate.h"

/* VMSTATE_RDMA_ENUM() saves 4 bytes. */
QEMU_BUILD_BUG_ON(sizeof(RdmaMrType) != sizeof(uint32_t));
QEMU_BUILD_BUG_ON(sizeof(RdmaMwType) != sizeof(uint32_t));

/* Memory regions */

static const VMStateDescription vmstate_mr = {
    .name = "rdma-roce/mr",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(attr.mrn, RoceMrImage),
        VMSTATE_UINT32(attr.pdn, RoceMrImage),
        VMSTATE_RDMA_ENUM(attr.type, RoceMrImage),
        VMSTATE_UINT32(attr.access, RoceMrImage),
        VMSTATE_UINT32(attr.lkey, RoceMrImage),
        VMSTATE_UINT32(attr.rkey, RoceMrImage),
        VMSTATE_UINT64(attr.iova, RoceMrImage),
        VMSTATE_UINT64(attr.length, RoceMrImage),
        VMSTATE_UINT32(attr.npages, RoceMrImage),
        VMSTATE_UINT32(attr.max_pages, RoceMrImage),
        VMSTATE_UINT8(attr.page_shift, RoceMrImage),
        VMSTATE_UINT8(valid, RoceMrImage),
        VMSTATE_UINT8(pending, RoceMrImage),
        VMSTATE_UINT64(pending_iova, RoceMrImage),
        VMSTATE_UINT64(pending_length, RoceMrImage),
        VMSTATE_UINT32(pending_npages, RoceMrImage),
        VMSTATE_END_OF_LIST()
    },
};

void rdma_roce_put_pages(QEMUFile *f, uint64_t *pages, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        pages[i] = cpu_to_be64(pages[i]);
    }
    qemu_put_buffer(f, (uint8_t *)pages, n * sizeof(*pages));
}

int rdma_roce_get_pages(QEMUFile *f, uint64_t **pages, uint32_t n)
{
    size_t size = n * sizeof(uint64_t);

    *pages = g_new(uint64_t, n);
    if (qemu_get_buffer(f, (uint8_t *)*pages, size) != size) {
        g_clear_pointer(pages, g_free);
        return -EIO;
    }
    for (uint32_t i = 0; i < n; i++) {
        (*pages)[i] = be64_to_cpu((*pages)[i]);
    }
    return 0;
}

static int put_mr(QEMUFile *f, RdmaBackend *rb, uint32_t mrn)
{
    RoceMrImage image;
    int ret = roce_export_mr(rdma_roce_engine(rb), mrn, &image);

    if (!ret) {
        ret = rdma_vmstate_save(f, &vmstate_mr, &image, NULL);
        rdma_roce_put_pages(f, image.attr.pages, image.attr.npages);
        rdma_roce_put_pages(f, image.pending_pages, image.pending_npages);
        roce_mr_image_clear(&image);
    }
    return ret;
}

static int get_mr(QEMUFile *f, RdmaBackend *rb, uint32_t *n, char **why)
{
    RoceMrImage image = {};
    RdmaLoaded obj = { .type = RDMA_OBJECT_MR, .mr = &image.attr };
    int ret = rdma_vmstate_load(f, &vmstate_mr, &image);

    if (ret) {
        return ret;
    }
    obj.npages = (uint64_t)image.attr.npages + image.pending_npages;
    if (!rb->client_ops->loaded(rb->client_opaque, &obj)) {
        error_report("rdma-roce: memory region %u in the migration stream "
                     "(type %d, PD %u, lkey 0x%x, %u pages) is not the "
                     "device's", image.attr.mrn, image.attr.type,
                     image.attr.pdn, image.attr.lkey, image.attr.npages);
        return -EINVAL;
    }
    ret = rdma_roce_get_pages(f, &image.attr.pages, image.attr.npages) ?:
          rdma_roce_get_pages(f, &image.pending_pages, image.pending_npages);
    if (!ret) {
        *n = image.attr.mrn;
        ret = roce_import_mr(rdma_roce_engine(rb), &image, why);
    }
    roce_mr_image_clear(&image);
    return ret;
}

const RoceObjectList rdma_roce_mrs =
    ROCE_OBJECT_LIST("memory region", roce_next_mr, put_mr, get_mr);

/* Memory windows */

static const VMStateDescription vmstate_mw = {
    .name = "rdma-roce/mw",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(attr.mwn, RoceMwImage),
        VMSTATE_UINT32(attr.pdn, RoceMwImage),
        VMSTATE_RDMA_ENUM(attr.type, RoceMwImage),
        VMSTATE_UINT32(attr.rkey, RoceMwImage),
        VMSTATE_UINT8(bound, RoceMwImage),
        VMSTATE_UINT32(mrn, RoceMwImage),
        VMSTATE_UINT32(qpn, RoceMwImage),
        VMSTATE_UINT32(access, RoceMwImage),
        VMSTATE_UINT64(addr, RoceMwImage),
        VMSTATE_UINT64(length, RoceMwImage),
        VMSTATE_END_OF_LIST()
    },
};

static int put_mw(QEMUFile *f, RdmaBackend *rb, uint32_t mwn)
{
    RoceMwImage image;
    int ret = roce_export_mw(rdma_roce_engine(rb), mwn, &image);

    if (!ret) {
        ret = rdma_vmstate_save(f, &vmstate_mw, &image, NULL);
    }
    return ret;
}

static int get_mw(QEMUFile *f, RdmaBackend *rb, uint32_t *n, char **why)
{
    RoceMwImage image = {};
    const RdmaLoaded obj = { .type = RDMA_OBJECT_MW, .mw = &image.attr };
    int ret = rdma_vmstate_load(f, &vmstate_mw, &image);

    if (ret) {
        return ret;
    }
    if (!rb->client_ops->loaded(rb->client_opaque, &obj)) {
        error_report("rdma-roce: memory window %u in the migration stream "
                     "(type %d, PD %u) is not the device's", image.attr.mwn,
                     image.attr.type, image.attr.pdn);
        return -EINVAL;
    }
    *n = image.attr.mwn;
    return roce_import_mw(rdma_roce_engine(rb), &image, why);
}

const RoceObjectList rdma_roce_mws =
    ROCE_OBJECT_LIST("memory window", roce_next_mw, put_mw, get_mw);
